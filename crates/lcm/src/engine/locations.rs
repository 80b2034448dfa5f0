//! The location of each message of a conversation in the record.
//!
//! An engine receives a list of messages; nodes refer to them by session and position. The record's view maps one to the
//! other, item by item, without reading a message.

use std::ops::Range;

use throughline_engine::Snapshot;
use throughline_store::SessionId;
use throughline_store::{MessageRun, Owner, Result, Store, SummaryId, ViewItem};

/// The location of one message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MessageLocation {
    /// The user or the model wrote it.
    Message {
        /// The session,
        session: SessionId,
        /// and the position in it.
        seq: u64,
    },
    /// A summary.
    Summary(SummaryId),
    /// A message that Throughline inserted.
    Ours,
}

/// The locations of all messages, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct MessageLocations(Vec<MessageLocation>);

impl MessageLocations {
    /// Looks them up for the recorded messages; in the background these may be fewer than in the conversation.
    pub(crate) fn of(store: &dyn Store, owner: &Owner, conversation: &Snapshot) -> Result<Self> {
        let session = store.session(owner, &conversation.session)?;
        let mut places = Vec::with_capacity(conversation.messages.len());
        for item in store.view_items(owner, &conversation.session)? {
            match item {
                ViewItem::Range { session: of, first_seq, end_seq } => {
                    let end = end_seq.unwrap_or(session.next_seq);
                    places.extend(
                        (first_seq..end).map(|seq| MessageLocation::Message { session: of.clone(), seq }),
                    );
                }
                ViewItem::Rendition { session, seq, .. } => {
                    places.push(MessageLocation::Message { session, seq })
                }
                ViewItem::Summary { summary, .. } => places.push(MessageLocation::Summary(summary)),
                ViewItem::Synthetic { .. } => places.push(MessageLocation::Ours),
            }
        }
        places.truncate(conversation.messages.len());
        Ok(Self(places))
    }

    /// Returns how many are known.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The summaries among the messages, with their index.
    pub(crate) fn summaries(&self) -> impl Iterator<Item = (usize, SummaryId)> + '_ {
        self.0.iter().enumerate().filter_map(|(at, place)| match place {
            MessageLocation::Summary(id) => Some((at, *id)),
            _ => None,
        })
    }

    /// Whether a message comes from the user or the model.
    pub(crate) fn is_said(&self, index: usize) -> bool {
        matches!(self.0.get(index), Some(MessageLocation::Message { .. }))
    }

    /// The messages of a range as runs of the record.
    pub(crate) fn runs(&self, range: Range<usize>) -> Vec<MessageRun> {
        let said = self.0.get(range).unwrap_or_default().iter().filter_map(|place| match place {
            MessageLocation::Message { session, seq } => {
                Some(MessageRun { session: session.clone(), first_seq: *seq, end_seq: seq + 1 })
            }
            _ => None,
        });
        MessageRun::joined(said.collect()).unwrap_or_default()
    }

    /// The range of messages that runs cover, if they are exactly such a range.
    pub(crate) fn range_of(&self, runs: &[MessageRun]) -> Option<Range<usize>> {
        let first = runs.first()?;
        let from = self.0.iter().position(|place| {
            matches!(place, MessageLocation::Message { session, seq } if *session == first.session && *seq == first.first_seq)
        })?;
        let count: u64 = runs.iter().map(|run| run.end_seq.saturating_sub(run.first_seq)).sum();
        let range = from..from.checked_add(usize::try_from(count).ok()?)?;
        (range.end <= self.0.len() && self.runs(range.clone()) == runs).then_some(range)
    }
}
