//! A conversation of another program, ready to be recorded. Each importer produces these; one recorder writes them.

use throughline_tokens::{Usage, UsageReading};
use throughline_transcript::{ContentHash, GroupKind, Groups, LogCall, Message, WireFormat};

use crate::call::{StoredPreamble, UsageKind};
use crate::ids::Millis;
use crate::sessions::session::{EndReason, LinkKind};

/// Returns the document of the summary that a message is; `None` for any other message.
pub(super) type FindSummary = fn(&Message) -> Option<String>;

/// A conversation of another program.
#[derive(Clone, Debug)]
pub(crate) struct ForeignConversation {
    /// The program.
    pub(crate) program: &'static str,
    /// The program's id of the conversation.
    pub(crate) key: String,
    /// The conversation it works for, if any.
    pub(crate) attached_to: Option<ForeignParent>,
    /// A conversation with which it may share the beginning.
    pub(crate) copied_from: Option<String>,
    /// The project folder.
    pub(crate) project: Option<String>,
    /// Its title.
    pub(crate) title: Option<String>,
    /// The last model used.
    pub(crate) model: Option<String>,
    /// The wire format of its messages.
    pub(crate) wire_format: WireFormat,
    /// When it started.
    pub(crate) started_ms: Millis,
    /// All messages, in order.
    pub(crate) messages: Vec<ForeignMessage>,
    /// Compactions made by the program, in order.
    pub(crate) compactions: Vec<ForeignCompaction>,
    /// Calls, in order.
    pub(crate) calls: Vec<ForeignCall>,
    /// The preamble before the messages.
    pub(crate) preamble: Option<StoredPreamble>,
    /// The reason and time of its end.
    pub(crate) end: Option<(EndReason, Millis)>,
}

/// The parent of a conversation that works for another.
#[derive(Clone, Debug)]
pub(crate) struct ForeignParent {
    /// The program's id of the parent.
    pub(crate) key: String,
    /// How it relates to its parent.
    pub(crate) kind: LinkKind,
    /// The position, as far as known.
    pub(crate) place: ParentPosition,
}

/// The position at which a conversation is attached to its parent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ParentPosition {
    /// After this many messages.
    Messages(usize),
    /// After the messages before this time.
    Time(Millis),
}

/// A message and its time.
#[derive(Clone, Debug)]
pub(crate) struct ForeignMessage {
    /// The message.
    pub(crate) message: Message,
    /// Hash of its bytes.
    pub(crate) hash: ContentHash,
    /// The time the file states.
    pub(crate) at_ms: Millis,
    /// The form in which it was sent to the model, if different.
    pub(crate) sent: Option<Message>,
}

impl ForeignMessage {
    pub(crate) fn new(message: Message, at_ms: Millis) -> Self {
        let hash = message.content_hash();
        Self { message, hash, at_ms, sent: None }
    }
}

/// A compaction of the other program.
#[derive(Clone, Debug)]
pub(crate) struct ForeignCompaction {
    /// Number of messages before it.
    pub(crate) at: usize,
    /// The time the file states.
    pub(crate) at_ms: Millis,
    /// The view after it, without later messages. Empty if the next message is the summary.
    pub(crate) view: Vec<ForeignItem>,
}

/// An item of a view made by the other program.
#[derive(Clone, Debug)]
pub(crate) enum ForeignItem {
    /// An unchanged message.
    ForeignMessage(usize),
    /// A changed message.
    Changed {
        /// The position of the message.
        message: usize,
        /// The form that was shown.
        shown: Message,
    },
    /// A summary: the message that was shown, and the text of its document.
    Summary {
        /// The message.
        shown: Message,
        /// The document.
        document: String,
    },
    /// A message that neither user nor model wrote.
    Synthetic(Message),
}

/// A call of the other program.
#[derive(Clone, Debug)]
pub(crate) struct ForeignCall {
    /// Identifies the call within the conversation.
    pub(crate) key: String,
    /// The model.
    pub(crate) model: String,
    /// The provider.
    pub(crate) provider: String,
    /// The task the call is recorded under.
    pub(crate) task: String,
    /// Tokens by bucket.
    pub(crate) usage: Usage,
    /// The part of the cache writes that lasts an hour.
    pub(crate) cache_write_1h: u64,
    /// Whether the tokens are measured.
    pub(crate) usage_kind: UsageKind,
    /// The usage object, unchanged.
    pub(crate) usage_raw: Option<String>,
    /// The amount charged, if the other program knows it.
    pub(crate) cost_micro_usd: Option<u64>,
    /// The other program's estimate, used without a price of our own.
    pub(crate) reckoned_micro_usd: Option<u64>,
    /// The time the file states.
    pub(crate) at_ms: Millis,
    /// The message for whose session it is recorded.
    pub(crate) booked_at: Option<usize>,
    /// The first message of the answer.
    pub(crate) answer: Option<usize>,
    /// Set if this is not one call but a growing sum of this many: only what was added since the last import is recorded.
    pub(crate) sum_of_calls: Option<u64>,
}

impl ForeignCall {
    /// Returns a call of a log; `None` if the log has no counts for it.
    pub(crate) fn from_log(call: &LogCall) -> Option<Self> {
        let UsageReading { usage, cache_write_1h, .. } = UsageReading::of_log(call)?;
        Some(Self {
            key: call.key.clone(),
            model: String::new(),
            provider: String::new(),
            task: "chat".to_owned(),
            usage,
            cache_write_1h,
            usage_kind: UsageKind::Measured,
            usage_raw: Some(call.usage.as_str().to_owned()),
            cost_micro_usd: None,
            reckoned_micro_usd: None,
            at_ms: 0,
            booked_at: None,
            answer: None,
            sum_of_calls: None,
        })
    }
}

/// A conversation with a more recent last message may be in the middle of an answer.
const SETTLED_AFTER_MS: Millis = 10 * 60 * 1_000;

impl ForeignConversation {
    /// Removes the last answer of a conversation that is still active, so that no incomplete answer is recorded: the next import includes
    /// it complete. Returns how many messages were removed.
    pub(crate) fn hold_back_open_answer(&mut self, now_ms: Option<Millis>) -> usize {
        let is_young = |now_ms: Millis| {
            self.messages.last().is_some_and(|last| now_ms.saturating_sub(last.at_ms) < SETTLED_AFTER_MS)
        };
        if !now_ms.is_some_and(is_young) {
            return 0;
        }
        let messages: Vec<Message> = self.messages.iter().map(|said| said.message.clone()).collect();
        let groups = Groups::of(&messages);
        match groups.as_slice().last() {
            Some(last) if matches!(last.kind, GroupKind::Step | GroupKind::Other) => {
                let held_back = self.messages.len() - last.start;
                self.cut_at(last.start);
                held_back
            }
            _ => 0,
        }
    }

    fn cut_at(&mut self, end: usize) {
        self.messages.truncate(end);
        self.compactions.retain(|compaction| compaction.at < end);
        self.calls.retain(|call| call.answer.is_none_or(|answer| answer < end));
        self.end = None;
    }
}
