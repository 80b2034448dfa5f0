//! What a message is recognised by when a client sends it again.
//!
//! Clients rewrite their own history in ways that do not change the conversation: cache marks move on, reminders come and
//! go, old tool results are blanked, reasoning is dropped, an answer comes back in another notation. So a message is
//! recognised by who speaks, which calls it makes or answers, and its words without what programs put there.
//!
//! Not for: what is sent. Only the client's own bytes are.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::num::NonZeroU32;

use throughline_transcript::{Message, Part, Role, strip_injected};
use twox_hash::XxHash3_128;

/// What a message is recognised by.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct MessageIdentity([u8; 16]);

impl std::fmt::Debug for MessageIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.hex())
    }
}

impl MessageIdentity {
    pub(crate) fn hex(self) -> String {
        let mut hex = String::with_capacity(2 * self.0.len());
        for byte in self.0 {
            // Writing to a string cannot fail.
            let _ = write!(hex, "{byte:02x}");
        }
        hex
    }
}

/// The bytes of a message, by which one that came back unchanged is known at once. Every request brings the whole
/// conversation, so this is a hash for speed; it is never kept, and whoever finds two messages that share one only
/// mistakes their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ByteHash(u128);

/// A message of a conversation as it is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageKey {
    pub(crate) bytes: ByteHash,
    /// `None` for what says nothing of its own, such as reasoning: clients leave it out as they like.
    pub(crate) identity: Option<MessageIdentity>,
    /// Whether a person speaks in it: their words are never taken for the same when they differ.
    pub(crate) is_human: bool,
    form: OtherForm,
}

/// In what other form a message may come back. One or none of them: an answer that its client saw in part is no person's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OtherForm {
    /// In none.
    Unknown,
    /// As its client saw it, if it holds what the client knows nothing of.
    Client(ClientForm),
    /// Shortened to how it begins, where a person speaks in it.
    Opening(Opening),
}

/// How a message of a person begins: some clients add instructions to the newest one and take them away with the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opening {
    /// The lower half of a hash.
    first_line: u64,
    bytes: NonZeroU32,
}

impl Opening {
    /// That of a message; `None` where it says nothing or no person speaks.
    pub(crate) fn of(message: &Message) -> Option<Self> {
        let parts = message.is_human().then(|| message.parts())?;
        let words = parts.iter().find_map(|part| match stable_content(message, part)? {
            ("text", words) => Some(words),
            _ => None,
        })?;
        let first_line = words.lines().next().unwrap_or_default().trim_end();
        let bytes = NonZeroU32::new(u32::try_from(words.len()).unwrap_or(u32::MAX))?;
        Some(Self { first_line: XxHash3_128::oneshot(first_line.as_bytes()) as u64, bytes })
    }

    /// Whether `later` begins alike and is shorter: something that stood behind the words is gone, and nothing is new.
    pub(crate) fn is_shortened_to(self, later: Self) -> bool {
        self.first_line == later.first_line && later.bytes < self.bytes
    }
}

impl MessageKey {
    /// A message its client has as it is.
    pub(crate) fn of(message: &Message) -> Self {
        Self::new(bytes_of(message), identity_of(message), message)
    }

    /// The same, where bytes and identity are known already.
    pub(crate) fn new(bytes: ByteHash, identity: Option<MessageIdentity>, message: &Message) -> Self {
        let form = Opening::of(message).map_or(OtherForm::Unknown, OtherForm::Opening);
        Self { bytes, identity, is_human: message.is_human(), form }
    }

    /// As its client saw it, if that is not all of it.
    pub(crate) fn seen_as(self, form: Option<ClientForm>) -> Self {
        Self { form: form.map_or(self.form, OtherForm::Client), ..self }
    }

    /// What its client saw of it, if that is not all.
    pub(crate) fn client_form(&self) -> Option<&ClientForm> {
        match &self.form {
            OtherForm::Client(form) => Some(form),
            OtherForm::Unknown | OtherForm::Opening(_) => None,
        }
    }

    /// How it begins, where a person speaks in it.
    pub(crate) fn opening(&self) -> Option<Opening> {
        match self.form {
            OtherForm::Opening(opening) => Some(opening),
            OtherForm::Unknown | OtherForm::Client(_) => None,
        }
    }

    /// A message its client knows nothing of.
    pub(crate) fn unseen(message: &Message) -> Self {
        Self::of(message).seen_as(Some(ClientForm::NOTHING))
    }

    /// Whether a client may leave it out without leaving the conversation.
    pub(crate) fn may_lack(&self) -> bool {
        self.identity.is_none() || self.client_form().is_some_and(|form| form.may_lack)
    }

