//! Writes the text of a node: by the summariser in detail, then by the summariser tersely, then by rules, which always work.
//!
//! A leaf is written from its own messages only, a condensed node from the documents of its children: a call receives nothing else. The
//! result is masked, checked against the exact facts of its source and cut to its budget, as in the built-in compressor.

use throughline_compaction::{
    AbortReason, CountTokens, Detail, Earlier, FactReport, Ledger, Maker, Plan, Reach, RuleSummariser,
    Section, SummariseError, Summariser, SummaryDocument, SummaryKind, SummaryRequest, WrittenBy, check,
    summarise_all,
};
use throughline_redact::Redactor;
use throughline_transcript::{Groups, Message, Role, SharedText, WireFormat, decode_message, text_message};

/// The summariser, and how its answers are measured and masked.
pub(crate) struct NodeWriter<'a> {
    pub(crate) summariser: &'a dyn Summariser,
    pub(crate) rules: RulesStep,
    pub(crate) redactor: Option<&'a Redactor>,
    pub(crate) focus: Option<&'a str>,
    pub(crate) count_tokens: CountTokens<'a>,
}

/// When rules write a summary in place of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RulesStep {
    /// After every failure.
    Always,
    /// If waiting would not help.
    UnlessItPasses,
    /// Never; the failure is returned.
    Never,
}

/// The text of a node.
#[derive(Debug)]
pub(crate) struct NodeDraft {
    pub(crate) document: SummaryDocument,
    pub(crate) author: String,
    pub(crate) maker: Maker,
    pub(crate) facts: FactReport,
    pub(crate) written_by: Option<WrittenBy>,
    /// Messages for the user.
    pub(crate) notes: Vec<String>,
}

/// Why there is no text.
#[derive(Debug)]
pub(crate) struct WriteFailure {
    pub(crate) reason: AbortReason,
    pub(crate) detail: String,
}

/// The author of a text written without a model.
pub(crate) const RULES: &str = "rules";

/// Percentage of a node's budget that a summariser may fill; the rest is for facts added by the check.
const WRITER_PERCENT: u64 = 92;
/// The budget of a terse second attempt, as a percentage of the whole.
const TERSE_PERCENT: u64 = 60;
/// An answer longer than this percentage of its budget is requested again, tersely; a shorter one is trimmed.
const TOO_LONG_PERCENT: u64 = 150;

/// A range of a conversation.
pub(crate) struct LeafMessages<'a> {
    pub(crate) messages: &'a [Message],
    pub(crate) sizes: &'a [u64],
    /// Its start.
    pub(crate) first: usize,
    /// Number of its messages that stay in view and are left out.
    pub(crate) head: usize,
}

/// The source of a node.
pub(crate) struct NodeSource<'a> {
    messages: &'a [Message],
    groups: Groups,
    sizes: Vec<u64>,
    pub(crate) ledger: Ledger,
    plan: Plan,
    reach: Reach,
    /// Text shown elsewhere, which may be left out here.
    shown_text: &'a str,
    /// The documents it includes, if it is not a leaf.
    parts: Vec<SummaryDocument>,
}

impl<'a> NodeSource<'a> {
    /// Returns the source of a leaf: the messages that it covers. The whole conversation decides which of their exact strings matter.
    pub(crate) fn leaf(
        stretch: LeafMessages<'a>,
        shown_text: &'a str,
        whole: &Ledger,
        redactor: Option<&Redactor>,
    ) -> Self {
        let LeafMessages { messages, sizes, first, head } = stretch;
        let mut source = Self::of(messages, sizes.to_vec(), Reach::Minutes, shown_text, redactor);
        source.ledger.know_of(whole, first);
        source.plan.head = 0..head;
        source.plan.middle.start = head;
        source
    }

    fn of(
        messages: &'a [Message],
        sizes: Vec<u64>,
        reach: Reach,
        shown_text: &'a str,
        redactor: Option<&Redactor>,
    ) -> Self {
        let groups = Groups::of(messages);
        let ledger = Ledger::of(messages, &groups, redactor);
        let plan = Plan {
            head: 0..0,
            middle: 0..messages.len(),
            tail: messages.len()..messages.len(),
            pinned: None,
            earlier: Earlier::default(),
            summary_role: Role::User,
            acknowledge: false,
        };
        Self { messages, groups, sizes, ledger, plan, reach, shown_text, parts: Vec::new() }
    }

    pub(crate) fn tokens(&self) -> u64 {
        self.sizes.iter().skip(self.plan.middle.start).sum()
    }
}

