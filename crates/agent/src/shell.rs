//! Parses a command line by the grammar of a shell: the programs with their words, the pipes between them, the files they write, and the
//! commands within words.
//!
//! The grammar is that of bash, which includes that of `sh`. Input that does not fit is reported as such. This is not a shell: the values
//! of variables and the contents of files are unknown, and such parts are marked. Not for: judging danger.

use std::ops::{ControlFlow, Range};

use tree_sitter::{Node, ParseOptions, ParseState, Parser};

/// Replaces the part of a word that is only known at run time. It parses as an expansion, so it stays unknown if the word is parsed as a
/// command line.
pub(crate) const UNKNOWN: &str = "${_}";
/// The longest command line that is parsed, in bytes; people write far shorter ones.
const MAX_BYTES: usize = 64 * 1024;
/// The deepest nesting of statements.
const MAX_DEPTH: usize = 100;
/// The most progress reports of the parser; a line of `MAX_BYTES` with ordinary commands causes a tenth of them.
const MAX_PROGRESS: usize = 20_000;

/// A word without quotes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Word {
    /// The text, with `UNKNOWN` for every part that is only known at run time.
    pub(crate) text: String,
    /// Whether the whole word is known before the command runs.
    pub(crate) is_fixed: bool,
    /// The names of variables in it.
    pub(crate) variables: Vec<String>,
    /// The steps that produce it: `$(...)`, `` `...` ``, `<(...)`.
    pub(crate) made_by: Vec<Range<usize>>,
    /// The steps that its file is piped into: `>(...)`.
    pub(crate) feeds: Vec<Range<usize>>,
}

impl Word {
    /// A word without expansions.
    pub(crate) fn fixed(text: &str) -> Self {
        Self { text: text.to_owned(), is_fixed: true, ..Self::default() }
    }

    /// Appends another part of the same word.
    fn join(&mut self, piece: Self) {
        self.text.push_str(&piece.text);
        self.is_fixed &= piece.is_fixed;
        self.variables.extend(piece.variables);
        self.made_by.extend(piece.made_by);
        self.feeds.extend(piece.feeds);
    }

    fn add_unknown(&mut self) {
        self.text.push_str(UNKNOWN);
        self.is_fixed = false;
    }
}

/// A program that is run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    /// The name and the arguments.
    pub(crate) words: Vec<Word>,
    /// The variables that are set for it.
    pub(crate) assignments: Vec<(String, Word)>,
    /// The input: a here-document or a here-string.
    pub(crate) input: Option<Word>,
}

/// The effect of a redirection on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Redirect {
    /// Replaces its contents.
    Replaces,
    /// Appends to it.
    Adds,
    /// Reads it.
    Reads,
}

/// A file of a redirection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RedirectedFile {
    pub(crate) redirect: Redirect,
    pub(crate) file: Word,
    pub(crate) steps: Range<usize>,
}

/// A function that a command line defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) body: Range<usize>,
}

/// A parsed command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Script {
    /// Every program that it may run, including those within words. The programs of one statement or word are consecutive, so that a
    /// range denotes them.
    pub(crate) steps: Vec<Step>,
    /// The pipelines, with the steps of each stage.
    pub(crate) pipelines: Vec<Vec<Range<usize>>>,
    pub(crate) redirects: Vec<RedirectedFile>,
    pub(crate) functions: Vec<Function>,
    /// The variables that are set for all following steps.
    pub(crate) assignments: Vec<(String, Word)>,
    /// The contents of `((...))`: arithmetic in bash, commands in other shells.
    pub(crate) double_parentheses: Vec<String>,
    /// Whether the whole line fits the grammar and the limits.
    pub(crate) is_understood: bool,
}

impl Script {
    /// Parses a command line.
    pub(crate) fn read(command: &str) -> Self {
        let Some(tree) = (command.len() <= MAX_BYTES).then(|| parse(command)).flatten() else {
            return Self::default();
        };
        let root = tree.root_node();
        let is_understood = !root.has_error();
        let mut reader = ShellReader { source: command, script: Self { is_understood, ..Self::default() } };
        reader.statement(root, 0);
        reader.script
    }
}

fn parse(command: &str) -> Option<tree_sitter::Tree> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    let mut progress = 0usize;
    let mut watch = |_: &ParseState| {
        progress += 1;
        if progress > MAX_PROGRESS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    // The syntax of shells is ASCII, and the grammar's scanner reads beyond its tables for other bytes. Each other byte is replaced by
    // one that is part of a word but not of a name, so that positions stay the same.
    let ascii: Vec<u8> =
        command.bytes().map(|byte| if byte.is_ascii() && byte != 0 { byte } else { b'%' }).collect();
    let mut read = |at: usize, _| ascii.get(at..).unwrap_or_default();
    parser.parse_with_options(&mut read, None, Some(ParseOptions::new().progress_callback(&mut watch)))
}

