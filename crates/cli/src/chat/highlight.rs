//! Colours for code: strings, comments, numbers and keywords. It works line by line, for any language and without a grammar,
//! so it is sometimes wrong.

use owo_colors::OwoColorize as _;

/// Keywords that many languages share.
const WORDS: &str = " as async await break case catch class const continue def defer del do elif else end enum except export \
extends extern finally fn for from func function go if impl import in interface is lambda let loop match mod module move mut \
new nil none not null or package pass pub public private raise return select self static struct super switch then this throw \
trait true false try type typeof undefined union unless until unsafe use using var void where while with yield echo fi done \
esac local and SELECT FROM WHERE INSERT INTO VALUES UPDATE SET DELETE CREATE TABLE JOIN ON ORDER BY GROUP LIMIT None True False ";

/// The prefixes of comment lines in a language.
fn comment_marks(language: &str) -> &'static [&'static str] {
    match language {
        "python" | "py" | "sh" | "bash" | "zsh" | "shell" | "console" | "ruby" | "rb" | "yaml" | "yml"
        | "toml" | "perl" | "r" | "make" | "makefile" | "dockerfile" | "ini" | "elixir" => &["#"],
        "sql" | "lua" | "haskell" | "hs" | "elm" | "ada" => &["--"],
        "lisp" | "clojure" | "scheme" | "el" | "asm" => &[";"],
        "tex" | "latex" | "erlang" | "matlab" => &["%"],
        "text" | "txt" | "" | "markdown" | "md" | "json" => &[],
        _ => &["//"],
    }
}

/// Colours a line of code. Lines of a diff are coloured as such.
pub(super) fn highlight(line: &str, language: &str) -> String {
    if matches!(language, "diff" | "patch") {
        return diff_line(line);
    }
    let marks = comment_marks(language);
    let mut out = String::with_capacity(line.len() * 2);
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let starts_word = out.is_empty() || line.len() == rest.len() || {
            let before = line.get(..line.len() - rest.len()).and_then(|text| text.chars().next_back());
            before.is_none_or(|c| !c.is_alphanumeric() && c != '_')
        };
        let (taken, styled) = if marks.iter().any(|mark| rest.starts_with(mark)) {
            (rest.len(), rest.dimmed().to_string())
        } else if matches!(first, '"' | '\'' | '`') {
            let len = string_len(rest, first);
            let text = rest.get(..len).unwrap_or(rest);
            (len, text.green().to_string())
        } else if starts_word && first.is_ascii_digit() {
            let len = len_while(rest, |c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_'));
            (len, rest.get(..len).unwrap_or(rest).magenta().to_string())
        } else if starts_word && (first.is_alphabetic() || first == '_') {
            let len = len_while(rest, |c| c.is_alphanumeric() || c == '_');
            let word = rest.get(..len).unwrap_or(rest);
            let is_known = !marks.is_empty() && WORDS.contains(&format!(" {word} "));
            (len, if is_known { word.blue().to_string() } else { word.to_owned() })
        } else {
            (first.len_utf8(), first.to_string())
        };
        out.push_str(&styled);
        rest = rest.get(taken..).unwrap_or_default();
    }
    out
}

/// Colours a line of a diff.
pub(super) fn diff_line(line: &str) -> String {
    diff_style(line).of(line)
}

/// The style of a diff line, for callers that write it in several rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DiffStyle {
    Name,
    Added,
    Removed,
    Place,
    Other,
}

impl DiffStyle {
    pub(super) fn of(self, text: &str) -> String {
        match self {
            Self::Name => text.bold().to_string(),
            Self::Added => text.green().to_string(),
            Self::Removed => text.red().to_string(),
            Self::Place => text.cyan().to_string(),
            Self::Other => text.to_owned(),
        }
    }
}

/// The style of a diff line.
pub(super) fn diff_style(line: &str) -> DiffStyle {
    if line.starts_with("+++") || line.starts_with("---") {
        DiffStyle::Name
    } else if line.starts_with('+') {
        DiffStyle::Added
    } else if line.starts_with('-') {
        DiffStyle::Removed
    } else if line.starts_with("@@") {
        DiffStyle::Place
    } else {
        DiffStyle::Other
    }
}

fn len_while(text: &str, fits: impl Fn(char) -> bool) -> usize {
    text.char_indices().find(|(_, c)| !fits(*c)).map_or(text.len(), |(at, _)| at)
}

/// The length of a string up to its closing quote. An unclosed apostrophe counts as one character.
fn string_len(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    quote.len_utf8()
}

#[cfg(test)]
#[path = "highlight_tests.rs"]
mod tests;