/// Returns documents as messages, so that any summariser can read them.
pub(crate) fn quoted(documents: &[SummaryDocument]) -> Vec<Message> {
    let message = |document: &SummaryDocument| {
        let json = text_message(WireFormat::Chat, Role::Assistant, &document.to_markdown());
        decode_message(SharedText::new(json))
    };
    documents.iter().filter_map(message).collect()
}

impl NodeWriter<'_> {
    /// Writes a leaf.
    pub(crate) async fn leaf(
        &self,
        source: &NodeSource<'_>,
        budget_tokens: u64,
    ) -> Result<NodeDraft, WriteFailure> {
        self.write(source, budget_tokens).await
    }

    /// Returns the tokens that a leaf written by rules would have, up to a limit.
    pub(crate) async fn wants_tokens(&self, source: &NodeSource<'_>, most_tokens: u64) -> u64 {
        let request = self.request(source, most_tokens, Detail::Detailed);
        let document = RuleSummariser.summarise(request).await.unwrap_or_default();
        (self.count_tokens)(&document.to_markdown())
    }

    /// Writes a node that includes others; `quoted` are their documents as messages.
    pub(crate) async fn condensed(
        &self,
        documents: Vec<SummaryDocument>,
        reach: Reach,
        budget_tokens: u64,
    ) -> Result<NodeDraft, WriteFailure> {
        let messages = quoted(&documents);
        let sizes = documents.iter().map(|document| (self.count_tokens)(&document.to_markdown())).collect();
        let source =
            NodeSource { parts: documents, ..NodeSource::of(&messages, sizes, reach, "", self.redactor) };
        self.write(&source, budget_tokens).await
    }

    async fn write(&self, source: &NodeSource<'_>, budget_tokens: u64) -> Result<NodeDraft, WriteFailure> {
        if self.summariser.maker() == Maker::Rules {
            return Ok(self.by_rules(source, budget_tokens, None).await);
        }
        let detailed = self.by_model(source, budget_tokens, Detail::Detailed).await;
        let error = match detailed {
            Ok(written) => return Ok(written),
            // Only an unusable answer may be better after a different request.
            Err(SummariseError::Unusable(_)) => {
                match self.by_model(source, budget_tokens, Detail::Terse).await {
                    Ok(written) => return Ok(written),
                    Err(error) => error,
                }
            }
            Err(error) => error,
        };
        let passes = matches!(error, SummariseError::Transient(_));
        let step_in = match self.rules {
            RulesStep::Always => true,
            RulesStep::UnlessItPasses => !passes,
            RulesStep::Never => false,
        };
        if step_in {
            return Ok(self.by_rules(source, budget_tokens, Some(error.to_string())).await);
        }
        let reason = match error {
            SummariseError::Transient(_) => AbortReason::SummariserUnavailable,
            SummariseError::Permanent(_) | SummariseError::WindowTooSmall { .. } => {
                AbortReason::SummariserFailed
            }
            SummariseError::Unusable(_) => AbortReason::SummaryUnusable,
        };
        Err(WriteFailure { reason, detail: error.to_string() })
    }

    fn request<'s>(
        &'s self,
        source: &'s NodeSource<'s>,
        budget_tokens: u64,
        detail: Detail,
    ) -> SummaryRequest<'s> {
        SummaryRequest {
            messages: source.messages,
            groups: &source.groups,
            sizes: &source.sizes,
            ledger: &source.ledger,
            plan: &source.plan,
            span: source.plan.middle.clone(),
            earlier: None,
            focus: self.focus,
            manner: SummaryKind { reach: source.reach, detail },
            shown_text: source.shown_text,
            budget_tokens,
            count_tokens: self.count_tokens,
        }
    }

    async fn by_model(
        &self,
        source: &NodeSource<'_>,
        budget_tokens: u64,
        detail: Detail,
    ) -> Result<NodeDraft, SummariseError> {
        let share = if detail == Detail::Terse { TERSE_PERCENT } else { WRITER_PERCENT };
        let request = self.request(source, budget_tokens * share / 100, detail);
        let mut document = summarise_all(self.summariser, request.clone()).await?;
        let used = (self.count_tokens)(&document.to_markdown());
        if document.is_empty() {
            return Err(SummariseError::Unusable("it was empty".to_owned()));
        }
        if used >= source.tokens() {
            let why = format!("it has {used} tokens, and what it replaces only {}", source.tokens());
            return Err(SummariseError::Unusable(why));
        }
        if detail == Detail::Detailed
            && used.saturating_mul(100) > budget_tokens.saturating_mul(TOO_LONG_PERCENT)
        {
            return Err(SummariseError::Unusable(format!(
                "it has {used} tokens where {budget_tokens} were allowed"
            )));
        }
        carry_rules(&mut document, &source.parts);
        let facts = self.checked(&mut document, &request, Maker::Model, budget_tokens);
        let account = self.summariser.account();
        let author = account.written_by.as_ref().map_or(self.summariser.name(), |by| by.model.as_str());
        Ok(NodeDraft {
            document,
            author: author.to_owned(),
            maker: Maker::Model,
            facts,
            written_by: account.written_by.clone(),
            notes: account.notes,
        })
    }

    async fn by_rules(
        &self,
        source: &NodeSource<'_>,
        budget_tokens: u64,
        because: Option<String>,
    ) -> NodeDraft {
        let request = self.request(source, budget_tokens * WRITER_PERCENT / 100, Detail::Detailed);
        let mut document = if source.parts.is_empty() {
            RuleSummariser.summarise(request.clone()).await.unwrap_or_default()
        } else {
            self.merged(source, request.budget_tokens).await
        };
        let facts = match source.parts.is_empty() {
            true => self.checked(&mut document, &request, Maker::Rules, budget_tokens),
            // The merged documents were checked when they were written.
            false => {
                fit(&mut document, budget_tokens, self.count_tokens);
                FactReport::default()
            }
        };
        let notes =
            because.into_iter().map(|why| format!("a node was written by rules, because {why}")).collect();
        NodeDraft { document, author: RULES.to_owned(), maker: Maker::Rules, facts, written_by: None, notes }
    }

    /// Merges the documents of a node by rules, as earlier notes of a conversation without later messages. Open points, decisions and
    /// constraints remain where notes have them, and of the history every request keeps its conclusions, however many there are.
    async fn merged(&self, source: &NodeSource<'_>, budget_tokens: u64) -> SummaryDocument {
        let all = SummaryDocument::merge(source.parts.clone(), u64::MAX, self.count_tokens);
        let nothing_new = NodeSource::of(&[], Vec::new(), source.reach, "", self.redactor);
        let request = self.request(&nothing_new, budget_tokens, Detail::Detailed);
        let request = SummaryRequest { earlier: Some(&all), ..request };
        RuleSummariser.summarise(request).await.unwrap_or_default()
    }

    /// Trims, checks and shortens a document to its budget.
    fn checked(
        &self,
        document: &mut SummaryDocument,
        request: &SummaryRequest<'_>,
        maker: Maker,
        budget_tokens: u64,
    ) -> FactReport {
        document.trim_to_budget(budget_tokens * WRITER_PERCENT / 100, self.count_tokens);
        let used = (self.count_tokens)(&document.to_markdown());
        let room = budget_tokens.saturating_sub(used);
        let facts = check(document, request, maker, self.redactor, room);
        fit(document, budget_tokens, self.count_tokens);
        facts
    }
}

