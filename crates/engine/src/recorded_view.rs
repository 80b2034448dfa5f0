//! Converts between the record and a compaction of `compress`: the view to compact, and the result as a continuation.
//!
//! A compaction receives a list of messages and returns a list of items that point into it. Here those positions become
//! references into the record: runs of untouched messages become ranges, a message that was already replaced keeps that
//! mark, and a summary that includes an earlier one refers to it. Nothing is written here; [`Store::continue_session`] does
//! that.

use serde_json::json;
use throughline_compaction::{
    Attempt, Completion, CountMessage, Outcome, Plan, Quality, Report, Synthetic, ViewItem as MadeItem,
};
use throughline_store::{
    Continuation, EndReason, MessageRun, Millis, NewSummary, NewViewItem, Owner, Result, Session, SessionId,
    Store, StoreError, StoredRendition, Summary, ViewItem, ViewMessage,
};
use throughline_transcript::{Message, SharedText, decode_message};

use crate::compressor::adapter::change_name;
use crate::new_view::{joined, push};
use crate::recorded_state::NOTES_FIGURE;

/// The author of a summary that was made without a model.
const RULES: &str = "rules";

/// The view of a session, loaded for a compaction.
#[derive(Clone, Debug)]
pub struct LoadedView {
    session: Session,
    shown: Vec<ViewMessage>,
    messages: Vec<Message>,
    summaries: Vec<Summary>,
}

/// The parameters of the commit of a compaction.
#[derive(Clone, Copy)]
pub struct CommitAs<'a> {
    /// The id of the new session.
    pub id: &'a SessionId,
    /// The time of the compaction.
    pub at_ms: Millis,
    /// What started it: `command`, `preflight`, ...
    pub trigger: &'a str,
    /// Counts the tokens of a message with the estimator of the attempt.
    pub count_message: CountMessage<'a>,
}

impl LoadedView {
    /// Loads what would be sent for a session now, with the summaries in it.
    pub fn load(store: &dyn Store, owner: &Owner, id: &SessionId) -> Result<Self> {
        let session = store.session(owner, id)?;
        let shown = store.view(owner, id, Some(session.next_seq))?;
        let summaries = shown
            .iter()
            .filter_map(|item| match item {
                ViewMessage::Summary { summary, .. } => Some(store.summary(owner, *summary)),
                _ => None,
            })
            .collect::<Result<_>>()?;
        Self::new(session, shown, summaries)
    }

