//! Converts a provider's usage report to one set of buckets, whatever the wire format.
//!
//! Anthropic reports cache reads and writes separately from the input; OpenAI and compatible providers report them as part of the input.
//! Here the buckets never overlap: prompt = input + cache reads + cache writes. Contradictory figures are clamped so that the prompt is
//! what the provider reported, and the contradiction is reported.

use std::fmt;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Tokens of a call, by price.
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
    /// Returns the tokens of the prompt.
    #[must_use]
    pub fn prompt(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// Returns the tokens of prompt and output. Reasoning is part of the output already.
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

/// A figure that could not be used as reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum UsageDoubt {
    /// Cache reads and writes together exceed the prompt that includes them.
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
    /// The parts of the cache writes do not add up to the whole.
    CacheWritePartsDiffer {
        /// The whole as reported.
        whole: u64,
        /// The parts together.
        parts: u64,
    },
    /// Hits and misses of the cache do not add up to the prompt.
    HitsAndMissesDiffer {
        /// The prompt as reported.
        prompt: u64,
        /// Hits and misses together.
        together: u64,
    },
    /// A value that is not a count.
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
            Self::CacheWritePartsDiffer { whole, parts } => write!(
                f,
                "cache writes by lifetime ({parts}) differ from their sum ({whole}); the larger was taken"
            ),
            Self::HitsAndMissesDiffer { prompt, together } => write!(
                f,
                "cache hits and misses ({together}) differ from the prompt of {prompt} tokens; the prompt was taken"
            ),
            Self::NotACount { field } => write!(f, "`{field}` is not a count; it was read as 0"),
        }
    }
}

/// A usage report, as far as it could be parsed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UsageReading {
    /// The buckets.
    pub usage: Usage,
    /// The part of the cache writes with a lifetime of one hour; the rest lasts for minutes.
    pub cache_write_1h: u64,
    /// The corrections that were necessary.
    pub doubts: Vec<UsageDoubt>,
}

/// Why a usage report cannot be parsed at all.
#[derive(Debug, thiserror::Error)]
pub enum UsageError {
    /// Not JSON.
    #[error("usage is not valid JSON")]
    Json(#[from] serde_json::Error),
    /// JSON without a known count of prompt or output.
    #[error("usage contains no token counts")]
    NoCounts,
}

impl UsageReading {
    /// Parses the `usage` member of a response in any wire format.
    ///
    /// ```
    /// use throughline_tokens::UsageReading;
    ///
    /// let reading = UsageReading::parse(r#"{"input_tokens":12,"cache_read_input_tokens":900,"output_tokens":40}"#)?;
    /// assert_eq!((reading.usage.prompt(), reading.usage.cache_read), (912, 900));
    /// # Ok::<(), throughline_tokens::UsageError>(())
    /// ```
    pub fn parse(json: &str) -> Result<UsageReading, UsageError> {
        let value: Value = serde_json::from_str(json)?;
        let Value::Object(members) = value else { return Err(UsageError::NoCounts) };
        let mut report = UsageObject { members: &members, cache_write_1h: 0, doubts: Vec::new() };
        let usage = match report.wire().ok_or(UsageError::NoCounts)? {
            UsageForm::CacheBeside => report.cache_beside_input(),
            UsageForm::CacheWithin { prompt, details } => report.cache_within(prompt, details),
        };
        let usage = report.limit_reasoning(usage);
        let cache_write_1h = report.cache_write_1h.min(usage.cache_write);
        Ok(UsageReading { usage, cache_write_1h, doubts: report.doubts })
    }
}

/// Whether a report includes the cache in the prompt.
enum UsageForm {
    /// Anthropic: the input excludes the cache.
    CacheBeside,
    /// All other providers: the prompt includes the cache.
    CacheWithin { prompt: &'static str, details: &'static str },
}

struct UsageObject<'a> {
    members: &'a Map<String, Value>,
    cache_write_1h: u64,
    doubts: Vec<UsageDoubt>,
}