struct ShellReader<'a> {
    source: &'a str,
    script: Script,
}

impl<'a> ShellReader<'a> {
    fn text(&self, node: Node<'_>) -> &'a str {
        self.source.get(node.byte_range()).unwrap_or_default()
    }

    fn len(&self) -> usize {
        self.script.steps.len()
    }

    /// Parses the programs of a node and returns their steps.
    fn statement(&mut self, node: Node<'_>, depth: usize) -> Range<usize> {
        let start = self.len();
        if depth > MAX_DEPTH {
            self.script.is_understood = false;
            return start..start;
        }
        match node.kind() {
            "comment" => {}
            "command" | "declaration_command" | "unset_command" => self.command(node, depth),
            "redirected_statement" => self.redirected(node, depth),
            "pipeline" => {
                let stages: Vec<Range<usize>> =
                    stages(node).into_iter().map(|stage| self.statement(stage, depth + 1)).collect();
                self.script.pipelines.push(stages);
            }
            "function_definition" => {
                let name = node.child_by_field_name("name").map(|name| self.text(name).to_owned());
                self.children(node, depth);
                let body = start..self.len();
                self.script.functions.extend(name.map(|name| Function { name, body }));
            }
            "variable_assignment" => {
                let assignment = self.assignment(node, depth);
                self.script.assignments.extend(assignment);
            }
            "compound_statement" if self.text(node).starts_with("((") => {
                let inside = self.text(node).strip_prefix('(').and_then(|text| text.strip_suffix(')'));
                self.script.double_parentheses.extend(inside.map(str::to_owned));
                self.children(node, depth);
            }
            "file_redirect" | "herestring_redirect" | "heredoc_redirect" => {
                self.redirect(node, start..start, depth);
            }
            // Chains of && and || are left-recursive, one level per operator.
            "list" => {
                let mut chain = vec![node];
                while let Some(first) =
                    chain.last().and_then(|node| node.named_child(0)).filter(|node| node.kind() == "list")
                {
                    chain.push(first);
                }
                for (at, list) in chain.into_iter().rev().enumerate() {
                    let skipped = usize::from(at > 0);
                    for child in named_children(list).into_iter().skip(skipped) {
                        self.statement(child, depth + 1);
                    }
                }
            }
            _ => self.children(node, depth),
        }
        start..self.len()
    }

    fn children(&mut self, node: Node<'_>, depth: usize) {
        for child in named_children(node) {
            self.statement(child, depth + 1);
        }
    }

    /// Parses a program with its words.
    fn command(&mut self, node: Node<'_>, depth: usize) {
        let at = self.len();
        self.script.steps.push(Step::default());
        let mut step = Step::default();
        let mut redirects = Vec::new();
        let mut word_end = None;
        if node.kind() != "command" {
            // `export`, `declare` and similar commands are keywords of the grammar.
            let keyword = node.child(0).map(|first| self.text(first)).unwrap_or_default();
            step.words.push(Word::fixed(keyword));
        }
        for child in named_children(node) {
            match child.kind() {
                "comment" => {}
                "variable_assignment" if node.kind() == "command" => {
                    step.assignments.extend(self.assignment(child, depth + 1));
                }
                "variable_assignment" => {
                    if let Some((name, value)) = self.assignment(child, depth + 1) {
                        step.words.push(Word { text: format!("{name}={}", value.text), ..value });
                    }
                }
                "herestring_redirect" => {
                    let words: Vec<Word> =
                        named_children(child).into_iter().map(|word| self.word(word, depth + 1)).collect();
                    step.input = words.into_iter().next_back();
                }
                "file_redirect" | "heredoc_redirect" => redirects.push(child),
                _ => {
                    let word = self.word(child, depth + 1);
                    // Adjacent parts are one word in the shell, but not always in the grammar.
                    match step.words.last_mut().filter(|_| word_end == Some(child.start_byte())) {
                        Some(last) => last.join(word),
                        None => step.words.push(word),
                    }
                    word_end = Some(child.end_byte());
                }
            }
        }
        if let Some(place) = self.script.steps.get_mut(at) {
            *place = step;
        }
        let steps = at..self.len();
        for redirect in redirects {
            self.redirect(redirect, steps.clone(), depth + 1);
        }
    }

    fn assignment(&mut self, node: Node<'_>, depth: usize) -> Option<(String, Word)> {
        let name = self.text(node.child_by_field_name("name")?).to_owned();
        let value = node.child_by_field_name("value").map(|value| self.word(value, depth + 1));
        Some((name, value.unwrap_or_else(|| Word::fixed(""))))
    }

    /// Parses a statement with redirections.
    fn redirected(&mut self, node: Node<'_>, depth: usize) {
        let start = self.len();
        let body = node.child_by_field_name("body");
        if let Some(body) = body {
            self.statement(body, depth + 1);
        }
        let steps = start..self.len();
        for child in named_children(node) {
            if Some(child) != body {
                self.redirect(child, steps.clone(), depth + 1);
            }
        }
    }

    /// Parses a redirection of these steps.
    fn redirect(&mut self, node: Node<'_>, steps: Range<usize>, depth: usize) {
        match node.kind() {
            "file_redirect" => self.file_redirect(node, steps, depth),
            "herestring_redirect" => {
                for word in named_children(node) {
                    let word = self.word(word, depth + 1);
                    self.give(&steps, &word);
                }
            }
            "heredoc_redirect" => self.heredoc(node, &steps, depth),
            _ => {
                self.statement(node, depth + 1);
            }
        }
    }

    fn file_redirect(&mut self, node: Node<'_>, steps: Range<usize>, depth: usize) {
        let mut cursor = node.walk();
        let operator =
            node.children(&mut cursor).find(|child| !child.is_named()).map_or("", |child| child.kind());
        let files = named_children(node).into_iter().filter(|child| child.kind() != "file_descriptor");
        for (at, child) in files.enumerate() {
            let file = self.word(child, depth + 1);
            if at > 0 {
                self.add_word(&steps, file);
                continue;
            }
            let is_stream = operator.contains('&')
                && !operator.starts_with('&')
                && file.text.chars().all(|c| c.is_ascii_digit() || c == '-');
            let redirect = match operator {
                _ if is_stream => continue,
                ">>" | "&>>" => Redirect::Adds,
                operator if operator.contains('>') => Redirect::Replaces,
                _ => Redirect::Reads,
            };
            self.script.redirects.push(RedirectedFile { redirect, file, steps: steps.clone() });
        }
    }

    /// Parses a here-document, and the nodes that the grammar attaches to its first line: more words, other redirections, a pipe, a list.
    fn heredoc(&mut self, node: Node<'_>, steps: &Range<usize>, depth: usize) {
        let children = named_children(node);
        let place = |kind: &str| children.iter().find(|child| child.kind() == kind).map(Node::byte_range);
        // The text is taken from the source lines, because the grammar does not reliably find its beginning.
        let start = place("heredoc_start").map_or(node.end_byte(), |range| range.end);
        let end = place("heredoc_end").map_or(node.end_byte(), |range| range.start);
        let text = self.source.get(start..end.max(start)).unwrap_or_default();
        let body = text.split_once('\n').map_or("", |(_, body)| body);
        self.give(steps, &Word { text: body.to_owned(), ..Word::default() });
        for child in children {
            match child.kind() {
                "heredoc_start" | "heredoc_end" => {}
                "heredoc_body" => self.children(child, depth + 1),
                "word"
                | "string"
                | "raw_string"
                | "concatenation"
                | "simple_expansion"
                | "expansion"
                | "number"
                | "command_substitution"
                | "process_substitution"
                | "ansi_c_string" => {
                    let word = self.word(child, depth + 1);
                    // On later lines, the grammar takes text for words.
                    if child.start_byte() < start + text.find('\n').unwrap_or(text.len()) {
                        self.add_word(steps, word);
                    }
                }
                "pipeline" => {
                    let mut all = vec![steps.clone()];
                    all.extend(stages(child).into_iter().map(|stage| self.statement(stage, depth + 1)));
                    self.script.pipelines.push(all);
                }
                "file_redirect" | "herestring_redirect" | "heredoc_redirect" => {
                    self.redirect(child, steps.clone(), depth + 1);
                }
                _ => {
                    self.statement(child, depth + 1);
                }
            }
        }
    }

    /// A word after a redirection belongs to the program before it.
    fn add_word(&mut self, steps: &Range<usize>, word: Word) {
        if let Some(step) = self.script.steps.get_mut(steps.start).filter(|_| !steps.is_empty()) {
            step.words.push(word);
        }
    }

    fn give(&mut self, steps: &Range<usize>, input: &Word) {
        for step in self.script.steps.get_mut(steps.clone()).unwrap_or_default() {
            step.input = Some(input.clone());
        }
    }

    fn word(&mut self, node: Node<'_>, depth: usize) -> Word {
        if depth > MAX_DEPTH {
            self.script.is_understood = false;
            return Word { text: UNKNOWN.to_owned(), ..Word::default() };
        }
        let text = self.text(node);
        match node.kind() {
            "raw_string" => {
                let inside = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
                Word::fixed(inside.unwrap_or(text))
            }
            "ansi_c_string" => {
                let inside = text.strip_prefix("$'").and_then(|text| text.strip_suffix('\''));
                Word::fixed(&escapes_decoded(inside.unwrap_or(text)))
            }
            "string" => self.with_gaps(node, inside_quotes(node, text), depth, Quotes::Double),
            "concatenation" | "command_name" | "translated_string" | "array" => {
                let mut whole = Word::fixed("");
                for child in named_children(node) {
                    let piece = self.word(child, depth + 1);
                    whole.join(piece);
                }
                whole
            }
            "command_substitution"
            | "process_substitution"
            | "simple_expansion"
            | "expansion"
            | "arithmetic_expansion" => {
                let mut word = Word::fixed("");
                self.unknown(node, depth, &mut word);
                word
            }
            "brace_expression" => Word { text: text.to_owned(), ..Word::default() },
            // Words, numbers and patterns, and any commands within them.
            _ => self.with_gaps(node, node.byte_range(), depth, Quotes::None),
        }
    }

    /// Parses text with expansions: they become unknown, the text around them stays.
    fn with_gaps(&mut self, node: Node<'_>, within: Range<usize>, depth: usize, quotes: Quotes) -> Word {
        let mut word = Word::fixed("");
        let mut at = within.start;
        for child in named_children(node) {
            let is_gap = matches!(
                child.kind(),
                "command_substitution"
                    | "process_substitution"
                    | "simple_expansion"
                    | "expansion"
                    | "arithmetic_expansion"
            );
            if !is_gap || child.start_byte() < at {
                continue;
            }
            let before = self.source.get(at..child.start_byte()).unwrap_or_default();
            word.text.push_str(&unescaped(before, quotes));
            self.unknown(child, depth + 1, &mut word);
            at = child.end_byte();
        }
        let rest = self.source.get(at..within.end).unwrap_or_default();
        word.text.push_str(&unescaped(rest, quotes));
        word
    }

    /// Adds a part that is only known at run time.
    fn unknown(&mut self, node: Node<'_>, depth: usize, word: &mut Word) {
        word.add_unknown();
        let text = self.text(node);
        let start = self.len();
        self.children(node, depth + 1);
        let steps = start..self.len();
        if matches!(node.kind(), "simple_expansion" | "expansion") {
            let names = named_children(node).into_iter().filter(|child| child.kind() == "variable_name");
            word.variables.extend(names.map(|name| self.text(name).to_owned()));
        }
        if steps.is_empty() {
            return;
        }
        if text.starts_with(">(") { word.feeds.push(steps) } else { word.made_by.push(steps) }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    None,
    Double,
}

/// The range between the quotes of a string.
fn inside_quotes(node: Node<'_>, text: &str) -> Range<usize> {
    let end = if text.len() > 1 && text.ends_with('"') { node.end_byte() - 1 } else { node.end_byte() };
    (node.start_byte() + 1).min(end)..end
}

/// The stages of a pipeline. The grammar nests some pipelines.
fn stages(node: Node<'_>) -> Vec<Node<'_>> {
    let mut found = Vec::new();
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        if node.kind() == "pipeline" {
            open.extend(named_children(node).into_iter().rev());
        } else if node.kind() != "comment" {
            found.push(node);
        }
    }
    found
}

fn named_children(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).collect()
}

/// Removes backslashes as a shell does.
fn unescaped(text: &str, quotes: Quotes) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let takes_next = |next: char| quotes == Quotes::None || matches!(next, '"' | '\\' | '$' | '`' | '\n');
        match chars.peek().copied() {
            Some(next) if c == '\\' && takes_next(next) => {
                chars.next();
                if next != '\n' {
                    out.push(next);
                }
            }
            _ => out.push(c),
        }
    }
    out
}

/// Decodes the text of `$'...'`.
fn escapes_decoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        let Some(kind) = rest.chars().next().filter(|_| c == '\\') else {
            out.push(c);
            continue;
        };
        let after = rest.get(kind.len_utf8()..).unwrap_or_default();
        let (digits_from, most, radix) = match kind {
            'x' => (after, 2, 16),
            'u' => (after, 4, 16),
            'U' => (after, 8, 16),
            '0'..='7' => (rest, 3, 8),
            _ => (after, 0, 16),
        };
        let digits: String = digits_from.chars().take(most).take_while(|c| c.is_digit(radix)).collect();
        let code = u32::from_str_radix(&digits, radix).ok().and_then(char::from_u32);
        if let Some(code) = code {
            out.push(code);
            rest = digits_from.get(digits.len()..).unwrap_or_default();
            continue;
        }
        out.push(match kind {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'e' | 'E' => '\u{1b}',
            'a' => '\u{7}',
            other => other,
        });
        rest = after;
    }
    out
}

#[cfg(test)]
#[path = "shell_tests.rs"]
mod tests;
