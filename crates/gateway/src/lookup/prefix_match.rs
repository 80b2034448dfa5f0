//! Where a request stands in a conversation that is known: it goes on, it leaves it somewhere, or it is another one.
//!
//! A pure comparison of two lists. What says nothing of its own is passed over on either side. Inside what was compacted
//! away an edit is of no account unless a person's words changed: the model is not shown that part any more.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::sync::OnceLock;

use throughline_transcript::{Message, Role};

use crate::lookup::message_key::{ByteHash, ClientForm, MessageIdentity, MessageKey, bytes_of, identity_of};
use crate::recall::client_view::Projection;

/// A message of a request. Most come back unchanged, so who they are is worked out only when their bytes do not tell.
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

    /// As it is recognised later on.
    pub(crate) fn known(&self) -> MessageKey {
        let (bytes, identity) = (self.bytes, self.identity());
        MessageKey { bytes, identity, is_human: self.message.is_human(), seen: None }
    }
}

/// How a request stands to a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PrefixMatch {
    /// Messages of the conversation that the request repeats, from its first on.
    pub(crate) known: usize,
    /// Messages of the request that repeat them.
    pub(crate) repeated: usize,
}

impl PrefixMatch {
    /// Whether the request repeats the whole conversation.
    pub(crate) fn goes_on(self, conversation: &[MessageKey]) -> bool {
        self.known == conversation.len()
    }
}

/// Compares a request with a conversation of which the first `compacted_messages` messages are compacted.
pub(crate) fn compare(
    conversation: &[MessageKey],
    request: &[ClientMessage<'_>],
    compacted_messages: usize,
) -> PrefixMatch {
    walk(conversation, request, compacted_messages, |_, _| {})
}

/// The conversation with the bytes that the request has for it now, by which it is known at once the next time.
pub(crate) fn refreshed(
    conversation: &[MessageKey],
    request: &[ClientMessage<'_>],
    compacted_messages: usize,
) -> Vec<MessageKey> {
    let mut all = conversation.to_vec();
    walk(conversation, request, compacted_messages, |known, sent| {
        if let Some(ours) = all.get_mut(known) {
            ours.bytes = sent.bytes;
        }
    });
    all
}

/// Walks through both lists as far as they say the same, and shows each pair.
fn walk(
    conversation: &[MessageKey],
    request: &[ClientMessage<'_>],
    compacted_messages: usize,
    mut pair: impl FnMut(usize, &ClientMessage<'_>),
) -> PrefixMatch {
    let (mut known, mut repeated) = (0, 0);
    loop {
        match (conversation.get(known), request.get(repeated)) {
            (Some(ours), Some(sent)) if is_same(ours, sent) => {
                pair(known, sent);
                known += 1;
                repeated += 1;
            }
            (Some(ours), _) if ours.may_lack() => known += 1,
            (Some(ours), Some(sent)) if known < compacted_messages && is_small_edit(ours, sent) => {
                pair(known, sent);
                known += 1;
                repeated += 1;
            }
            (Some(_), Some(sent)) if sent.identity().is_none() => repeated += 1,
            _ => return PrefixMatch { known, repeated },
        }
    }
}

fn is_same(ours: &MessageKey, sent: &ClientMessage<'_>) -> bool {
    ours.bytes == sent.bytes || ours.is(sent.identity())
}

/// Whether an edit of this message changes nothing that a person said.
fn is_small_edit(ours: &MessageKey, sent: &ClientMessage<'_>) -> bool {
    !ours.is_human && !sent.message.is_human() && ours.identity.is_some() && sent.identity().is_some()
}

/// Whether a request that leaves a conversation has only let some of it go: further on it repeats what was answered, and
/// it is shorter than the conversation. So a client tells that it compacted the conversation itself.
pub(crate) fn is_compacted(
    conversation: &[MessageKey],
    request: &[ClientMessage<'_>],
    found: PrefixMatch,
) -> bool {
    let shown = conversation.iter().filter(|known| known.identity.is_none() || !known.may_lack()).count();
    if request.len() >= shown {
        return false;
    }
    let further: HashSet<MessageIdentity> =
        conversation.iter().skip(found.known).filter_map(|known| known.identity).collect();
    request.iter().skip(found.repeated).any(|sent| {
        sent.message.role() != Role::User
            && sent.identity().is_some_and(|identity| further.contains(&identity))
    })
}

/// Whether a request brings a summary that its client put in the place of the rest, and that the conversation does not
/// have. Some clients keep nothing of what was answered beside it, so that nothing else tells where it comes from.
pub(crate) fn has_new_summary(conversation: &[MessageKey], request: &[ClientMessage<'_>]) -> bool {
    let is_new = |sent: &ClientMessage<'_>| conversation.iter().all(|known| known.bytes != sent.bytes);
    request.iter().any(|sent| sent.message.is_client_summary() && is_new(sent))
}

/// How many answers and results of a conversation a request repeats, wherever they stand.
pub(crate) fn shared_answers(conversation: &[MessageKey], request: &[ClientMessage<'_>]) -> usize {
    let said: HashSet<MessageIdentity> = conversation.iter().filter_map(|known| known.identity).collect();
    let is_shared = |sent: &&ClientMessage<'_>| {
        !matches!(sent.message.role(), Role::User | Role::System | Role::Developer)
            && sent.identity().is_some_and(|identity| said.contains(&identity))
    };
    request.iter().filter(is_shared).count()
}

/// The client's words for the end of a view: pairs of an item and the message that repeats it, and the first item of them.
/// Items that say nothing of their own and that the client left out are not among them; those it knows nothing of stay in
/// our words.
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
