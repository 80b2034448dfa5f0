//! Tests of what blocks compactions and what ends a block, as sequences of events.
//!
//! A sequence is a row of words: `done A>B` a compaction from A to B thousand tokens, `prompt N` a measured prompt of N thousand, `silent`
//! an answer without figures, `noop REASON`, `abort REASON`, `+Ns` and `+Nm` time that passes, `model` a new model. `due N`, `overdue N`
//! and `must N` query whether an attempt may be made with N thousand tokens. The threshold is 100 thousand.

use throughline_compaction::{AbortReason, BeforeAfter, NoOpReason};
use throughline_store::Millis;

use super::{Admission, BlockCause, GuardInput, GuardState};

use crate::decide::trigger::Urgency;

fn thousand(word: &str) -> u64 {
    word.parse::<u64>().unwrap() * 1_000
}

/// Runs a sequence; returns the results of its queries.
fn play(story: &str) -> String {
    let mut state = GuardState::default();
    let mut now_ms: Millis = 0;
    let mut answers = Vec::new();
    for step in story.split(',').map(str::trim) {
        let (verb, rest) = step.split_once(' ').unwrap_or((step, ""));
        let at = |tokens: u64| GuardInput { now_ms, tokens, threshold_tokens: 100_000 };
        match verb {
            "done" => {
                let (before, after) = rest.split_once('>').unwrap();
                let tokens = BeforeAfter { before: thousand(before), after: thousand(after) };
                state.completed(tokens, at(tokens.after));
            }
            "prompt" => state.measured(at(thousand(rest))),
            "silent" => state.unmeasured(),
            "model" => state.reset(),
            "noop" => {
                let reason = serde_json::from_value::<NoOpReason>(rest.into()).unwrap();
                state.no_op(reason, at(100_000));
            }
            "abort" => {
                let reason = serde_json::from_value::<AbortReason>(rest.into()).unwrap();
                state.aborted(reason, "it failed", at(100_000));
            }
            "due" | "overdue" | "must" => {
                let urgency = serde_json::from_value::<Urgency>(verb.into()).unwrap();
                answers.push(match state.admit(at(thousand(rest)), urgency) {
                    Admission::Go => "go".to_owned(),
                    Admission::Blocked(block) => {
                        let cause = match block.cause {
                            BlockCause::NoProgress => "vain",
                            BlockCause::SummariserFailed => "failed",
                            BlockCause::ResultInvalid => "invalid",
                        };
                        let secs = (block.until_ms - now_ms) / 1_000;
                        format!("{cause} {secs}s {}k", block.released_at_tokens / 1_000)
                    }
                });
            }
            time => {
                let amount = time.trim_start_matches('+');
                let (number, unit) = amount.split_at(amount.len() - 1);
                now_ms += number.parse::<Millis>().unwrap() * if unit == "m" { 60_000 } else { 1_000 };
            }
        }
        // The state is the same after saving and loading.
        let kept = serde_json::to_value(&state).unwrap();
        assert_eq!(serde_json::from_value::<GuardState>(kept).unwrap(), state, "{step}");
    }
    answers.join(", ")
}

#[test]
fn stories() {
    let cases = [
        // One ineffective compaction blocks nothing.
        ("due 100", "go"),
        ("done 120>119, due 119", "go"),
        ("done 120>60, prompt 101, due 101", "go"),
        // Two ineffective ones, by the saving or by the measured prompt, block further ones.
        ("done 120>119, done 120>119, due 119", "vain 300s 129k"),
        ("done 120>60, prompt 101, done 120>60, prompt 102, due 102", "vain 300s 112k"),
        ("done 120>119, done 119>60, prompt 100, due 100", "vain 300s 110k"),
        // Only the first prompt after a compaction counts.
        ("done 120>60, prompt 90, prompt 101, prompt 102, due 102", "go"),
        // A prompt below the threshold clears strikes and the block they made.
        ("done 120>119, prompt 99, done 120>119, due 119", "go"),
        ("done 120>119, done 120>119, prompt 90, due 119", "go"),
        // An answer without figures is not a strike.
        ("done 120>60, silent, prompt 101, done 120>60, silent, prompt 101, due 101", "go"),
        // Released by time, then blocked for longer.
        ("done 120>119, done 120>119, +299s, due 119, +1s, due 119", "vain 1s 129k, go"),
        ("done 120>119, done 120>119, +5m, done 120>119, due 119", "vain 900s 129k"),
        ("done 120>119, done 120>119, +5m, done 120>119, +15m, done 120>119, due 119", "vain 3600s 129k"),
        // Released by growth.
        ("done 120>119, done 120>119, due 128, due 129", "vain 300s 129k, go"),
        // Finding nothing to compact is not a failure, however often.
        ("noop nothing_in_the_middle, noop nothing_new, noop empty, noop below_threshold, due 150", "go"),
        ("noop would_not_shrink, due 100, noop would_not_shrink, due 100", "go, vain 300s 110k"),
        // Temporary failures of the summariser: longer each time, until one attempt succeeds.
        ("abort summariser_unavailable, due 100", "failed 60s 110k"),
        ("abort summariser_unavailable, +60s, due 100", "go"),
        ("abort summariser_unavailable, +1m, abort summariser_unavailable, due 100", "failed 300s 110k"),
        (
            "abort summary_unusable, +1m, abort summary_unusable, +5m, abort summary_unusable, +15m, abort summary_unusable, due 100",
            "failed 900s 110k",
        ),
        (
            "abort summariser_unavailable, +1m, done 120>40, abort summariser_unavailable, due 100",
            "failed 60s 110k",
        ),
        // Failures that need a change.
        ("abort summariser_failed, due 100", "failed 600s 110k"),
        ("abort result_invalid, due 100", "invalid 600s 110k"),
        // A measured prompt does not clear a summariser's failure.
        ("abort summariser_failed, prompt 90, due 100", "failed 600s 110k"),
        // Compactions that are required, overdue or requested by the user are not blocked.
        ("abort summariser_failed, due 100, overdue 100, must 100", "failed 600s 110k, go, go"),
        // Another model clears the history.
        ("abort summariser_failed, model, due 100", "go"),
    ];
    for (story, expected) in cases {
        assert_eq!(play(story), expected, "{story}");
    }
}

#[test]
fn a_state_of_an_older_version_can_be_read() {
    let state: GuardState = serde_json::from_str(r#"{"strikes": 1}"#).unwrap();
    assert!(!state.is_clear());
    assert!(GuardState::default().is_clear());
}
