//! `lcm_expand`: the children of a node, or the messages it covers, page by page.

use serde::Serialize;
use throughline_store::{MessageRun, Millis, NodeHead, SessionId, StoredMessage, SummaryId};

use crate::recall::{RecallError, RecallReader, RecallResult, readable, text_tokens, unknown_node};

/// How far to expand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expansion {
    /// One step: the children of a condensed node, or the messages of a leaf.
    #[default]
    OneStep,
    /// To the messages themselves.
    Messages,
}

/// A request for an expansion.
#[derive(Clone, Debug, Default)]
pub struct ExpandQuery {
    /// The node to expand,
    pub node: Option<SummaryId>,
    /// or the message to show.
    pub message: Option<u64>,
    /// How far to expand.
    pub expansion: Expansion,
    /// Start with the message of this number, or with the node that covers it.
    pub from: Option<u64>,
    /// Of a long message, show the part with this text.
    pub around: Option<String>,
    /// Show a long message from this character on.
    pub offset: Option<usize>,
    /// The maximum tokens, within the configured limit.
    pub tokens: Option<u64>,
}

/// The result of an expansion.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ExpandResult {
    /// The expanded node.
    pub node: Option<NodeHead>,
    /// The items, in order.
    pub items: Vec<ExpandedItem>,
    /// The start of the next page: repeat the request with `from` set to this.
    pub next_from: Option<u64>,
    /// The start of the rest of the last message: repeat the request with this offset.
    pub next_offset: Option<usize>,
    /// The approximate tokens of the items.
    pub tokens: u64,
    /// The limit, if more was requested.
    pub capped_at: Option<u64>,
}

/// An item of an expansion.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ExpandedItem {
    /// A node.
    Node {
        /// Its properties.
        #[serde(flatten)]
        head: Box<NodeHead>,
        /// Its text.
        document: String,
    },
    /// A message.
    Message {
        /// Its position in the conversation.
        message: u64,
        /// The session it was appended to.
        session: SessionId,
        /// The author.
        role: &'static str,
        /// When the message was recorded.
        at_ms: Millis,
        /// Its text, or the part that fits.
        text: String,
        /// Number of characters before that part.
        before_chars: usize,
        /// Number of characters after it.
        after_chars: usize,
    },
}

/// Number of messages read at once.
const READ_AT_ONCE: u64 = 16;
/// The smallest page, even if fewer tokens were requested.
const LEAST_TOKENS: u64 = 200;
/// The approximate tokens around a message or node.
const AROUND_TOKENS: u64 = 24;
/// The minimum characters per token in texts written by agents.
const CHARS_A_TOKEN: usize = 3;

/// A page under construction.
struct ExpandPage {
    left: u64,
    expanded: ExpandResult,
}

impl ExpandPage {
    /// Adds an item unless the page is full; the first item is always added.
    fn add(&mut self, tokens: u64, item: impl FnOnce() -> ExpandedItem) -> bool {
        let cost = tokens.saturating_add(AROUND_TOKENS);
        if cost > self.left && !self.expanded.items.is_empty() {
            return false;
        }
        self.left = self.left.saturating_sub(cost);
        self.expanded.tokens = self.expanded.tokens.saturating_add(cost);
        self.expanded.items.push(item());
        true
    }
}

