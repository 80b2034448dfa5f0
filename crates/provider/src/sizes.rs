//! Decides from the sizes stated in an error whether the prompt is too long or the output limit too large.
//!
//! The numbers decide, not the words: a mention of `max_tokens` proves nothing; whether the prompt alone fits the window does.
//! Contradictory numbers are not used. Not for: errors without numbers.

use crate::lexemes::Lexeme;
use crate::wordings::{NumberRole, meanings};

/// Smaller windows and limits are errors or other numbers: no model in use has one.
const SMALLEST_PLAUSIBLE_WINDOW: u64 = 512;
/// Fifty times the largest window offered: larger numbers are identifiers or times.
const LARGEST_PLAUSIBLE_WINDOW: u64 = 100_000_000;

/// Assumed characters per token if only the characters of a prompt are stated: low enough to be safe for text in Latin letters. The
/// resulting limit is used for one more attempt and not stored.
const CHARACTERS_PER_TOKEN: u64 = 3;

/// Figures of the request that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestLimits {
    /// The output limit in the request.
    pub output_cap_tokens: Option<u64>,
    /// The assumed window of the model.
    pub window_tokens: Option<u64>,
}

/// Sizes stated in an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StatedSizes {
    pub(crate) window: Option<u64>,
    pub(crate) prompt_limit: Option<u64>,
    pub(crate) prompt: Option<u64>,
    pub(crate) prompt_characters: Option<u64>,
    pub(crate) prompt_excess: Option<u64>,
    pub(crate) cap: Option<u64>,
    pub(crate) largest_cap: Option<u64>,
    pub(crate) total: Option<u64>,
    pub(crate) allowance: Option<u64>,
    pub(crate) asked: Option<u64>,
    pub(crate) byte_limit: Option<u64>,
    pub(crate) bytes_sent: Option<u64>,
}

/// The conclusion from the sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The prompt alone is too long.
    Prompt { window: Option<u64>, prompt: Option<u64> },
    /// The prompt fits alone, but not with the output limit.
    Cap { largest: Option<u64>, window: Option<u64>, prompt: Option<u64> },
    /// The numbers alone do not decide; the wording may.
    Open,
}

impl StatedSizes {
    /// Reads the sizes in the text of an error.
    pub(crate) fn read(lexemes: &[Lexeme]) -> Self {
        let found = meanings(lexemes);
        let only = |role: NumberRole| {
            let mut values = found.iter().filter(|(other, _)| *other == role).map(|(_, value)| *value);
            let first = values.next()?;
            // Two values for one thing are ambiguous.
            values.all(|value| value == first).then_some(first)
        };
        let parts = found.iter().filter(|(role, _)| *role == NumberRole::PromptPart).map(|(_, value)| *value);
        let together = parts.reduce(u64::saturating_add);
        Self {
            window: only(NumberRole::Window),
            prompt_limit: only(NumberRole::PromptLimit),
            prompt: only(NumberRole::Prompt).or(together),
            prompt_characters: only(NumberRole::PromptCharacters),
            prompt_excess: only(NumberRole::PromptExcess),
            cap: only(NumberRole::Cap),
            largest_cap: only(NumberRole::LargestCap)
                .or_else(|| only(NumberRole::CapBelow)?.checked_sub(1))
                .filter(|largest| (1..=LARGEST_PLAUSIBLE_WINDOW).contains(largest)),
            total: only(NumberRole::Total),
            allowance: only(NumberRole::Allowance),
            asked: only(NumberRole::Asked),
            byte_limit: only(NumberRole::ByteLimit).or(only(NumberRole::StringLimit)),
            bytes_sent: only(NumberRole::BytesSent),
        }
    }

    /// Concludes from the sizes and the figures of the request.
    pub(crate) fn verdict(&self, limits: RequestLimits) -> Verdict {
        if let Some(largest) = self.largest_cap {
            return Verdict::Cap { largest: Some(largest), window: self.window(), prompt: self.prompt };
        }
        let cap = self.cap.or(limits.output_cap_tokens);
        let prompt = self.prompt.or_else(|| self.total?.checked_sub(cap?));
        if let Some(verdict) = self.window_less_cap(limits, prompt) {
            return verdict;
        }
        if self.prompt_excess.is_some() {
            return Verdict::Prompt { window: self.limit(), prompt: self.stated_prompt() };
        }
        let Some(limit) = self.limit() else { return Verdict::Open };
        match (prompt, cap) {
            (Some(prompt), _) if prompt >= limit => {
                Verdict::Prompt { window: Some(limit), prompt: Some(prompt) }
            }
            (Some(prompt), Some(cap)) if self.window().is_some() && prompt.saturating_add(cap) > limit => {
                Verdict::Cap { largest: Some(limit - prompt), window: Some(limit), prompt: Some(prompt) }
            }
            (Some(_), _) => Verdict::Open,
            (None, Some(_)) if self.prompt_characters.is_some() => self.verdict_by_characters(limit),
            (None, _) if self.total.is_some_and(|total| total > limit) => {
                Verdict::Prompt { window: Some(limit), prompt: None }
            }
            (None, _) => Verdict::Open,
        }
    }

    /// The largest prompt or the window, whichever was stated.
    pub(crate) fn limit(&self) -> Option<u64> {
        self.window().or(self.prompt_limit.filter(plausible))
    }

    /// The limit, unless another stated number contradicts it: a prompt below the limit explains no refusal, so one of
    /// the two numbers is misread.
    pub(crate) fn certain_limit(&self) -> Option<u64> {
        let limit = self.limit()?;
        self.prompt.is_none_or(|prompt| prompt >= limit).then_some(limit)
    }

    /// Returns the size of the prompt, if stated.
    pub(crate) fn stated_prompt(&self) -> Option<u64> {
        self.prompt.or_else(|| self.limit()?.checked_add(self.prompt_excess?))
    }

    fn window(&self) -> Option<u64> {
        self.window.filter(plausible)
    }

    fn verdict_by_characters(&self, limit: u64) -> Verdict {
        let tokens = self.prompt_characters.unwrap_or(0).div_ceil(CHARACTERS_PER_TOKEN);
        match limit.checked_sub(tokens).filter(|room| *room > 0) {
            Some(room) => Verdict::Cap { largest: Some(room), window: Some(limit), prompt: None },
            None => Verdict::Prompt { window: Some(limit), prompt: None },
        }
    }

    /// Some releases of vLLM state the window minus the output limit as if it were the window. If that number were used, the window would
    /// shrink with every call.
    fn window_less_cap(&self, limits: RequestLimits, prompt: Option<u64>) -> Option<Verdict> {
        let (cap, believed) = (limits.output_cap_tokens?, limits.window_tokens?);
        let stated = self.window?;
        let prompt = prompt?;
        let mistaken = self.cap.is_none() && cap > 0 && stated.checked_add(cap) == Some(believed);
        (mistaken && prompt < believed).then(|| Verdict::Cap {
            largest: Some(believed - prompt),
            window: None,
            prompt: Some(prompt),
        })
    }
}

fn plausible(size: &u64) -> bool {
    (SMALLEST_PLAUSIBLE_WINDOW..=LARGEST_PLAUSIBLE_WINDOW).contains(size)
}
