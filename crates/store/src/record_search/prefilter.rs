//! Rejects messages by their raw JSON: many that cannot match a query are skipped without being decoded.
//!
//! The characters of a text are in its JSON unchanged and in order, except for escaped ones. The same is true for every run of letters,
//! after folding both: a JSON text without a run of the query contains no substring or word with it. If words must be adjacent, a run that
//! is always followed by other words does not match either. JSON that escapes other characters by number cannot be judged, and passes.

use memchr::memmem::Finder;
use throughline_search::case_fold::fold_text;
use throughline_search::query::{ParsedQuery, QueryTerm, SearchMethod};

/// The maximum number of words, and of the atoms of one, that are searched.
const MAX_LOOKED_FOR: usize = 4;

/// Accepts JSON whose text may match a question.
pub(crate) struct Prefilter {
    wanted: Vec<JsonTraces>,
    by_number: Finder<'static>,
    folded: String,
    unhyphened: String,
}

/// The traces of a required text in JSON.
struct JsonTraces {
    /// Runs that must all be present.
    runs: Vec<Finder<'static>>,
    /// The run after the first of them.
    next: Option<Vec<u8>>,
    /// The alternative if words are joined: it may be written with hyphens.
    whole: Option<Finder<'static>>,
}

impl Prefilter {
    /// Creates the filter for a question and a search method.
    pub(crate) fn new(query: &ParsedQuery, way: SearchMethod) -> Self {
        let wanted = match way {
            SearchMethod::Substring => vec![JsonTraces::of_substring(&query.substring)],
            SearchMethod::Words => {
                query.wanted.iter().take(MAX_LOOKED_FOR).map(JsonTraces::of_word).collect()
            }
        };
        Self { wanted, by_number: Finder::new("\\u"), folded: String::new(), unhyphened: String::new() }
    }

    /// Whether the text in this JSON may match.
    pub(crate) fn passes(&mut self, json: &str) -> bool {
        let Self { wanted, by_number, folded, unhyphened } = self;
        folded.clear();
        if json.is_ascii() {
            // Folding of white space makes no difference to a run without any.
            folded.push_str(json);
            folded.make_ascii_lowercase();
        } else {
            fold_text(json, folded);
        }
        unhyphened.clear();
        let may_answer = wanted.iter().all(|traces| {
            traces.are_in(folded.as_bytes())
                || traces.whole.as_ref().is_some_and(|whole| {
                    if unhyphened.is_empty() {
                        let mut from = 0;
                        for at in memchr::memchr3_iter(b'_', b'-', b'.', folded.as_bytes()) {
                            unhyphened.push_str(folded.get(from..at).unwrap_or_default());
                            from = at + 1;
                        }
                        unhyphened.push_str(folded.get(from..).unwrap_or_default());
                    }
                    whole.find(unhyphened.as_bytes()).is_some()
                })
        });
        may_answer || by_number.find(json.as_bytes()).is_some()
    }
}

impl JsonTraces {
    /// Splits at characters that may be escaped, and at white space, whose form may differ.
    fn of_substring(substring: &str) -> Self {
        let runs = substring.split(['"', '\\', '/', ' ']);
        let longest = runs.max_by_key(|run| run.len()).unwrap_or_default();
        Self { runs: vec![Finder::new(longest).into_owned()], next: None, whole: None }
    }

    fn of_word(wanted: &QueryTerm) -> Self {
        let atoms = wanted.atoms.iter().take(MAX_LOOKED_FOR);
        Self {
            runs: atoms.map(|(atom, _)| Finder::new(atom).into_owned()).collect(),
            next: match wanted.atoms.get(1) {
                Some((next, 1)) => Some(next.as_bytes().to_vec()),
                _ => None,
            },
            whole: wanted.whole.as_ref().map(|whole| Finder::new(whole).into_owned()),
        }
    }

    fn are_in(&self, json: &[u8]) -> bool {
        // With letters beyond ASCII, the separators of words are harder to determine.
        self.runs.iter().all(|run| run.find(json).is_some()) && (!json.is_ascii() || self.follow_in(json))
    }

    /// Whether the second run may follow the first somewhere, if required.
    fn follow_in(&self, json: &[u8]) -> bool {
        let (Some(first), Some(next)) = (self.runs.first(), &self.next) else { return true };
        let mut rest = json;
        while let Some(at) = first.find(rest) {
            if may_go_on_with(&rest[at + first.needle().len()..], next) {
                return true;
            }
            rest = &rest[at + 1..];
        }
        false
    }
}

/// Whether a word may be next in JSON, after any non-word characters.
fn may_go_on_with(mut json: &[u8], word: &[u8]) -> bool {
    loop {
        match json {
            // Another part of the message, an end, or JSON in JSON, which is escaped twice: the next word of the text is elsewhere.
            [] | [b'"', ..] | [b'\\', b'\\' | b'"', ..] => return true,
            [b'\\', _, rest @ ..] => json = rest,
            [next, ..] if next.is_ascii_alphanumeric() => return json.starts_with(word),
            [_, rest @ ..] => json = rest,
        }
    }
}

#[cfg(test)]
#[path = "prefilter_tests.rs"]
mod tests;
