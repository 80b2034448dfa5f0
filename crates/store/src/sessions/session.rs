//! A session: one window of a conversation, and its links to others.

use throughline_tokens::Usage;
use throughline_transcript::WireFormat;

use crate::ids::{Millis, Owner, SessionId};

/// How a session is linked to its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkKind {
    /// The same conversation continues with another view.
    Continuation,
    /// An alternative continuation of the conversation from some message on.
    Branch,
    /// A conversation of a sub-agent of its parent.
    SubAgent,
    /// A call outside the conversation: a title, a count.
    SideCall,
    /// A call outside the conversation that repeats it up to some message: its client requests a summary of it.
    SideBranch,
    /// The conversation after its client compacted it: it starts with the client's summary.
    ClientCompaction,
}

impl LinkKind {
    /// Returns its name in the record and in output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Continuation => "continuation",
            Self::Branch => "branch",
            Self::SubAgent => "sub_agent",
            Self::SideCall => "side_call",
            Self::SideBranch => "side_branch",
            Self::ClientCompaction => "client_compaction",
        }
    }

    /// Returns the kind with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        [
            Self::Continuation,
            Self::Branch,
            Self::SubAgent,
            Self::SideCall,
            Self::SideBranch,
            Self::ClientCompaction,
        ]
        .into_iter()
        .find(|kind| kind.name() == name)
    }

    /// Whether messages of the parent belong to the session too.
    #[must_use]
    pub fn shares_messages(self) -> bool {
        matches!(self, Self::Continuation | Self::Branch | Self::SideBranch)
    }

    /// Whether the session is a call outside the conversation.
    #[must_use]
    pub fn is_side_call(self) -> bool {
        matches!(self, Self::SideCall | Self::SideBranch)
    }

    /// Whether the link hides the session from lists.
    #[must_use]
    pub fn is_attached(self) -> bool {
        self.is_side_call() || self == Self::SubAgent
    }
}

/// A link to a parent.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Link {
    /// The parent. It may have been deleted.
    pub parent: SessionId,
    /// How the session relates to its parent.
    pub kind: LinkKind,
    /// Messages of the parent before this position belong to the session too. For a continuation these are all.
    pub leaves_at: u64,
}

/// Why a session ended. An open set: reasons of other programs are stored unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct EndReason(pub std::borrow::Cow<'static, str>);

impl EndReason {
    /// A compaction made a new view.
    pub const COMPRESSION: Self = Self(std::borrow::Cow::Borrowed("compression"));
    /// A compaction was undone.
    pub const UNDO: Self = Self(std::borrow::Cow::Borrowed("undo"));
    /// An undone compaction was redone.
    pub const REDO: Self = Self(std::borrow::Cow::Borrowed("redo"));
    /// The user started a new conversation.
    pub const NEW: Self = Self(std::borrow::Cow::Borrowed("new"));
    /// The user cleared the conversation.
    pub const RESET: Self = Self(std::borrow::Cow::Borrowed("reset"));

    /// A reason by its name.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self(std::borrow::Cow::Owned(name.into()))
    }

    /// Its name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The origin of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Origin {
    /// The program: `claude-code`, `codex`, `hermes`, `chat`, `gateway`, `file`.
    pub program: String,
    /// The program's id of the session; together with program and owner it identifies the session.
    pub key: Option<String>,
    /// The project folder.
    pub project: Option<String>,
}

impl Session {
    /// The maximum number of sessions with equal beginnings that numbered keys distinguish.
    pub const MAX_NUMBERED: usize = 64;

    /// Returns the key of one of several sessions with equal beginnings, from 1 on.
    #[must_use]
    pub fn numbered_key(key: &str, number: usize) -> String {
        if number == 1 { key.to_owned() } else { format!("{key}#{number}") }
    }
}

