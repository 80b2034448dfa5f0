//! A compaction: old messages become leaves, older nodes are condensed if the budget is exceeded, and a view is
//! assembled.
//!
//! Every node is recorded as soon as it is written, so an interrupted attempt loses no work: the next one cuts the same
//! chunks and finds their leaves.

use std::collections::HashMap;
use std::ops::Range;

use throughline_compaction::{
    Budgets, Conversation, Earlier, Ledger, Maker, NoOpReason, Options, PayCheck, Plan, PruneRules, Reach,
    Rendition, Section, SummaryDocument, assemble, find_summary, is_acknowledgement, preview, prune,
    shown_text,
};
use throughline_engine::Snapshot;
use throughline_redact::Redactor;
use throughline_store::{
    Child, MessageRun, Millis, NewNode, NodeHead, Result as StoreResult, SessionId, StoreError, Summary,
    SummaryId, SummaryNode,
};
use throughline_tokens::{ContentProfile, TextProfile, TokenModel};
use throughline_transcript::{Groups, Message, SharedText, decode_message};

use crate::engine::chunks::chunks;
use crate::engine::expand_hint::tell_condensed;
use crate::engine::leaves::{ChunkState, LeafChunk};
use crate::engine::locations::MessageLocations;
use crate::engine::merge::{BudgetShares, NodeBudget, NodeSize, level_above};
use crate::engine::node_writer::{NodeDraft, NodeWriter, RULES, fit};
use crate::engine::outcome::{CompactionStop, LcmView, NodeReport};
use crate::engine::render::{NodeText, message_text, node_text, notes};
use crate::limits::LcmLimits;
use crate::owner_store::{OwnerStore, times, top_nodes};

/// The input of a compaction.
pub(crate) struct NodeCompaction<'a> {
    pub(crate) record: &'a OwnerStore,
    pub(crate) limits: &'a LcmLimits,
    pub(crate) budgets: &'a Budgets,
    pub(crate) prune: PruneRules,
    pub(crate) redactor: Option<&'a Redactor>,
    pub(crate) token_model: &'a TokenModel,
    pub(crate) conversation: &'a Snapshot,
    pub(crate) groups: &'a Groups,
    pub(crate) now_ms: Millis,
}

/// The existing nodes.
pub(crate) struct NodeIndex {
    pub(crate) places: MessageLocations,
    /// The nodes in the view, oldest first.
    pub(crate) shown: Vec<NodeText>,
    /// Nodes made since, which belong to no view.
    loose: Vec<NodeHead>,
}

/// The compacted part, as ranges of messages.
struct MiddleRanges {
    /// Messages to summarise, as contiguous ranges.
    stretches: Vec<Range<usize>>,
    /// Summaries that arrived as messages, with their acknowledgements.
    found: Vec<Range<usize>>,
}

