//! The tokens that each call of a conversation sent, by kind: the data of a chart of the context over time.
//!
//! A call names a session and a position in it, and so exactly one view: the session's first view, and its own messages up to that
//! position. The sizes of messages are estimates from when they were recorded. The provider's count of the prompt is the total, and the
//! part of it beyond the messages is the preamble.

use std::collections::HashMap;

use serde::Serialize;
use throughline_tokens::Usage;
use throughline_transcript::Role;

use crate::call::{PreambleId, StoredCall, UsageKind};
use crate::error::Result;
use crate::ids::{Millis, Owner, SessionId};
use crate::message::MessageHead;
use crate::savings::hour_writes;
use crate::sessions::session::Session;
use crate::store::Store;
use crate::views::item::ViewMessage;

/// Tokens of one prompt by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SentTokens {
    /// The system prompt and parameters.
    pub system: u64,
    /// Definitions of tools.
    pub tools: u64,
    /// Summaries.
    pub summary: u64,
    /// Messages of the user.
    pub user: u64,
    /// Messages of the model.
    pub assistant: u64,
    /// Results of tools.
    pub tool: u64,
}

impl SentTokens {
    fn messages(&self) -> u64 {
        self.summary + self.user + self.assistant + self.tool
    }

    fn add(&mut self, role: Role, tokens: u64) {
        match role {
            Role::Assistant => self.assistant += tokens,
            Role::Tool => self.tool += tokens,
            Role::System | Role::Developer => self.system += tokens,
            _ => self.user += tokens,
        }
    }

    /// Adds further messages.
    #[must_use]
    pub fn with_messages(mut self, heads: &[MessageHead]) -> Self {
        heads.iter().for_each(|head| self.add(head.speaker, head.tokens));
        self
    }

    /// Returns the tokens of a view, without the preamble.
    #[must_use]
    pub fn of_view(view: &[ViewMessage]) -> Self {
        let mut sent = Self::default();
        for shown in view {
            match (shown, shown.message()) {
                (ViewMessage::Summary { tokens, .. }, _) => sent.summary += tokens,
                (_, Some(message)) => sent.add(message.speaker(), shown.tokens()),
                (_, None) => sent.summary += shown.tokens(),
            }
        }
        sent
    }

    /// Adds the preamble, so that the sum is `total`. Messages with a larger estimate are scaled down.
    fn within(self, total: u64, preamble: PreambleBytes) -> Self {
        let messages = self.messages() + self.system;
        let scale = |tokens: u64| match messages > total {
            true => share(tokens, total, messages),
            false => tokens,
        };
        let fixed = total.saturating_sub(messages);
        let tools = share(fixed, preamble.tools, preamble.system + preamble.tools);
        Self {
            system: scale(self.system) + (fixed - tools),
            tools,
            summary: scale(self.summary),
            user: scale(self.user),
            assistant: scale(self.assistant),
            tool: scale(self.tool),
        }
    }
}

/// Returns `amount * part / whole`, without overflow; zero if `whole` is zero.
fn share(amount: u64, part: u64, whole: u64) -> u64 {
    let product = u128::from(amount) * u128::from(part);
    let shared = product.checked_div(u128::from(whole)).unwrap_or_default();
    u64::try_from(shared).unwrap_or(u64::MAX)
}

/// A call of a conversation, with the tokens it sent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallContext {
    /// Its position in the order of calls.
    pub id: u64,
    /// The session whose view was sent.
    pub session: SessionId,
    /// When it started.
    pub at_ms: Millis,
    /// The model that answered.
    pub model: String,
    /// The provider.
    pub provider: String,
    /// The task.
    pub task: String,
    /// Tokens by bucket.
    pub usage: Usage,
    /// Whether they are measured.
    pub usage_kind: UsageKind,
    /// The part of the cache writes that lasts an hour.
    pub cache_write_1h: u64,
    /// Cost in millionths of a dollar, if known.
    pub cost_micro_usd: Option<u64>,
    /// The cost of the same tokens without a cache.
    pub uncached_micro_usd: Option<u64>,
    /// Its duration.
    pub latency_ms: Option<u64>,
    /// Time until the first token.
    pub first_token_ms: Option<u64>,
    /// The error, if it failed.
    pub error: Option<String>,
    /// Why the cache was not read, if known.
    pub cache_miss: Option<String>,
    /// The position in the session up to which its view was sent.
    pub sent_to_seq: Option<u64>,
    /// The tokens sent, by kind; absent if unknown.
    pub sent: Option<SentTokens>,
}

