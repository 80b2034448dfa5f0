//! What a message is recognised by when a client sends it again.
//!
//! Clients rewrite their own history in ways that do not change the conversation: cache marks move on, reminders come and
//! go, old tool results are blanked, reasoning is dropped, an answer comes back in another notation. So a message is
//! recognised by who speaks, which calls it makes or answers, and its words without what programs put there.
//!
//! Not for: what is sent. Only the client's own bytes are.

use throughline_transcript::{Message, Part, Role, strip_injected};
use twox_hash::XxHash3_128;

/// What a message is recognised by.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Identity([u8; 16]);

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.hex())
    }
}

impl Identity {
    pub(crate) fn hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The bytes of a message, by which one that came back unchanged is known at once. Every request brings the whole
/// conversation, so this is a hash for speed; it is never kept, and whoever finds two messages that share one only
/// mistakes their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Bytes(u128);

/// A message of a conversation as it is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) bytes: Bytes,
    /// `None` for what says nothing of its own, such as reasoning: clients leave it out as they like.
    pub(crate) identity: Option<Identity>,
    /// Whether a person speaks in it: their words are never taken for the same when they differ.
    pub(crate) is_human: bool,
}

impl Known {
    pub(crate) fn of(message: &Message) -> Self {
        Self { bytes: bytes_of(message), identity: identity_of(message), is_human: message.is_human() }
    }
}

/// The bytes of a message.
pub(crate) fn bytes_of(message: &Message) -> Bytes {
    Bytes(XxHash3_128::oneshot(message.json().as_bytes()))
}

fn half(hash: blake3::Hash) -> [u8; 16] {
    let mut half = [0; 16];
    half.copy_from_slice(&hash.as_bytes()[..16]);
    half
}

/// What a message is recognised by; `None` when it says nothing of its own.
pub(crate) fn identity_of(message: &Message) -> Option<Identity> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(role_of(message).as_bytes());
    // Standing instructions hold dates and the like, and there is one place for them.
    if message.role().is_instructions() {
        return Some(Identity(half(hasher.finalize())));
    }
    let mut says_something = false;
    let json = message.json();
    for part in message.parts() {
        let (kind, words) = match part {
            Part::Text(string) => {
                let text = message.str(*string);
                let own = strip_injected(&text).trim();
                if own.is_empty() {
                    continue;
                }
                ("text", own.to_owned())
            }
            Part::ToolCall { id, .. } => ("call", id.text(json).into_owned()),
            // What a result says may be blanked later; that it answers the call stays.
            Part::ToolResult { call_id, .. } => ("result", call_id.text(json).into_owned()),
            Part::Image { block } => ("image", message.raw(*block).len().to_string()),
            Part::Opaque { kind, .. } => {
                ("other", kind.map(|kind| kind.text(json).into_owned()).unwrap_or_default())
            }
            Part::Reasoning { .. } => continue,
        };
        says_something = true;
        hasher.update(b"\0");
        hasher.update(kind.as_bytes());
        hasher.update(b"\0");
        hasher.update(words.as_bytes());
    }
    says_something.then(|| Identity(half(hasher.finalize())))
}

/// Who speaks, where wires name the same speaker differently.
fn role_of(message: &Message) -> &'static str {
    match message.role() {
        // An item of the Responses wire that makes a call or answers one has no role of its own.
        Role::Other if message.has_calls() => Role::Assistant.name(),
        Role::Other if message.has_results() => Role::Tool.name(),
        Role::Developer => Role::System.name(),
        role => role.name(),
    }
}

#[cfg(test)]
#[path = "identity_tests.rs"]
mod tests;
