//! The two forms of a summary request, and the choice of the cheaper one.
//!
//! Inline: the conversation as it was last sent, followed by one instruction. The model has the conversation in its cache and reads it at a
//! tenth of the price, but reads all of it. Standalone: the compacted part quoted as data, without tool definitions and with long results
//! cut, at the full price. Only the conversation's own model can be called inline. Pure: computes a choice and its cost from figures.

use std::fmt;

use serde::Serialize;
use throughline_tokens::{PricedCall, Usage};

/// The form of a summary request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SummaryForm {
    /// An instruction after the conversation that the model was last sent.
    Inline,
    /// A separate request that quotes the messages.
    Standalone,
}

impl fmt::Display for SummaryForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Stored in the record and printed by `--json`: these names cannot change.
        f.pad(match self {
            Self::Inline => "riding",
            Self::Standalone => "apart",
        })
    }
}

/// Why an inline request is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum InlineObstacle {
    /// The model is not the conversation's own.
    OtherModel,
    /// The conversation has not been sent in its present form yet.
    NotSent,
    /// The compacted part extends beyond what was sent.
    SentTooLittle,
    /// The prompt with instruction and answer exceeds the window.
    NoRoom,
    /// The request forces a tool call, an output format or a stop sequence.
    Constrained,
    /// The request refers to state that the provider stores.
    ProviderState,
    /// The model recently gave an unusable answer to an inline request.
    FailedLately,
}

impl fmt::Display for InlineObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherModel => "another model is asked",
            Self::NotSent => "the conversation was not sent in its present form yet",
            Self::SentTooLittle => "the part to be summarised reaches beyond what was sent",
            Self::NoRoom => "the window has no room for it",
            Self::Constrained => "the request forces tools, a form of answer or a place to stop",
            Self::ProviderState => "the request relies on what the provider keeps",
            Self::FailedLately => "the model failed at it a short while ago",
        })
    }
}

/// The figures of both forms.
#[derive(Clone, Copy, Debug)]
pub(super) struct FormFacts<'a> {
    /// The model to call.
    pub model: &'a str,
    /// The provider that serves it.
    pub provider: &'a str,
    /// The current time, in milliseconds since 1970.
    pub at_ms: i64,
    /// The maximum tokens of the answer.
    pub answer_tokens: u64,
    /// Inline: cached and uncached tokens, or why it is not possible.
    pub inline: Result<(u64, u64), InlineObstacle>,
    /// Standalone: prompt tokens.
    pub standalone_tokens: u64,
    /// Standalone: number of calls, each with an answer.
    pub standalone_calls: u64,
}

/// The tokens and cost of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct FormCost {
    /// Tokens by bucket.
    pub usage: Usage,
    /// The list price in millionths of a dollar; `None` if unknown.
    pub micro_usd: Option<u64>,
    /// The cost in thousandths of a prompt token, for comparison without prices: an output token counts five times, a cached one a tenth.
    pub weight: u64,
}

/// A choice with its calculation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct FormChoice {
    /// The chosen form.
    pub form: SummaryForm,
    /// The cost of the inline form, or why it is not possible.
    pub inline: Result<FormCost, InlineObstacle>,
    /// The cost of the standalone form.
    pub standalone: FormCost,
}

/// Chooses the cheaper form.
#[must_use]
pub(super) fn choose_form(facts: &FormFacts<'_>) -> FormChoice {
    let price = |usage: Usage| FormCost {
        usage,
        micro_usd: (PricedCall {
            model: facts.model,
            provider: facts.provider,
            at_ms: facts.at_ms,
            usage,
            cache_write_1h: 0,
        })
        .list_cost()
        .micro_usd,
        weight: (usage.input.saturating_mul(1_000))
            .saturating_add(usage.cache_read.saturating_mul(100))
            .saturating_add(usage.output.saturating_mul(5_000)),
    };
    let standalone = price(Usage {
        input: facts.standalone_tokens,
        output: facts.answer_tokens.saturating_mul(facts.standalone_calls),
        ..Usage::default()
    });
    let inline = facts.inline.map(|(cached, new)| {
        price(Usage { input: new, cache_read: cached, output: facts.answer_tokens, ..Usage::default() })
    });
    let is_cheaper = inline.is_ok_and(|inline| match (inline.micro_usd, standalone.micro_usd) {
        (Some(inline), Some(standalone)) => inline <= standalone,
        _ => inline.weight <= standalone.weight,
    });
    let form = if is_cheaper { SummaryForm::Inline } else { SummaryForm::Standalone };
    FormChoice { form, inline, standalone }
}

impl fmt::Display for FormCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Usage { input, cache_read, output, .. } = self.usage;
        write!(f, "{input} tokens new, {cache_read} from the cache, {output} answered")?;
        match self.micro_usd {
            Some(micro) => write!(f, ", ${}.{:06}", micro / 1_000_000, micro % 1_000_000),
            None => Ok(()),
        }
    }
}

impl fmt::Display for FormChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (riding: ", self.form)?;
        match &self.inline {
            Ok(cost) => write!(f, "{cost}")?,
            Err(reason) => write!(f, "not possible, {reason}")?,
        }
        write!(f, "; apart: {})", self.standalone)
    }
}

#[cfg(test)]
#[path = "form_tests.rs"]
mod tests;
