//! A session: one window of a conversation, and its links to others.

use throughline_tokens::Usage;
use throughline_transcript::WireFormat;

use crate::ids::{Millis, Owner, SessionId};

/// How a session hangs on its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkKind {
    /// The same conversation goes on, with another view.
    Continuation,
    /// Another way the conversation went, from some message on.
    Branch,
    /// A conversation an agent held for its parent.
    SubAgent,
    /// A call beside the conversation: a title, a count.
    SideCall,
    /// A call beside the conversation that repeats it up to some message: its client asks for a summary of it.
    SideBranch,
    /// The conversation after its client compacted it on its own account: it begins with the client's summary.
    ClientCompaction,
}

impl LinkKind {
    /// Its name in the record and in output.
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

    /// The kind of this name.
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

    /// Whether the session is a call beside the conversation.
    #[must_use]
    pub fn is_side_call(self) -> bool {
        matches!(self, Self::SideCall | Self::SideBranch)
    }

    /// Whether the session hangs on its parent as something a person does not look for in a list.
    #[must_use]
    pub fn is_attached(self) -> bool {
        self.is_side_call() || self == Self::SubAgent
    }
}

/// Where a session hangs.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Link {
    /// The session it hangs on. It may have been deleted since.
    pub parent: SessionId,
    /// How the session relates to its parent.
    pub kind: LinkKind,
    /// Messages of the parent before this place belong to it too. For a continuation that is all of them.
    pub leaves_at: u64,
}

/// Why a session ended. An open set: what other programs recorded is carried as it was.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct EndReason(pub std::borrow::Cow<'static, str>);

impl EndReason {
    /// A compaction made a new view.
    pub const COMPRESSION: Self = Self(std::borrow::Cow::Borrowed("compression"));
    /// A compaction was undone.
    pub const UNDO: Self = Self(std::borrow::Cow::Borrowed("undo"));
    /// An undone compaction was taken up again.
    pub const REDO: Self = Self(std::borrow::Cow::Borrowed("redo"));
    /// The user began something new.
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

/// Where a conversation comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Origin {
    /// The program: `claude-code`, `codex`, `hermes`, `chat`, `gateway`, `file`.
    pub program: String,
    /// What that program calls the session; with the program and the owner it is found again.
    pub key: Option<String>,
    /// The folder or project it was about.
    pub project: Option<String>,
}

impl Session {
    /// The number of sessions with equal beginnings that numbered keys distinguish.
    pub const MAX_NUMBERED: usize = 64;

    /// The key of one of several sessions that begin alike, from 1 on.
    #[must_use]
    pub fn numbered_key(key: &str, number: usize) -> String {
        if number == 1 { key.to_owned() } else { format!("{key}#{number}") }
    }
}

/// A session to be opened.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// Its id.
    pub id: SessionId,
    /// Whose it is.
    pub owner: Owner,
    /// What it hangs on. A continuation is opened by [`Store::continue_session`](crate::Store::continue_session), or
    /// here by an importer that tells of one another program made; a view is given then.
    pub link: Option<Link>,
    /// When it began.
    pub started_ms: Millis,
    /// The model it talks to.
    pub model: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// Where it comes from.
    pub origin: Origin,
    /// The wire of its messages.
    pub wire_format: WireFormat,
}

/// Running totals of one session.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct SessionCounters {
    /// Messages appended to it.
    pub messages: u64,
    /// Their tokens as counted when they came.
    pub message_tokens: u64,
    /// Calls recorded for it.
    pub calls: u64,
    /// Tokens of those calls.
    pub usage: Usage,
    /// What they cost, as far as prices are known, in millionths of a dollar.
    pub cost_micro_usd: u64,
    /// Calls whose cost is not known.
    pub unpriced_calls: u64,
}

/// A session as recorded.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// Whose it is.
    pub owner: Owner,
    /// Its place in the order in which sessions were opened.
    pub ordinal: u64,
    /// The ordinal of the first session of its chain: the sessions that continue one another.
    pub chain: u64,
    /// The ordinal of the session whose view it started from: its own, unless it was opened by undo or redo.
    pub base: u64,
    /// What it hangs on.
    pub link: Option<Link>,
    /// Place of its first own message in the conversation.
    pub first_seq: u64,
    /// Place of the next message.
    pub next_seq: u64,
    /// When it began.
    pub started_ms: Millis,
    /// When the last thing happened in it.
    pub active_ms: Millis,
    /// When it ended.
    pub ended_ms: Option<Millis>,
    /// Why it ended; `None` while it is open.
    pub end_reason: Option<EndReason>,
    /// The model.
    pub model: Option<String>,
    /// The title.
    pub title: Option<String>,
    /// Where it comes from.
    pub origin: Origin,
    /// The wire of its messages.
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

/// A conversation in a list: a chain of sessions, shown by its newest.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Conversation {
    /// The newest session of the chain.
    pub tip: Session,
    /// The id of the first one.
    pub root: SessionId,
    /// When the first one began.
    pub started_ms: Millis,
    /// Title of the newest session that has one.
    pub title: Option<String>,
    /// Sessions in the chain.
    pub sessions: u64,
    /// Compactions that its view has gone through; those that were undone do not count.
    pub compactions: u64,
    /// Totals over the chain.
    pub totals: SessionCounters,
}

/// A place in the list of conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListCursor {
    /// When the conversation there was last active.
    pub active_ms: Millis,
    /// The ordinal of its newest session.
    pub ordinal: u64,
}

impl ListCursor {
    /// The place of a conversation.
    #[must_use]
    pub fn of(conversation: &Conversation) -> Self {
        Self { active_ms: conversation.tip.active_ms, ordinal: conversation.tip.ordinal }
    }
}

/// Which conversations to list. The default is all of them.
#[derive(Clone, Debug, Default)]
pub struct SessionFilter {
    /// Only those active at or after this time.
    pub since_ms: Option<Millis>,
    /// Only those last active before this time.
    pub until_ms: Option<Millis>,
    /// Only those of this program.
    pub program: Option<String>,
    /// Only those whose newest session talks to this model.
    pub model: Option<String>,
    /// Only those about this folder or project.
    pub project: Option<String>,
    /// Also those that hang on others as sub-agents or side calls.
    pub include_attached: bool,
    /// Only those after this place in the list.
    pub after: Option<ListCursor>,
    /// At most so many, the most recently active first.
    pub limit: Option<usize>,
}
