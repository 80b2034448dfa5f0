//! Compares the messages of a request with those of a conversation: how much of the conversation does the request repeat?
//!
//! A pure comparison of two lists. Messages without words or calls of their own, such as reasoning, are skipped on either
//! side. In the compacted part, an edit counts only if it changes a human message: the model no longer sees that part.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::sync::OnceLock;

use throughline_transcript::{Message, Role};

use crate::lookup::message_key::{ByteHash, ClientForm, MessageIdentity, MessageKey, bytes_of, identity_of};
use crate::recall::client_view::Projection;

/// A message of a request. Most messages come back unchanged, so the identity is computed only when the bytes differ.
pub(crate) struct ClientMessage<'a> {
    pub(crate) message: &'a Message,
    bytes: ByteHash,
    identity: OnceLock<Option<MessageIdentity>>,
}

impl<'a> ClientMessage<'a> {
    pub(crate) fn of(message: &'a Message) -> Self {
        Self { message, bytes: bytes_of(message), identity: OnceLock::new() }
    }

    pub(crate) fn all(messages: &'a [Message]) -> Vec<Self> {
        messages.iter().map(Self::of).collect()
    }

    fn identity(&self) -> Option<MessageIdentity> {
        *self.identity.get_or_init(|| identity_of(self.message))
    }

    /// The key by which later requests recognise it.
    pub(crate) fn key(&self) -> MessageKey {
        let (bytes, identity) = (self.bytes, self.identity());
        MessageKey { bytes, identity, is_human: self.message.is_human(), seen: None }
    }
}

/// How much of a conversation a request repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PrefixMatch {
    /// Number of messages at the start of the conversation that the request repeats.
    pub(crate) matched: usize,
    /// Number of messages of the request that repeat them.
    pub(crate) repeated: usize,
}

impl PrefixMatch {
    /// Whether the request repeats the whole conversation.
    pub(crate) fn goes_on(self, conversation: &[MessageKey]) -> bool {
        self.matched == conversation.len()
    }
}

