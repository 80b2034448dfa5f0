//! Finds out how many messages of a conversation a request repeats.
//!
//! A pure comparison of two lists. Messages without text or calls of their own, such as reasoning, are skipped on either side. In the
//! compacted part of the conversation, only changes to human messages count: the model no longer sees the other messages.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::sync::OnceLock;

use throughline_engine::ClientBytes;
use throughline_transcript::{Message, Role};

use crate::lookup::message_key::{
    ByteHash, ClientForm, MessageIdentity, MessageKey, Opening, bytes_of, identity_of,
};
use crate::recall::client_view::Projection;

/// The most messages that a client moves before each question: two exchanges, files and images.
const MOST_MOVED_MESSAGES: usize = 4;

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

    fn opening(&self) -> Option<Opening> {
        Opening::of(self.message)
    }

    /// The key by which later requests recognise the message.
    pub(crate) fn key(&self) -> MessageKey {
        MessageKey::new(self.bytes, self.identity(), self.message)
    }
}

/// How much of a conversation a request repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PrefixMatch {
    /// Number of messages at the start of the conversation that the request repeats.
    pub(crate) matched: usize,
    /// Number of messages of the request that repeat them.
    pub(crate) repeated: usize,
    /// How many of them are reworded or at another position.
    pub(crate) reworded: usize,
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

/// Returns the keys of the conversation with the byte hashes of this request, which the next request probably repeats.
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

/// Advances through both lists while they match, and passes each pair of equal messages to `pair`.
fn match_prefix(
    conversation: &[MessageKey],
    request: &[ClientMessage<'_>],
    compacted_messages: usize,
    mut pair: impl FnMut(usize, &ClientMessage<'_>),
) -> PrefixMatch {
    let (mut matched, mut repeated, mut reworded) = (0, 0, 0);
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
            (Some(_), Some(sent)) => {
                let (ours, rest) = (conversation.get(matched..), request.get(repeated..));
                let (ours, rest) = (ours.unwrap_or_default(), rest.unwrap_or_default());
                if is_shortened_question(ours, rest) {
                    pair(matched, sent);
                    matched += 1;
                    repeated += 1;
                } else if let Some(moved) = moved_messages(ours, rest) {
                    matched += moved;
                } else {
                    return PrefixMatch { matched, repeated, reworded };
                }
                reworded += 1;
            }
            _ => return PrefixMatch { matched, repeated, reworded },
        }
    }
}