/// Bytes of the two parts of a preamble, in whose proportion its tokens are divided.
#[derive(Clone, Copy, Default)]
struct PreambleBytes {
    system: u64,
    tools: u64,
}

/// The contents of one session's views.
struct Window {
    /// The view at its start.
    base: SentTokens,
    /// Its own messages, in order.
    own: Vec<MessageHead>,
}

impl CallContext {
    /// Returns the calls of a session's chain, in order, with the tokens each sent.
    pub fn of_chain(store: &dyn Store, owner: &Owner, session: &Session) -> Result<Vec<Self>> {
        let mut windows: HashMap<SessionId, WindowSums> = HashMap::new();
        let mut preambles: HashMap<PreambleId, PreambleBytes> = HashMap::new();
        let mut calls = Vec::new();
        for call in store.calls(owner, &session.id)? {
            if !windows.contains_key(&call.session) {
                windows
                    .insert(call.session.clone(), WindowSums::of(&Window::of(store, owner, &call.session)?));
            }
            let preamble = match &call.call.preamble {
                None => PreambleBytes::default(),
                Some(id) => match preambles.get(id) {
                    Some(known) => *known,
                    None => {
                        let bytes = preamble_bytes(store, id)?;
                        preambles.insert(id.clone(), bytes);
                        bytes
                    }
                },
            };
            let sums = windows.get(&call.session);
            calls.push(Self::of(call, sums, preamble));
        }
        Ok(calls)
    }

    fn of(call: StoredCall, window: Option<&WindowSums>, preamble: PreambleBytes) -> Self {
        let StoredCall { id, session, call } = call;
        let total = call.usage.prompt();
        let cache_write_1h = hour_writes(&call);
        let sent = match (call.sent_to_seq, window) {
            (Some(to_seq), Some(window)) if total > 0 => Some(window.up_to(to_seq).within(total, preamble)),
            _ => None,
        };
        Self {
            id,
            session,
            at_ms: call.at_ms,
            model: call.model,
            provider: call.provider,
            task: call.task,
            usage: call.usage,
            usage_kind: call.usage_kind,
            cache_write_1h,
            cost_micro_usd: call.cost_micro_usd,
            uncached_micro_usd: call.uncached_micro_usd,
            latency_ms: call.latency_ms,
            first_token_ms: call.first_token_ms,
            error: call.error,
            cache_miss: call.cache_miss,
            sent_to_seq: call.sent_to_seq,
            sent,
        }
    }
}

impl Window {
    fn of(store: &dyn Store, owner: &Owner, id: &SessionId) -> Result<Self> {
        let session = store.session(owner, id)?;
        let base = store.view(owner, id, Some(session.first_seq))?;
        Ok(Self { base: SentTokens::of_view(&base), own: store.message_heads(owner, id)? })
    }
}

/// Cumulative sums of a session's view after each of its messages.
struct WindowSums {
    base: SentTokens,
    after: Vec<(u64, SentTokens)>,
}

impl WindowSums {
    fn of(window: &Window) -> Self {
        let mut sum = window.base;
        let after = window.own.iter().map(|head| {
            sum.add(head.speaker, head.tokens);
            (head.seq, sum)
        });
        Self { base: window.base, after: after.collect() }
    }

    /// Returns the tokens sent up to, but not including, a position.
    fn up_to(&self, to_seq: u64) -> SentTokens {
        let count = self.after.partition_point(|(seq, _)| *seq < to_seq);
        count.checked_sub(1).and_then(|last| self.after.get(last)).map_or(self.base, |(_, sum)| *sum)
    }
}

fn preamble_bytes(store: &dyn Store, id: &PreambleId) -> Result<PreambleBytes> {
    let preamble = store.preamble(id)?.unwrap_or_default();
    let length = |part: &Option<String>| part.as_ref().map_or(0, |part| part.len() as u64);
    Ok(PreambleBytes { system: length(&preamble.system), tools: length(&preamble.tools) })
}

#[cfg(test)]
#[path = "context_map_tests.rs"]
mod tests;