/// Compares a request with a conversation of which the first `compacted_messages` messages are compacted.
pub(crate) fn compare(
    conversation: &[MessageKey],
    request: &[ClientMessage<'_>],
    compacted_messages: usize,
) -> PrefixMatch {
    match_prefix(conversation, request, compacted_messages, |_, _| {})
}

/// The keys of the conversation with the byte hashes of this request, which the next request probably repeats.
pub(crate) fn refreshed(
    conversation: &[MessageKey],
    request: &[ClientMessage<'_>],
    compacted_messages: usize,
) -> Vec<MessageKey> {
    let mut all = conversation.to_vec();
    match_prefix(conversation, request, compacted_messages, |at, sent| {
        if let Some(ours) = all.get_mut(at) {
            ours.bytes = sent.bytes;
        }
    });
    all
}

/// Goes through both lists while they match, and passes each pair of equal messages to `pair`.
fn match_prefix(
    conversation: &[MessageKey],
    request: &[ClientMessage<'_>],
    compacted_messages: usize,
    mut pair: impl FnMut(usize, &ClientMessage<'_>),
) -> PrefixMatch {
    let (mut matched, mut repeated) = (0, 0);
    loop {
        match (conversation.get(matched), request.get(repeated)) {
            (Some(ours), Some(sent)) if is_same(ours, sent) => {
                pair(matched, sent);
                matched += 1;
                repeated += 1;
            }
            (Some(ours), _) if ours.may_lack() => matched += 1,
            (Some(ours), Some(sent)) if matched < compacted_messages && is_small_edit(ours, sent) => {
                pair(matched, sent);
                matched += 1;
                repeated += 1;
            }
            (Some(_), Some(sent)) if sent.identity().is_none() => repeated += 1,
            _ => return PrefixMatch { matched, repeated },
        }
    }
}

fn is_same(ours: &MessageKey, sent: &ClientMessage<'_>) -> bool {
    ours.bytes == sent.bytes || ours.is(sent.identity())
}

/// Whether neither version of a changed message is a human message.
fn is_small_edit(ours: &MessageKey, sent: &ClientMessage<'_>) -> bool {
    !ours.is_human && !sent.message.is_human() && ours.identity.is_some() && sent.identity().is_some()
}

/// Whether a request that differs from a conversation is a compacted form of it, made by the client: it is shorter, and after
/// the difference it repeats an answer of the conversation.
pub(crate) fn is_compacted(
    conversation: &[MessageKey],
    request: &[ClientMessage<'_>],
    found: PrefixMatch,
) -> bool {
    let shown = conversation.iter().filter(|key| key.identity.is_none() || !key.may_lack()).count();
    if request.len() >= shown {
        return false;
    }
    let further: HashSet<MessageIdentity> =
        conversation.iter().skip(found.matched).filter_map(|key| key.identity).collect();
    request.iter().skip(found.repeated).any(|sent| {
        sent.message.role() != Role::User
            && sent.identity().is_some_and(|identity| further.contains(&identity))
    })
}

/// Whether a request contains a summary written by its client that the conversation does not have. Some clients keep no
/// answer beside the summary, so that nothing else shows which conversation was compacted.
pub(crate) fn has_new_summary(conversation: &[MessageKey], request: &[ClientMessage<'_>]) -> bool {
    let is_new = |sent: &ClientMessage<'_>| conversation.iter().all(|key| key.bytes != sent.bytes);
    request.iter().any(|sent| sent.message.is_client_summary() && is_new(sent))
}

/// How many answers and tool results of a conversation a request repeats, at any position.
pub(crate) fn shared_answers(conversation: &[MessageKey], request: &[ClientMessage<'_>]) -> usize {
    let shared: HashSet<MessageIdentity> = conversation.iter().filter_map(|key| key.identity).collect();
    let is_shared = |sent: &&ClientMessage<'_>| {
        !matches!(sent.message.role(), Role::User | Role::System | Role::Developer)
            && sent.identity().is_some_and(|identity| shared.contains(&identity))
    };
    request.iter().filter(is_shared).count()
}

/// Pairs the items at the end of a view with the client's messages that repeat them. Returns the index of the first paired
/// item and the pairs. Items without words of their own that the client left out are not paired. Items that the client was
/// never shown are paired with our own message.
pub(crate) fn align(
    view: &[Message],
    first_own: usize,
    repeated: &[Message],
    mut projection: Projection<'_>,
) -> (usize, Vec<(usize, Message)>) {
    let seen = projection.seen(view);
    let (mut item, mut sent) = (view.len(), repeated.len());
    let mut pairs = Vec::new();
    while item > first_own && sent > 0 {
        let (Some(ours), Some(message)) = (view.get(item - 1), repeated.get(sent - 1)) else {
            break;
        };
        let our_identity = OnceCell::new();
        let ours_is = || *our_identity.get_or_init(|| identity_of(ours));
        let seen = seen.get(item - 1).copied().flatten();
        let comes_back = |seen: ClientForm| identity_of(message).is_some_and(|identity| seen.is(identity));
        if seen.is_some_and(comes_back) {
            pairs.push((item - 1, ours.clone()));
            item -= 1;
            sent -= 1;
        } else if seen.is_some_and(|seen| seen.may_lack) {
            pairs.push((item - 1, ours.clone()));
            item -= 1;
        } else if ours.json() == message.json() || ours_is() == identity_of(message) {
            pairs.push((item - 1, message.clone()));
            item -= 1;
            sent -= 1;
        } else if ours_is().is_none() {
            item -= 1;
        } else if identity_of(message).is_none() {
            sent -= 1;
        } else {
            break;
        }
    }
    pairs.reverse();
    (item, pairs)
}

#[cfg(test)]
#[path = "prefix_match_tests.rs"]
mod tests;