/// Whether the request repeats the first question of the conversation without the text that its client had appended, and repeats the
/// answer.
fn is_shortened_question(conversation: &[MessageKey], request: &[ClientMessage<'_>]) -> bool {
    let ([question, ..], [sent, ..]) = (conversation, request) else { return false };
    let is_shortened = || match (question.opening(), sent.opening()) {
        (Some(was), Some(is)) => was.is_shortened_to(is),
        _ => false,
    };
    // Compares the answers first: that is cheap and rules out most requests of other conversations.
    is_answered_alike(conversation, request) && is_shortened()
}

/// Whether the first message is followed by the same answer in both lists, or the conversation has no answer yet.
fn is_answered_alike(conversation: &[MessageKey], request: &[ClientMessage<'_>]) -> bool {
    let Some(repeated) = request.get(1).filter(|sent| sent.message.role() == Role::Assistant) else {
        return false;
    };
    conversation.get(1).is_none_or(|answer| is_same(answer, repeated))
}

/// Returns the number of messages that the request has at a later position. Some clients show messages only before the newest question,
/// such as the files they work on and a short reply. In the request, the next question and its answer follow at the old position.
fn moved_messages(conversation: &[MessageKey], request: &[ClientMessage<'_>]) -> Option<usize> {
    (1..=MOST_MOVED_MESSAGES).find(|&count| {
        let Some((moved, rest)) = conversation.split_at_checked(count) else { return false };
        let ([question, ..], [sent, _, later @ ..]) = (rest, request) else { return false };
        let is_same_question = question.is_human && is_same(question, sent);
        let goes_on =
            is_same_question && is_answered_alike(rest, request) || is_shortened_question(rest, request);
        goes_on && comes_again(moved, later)
    })
}

/// Whether the request contains these messages: the same roles in the same order, ending with the same answer. Human messages, such as
/// the text of files, may have changed.
fn comes_again(moved: &[MessageKey], request: &[ClientMessage<'_>]) -> bool {
    let Some(closing) = moved.last().filter(|closing| !closing.is_human && closing.identity.is_some()) else {
        return false;
    };
    request.windows(moved.len()).any(|place| {
        let is_closed = place.last().is_some_and(|last| is_same(closing, last));
        is_closed && moved.iter().zip(place).all(|(ours, sent)| ours.is_human == sent.message.is_human())
    })
}

fn is_same(ours: &MessageKey, sent: &ClientMessage<'_>) -> bool {
    ours.bytes == sent.bytes || ours.is(sent.identity())
}

/// Whether neither version of a changed message is a human message.
fn is_small_edit(ours: &MessageKey, sent: &ClientMessage<'_>) -> bool {
    !ours.is_human && !sent.message.is_human() && ours.identity.is_some() && sent.identity().is_some()
}

/// Whether the client compacted the conversation itself: the request is shorter, and repeats a later answer after the first difference.
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

/// Whether a request contains a summary by its client that the conversation does not have. Some clients keep no answer beside the
/// summary, so that nothing else shows which conversation was compacted.
pub(crate) fn has_new_summary(conversation: &[MessageKey], request: &[ClientMessage<'_>]) -> bool {
    let is_new = |sent: &ClientMessage<'_>| conversation.iter().all(|key| key.bytes != sent.bytes);
    request.iter().any(|sent| sent.message.is_client_summary() && is_new(sent))
}

/// Counts the answers and tool results of a conversation that a request repeats, at any position.
pub(crate) fn shared_answers(conversation: &[MessageKey], request: &[ClientMessage<'_>]) -> usize {
    let shared: HashSet<MessageIdentity> = conversation.iter().filter_map(|key| key.identity).collect();
    let is_shared = |sent: &&ClientMessage<'_>| {
        !matches!(sent.message.role(), Role::User | Role::System | Role::Developer)
            && sent.identity().is_some_and(|identity| shared.contains(&identity))
    };
    request.iter().filter(is_shared).count()
}

/// Pairs the items at the end of a view with the client's messages that repeat them. Items without text of their own that the client left
/// out are not paired. Items that were hidden from the client are paired with the recorded message.
pub(crate) fn align(
    view: &[Message],
    first_own: usize,
    repeated: &[Message],
    mut projection: Projection<'_>,
) -> ClientBytes {
    let seen = projection.seen(view);
    let (mut item, mut sent) = (view.len(), repeated.len());
    let (mut worded, mut moved) = (Vec::new(), Vec::new());
    while item > first_own && sent > 0 {
        let (Some(ours), Some(message)) = (view.get(item - 1), repeated.get(sent - 1)) else {
            break;
        };
        let our_identity = OnceCell::new();
        let ours_is = || *our_identity.get_or_init(|| identity_of(ours));
        let seen = seen.get(item - 1).copied().flatten();
        let comes_back = |seen: ClientForm| identity_of(message).is_some_and(|identity| seen.is(identity));
        if seen.is_some_and(comes_back) {
            worded.push((item - 1, ours.clone()));
            item -= 1;
            sent -= 1;
        } else if seen.is_some_and(|seen| seen.may_lack) {
            worded.push((item - 1, ours.clone()));
            item -= 1;
        } else if ours.json() == message.json() || ours_is() == identity_of(message) {
            worded.push((item - 1, message.clone()));
            item -= 1;
            sent -= 1;
        } else if ours_is().is_none() {
            item -= 1;
        } else if identity_of(message).is_none() {
            sent -= 1;
        } else if worded.last().is_some_and(|(next, _)| *next == item) && is_shortened(ours, message) {
            worded.push((item - 1, message.clone()));
            item -= 1;
            sent -= 1;
        } else if let Some(count) = moved_items(view.get(first_own..item).unwrap_or_default(), message) {
            moved.extend(item - count..item);
            item -= count;
        } else {
            break;
        }
    }
    // The messages before the first question may have moved as well.
    let leading = view.get(..item).unwrap_or_default();
    let is_moved =
        sent == 0 && first_own == 0 && is_exchange(leading) && seen.iter().take(item).all(Option::is_none);
    if is_moved && worded.last().is_some_and(|(next, _)| *next == item) {
        moved.extend(0..item);
        item = 0;
    }
    worded.reverse();
    ClientBytes { from: item, worded, moved }
}

fn is_shortened(ours: &Message, message: &Message) -> bool {
    match (Opening::of(ours), Opening::of(message)) {
        (Some(was), Some(is)) => was.is_shortened_to(is),
        _ => false,
    }
}

/// Whether these messages have the form that clients move: few, ending with an answer, without tool calls.
fn is_exchange(messages: &[Message]) -> bool {
    (1..=MOST_MOVED_MESSAGES).contains(&messages.len())
        && messages.last().is_some_and(|last| last.role() == Role::Assistant)
        && !messages.iter().any(|item| item.has_calls() || item.has_results())
}

/// Returns the number of items behind the one that a message repeats, if its client shows them at a later position.
fn moved_items(view: &[Message], message: &Message) -> Option<usize> {
    let identity = identity_of(message);
    (1..=MOST_MOVED_MESSAGES).find(|count| {
        let Some((before, moved)) =
            view.len().checked_sub(count + 1).and_then(|at| view.get(at..)?.split_first())
        else {
            return false;
        };
        is_exchange(moved) && identity_of(before) == identity
    })
}

#[cfg(test)]
#[path = "prefix_match_tests.rs"]
mod tests;
