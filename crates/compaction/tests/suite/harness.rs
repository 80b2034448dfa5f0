//! A conversation with its sizes, budgets of a made-up window, and one attempt at a time.

use std::sync::LazyLock;

use throughline_compaction::{
    Attempt, Budgets, Conversation, Options, PayCheck, PruneRules, RuleSummariser, Summariser, ViewItem,
};
use throughline_redact::Redactor;
use throughline_testkit::GeneratedList;
use throughline_transcript::{Groups, Message, WireFormat, decode_message_text};

static REDACTOR: LazyLock<Redactor> = LazyLock::new(Redactor::new);

/// Four characters a token.
pub(crate) fn text_tokens(text: &str) -> u64 {
    (text.chars().count() as u64).div_ceil(4)
}

/// As [`text_tokens`], of a message's JSON, and a little for its frame.
pub(crate) fn message_tokens(message: &Message) -> u64 {
    text_tokens(message.json()) + 3
}

/// A conversation, decoded and measured.
pub(crate) struct Case {
    pub(crate) wire_format: WireFormat,
    pub(crate) messages: Vec<Message>,
    pub(crate) groups: Groups,
    pub(crate) sizes: Vec<u64>,
}

impl Case {
    pub(crate) fn new(wire_format: WireFormat, messages: Vec<Message>) -> Self {
        let groups = Groups::of(&messages);
        let sizes = messages.iter().map(message_tokens).collect();
        Self { wire_format, messages, groups, sizes }
    }

    pub(crate) fn of(list: &GeneratedList) -> Self {
        Self::new(list.wire_format, list.messages())
    }

    pub(crate) fn from_json(wire_format: WireFormat, json: Vec<String>) -> Self {
        Self::of(&GeneratedList::of(wire_format, json))
    }

    pub(crate) fn tokens(&self) -> u64 {
        self.sizes.iter().sum()
    }

    /// One attempt with the built-in summariser.
    pub(crate) fn compact(&self, setup: &Setup) -> Attempt {
        self.compact_with(setup, &RuleSummariser)
    }

    pub(crate) fn compact_with(&self, setup: &Setup, summariser: &dyn Summariser) -> Attempt {
        let conversation = Conversation {
            wire_format: self.wire_format,
            messages: &self.messages,
            groups: &self.groups,
            sizes: &self.sizes,
            ledger: None,
            fixed_tokens: setup.fixed_tokens,
        };
        let options = Options {
            force: setup.force,
            focus: setup.focus,
            budgets: &setup.budgets,
            prune: PruneRules::default(),
            redactor: Some(&REDACTOR),
            corrections: &[],
            recall: None,
            pay: PayCheck::Skip,
            cut_at: None,
            tells_pinned: false,
            shown_tokens: &|tokens| tokens,
            count_tokens: &text_tokens,
            count_message: &message_tokens,
            clock_us: &|| 0,
        };
        pollster::block_on(conversation.compact(&options, summariser))
    }

    /// The bytes of every item of a view.
    pub(crate) fn bytes(&self, items: &[ViewItem]) -> Vec<String> {
        items.iter().map(|item| item.json(&self.messages).to_owned()).collect()
    }

    /// What came of an attempt, as a conversation of its own.
    pub(crate) fn after(&self, attempt: &Attempt) -> Self {
        let decode = |json| decode_message_text(json).expect("every item of a view is a JSON object");
        Self::new(self.wire_format, self.bytes(&attempt.items).into_iter().map(decode).collect())
    }
}

/// Settings of an attempt.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) budgets: Budgets,
    pub(crate) force: bool,
    pub(crate) focus: Option<&'static str>,
    pub(crate) fixed_tokens: u64,
}

impl Setup {
    /// The defaults for a window, forced.
    pub(crate) fn window(window_tokens: u64) -> Self {
        let threshold_tokens = window_tokens / 2;
        let least_cap = 2_000.min(window_tokens / 8);
        Self {
            budgets: Budgets {
                window_tokens,
                threshold_tokens,
                tail_permille: 200,
                tail_tokens: threshold_tokens / 5,
                stretched_tail_tokens: threshold_tokens / 5 * 3 / 2,
                target_tokens: None,
                head_tokens: threshold_tokens / 10,
                summary_cap_tokens: 12_000.min((window_tokens / 20).max(least_cap)),
                summary_floor_tokens: 2_000,
                protect_first_n: 3,
                protect_last_n: 20,
            },
            force: true,
            focus: None,
            fixed_tokens: 0,
        }
    }

    pub(crate) fn unforced(self) -> Self {
        Self { force: false, ..self }
    }

    pub(crate) fn tail_permille(mut self, permille: u64) -> Self {
        self.budgets.tail_permille = permille;
        self.budgets.tail_tokens = self.budgets.threshold_tokens * permille / 1000;
        self
    }

    pub(crate) fn protect(mut self, first: usize, last: usize) -> Self {
        self.budgets.protect_first_n = first;
        self.budgets.protect_last_n = last;
        self
    }
}
