//! YAML text as a tree with the position of every value.
//!
//! The only module that uses the YAML parser. It refuses what settings do not need (several documents, lists as keys, merge keys, foreign
//! tags, duplicate keys) and limits size and nesting. Aliases point into the tree instead of being copied, so a few lines cannot grow into
//! gigabytes.

use std::collections::HashMap;
use std::ops::Range;

use granit_parser::{
    ErrorKind as ParserErrorKind, Event, Parser, ScalarStyle, ScanError, Span, StructureStyle,
};

/// The maximum file size, far beyond any settings written by hand. A reader of a file can stop one byte later.
pub(crate) const MAX_FILE_BYTES: usize = 1024 * 1024;
/// The maximum nesting of sections and lists.
const MAX_DEPTH: usize = 64;
/// The maximum number of consecutive comment lines; every line of the largest file may be one.
const MAX_COMMENTS: usize = MAX_FILE_BYTES;

/// The index of a node in its document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeId(usize);

/// A value in the text.
#[derive(Debug, Clone)]
pub(crate) struct YamlNode {
    /// Line of its first character, from 1.
    pub(crate) line: usize,
    /// Its bytes in the text, without anchor and tag. Empty for an omitted value. A block mapping or list has an empty span at its start.
    pub(crate) span: Range<usize>,
    /// Whether an anchor (`&name`) or a tag (`!!str`) precedes it.
    pub(crate) has_properties: bool,
    /// Whether an anchor makes it reachable from elsewhere.
    pub(crate) is_anchored: bool,
    pub(crate) data: Data,
}

/// The kind of a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Data {
    Scalar { text: String, style: Style },
    Mapping { flow: bool, entries: Vec<YamlEntry> },
    Sequence { items: Vec<NodeId> },
    Alias { target: NodeId, name: String },
}

/// How a scalar was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Block,
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct YamlEntry {
    pub(crate) key: String,
    pub(crate) key_span: Range<usize>,
    pub(crate) key_line: usize,
    /// Number of characters before the key on its line.
    pub(crate) key_column: usize,
    pub(crate) value: NodeId,
}

/// A comment, from `#` to the end of its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Comment {
    pub(crate) text: String,
    pub(crate) span: Range<usize>,
    pub(crate) line: usize,
}

/// A parsed file.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    nodes: Vec<YamlNode>,
    root: Option<NodeId>,
    pub(crate) comments: Vec<Comment>,
}

/// Why a text is not a settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct YamlRefusal {
    /// Line from 1; `None` if the whole file is concerned.
    pub(crate) line: Option<usize>,
    pub(crate) reason: Reason,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reason {
    TooLarge,
    NotUtf8 { column: usize, byte: u8 },
    Utf16,
    Tab,
    Syntax { column: usize, message: String },
    SecondDocument,
    KeyIsNotText,
    MergeKey,
    ForeignTag { tag: String },
    Duplicate { key: String, first_line: usize },
}

/// Reads bytes as text, naming the first byte that is not UTF-8.
pub(crate) fn decode(bytes: &[u8]) -> Result<&str, YamlRefusal> {
    if bytes.len() > MAX_FILE_BYTES {
        return Err(YamlRefusal { line: None, reason: Reason::TooLarge });
    }
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(YamlRefusal { line: None, reason: Reason::Utf16 });
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let (good, bad) = bytes.split_at(error.valid_up_to());
        let line_start = good.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let column = String::from_utf8_lossy(&good[line_start..]).chars().count() + 1;
        let line = good.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let byte = bad.first().copied().unwrap_or_default();
        YamlRefusal { line: Some(line), reason: Reason::NotUtf8 { column, byte } }
    })
}

