//! All limits that follow from a model's window: when to compact, what to keep, how long a summary may be, how much of a tool's output to
//! send.
//!
//! One pure function from the policy to the limits. Every value that a rule can change is an [`Effective`]: the configured value, the
//! effective one, and the reason for the difference. The rules are continuous: a larger window never lowers a limit, and one more token of
//! window never changes a limit by more than a few tokens.
//!
//! System prompt and tool definitions are the fixed part of a request: no compaction makes them smaller. Their size beyond a small share of
//! the window (the excess) is subtracted before shares are computed, so that a large fixed part moves the threshold up instead of reducing
//! the space for messages.

use std::fmt;

use serde::Serialize;

use crate::economy::Economy;

/// The smallest window that fits a head, a summary and a tail of useful size.
pub(crate) const SMALLEST_WINDOW_TOKENS: u64 = 512;
/// The allowed range of the tail's share of the threshold.
pub(crate) const TARGET_RATIO_RANGE: (f64, f64) = (0.10, 0.80);

/// The percentage of the window that stays free besides prompt and answer.
const FREE_PERCENT: u64 = 2;
/// A fixed part of up to this percentage of the window is small: shares are computed from the whole window.
///
/// With the default shares a compaction starts at 50 % of the window and leaves at most 20 % beside the fixed part (tail 10 %, summary 5 %,
/// head 5 %). With a fixed part of F percent there are 50 - F percent of messages at the threshold, and 30 - F of them go. That is at least
/// half of the messages as long as F is at most 10.
const SMALL_FIXED_PERCENT: u64 = 10;
/// The percentage of the reserved answer that stays reserved if the view grows beyond the threshold.
const LEAST_RESERVED_PERCENT: u64 = 25;
/// The maximum percentage of the window reserved for the answer; the prompt needs the rest.
const MOST_RESERVED_PERCENT: u64 = 75;
const SUMMARY_FLOOR_TOKENS: u64 = 2_000;
const SUMMARY_CEILING_TOKENS: u64 = 12_000;
const SUMMARY_WINDOW_PERCENT: u64 = 5;
/// Shares of a configured size after a compaction, in percent: for the head, and for the notes up to a limit in tokens. The tail gets the
/// rest, less the text around the notes. Measured with `throughline-bench takeover --target`: at 5,600 tokens 65 % for the notes answer 86
/// % of the questions, 55 % answer 83, 40 % answer 81; from 11,000 tokens on a longer tail answers more than longer notes do.
const TARGET_HEAD_PERCENT: u64 = 10;
const TARGET_NOTES_PERCENT: u64 = 65;
const TARGET_NOTES_TOKENS: u64 = 5_500;
const TARGET_FRAME_PERCENT: u64 = 5;
/// The smallest configured size that fits notes besides the last messages.
const SMALLEST_TARGET_TOKENS: u64 = 1_000;
const HYGIENE_DISTANCE_PERCENT: u64 = 5;
/// The assumed characters per token of a tool's output.
const CHARS_A_TOKEN: u64 = 4;
const RESULT_WINDOW_PERCENT: u64 = 15;
const STEP_WINDOW_PERCENT: u64 = 30;
const RESULT_FLOOR_CHARS: u64 = 8_000;
const STEP_FLOOR_CHARS: u64 = 16_000;

/// The configured limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LimitPolicy {
    /// The model's window.
    pub window_tokens: u64,
    /// Share of the window at which to compact.
    pub threshold_ratio: f64,
    /// Compact at this many tokens, if that is less.
    pub threshold_tokens: Option<u64>,
    /// Tokens reserved for the answer: the request's own output limit, or else the configured one, or else none.
    pub reserved_output_tokens: u64,
    /// The tail's share of the threshold.
    pub target_ratio: f64,
    /// Tokens of head, notes and tail together after a compaction; replaces the share.
    pub target_tokens: Option<u64>,
    /// Number of messages protected at the beginning.
    pub protect_first_n: usize,
    /// Number of messages protected at the end, unless they exceed the tail's budget by far.
    pub protect_last_n: usize,
    /// Share of the window at which to compact before an agent runs at all.
    pub hygiene_ratio: f64,
    /// Maximum characters of one tool result.
    pub tool_result_chars: u64,
    /// Maximum characters of all tool results of a step.
    pub tool_step_chars: u64,
    /// Characters shown of a result that was stored as an artifact.
    pub tool_preview_chars: u64,
    /// Means of saving money.
    pub economy: Economy,
}

