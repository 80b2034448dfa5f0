//! Where a request stands in a conversation that is known: it goes on, it leaves it somewhere, or it is another one.
//!
//! A pure comparison of two lists. What says nothing of its own is passed over on either side. Inside what was compacted
//! away an edit is of no account unless a person's words changed: the model is not shown that part any more.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::sync::OnceLock;

use throughline_engine::ClientBytes;
use throughline_transcript::{Message, Role};

use crate::lookup::message_key::{
    ByteHash, ClientForm, MessageIdentity, MessageKey, Opening, bytes_of, identity_of,
};
use crate::recall::client_view::Projection;

/// The most messages a client shows anew before each question: two exchanges, files and pictures.
const MOST_MOVED_MESSAGES: usize = 4;

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

    fn opening(&self) -> Option<Opening> {
        Opening::of(self.message)
    }

    /// As it is recognised later on.
    pub(crate) fn known(&self) -> MessageKey {
        MessageKey::new(self.bytes, self.identity(), self.message)
    }
}

/// How a request stands to a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PrefixMatch {
    /// Messages of the conversation that the request repeats, from its first on.
    pub(crate) known: usize,
    /// Messages of the request that repeat them.
    pub(crate) repeated: usize,
    /// How many of them are worded anew or stand elsewhere.
    pub(crate) reworded: usize,
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
    let (mut known, mut repeated, mut reworded) = (0, 0, 0);
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
            (Some(_), Some(sent)) => {
                let (ours, rest) = (conversation.get(known..), request.get(repeated..));
                let (ours, rest) = (ours.unwrap_or_default(), rest.unwrap_or_default());
                if is_shortened_question(ours, rest) {
                    pair(known, sent);
                    known += 1;
                    repeated += 1;
                } else if let Some(moved) = moved_messages(ours, rest) {
                    known += moved;
                } else {
                    return PrefixMatch { known, repeated, reworded };
                }
                reworded += 1;
            }
            _ => return PrefixMatch { known, repeated, reworded },
        }
    }
}

/// Whether a request has the question that the conversation has here without what its client put behind it, and the same answer.
fn is_shortened_question(conversation: &[MessageKey], request: &[ClientMessage<'_>]) -> bool {
    let ([question, ..], [sent, ..]) = (conversation, request) else { return false };
    let is_shortened = || match (question.opening(), sent.opening()) {
        (Some(was), Some(is)) => was.is_shortened_to(is),
        _ => false,
    };
    // Most requests of other conversations have another answer here, which takes no reading to see.
    is_answered_alike(conversation, request) && is_shortened()
}

/// Whether what follows the first message is the same answer on both sides, or one that the conversation does not have yet.
fn is_answered_alike(conversation: &[MessageKey], request: &[ClientMessage<'_>]) -> bool {
    let Some(repeated) = request.get(1).filter(|sent| sent.message.role() == Role::Assistant) else {
        return false;
    };
    conversation.get(1).is_none_or(|answer| is_same(answer, repeated))
}

/// How many messages of the conversation the request has further on: what its client shows before the newest question only, such as the
/// files it works on and a word of thanks. Here the request goes on with the question that followed, and its answer.
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

/// Whether the request has these messages: the same speakers, and the same answer at their end. What a person's part of it says, such as
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

/// The client's words for the end of a view, item by item. Items that say nothing of their own and that the client left out are
/// not among them; those it knows nothing of stay in our words.
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
    // What stood before the first question may have moved, too.
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

/// Whether messages may be what a client shows anew before each question.
fn is_exchange(messages: &[Message]) -> bool {
    (1..=MOST_MOVED_MESSAGES).contains(&messages.len())
        && messages.last().is_some_and(|last| last.role() == Role::Assistant)
        && !messages.iter().any(|item| item.has_calls() || item.has_results())
}

/// How many items at the end of a view stand behind the one that a message repeats: its client shows them further on.
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