/// Parses a text and reports all errors before the first syntax error together with it.
pub(crate) fn parse(text: &str) -> Result<Document, Vec<YamlRefusal>> {
    if text.len() > MAX_FILE_BYTES {
        return Err(vec![YamlRefusal { line: None, reason: Reason::TooLarge }]);
    }
    let options = granit_parser::options! {
        max_buffered_comment_events: MAX_COMMENTS,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    let mut builder = Builder::default();
    for event in Parser::new_from_str_with_options(text, options) {
        match event {
            Ok((event, span)) => builder.take(event, &span, text),
            Err(error) => {
                builder.refusals.push(syntax_refusal(&error));
                break;
            }
        }
        if builder.is_stopped {
            break;
        }
    }
    builder.finish()
}

fn syntax_refusal(error: &ScanError) -> YamlRefusal {
    let marker = error.marker();
    let reason = match error.kind() {
        ParserErrorKind::TabNotAllowed
        | ParserErrorKind::TabInBlockIndentation
        | ParserErrorKind::TabAtBlockScalarStart
        | ParserErrorKind::TabInIndentation
        | ParserErrorKind::TabInPlainScalar => Reason::Tab,
        _ => Reason::Syntax { column: marker.col() + 1, message: error.info() },
    };
    YamlRefusal { line: Some(marker.line()), reason }
}

impl Document {
    /// The outermost value; none in an empty file.
    pub(crate) fn root(&self) -> Option<&YamlNode> {
        self.root.and_then(|id| self.nodes.get(id.0))
    }

    /// Returns the node as written, which may be an alias.
    pub(crate) fn node(&self, id: NodeId) -> Option<&YamlNode> {
        self.nodes.get(id.0)
    }

    /// Whether an alias refers to this node.
    pub(crate) fn is_referenced(&self, node: &YamlNode) -> bool {
        node.is_anchored
            && self.nodes.iter().any(|other| match other.data {
                Data::Alias { target, .. } => {
                    self.node(target).is_some_and(|target| std::ptr::eq(target, node))
                }
                _ => false,
            })
    }

    /// Every node, in the order of the text.
    pub(crate) fn nodes(&self) -> &[YamlNode] {
        &self.nodes
    }

    /// The node an alias refers to, or the node itself.
    pub(crate) fn resolve(&self, id: NodeId) -> Option<&YamlNode> {
        let node = self.node(id)?;
        match node.data {
            // An alias cannot carry an anchor, so its target is never an alias.
            Data::Alias { target, .. } => self.node(target),
            _ => Some(node),
        }
    }
}

impl YamlNode {
    /// Whether the value was omitted or is null.
    pub(crate) fn is_null(&self) -> bool {
        match &self.data {
            Data::Scalar { text, style: Style::Plain } => is_null_word(text),
            _ => false,
        }
    }

    /// The kind of the value, for messages.
    pub(crate) fn describe(&self) -> &'static str {
        match &self.data {
            Data::Scalar { .. } => "a single value",
            Data::Mapping { .. } => "a section",
            Data::Sequence { .. } => "a list",
            Data::Alias { .. } => "an alias",
        }
    }

    /// Whether it has no characters in the text.
    pub(crate) fn is_left_out(&self) -> bool {
        self.span.is_empty() && self.is_null()
    }
}