impl NodeCompaction<'_> {
    pub(crate) fn count(&self, text: &str) -> u64 {
        self.token_model.estimate(&TextProfile::of(text))
    }

    fn count_message(&self, message: &Message) -> u64 {
        self.token_model.estimate_content(&ContentProfile::of_message(message))
    }

    /// Plans the cut of the conversation.
    pub(crate) fn cut(&self, force: bool) -> Result<Plan, NoOpReason> {
        let conversation = Conversation {
            wire_format: self.conversation.wire_format,
            messages: &self.conversation.messages,
            groups: self.groups,
            sizes: &self.conversation.sizes,
            ledger: None,
            fixed_tokens: self.conversation.fixed_tokens,
        };
        let count_tokens = |text: &str| self.count(text);
        let count_message = |message: &Message| self.count_message(message);
        let options = Options {
            force,
            focus: None,
            budgets: self.budgets,
            prune: self.prune,
            redactor: self.redactor,
            corrections: &[],
            recall: None,
            pay: PayCheck::Skip,
            cut_at: None,
            tells_pinned: false,
            shown_tokens: &|tokens| tokens,
            count_tokens: &count_tokens,
            count_message: &count_message,
            clock_us: &|| 0,
        };
        preview(&conversation, &options).plan
    }

    /// Writes only the leaves of the part that would be compacted. Returns how many messages have one.
    pub(crate) async fn prepare(
        &self,
        plan: &Plan,
        writer: &NodeWriter<'_>,
    ) -> Result<(usize, NodeReport), CompactionStop> {
        let known = self.known(plan).await?;
        let ranges = self.middle_ranges(plan, &known.places);
        let shown = shown_text(&self.conversation.messages, plan, &self.head_renditions(plan));
        let cut = self.chunks(&ranges, &known, None);
        let chunks = self.weighed(cut, &shown, plan, writer).await;
        let mut shares = self.expected_shares(&known, &chunks, plan);
        let mut told = NodeReport::default();
        let mut covered = 0;
        let last = chunks.len().saturating_sub(1);
        for (at, LeafChunk { range, state }) in chunks.iter().enumerate() {
            if let ChunkState::Open(open) = state {
                // The last chunk may still grow by the next messages.
                if at == last {
                    break;
                }
                self.leaf(range, open, &known, &mut shares, writer, &mut told).await?;
            }
            covered += range.len();
        }
        Ok((covered, told))
    }

    /// Makes the whole view.
    pub(crate) async fn make(&self, plan: Plan, writer: &NodeWriter<'_>) -> Result<LcmView, CompactionStop> {
        let known = self.known(&plan).await?;
        if known.places.len() < plan.middle.end {
            return Err(StoreError::Database {
                what: "compacting messages",
                source: "they are not recorded yet".into(),
            }
            .into());
        }
        let ranges = self.middle_ranges(&plan, &known.places);
        let cut = self.chunks(&ranges, &known, writer.focus);
        let mut told = NodeReport::default();
        let mut new: Vec<(usize, NodeText)> = Vec::new();
        for found in &ranges.found {
            new.push((found.start, self.found_leaf(found, &known).await?));
        }
        let renditions = self.head_renditions(&plan);
        let shown = shown_text(&self.conversation.messages, &plan, &renditions);
        let chunks = self.weighed(cut, &shown, &plan, writer).await;
        let mut shares = self.shares(&known, &chunks);
        for (_, words) in &new {
            shares.give(words.head.node.tokens);
        }
        for LeafChunk { range, state } in &chunks {
            let words = match state {
                ChunkState::Written(head) => {
                    told.found += 1;
                    self.words_of(head.id).await?
                }
                ChunkState::Open(open) => {
                    self.leaf(range, open, &known, &mut shares, writer, &mut told).await?
                }
            };
            new.push((range.start, words));
        }
        new.sort_by_key(|(start, _)| *start);
        let fresh = new.len().min(self.limits.fan_in);
        let NodeIndex { shown, loose, .. } = known;
        let mut nodes: Vec<NodeText> =
            shown.into_iter().chain(new.into_iter().map(|(_, words)| words)).collect();
        let room = self.room();
        while let Some(step) = room.next(&standing(&nodes), fresh) {
            let parts = nodes.get(step.clone()).unwrap_or_default();
            let made = self.condensed(parts, &loose, &room, writer, &mut told).await?;
            nodes.splice(step, [made]);
        }
        Ok(self.assembled(plan, &renditions, &nodes, told))
    }

    /// Returns the first messages as they will be shown.
    fn head_renditions(&self, plan: &Plan) -> HashMap<usize, Rendition> {
        let head = self.conversation.messages.get(plan.head.clone()).unwrap_or_default();
        let head_ledger = Ledger::of(head, &Groups::of(head), self.redactor);
        let head_plan =
            Plan { middle: plan.head.end..plan.head.end, tail: plan.head.end..plan.head.end, ..plan.clone() };
        prune(head, &head_plan, &head_ledger, self.prune).0
    }

    fn assembled(
        &self,
        plan: Plan,
        renditions: &HashMap<usize, Rendition>,
        nodes: &[NodeText],
        told: NodeReport,
    ) -> LcmView {
        let conversation = self.conversation;
        let messages = &conversation.messages;
        let document = notes(nodes);
        let stands_for = nodes.iter().map(|node| node.head.node.messages as usize).sum();
        let text = |kept: usize| message_text(&document, stands_for, kept);
        let (items, _) = assemble(conversation.wire_format, messages, self.groups, &plan, renditions, text);
        let (mut tokens_after, mut summary_tokens) = (conversation.fixed_tokens, 0);
        for item in &items {
            let tokens = match item {
                throughline_compaction::ViewItem::Verbatim(at) => {
                    conversation.sizes.get(*at).copied().unwrap_or(0)
                }
                other => {
                    let json = other.json(messages).to_owned();
                    let message = decode_message(SharedText::new(json));
                    message.map_or(0, |message| self.count_message(&message))
                }
            };
            if matches!(item, throughline_compaction::ViewItem::Summary(_)) {
                summary_tokens = tokens;
            }
            tokens_after = tokens_after.saturating_add(tokens);
        }
        let nodes = nodes.iter().map(|node| node.head.id).collect();
        LcmView { items, plan, nodes, document, tokens_after, summary_tokens, told }
    }

    pub(crate) fn room(&self) -> NodeBudget {
        let cap = self.budgets.summary_cap_tokens;
        let all_tokens = self.limits.nodes_tokens.unwrap_or(cap).min(cap.max(1)).max(1);
        NodeBudget {
            all_tokens,
            older_tokens: all_tokens * self.limits.older_percent / 100,
            condensed_tokens: all_tokens * self.limits.condensed_percent / 100,
            fan_in: self.limits.fan_in,
        }
    }

    /// Returns the shares expected at the threshold: messages until then need as much space as the present ones.
    fn expected_shares(&self, known: &NodeIndex, chunks: &[LeafChunk<'_>], plan: &Plan) -> BudgetShares {
        let mut shares = self.shares(known, chunks);
        let shown: u64 = known.shown.iter().map(|node| node.head.node.tokens).sum();
        let to_compact = self
            .budgets
            .threshold_tokens
            .saturating_sub(self.conversation.fixed_tokens)
            .saturating_sub(self.budgets.tail_tokens)
            .saturating_sub(self.tokens_of(plan.head.clone()).saturating_add(shown));
        let there: u64 = chunks.iter().map(|chunk| self.tokens_of(chunk.range.clone())).sum();
        shares.expect(there, to_compact);
        shares
    }

    async fn words_of(&self, id: SummaryId) -> StoreResult<NodeText> {
        let summary = self.record.ask(move |store, owner| store.summary(owner, id)).await?;
        Ok(self.words(&summary))
    }

    fn words(&self, summary: &Summary) -> NodeText {
        let document = SummaryDocument::parse(&summary.document);
        let mut head = summary.head();
        if summary.node().is_none() {
            head.node.tokens = self.count(&node_text(&head, &document));
        }
        NodeText { head, document }
    }

    /// Returns the recorded nodes that concern this plan.
    async fn known(&self, plan: &Plan) -> StoreResult<NodeIndex> {
        let conversation = Snapshot { cached_prompt: None, ..self.conversation.clone() };
        let middle = plan.middle.clone();
        let session = conversation.session.clone();
        let (places, summaries, loose) = self
            .record
            .ask(move |store, owner| {
                let places = MessageLocations::of(store, owner, &conversation)?;
                let mut summaries = Vec::new();
                let mut newest = SummaryId(0);
                for (_, id) in places.summaries().filter(|(at, _)| middle.contains(at)) {
                    newest = newest.max(id);
                    summaries.extend(top_nodes(store, owner, id)?);
                }
                let loose = store.nodes_since(owner, &session, newest)?;
                Ok((places, summaries, loose))
            })
            .await?;
        let shown = summaries.iter().map(|summary| self.words(summary)).collect();
        Ok(NodeIndex { places, shown, loose })
    }

    /// Returns the part of the middle to summarise: all messages of user and model except those that stay in view.
    fn middle_ranges(&self, plan: &Plan, places: &MessageLocations) -> MiddleRanges {
        let pinned = |at: usize| plan.pinned.as_ref().is_some_and(|pinned| pinned.contains(&at));
        let Earlier { summaries, .. } = &plan.earlier;
        let mut ranges = MiddleRanges { stretches: Vec::new(), found: Vec::new() };
        let mut at = plan.middle.start;
        while at < plan.middle.end {
            let message = self.conversation.messages.get(at);
            if !places.is_said(at) || pinned(at) {
                at += 1;
                continue;
            }
            if summaries.contains(&at) && message.is_some_and(|message| find_summary(message).is_some()) {
                let next = self.conversation.messages.get(at + 1);
                let answered = places.is_said(at + 1)
                    && at + 1 < plan.middle.end
                    && next.is_some_and(is_acknowledgement);
                let end = at + 1 + usize::from(answered);
                ranges.found.push(at..end);
                at = end;
                continue;
            }
            match ranges.stretches.last_mut() {
                Some(last) if last.end == at => last.end = at + 1,
                _ => ranges.stretches.push(at..at + 1),
            }
            at += 1;
        }
        ranges
    }

    /// Returns the chunks of the compacted part, each with its leaf if there is one.
    fn chunks(
        &self,
        ranges: &MiddleRanges,
        known: &NodeIndex,
        focus: Option<&str>,
    ) -> Vec<(Range<usize>, Option<NodeHead>)> {
        let leaves: Vec<(Range<usize>, &NodeHead)> = known
            .loose
            .iter()
            .rev()
            .filter(|node| node.node.level == SummaryNode::LEAF_LEVEL && node.node.focus.as_deref() == focus)
            .filter_map(|node| Some((known.places.range_of(&node.sources)?, node)))
            .collect();
        let taken: Vec<Range<usize>> = leaves.iter().map(|(range, _)| range.clone()).collect();
        let sizes = &self.conversation.sizes;
        let cut = chunks(&ranges.stretches, &taken, self.groups, sizes, self.limits.chunk_tokens.max(1));
        let leaf_of = |chunk: &Range<usize>| {
            leaves.iter().find(|(range, _)| range == chunk).map(|(_, node)| (*node).clone())
        };
        cut.into_iter().map(|chunk| (chunk.clone(), leaf_of(&chunk))).collect()
    }

    /// Returns a node that is not stored yet, with an id of maximum length.
    pub(crate) fn unkept(&self, sources: &[MessageRun], node: &SummaryNode) -> NodeHead {
        NodeHead {
            id: SummaryId(u64::from(u32::MAX)),
            session: self.conversation.session.clone(),
            created_ms: self.now_ms,
            author: String::new(),
            sources: sources.to_vec(),
            node: node.clone(),
        }
    }

    /// Stores a summary that arrived as a message as a leaf.
    async fn found_leaf(&self, found: &Range<usize>, known: &NodeIndex) -> Result<NodeText, CompactionStop> {
        let messages = self.conversation.messages.get(found.clone()).unwrap_or_default();
        let sizes = self.conversation.sizes.get(found.clone()).unwrap_or_default();
        let body = messages.first().and_then(find_summary);
        let mut document = body.as_ref().map(|found| SummaryDocument::parse(&found.body)).unwrap_or_default();
        if let Some(carried) = body.and_then(|found| found.carried) {
            document.add(Section::CriticalContext, carried);
        }
        fit(&mut document, self.room().all_tokens, &|text| self.count(text));
        let written = NodeDraft {
            document,
            author: RULES.to_owned(),
            maker: Maker::Rules,
            facts: throughline_compaction::FactReport::default(),
            written_by: None,
            notes: Vec::new(),
        };
        let node = SummaryNode {
            messages: found.len() as u64,
            source_tokens: sizes.iter().sum(),
            expand_for: "notes that came in with the conversation".to_owned(),
            ..SummaryNode::default()
        };
        let sources = known.places.runs(found.clone());
        self.keep(written, sources, node, true).await.map_err(CompactionStop::from)
    }

    /// Returns a node that includes others: found among the unused ones, or written and stored.
    async fn condensed(
        &self,
        parts: &[NodeText],
        loose: &[NodeHead],
        room: &NodeBudget,
        writer: &NodeWriter<'_>,
        told: &mut NodeReport,
    ) -> Result<NodeText, CompactionStop> {
        let level = level_above(parts.iter().map(|part| part.head.node.level)).max(1);
        // On the top level, a node includes the children of other nodes of that level.
        let children: Vec<Child> = parts
            .iter()
            .flat_map(|part| match part.head.node.level {
                SummaryNode::TOP_LEVEL => part.head.node.children.clone(),
                _ => {
                    let (first_seq, end_seq) = part.head.between();
                    vec![Child { id: part.head.id, first_seq, end_seq }]
                }
            })
            .collect();
        let same = |node: &&NodeHead| {
            node.node.level == level
                && node.node.children == children
                && node.node.tokens <= room.of_condensed()
        };
        if let Some(known) = loose.iter().rev().find(same) {
            told.found += 1;
            return Ok(self.words_of(known.id).await?);
        }
        let documents = parts.iter().map(|part| part.document.clone()).collect();
        let reach = if level == 1 { Reach::Hours } else { Reach::Days };
        let written = writer.condensed(documents, reach, room.of_condensed()).await?;
        told.add(&written);
        let heads: Vec<&NodeHead> = parts.iter().map(|part| &part.head).collect();
        let mut node = SummaryNode {
            level,
            children,
            messages: heads.iter().map(|head| head.node.messages).sum(),
            source_tokens: heads.iter().map(|head| head.node.source_tokens).sum(),
            first_ms: heads.iter().filter_map(|head| head.node.first_ms).min(),
            last_ms: heads.iter().filter_map(|head| head.node.last_ms).max(),
            ..SummaryNode::default()
        };
        tell_condensed(&mut node, &heads);
        let runs = heads.iter().flat_map(|head| head.sources.iter().cloned()).collect();
        let sources = MessageRun::joined(runs).ok_or_else(|| StoreError::Database {
            what: "condensing nodes",
            source: "two of them cover the same message".into(),
        })?;
        let words = self.keep(written, sources, node, false).await?;
        Ok(words)
    }

    /// Stores a node. The times of a leaf's messages are read from the record.
    pub(crate) async fn keep(
        &self,
        written: NodeDraft,
        sources: Vec<MessageRun>,
        mut node: SummaryNode,
        is_leaf: bool,
    ) -> StoreResult<NodeText> {
        let NodeDraft { mut document, author, facts, .. } = written;
        let (session, now_ms): (SessionId, Millis) = (self.conversation.session.clone(), self.now_ms);
        let limit = self.room().all_tokens;
        // The heading counts too.
        let mut head = NodeHead { author: author.clone(), ..self.unkept(&sources, &node) };
        let mut tokens = self.count(&node_text(&head, &document));
        while tokens > limit && !document.is_empty() {
            fit(&mut document, limit.saturating_sub(tokens - limit).saturating_sub(8), &|text| {
                self.count(text)
            });
            let less = self.count(&node_text(&head, &document));
            if less >= tokens {
                break;
            }
            tokens = less;
        }
        node.tokens = tokens;
        let markdown = document.to_markdown();
        let target = self.record.nodes.clone();
        let (id, node) = self
            .record
            .ask(move |store, owner| {
                if is_leaf {
                    (node.first_ms, node.last_ms) = times(store, owner, &sources)?;
                }
                let facts = serde_json::json!(facts);
                let new = NewNode { author, document: markdown, sources, facts, node: node.clone() };
                Ok((target.put(store, owner, &session, new, now_ms)?, node))
            })
            .await?;
        head.id = id;
        head.node = node;
        Ok(NodeText { head, document })
    }
}

pub(crate) fn standing(nodes: &[NodeText]) -> Vec<NodeSize> {
    nodes.iter().map(|node| NodeSize { level: node.head.node.level, tokens: node.head.node.tokens }).collect()
}