impl LimitPolicy {
    /// Returns the default policy for a window.
    #[must_use]
    pub fn for_window(window_tokens: u64) -> Self {
        Self {
            window_tokens,
            threshold_ratio: 0.50,
            threshold_tokens: None,
            reserved_output_tokens: 0,
            target_ratio: 0.20,
            target_tokens: None,
            protect_first_n: 3,
            protect_last_n: 20,
            hygiene_ratio: 0.85,
            tool_result_chars: 100_000,
            tool_step_chars: 200_000,
            tool_preview_chars: 1_500,
            economy: Economy::OFF,
        }
    }
}

/// A configured and an effective limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Effective<T> {
    /// The configured value.
    pub configured: T,
    /// The effective value.
    pub effective: T,
    /// The reason for the difference, if there is one.
    pub reason: Option<LimitReason>,
}

impl<T: PartialEq> Effective<T> {
    fn new(configured: T, effective: T, reason: LimitReason) -> Self {
        let reason = (configured != effective).then_some(reason);
        Self { configured, effective, reason }
    }
}

/// Why an effective limit differs from the configured one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LimitReason {
    /// The answer and a margin must fit too.
    RoomForOutput {
        /// Tokens reserved for the answer.
        reserved_tokens: u64,
        /// Tokens of the margin.
        margin_tokens: u64,
    },
    /// An answer that long would leave no space for the prompt.
    RoomForPrompt {
        /// Tokens left for the prompt.
        prompt_tokens: u64,
    },
    /// Outside the allowed range.
    OutOfRange {
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
    /// The hygiene limit must be above the threshold.
    AfterThreshold {
        /// The ordinary threshold.
        threshold_tokens: u64,
    },
    /// The window is too small for that much text.
    SmallWindow {
        /// The size of the window.
        window_tokens: u64,
    },
    /// System prompt and tools exceed a small share of the window.
    FixedPart {
        /// Their size.
        fixed_tokens: u64,
        /// The size up to which they count as small.
        small_tokens: u64,
    },
    /// Messages need more space beside a large fixed part than the reserved answer leaves: the output limit is lowered when the view grows
    /// that far.
    RoomForMessages {
        /// Tokens that stay reserved for the answer.
        reserved_tokens: u64,
        /// The size of system prompt and tools.
        fixed_tokens: u64,
    },
}

impl fmt::Display for LimitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RoomForOutput { reserved_tokens: 0, margin_tokens } => {
                write!(f, "{margin_tokens} tokens of the window stay free")
            }
            Self::RoomForOutput { reserved_tokens, margin_tokens } => {
                write!(f, "the answer may take {reserved_tokens} tokens and {margin_tokens} stay free")
            }
            Self::RoomForPrompt { prompt_tokens } => {
                write!(
                    f,
                    "an answer that long would leave no room; {prompt_tokens} tokens are kept for the prompt"
                )
            }
            Self::OutOfRange { low, high } => write!(f, "must lie between {low} and {high}"),
            Self::AfterThreshold { threshold_tokens } => {
                write!(f, "must come after the threshold of {threshold_tokens} tokens")
            }
            Self::SmallWindow { window_tokens } => {
                write!(f, "scaled down for a window of {window_tokens} tokens")
            }
            Self::FixedPart { fixed_tokens, small_tokens } => write!(
                f,
                "system prompt and tools take {fixed_tokens} tokens, more than the {small_tokens} that count as small"
            ),
            Self::RoomForMessages { reserved_tokens, fixed_tokens } => write!(
                f,
                "system prompt and tools take {fixed_tokens} tokens; the answer keeps {reserved_tokens} where messages need the rest"
            ),
        }
    }
}

/// Why no limits can be computed.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum LimitError {
    /// The window is zero.
    #[error("the window is 0 tokens; give the model's context length")]
    NoWindow,
    /// The window is too small.
    #[error("a window of {window_tokens} tokens is too small; at least {SMALLEST_WINDOW_TOKENS} are needed")]
    WindowTooSmall {
        /// The size of the window.
        window_tokens: u64,
    },
    /// A share is not a positive number.
    #[error("{name} is {value}; it must be a number above 0")]
    NotAShare {
        /// The name of the limit.
        name: &'static str,
        /// The invalid value.
        value: f64,
    },
}

