//! The word lists for names and values, as data beside the code that uses them.

use std::sync::LazyLock;

/// The lists; each is described in the file.
const LISTS: &str = include_str!("words.txt");

/// The word lists, parsed on first use.
pub(crate) static WORDS: LazyLock<Words> = LazyLock::new(Words::load);

/// One field per list in `words.txt`.
#[derive(Debug)]
pub(crate) struct Words {
    pub(crate) transparent_tails: Vec<String>,
    pub(crate) key_qualifiers: Vec<String>,
    pub(crate) other_tokens: Vec<String>,
    pub(crate) pass_owners: Vec<String>,
    pub(crate) denials: Vec<String>,
    pub(crate) stand_ins: Vec<String>,
    pub(crate) telltales: Vec<String>,
    pub(crate) filler: Vec<String>,
    pub(crate) terms: Vec<String>,
    pub(crate) public_id_prefixes: Vec<String>,
    pub(crate) secret_name_words: Vec<String>,
    pub(crate) units: Vec<String>,
    pub(crate) extensions: Vec<String>,
    pub(crate) connection_schemes: Vec<String>,
    pub(crate) parameter_schemes: Vec<String>,
    pub(crate) foreign_words: Vec<String>,
}

impl Words {
    fn load() -> Self {
        Self {
            transparent_tails: list("transparent_tails"),
            key_qualifiers: list("key_qualifiers"),
            other_tokens: list("other_tokens"),
            pass_owners: list("pass_owners"),
            denials: list("denials"),
            stand_ins: list("stand_ins"),
            telltales: list("telltales"),
            filler: list("filler"),
            terms: list("terms"),
            public_id_prefixes: list("public_id_prefixes"),
            secret_name_words: list("secret_name_words"),
            units: list("units"),
            extensions: list("extensions"),
            connection_schemes: list("connection_schemes"),
            parameter_schemes: list("parameter_schemes"),
            foreign_words: list("foreign_words"),
        }
    }
}

/// The entries of the list called `name`.
fn list(name: &str) -> Vec<String> {
    let mut entries = Vec::new();
    let mut current = "";
    for line in LISTS.lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(heading) => current = heading,
            None if current == name => {
                entries.extend(line.split_whitespace().map(|word| word.replace("\\s", " ")));
            }
            None => {}
        }
    }
    entries
}

/// Whether `word` is in `list`, ignoring ASCII case.
pub(crate) fn is_one_of<S: AsRef<str>>(word: &str, list: &[S]) -> bool {
    list.iter().any(|entry| word.eq_ignore_ascii_case(entry.as_ref()))
}

/// Whether an entry of `list` occurs in `text`, ignoring ASCII case.
pub(crate) fn contains_one_of<S: AsRef<str>>(text: &str, list: &[S]) -> bool {
    let bytes = ByteSet::of(text);
    list.iter().any(|entry| bytes.has_all_of(entry.as_ref()) && contains(text, entry.as_ref()))
}

/// The bytes that occur in a text, ignoring ASCII case: most searches are ruled out by a missing byte.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ByteSet(u128);

impl ByteSet {
    pub(crate) fn of(text: &str) -> Self {
        Self(text.bytes().fold(0, |set, byte| set | Self::bit(byte)))
    }

    /// Whether every byte of `wanted` occurs; otherwise `wanted` does not.
    pub(crate) fn has_all_of(self, wanted: &str) -> bool {
        wanted.bytes().all(|byte| self.0 & Self::bit(byte) != 0)
    }

    fn bit(byte: u8) -> u128 {
        // Case is one bit of a letter; other bytes that share a bit pass this test and are compared.
        1 << (byte & 0x5f)
    }
}

/// Whether `wanted` occurs in `text`, ignoring ASCII case.
pub(crate) fn contains(text: &str, wanted: &str) -> bool {
    text.as_bytes().windows(wanted.len()).any(|window| window.eq_ignore_ascii_case(wanted.as_bytes()))
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
