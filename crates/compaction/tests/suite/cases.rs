//! Conversations that are odd in one way each: a sensible outcome, never a panic, never longer than before.

use throughline_compaction::{Act, Attempt, Budgets, Ledger, NoOpReason, Outcome, ViewItem};
use throughline_testkit::{big_transcript, from_picture};
use throughline_tokens::{LimitPolicy, Limits};
use throughline_transcript::{Role, WireFormat};

use crate::harness::{Case, Setup};
use crate::invariants::{check, check_repaired};
use crate::talk::Talk;

#[track_caller]
fn assert_holds(case: &Case, setup: &Setup) -> Attempt {
    let attempt = case.compact(setup);
    if let Err(wrong) = check(case, &attempt) {
        panic!("{wrong}\n{:?}\n{:?}", attempt.outcome, attempt.plan);
    }
    attempt
}

fn no_op(reason: NoOpReason) -> Outcome {
    Outcome::NoOp { reason, detail: reason.words().to_owned() }
}

/// Lines of a log, about so many characters of them.
fn log_lines(step: usize, chars: usize) -> String {
    let mut out = String::new();
    let mut line = 0;
    while out.len() < chars {
        out.push_str(&format!(
            "{:>4} | let value_{step}_{line} = table.get({}) + {line};\n",
            line + 1,
            step * 7
        ));
        line += 1;
    }
    out
}

