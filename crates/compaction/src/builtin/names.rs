//! People, projects and other names of the person's words, each with what was said of it, where the notes do not name it
//! anyway.

use crate::document::SummaryDocument;
use crate::sections::Section;
use crate::state::State;
use crate::summarise::CountTokens;

/// Share of the notes for names, in percent, and at least so many tokens: three lines.
const NAMES_PERCENT: u64 = 3;
const LEAST_TOKENS: u64 = 110;

/// Adds a line for each sentence that introduced a name, the names that come up most first. Returns the tokens used.
pub(super) fn add(
    document: &mut SummaryDocument,
    state: &State,
    budget_tokens: u64,
    count_tokens: CountTokens<'_>,
) -> u64 {
    let text = document.to_markdown();
    let mut missing: Vec<(usize, &crate::state::Entity)> = state
        .entities
        .iter()
        .enumerate()
        .filter(|(_, entity)| entity.is_named && !has_word(&text, &entity.name))
        .collect();
    missing.sort_by_key(|(at, entity)| (std::cmp::Reverse(entity.messages), *at));
    let mut room = (budget_tokens * NAMES_PERCENT / 100).max(LEAST_TOKENS.min(budget_tokens / 10));
    let before = room;
    let mut lines: Vec<(usize, Vec<&str>, &str)> = Vec::new();
    for (at, entity) in missing {
        if let Some((_, names, _)) = lines.iter_mut().find(|(_, _, said)| *said == entity.said) {
            names.push(&entity.name);
            continue;
        }
        let cost = count_tokens(&entity.said) + count_tokens(&entity.name) + 4;
        if cost <= room {
            room -= cost;
            lines.push((at, vec![&entity.name], &entity.said));
        }
    }
    lines.sort_by_key(|(at, ..)| *at);
    for (_, names, said) in lines {
        document.add(Section::CriticalContext, format!("{}: \"{said}\"", names.join(", ")));
    }
    before - room
}

/// Whether a text has a word, not only as a piece of another.
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|after| after.chars().next());
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
    })
}
