//! Tests of the documented figures, of Hermes' test vectors where ours agree, and of properties for every window.

use proptest::prelude::*;

use super::*;

fn limits(window_tokens: u64) -> Limits {
    Limits::compute(&LimitPolicy::for_window(window_tokens)).unwrap()
}

fn with(window_tokens: u64, change: impl FnOnce(&mut LimitPolicy)) -> Limits {
    let mut policy = LimitPolicy::for_window(window_tokens);
    change(&mut policy);
    Limits::compute(&policy).unwrap()
}

#[test]
fn defaults_at_two_hundred_thousand() {
    let limits = limits(200_000);
    assert_eq!(limits.threshold_tokens, Effective { configured: 100_000, effective: 100_000, reason: None });
    assert_eq!((limits.tail_tokens, limits.stretched_tail_tokens), (20_000, 30_000));
    assert_eq!((limits.summary_floor_tokens, limits.summary_cap_tokens), (2_000, 10_000));
    assert_eq!(limits.hygiene_tokens, Effective { configured: 170_000, effective: 170_000, reason: None });
    assert_eq!((limits.tools.result_chars.effective, limits.tools.step_chars.effective), (100_000, 200_000));
    assert_eq!((limits.protect_first_n, limits.protect_last_n), (3, 20));
}

#[test]
fn thresholds_and_tails_of_common_windows() {
    // Window, threshold, tail, largest summary.
    for (window, threshold, tail, summary) in [
        (8_000, 4_000, 800, 1_000),
        (32_768, 16_384, 3_276, 2_000),
        (64_000, 32_000, 6_400, 3_200),
        (65_536, 32_768, 6_553, 3_276),
        (128_000, 64_000, 12_800, 6_400),
        (262_144, 131_072, 26_214, 12_000),
        (511_999, 255_999, 51_199, 12_000),
        (512_000, 256_000, 51_200, 12_000),
        (1_000_000, 500_000, 100_000, 12_000),
    ] {
        let limits = limits(window);
        assert_eq!(
            (limits.threshold_tokens.effective, limits.tail_tokens, limits.summary_cap_tokens),
            (threshold, tail, summary),
            "{window}"
        );
        assert_eq!(limits.threshold_tokens.reason, None, "{window}");
    }
    let codex = with(272_000, |policy| policy.threshold_ratio = 0.85);
    assert_eq!((codex.threshold_tokens.effective, codex.tail_tokens), (231_200, 46_240));
}

#[test]
fn a_reserved_answer_lowers_the_threshold_only_when_it_must() {
    let roomy = with(200_000, |policy| policy.reserved_output_tokens = 32_000);
    assert_eq!(roomy.threshold_tokens.effective, 100_000);

    let tight = with(131_072, |policy| policy.reserved_output_tokens = 65_536);
    assert_eq!(tight.threshold_tokens.configured, 65_536);
    assert_eq!(tight.threshold_tokens.effective, 128_450 - 65_536);
    assert_eq!(
        tight.threshold_tokens.reason.unwrap().to_string(),
        "the answer may take 65536 tokens and 2622 stay free"
    );
}

#[test]
fn an_answer_as_long_as_the_window_is_cut_and_said() {
    let limits = with(70_000, |policy| policy.reserved_output_tokens = 70_000);
    assert_eq!(limits.reserved_output_tokens.configured, 70_000);
    assert_eq!(limits.reserved_output_tokens.effective, 52_500);
    assert_eq!(
        limits.reserved_output_tokens.reason.unwrap().to_string(),
        "an answer that long would leave no room; 16100 tokens are kept for the prompt"
    );
    assert_eq!(limits.threshold_tokens.effective, 16_100);
}

#[test]
fn an_absolute_threshold_counts_when_it_is_sooner() {
    let sooner = with(200_000, |policy| policy.threshold_tokens = Some(60_000));
    assert_eq!(sooner.threshold_tokens, Effective { configured: 60_000, effective: 60_000, reason: None });
    let later = with(200_000, |policy| policy.threshold_tokens = Some(180_000));
    assert_eq!(later.threshold_tokens.effective, 100_000);
}

