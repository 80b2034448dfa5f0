//! What a provider says a call used, in one set of buckets whatever the wire.
//!
//! Anthropic reports what was read from and written to its cache beside the input; OpenAI and those who speak like it
//! report them as part of the input. Here the buckets never overlap: prompt = input + cache reads + cache writes.
//! Figures that contradict each other are clamped so that the prompt stays what the provider called the prompt, and the
//! contradiction is reported.

use std::fmt;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Tokens of a call, by what they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Prompt tokens that were neither read from nor written to a cache.
    pub input: u64,
    /// Tokens of the answer, reasoning included.
    pub output: u64,
    /// Prompt tokens read from the cache.
    pub cache_read: u64,
    /// Prompt tokens written to the cache.
    pub cache_write: u64,
    /// Part of the output that was reasoning.
    pub reasoning: u64,
}

impl Usage {
    /// Everything that was sent.
    #[must_use]
    pub fn prompt(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// Everything that was sent and answered. Reasoning is part of the output already.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.prompt().saturating_add(self.output)
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl std::iter::Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(usages: I) -> Self {
        usages.fold(Self::default(), Add::add)
    }
}

/// A figure that could not be taken as it was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum UsageDoubt {
    /// Cache reads and writes together exceed the prompt they are said to be part of.
    CacheExceedsPrompt {
        /// The prompt as reported.
        prompt: u64,
        /// Cache reads as reported.
        cache_read: u64,
        /// Cache writes as reported.
        cache_write: u64,
    },
    /// More reasoning than output.
    ReasoningExceedsOutput {
        /// The output as reported.
        output: u64,
        /// The reasoning as reported.
        reasoning: u64,
    },
    /// Not a count.
    NotACount {
        /// The field.
        field: String,
    },
}

impl fmt::Display for UsageDoubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CacheExceedsPrompt { prompt, cache_read, cache_write } => write!(
                f,
                "cache reads ({cache_read}) and writes ({cache_write}) exceed the prompt of {prompt} tokens; writes and then reads were cut to fit"
            ),
            Self::ReasoningExceedsOutput { output, reasoning } => {
                write!(f, "reasoning ({reasoning}) exceeds the output of {output} tokens; it was cut to fit")
            }
            Self::NotACount { field } => write!(f, "`{field}` is not a count; it was read as 0"),
        }
    }
}

/// Usage as far as it could be understood.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UsageReading {
    /// The buckets.
    pub usage: Usage,
    /// What had to be changed to fill them.
    pub doubts: Vec<UsageDoubt>,
}

/// Why a report of usage cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum UsageError {
    /// Not JSON.
    #[error("usage is not valid JSON")]
    Json(#[from] serde_json::Error),
    /// JSON, but no member of it counts a prompt or an answer in any wire we know.
    #[error("usage holds no token counts")]
    NoCounts,
}

/// Reads the `usage` member of a response, of whichever wire.
pub fn parse_usage(json: &str) -> Result<UsageReading, UsageError> {
    let value: Value = serde_json::from_str(json)?;
    let Value::Object(members) = value else { return Err(UsageError::NoCounts) };
    let mut report = Report { members: &members, doubts: Vec::new() };
    let usage = match report.wire().ok_or(UsageError::NoCounts)? {
        Wire::CacheBeside => report.cache_beside_input(),
        Wire::CacheWithin { prompt, details } => report.cache_within(prompt, details),
    };
    let usage = report.limit_reasoning(usage);
    Ok(UsageReading { usage, doubts: report.doubts })
}

/// How a report relates the cache to the prompt.
enum Wire {
    /// Anthropic: the input excludes the cache.
    CacheBeside,
    /// Everybody else: the prompt includes the cache.
    CacheWithin { prompt: &'static str, details: &'static str },
}

struct Report<'a> {
    members: &'a Map<String, Value>,
    doubts: Vec<UsageDoubt>,
}

