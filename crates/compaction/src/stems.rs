//! Word stems, to recognise that two texts have the same subject.

use std::hash::BuildHasher;

use rustc_hash::FxBuildHasher;

/// Returns the stems of a text's words and of the parts of its identifiers and paths, each between two spaces: `src/netIo/retry_budgets.rs`
/// becomes ` src net io retry budget rs `.
pub(crate) fn normalised(text: &str) -> String {
    let mut out = String::new();
    normalise_into(text, &mut out);
    out
}

/// Like [`normalised`], but writes to a buffer of the caller.
fn normalise_into(text: &str, out: &mut String) {
    out.clear();
    out.reserve(text.len() + 8);
    out.push(' ');
    let mut part_start = out.len();
    let mut previous: Option<char> = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        // `readFile`, `OAuth`, `case17`.
        let hump = previous.is_some_and(|p| {
            (p.is_lowercase() && c.is_uppercase())
                || (p.is_uppercase()
                    && c.is_uppercase()
                    && chars.peek().is_some_and(|next| next.is_lowercase()))
                || (p.is_ascii_digit() != c.is_ascii_digit())
        });
        if !c.is_alphanumeric() || (hump && previous.is_some_and(char::is_alphanumeric)) {
            close_part(out, &mut part_start);
        }
        if c.is_alphanumeric() {
            out.extend(c.to_lowercase());
        }
        previous = Some(c);
    }
    close_part(out, &mut part_start);
}

fn close_part(out: &mut String, start: &mut usize) {
    if out.len() > *start {
        let kept = out.get(*start..).map_or(0, |part| stem(part).len());
        out.truncate(*start + kept);
        out.push(' ');
        *start = out.len();
    }
}

/// Returns a word without its English ending. The result only has to be equal for the forms of one word.
fn stem(word: &str) -> &str {
    if !word.is_ascii() || word.len() < 4 || word.bytes().any(|b| b.is_ascii_digit()) {
        return word;
    }
    const ENDINGS: &[&str] = &["ings", "ing", "ies", "ied", "ers", "er", "es", "ed", "s", "e", "y"];
    let ending = ENDINGS.iter().find(|ending| {
        word.ends_with(**ending)
            && word.len() >= ending.len() + 3
            && !(**ending == "s" && word.ends_with("ss"))
    });
    let Some(ending) = ending else { return word };
    let bare = word.get(..word.len() - ending.len()).unwrap_or(word);
    // `cropping` and `crop`.
    let mut ends = bare.bytes().rev();
    match (ends.next(), ends.next()) {
        (Some(a), Some(b)) if a == b && bare.len() > 3 && !matches!(a, b'l' | b's' | b'e' | b'o') => {
            bare.get(..bare.len() - 1).unwrap_or(bare)
        }
        _ => bare,
    }
}

/// Stems of words that do not indicate a subject.
const FILL: &[&str] = &[
    "the", "and", "for", "with", "about", "all", "our", "its", "how", "what", "are", "can", "could", "you",
    "pleas", "would", "should", "that", "thi", "then", "hav", "has", "had", "from", "into", "not", "but",
    "them", "when", "onc", "one", "mor", "also", "need", "want", "mak", "let", "der", "die", "das", "und",
    "den", "dem", "ein", "bit", "les", "des", "une", "pour", "los", "las", "una", "para", "por", "noch",
    "auch", "dann", "yes", "too",
];

/// A word or a pair of letters as a hash: stems are only compared with each other.
pub(crate) type Stem = u64;

/// Returns the subject of a text: the stems of its words in order, without filler words. Scripts without spaces give pairs of letters.
pub(crate) fn stems(text: &str) -> Vec<Stem> {
    let mut out = Vec::new();
    Stemmer::default().add_to(text, &mut out);
    out
}

/// Computes the stems of many texts with reused buffers.
#[derive(Debug, Default)]
pub(crate) struct Stemmer {
    normalised: String,
}

impl Stemmer {
    /// Appends the stems of a text.
    pub(crate) fn add_to(&mut self, text: &str, out: &mut Vec<Stem>) {
        normalise_into(text, &mut self.normalised);
        for word in self.normalised.split(' ').filter(|word| !word.is_empty()) {
            if word.chars().any(|c| c >= '\u{2e80}') {
                let seconds = word.char_indices().skip(1).map(|(at, second)| at + second.len_utf8());
                let pairs = word.char_indices().zip(seconds);
                out.extend(pairs.filter_map(|((at, _), end)| word.get(at..end)).map(number));
            } else if word.chars().count() >= 3 && !FILL.contains(&word) {
                out.push(number(word));
            }
        }
    }

    /// Removes the stems of a text from a subject. `known` is a buffer.
    pub(crate) fn take_out(&mut self, text: &str, subject: &mut Vec<Stem>, known: &mut Vec<Stem>) {
        known.clear();
        self.add_to(text, known);
        known.sort_unstable();
        subject.retain(|stem| known.binary_search(stem).is_err());
    }
}

fn number(word: &str) -> Stem {
    // Zero means no word.
    FxBuildHasher.hash_one(word).max(1)
}