#[test]
fn one_endless_tool_turn_is_compacted_to_budget() {
    for wire_format in WireFormat::ALL {
        let mut talk = Talk::new(wire_format);
        talk.user(
            "Port the parser in src/parser.rs to the new table API. Do not change its public functions.",
        );
        for step in 0..300 {
            let path = format!(r#"{{"path":"src/part_{}.rs","offset":1,"limit":80}}"#, step % 40);
            talk.step("read_file", &path, &log_lines(step, 2_000));
        }
        let case = talk.case();
        assert!(case.tokens() > 150_000);
        let setup = Setup::window(100_000).unforced();
        let attempt = assert_holds(&case, &setup);
        assert!(attempt.outcome.is_completed(), "{wire_format}: {:?}", attempt.outcome);
        let report = &attempt.report;
        let shown = &report.plan;
        assert!(
            report.tokens.after < setup.budgets.threshold_tokens / 2,
            "{wire_format}: {:?}",
            report.tokens
        );
        assert!(shown.tail.tokens <= setup.budgets.tail_tokens * 3 / 2, "{wire_format}: {:?}", shown.tail);
        assert!(
            report.summary_tokens <= shown.summary_budget_tokens + 400,
            "{wire_format}: {}",
            report.summary_tokens
        );
        assert!(shown.pinned.is_some());
        assert_eq!(report.warnings, Vec::<String>::new());
    }
}

/// Fifteen short questions and answers.
fn short_exchanges() -> Case {
    let mut talk = Talk::new(WireFormat::Chat);
    for n in 0..15 {
        talk.user(&format!("What does option {n} of the server do, and is it on by default?"));
        talk.answer(&format!("Option {n} sets how many workers start; it is on, with {} workers.", n + 2));
    }
    talk.case()
}

#[test]
fn thirty_short_messages_are_compacted_only_on_demand() {
    let case = short_exchanges();
    let attempt = assert_holds(&case, &Setup::window(200_000).unforced());
    assert_eq!(attempt.outcome, no_op(NoOpReason::BelowThreshold));
    let attempt = assert_holds(&case, &Setup::window(200_000));
    assert!(attempt.outcome.is_completed(), "{:?}", attempt.outcome);
    let plan = attempt.plan.as_ref().unwrap();
    assert!(plan.tail.len() >= 3 && plan.middle.len() >= 15, "{plan:?}");
}

#[test]
fn a_conversation_of_nothing_but_tool_steps_is_compacted() {
    for wire_format in WireFormat::ALL {
        let mut talk = Talk::new(wire_format);
        for step in 0..60 {
            talk.step("read_file", &format!(r#"{{"path":"src/part_{step}.rs"}}"#), &log_lines(step, 1_200));
        }
        let case = talk.case();
        let attempt = case.compact(&Setup::window(20_000).unforced());
        // It opens with the assistant, which no provider takes; the result opens with the summary.
        check_repaired(&case, &attempt).unwrap();
        assert!(attempt.outcome.is_completed(), "{wire_format}: {:?}", attempt.outcome);
        let plan = attempt.plan.as_ref().unwrap();
        assert_eq!(
            (plan.head.len(), plan.summary_role, plan.acknowledge),
            (0, Role::User, false),
            "{wire_format}"
        );
    }
}

#[test]
fn results_that_no_call_asked_for_are_left_out_with_a_warning() {
    for wire_format in WireFormat::ALL {
        let case = Case::of(&from_picture(wire_format, &"X".repeat(60)));
        let attempt = case.compact(&Setup::window(200_000));
        check_repaired(&case, &attempt).unwrap();
        assert!(attempt.outcome.is_completed(), "{wire_format}: {:?}", attempt.outcome);
        assert_eq!(attempt.items.len(), 1, "{wire_format}: only the summary is left");
        let tail = attempt.plan.as_ref().unwrap().tail.len();
        assert_eq!(attempt.report.repairs.orphan_results, tail, "{wire_format}");
        assert_eq!(
            attempt.report.warnings,
            [format!("tool results without a call, left out of the view: {tail}")]
        );
    }
}

#[test]
fn a_long_coding_session_is_compacted_the_same_every_time() {
    for wire_format in WireFormat::ALL {
        // Long enough to be read by two threads.
        let document = big_transcript(wire_format, 1_000_000, 600, 3);
        let values: Vec<Box<serde_json::value::RawValue>> = serde_json::from_str(&document).unwrap();
        let case = Case::from_json(wire_format, values.iter().map(|value| value.get().to_owned()).collect());
        let setup = Setup::window(200_000).unforced();
        let attempt = assert_holds(&case, &setup);
        assert!(attempt.outcome.is_completed(), "{wire_format}: {:?}", attempt.outcome);
        assert!(attempt.report.tokens.after < 45_000, "{wire_format}: {:?}", attempt.report.tokens);
        for _ in 0..3 {
            let again = case.compact(&setup);
            assert_eq!(case.bytes(&again.items), case.bytes(&attempt.items), "{wire_format}");
            assert_eq!(again.report, attempt.report, "{wire_format}");
        }
        // Every file that was changed is named.
        let text = attempt.summary.as_ref().unwrap().to_markdown();
        let plan = attempt.plan.as_ref().unwrap();
        let kept = plan.head.clone().chain(plan.tail.clone());
        let shown: String = kept.map(|at| case.messages[at].json()).collect();
        let ledger = Ledger::of(&case.messages, &case.groups, None);
        let worked = |act: &&Act| act.outcome.as_ref().is_some_and(|outcome| !outcome.failed());
        for file in ledger.acts().iter().filter(worked).flat_map(Act::changed_files) {
            assert!(
                text.contains(file) || shown.contains(file),
                "{wire_format}: {file} was changed and is not named"
            );
        }
    }
}

#[test]
fn an_empty_list_stays_empty() {
    for wire_format in WireFormat::ALL {
        let case = Case::new(wire_format, Vec::new());
        for setup in [Setup::window(200_000), Setup::window(200_000).unforced(), Setup::window(0)] {
            assert_eq!(assert_holds(&case, &setup).outcome, no_op(NoOpReason::Empty));
        }
    }
}

#[test]
fn ten_thousand_tiny_messages_are_compacted_to_budget() {
    let mut talk = Talk::new(WireFormat::Chat);
    for n in 0..5_000 {
        talk.user(&format!("{n}?")).answer("yes");
    }
    let case = talk.case();
    let setup = Setup::window(200_000).unforced();
    let attempt = assert_holds(&case, &setup);
    assert!(attempt.outcome.is_completed(), "{:?}", attempt.outcome);
    assert!(attempt.report.tokens.after < 40_000, "{:?}", attempt.report.tokens);
    // Within the tail's budget, give or take the role at the seam.
    let tail = &attempt.report.plan.tail;
    assert!((19_900..20_100).contains(&tail.tokens), "{tail:?}");
}

#[test]
fn a_message_of_fifty_megabytes_goes_through() {
    let huge = log_lines(1, 50 << 20);
    let setup = Setup::window(200_000).unforced();
    // As a tool's answer long ago: folded, and nothing of it but a line is left.
    let mut talk = Talk::new(WireFormat::Chat);
    talk.user("Look at the log.").step("terminal", r#"{"command":"cat build.log"}"#, &huge);
    for n in 0..12 {
        talk.user(&format!("What about worker {n}?")).answer("It is idle.");
    }
    let case = talk.case();
    let attempt = assert_holds(&case, &setup);
    assert!(attempt.outcome.is_completed(), "{:?}", attempt.outcome);
    assert!(attempt.report.tokens.after < 13_000, "{:?}", attempt.report.tokens);
    // As the latest human message: it stays, and a warning says that it alone is too much.
    let mut talk = Talk::new(WireFormat::Chat);
    for n in 0..12 {
        talk.user(&format!("What about worker {n}?")).answer(&"It is idle. ".repeat(200));
    }
    talk.user(&huge);
    let case = talk.case();
    let attempt = assert_holds(&case, &setup);
    assert!(attempt.outcome.is_completed(), "{:?}", attempt.outcome);
    assert_eq!(attempt.report.warnings.len(), 1, "{:?}", attempt.report.warnings);
    // Alone: nothing can be done.
    let case = Case::from_json(WireFormat::Chat, vec![case.messages[24].json().to_owned()]);
    assert_eq!(assert_holds(&case, &setup).outcome, no_op(NoOpReason::NothingInTheMiddle));
}

#[test]
fn calls_that_wait_for_their_results_stay_open() {
    for wire_format in WireFormat::ALL {
        let mut talk = Talk::new(wire_format);
        talk.user("Run the tests of every crate.");
        for step in 0..30 {
            talk.step("terminal", r#"{"command":"cargo test -p core"}"#, &log_lines(step, 1_500));
        }
        let waiting = [
            ("terminal", r#"{"command":"cargo test -p cli"}"#, ""),
            ("terminal", r#"{"command":"cargo test -p wire"}"#, ""),
        ];
        talk.open(&waiting);
        let case = talk.case();
        let attempt = assert_holds(&case, &Setup::window(12_000).unforced());
        assert!(attempt.outcome.is_completed(), "{wire_format}: {:?}", attempt.outcome);
        let after = case.after(&attempt);
        assert_eq!(after.groups.as_slice().last().unwrap().open_calls, 2, "{wire_format}");
        assert_eq!(attempt.items.last(), Some(&ViewItem::Verbatim(case.messages.len() - 1)));
        assert_eq!(attempt.report.repairs.stub_results, 0);
    }
}

#[test]
fn a_window_smaller_than_the_head_is_survived() {
    let mut talk = Talk::new(WireFormat::Chat);
    talk.system(&"You are careful. ".repeat(1_500)).user("Find the leak in src/pool.rs.");
    for step in 0..40 {
        talk.step("read_file", r#"{"path":"src/pool.rs"}"#, &log_lines(step, 800));
    }
    let case = talk.case();
    for window in [0, 1, 10, 500, 4_000] {
        let attempt = assert_holds(&case, &Setup::window(window).unforced());
        assert!(attempt.outcome.is_completed(), "{window}: {:?}", attempt.outcome);
        let told = attempt.report.warnings.iter().any(|warning| warning.starts_with("still "));
        assert!(told, "{window}: {:?}", attempt.report.warnings);
    }
}

#[test]
fn fixed_tokens_count_towards_the_threshold_and_are_never_saved() {
    let case = short_exchanges();
    let setup = Setup { fixed_tokens: 150_000, ..Setup::window(200_000).unforced() };
    let attempt = assert_holds(&case, &setup);
    assert_eq!(attempt.report.tokens.before, case.tokens() + 150_000);
    assert_ne!(attempt.outcome, no_op(NoOpReason::BelowThreshold));
}

#[test]
fn the_defaults_for_a_window_of_200_000_are_those_of_the_design() {
    let limits = Limits::compute(&LimitPolicy::for_window(200_000)).unwrap();
    let budgets = Budgets::from(&limits);
    assert_eq!(budgets, Setup::window(200_000).budgets);
    assert_eq!(budgets.threshold_tokens, 100_000);
    assert_eq!(budgets.tail_tokens, 20_000);
    // A fifth of the middle, from 2,000 to 10,000; and never more than half of what it replaces.
    let rooms: Vec<u64> = [0, 600, 4_000, 9_000, 10_000, 30_000, 50_000, 80_000, 2_000_000]
        .map(|tokens| budgets.summary_tokens(tokens, 0))
        .into();
    assert_eq!(rooms, [0, 300, 2_000, 2_000, 2_000, 6_000, 10_000, 10_000, 10_000]);
    // Earlier notes of 4,000 tokens have room to stay, beside a fifth of what is new.
    assert_eq!(budgets.summary_tokens(4_000 + 20_000, 4_000), 6_000 + 4_000);
    assert_eq!(budgets.summary_tokens(4_000 + 2_000, 4_000), 4_000 + 1_000);

    // And a conversation just under and just over the threshold obeys them.
    let mut talk = Talk::new(WireFormat::Chat);
    talk.system("You are careful.").user("Read it all.");
    while talk.case().tokens() < 99_000 {
        talk.step("read_file", r#"{"path":"src/all.rs"}"#, &log_lines(talk.json.len(), 3_000));
    }
    let room = 100_000 - talk.case().tokens();
    let frame = r#"{"role":"user","content":""}"#.len();
    let filler = |tokens: u64| "x".repeat(usize::try_from((tokens - 3) * 4).unwrap() - frame);
    for (tokens, compacts) in [(room - 1, false), (room, true)] {
        let mut talk = Talk::after(&talk.case());
        talk.user(&filler(tokens));
        let case = talk.case();
        assert_eq!(case.tokens() >= 100_000, compacts, "{}", case.tokens());
        let attempt = assert_holds(&case, &Setup::window(200_000).unforced());
        assert_eq!(attempt.outcome.is_completed(), compacts, "{:?}", attempt.outcome);
        let plan = &attempt.report.plan;
        assert_eq!((plan.window_tokens, plan.threshold_tokens), (200_000, 100_000));
        assert_eq!(plan.tail_budget_tokens, if compacts { 20_000 } else { plan.tail_budget_tokens });
        assert!(plan.tail.tokens <= 30_000 || !compacts, "{:?}", plan.tail);
        assert!(plan.summary_budget_tokens <= 10_000);
        assert!(attempt.report.summary_tokens <= 10_300);
    }
}