/// All limits that follow from a policy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Limits {
    /// The model's window.
    pub window_tokens: u64,
    /// Tokens reserved for the answer.
    pub reserved_output_tokens: Effective<u64>,
    /// Tokens of system prompt and tools, as far as known.
    pub fixed_tokens: u64,
    /// Their tokens beyond a small share of the window.
    pub excess_tokens: u64,
    /// The size at which a conversation is compacted.
    pub threshold_tokens: Effective<u64>,
    /// The size up to which a view may grow while a compaction would not pay for itself.
    pub hard_limit_tokens: Effective<u64>,
    /// The tail's share of the threshold without the excess.
    pub target_ratio: Effective<f64>,
    /// Tokens of head, notes and tail together, if configured.
    pub target_tokens: Option<Effective<u64>>,
    /// Tokens of the tail.
    pub tail_tokens: u64,
    /// Tokens of the protected messages at the beginning.
    pub head_tokens: u64,
    /// Tokens up to which the last `protect_last_n` messages are kept, even beyond the tail's budget.
    pub stretched_tail_tokens: u64,
    /// The minimum budget of a summary, if the middle is large enough.
    pub summary_floor_tokens: u64,
    /// The maximum budget of a summary.
    pub summary_cap_tokens: u64,
    /// The same for a small fixed part.
    pub summary_cap_configured_tokens: u64,
    /// The size at which a conversation is compacted before an agent runs at all.
    pub hygiene_tokens: Effective<u64>,
    /// Number of messages protected at the beginning.
    pub protect_first_n: usize,
    /// Number of messages protected at the end.
    pub protect_last_n: usize,
    /// Budgets for tool output.
    pub tools: ToolBudgets,
}

impl Limits {
    /// The limit of compactions for one call.
    pub const COMPACTIONS_PER_CALL: u32 = 3;
    /// The minimum number of messages in the tail, whatever their size.
    pub const SMALLEST_TAIL_MESSAGES: usize = 3;

    /// Computes all limits for a small fixed part.
    pub fn compute(policy: &LimitPolicy) -> Result<Self, LimitError> {
        Self::beside(policy, 0)
    }

    /// Computes all limits for a system prompt and tools of this size.
    pub fn beside(policy: &LimitPolicy, fixed_tokens: u64) -> Result<Self, LimitError> {
        let window = policy.window_tokens;
        if window == 0 {
            return Err(LimitError::NoWindow);
        }
        if window < SMALLEST_WINDOW_TOKENS {
            return Err(LimitError::WindowTooSmall { window_tokens: window });
        }
        for (name, value) in [
            ("the threshold", policy.threshold_ratio),
            ("the target ratio", policy.target_ratio + f64::MIN_POSITIVE),
            ("the hygiene ratio", policy.hygiene_ratio),
        ] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(LimitError::NotAShare { name, value });
            }
        }

        let usable = percent(window, 100 - FREE_PERCENT);
        let least_prompt = percent(window, 100 - FREE_PERCENT - MOST_RESERVED_PERCENT);
        let reserved = reserve(policy, least_prompt);
        let fixed = FixedPart::new(fixed_tokens, window);
        let threshold = threshold_beside(policy, &fixed, usable, least_prompt);
        let target_ratio = clamp_target(policy.target_ratio);
        let room = message_room(policy, &fixed, threshold.effective);
        let target_tokens = policy.target_tokens.map(|tokens| target_within(tokens, room));
        let tail_tokens = match target_tokens {
            Some(target) => target_tail(target.effective),
            None => share(room, target_ratio.effective),
        };
        // The summary shrinks with the space for messages: this is the window that has as much space without a fixed part.
        let without_fixed = threshold_beside(policy, &FixedPart::new(0, window), usable, least_prompt);
        let as_window = scale(window, room, without_fixed.effective).clamp(SMALLEST_WINDOW_TOKENS, window);
        Ok(Self {
            window_tokens: window,
            reserved_output_tokens: reserved,
            fixed_tokens,
            excess_tokens: fixed.excess_tokens,
            threshold_tokens: threshold,
            hard_limit_tokens: hard_limit(usable, reserved.effective, threshold.effective, &fixed),
            target_ratio,
            target_tokens,
            tail_tokens,
            head_tokens: match target_tokens {
                Some(target) => percent(target.effective, TARGET_HEAD_PERCENT),
                None => tail_tokens / 2,
            },
            stretched_tail_tokens: match target_tokens {
                Some(_) => tail_tokens,
                None => stretched(tail_tokens, &fixed),
            },
            summary_floor_tokens: match target_tokens {
                Some(target) => target_notes(target.effective),
                None => SUMMARY_FLOOR_TOKENS.min(summary_cap(as_window)),
            },
            summary_cap_tokens: match target_tokens {
                Some(target) => SUMMARY_CEILING_TOKENS.min(target.effective),
                None => summary_cap(as_window),
            },
            summary_cap_configured_tokens: summary_cap(window),
            hygiene_tokens: hygiene(policy, reserved.effective, threshold.effective),
            protect_first_n: policy.protect_first_n,
            protect_last_n: policy.protect_last_n,
            tools: ToolBudgets::compute(
                Some(window),
                policy.tool_result_chars,
                policy.tool_step_chars,
                policy.tool_preview_chars,
            ),
        })
    }
}

