//! A query of which not every word must be found: its words without function words, each with its stem.
//!
//! It says which fingerprints to look up in an index, and which words of a text are words of the question. Not for:
//! phrases, prefixes and substrings, which `query` parses, and the order of passages, which `passages` decides.

use std::collections::HashMap;

use crate::fingerprint::{FingerprintKind, fingerprint};
use crate::language::Language;
use crate::terms::{TextTerm, each_term};

/// Of a longer question so many words count. The longest are taken: they are the rarest.
const MAX_QUESTION_WORDS: usize = 32;
/// Of a longer question so many bytes are read: some thousand words.
const MAX_QUESTION_BYTES: usize = 16 * 1024;
/// Words whose forms share so many letters are looked up by these; the index knows beginnings of this length.
const SHARED_LETTERS: usize = 6;
/// Of other words so many forms are looked up.
const MAX_FORMS: usize = 5;
/// Endings that make forms of a word, the commonest first. Which of them are forms is decided by the stemmer.
const ENDINGS: [&str; 12] = ["", "s", "ed", "ing", "es", "d", "er", "e", "en", "y", "ies", "ied"];

/// A question that was read.
pub struct Question {
    words: Vec<QuestionWord>,
    language: Language,
    /// Irregular forms of its words, each with the number of the word.
    irregular: HashMap<String, usize>,
    /// First bytes of its words: most words of a text begin with another.
    first_bytes: [bool; 256],
}

/// One word of it.
struct QuestionWord {
    /// As terms are compared.
    term: String,
    /// `None` where only the very term counts: identifiers, numbers, pairs of characters of a script without spaces.
    stem: Option<String>,
}

impl Question {
    /// Reads a question. Function words count only where there are no others.
    pub fn new(text: &str) -> Self {
        let text = text.get(..text.floor_char_boundary(MAX_QUESTION_BYTES)).unwrap_or_default();
        let mut plain: Vec<String> = Vec::new();
        let mut exact: Vec<String> = Vec::new();
        each_term(text, |term| match term {
            TextTerm::Atom { term, .. } => plain.push(term.to_owned()),
            TextTerm::Word(term) | TextTerm::Compound(term) => exact.push(term.to_owned()),
            TextTerm::Glyphs(pair) if pair.chars().nth(1).is_some() => exact.push(pair.to_owned()),
            TextTerm::Glyphs(_) | TextTerm::Glyph(_) => {}
        });
        let language = Language::of_words(plain.iter().map(String::as_str));
        let has_others = !exact.is_empty() || plain.iter().any(|word| !language.is_function_word(word));
        if has_others {
            plain.retain(|word| !language.is_function_word(word));
        }
        let mut words: Vec<QuestionWord> = Vec::new();
        for term in plain {
            let stem = language.stem(&term);
            let is_new = words.iter().all(|word| match (&word.stem, &stem) {
                (Some(known), Some(stem)) => known != stem,
                _ => word.term != term,
            });
            if is_new {
                words.push(QuestionWord { term, stem });
            }
        }
        for term in exact {
            if words.iter().all(|word| word.term != term) {
                words.push(QuestionWord { term, stem: None });
            }
        }
        if words.len() > MAX_QUESTION_WORDS {
            words.sort_by_key(|word| std::cmp::Reverse(word.term.len()));
            words.truncate(MAX_QUESTION_WORDS);
        }
        let mut irregular: HashMap<String, usize> = HashMap::new();
        for (at, word) in words.iter().enumerate().filter(|(_, word)| word.term.is_ascii()) {
            for form in language.irregular_forms(&word.term) {
                irregular.entry(form).or_insert(at);
            }
        }
        // What stands in the question itself is no form of another of its words.
        irregular.retain(|form, _| words.iter().all(|word| word.term != *form));
        let mut first_bytes = [false; 256];
        let terms = words.iter().map(|word| &word.term).chain(irregular.keys());
        for byte in terms.filter_map(|term| term.bytes().next()) {
            if let Some(is_first) = first_bytes.get_mut(usize::from(byte)) {
                *is_first = true;
            }
        }
        Self { words, language, irregular, first_bytes }
    }