#[test]
fn the_target_ratio_is_clamped_and_said() {
    for (configured, effective) in [(0.0, 0.10), (0.05, 0.10), (0.2, 0.2), (0.9, 0.80), (1.5, 0.80)] {
        let limits = with(200_000, |policy| policy.target_ratio = configured);
        assert_eq!(limits.target_ratio.effective, effective);
        assert_eq!(limits.target_ratio.reason.is_some(), configured != effective, "{configured}");
        assert_eq!(limits.tail_tokens, (100_000.0 * effective) as u64);
    }
}

#[test]
fn hygiene_comes_after_the_threshold_and_before_the_window_ends() {
    let eager = with(200_000, |policy| policy.threshold_ratio = 0.85);
    assert_eq!(eager.hygiene_tokens.configured, 170_000);
    assert_eq!(eager.hygiene_tokens.effective, 180_000);
    assert!(eager.hygiene_tokens.reason.unwrap().to_string().contains("threshold of 170000"));
    let reserved = with(200_000, |policy| policy.reserved_output_tokens = 64_000);
    assert_eq!(reserved.hygiene_tokens.effective, 135_999);
}

#[test]
fn tool_budgets_scale_with_the_window() {
    let budgets = |window| ToolBudgets::compute(window, 100_000, 200_000, 1_500);
    for (window, result, step) in [
        (None, 100_000, 200_000),
        (Some(8_000), 8_000, 16_000),
        (Some(64_000), 38_400, 76_800),
        (Some(128_000), 76_800, 153_600),
        (Some(166_667), 100_000, 200_000),
        (Some(1_000_000), 100_000, 200_000),
    ] {
        let budgets = budgets(window);
        assert_eq!(
            (budgets.result_chars.effective, budgets.step_chars.effective),
            (result, step),
            "{window:?}"
        );
        assert_eq!(budgets.result_chars.reason.is_some(), result != 100_000);
        assert_eq!(budgets.preview_chars.effective, 1_500);
    }
    let own = ToolBudgets::compute(Some(8_000), 1_000, 2_000, 1_500);
    assert_eq!((own.result_chars.effective, own.step_chars.effective), (1_000, 2_000), "smaller wishes hold");
    assert_eq!(own.preview_chars.effective, 1_000);
}

fn beside(window_tokens: u64, reserved_output_tokens: u64, fixed_tokens: u64) -> Limits {
    let policy = LimitPolicy { reserved_output_tokens, ..LimitPolicy::for_window(window_tokens) };
    Limits::beside(&policy, fixed_tokens).unwrap()
}

#[test]
fn a_small_fixed_part_changes_no_limit() {
    for window in [8_192, 90_000, 128_000, 200_000, 1_000_000] {
        let small = window / 10;
        for fixed in [0, small / 2, small] {
            let found = beside(window, 0, fixed);
            assert_eq!(Limits { fixed_tokens: 0, ..found }, limits(window), "{window} beside {fixed}");
        }
        assert!(beside(window, 0, small + 10).threshold_tokens.reason.is_some(), "{window}");
    }
}

#[test]
fn limits_beside_a_large_fixed_part() {
    // Window, reserved answer, fixed part -> threshold, hard limit, tail, head, largest summary.
    for ((window, reserved, fixed), expected) in [
        ((200_000, 0, 20_000), (100_000, 196_000, 20_000, 10_000, 10_000)),
        ((200_000, 32_000, 42_000), (111_000, 164_000, 13_800, 6_900, 6_900)),
        // The agent requests 32,000 tokens for the answer: the hard limit uses some of them.
        ((90_000, 32_000, 31_000), (56_000, 78_000, 5_000, 2_500, 2_500)),
        ((90_000, 0, 31_000), (56_000, 88_200, 5_000, 2_500, 2_500)),
        ((128_000, 32_000, 16_000), (65_600, 93_440, 11_840, 5_920, 5_920)),
        ((8_192, 0, 2_600), (4_986, 8_028, 477, 238, 596)),
        // System prompt and tools that fill the window leave no space.
        ((90_000, 0, 500_000), (85_500, 88_200, 0, 0, 64)),
    ] {
        let found = beside(window, reserved, fixed);
        assert_eq!(
            (
                found.threshold_tokens.effective,
                found.hard_limit_tokens.effective,
                found.tail_tokens,
                found.head_tokens,
                found.summary_cap_tokens
            ),
            expected,
            "{window} with {reserved} reserved beside {fixed}"
        );
    }
}

