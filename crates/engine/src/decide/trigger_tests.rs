//! Tests of when a conversation is compacted.

use throughline_tokens::{CachePrices, LimitPolicy, Limits, Usage};

use super::Urgency::{Due, Must, Overdue};
use super::{
    Automatic, CallSince, CompactionVerdict, IdleInput, ModelSwitch, PreflightInput, StayReason, Trigger,
    Urgency, after_answer, before_call, idle_in_ms, near_threshold, switch, while_idle,
};
use crate::limits::in_force::{EngineLimits, ModelInForce, NotesPrice};

/// Window 200,000: threshold 100,000, hygiene 170,000, hard limit 196,000.
fn model(window_tokens: u64, reserved_output_tokens: u64) -> ModelInForce {
    let policy = LimitPolicy { reserved_output_tokens, ..LimitPolicy::for_window(window_tokens) };
    let limits = EngineLimits::from(&Limits::compute(&policy).unwrap());
    let prices = CachePrices::default();
    ModelInForce {
        model: "m".to_owned(),
        provider: "p".to_owned(),
        window_tokens,
        limits,
        prices,
        notes_price: NotesPrice::default(),
    }
}

const STAY: CompactionVerdict = CompactionVerdict::Stay(StayReason::RoomLeft);
const OFF: CompactionVerdict = CompactionVerdict::Stay(StayReason::TurnedOff);

fn compact(trigger: Trigger, urgency: Urgency) -> CompactionVerdict {
    CompactionVerdict::Compact { trigger, urgency }
}

#[test]
fn before_a_call() {
    use Automatic::{Off, On};
    use ModelSwitch::{No, ToSmallerWindow};
    let model = model(200_000, 0);
    // automatic, engine wants, pending, messages, switch
    let cases = [
        ((On, false, 99_999, 50, No), STAY),
        ((On, true, 100_000, 50, No), compact(Trigger::Preflight, Due)),
        // The hygiene limit applies to a conversation that was just opened, if the engine does not compact.
        ((On, false, 169_999, 50, No), STAY),
        ((On, false, 170_000, 50, No), compact(Trigger::Hygiene, Overdue)),
        ((On, false, 170_000, 3, No), STAY),
        ((On, true, 170_000, 50, No), compact(Trigger::Preflight, Overdue)),
        // The prompt exceeds the window.
        ((On, true, 196_001, 50, No), compact(Trigger::Preflight, Must)),
        ((On, false, 196_001, 2, No), compact(Trigger::Hygiene, Must)),
        // Change to a model with a smaller window.
        ((On, true, 120_000, 50, ToSmallerWindow), compact(Trigger::ModelSwitch, Due)),
        ((On, true, 250_000, 50, ToSmallerWindow), compact(Trigger::ModelSwitch, Must)),
        ((On, false, 50_000, 50, ToSmallerWindow), STAY),
        // If turned off, nothing is compacted at any size.
        ((Off, true, 100_000, 50, No), OFF),
        ((Off, true, 170_000, 50, No), OFF),
        ((Off, true, 999_999, 50, ToSmallerWindow), OFF),
    ];
    for ((automatic, engine_wants, pending_tokens, messages, switch), expected) in cases {
        let since = CallSince::Opened;
        let figures = PreflightInput {
            automatic,
            engine_wants,
            pending_tokens,
            messages,
            model: &model,
            switch,
            since,
        };
        assert_eq!(before_call(&figures), expected, "{figures:?}");
    }
}

#[test]
fn the_second_net_holds_for_the_first_call_only() {
    let model = model(200_000, 0);
    let verdict = |engine_wants, pending_tokens| {
        before_call(&PreflightInput {
            automatic: Automatic::On,
            engine_wants,
            pending_tokens,
            messages: 50,
            model: &model,
            switch: ModelSwitch::No,
            since: CallSince::AnotherCall,
        })
    };
    assert_eq!(verdict(false, 190_000), STAY);
    assert_eq!(verdict(true, 190_000), compact(Trigger::Preflight, Due), "it may still wait until it pays");
    assert_eq!(verdict(true, 196_001), compact(Trigger::Preflight, Must));
}