impl Report<'_> {
    fn wire(&self) -> Option<Wire> {
        let has = |name: &str| self.members.get(name).is_some_and(|value| !value.is_null());
        if has("prompt_tokens") || has("completion_tokens") || has("prompt_cache_hit_tokens") {
            return Some(Wire::CacheWithin { prompt: "prompt_tokens", details: "prompt_tokens_details" });
        }
        // Both OpenAI Responses and Anthropic say `input_tokens`; the details tell them apart. With neither details
        // nor cache figures there is no cache and the two readings agree.
        if has("input_tokens_details") {
            return Some(Wire::CacheWithin { prompt: "input_tokens", details: "input_tokens_details" });
        }
        let anthropic =
            ["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
        anthropic.into_iter().any(has).then_some(Wire::CacheBeside)
    }

    fn cache_beside_input(&mut self) -> Usage {
        let lifetimes = ["ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"];
        let cache_write = self
            .count(&["cache_creation_input_tokens"])
            .or_else(|| {
                let parts: Vec<u64> =
                    lifetimes.iter().filter_map(|part| self.count(&["cache_creation", part])).collect();
                (!parts.is_empty()).then(|| parts.iter().fold(0u64, |sum, part| sum.saturating_add(*part)))
            })
            .unwrap_or(0);
        Usage {
            input: self.count(&["input_tokens"]).unwrap_or(0),
            output: self.count(&["output_tokens"]).unwrap_or(0),
            cache_read: self.count(&["cache_read_input_tokens"]).unwrap_or(0),
            cache_write,
            reasoning: self.reasoning(),
        }
    }

    fn cache_within(&mut self, prompt_field: &str, details: &str) -> Usage {
        let read_fields: [&[&str]; 3] =
            [&[details, "cached_tokens"], &["cache_read_input_tokens"], &["prompt_cache_hit_tokens"]];
        let write_fields: [&[&str]; 4] = [
            &[details, "cache_write_tokens"],
            &[details, "cache_creation_tokens"],
            &[details, "cache_creation_input_tokens"],
            &["cache_creation_input_tokens"],
        ];
        let cache_read = read_fields.iter().find_map(|field| self.count(field)).unwrap_or(0);
        let cache_write = write_fields.iter().find_map(|field| self.count(field)).unwrap_or(0);
        let missed = self.count(&["prompt_cache_miss_tokens"]).unwrap_or(0);
        let prompt = self.count(&[prompt_field]).unwrap_or_else(|| cache_read.saturating_add(missed));
        let output = ["completion_tokens", "output_tokens"].iter().find_map(|field| self.count(&[field]));
        if cache_read.saturating_add(cache_write) > prompt {
            self.doubts.push(UsageDoubt::CacheExceedsPrompt { prompt, cache_read, cache_write });
        }
        let kept_read = cache_read.min(prompt);
        let kept_write = cache_write.min(prompt - kept_read);
        Usage {
            input: prompt - kept_read - kept_write,
            output: output.unwrap_or(0),
            cache_read: kept_read,
            cache_write: kept_write,
            reasoning: self.reasoning(),
        }
    }

    fn reasoning(&mut self) -> u64 {
        let holders = ["output_tokens_details", "completion_tokens_details"];
        holders.iter().find_map(|holder| self.count(&[holder, "reasoning_tokens"])).unwrap_or(0)
    }

    fn limit_reasoning(&mut self, mut usage: Usage) -> Usage {
        if usage.reasoning > usage.output {
            let (output, reasoning) = (usage.output, usage.reasoning);
            self.doubts.push(UsageDoubt::ReasoningExceedsOutput { output, reasoning });
            usage.reasoning = output;
        }
        usage
    }

    /// The count at a path of members; `None` where there is nothing, zero and a doubt where there is no count.
    fn count(&mut self, path: &[&str]) -> Option<u64> {
        let (last, holders) = path.split_last()?;
        let holder =
            holders.iter().try_fold(self.members, |members, name| members.get(*name)?.as_object())?;
        let value = holder.get(*last).filter(|value| !value.is_null())?;
        let count = value.as_u64().or_else(|| value.as_f64().and_then(whole));
        if count.is_none() {
            self.doubts.push(UsageDoubt::NotACount { field: path.join(".") });
        }
        Some(count.unwrap_or(0))
    }
}

/// Some gateways write counts as floating point.
fn whole(value: f64) -> Option<u64> {
    const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;
    (value.fract() == 0.0 && (0.0..=LARGEST_EXACT).contains(&value)).then_some(value as u64)
}

#[cfg(test)]
#[path = "usage_tests.rs"]
mod tests;