#[test]
fn limits_beside_a_large_fixed_part_say_why() {
    let found = beside(90_000, 32_000, 31_000);
    assert_eq!(found.threshold_tokens.configured, 45_000);
    assert_eq!(
        found.threshold_tokens.reason.unwrap().to_string(),
        "system prompt and tools take 31000 tokens, more than the 9000 that count as small"
    );
    assert_eq!(found.hard_limit_tokens.configured, 56_200);
    assert_eq!(
        found.hard_limit_tokens.reason.unwrap().to_string(),
        "system prompt and tools take 31000 tokens; the answer keeps 10200 where messages need the rest"
    );
    assert_eq!(found.summary_cap_configured_tokens, 4_500);
}

#[test]
fn an_absolute_threshold_holds_beside_a_large_fixed_part() {
    let policy = LimitPolicy { threshold_tokens: Some(60_000), ..LimitPolicy::for_window(200_000) };
    let found = Limits::beside(&policy, 70_000).unwrap();
    assert_eq!(found.threshold_tokens, Effective { configured: 60_000, effective: 60_000, reason: None });
    // The fixed part alone is above the threshold: the tail is a fifth of half the share of what lies beside it.
    assert_eq!(found.tail_tokens, 60_000 * 130 / 200 / 2 / 5);
    assert_eq!(found.stretched_tail_tokens, found.tail_tokens, "and nothing is stretched");
}

#[test]
fn windows_that_hold_nothing_are_refused() {
    let refused = |window| Limits::compute(&LimitPolicy::for_window(window)).unwrap_err().to_string();
    assert_eq!(refused(0), "the window is 0 tokens; give the model's context length");
    assert_eq!(refused(511), "a window of 511 tokens is too small; at least 512 are needed");
    let policy = LimitPolicy { threshold_ratio: f64::NAN, ..LimitPolicy::for_window(1_000) };
    assert!(matches!(Limits::compute(&policy), Err(LimitError::NotAShare { name: "the threshold", .. })));
    let policy = LimitPolicy { target_ratio: -0.1, ..LimitPolicy::for_window(1_000) };
    assert!(matches!(Limits::compute(&policy), Err(LimitError::NotAShare { name: "the target ratio", .. })));
}

#[test]
fn reports_say_configured_effective_and_why() {
    let json = serde_json::to_value(with(131_072, |policy| policy.reserved_output_tokens = 65_536)).unwrap();
    assert_eq!(json["threshold_tokens"]["configured"], 65_536);
    assert_eq!(json["threshold_tokens"]["effective"], 62_914);
    assert_eq!(json["threshold_tokens"]["reason"]["kind"], "room_for_output");
    assert_eq!(json["tail_tokens"], 12_582);
}

fn policies() -> impl Strategy<Value = LimitPolicy> {
    let window =
        prop_oneof![SMALLEST_WINDOW_TOKENS..20_000, 20_000u64..3_000_000, 3_000_000..u64::MAX / 1_000];
    let threshold_tokens = prop_oneof![Just(None), (0u64..1_000_000).prop_map(Some)];
    let reserved = prop_oneof![Just(0), 0u64..200_000, any::<u64>()];
    (window, 0.01f64..1.5, threshold_tokens, reserved, 0.0f64..1.5, 0.01f64..1.2).prop_map(
        |(
            window_tokens,
            threshold_ratio,
            threshold_tokens,
            reserved_output_tokens,
            target_ratio,
            hygiene_ratio,
        )| {
            LimitPolicy {
                threshold_ratio,
                threshold_tokens,
                reserved_output_tokens,
                target_ratio,
                hygiene_ratio,
                ..LimitPolicy::for_window(window_tokens)
            }
        },
    )
}