    /// How many words it has.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The word of the question that a term of a text is a form of. `is_whole` for identifiers and compounds, and for
    /// pairs of characters of a script without spaces.
    pub fn word_of(&self, term: &str, is_whole: bool) -> Option<usize> {
        let first = term.bytes().next()?;
        if !*self.first_bytes.get(usize::from(first))? {
            return None;
        }
        if let Some(word) = self.irregular.get(term).filter(|_| !is_whole) {
            return Some(*word);
        }
        let mut stem: Option<Option<String>> = None;
        self.words.iter().position(|word| {
            if word.term == term {
                return true;
            }
            let Some(wanted) = word.stem.as_ref().filter(|_| !is_whole) else { return false };
            // Stems keep the first letters of a word.
            let shared = wanted.bytes().zip(term.bytes()).take_while(|(a, b)| a == b).count();
            shared >= wanted.len().min(3)
                && stem.get_or_insert_with(|| self.language.stem(term)).as_ref() == Some(wanted)
        })
    }

    /// The number of a word that is written just so.
    pub fn number_of(&self, term: &str) -> Option<usize> {
        self.words.iter().position(|word| word.term == term)
    }

    /// By which fingerprints its words are looked up, with the number of each word: of more than `most` words the longest, which
    /// are the rarest. A text that holds a form of a word has one of them, but for rare forms of short words. The first is that
    /// of the word as it is written.
    pub fn look_ups(&self, most: usize) -> Vec<(usize, Vec<u32>)> {
        let mut words: Vec<(usize, &QuestionWord)> = self.words.iter().enumerate().collect();
        if words.len() > most {
            words.sort_by_key(|(_, word)| std::cmp::Reverse(word.term.len()));
            words.truncate(most);
        }
        words.into_iter().map(|(number, word)| (number, self.fingerprints_of(word))).collect()
    }

    fn fingerprints_of(&self, word: &QuestionWord) -> Vec<u32> {
        let whole = |term: &str| fingerprint(FingerprintKind::Term, term.as_bytes());
        let irregular = self.irregular_forms_of(word).map(whole);
        let Some(stem) = &word.stem else {
            return std::iter::once(whole(&word.term)).chain(irregular).collect();
        };
        // The stem of `retry` is `retri`: a last `i` may be a `y` in the text.
        let root = stem.strip_suffix('i').unwrap_or(stem);
        let same = word.term.chars().zip(root.chars()).take_while(|(a, b)| a == b).map(|(c, _)| c);
        let shared: String = same.take(SHARED_LETTERS).collect();
        if shared.chars().count() == SHARED_LETTERS {
            let beginning = fingerprint(FingerprintKind::Beginning, shared.as_bytes());
            return std::iter::once(beginning).chain(irregular).collect();
        }
        let mut forms = vec![word.term.clone()];
        let roots = [word.term.as_str(), stem.as_str(), shared.as_str()];
        let after_y =
            ["y", "ies", "ied"].into_iter().filter(|_| stem.ends_with('i')).map(|ending| (ending, root));
        let others = ENDINGS.into_iter().flat_map(|ending| roots.map(|root| (ending, root)));
        for (ending, root) in after_y.chain(others) {
            let form = format!("{root}{ending}");
            if forms.len() < MAX_FORMS
                && !forms.contains(&form)
                && self.language.stem(&form).as_ref() == Some(stem)
            {
                forms.push(form);
            }
        }
        forms.iter().map(|form| whole(form)).chain(irregular).collect()
    }

    fn irregular_forms_of(&self, word: &QuestionWord) -> impl Iterator<Item = &str> {
        let is_of_word = move |at: &usize| self.words.get(*at).is_some_and(|other| other.term == word.term);
        self.irregular.iter().filter(move |(_, at)| is_of_word(at)).map(|(form, _)| form.as_str())
    }
}

#[cfg(test)]
#[path = "question_tests.rs"]
mod tests;