/// A session to open.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// Its id.
    pub id: SessionId,
    /// Its owner.
    pub owner: Owner,
    /// Its parent, if any. A continuation is opened by [`Store::continue_session`](crate::Store::continue_session), or here by an importer
    /// with one that another program made, together with a view.
    pub link: Option<Link>,
    /// When it started.
    pub started_ms: Millis,
    /// Its model.
    pub model: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// Its origin.
    pub origin: Origin,
    /// The wire format of its messages.
    pub wire_format: WireFormat,
}

/// Running totals of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct SessionCounters {
    /// Number of messages appended to it.
    pub messages: u64,
    /// Their tokens, as counted when they were appended.
    pub message_tokens: u64,
    /// Number of calls recorded for it.
    pub calls: u64,
    /// Tokens of those calls.
    pub usage: Usage,
    /// Their cost, as far as prices are known, in millionths of a dollar.
    pub cost_micro_usd: u64,
    /// Number of calls of unknown cost.
    pub unpriced_calls: u64,
}

/// A recorded session.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// Its owner.
    pub owner: Owner,
    /// Its position in the order in which sessions were opened.
    pub ordinal: u64,
    /// The ordinal of the first session of its chain: the sessions that continue each other.
    pub chain: u64,
    /// The ordinal of the session whose view it started from: its own, unless it was opened by undo or redo.
    pub base: u64,
    /// Its parent, if any.
    pub link: Option<Link>,
    /// Position of its first own message in the conversation.
    pub first_seq: u64,
    /// Position of the next message.
    pub next_seq: u64,
    /// When it started.
    pub started_ms: Millis,
    /// The time of its last activity.
    pub active_ms: Millis,
    /// When it ended.
    pub ended_ms: Option<Millis>,
    /// The reason of its end; `None` while it is open.
    pub end_reason: Option<EndReason>,
    /// The model.
    pub model: Option<String>,
    /// The title.
    pub title: Option<String>,
    /// Its origin.
    pub origin: Origin,
    /// The wire format of its messages.
    #[serde(rename = "dialect", serialize_with = "wire_format_name")]
    pub wire_format: WireFormat,
    /// Totals.
    pub counters: SessionCounters,
}

fn wire_format_name<S: serde::Serializer>(
    wire_format: &WireFormat,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(wire_format.name())
}

/// A conversation in a list: a chain of sessions, represented by the newest.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Conversation {
    /// The newest session of the chain.
    pub tip: Session,
    /// The id of the first one.
    pub root: SessionId,
    /// When the first one started.
    pub started_ms: Millis,
    /// Title of the newest session that has one.
    pub title: Option<String>,
    /// Number of sessions in the chain.
    pub sessions: u64,
    /// Number of compactions in its view; undone ones do not count.
    pub compactions: u64,
    /// Totals over the chain.
    pub totals: SessionCounters,
}

/// A position in the list of conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListCursor {
    /// The last activity of the conversation there.
    pub active_ms: Millis,
    /// The ordinal of its newest session.
    pub ordinal: u64,
}

impl ListCursor {
    /// Returns the position of a conversation.
    #[must_use]
    pub fn of(conversation: &Conversation) -> Self {
        Self { active_ms: conversation.tip.active_ms, ordinal: conversation.tip.ordinal }
    }
}

/// A filter of conversations. The default accepts all of them.
#[derive(Clone, Debug, Default)]
pub struct SessionFilter {
    /// Only those active at or after this time.
    pub since_ms: Option<Millis>,
    /// Only those last active before this time.
    pub until_ms: Option<Millis>,
    /// Only those of this program.
    pub program: Option<String>,
    /// Only those whose newest session has this model.
    pub model: Option<String>,
    /// Only those of this folder or project.
    pub project: Option<String>,
    /// Also those attached to others as sub-agents or side calls.
    pub include_attached: bool,
    /// Only those after this position in the list.
    pub after: Option<ListCursor>,
    /// The maximum number, the most recently active first.
    pub limit: Option<usize>,
}
