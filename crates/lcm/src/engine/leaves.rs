//! Leaves: the content of each chunk, its share of the budget, and the text.
//!
//! One summary by rules of everything that is compacted decides which exact strings matter most; each leaf contains
//! those of its own chunk. The budget is divided by what the chunks need for this, and the rest by how much more they
//! contain: ten short messages may contain more than one long printout. What a chunk does not use, the next ones get.

use std::collections::HashSet;
use std::ops::Range;

use throughline_compaction::{
    AnchorKind, Ledger, Maker, Plan, RuleSummariser, Section, Summariser, SummaryDocument, SummaryKind,
    SummaryRequest,
};
use throughline_store::{NodeHead, SummaryNode};

use crate::engine::compaction::{NodeCompaction, NodeIndex, standing};
use crate::engine::expand_hint::tell_leaf;
use crate::engine::merge::{BudgetShares, LEAST_NODE_TOKENS, LeafNeed};
use crate::engine::node_writer::{LeafMessages, NodeSource, NodeWriter};
use crate::engine::outcome::{CompactionStop, NodeReport};
use crate::engine::render::{NodeText, heading, node_text};

/// A chunk: with its leaf, or with what that is written from.
pub(crate) struct LeafChunk<'a> {
    pub(crate) range: Range<usize>,
    pub(crate) state: ChunkState<'a>,
}

/// How far a chunk has come.
pub(crate) enum ChunkState<'a> {
    /// It has its leaf.
    Written(Box<NodeHead>),
    /// It has none yet.
    Open(Box<LeafDraft<'a>>),
}

/// A leaf that is to be written.
pub(crate) struct LeafDraft<'a> {
    source: NodeSource<'a>,
    /// Strings it should tell, those that matter most.
    picks: Vec<String>,
    wish: LeafNeed,
}

/// Least tokens of a leaf beside its exact strings.
const BESIDE_PICKS_TOKENS: u64 = 120;
/// Rules seldom fill their budget, so a summary of everything is given this share of it.
const OVERALL_PERCENT: u64 = 125;
/// Stands before strings that a leaf's own words leave out.
const ALSO_EXACT: &str = "also exact in the record:";
/// About what that line costs without them.
const ALSO_EXACT_TOKENS: u64 = 8;

/// Part of a leaf's room for its own words, by who writes it; the rest is for strings they leave out. Rules quote: from 50
/// to 60 % a view holds most of what was needed later, by measure. A model tells more than it quotes.
fn own_words_percent(maker: Maker) -> u64 {
    match maker {
        Maker::Rules => 55,
        Maker::Model => 85,
    }
}

impl NodeCompaction<'_> {
    /// Finds out what each chunk without a leaf has to say.
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
            // A pruned head is summarised too: the first chunk reaches back to it.
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

    /// One summary of everything that is compacted, by rules.
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

    /// Room for new leaves beside nodes that are shown.
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

    /// Writes and keeps the leaf of a chunk.
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
        // At most half of what it covers, or there would be little point.
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

    /// Adds strings that a document does not tell, as far as they fit.
    fn add_picks(&self, document: &mut SummaryDocument, picks: &[String], room_tokens: u64) {
        let markdown = document.to_markdown();
        let mut told: HashSet<&str> = HashSet::new();
        AnchorKind::scan(&markdown, |anchor, _| {
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

/// The strings of a document that stand last in a stretch of messages, in the document's order.
fn picks(document: &SummaryDocument, whole: &Ledger, stretch: &Range<usize>) -> Vec<String> {
    let mut seen: HashSet<String> = HashSet::new();
    let mut picks = Vec::new();
    AnchorKind::scan(&document.to_markdown(), |anchor, _| {
        let is_here = whole.anchor(anchor).is_some_and(|info| stretch.contains(&(info.last as usize)));
        if is_here && seen.insert(anchor.to_owned()) {
            picks.push(anchor.to_owned());
        }
    });
    picks
}