    /// Whether a message with this identity says the same.
    pub(crate) fn is(&self, identity: Option<MessageIdentity>) -> bool {
        self.identity == identity
            || identity.is_some_and(|identity| self.client_form().is_some_and(|form| form.is(identity)))
    }
}

/// How a message may come back from a client that never heard of the calls in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientForm {
    /// Whether it may be missing: the client was shown nothing of it, or shown it as part of the next answer.
    pub(crate) may_lack: bool,
    /// What is left of it without the calls.
    pub(crate) alone: Option<MessageIdentity>,
    /// The same, with what earlier rounds of the answer said before it.
    pub(crate) joined: Option<MessageIdentity>,
    /// The same for clients that make one text of an answer, with nothing or an empty line between its parts.
    pub(crate) as_one: [Option<MessageIdentity>; 2],
}

impl ClientForm {
    /// A message the client knows nothing of.
    pub(crate) const NOTHING: Self = Self { may_lack: true, alone: None, joined: None, as_one: [None; 2] };

    pub(crate) fn is(&self, identity: MessageIdentity) -> bool {
        [self.alone, self.joined].iter().chain(&self.as_one).any(|known| *known == Some(identity))
    }
}

/// The bytes of a message.
pub(crate) fn bytes_of(message: &Message) -> ByteHash {
    ByteHash(XxHash3_128::oneshot(message.json().as_bytes()))
}

fn half(hash: blake3::Hash) -> [u8; 16] {
    let mut half = [0; 16];
    half.copy_from_slice(&hash.as_bytes()[..16]);
    half
}

/// What a message is recognised by; `None` when it says nothing of its own.
pub(crate) fn identity_of(message: &Message) -> Option<MessageIdentity> {
    let mut hashing = IdentityHasher::of(message);
    // Standing instructions hold dates and the like, and there is one place for them.
    if !message.role().is_instructions() {
        for (kind, words) in message.parts().iter().filter_map(|part| stable_content(message, part)) {
            hashing.add(kind, &words);
        }
    }
    hashing.finish(message)
}

/// The same for a message that says this and nothing else.
pub(crate) fn identity_of_parts(
    message: &Message,
    parts: &[(&str, Cow<'_, str>)],
) -> Option<MessageIdentity> {
    let mut hashing = IdentityHasher::of(message);
    parts.iter().for_each(|(kind, words)| hashing.add(kind, words));
    hashing.finish(message)
}

/// An identity in the making.
struct IdentityHasher {
    hasher: blake3::Hasher,
    says_something: bool,
}

impl IdentityHasher {
    fn of(message: &Message) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(role_of(message).as_bytes());
        Self { hasher, says_something: false }
    }

    fn add(&mut self, kind: &str, words: &str) {
        self.says_something = true;
        self.hasher.update(b"\0");
        self.hasher.update(kind.as_bytes());
        self.hasher.update(b"\0");
        self.hasher.update(words.as_bytes());
    }

    fn finish(self, message: &Message) -> Option<MessageIdentity> {
        let counts = self.says_something || message.role().is_instructions();
        counts.then(|| MessageIdentity(half(self.hasher.finalize())))
    }
}

/// What a part says that does not change when a client rewrites its history: its kind, and words.
pub(crate) fn stable_content<'a>(message: &'a Message, part: &Part) -> Option<(&'static str, Cow<'a, str>)> {
    let json = message.json();
    Some(match part {
        Part::Text(string) => {
            let text = message.str(*string);
            let own = strip_injected(&text).trim();
            if own.is_empty() {
                return None;
            }
            ("text", Cow::Owned(own.to_owned()))
        }
        // Some servers number the calls of each answer anew.
        Part::ToolCall { id, name, .. } => {
            ("call", Cow::Owned(format!("{} {}", name.text(json), id.text(json))))
        }
        // What a result says may be blanked later; that it answers the call stays.
        Part::ToolResult { call_id, .. } => ("result", call_id.text(json)),
        Part::Image { block } => ("image", Cow::Owned(message.raw(*block).len().to_string())),
        Part::Opaque { kind, .. } => ("other", kind.map(|kind| kind.text(json)).unwrap_or_default()),
        Part::Reasoning { .. } => return None,
    })
}

/// Who speaks, where wires name the same speaker differently.
pub(crate) fn role_of(message: &Message) -> &'static str {
    match message.role() {
        // An item of the Responses wire that makes a call or answers one has no role of its own.
        Role::Other if message.has_calls() => Role::Assistant.name(),
        Role::Other if message.has_results() => Role::Tool.name(),
        Role::Developer => Role::System.name(),
        role => role.name(),
    }
}

#[cfg(test)]
#[path = "message_key_tests.rs"]
mod tests;