#[test]
fn the_answer_needs_room_too() {
    let model = model(200_000, 64_000);
    let verdict = |pending_tokens| {
        let figures = PreflightInput {
            automatic: Automatic::On,
            engine_wants: true,
            pending_tokens,
            messages: 9,
            model: &model,
            switch: ModelSwitch::No,
            since: CallSince::Opened,
        };
        before_call(&figures)
    };
    assert_eq!(verdict(132_001), compact(Trigger::Preflight, Must));
    assert_eq!(verdict(132_000), compact(Trigger::Preflight, Due));
    assert_eq!(verdict(120_000), compact(Trigger::Preflight, Due));
}

#[test]
fn only_the_prompt_counts_after_an_answer() {
    let usage =
        Usage { input: 10, cache_read: 60_000, cache_write: 20_000, output: 90_000, reasoning: 80_000 };
    assert_eq!(usage.prompt(), 80_010);
    assert_eq!(after_answer(Automatic::On, false), STAY);
    assert_eq!(after_answer(Automatic::On, true), compact(Trigger::Settle, Due));
    assert_eq!(after_answer(Automatic::Off, true), OFF);
}

#[test]
fn preparing_starts_at_four_fifths() {
    assert!(!near_threshold(Automatic::On, 79_999, 100_000));
    assert!(near_threshold(Automatic::On, 80_000, 100_000));
    assert!(near_threshold(Automatic::On, 120_000, 100_000));
    assert!(!near_threshold(Automatic::Off, 120_000, 100_000));
}

#[test]
fn while_nothing_happens() {
    const FIVE_MINUTES: u64 = 300_000;
    let warm = CompactionVerdict::Stay(StayReason::CacheWarm);
    // automatic, tokens, idle for ms -> verdict, time until the next check
    let cases = [
        ((Automatic::On, 75_000, 900_000), STAY, None),
        ((Automatic::On, 75_001, 299_999), warm, Some(1)),
        ((Automatic::On, 75_001, 300_000), compact(Trigger::Idle, Due), Some(0)),
        ((Automatic::On, 99_000, 0), warm, Some(FIVE_MINUTES)),
        // A clock that was set back.
        ((Automatic::On, 99_000, -5_000), warm, Some(FIVE_MINUTES)),
        ((Automatic::Off, 99_000, 900_000), OFF, None),
    ];
    for ((automatic, tokens, idle_ms), expected, again) in cases {
        let figures = IdleInput {
            automatic,
            tokens,
            fixed_tokens: 0,
            threshold_tokens: 100_000,
            cold_tokens: None,
            last_call_ms: 1_000_000,
            cache_ttl_ms: FIVE_MINUTES,
            now_ms: 1_000_000 + idle_ms,
        };
        assert_eq!(while_idle(&figures), expected, "{figures:?}");
        assert_eq!(idle_in_ms(&figures), again, "{figures:?}");
    }
}

#[test]
fn idle_time_looks_at_the_messages_alone() {
    let figures = |tokens| IdleInput {
        automatic: Automatic::On,
        tokens,
        fixed_tokens: 42_000,
        threshold_tokens: 111_000,
        cold_tokens: None,
        last_call_ms: 0,
        cache_ttl_ms: 300_000,
        now_ms: 300_000,
    };
    // 69,000 tokens of messages fit below the threshold; three quarters of them are 51,750.
    assert_eq!(while_idle(&figures(93_750)), STAY);
    assert_eq!(while_idle(&figures(93_751)), compact(Trigger::Idle, Due));
}

#[test]
fn a_switch_counts_when_it_leaves_less_room() {
    let cases = [
        (model(200_000, 0), model(128_000, 0), ModelSwitch::ToSmallerWindow),
        (model(128_000, 0), model(200_000, 0), ModelSwitch::No),
        (model(200_000, 0), model(200_000, 0), ModelSwitch::No),
        (model(200_000, 0), model(200_000, 150_000), ModelSwitch::ToSmallerWindow),
    ];
    for (old, new, expected) in cases {
        assert_eq!(switch(&old, &new), expected, "{} -> {}", old.window_tokens, new.window_tokens);
    }
}
