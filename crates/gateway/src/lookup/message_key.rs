//! The key by which a message is recognised when a client sends it again.
//!
//! Clients rewrite their own history in ways that do not change the conversation: they move cache markers, add and remove reminders,
//! blank old tool results, drop reasoning, or encode an answer differently. A message is therefore recognised by its role, the calls it
//! makes or answers, and its text without injected parts.
//!
//! Keys are only compared. The gateway always sends the client's own bytes.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::num::NonZeroU32;

use throughline_transcript::{Message, Part, Role, strip_injected};
use twox_hash::XxHash3_128;

/// A hash of the parts of a message that clients do not rewrite.
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

/// A fast hash of the bytes of a message, to recognise unchanged messages: every request repeats the whole conversation. It
/// is never stored. A client that constructs a collision only confuses its own messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ByteHash(u128);

/// The key of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageKey {
    pub(crate) bytes: ByteHash,
    /// `None` for a message without text or calls of its own, such as reasoning. Clients may leave it out.
    pub(crate) identity: Option<MessageIdentity>,
    /// Whether it is a human message. Two human messages are equal only if their text is.
    pub(crate) is_human: bool,
    form: OtherForm,
}

/// Another form in which a client may send a message. At most one applies: an answer of which the client saw a part is not a human
/// message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OtherForm {
    /// None.
    Unknown,
    /// Without the calls that were hidden from the client.
    Client(ClientForm),
    /// Shortened to its beginning, for human messages.
    Opening(Opening),
}

/// The beginning of a human message: some clients append instructions to the newest one and remove them with the next
/// request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opening {
    /// The lower half of a hash.
    first_line: u64,
    bytes: NonZeroU32,
}

impl Opening {
    /// The beginning of a message. `None` if it is not a human message, or has no text.
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

    /// Whether `later` has the same beginning and is shorter: text at the end was removed, and nothing was added.
    pub(crate) fn is_shortened_to(self, later: Self) -> bool {
        self.first_line == later.first_line && later.bytes < self.bytes
    }
}

impl MessageKey {
    /// The key of a message that the client has in full.
    pub(crate) fn of(message: &Message) -> Self {
        Self::new(bytes_of(message), identity_of(message), message)
    }

    /// The same, for known bytes and identity.
    pub(crate) fn new(bytes: ByteHash, identity: Option<MessageIdentity>, message: &Message) -> Self {
        let form = Opening::of(message).map_or(OtherForm::Unknown, OtherForm::Opening);
        Self { bytes, identity, is_human: message.is_human(), form }
    }

    /// Sets the form in which the client saw the message, if it differs from the recorded one.
    pub(crate) fn seen_as(self, form: Option<ClientForm>) -> Self {
        Self { form: form.map_or(self.form, OtherForm::Client), ..self }
    }

    /// The form in which the client saw the message, if it differs from the recorded one.
    pub(crate) fn client_form(&self) -> Option<&ClientForm> {
        match &self.form {
            OtherForm::Client(form) => Some(form),
            OtherForm::Unknown | OtherForm::Opening(_) => None,
        }
    }

    /// The beginning of the message, if it is a human message and has no other form.
    pub(crate) fn opening(&self) -> Option<Opening> {
        match self.form {
            OtherForm::Opening(opening) => Some(opening),
            OtherForm::Unknown | OtherForm::Client(_) => None,
        }
    }

    /// The key of a message that was hidden from the client.
    pub(crate) fn unseen(message: &Message) -> Self {
        Self::of(message).seen_as(Some(ClientForm::NOTHING))
    }

    /// Whether the message may be missing from a request that continues the conversation.
    pub(crate) fn may_lack(&self) -> bool {
        self.identity.is_none() || self.client_form().is_some_and(|form| form.may_lack)
    }

    /// Whether a message with this identity is the same message, in any of its forms.
    pub(crate) fn is(&self, identity: Option<MessageIdentity>) -> bool {
        self.identity == identity
            || identity.is_some_and(|identity| self.client_form().is_some_and(|form| form.is(identity)))
    }
}

/// The forms in which a client may send a message with calls that were hidden from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientForm {
    /// Whether the message may be missing: the client saw nothing of it, or saw it as part of the next answer.
    pub(crate) may_lack: bool,
    /// The message without the hidden calls.
    pub(crate) alone: Option<MessageIdentity>,
    /// The same, with the text of earlier rounds of the answer before it.
    pub(crate) joined: Option<MessageIdentity>,
    /// The same for clients that join the parts of an answer into one text, with nothing or an empty line between them.
    pub(crate) as_one: [Option<MessageIdentity>; 2],
}

impl ClientForm {
    /// The form of a message that was hidden from the client.
    pub(crate) const NOTHING: Self = Self { may_lack: true, alone: None, joined: None, as_one: [None; 2] };

    pub(crate) fn is(&self, identity: MessageIdentity) -> bool {
        [self.alone, self.joined].iter().chain(&self.as_one).any(|known| *known == Some(identity))
    }
}

/// The hash of the bytes of a message.
pub(crate) fn bytes_of(message: &Message) -> ByteHash {
    ByteHash(XxHash3_128::oneshot(message.json().as_bytes()))
}

fn half(hash: blake3::Hash) -> [u8; 16] {
    let mut half = [0; 16];
    half.copy_from_slice(&hash.as_bytes()[..16]);
    half
}

/// The identity of a message. `None` if it has no text or calls of its own.
pub(crate) fn identity_of(message: &Message) -> Option<MessageIdentity> {
    let mut hashing = IdentityHasher::of(message);
    // System prompts vary, for example with the date, and occur only once in a conversation.
    if !message.role().is_instructions() {
        for (kind, words) in message.parts().iter().filter_map(|part| stable_content(message, part)) {
            hashing.add(kind, &words);
        }
    }
    hashing.finish(message)
}

/// The identity of a message with these parts only.
pub(crate) fn identity_of_parts(
    message: &Message,
    parts: &[(&str, Cow<'_, str>)],
) -> Option<MessageIdentity> {
    let mut hashing = IdentityHasher::of(message);
    parts.iter().for_each(|(kind, words)| hashing.add(kind, words));
    hashing.finish(message)
}

/// Computes an identity part by part.
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

/// The kind and text of a part that clients leave unchanged. `None` for parts that they may change.
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
        // The name is included, because some servers number the calls of each answer from the start.
        Part::ToolCall { id, name, .. } => {
            ("call", Cow::Owned(format!("{} {}", name.text(json), id.text(json))))
        }
        // Clients may blank the text of a result later; the id of its call stays.
        Part::ToolResult { call_id, .. } => ("result", call_id.text(json)),
        Part::Image { block } => ("image", Cow::Owned(message.raw(*block).len().to_string())),
        Part::Opaque { kind, .. } => ("other", kind.map(|kind| kind.text(json)).unwrap_or_default()),
        Part::Reasoning { .. } => return None,
    })
}

/// The role of a message, with one name for roles that wire formats name differently.
pub(crate) fn role_of(message: &Message) -> &'static str {
    match message.role() {
        // An item of the Responses wire format that makes or answers a call has no role of its own.
        Role::Other if message.has_calls() => Role::Assistant.name(),
        Role::Other if message.has_results() => Role::Tool.name(),
        Role::Developer => Role::System.name(),
        role => role.name(),
    }
}

#[cfg(test)]
#[path = "message_key_tests.rs"]
mod tests;
