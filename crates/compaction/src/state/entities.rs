//! Names in the person's words: people, projects, customers.
//!
//! A capital letter alone says little in the middle of a sentence and nothing at its beginning, so the words around decide
//! whether a word is somebody's or something's name.

use crate::act::one_line;
use crate::document::SummaryDocument;
use crate::sections::Section;

use super::model::{Entity, State};
use super::prose::sentences;

/// Names kept.
const MAX_ENTITIES: usize = 60;
/// Words after which a name stands.
const BEFORE: &[&str] = &[
    "with", "ask", "tell", "ping", "cc", "by", "for", "and", "both", "have", "project", "called", "named",
    "customer", "mit", "für", "und", "avec", "con", "para",
];
/// What only somebody or something with a name does.
const AFTER: &[&str] = &[
    "owns",
    "wants",
    "said",
    "says",
    "asked",
    "asks",
    "decided",
    "works",
    "handles",
    "leads",
    "leading",
    "reviews",
    "wrote",
    "told",
    "prefers",
    "maintains",
    "manages",
];
/// Words that are shortened with the same ending as what is somebody's own.
const SHORTENED: &[&str] =
    &["Let", "What", "It", "That", "There", "Here", "Who", "Where", "How", "She", "When", "Why", "This"];
/// What others do too; a name in the middle of a sentence is one there.
const AFTER_ANY: &[&str] = &["is", "and", "will", "needs", "has"];

/// Sections of notes that quote the person.
const QUOTING: [Section; 6] = [
    Section::ActiveTask,
    Section::Goal,
    Section::Constraints,
    Section::CompletedActions,
    Section::KeyDecisions,
    Section::PendingAsks,
];

impl State {
    /// Names that earlier notes tell of, in a line of their own or in a quote of the person.
    pub(super) fn read_names_of_notes(&mut self, index: u32, notes: &SummaryDocument) {
        for entry in notes.entries(Section::CriticalContext) {
            let Some((names, said)) = entry.text.split_once(": \"") else { continue };
            let Some(said) = said.strip_suffix('"') else { continue };
            for name in
                names.split(", ").filter(|name| name_of(name).is_some_and(|(known, _)| known == *name))
            {
                self.add_entity(index, name, said, true);
            }
        }
        for section in QUOTING {
            for entry in notes.entries(section) {
                let quotes = entry.text.split('"').skip(1).step_by(2);
                let whole = (section == Section::PendingAsks).then_some(entry.text.as_str());
                for words in quotes.chain(whole) {
                    self.read_entities(index, &sentences(words));
                }
            }
        }
    }

    /// Notes a name, with the sentence that had it first.
    pub(super) fn add_entity(&mut self, index: u32, name: &str, said: &str, is_named: bool) {
        if let Some(entity) = self.entities.iter_mut().find(|entity| entity.name == name) {
            entity.messages += 1;
            entity.is_named |= is_named;
        } else if self.entities.len() < MAX_ENTITIES {
            let (name, said) = (name.to_owned(), one_line(said, 200));
            self.entities.push(Entity { name, message: index, messages: 1, said, is_named });
        }
    }
}

/// The words of a sentence that are written like a name, each with whether the sentence treats it as one.
pub(super) fn names_in(sentence: &str) -> Vec<(&str, bool)> {
    let words: Vec<&str> = sentence.split_whitespace().collect();
    let bare = |at: Option<usize>| {
        let word = at.and_then(|at| words.get(at)).copied().unwrap_or_default();
        word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
    };
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let Some((name, owns)) = name_of(word) else { continue };
        let (before, after) = (bare(at.checked_sub(1)), bare(at.checked_add(1)));
        let acts = AFTER.contains(&after.as_str()) || words.get(at + 1).is_some_and(|next| *next == "->");
        // The first word of a sentence has a capital letter anyway.
        if at == 0 && !owns && !acts {
            continue;
        }
        let stands = at > 0 && (BEFORE.contains(&before.as_str()) || AFTER_ANY.contains(&after.as_str()));
        found.push((name, owns || acts || stands));
    }
    found
}

/// The name in a word, and whether something is its own: `Grace's`.
fn name_of(word: &str) -> Option<(&str, bool)> {
    let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
    let owner = bare.strip_suffix("'s").or_else(|| bare.strip_suffix("’s"));
    let name = owner.unwrap_or(bare);
    let mut letters = name.chars();
    let is_name = letters.next().is_some_and(char::is_uppercase)
        && letters.all(char::is_lowercase)
        && !(owner.is_some() && SHORTENED.contains(&name));
    (is_name && name.chars().count() >= 3).then_some((name, owner.is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(sentence: &str) -> Vec<&str> {
        names_in(sentence).into_iter().filter(|(_, is_named)| *is_named).map(|(name, _)| name).collect()
    }

    #[test]
    fn names_are_told_by_the_words_around_them() {
        assert_eq!(
            named("On the pricing revamp: Yusuf owns the cache, Grace owns the log."),
            ["Yusuf", "Grace"]
        );
        assert_eq!(named("For Gabriel's pricing revamp, let's begin."), ["Gabriel"]);
        assert_eq!(named("Let's plan the pricing revamp with Noor."), ["Noor"]);
        assert_eq!(named("Chen -> the loader."), ["Chen"]);
        assert_eq!(named("Both Chen and Mira are on it."), ["Chen", "Mira"]);
    }

    #[test]
    fn capital_letters_alone_name_nobody() {
        assert_eq!(named("Please read the README and use TypeScript."), [] as [&str; 0]);
        assert_eq!(named("Also It works."), [] as [&str; 0]);
        assert_eq!(named("This is the Parser."), [] as [&str; 0]);
    }
}