/// Returns the tokens reserved for the answer, leaving the prompt its minimum share.
fn reserve(policy: &LimitPolicy, least_prompt: u64) -> Effective<u64> {
    let configured = policy.reserved_output_tokens;
    let effective = configured.min(percent(policy.window_tokens, MOST_RESERVED_PERCENT));
    Effective::new(configured, effective, LimitReason::RoomForPrompt { prompt_tokens: least_prompt })
}

/// System prompt and tools in relation to a window.
#[derive(Clone, Copy, Debug)]
struct FixedPart {
    tokens: u64,
    small_tokens: u64,
    /// Their tokens beyond a small share.
    excess_tokens: u64,
}

impl FixedPart {
    fn new(tokens: u64, window_tokens: u64) -> Self {
        let small_tokens = percent(window_tokens, SMALL_FIXED_PERCENT);
        let excess_tokens = tokens.saturating_sub(small_tokens).min(window_tokens - small_tokens);
        Self { tokens, small_tokens, excess_tokens }
    }
}

/// Returns the configured threshold: the share of the window, or the configured tokens if that is less.
fn configured_threshold(policy: &LimitPolicy) -> u64 {
    let by_ratio = share(policy.window_tokens, policy.threshold_ratio).max(1);
    policy.threshold_tokens.map_or(by_ratio, |tokens| tokens.clamp(1, by_ratio))
}

/// Returns the threshold. A share is taken of the window without the excess; a threshold in tokens is unchanged.
fn threshold_beside(
    policy: &LimitPolicy,
    fixed: &FixedPart,
    usable: u64,
    least_prompt: u64,
) -> Effective<u64> {
    let configured = configured_threshold(policy);
    let wanted = match policy.threshold_tokens {
        Some(_) => configured,
        None => fixed
            .excess_tokens
            .saturating_add(share(policy.window_tokens - fixed.excess_tokens, policy.threshold_ratio))
            .max(1),
    };
    let room = usable.saturating_sub(policy.reserved_output_tokens).max(least_prompt);
    let reason = if wanted > room {
        LimitReason::RoomForOutput {
            reserved_tokens: usable - room,
            margin_tokens: policy.window_tokens - usable,
        }
    } else {
        LimitReason::FixedPart { fixed_tokens: fixed.tokens, small_tokens: fixed.small_tokens }
    };
    Effective::new(configured, wanted.min(room), reason)
}

/// Returns the tokens of which the tail and the summary are shares: the messages between the fixed part and the threshold. A small fixed
/// part does not count, one of twice that size or more counts in full, and in between it is phased in, so that limits change continuously.
///
/// A threshold in tokens may be below the fixed part. Such a view is compacted at the hard limit, and this is at least half of what the
/// threshold would give in a window without the fixed part.
fn message_room(policy: &LimitPolicy, fixed: &FixedPart, threshold: u64) -> u64 {
    let counted = fixed.tokens.min(fixed.excess_tokens.saturating_mul(2)).min(policy.window_tokens);
    let beside = scale(configured_threshold(policy), policy.window_tokens - counted, policy.window_tokens);
    threshold.saturating_sub(counted).max(beside / 2).min(threshold)
}

/// Returns the size up to which the last messages may extend the tail: by half for a small fixed part, by less for a larger one, and not at
/// all from twice a small share on, where the tail decides how much a compaction frees.
fn stretched(tail_tokens: u64, fixed: &FixedPart) -> u64 {
    let unused = fixed.small_tokens.saturating_sub(fixed.excess_tokens);
    tail_tokens + scale(tail_tokens / 2, unused, fixed.small_tokens)
}

/// Returns the effective target size: at most half of the messages at the threshold, or a compaction would free too little, and enough for
/// notes of useful size.
fn target_within(configured: u64, room: u64) -> Effective<u64> {
    let (low, high) = (SMALLEST_TARGET_TOKENS.min(room / 2), room / 2);
    let reason = LimitReason::OutOfRange { low: low as f64, high: high as f64 };
    Effective::new(configured, configured.clamp(low, high), reason)
}

/// Returns the minimum tokens of the notes in a view of a configured size.
fn target_notes(target_tokens: u64) -> u64 {
    percent(target_tokens, TARGET_NOTES_PERCENT).min(TARGET_NOTES_TOKENS)
}

