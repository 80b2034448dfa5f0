//! Lists exact names that a view no longer contains, the likeliest first. A search by words finds passages, but a call needs the exact
//! path, identifier or flag, which the agent's words before it seldom contain.

use std::collections::{BTreeMap, HashSet};

use throughline_compaction::AnchorKind;
use throughline_store::{MessageRun, SessionId, ViewMessage};
use throughline_transcript::{Message, Role, SharedText, decode_message};

use crate::recall::rank_names::{NamedText, names_of, rank_names};
use crate::recall::tools::RecallToolset;
use crate::recall::{RecallReader, RecallResult, readable};

/// The longest list, about 1,500 tokens: as long as five of the longest passages of a search (200 words each).
const MAX_BYTES: usize = 6_000;
/// A question of fewer words names what it looks for and gets no list.
const MIN_SENTENCE_WORDS: usize = 4;
/// The most bytes of messages read, the newest first; takes a few milliseconds.
const MAX_BYTES_READ: usize = 2 << 20;
/// Number of messages read at a time.
const READ_AT_ONCE: u64 = 64;
/// The line above the names.
const HEADING: &str = "Exact names that are not in view, by the message they stand in, the likeliest first:";

/// Lists the names in the messages of a conversation that its view no longer contains, those most likely to be needed after `question`
/// first. Each message comes with its number. Returns `None` if the view contains all names.
#[must_use]
pub fn list_names(question: &str, messages: &[(u64, &Message)], view: &[Message]) -> Option<String> {
    let shown: Vec<String> = view.iter().map(readable).collect();
    let mut in_view: HashSet<&str> = HashSet::new();
    let mut current: HashSet<&str> = HashSet::new();
    for (message, text) in view.iter().zip(&shown) {
        let is_call = message.role() == Role::Assistant && message.has_calls();
        AnchorKind::scan(text, |name, kind| {
            in_view.insert(name);
            if is_call && kind == AnchorKind::Path {
                current.insert(name);
            }
        });
    }
    let texts: Vec<String> = messages.iter().map(|(_, message)| readable(message)).collect();
    let named: Vec<NamedText<'_>> =
        texts.iter().map(|text| NamedText { text, names: names_of(text) }).collect();
    let mut groups: Vec<(usize, Vec<&str>)> = Vec::new();
    let mut places: BTreeMap<usize, usize> = BTreeMap::new();
    let mut bytes = HEADING.len();
    let ranked = rank_names(question, &named, &current);
    for ranked in ranked.into_iter().filter(|ranked| !in_view.contains(ranked.name)) {
        let place = places.get(&ranked.text).copied();
        let number = messages.get(ranked.text).map_or(0, |(number, _)| *number);
        let more = ranked.name.len() + place.map_or_else(|| start_of(number).len(), |_| ", ".len());
        if bytes + more > MAX_BYTES {
            break;
        }
        bytes += more;
        match place.and_then(|place| groups.get_mut(place)) {
            Some((_, names)) => names.push(ranked.name),
            None => {
                places.insert(ranked.text, groups.len());
                groups.push((ranked.text, vec![ranked.name]));
            }
        }
    }
    if groups.is_empty() {
        return None;
    }
    let mut out = HEADING.to_owned();
    for (text, names) in groups {
        let number = messages.get(text).map_or(0, |(number, _)| *number);
        out.push_str(&start_of(number));
        out.push_str(&names.join(", "));
    }
    Some(out)
}

impl RecallReader<'_> {
    /// Runs [`list_names`] over the conversation up to a session, compared with that session's view. Reads only the newest part of a
    /// very long conversation. Returns `None` if the conversation was not compacted.
    pub(crate) fn names(&self, session: &SessionId, question: &str) -> RecallResult<Option<String>> {
        let view = self.store.view(self.owner, session, None)?;
        if !view.iter().any(|item| matches!(item, ViewMessage::Summary { .. })) {
            return Ok(None);
        }
        let view: Vec<Message> =
            view.iter().filter_map(|item| decode_message(SharedText::new(item.json().to_owned()))).collect();
        let (mut past, mut bytes) = (Vec::new(), 0);
        for stretch in self.stretches(session)? {
            let mut end = stretch.end_seq;
            while end > stretch.session.first_seq && bytes < MAX_BYTES_READ {
                let first = end.saturating_sub(READ_AT_ONCE).max(stretch.session.first_seq);
                let run = MessageRun { session: stretch.session.id.clone(), first_seq: first, end_seq: end };
                for stored in self.store.messages_of_run(self.owner, &run)?.iter().rev() {
                    bytes += stored.json.as_str().len();
                    if !RecallToolset::is_lookup(&stored.tools) {
                        past.extend(stored.decode().map(|message| (stored.seq, message)));
                    }
                }
                end = first;
            }
        }
        let past: Vec<(u64, &Message)> =
            past.iter().rev().map(|(number, message)| (*number, message)).collect();
        Ok(list_names(question, &past, &view))
    }
}

/// Whether a question has enough words to say what the agent is about to do, rather than to name what it looks for.
pub(crate) fn is_sentence(question: &str) -> bool {
    question.split_whitespace().nth(MIN_SENTENCE_WORDS - 1).is_some()
}

fn start_of(number: u64) -> String {
    format!("\nmessage {number}: ")
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