    /// Builds a view from its parts; `summaries` are those that occur in it.
    pub fn new(session: Session, shown: Vec<ViewMessage>, summaries: Vec<Summary>) -> Result<Self> {
        let messages = shown.iter().map(decoded).collect::<Result<_>>()?;
        Ok(Self { session, shown, messages, summaries })
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The messages as they would be sent, one for each item of the view.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The items, one for each message.
    #[must_use]
    pub fn shown(&self) -> &[ViewMessage] {
        &self.shown
    }

    /// Converts a completed attempt on [`messages`](Self::messages) to the continuation to commit. `None` if the attempt changed nothing.
    #[must_use]
    pub fn continuation(&self, attempt: &Attempt, commit: &CommitAs<'_>) -> Option<Continuation> {
        let plan = attempt.plan.as_ref().filter(|_| attempt.outcome.is_completed())?;
        let summary = attempt.summary.as_ref().map(|document| {
            let report = &attempt.report;
            NewSummary {
                author: match attempt.outcome {
                    Outcome::Completed(Completion { quality: Quality::Rules, .. }) => RULES.to_owned(),
                    _ => report.summariser.clone().unwrap_or_default(),
                },
                document: document.to_markdown(),
                sources: self.sources(plan),
                supersedes: self.taken_up(plan).last().map(|summary| summary.id),
                facts: json!(report.facts),
                figures: figures(report, commit.trigger),
            }
        });
        Some(Continuation {
            lease: None,
            from: self.session.id.clone(),
            id: commit.id.clone(),
            reason: EndReason::COMPRESSION,
            at_ms: commit.at_ms,
            made_at_seq: self.session.next_seq,
            summary,
            view: self.items(attempt, commit.count_message),
        })
    }

    /// Returns the items of the new view, with runs of untouched messages as ranges.
    fn items(&self, attempt: &Attempt, count_message: CountMessage<'_>) -> Vec<NewViewItem> {
        let count = |json: &str| {
            decode_message(SharedText::new(json.to_owned())).map_or(0, |message| count_message(&message))
        };
        let mut items = Vec::new();
        for item in &attempt.items {
            match item {
                MadeItem::Verbatim(index) => {
                    if let Some(shown) = self.shown.get(*index) {
                        push(&mut items, NewViewItem::Kept(kept(shown)));
                    }
                }
                MadeItem::Rendition { message: index, rendition } => {
                    let Some(shown) = self.shown.get(*index) else { continue };
                    let kinds: Vec<&str> = rendition.kinds.iter().copied().map(change_name).collect();
                    let json = rendition.json.clone();
                    let tokens = count(&json);
                    items.push(NewViewItem::Kept(rewritten(shown, &kinds, json, tokens)));
                }
                MadeItem::Summary(json) => {
                    items.push(NewViewItem::Summary { json: json.clone(), tokens: count(json) });
                }
                MadeItem::Synthetic(kind, json) => {
                    items.push(NewViewItem::Kept(ViewItem::Synthetic {
                        kind: synthetic_name(*kind).to_owned(),
                        json: json.clone(),
                        tokens: count(json),
                    }));
                }
            }
        }
        items
    }

    /// Returns the summaries of the view that the new one includes.
    fn taken_up<'a>(&'a self, plan: &'a Plan) -> impl Iterator<Item = &'a Summary> {
        plan.middle.clone().filter_map(|index| match self.shown.get(index) {
            Some(ViewMessage::Summary { summary, .. }) => {
                self.summaries.iter().find(|known| known.id == *summary)
            }
            _ => None,
        })
    }

    /// Returns everything that the summary covers: the messages it compacts, and the sources of the earlier summaries it includes.
    fn sources(&self, plan: &Plan) -> Vec<MessageRun> {
        let summarised = plan
            .middle
            .clone()
            .filter(|index| !plan.pinned.as_ref().is_some_and(|pinned| pinned.contains(index)))
            .filter_map(|index| self.shown.get(index)?.message())
            .map(|message| MessageRun {
                session: message.session.clone(),
                first_seq: message.seq,
                end_seq: message.seq + 1,
            });
        let carried = self.taken_up(plan).flat_map(|summary| summary.sources.iter().cloned());
        joined(carried.chain(summarised).collect())
    }
}

fn decoded(item: &ViewMessage) -> Result<Message> {
    let message = match item {
        ViewMessage::Verbatim(message) => message.decode(),
        ViewMessage::Rendition(original, rendition) => {
            let message = decode_message(SharedText::new(rendition.json.clone()));
            message.map(
                |message| {
                    if original.machine_written { message.marked_machine_written() } else { message }
                },
            )
        }
        ViewMessage::Summary { json, .. } | ViewMessage::Synthetic { json, .. } => {
            decode_message(SharedText::new(json.clone()))
        }
    };
    message.ok_or_else(|| StoreError::Database {
        what: "to read a message of a view back",
        source: "its bytes are no message".into(),
    })
}

/// Returns an item of the old view that stays unchanged.
fn kept(shown: &ViewMessage) -> ViewItem {
    match shown {
        ViewMessage::Verbatim(message) => ViewItem::Range {
            session: message.session.clone(),
            first_seq: message.seq,
            end_seq: Some(message.seq + 1),
        },
        ViewMessage::Rendition(message, rendition) => ViewItem::Rendition {
            session: message.session.clone(),
            seq: message.seq,
            rendition: rendition.clone(),
        },
        ViewMessage::Summary { summary, json, tokens } => {
            ViewItem::Summary { summary: *summary, json: json.clone(), tokens: *tokens }
        }
        ViewMessage::Synthetic { kind, json, tokens } => {
            ViewItem::Synthetic { kind: kind.clone(), json: json.clone(), tokens: *tokens }
        }
    }
}

/// Returns an item of the old view with new content.
fn rewritten(shown: &ViewMessage, kinds: &[&str], json: String, tokens: u64) -> ViewItem {
    match kept(shown) {
        ViewItem::Range { session, first_seq: seq, .. } => {
            let kinds = kinds.iter().map(|&kind| kind.to_owned()).collect();
            ViewItem::Rendition { session, seq, rendition: StoredRendition { kinds, json, tokens } }
        }
        ViewItem::Rendition { session, seq, rendition } => {
            let mut all = rendition.kinds;
            for kind in kinds {
                if !all.iter().any(|known| known == kind) {
                    all.push((*kind).to_owned());
                }
            }
            ViewItem::Rendition { session, seq, rendition: StoredRendition { kinds: all, json, tokens } }
        }
        ViewItem::Summary { summary, .. } => ViewItem::Summary { summary, json, tokens },
        ViewItem::Synthetic { kind, .. } => ViewItem::Synthetic { kind, json, tokens },
    }
}

/// Returns the figures of a compaction that are stored with its summary.
fn figures(report: &Report, trigger: &str) -> serde_json::Value {
    json!({
        "trigger": trigger,
        "tokens": report.tokens,
        "messages": report.messages,
        "fixed_tokens": report.fixed_tokens,
        "summary_tokens": report.summary_tokens,
        "window_tokens": report.plan.window_tokens,
        "threshold_tokens": report.plan.threshold_tokens,
        NOTES_FIGURE: report.notes,
        "pruned": report.pruned,
        "repairs": report.repairs,
        "timings_us": report.timings_us,
    })
}

fn synthetic_name(kind: Synthetic) -> &'static str {
    match kind {
        Synthetic::Acknowledgement => "acknowledgement",
        Synthetic::StubResult => "stub_result",
    }
}

#[cfg(test)]
#[path = "recorded_view_tests.rs"]
mod tests;
