//! Parses a query: its words and phrases, and the query as a substring.
//!
//! No query is a syntax error. Words are separated by white space, and all must be found. Quotes keep words together. A
//! star at the end of a word matches words that begin with it. Everything else is literal: an unclosed quote, an
//! operator of some other search, ten kilobytes of anything are text to look for.

use crate::SearchMode;
use crate::case_fold::fold_text;
use crate::terms::{TermKind, cut};

/// Of a longer question the first so many different words are looked for.
const MAX_WORDS: usize = 48;
/// Of a longer phrase or word the first so many atoms are.
const MAX_ATOMS: usize = 256;
/// What fewer characters begin is nearly everything.
const MIN_STEM_CHARACTERS: usize = 2;
/// Of a question that is looked for as a substring, the first so many bytes.
const MAX_SUBSTRING_BYTES: usize = 16 * 1024;

/// A word or a phrase to look for: atoms that follow one another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryTerm {
    /// The atoms, in order, and how many atoms after the first each stands.
    pub atoms: Vec<(String, u32)>,
    /// The same as one term, where it is one word or compound; found as such it need not be found in parts.
    pub whole: Option<String>,
    /// Whether the last atom, and the whole, may go on.
    pub as_prefix: bool,
    /// What every text has that holds the atoms, however it writes them.
    loose_terms: Vec<IndexTerm>,
    /// What texts have that hold them together as the question does.
    held_together: Vec<IndexTerm>,
}

/// What is looked up in an index.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IndexTerm {
    /// A term.
    Whole(String),
    /// Any term that begins so.
    Beginning(String),
    /// Two terms side by side.
    Pair(String, String),
}

/// What is looked up together: of each of these a text has to have one.
type Lookup = Vec<Vec<IndexTerm>>;

/// A question that was read.
#[derive(Clone, Debug, Default)]
pub struct ParsedQuery {
    /// Words and phrases, each once.
    pub wanted: Vec<QueryTerm>,
    /// The whole question as substrings are compared, without white space around it.
    pub substring: String,
}

/// How a question is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchMethod {
    /// By its words.
    Words,
    /// As a substring.
    Substring,
}

impl ParsedQuery {
    /// Reads a question.
    pub fn new(text: &str) -> Self {
        let mut wanted: Vec<QueryTerm> = Vec::new();
        for token in tokens(text) {
            if wanted.len() == MAX_WORDS {
                break;
            }
            if let Some(word) = QueryTerm::new(&token)
                && !wanted.contains(&word)
            {
                wanted.push(word);
            }
        }
        let mut substring = String::new();
        fold_text(&text[..text.floor_char_boundary(MAX_SUBSTRING_BYTES)], &mut substring);
        Self { wanted, substring: substring.trim().to_owned() }
    }

    /// Appends a text as it is compared with [`substring`](Self::substring): folded, with every run of white space and
    /// control characters as one space.
    pub fn fold_text(text: &str, out: &mut String) {
        fold_text(text, out);
    }

    /// The ways to look for it, the second if the first finds nothing. None if there is nothing to look for.
    pub fn ways(&self, mode: SearchMode) -> &'static [SearchMethod] {
        match mode {
            _ if self.substring.is_empty() => &[],
            SearchMode::Words | SearchMode::AllWords if !self.wanted.is_empty() => {
                &[SearchMethod::Words, SearchMethod::Substring]
            }
            SearchMode::Words | SearchMode::AllWords | SearchMode::Substring => &[SearchMethod::Substring],
        }
    }

    /// Words that are wanted alone and as they are written: every text that holds all words has each of these as one term.
    pub fn single_words(&self) -> impl Iterator<Item = &str> {
        self.wanted
            .iter()
            .filter(|wanted| wanted.atoms.len() == 1 && !wanted.as_prefix)
            .filter_map(|wanted| wanted.whole.as_deref())
    }

    /// What to look up. The first finds texts that write the question as it does; the second, if there is one, all
    /// texts that hold its words. What tells most comes first.
    pub fn look_ups(&self) -> Vec<Vec<Vec<IndexTerm>>> {
        let collect = |of: &dyn Fn(&QueryTerm) -> Lookup| -> Lookup {
            let mut all: Lookup = self.wanted.iter().flat_map(of).collect();
            all.sort_by(|a, b| telling(b).cmp(&telling(a)).then_with(|| a.cmp(b)));
            all.dedup();
            all
        };
        // What is wanted alone and written as it is was found by the first already.
        let in_any_way = match self.wanted.as_slice() {
            [only] if only.atoms.len() > 1 => collect(&|wanted| each_alone(&wanted.loose_terms)),
            _ => collect(&QueryTerm::in_any_way),
        };
        let mut look_ups = vec![collect(&QueryTerm::as_written), in_any_way];
        look_ups.dedup();
        look_ups
    }
}

/// How much can be expected of looking something up: pairs are rare, and long words rarer than short ones.
fn telling(one_of: &[IndexTerm]) -> (bool, usize) {
    one_of.first().map_or((false, 0), |term| match term {
        IndexTerm::Whole(term) | IndexTerm::Beginning(term) => (false, term.len()),
        IndexTerm::Pair(first, second) => (true, first.len() + second.len()),
    })
}

