//! A long session with a tiny window: how its size goes up and down over three hundred steps, and what survives.

use throughline_compaction::{Section, SummaryFrame};
use throughline_testkit::Rng;
use throughline_transcript::WireFormat;

use crate::harness::{Case, Setup};
use crate::invariants::check;
use crate::talk::Talk;

const STEPS: usize = 300;
const WINDOW_TOKENS: u64 = 8_000;

/// One step of made-up work; now and then a person says something.
fn go_on(talk: &mut Talk, rng: &mut Rng, step: usize) {
    if step.is_multiple_of(25) {
        talk.answer(&format!("Part {} is done.", step / 25));
        talk.user(&format!("Now part {}. Never touch table_{step:03}.", step / 25 + 1));
    }
    let lines = rng.between(2, 30);
    let file = step % 17;
    match step % 4 {
        0 => talk.step(
            "patch",
            &format!(r#"{{"path":"src/part_{file:02}.rs","old_string":"a","new_string":"b"}}"#),
            "ok",
        ),
        1 => talk.step("terminal", r#"{"command":"cargo test"}"#, &"test ok\n".repeat(lines)),
        _ => talk.step(
            "read_file",
            &format!(r#"{{"path":"src/part_{file:02}.rs"}}"#),
            &format!("let row_{step} = table.get({step});\n").repeat(lines),
        ),
    };
}

struct Walk {
    case: Case,
    /// One line a compaction.
    told: Vec<String>,
    highest_tokens: u64,
}

fn walk(wire_format: WireFormat) -> Walk {
    let setup = Setup::window(WINDOW_TOKENS).unforced();
    let mut rng = Rng::new(1);
    let mut talk = Talk::new(wire_format);
    talk.user("Move every table to the new API, part by part. Always run the tests.");
    let mut told = Vec::new();
    let mut highest_tokens = 0;
    let mut messages = 0;
    let mut last_number = 0;
    for step in 1..=STEPS {
        let before = talk.json.len();
        go_on(&mut talk, &mut rng, step);
        messages += talk.json.len() - before;
        let case = talk.case();
        highest_tokens = highest_tokens.max(case.tokens());
        let attempt = case.compact(&setup);
        if let Err(wrong) = check(&case, &attempt) {
            panic!("{wire_format}, step {step}: {wrong}");
        }
        if !attempt.outcome.is_completed() {
            continue;
        }
        let after = case.after(&attempt);
        let summary = attempt.summary.as_ref().unwrap();
        let found = after.messages.iter().find_map(SummaryFrame::find).unwrap();
        told.push(format!(
            "step {step:>3}: {:>5} -> {:>4} tokens, {:>3} -> {:>2} messages; summary {:>4} tokens for {:>3} messages, actions up to {}",
            attempt.report.tokens.before,
            attempt.report.tokens.after,
            case.messages.len(),
            after.messages.len(),
            attempt.report.summary_tokens,
            found.messages,
            summary.next_action_number() - 1,
        ));
        let number = summary.next_action_number() - 1;
        assert!(
            number >= last_number,
            "{wire_format}, step {step}: actions are numbered anew after {last_number}"
        );
        last_number = number;
        // Every rule that was stated and is no longer on the page stands in the summary, word for word.
        let rules: Vec<&str> =
            summary.entries(Section::Constraints).iter().map(|entry| entry.text.as_str()).collect();
        let shown: String = after.messages.iter().map(|message| message.text().into_owned()).collect();
        for part in 1..=step / 25 {
            let rule = format!("Never touch table_{:03}.", part * 25);
            assert!(
                rules.contains(&rule.as_str()) || shown.contains(&rule),
                "{wire_format}, step {step}: {rule}"
            );
        }
        talk = Talk::after(&after);
    }
    told.push(format!("{messages} messages were said; {} tokens at most were sent", highest_tokens));
    Walk { case: talk.case(), told, highest_tokens }
}

#[test]
fn a_long_session_stays_within_its_window() {
    let mut pictures = Vec::new();
    for wire_format in WireFormat::ALL {
        let walk = walk(wire_format);
        // The threshold is half of the window, and one step is small: the window is never filled.
        assert!(walk.highest_tokens < WINDOW_TOKENS * 6 / 10, "{wire_format}: {}", walk.highest_tokens);
        assert_eq!(
            walk.case.messages.iter().filter(|message| SummaryFrame::find(message).is_some()).count(),
            1
        );
        pictures.push(format!("{wire_format}\n{}", walk.told.join("\n")));
    }
    let scenario = format!(
        "{STEPS} steps of work, a person every 25, a window of {WINDOW_TOKENS} tokens: each compaction as it happens."
    );
    insta::assert_snapshot!(format!("{scenario}\n\n{}\n", pictures.join("\n\n")));
}