fn fixed_parts() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 0u64..5_000, 5_000u64..200_000, any::<u64>()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(throughline_testkit::cases(2_000)))]

    #[test]
    fn limits_fit_into_each_other(policy in policies(), fixed in fixed_parts()) {
        let limits = Limits::beside(&policy, fixed).unwrap();
        let (threshold, reserved) = (limits.threshold_tokens.effective, limits.reserved_output_tokens.effective);
        let free = policy.window_tokens - policy.window_tokens * 98 / 100;
        prop_assert!(threshold >= 1);
        prop_assert!(threshold + reserved + free <= policy.window_tokens, "{limits:?}");
        prop_assert!(threshold < policy.window_tokens - reserved);
        prop_assert!(limits.tail_tokens < threshold.max(2));
        prop_assert!(limits.head_tokens <= limits.tail_tokens);
        let hard = limits.hard_limit_tokens;
        prop_assert!(hard.configured >= threshold && hard.effective >= hard.configured, "{limits:?}");
        prop_assert!(hard.effective + reserved / 4 + free <= policy.window_tokens, "{limits:?}");
        prop_assert!(limits.hygiene_tokens.effective >= threshold, "{limits:?}");
        prop_assert!(limits.hygiene_tokens.effective < policy.window_tokens - reserved);
        prop_assert!(limits.summary_cap_tokens <= policy.window_tokens / 8);
    }

    #[test]
    fn a_reason_is_given_exactly_when_a_value_was_changed(policy in policies(), fixed in fixed_parts()) {
        let limits = Limits::beside(&policy, fixed).unwrap();
        let tools = limits.tools;
        for limit in [limits.threshold_tokens, limits.reserved_output_tokens, limits.hygiene_tokens,
            limits.hard_limit_tokens,
            tools.result_chars, tools.step_chars, tools.preview_chars] {
            prop_assert_eq!(limit.reason.is_some(), limit.configured != limit.effective);
        }
        let target = limits.target_ratio;
        prop_assert_eq!(target.reason.is_some(), target.configured != target.effective);
    }

    #[test]
    fn a_larger_fixed_part_leaves_the_messages_their_share(policy in policies(), fixed in 0u64..400_000, more in 1u64..100) {
        let policy = LimitPolicy { threshold_tokens: None, window_tokens: policy.window_tokens.min(1 << 40), ..policy };
        let (here, there) = (Limits::beside(&policy, fixed).unwrap(), Limits::beside(&policy, fixed + more).unwrap());
        // The threshold follows the fixed part, never faster than it grows, and what the messages get only shrinks.
        let (before, after) = (here.threshold_tokens.effective, there.threshold_tokens.effective);
        prop_assert!(before <= after && after - before <= more + 2);
        prop_assert!(there.tail_tokens <= here.tail_tokens);
        prop_assert!(there.summary_cap_tokens <= here.summary_cap_tokens);
        let (before, after) = (here.hard_limit_tokens.effective, there.hard_limit_tokens.effective);
        prop_assert!(before <= after && after - before <= more * 2 + 2);
    }

    #[test]
    fn a_larger_window_never_lowers_a_limit_and_never_jumps(policy in policies(), more in 1u64..100) {
        // Beyond this, shares of a window are no longer exact in floating point.
        let policy = LimitPolicy { window_tokens: policy.window_tokens.min(1 << 40), ..policy };
        let here = Limits::compute(&policy).unwrap();
        let there = Limits::compute(&LimitPolicy { window_tokens: policy.window_tokens + more, ..policy }).unwrap();
        let steady = |a: u64, b: u64, steepness: u64| a <= b && b - a <= more * steepness + 2;
        prop_assert!(steady(here.threshold_tokens.effective, there.threshold_tokens.effective, 2));
        prop_assert!(steady(here.reserved_output_tokens.effective, there.reserved_output_tokens.effective, 1));
        prop_assert!(steady(here.tail_tokens, there.tail_tokens, 2));
        prop_assert!(steady(here.summary_cap_tokens, there.summary_cap_tokens, 1));
        prop_assert!(steady(here.tools.result_chars.effective, there.tools.result_chars.effective, 1));
        prop_assert!(steady(here.tools.step_chars.effective, there.tools.step_chars.effective, 2));
    }
}