/// Copies the user's rules from the included documents unchanged, whatever the model made of them.
fn carry_rules(document: &mut SummaryDocument, parts: &[SummaryDocument]) {
    let single_spaced = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let told = single_spaced(&document.to_markdown());
    for part in parts {
        for entry in part.entries(Section::Constraints) {
            if !told.contains(&single_spaced(&entry.text)) {
                document.add(Section::Constraints, entry.text.clone());
            }
        }
    }
}

/// Sections that are shortened last, oldest entries first, if a document is too large without all others.
const LAST_GIVEN_UP: [Section; 4] =
    [Section::PendingAsks, Section::CompletedActions, Section::Constraints, Section::ActiveTask];

/// Shortens a document to its budget, even by removing everything: the record has all of it.
pub(crate) fn fit(document: &mut SummaryDocument, budget_tokens: u64, count_tokens: CountTokens<'_>) {
    document.trim_to_budget(budget_tokens, count_tokens);
    for section in LAST_GIVEN_UP {
        loop {
            let over = (count_tokens)(&document.to_markdown()).saturating_sub(budget_tokens);
            if over == 0 {
                return;
            }
            let entries = document.entries_mut(section);
            if entries.is_empty() {
                break;
            }
            let mut dropped = 0;
            let mut saved = 0;
            while saved < over && dropped < entries.len() {
                // Its bullet counts too; an overestimate is corrected in the next round.
                saved += entries.get(dropped).map_or(0, |entry| (count_tokens)(&entry.text)) + 3;
                dropped += 1;
            }
            entries.drain(..dropped);
        }
    }
}

#[cfg(test)]
#[path = "node_writer_tests.rs"]
mod tests;