/// Whether an unquoted word means "no value".
pub(crate) fn is_null_word(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

/// A collection whose end has not been reached.
struct Open {
    node: NodeId,
    /// The key whose value it is; empty for the root and for items of a list.
    name: String,
    /// The first line of each key, for detecting duplicates.
    key_lines: HashMap<String, usize>,
    /// The key that is waiting for its value.
    pending: Option<YamlEntry>,
}

#[derive(Default)]
struct Builder {
    nodes: Vec<YamlNode>,
    root: Option<NodeId>,
    comments: Vec<Comment>,
    anchors: HashMap<usize, NodeId>,
    open: Vec<Open>,
    /// The key of the last value, for a collection that is about to be opened.
    last_name: String,
    documents: usize,
    refusals: Vec<YamlRefusal>,
    is_stopped: bool,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: &Span, source: &str) {
        let line = span.start.line();
        let bytes = span.byte_range().unwrap_or(0..0);
        let tag = event.tag().map(|tag| (tag.is_yaml_core_schema(), tag.original()));
        if let Some((false, tag)) = &tag {
            self.refuse(line, Reason::ForeignTag { tag: tag.clone() });
        }
        let is_tagged = tag.is_some();
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    self.refuse(line, Reason::SecondDocument);
                    self.is_stopped = true;
                }
            }
            Event::Comment(_, _) => {
                let text = source.get(bytes.clone()).unwrap_or_default().trim_end().to_owned();
                self.comments.push(Comment { text, span: bytes, line });
            }
            Event::Scalar(text, style, anchor, _) => {
                let style = match style {
                    // A tag such as `!!str` declares the word as text.
                    ScalarStyle::Plain if is_tagged => Style::DoubleQuoted,
                    ScalarStyle::Plain => Style::Plain,
                    ScalarStyle::SingleQuoted => Style::SingleQuoted,
                    ScalarStyle::DoubleQuoted => Style::DoubleQuoted,
                    ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
                };
                let data = Data::Scalar { text: text.into_owned(), style };
                self.place(data, span, bytes, anchor, is_tagged);
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor) {
                Some(&target) => {
                    let name = source.get(bytes.clone()).unwrap_or_default().to_owned();
                    self.place(Data::Alias { target, name }, span, bytes, 0, false);
                }
                None => {
                    let message = "the alias refers to nothing".to_owned();
                    self.refuse(line, Reason::Syntax { column: span.start.col() + 1, message });
                }
            },
            Event::SequenceStart(_, anchor, _) => {
                let node = self.place(Data::Sequence { items: Vec::new() }, span, bytes, anchor, is_tagged);
                self.enter(node);
            }
            Event::MappingStart(style, anchor, _) => {
                let data = Data::Mapping { flow: style == StructureStyle::Flow, entries: Vec::new() };
                let node = self.place(data, span, bytes, anchor, is_tagged);
                self.enter(node);
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(open) = self.open.pop()
                    && let Some(node) = self.nodes.get_mut(open.node.0)
                    && !node.span.is_empty()
                {
                    node.span.end = bytes.end;
                }
            }
            _ => {}
        }
    }

    fn refuse(&mut self, line: usize, reason: Reason) {
        self.refusals.push(YamlRefusal { line: Some(line), reason });
    }

    fn enter(&mut self, node: NodeId) {
        let name = std::mem::take(&mut self.last_name);
        self.open.push(Open { node, name, key_lines: HashMap::new(), pending: None });
    }

    /// Stores a value: as the root, an item, a key, or the value of the waiting key.
    fn place(
        &mut self,
        data: Data,
        span: &Span,
        bytes: Range<usize>,
        anchor: usize,
        is_tagged: bool,
    ) -> NodeId {
        let line = span.start.line();
        let id = NodeId(self.nodes.len());
        self.nodes.push(YamlNode {
            line,
            span: bytes.clone(),
            has_properties: is_tagged || anchor != 0,
            is_anchored: anchor != 0,
            data,
        });
        if anchor != 0 {
            self.anchors.insert(anchor, id);
        }
        self.last_name.clear();
        let Some(open) = self.open.last_mut() else {
            self.root = Some(id);
            return id;
        };
        let parent = open.node;
        if let Some(entry) = open.pending.take() {
            let entry = YamlEntry { value: id, ..entry };
            self.last_name.clone_from(&entry.key);
            if let Some(YamlNode { data: Data::Mapping { entries, .. }, .. }) = self.nodes.get_mut(parent.0) {
                entries.push(entry);
            }
            return id;
        }
        if let Some(YamlNode { data: Data::Sequence { items }, .. }) = self.nodes.get_mut(parent.0) {
            items.push(id);
            return id;
        }
        self.begin_entry(id, span, bytes);
        id
    }

    fn begin_entry(&mut self, id: NodeId, span: &Span, bytes: Range<usize>) {
        let line = span.start.line();
        let (key, style) = match self.nodes.get(id.0).map(|node| &node.data) {
            Some(Data::Scalar { text, style }) => (text.clone(), *style),
            _ => (String::new(), Style::Block),
        };
        if style == Style::Block {
            self.refuse(line, Reason::KeyIsNotText);
        } else if key == "<<" && style == Style::Plain {
            self.refuse(line, Reason::MergeKey);
        }
        let Some(open) = self.open.last_mut() else { return };
        let earlier = open.key_lines.get(&key).copied();
        if earlier.is_none() {
            open.key_lines.insert(key.clone(), line);
        }
        open.pending = Some(YamlEntry {
            key: key.clone(),
            key_span: bytes,
            key_line: line,
            key_column: span.start.col(),
            value: id,
        });
        if let Some(first_line) = earlier {
            let key = self.path_of_key(&key);
            self.refuse(line, Reason::Duplicate { key, first_line });
        }
    }

    /// Returns the dotted path of a key in the innermost open mapping.
    fn path_of_key(&self, key: &str) -> String {
        let mut path: Vec<&str> =
            self.open.iter().map(|open| open.name.as_str()).filter(|name| !name.is_empty()).collect();
        path.push(key);
        path.join(".")
    }

    fn finish(self) -> Result<Document, Vec<YamlRefusal>> {
        if self.refusals.is_empty() {
            Ok(Document { nodes: self.nodes, root: self.root, comments: self.comments })
        } else {
            Err(self.refusals)
        }
    }
}