/// Returns the tokens of the tail in a view of a configured size.
fn target_tail(target_tokens: u64) -> u64 {
    let beside = percent(target_tokens, 100 - TARGET_HEAD_PERCENT - TARGET_FRAME_PERCENT);
    beside.saturating_sub(target_notes(target_tokens))
}

/// Returns the size up to which a view may grow: everything except the answer and a margin. Beside a large fixed part, that could be so
/// close to the threshold that a compaction would never pay. So the limit is as far above the threshold as the excess is large; for that,
/// up to three quarters of the reserved answer are used.
fn hard_limit(usable: u64, reserved: u64, threshold: u64, fixed: &FixedPart) -> Effective<u64> {
    let configured = usable.saturating_sub(reserved).max(threshold);
    let kept = percent(reserved, LEAST_RESERVED_PERCENT);
    let needed = threshold.saturating_add(fixed.excess_tokens).min(usable.saturating_sub(kept));
    let effective = configured.max(needed);
    let reason = LimitReason::RoomForMessages {
        reserved_tokens: usable.saturating_sub(effective),
        fixed_tokens: fixed.tokens,
    };
    Effective::new(configured, effective, reason)
}

fn clamp_target(configured: f64) -> Effective<f64> {
    let (low, high) = TARGET_RATIO_RANGE;
    Effective::new(configured, configured.clamp(low, high), LimitReason::OutOfRange { low, high })
}

fn summary_cap(window: u64) -> u64 {
    let for_small_windows = SUMMARY_FLOOR_TOKENS.min(window / 8);
    percent(window, SUMMARY_WINDOW_PERCENT).max(for_small_windows).min(SUMMARY_CEILING_TOKENS)
}

/// Returns the hygiene limit: above the threshold, but low enough for the answer to fit.
fn hygiene(policy: &LimitPolicy, reserved: u64, threshold: u64) -> Effective<u64> {
    let window = policy.window_tokens;
    let configured = share(window, policy.hygiene_ratio);
    let wanted = configured.max(threshold + percent(window, HYGIENE_DISTANCE_PERCENT));
    let room = window - reserved - 1;
    let reason = if wanted > room {
        LimitReason::RoomForOutput { reserved_tokens: reserved, margin_tokens: 1 }
    } else {
        LimitReason::AfterThreshold { threshold_tokens: threshold }
    };
    Effective::new(configured, wanted.min(room), reason)
}

/// Limits of tool output sent to the model, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ToolBudgets {
    /// For one result.
    pub result_chars: Effective<u64>,
    /// For all results of a step.
    pub step_chars: Effective<u64>,
    /// For the preview of a result that was stored as an artifact.
    pub preview_chars: Effective<u64>,
}

impl ToolBudgets {
    /// Scales the limits to a window; without a known window they are as configured.
    #[must_use]
    pub fn compute(
        window_tokens: Option<u64>,
        result_chars: u64,
        step_chars: u64,
        preview_chars: u64,
    ) -> Self {
        let scaled = |configured: u64, window_percent: u64, floor: u64| {
            let Some(window_tokens) = window_tokens else {
                return Effective { configured, effective: configured, reason: None };
            };
            let fitting = percent(window_tokens.saturating_mul(CHARS_A_TOKEN), window_percent).max(floor);
            Effective::new(configured, configured.min(fitting), LimitReason::SmallWindow { window_tokens })
        };
        let result = scaled(result_chars, RESULT_WINDOW_PERCENT, RESULT_FLOOR_CHARS);
        let reason = LimitReason::OutOfRange { low: 0.0, high: result.effective as f64 };
        Self {
            result_chars: result,
            step_chars: scaled(step_chars, STEP_WINDOW_PERCENT, STEP_FLOOR_CHARS),
            preview_chars: Effective::new(preview_chars, preview_chars.min(result.effective), reason),
        }
    }
}

/// Returns a whole percentage, rounded down, without overflow.
fn percent(of: u64, percent: u64) -> u64 {
    let wide = u128::from(of) * u128::from(percent) / 100;
    u64::try_from(wide).unwrap_or(u64::MAX)
}

/// Returns the amount that is the same share of `to` as `amount` is of `from`, rounded down, without overflow.
fn scale(amount: u64, to: u64, from: u64) -> u64 {
    let wide = u128::from(amount) * u128::from(to) / u128::from(from.max(1));
    u64::try_from(wide).unwrap_or(u64::MAX)
}

/// Returns a share, rounded down; a product within rounding error of a whole number counts as that number.
fn share(of: u64, ratio: f64) -> u64 {
    const LAST_BITS: f64 = 1e-9;
    (of as f64 * ratio + LAST_BITS).floor() as u64
}

#[cfg(test)]
#[path = "budget_tests.rs"]
mod tests;
