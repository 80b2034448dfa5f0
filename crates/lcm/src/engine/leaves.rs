//! Leaves: the content of each chunk, its share of the budget, and the text.
//!
//! One summary by rules of everything that is compacted decides which exact strings matter most; each leaf contains those of its own chunk.
//! The budget is divided by what the chunks need for this, and the rest by how much more they contain: ten short messages may contain more
//! than one long printout. Space that a chunk does not use goes to the next ones.

use std::collections::HashSet;
use std::ops::Range;

use throughline_compaction::{
    Ledger, Maker, Plan, RuleSummariser, Section, Summariser, SummaryDocument, SummaryKind, SummaryRequest,
    scan_anchors,
};
use throughline_store::{NodeHead, SummaryNode};

use crate::engine::compaction::{NodeCompaction, NodeIndex, standing};
use crate::engine::expand_hint::tell_leaf;
use crate::engine::merge::{BudgetShares, LEAST_NODE_TOKENS, LeafNeed};
use crate::engine::node_writer::{LeafMessages, NodeSource, NodeWriter};
use crate::engine::outcome::{CompactionStop, NodeReport};
use crate::engine::render::{NodeText, heading, node_text};

/// A chunk with its leaf, or with the source for it.
pub(crate) struct LeafChunk<'a> {
    pub(crate) range: Range<usize>,
    pub(crate) state: ChunkState<'a>,
}

/// The state of a chunk.
pub(crate) enum ChunkState<'a> {
    /// It has its leaf.
    Written(Box<NodeHead>),
    /// It has none yet.
    Open(Box<LeafDraft<'a>>),
}

/// A leaf to write.
pub(crate) struct LeafDraft<'a> {
    source: NodeSource<'a>,
    /// Strings that it should contain, the most important ones.
    picks: Vec<String>,
    wish: LeafNeed,
}

/// The minimum tokens of a leaf besides its exact strings.
const BESIDE_PICKS_TOKENS: u64 = 120;
/// Rules rarely fill their budget, so a summary of everything gets this percentage of it.
const OVERALL_PERCENT: u64 = 125;
/// The text before strings that a leaf's own text does not contain.
const ALSO_EXACT: &str = "also exact in the record:";
/// The approximate tokens of that text.
const ALSO_EXACT_TOKENS: u64 = 8;

/// Returns the percentage of a leaf's budget for its own text, by its author; the rest is for strings that the text does not contain. Rules
/// quote: from 50 to 60 % a view has most of what was needed later, as measured. A model retells more than it quotes.
fn own_words_percent(maker: Maker) -> u64 {
    match maker {
        Maker::Rules => 55,
        Maker::Model => 85,
    }
}

