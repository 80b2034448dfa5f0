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
    /// What the program calls the conversation.
    pub(crate) key: String,
    /// A conversation it hangs on, working for it.
    pub(crate) attached_to: Option<ForeignParent>,
    /// A conversation whose beginning it may share.
    pub(crate) copied_from: Option<String>,
    /// The folder it was about.
    pub(crate) project: Option<String>,
    /// Its title.
    pub(crate) title: Option<String>,
    /// The model it talked to last.
    pub(crate) model: Option<String>,
    /// The wire of its messages.
    pub(crate) wire_format: WireFormat,
    /// When it began.
    pub(crate) started_ms: Millis,
    /// Everything that was said, in order.
    pub(crate) messages: Vec<ForeignMessage>,
    /// Compactions the program made by itself, in order.
    pub(crate) compactions: Vec<ForeignCompaction>,
    /// Calls, in order.
    pub(crate) calls: Vec<ForeignCall>,
    /// What stood before the messages.
    pub(crate) preamble: Option<StoredPreamble>,
    /// Why and when it ended.
    pub(crate) end: Option<(EndReason, Millis)>,
}

/// Where a conversation that works for another hangs.
#[derive(Clone, Debug)]
pub(crate) struct ForeignParent {
    /// What the program calls the other one.
    pub(crate) key: String,
    /// How it relates to its parent.
    pub(crate) kind: LinkKind,
    /// Where, as far as it is known.
    pub(crate) place: ParentPosition,
}

/// The place at which a conversation hangs on another.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ParentPosition {
    /// After so many messages.
    Messages(usize),
    /// After what was said before this time.
    Time(Millis),
}

/// A message and when it was said.
#[derive(Clone, Debug)]
pub(crate) struct ForeignMessage {
    /// The message.
    pub(crate) message: Message,
    /// Hash of its bytes.
    pub(crate) hash: ContentHash,
    /// The time the file states.
    pub(crate) at_ms: Millis,
    /// What the model was sent in its place, when that was something else.
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
    /// Messages that were said before it.
    pub(crate) at: usize,
    /// The time the file states.
    pub(crate) at_ms: Millis,
    /// What the model was shown from then on, before what came next. Empty where the next message is the summary.
    pub(crate) view: Vec<ForeignItem>,
}

/// An item of a view the other program made.
#[derive(Clone, Debug)]
pub(crate) enum ForeignItem {
    /// A message as it was said.
    ForeignMessage(usize),
    /// A message in other words.
    Changed {
        /// The position of the message.
        message: usize,
        /// What was shown in its place.
        shown: Message,
    },
    /// A summary: the message that was shown, and the text that counts as the document.
    Summary {
        /// What was shown.
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
    /// Tells calls of one conversation apart.
    pub(crate) key: String,
    /// The model.
    pub(crate) model: String,
    /// Who was asked.
    pub(crate) provider: String,
    /// The task the call is recorded under.
    pub(crate) task: String,
    /// Tokens by bucket.
    pub(crate) usage: Usage,
    /// Part of the cache writes that live for an hour.
    pub(crate) cache_write_1h: u64,
    /// How the tokens are known.
    pub(crate) usage_kind: UsageKind,
    /// The usage object as it stands.
    pub(crate) usage_raw: Option<String>,
    /// What was charged, where the other program knows.
    pub(crate) cost_micro_usd: Option<u64>,
    /// What the other program reckoned, for want of a price of our own.
    pub(crate) reckoned_micro_usd: Option<u64>,
    /// The time the file states.
    pub(crate) at_ms: Millis,
    /// The message whose session it is booked to.
    pub(crate) booked_at: Option<usize>,
    /// The first message of the answer.
    pub(crate) answer: Option<usize>,
    /// Not one call but the sum of so many, which grows: only what was added since the last import is booked.
    pub(crate) sum_of_calls: Option<u64>,
}

impl ForeignCall {
    /// A call of a log; `None` if the log holds no counts for it.
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

/// A conversation whose last words are younger than this may be in the middle of an answer.
const SETTLED_AFTER_MS: Millis = 10 * 60 * 1_000;

impl ForeignConversation {
    /// Takes the last answer off a conversation that is still going on, so that no half of it is recorded as a whole:
    /// the next import finds it finished. Returns how many messages were taken off.
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
