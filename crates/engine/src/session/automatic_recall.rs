//! Passages that are sent along with a human message after a compaction: the best two or three matches from messages that
//! are no longer in view.
//!
//! They are a block before the human words, in the same message, so that roles still alternate and the words stay unchanged
//! and last. The block is stored as part of what the model is shown, so the bytes never change afterwards; the message
//! itself is stored as it was sent.

use std::sync::Arc;
use std::time::Duration;

use throughline_store::{Hit, SearchQuery, StoredRendition};
use throughline_tokens::TextProfile;
use throughline_transcript::{Message, RECALLED_TAG, WireFormat, compact_json_string};

use super::{IncomingMessage, ManagedSession, record};
use crate::prompt::view::RecordLocation;

/// The name of a rendition with such passages.
const RECALLED: &str = "recalled";
/// The limit of passages sent along.
const MAX_PASSAGES: usize = 3;
/// Number of hits to examine, some of which may still be in view.
const LOOKED_AT: usize = 16;
/// The minimum of meaningful words in a question: with fewer, almost anything matches.
const MIN_WORDS: usize = 3;
/// The minimum share of these words in a passage. `throughline-bench recall` prints how often passages above and below it are useful.
const MIN_SHARE: f64 = 0.5;
/// Longer messages contain their own context, and a search for all of their words finds nothing specific.
const MAX_MESSAGE_BYTES: usize = 4_000;
/// Time limit of the search, because the call waits for it.
const TIME_LIMIT: Duration = Duration::from_secs(2);

impl ManagedSession {
    /// Adds passages to the last of some new messages, if a person wrote it and something matches.
    pub(super) async fn add_recalled(&mut self, messages: &mut [IncomingMessage]) {
        let Some(policy) = self.setup.policy.recall.filter(|_| self.compaction.count > 0) else { return };
        let Some(incoming) = messages.last_mut().filter(|incoming| incoming.rendition.is_none()) else {
            return;
        };
        if incoming.message.has_results() {
            return;
        }
        let words = incoming.message.human_words().filter(|words| words.len() <= MAX_MESSAGE_BYTES);
        let Some(text) = words.filter(|words| !words.trim().is_empty()) else { return };
        let query = SearchQuery {
            text,
            session: Some(self.id().clone()),
            limit: LOOKED_AT,
            ..SearchQuery::default()
        };
        let (store, owner) = (Arc::clone(&self.setup.store), self.setup.owner.clone());
        let searching = record::blocking(move || store.search(&owner, &query));
        // A failed search is ignored: the model still has the recall tools.
        let Ok(Ok(answer)) = tokio::time::timeout(TIME_LIMIT, searching).await else { return };
        let passages = self.chosen(answer.hits, policy.tokens);
        if passages.is_empty() {
            return;
        }
        let count = passages.len();
        if let Some(json) = with_block(self.wire_format, &incoming.message, &block(&passages)) {
            incoming.rendition = Some(StoredRendition { kinds: vec![RECALLED.to_owned()], json, tokens: 0 });
            self.notice(&match count {
                1 => "a passage from the compacted part was sent along with the message".to_owned(),
                _ => format!("{count} passages from the compacted part were sent along with the message"),
            });
        }
    }

    /// Returns the passages that fit, as they are shown.
    fn chosen(&self, hits: Vec<Hit>, mut tokens: u64) -> Vec<String> {
        let mut chosen = Vec::new();
        for hit in hits.into_iter().filter(|hit| is_about(hit) && !self.is_in_view(hit)) {
            let passage = format!("[message {}, {}] {}", hit.seq, hit.role, hit.snippet.text);
            let size = self.setup.target.token_model().estimate(&TextProfile::of(&passage));
            let Some(left) = tokens.checked_sub(size) else { continue };
            tokens = left;
            chosen.push(passage);
            if chosen.len() == MAX_PASSAGES {
                break;
            }
        }
        chosen
    }

    fn is_in_view(&self, hit: &Hit) -> bool {
        self.prompt.view.items().iter().any(|item| match &item.place {
            RecordLocation::Message { session, seq, .. } => *session == hit.session && *seq == hit.seq,
            RecordLocation::Summary(_) | RecordLocation::Synthetic(_) => false,
        })
    }
}

fn is_about(hit: &Hit) -> bool {
    hit.matched.is_some_and(|matched| {
        matched.of >= MIN_WORDS && matched.words as f64 >= MIN_SHARE * matched.of as f64
    })
}

fn block(passages: &[String]) -> String {
    let mut out = format!(
        "<{RECALLED_TAG}>\nRetrieved from the compacted part of this conversation because they share words with the message below. \
         They may be out of date.\n"
    );
    for passage in passages {
        // A passage must not contain the closing tag of its block.
        out.push_str(&passage.replace(&format!("</{RECALLED_TAG}"), &format!("< /{RECALLED_TAG}")));
        out.push('\n');
    }
    out.push_str(&format!("</{RECALLED_TAG}>\n\n"));
    out
}

/// Returns the JSON of a message with a block before its text. `None` if it has no content to add it to.
fn with_block(wire_format: WireFormat, message: &Message, block: &str) -> Option<String> {
    let (json, span) = (message.json(), message.content_span()?);
    let start = span.start as usize;
    let quoted = compact_json_string(block);
    let content = json.get(start..)?;
    let (skip, inserted) = if content.starts_with('"') {
        (1, quoted.get(1..quoted.len() - 1)?.to_owned())
    } else {
        let rest = content.strip_prefix('[')?;
        let kind = if wire_format == WireFormat::Responses { "input_text" } else { "text" };
        let comma = if rest.trim_start().starts_with(']') { "" } else { "," };
        (1, format!("{{\"type\":\"{kind}\",\"text\":{quoted}}}{comma}"))
    };
    Some(format!("{}{inserted}{}", json.get(..start + skip)?, json.get(start + skip..)?))
}

#[cfg(test)]
#[path = "automatic_recall_tests.rs"]
mod tests;
