//! The anchors of the retention benchmark. Independent of the product's own scanner, with plain regular expressions, so that the
//! benchmark does not share the code it measures.

use std::collections::HashSet;

use regex::Regex;

/// Finds anchors: paths, URLs, hashes, flags, identifiers and numbers of three digits or more.
pub(crate) struct AnchorFinder {
    patterns: Vec<Regex>,
}

impl AnchorFinder {
    pub(crate) fn new() -> Result<Self, regex::Error> {
        let sources = [
            // URLs.
            r#"https?://[^\s"'`<>)\]}\\,]+"#,
            // Paths with at least one slash, and file names with an ending.
            r"(?:~|\.{1,2})?/?(?:[A-Za-z0-9_@.+-]+/)+[A-Za-z0-9_@.+-]*[A-Za-z0-9_]",
            r"\b[A-Za-z0-9_-]+\.(?:go|rs|py|ts|tsx|js|jsx|json|md|yaml|yml|toml|sh|txt|sql|css|html|java|rb|c|h|cpp|lock|mod|sum)\b",
            // Long options.
            r"(?:^|[\s`'(\x22])(--[a-z][a-z0-9-]+)",
            // Hashes and UUIDs.
            r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
            r"\b(?:[0-9]+[a-f]|[a-f]+[0-9])[0-9a-f]{5,}\b",
            // Identifiers: snake_case, camelCase, PascalCase with two humps.
            r"\b[A-Za-z][A-Za-z0-9]*_[A-Za-z0-9_]+\b",
            r"\b[a-z]+[A-Z][A-Za-z0-9]*\b",
            r"\b[A-Z][a-z0-9]+[A-Z][A-Za-z0-9]*\b",
            // Numbers.
            r"\b[0-9]{3,}\b",
        ];
        Ok(Self { patterns: sources.iter().map(|source| Regex::new(source)).collect::<Result<_, _>>()? })
    }

    /// Returns the anchors of a text.
    pub(crate) fn find<'a>(&self, text: &'a str) -> HashSet<&'a str> {
        let mut found = HashSet::new();
        for pattern in &self.patterns {
            for captures in pattern.captures_iter(text) {
                let hit = captures.get(1).or_else(|| captures.get(0));
                if let Some(hit) = hit {
                    let anchor = hit.as_str().trim_end_matches(['.', ':', '/', '-']);
                    if anchor.len() >= 3 && anchor.len() <= 200 {
                        found.insert(anchor);
                    }
                }
            }
        }
        found
    }
}

/// Whether an anchor occurs in a text as a separate word.
pub(crate) fn stands_in(text: &str, anchor: &str) -> bool {
    let bytes = text.as_bytes();
    let is_word = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    memchr::memmem::find_iter(bytes, anchor).any(|at| {
        let before = at.checked_sub(1).and_then(|i| bytes.get(i));
        !is_word(before) && !is_word(bytes.get(at + anchor.len()))
    })
}