struct Token<'a> {
    text: &'a str,
    as_prefix: bool,
}

/// Words between white space, and what stands between quotes.
fn tokens(text: &str) -> impl Iterator<Item = Token<'_>> {
    text.split('"').enumerate().flat_map(|(at, run)| {
        let phrase = (at % 2 == 1).then_some(Token { text: run, as_prefix: false });
        let words = if at % 2 == 0 { run } else { "" };
        phrase.into_iter().chain(words.split_whitespace().map(|word| {
            let stem = word.trim_end_matches('*');
            let is_stem =
                stem.ends_with(char::is_alphanumeric) && stem.chars().count() >= MIN_STEM_CHARACTERS;
            Token { text: stem, as_prefix: stem.len() < word.len() && is_stem }
        }))
    })
}

impl QueryTerm {
    /// `None` for what holds no word.
    fn new(token: &Token<'_>) -> Option<Self> {
        let text = token.text;
        let mut atoms: Vec<(String, u32)> = Vec::new();
        let mut loose = Vec::new();
        let mut held_together = Vec::new();
        let mut whole = None;
        let mut total_atoms = 0;
        // The glyph before, the number of the atom after it, and whether it is part of a pair already.
        let mut glyph: Option<(String, u32, bool)> = None;
        // The word before, and the number of the atom after it.
        let mut word: Option<(String, u32)> = None;
        cut(text, |piece| {
            total_atoms = piece.atom as usize + piece.atoms as usize;
            if total_atoms > MAX_ATOMS {
                return;
            }
            let is_last = text.get(piece.end..).is_some_and(|rest| !rest.contains(char::is_alphanumeric));
            let is_stem = token.as_prefix && is_last;
            let term = match is_stem {
                true => IndexTerm::Beginning(piece.term.to_owned()),
                false => IndexTerm::Whole(piece.term.to_owned()),
            };
            let is_atom = piece.atoms == 1 && piece.kind != TermKind::Compound;
            if is_atom {
                atoms.push((piece.term.to_owned(), piece.atom));
            }
            let before = glyph.take();
            let is_pair = piece.kind == TermKind::Glyph
                && before.as_ref().is_some_and(|(_, next_atom, _)| *next_atom == piece.atom);
            match before {
                Some((before, ..)) if is_pair => {
                    loose.push(IndexTerm::Whole(before + piece.term));
                }
                other => loose.extend(lone_glyph(other)),
            }
            if piece.kind == TermKind::Glyph {
                glyph = Some((piece.term.to_owned(), piece.atom + 1, is_pair));
            } else {
                if is_atom {
                    if let Some((before, next_atom)) = word.take()
                        && next_atom == piece.atom
                        && !is_stem
                    {
                        loose.push(IndexTerm::Pair(before, piece.term.to_owned()));
                    }
                    word = Some((piece.term.to_owned(), piece.atom + 1));
                    loose.push(term.clone());
                }
                if matches!(piece.kind, TermKind::Word | TermKind::Compound) {
                    whole = (piece.atom == 0).then(|| (piece.term.to_owned(), piece.atoms as usize));
                    held_together.push(term);
                }
            }
        });
        loose.extend(lone_glyph(glyph));
        if atoms.is_empty() {
            return None;
        }
        let whole = whole.filter(|(_, of_atoms)| *of_atoms == total_atoms).map(|(term, _)| term);
        Some(Self { atoms, whole, as_prefix: token.as_prefix, loose_terms: loose, held_together })
    }

    /// What finds texts that write it as the question does.
    fn as_written(&self) -> Lookup {
        match self.whole_term() {
            // A text that has the whole need not have the parts.
            Some(whole) => vec![vec![whole]],
            None => each_alone(self.loose_terms.iter().chain(&self.held_together)),
        }
    }

    /// What finds every text that holds it.
    fn in_any_way(&self) -> Lookup {
        match self.whole_term() {
            None => each_alone(&self.loose_terms),
            Some(whole) if self.atoms.len() == 1 => vec![vec![whole]],
            Some(whole) => self.loose_terms.iter().map(|term| vec![term.clone(), whole.clone()]).collect(),
        }
    }

    fn whole_term(&self) -> Option<IndexTerm> {
        let whole = self.whole.clone()?;
        Some(if self.as_prefix { IndexTerm::Beginning(whole) } else { IndexTerm::Whole(whole) })
    }
}

fn each_alone<'a>(terms: impl IntoIterator<Item = &'a IndexTerm>) -> Lookup {
    terms.into_iter().map(|term| vec![term.clone()]).collect()
}

/// Every glyph of a text begins a term, with or without the next: one alone is found by that.
fn lone_glyph(glyph: Option<(String, u32, bool)>) -> Option<IndexTerm> {
    glyph.filter(|(.., paired)| !paired).map(|(term, ..)| IndexTerm::Beginning(term))
}

#[cfg(test)]
#[path = "query_tests.rs"]
mod tests;