impl UsageObject<'_> {
    fn wire(&self) -> Option<UsageForm> {
        let has = |name: &str| self.members.get(name).is_some_and(|value| !value.is_null());
        let counts = |name: &str| has(name) && self.members.get(name).and_then(Value::as_f64) != Some(0.0);
        let chat = ["prompt_tokens", "completion_tokens", "prompt_cache_hit_tokens"];
        // A gateway for two wire formats may fill in the figures of one and leave those of the other at zero.
        let left_empty = !chat.into_iter().any(counts) && (counts("input_tokens") || counts("output_tokens"));
        if chat.into_iter().any(has) && !left_empty {
            return Some(UsageForm::CacheWithin {
                prompt: "prompt_tokens",
                details: "prompt_tokens_details",
            });
        }
        // Both OpenAI Responses and Anthropic have `input_tokens`; the details distinguish them. With neither details nor cache figures
        // there is no cache, and both readings agree.
        if has("input_tokens_details") || has("cached_input_tokens") {
            return Some(UsageForm::CacheWithin { prompt: "input_tokens", details: "input_tokens_details" });
        }
        let anthropic =
            ["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
        anthropic.into_iter().any(has).then_some(UsageForm::CacheBeside)
    }

    fn cache_beside_input(&mut self) -> Usage {
        let cache_write = self.cache_writes();
        Usage {
            input: self.count(&["input_tokens"]).unwrap_or(0),
            output: self.count(&["output_tokens"]).unwrap_or(0),
            cache_read: self.count(&["cache_read_input_tokens"]).unwrap_or(0),
            cache_write,
            reasoning: self.reasoning(),
        }
    }

    /// Returns the cache writes, reported as a total, by lifetime, or both.
    fn cache_writes(&mut self) -> u64 {
        let whole = self.count(&["cache_creation_input_tokens"]);
        let short = self.count(&["cache_creation", "ephemeral_5m_input_tokens"]);
        let long = self.count(&["cache_creation", "ephemeral_1h_input_tokens"]);
        self.cache_write_1h = long.unwrap_or(0);
        let parts = short.unwrap_or(0).saturating_add(self.cache_write_1h);
        if let Some(whole) = whole
            && (short.is_some() || long.is_some())
            && whole != parts
        {
            self.doubts.push(UsageDoubt::CacheWritePartsDiffer { whole, parts });
        }
        whole.unwrap_or(0).max(parts)
    }

    fn cache_within(&mut self, prompt_field: &str, details: &str) -> Usage {
        let read_fields: [&[&str]; 4] = [
            &[details, "cached_tokens"],
            &["cached_input_tokens"],
            &["cache_read_input_tokens"],
            &["prompt_cache_hit_tokens"],
        ];
        let write_fields: [&[&str]; 4] = [
            &[details, "cache_write_tokens"],
            &[details, "cache_creation_tokens"],
            &[details, "cache_creation_input_tokens"],
            &["cache_creation_input_tokens"],
        ];
        let cache_read = self.first_count(&read_fields);
        let cache_write = self.first_count(&write_fields);
        let hit = self.count(&["prompt_cache_hit_tokens"]);
        let missed = self.count(&["prompt_cache_miss_tokens"]);
        let together = missed.map(|missed| hit.unwrap_or(cache_read).saturating_add(missed));
        let told = self.count(&[prompt_field]);
        if let (Some(prompt), Some(together)) = (told, together)
            && prompt != together
        {
            self.doubts.push(UsageDoubt::HitsAndMissesDiffer { prompt, together });
        }
        let prompt = told.or(together).unwrap_or(cache_read);
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
        let within = holders.iter().find_map(|holder| self.count(&[holder, "reasoning_tokens"]));
        within
            .or_else(|| self.count(&["output_tokens_details", "thinking_tokens"]))
            .or_else(|| self.count(&["reasoning_output_tokens"]))
            .unwrap_or(0)
    }

    fn limit_reasoning(&mut self, mut usage: Usage) -> Usage {
        if usage.reasoning > usage.output {
            let (output, reasoning) = (usage.output, usage.reasoning);
            self.doubts.push(UsageDoubt::ReasoningExceedsOutput { output, reasoning });
            usage.reasoning = output;
        }
        usage
    }

    /// Returns the first non-zero count of several names for the same figure: some providers leave zeros under the names they do not use.
    fn first_count(&mut self, fields: &[&[&str]]) -> u64 {
        fields.iter().filter_map(|field| self.count(field)).find(|count| *count > 0).unwrap_or(0)
    }

    /// Returns the count at a path of members; `None` if absent, zero and a doubt if it is not a count.
    fn count(&mut self, path: &[&str]) -> Option<u64> {
        let (last, holders) = path.split_last()?;
        let holder =
            holders.iter().try_fold(self.members, |members, name| members.get(*name)?.as_object())?;
        let value = holder.get(*last).filter(|value| !value.is_null())?;
        let count = value.as_u64().or_else(|| value.as_f64().and_then(whole));
        let doubt = UsageDoubt::NotACount { field: path.join(".") };
        if count.is_none() && !self.doubts.contains(&doubt) {
            self.doubts.push(doubt);
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
