//! Web pages: their words and links, without scripts, styles and markup.

use super::draft::Draft;
use super::lines::{shrink_log, split};

/// Bytes examined to recognise a page.
const LOOKED_AT_BYTES: usize = 1_000;
/// Elements without visible text.
const SKIPPED: &[&str] = &["script", "style", "svg", "noscript", "template", "iframe"];
/// Elements that end a line.
const BLOCKS: &[&str] = &[
    "p",
    "div",
    "br",
    "li",
    "ul",
    "ol",
    "tr",
    "table",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "section",
    "article",
    "header",
    "footer",
    "nav",
    "pre",
    "title",
    "blockquote",
];
/// Text in lines up to this many bytes is not worth a selection of lines.
const SHORT_BYTES: usize = 4_000;

/// Whether a text is a web page.
pub(super) fn is_page(text: &str) -> bool {
    let start = text.trim_start();
    let end = start.floor_char_boundary(LOOKED_AT_BYTES.min(start.len()));
    let start = start.get(..end).unwrap_or_default().to_ascii_lowercase();
    start.starts_with("<!doctype html")
        || start.starts_with("<html")
        || (start.starts_with('<') && start.contains("<body"))
}

pub(super) fn shrink(text: &str) -> Draft {
    let words = words_of(text);
    let bytes = text.len();
    if words.len() <= SHORT_BYTES {
        return Draft { text: words, left_out: format!("markup of a page of {bytes} bytes") };
    }
    let shorter = shrink_log(&split(&words), &words);
    Draft {
        text: shorter.text,
        left_out: format!("markup of a page of {bytes} bytes, and {}", shorter.left_out),
    }
}

/// Returns the text of a page, one block per line, with links after their text.
fn words_of(text: &str) -> String {
    let mut out = PageWords::default();
    let mut at = 0;
    let mut link: Option<String> = None;
    while let Some(open) = text.get(at..).and_then(|rest| memchr::memchr(b'<', rest.as_bytes())) {
        out.push(text.get(at..at + open).unwrap_or_default());
        let rest = text.get(at + open..).unwrap_or_default();
        if rest.starts_with("<!--") {
            at += open + rest.find("-->").map_or(rest.len(), |end| end + 3);
            continue;
        }
        let Some(close) = memchr::memchr(b'>', rest.as_bytes()) else {
            // No element ends here: the rest is text.
            at += open;
            break;
        };
        let tag = rest.get(1..close).unwrap_or_default();
        at += open + close + 1;
        let is_end = tag.starts_with('/');
        let name_end = tag.trim_start_matches('/').find(|c: char| !c.is_ascii_alphanumeric());
        let name = tag.trim_start_matches('/');
        let name = name.get(..name_end.unwrap_or(name.len())).unwrap_or_default().to_ascii_lowercase();
        if !is_end && SKIPPED.contains(&name.as_str()) && !tag.ends_with('/') {
            at = end_of(text, at, &name);
        } else if BLOCKS.contains(&name.as_str()) {
            out.break_line();
        } else if name == "a" && !is_end {
            link = attribute(tag, "href");
        } else if name == "a"
            && let Some(url) =
                link.take().filter(|url| !url.starts_with('#') && !url.starts_with("javascript:"))
        {
            out.push(&format!(" ({url})"));
        } else if name == "td" || name == "th" {
            out.push(" ");
        }
    }
    out.push(text.get(at..).unwrap_or_default());
    out.text.trim_end().to_owned()
}

/// Returns the end of a skipped element.
fn end_of(text: &str, from: usize, name: &str) -> usize {
    let mut at = from;
    while let Some(open) = text.get(at..).and_then(|rest| memchr::memmem::find(rest.as_bytes(), b"</")) {
        let start = at + open + 2;
        let found = text.get(start..start + name.len()).is_some_and(|tag| tag.eq_ignore_ascii_case(name));
        if found {
            let close = text.get(start..).and_then(|rest| memchr::memchr(b'>', rest.as_bytes()));
            return close.map_or(text.len(), |close| start + close + 1);
        }
        at = start;
    }
    text.len()
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let at = tag.find(&format!("{name}="))? + name.len() + 1;
    let rest = tag.get(at..)?;
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let value = rest.get(1..)?;
    Some(value.get(..value.find(quote)?)?.to_owned())
}

/// Collects words with single spaces between them.
#[derive(Default)]
struct PageWords {
    text: String,
    /// Whether a space is needed before the next word.
    is_parted: bool,
}

impl PageWords {
    fn push(&mut self, text: &str) {
        let mut words = text.split_ascii_whitespace();
        self.is_parted |= text.starts_with(|c: char| c.is_ascii_whitespace());
        let Some(first) = words.next() else { return };
        self.word(first);
        for word in words {
            self.is_parted = true;
            self.word(word);
        }
        self.is_parted = text.ends_with(|c: char| c.is_ascii_whitespace());
    }

    fn word(&mut self, word: &str) {
        let is_at_start = self.text.is_empty() || self.text.ends_with('\n');
        if std::mem::take(&mut self.is_parted) && !is_at_start {
            self.text.push(' ');
        }
        if memchr::memchr(b'&', word.as_bytes()).is_none() {
            return self.text.push_str(word);
        }
        let plain =
            [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&nbsp;", " "), ("&amp;", "&")];
        let word = plain.iter().fold(word.to_owned(), |word, (from, to)| word.replace(from, to));
        self.text.push_str(&word);
    }

    fn break_line(&mut self) {
        self.is_parted = false;
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }
}
