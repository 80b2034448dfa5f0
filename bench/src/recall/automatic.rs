//! The use of passages that are sent along with a human message: how often one contains an anchor of the agent's next calls, by the
//! number of the message's words it contains; compared with random passages of the same size.
//!
//! Everything more than thirty messages before the human message counts as compacted. An anchor that is still in view, or in the message
//! itself, does not count.

use std::collections::HashSet;
use std::fmt::Write;
use std::path::Path;

use throughline_store::{Hit, Owner, SearchQuery, Store};
use throughline_testkit::Rng;
use throughline_transcript::{Message, decode_message};

use super::{Examined, Source, fill};
use crate::anchor::{AnchorFinder, stands_in};
use crate::retention::{Counting, all_text, argument_strings};
use crate::store::told;

/// The number of newest messages that are still in view.
const IN_VIEW: usize = 30;
/// The number of calls after the message whose anchors count.
const CALLS: usize = 10;
/// The least content words of a message, and the number of passages that are considered, as in the product.
const MIN_WORDS: usize = 3;
const LOOKED_AT: usize = 16;
const MAX_PASSAGES: usize = 3;
/// The least shares of a message's words in a passage.
const SHARES: [f64; 5] = [0.0, 0.34, 0.5, 0.67, 1.0];

#[derive(Clone, Copy, Default)]
struct Figure {
    messages: usize,
    passages: usize,
    useful: usize,
    random_useful: usize,
}

/// Runs the measurement and formats the table.
pub(super) fn run(sessions: &[Examined], folder: &Path) -> Result<String, String> {
    let finder = AnchorFinder::new().map_err(|error| error.to_string())?;
    let mut figures = [Figure::default(); SHARES.len()];
    let mut prompts = 0;
    for (number, session) in sessions.iter().enumerate() {
        let Source::Log(_) = &session.source else { continue };
        let store = throughline_store::SqliteStore::open(&folder.join(format!("auto{number}.db")), 1)
            .map_err(told)?;
        fill(&store, session, number, folder)?;
        let owner = Owner::default();
        let filter = throughline_store::SessionFilter::default();
        for conversation in store.conversations(&owner, &filter).map_err(told)? {
            let stored = store.transcript(&owner, &conversation.tip.id).map_err(told)?;
            let messages: Vec<Message> =
                stored.iter().filter_map(|message| decode_message(message.json.clone())).collect();
            if messages.len() != stored.len() {
                continue;
            }
            let texts: Vec<String> =
                messages.iter().map(|message| all_text(message, Counting::Everything)).collect();
            for at in IN_VIEW..messages.len() {
                let (Some(message), Some(end)) = (messages.get(at), at.checked_sub(IN_VIEW)) else {
                    continue;
                };
                let Some(text) = message.human_words().filter(|text| text.len() <= 4_000) else { continue };
                if end < IN_VIEW {
                    continue;
                }
                prompts += 1;
                let seen = texts.get(end..=at).unwrap_or_default().join("\n");
                let needed = needed(&finder, messages.get(at + 1..).unwrap_or_default(), &seen);
                let query = SearchQuery {
                    text,
                    session: Some(conversation.tip.id.clone()),
                    limit: LOOKED_AT,
                    words_only: true,
                    ..SearchQuery::default()
                };
                let last = stored.get(end).map_or(0, |message| message.seq);
                let hits = store.search(&owner, &query).map_err(told)?.hits;
                let hits: Vec<&Hit> = hits.iter().filter(|hit| hit.seq < last).collect();
                let mut rng = Rng::new(at as u64 + 1);
                for (figure, share) in figures.iter_mut().zip(SHARES) {
                    let about = |hit: &&&Hit| {
                        hit.matched.is_some_and(|matched| {
                            matched.of >= MIN_WORDS && matched.words as f64 >= share * matched.of as f64
                        })
                    };
                    let chosen: Vec<&&Hit> = hits.iter().filter(about).take(MAX_PASSAGES).collect();
                    figure.messages += usize::from(!chosen.is_empty());
                    for hit in chosen {
                        figure.passages += 1;
                        figure.useful += usize::from(holds_one(&hit.snippet.text, &needed));
                        let random = random_passage(&texts, end, hit.snippet.text.len(), &mut rng);
                        figure.random_useful += usize::from(holds_one(&random, &needed));
                    }
                }
            }
        }
    }
    let mut out =
        format!("passages sent along: {prompts} messages of people with a compacted part before them\n");
    let _ = writeln!(
        out,
        "{:<28} {:>9} {:>9} {:>9} {:>9}",
        "share of the words, at least", "messages", "passages", "useful", "random"
    );
    for (figure, share) in figures.iter().zip(SHARES) {
        let percent = |count: usize| 100.0 * count as f64 / figure.passages.max(1) as f64;
        let _ = writeln!(
            out,
            "{share:<28} {:>9} {:>9} {:>7.1} % {:>7.1} %",
            figure.messages,
            figure.passages,
            percent(figure.useful),
            percent(figure.random_useful)
        );
    }
    Ok(out)
}

/// The anchors of the next calls that the model does not see anyway.
fn needed(finder: &AnchorFinder, after: &[Message], seen: &str) -> HashSet<String> {
    let mut needed = HashSet::new();
    for message in after.iter().filter(|message| message.has_calls()).take(CALLS) {
        let written = argument_strings(message);
        needed.extend(
            finder.find(&written).into_iter().filter(|anchor| !stands_in(seen, anchor)).map(str::to_owned),
        );
    }
    needed
}

fn holds_one(passage: &str, needed: &HashSet<String>) -> bool {
    needed.iter().any(|anchor| stands_in(passage, anchor))
}

/// A random part of a compacted message of about the same size.
fn random_passage(texts: &[String], end: usize, bytes: usize, rng: &mut Rng) -> String {
    let text = texts.get(rng.below(end)).map_or("", String::as_str);
    let from = text.floor_char_boundary(rng.below(text.len().saturating_sub(bytes).max(1)));
    let to = text.floor_char_boundary(from.saturating_add(bytes).min(text.len()));
    text.get(from..to).unwrap_or_default().to_owned()
}