impl RecallReader<'_> {
    /// Expands a node, or shows a message of a conversation.
    pub fn expand(&self, session: &SessionId, ask: &ExpandQuery) -> RecallResult<ExpandResult> {
        let cap = self.limits.expand_tokens.max(LEAST_TOKENS);
        let capped_at = ask.tokens.filter(|wanted| *wanted > cap).map(|_| cap);
        let left = ask.tokens.unwrap_or(cap).clamp(LEAST_TOKENS, cap);
        let mut page = ExpandPage { left, expanded: ExpandResult { capped_at, ..ExpandResult::default() } };
        match (ask.node, ask.message) {
            (Some(node), None) => self.expand_node(node, ask, &mut page)?,
            (None, Some(seq)) => {
                let holder = self.session_of(&self.stretches(session)?, seq)?;
                let run = MessageRun { session: holder, first_seq: seq, end_seq: seq + 1 };
                self.add_messages(&[run], ask, &mut page)?;
            }
            (None, None) => {
                return Err(RecallError::NothingAsked("name a node, like n12, or the number of a message"));
            }
            (Some(_), Some(_)) => {
                return Err(RecallError::NothingAsked("name either a node or a message, not both"));
            }
        }
        Ok(page.expanded)
    }

    fn expand_node(&self, id: SummaryId, ask: &ExpandQuery, page: &mut ExpandPage) -> RecallResult<()> {
        let head = self.head(id)?;
        page.expanded.node = Some(head.clone());
        // A view's summary has nodes too.
        let top = match head.node.children.is_empty() {
            true => self.store.summary(self.owner, id).map_err(unknown_node)?.top_nodes(),
            false => Vec::new(),
        };
        if ask.expansion == Expansion::Messages || (head.node.children.is_empty() && top.is_empty()) {
            return self.add_messages(&head.sources, ask, page);
        }
        let from = ask.from.unwrap_or(0);
        let later = head.node.children.iter().filter(|child| child.end_seq > from).map(|child| child.id);
        for child in top.into_iter().chain(later) {
            let summary = self.store.summary(self.owner, child).map_err(unknown_node)?;
            let head = summary.head();
            let (first_seq, end_seq) = head.between();
            if end_seq <= from {
                continue;
            }
            let tokens = text_tokens(&summary.document);
            let item = || ExpandedItem::Node { head: Box::new(head), document: summary.document };
            if !page.add(tokens, item) {
                page.expanded.next_from = Some(first_seq);
                break;
            }
        }
        Ok(())
    }

    /// Adds messages of runs until the page is full.
    fn add_messages(
        &self,
        runs: &[MessageRun],
        ask: &ExpandQuery,
        page: &mut ExpandPage,
    ) -> RecallResult<()> {
        let from = ask.from.unwrap_or(0);
        for run in runs {
            let mut at = run.first_seq.max(from);
            while at < run.end_seq {
                let end = at.saturating_add(READ_AT_ONCE).min(run.end_seq);
                let part = MessageRun { session: run.session.clone(), first_seq: at, end_seq: end };
                for stored in self.store.messages_of_run(self.owner, &part)? {
                    if page.expanded.next_offset.is_some() || !add_message(&stored, ask, page) {
                        page.expanded.next_from = Some(stored.seq);
                        return Ok(());
                    }
                }
                at = end;
            }
        }
        Ok(())
    }
}

/// Adds a message, of a long one the part that was requested or that fits. Returns whether it fit.
fn add_message(stored: &StoredMessage, ask: &ExpandQuery, page: &mut ExpandPage) -> bool {
    let text = stored.decode().map(|message| readable(&message)).unwrap_or_default();
    let is_first = page.expanded.items.is_empty();
    let whole_tokens = text_tokens(&text);
    let room = page.left.saturating_sub(AROUND_TOKENS);
    let asked_for =
        if is_first { ask.offset.or_else(|| found_at(&text, ask.around.as_deref(), room)) } else { None };
    let fits = whole_tokens <= room;
    if !fits && !is_first {
        return false;
    }
    let start = if fits && ask.offset.is_none() { 0 } else { asked_for.unwrap_or(0) };
    let total = text.chars().count();
    let shown: String = match fits && start == 0 {
        true => text,
        false => within(&text, start, room),
    };
    let shown_chars = shown.chars().count();
    let before_chars = start.min(total);
    let after_chars = total.saturating_sub(before_chars + shown_chars);
    if after_chars > 0 {
        page.expanded.next_offset = Some(before_chars + shown_chars);
    }
    let tokens = text_tokens(&shown);
    page.add(tokens, || ExpandedItem::Message {
        message: stored.seq,
        session: stored.session.clone(),
        role: stored.role.name(),
        at_ms: stored.at_ms,
        text: shown,
        before_chars,
        after_chars,
    })
}

/// Returns the character at which a page with a passage starts: a little text before the passage, and more after it.
fn found_at(text: &str, around: Option<&str>, room_tokens: u64) -> Option<usize> {
    let around = around.map(str::trim).filter(|around| !around.is_empty())?;
    let at = text.find(around).or_else(|| {
        let (text, around) = (text.to_lowercase(), around.to_lowercase());
        text.find(&around)
    })?;
    let before = text.get(..at).map_or(0, |before| before.chars().count());
    let lead = usize::try_from(room_tokens).unwrap_or(usize::MAX) * CHARS_A_TOKEN / 4;
    Some(before.saturating_sub(lead))
}

/// Returns as many characters from a position on as fit.
fn within(text: &str, start: usize, room_tokens: u64) -> String {
    let room = usize::try_from(room_tokens).unwrap_or(usize::MAX);
    let mut chars = room.saturating_mul(CHARS_A_TOKEN + 1);
    loop {
        let piece: String = text.chars().skip(start).take(chars).collect();
        let tokens = text_tokens(&piece);
        if tokens <= room_tokens || chars <= 1 {
            return piece;
        }
        // Dense text has more tokens for its length: reduce by the excess.
        let share = usize::try_from(room_tokens.saturating_mul(90) / tokens.max(1)).unwrap_or(50);
        chars = (chars.saturating_mul(share.clamp(10, 90)) / 100).max(1);
    }
}

#[cfg(test)]
#[path = "expand_tests.rs"]
mod tests;
