//! The two forms in which a model can be asked for a summary, and which of them is the cheaper one.
//!
//! Riding: the conversation as it was sent last, with one instruction behind it. The model has it in its cache and reads
//! it for a tenth of the price, but reads all of it. Apart: the folded part quoted as data, without tool definitions and
//! with long results cut, at the full price. Only the conversation's own model can be asked in the first form. Pure:
//! figures in, a choice with its sum out.

use std::fmt;

use serde::Serialize;
use throughline_tokens::{PricedCall, Usage, cost};

/// How a model is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SummaryForm {
    /// Behind the conversation it holds already.
    Riding,
    /// With the messages quoted.
    Apart,
}

impl fmt::Display for SummaryForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Riding => "riding",
            Self::Apart => "apart",
        })
    }
}

/// Why a conversation cannot be ridden on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NotRiding {
    /// Another model is asked than the one that holds it.
    OtherModel,
    /// It has not been sent in its present form yet.
    NotSent,
    /// What is to be folded reaches beyond what was sent.
    SentTooLittle,
    /// With the instruction and the answer it does not fit the window.
    NoRoom,
    /// The request forces a tool call, a form of answer or a place to stop.
    Constrained,
    /// The request relies on what the provider keeps.
    ProviderState,
    /// The model was asked in this form a short while ago, and what it said was no summary.
    FailedLately,
}

impl fmt::Display for NotRiding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherModel => "another model is asked",
            Self::NotSent => "the conversation was not sent in its present form yet",
            Self::SentTooLittle => "what is folded reaches beyond what was sent",
            Self::NoRoom => "the window has no room for it",
            Self::Constrained => "the request forces tools, a form of answer or a place to stop",
            Self::ProviderState => "the request relies on what the provider keeps",
            Self::FailedLately => "the model failed at it a short while ago",
        })
    }
}

/// What each form would send.
#[derive(Clone, Copy, Debug)]
pub struct FormFacts<'a> {
    /// The model that would be asked.
    pub model: &'a str,
    /// Who serves it.
    pub provider: &'a str,
    /// Now, in milliseconds since 1970.
    pub at_ms: i64,
    /// Tokens the answer may have.
    pub answer_tokens: u64,
    /// Riding: tokens that are in the cache, and tokens that are not; or why that is not possible.
    pub riding: Result<(u64, u64), NotRiding>,
    /// Apart: tokens to be read.
    pub apart_tokens: u64,
    /// Apart: calls to be made, each with an answer.
    pub apart_calls: u64,
}

/// What a form would send and cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FormCost {
    /// Tokens by bucket.
    pub usage: Usage,
    /// By list price, in millionths of a dollar; `None` where there is none.
    pub micro_usd: Option<u64>,
    /// In thousandths of a prompt token, where there is no price: an answer's token counts five times, one from the cache
    /// a tenth.
    pub weight: u64,
}

/// A choice with its sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FormChoice {
    /// What was chosen.
    pub form: SummaryForm,
    /// What riding would cost, or why it is not possible.
    pub riding: Result<FormCost, NotRiding>,
    /// What asking apart would cost.
    pub apart: FormCost,
}

/// Chooses the cheaper form.
#[must_use]
pub fn choose_form(facts: &FormFacts<'_>) -> FormChoice {
    let price = |usage: Usage| FormCost {
        usage,
        micro_usd: cost(&PricedCall {
            model: facts.model,
            provider: facts.provider,
            at_ms: facts.at_ms,
            usage,
            cache_write_1h: 0,
        })
        .micro_usd,
        weight: (usage.input.saturating_mul(1_000))
            .saturating_add(usage.cache_read.saturating_mul(100))
            .saturating_add(usage.output.saturating_mul(5_000)),
    };
    let apart = price(Usage {
        input: facts.apart_tokens,
        output: facts.answer_tokens.saturating_mul(facts.apart_calls),
        ..Usage::default()
    });
    let riding = facts.riding.map(|(cached, new)| {
        price(Usage { input: new, cache_read: cached, output: facts.answer_tokens, ..Usage::default() })
    });
    let is_cheaper = riding.is_ok_and(|riding| match (riding.micro_usd, apart.micro_usd) {
        (Some(riding), Some(apart)) => riding <= apart,
        _ => riding.weight <= apart.weight,
    });
    let form = if is_cheaper { SummaryForm::Riding } else { SummaryForm::Apart };
    FormChoice { form, riding, apart }
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
        match &self.riding {
            Ok(cost) => write!(f, "{cost}")?,
            Err(reason) => write!(f, "not possible, {reason}")?,
        }
        write!(f, "; apart: {})", self.apart)
    }
}

#[cfg(test)]
#[path = "form_tests.rs"]
mod tests;