impl NodeCompaction<'_> {
    /// Determines the needs of each chunk without a leaf.
    pub(crate) async fn weighed<'a>(
        &'a self,
        cut: Vec<(Range<usize>, Option<NodeHead>)>,
        shown_text: &'a str,
        plan: &Plan,
        writer: &NodeWriter<'_>,
    ) -> Vec<LeafChunk<'a>> {
        let conversation = self.conversation;
        let whole = Ledger::of(&conversation.messages, self.groups, self.redactor);
        let overall = self.overall(&whole, shown_text, plan, writer).await;
        let mut chunks = Vec::with_capacity(cut.len());
        let mut from = plan.head.start;
        for (range, leaf) in cut {
            // A pruned head is summarised too: the first chunk includes it.
            let reach = from..range.end;
            from = range.end;
            let state = match leaf {
                Some(leaf) => ChunkState::Written(Box::new(leaf)),
                None => {
                    let follows_head = reach.start == plan.head.start && plan.head.end == range.start;
                    let first = if follows_head { plan.head.start } else { range.start };
                    let stretch = LeafMessages {
                        messages: conversation.messages.get(first..range.end).unwrap_or_default(),
                        sizes: conversation.sizes.get(first..range.end).unwrap_or_default(),
                        first,
                        head: range.start - first,
                    };
                    let source = NodeSource::leaf(stretch, shown_text, &whole, self.redactor);
                    let picks = picks(&overall, &whole, &reach);
                    let needs_tokens = BESIDE_PICKS_TOKENS + self.count(&picks.join(" "));
                    let most_tokens = self.room().all_tokens.min(source.tokens() / 2);
                    let wants_tokens = writer.wants_tokens(&source, most_tokens).await.max(needs_tokens);
                    let wish = LeafNeed { needs_tokens, wants_tokens };
                    ChunkState::Open(Box::new(LeafDraft { source, picks, wish }))
                }
            };
            chunks.push(LeafChunk { range, state });
        }
        chunks
    }

    /// Returns one summary by rules of everything to compact.
    async fn overall(
        &self,
        whole: &Ledger,
        shown_text: &str,
        plan: &Plan,
        writer: &NodeWriter<'_>,
    ) -> SummaryDocument {
        let request = SummaryRequest {
            messages: &self.conversation.messages,
            groups: self.groups,
            sizes: &self.conversation.sizes,
            ledger: whole,
            plan,
            span: plan.middle.clone(),
            earlier: None,
            focus: writer.focus,
            manner: SummaryKind::default(),
            shown_text,
            budget_tokens: self.room().all_tokens.saturating_mul(OVERALL_PERCENT) / 100,
            count_tokens: writer.count_tokens,
        };
        RuleSummariser.summarise(request).await.unwrap_or_default()
    }

    /// Returns the space for new leaves besides existing nodes.
    pub(crate) fn shares(&self, known: &NodeIndex, chunks: &[LeafChunk<'_>]) -> BudgetShares {
        let chunk_tokens: u64 = chunks.iter().map(|chunk| self.tokens_of(chunk.range.clone())).sum();
        let room_tokens = self.room().for_new(&standing(&known.shown));
        let mut shares = BudgetShares::new(room_tokens.min(self.budgets.summary_tokens(chunk_tokens, 0)));
        for chunk in chunks {
            match &chunk.state {
                ChunkState::Written(leaf) => shares.give(leaf.node.tokens),
                ChunkState::Open(open) => shares.ask(open.wish),
            }
        }
        shares
    }

    /// Tokens of a range of messages.
    pub(crate) fn tokens_of(&self, range: Range<usize>) -> u64 {
        self.conversation.sizes.get(range).unwrap_or_default().iter().sum()
    }

    /// Writes and stores the leaf of a chunk.
    pub(crate) async fn leaf(
        &self,
        range: &Range<usize>,
        open: &LeafDraft<'_>,
        known: &NodeIndex,
        shares: &mut BudgetShares,
        writer: &NodeWriter<'_>,
        told: &mut NodeReport,
    ) -> Result<NodeText, CompactionStop> {
        let source = &open.source;
        let messages = self.conversation.messages.get(range.clone()).unwrap_or_default();
        let mut node = SummaryNode {
            level: SummaryNode::LEAF_LEVEL,
            messages: range.len() as u64,
            source_tokens: source.tokens(),
            focus: writer.focus.map(str::to_owned),
            ..SummaryNode::default()
        };
        tell_leaf(&mut node, messages, &source.ledger, self.redactor);
        let sources = known.places.runs(range.clone());
        let unkept = self.unkept(&sources, &node);
        let above_tokens = self.count(&heading(&unkept));
        let share_tokens = shares.of(open.wish).saturating_sub(above_tokens);
        // At most half of what it covers, or it would save too little.
        let room_tokens = share_tokens.min(source.tokens() / 2).max(LEAST_NODE_TOKENS);
        let own_words = own_words_percent(writer.summariser.maker());
        let mut written = writer.leaf(source, room_tokens * own_words / 100).await?;
        let shown_tokens = self.count(&node_text(&unkept, &written.document)).saturating_sub(above_tokens);
        self.add_picks(&mut written.document, &open.picks, room_tokens.saturating_sub(shown_tokens));
        told.add(&written);
        let is_leaf = true;
        let words = self.keep(written, sources, node, is_leaf).await?;
        shares.take(open.wish, words.head.node.tokens);
        Ok(words)
    }

    /// Adds strings that a document does not contain, as far as they fit.
    fn add_picks(&self, document: &mut SummaryDocument, picks: &[String], room_tokens: u64) {
        let markdown = document.to_markdown();
        let mut told: HashSet<&str> = HashSet::new();
        scan_anchors(&markdown, |anchor, _| {
            told.insert(anchor);
        });
        let mut left = room_tokens.saturating_sub(ALSO_EXACT_TOKENS);
        let mut line = String::new();
        for pick in picks.iter().filter(|pick| !told.contains(pick.as_str())) {
            let cost = self.count(pick) + 1;
            if cost <= left {
                left -= cost;
                line.push(' ');
                line.push_str(pick);
            }
        }
        if !line.is_empty() {
            let line = format!("{ALSO_EXACT}{line}");
            let line = self.redactor.map_or_else(|| line.clone(), |it| it.redact(&line).into_owned());
            document.add(Section::CriticalContext, line);
        }
    }
}

/// Returns the strings of a document whose last occurrence is in a range of messages, in the document's order.
fn picks(document: &SummaryDocument, whole: &Ledger, stretch: &Range<usize>) -> Vec<String> {
    let mut seen: HashSet<String> = HashSet::new();
    let mut picks = Vec::new();
    scan_anchors(&document.to_markdown(), |anchor, _| {
        let is_here = whole.anchor(anchor).is_some_and(|info| stretch.contains(&(info.last as usize)));
        if is_here && seen.insert(anchor.to_owned()) {
            picks.push(anchor.to_owned());
        }
    });
    picks
}
