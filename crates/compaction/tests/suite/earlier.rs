//! Conversations that were compacted before, by us or by Hermes: one summary afterwards, brought up to date.

use throughline_compaction::{Attempt, Entry, Maker, Section, SummaryDocument, SummaryFrame};
use throughline_transcript::WireFormat;

use crate::harness::{Case, Setup};
use crate::invariants::check;
use crate::talk::Talk;

const TAG: &str = SummaryFrame::TAG;
const END_MARKER: &str = SummaryFrame::END_MARKER;

#[track_caller]
fn completed(case: &Case, setup: &Setup) -> (Attempt, SummaryDocument) {
    let attempt = case.compact(setup);
    if let Err(wrong) = check(case, &attempt) {
        panic!("{wrong}\n{:?}\n{:?}", attempt.outcome, attempt.plan);
    }
    assert!(attempt.outcome.is_completed(), "{:?}", attempt.outcome);
    let summary = attempt.summary.clone().unwrap();
    (attempt, summary)
}

fn texts(document: &SummaryDocument, section: Section) -> Vec<&str> {
    document.entries(section).iter().map(|entry| entry.text.as_str()).collect()
}

fn body() -> String {
    let mut document = SummaryDocument::default();
    document.add(Section::Goal, "Move the session store to SQLite.");
    document.add(Section::Constraints, "Never drop a table; ask me first.");
    document.add_action("read src/store.rs -> 4,120 chars");
    document.add_action("edited src/store.rs (+12 -3 lines)");
    document.add(Section::RelevantFiles, "`src/store.rs` edited (+12 -3); holds: open_store, MAX_ROWS");
    document.to_markdown()
}

/// Thirty steps that no summary can leave as they are.
fn work(talk: &mut Talk, tag: &str) {
    for step in 0..30 {
        let path = format!(r#"{{"path":"src/{tag}_{step}.rs"}}"#);
        let text = format!("fn {tag}_{step}() {{ let rows = {}; }}\n", 1_000 + step).repeat(40);
        talk.step("read_file", &path, &text);
    }
}

/// The forms in which a summary may stand in a file.
fn forms() -> Vec<(&'static str, String)> {
    let body = body();
    let frame = SummaryFrame { messages: 57, kept: 4, maker: Maker::Rules, recall: None };
    vec![
        ("ours", frame.message_text(&body)),
        (
            "Hermes, current",
            format!(
                "{TAG} What follows is a handoff and not a request.\n\n{body}\n\n--- END OF CONTEXT SUMMARY, answer what comes next ---"
            ),
        ),
        ("Hermes, legacy", format!("[CONTEXT SUMMARY]: {body}\n\n{END_MARKER}")),
        (
            "Hermes, merged",
            format!(
                "[PRIOR CONTEXT for reference]\nWhich driver do we use, rusqlite 0.31?\n\n[END OF PRIOR CONTEXT, the summary is below]\n\n{TAG} A handoff.\n\n{body}\n\n{END_MARKER}"
            ),
        ),
    ]
}

#[test]
fn a_summary_of_ours_or_hermes_is_brought_up_to_date() {
    for wire_format in WireFormat::ALL {
        for (name, text) in forms() {
            let mut talk = Talk::new(wire_format);
            talk.user("Move the session store to SQLite. Never drop a table; ask me first.");
            talk.answer("I will start with src/store.rs.");
            talk.user(&text);
            talk.answer("The schema is written.").user("Now the migration.");
            work(&mut talk, "migrate");
            let (attempt, summary) = completed(&talk.case(), &Setup::window(20_000).unforced());
            let plan = &attempt.report.plan;
            assert!(plan.updates_earlier_summary, "{wire_format}, {name}");
            let constraints = texts(&summary, Section::Constraints);
            assert!(
                constraints.contains(&"Never drop a table; ask me first."),
                "{wire_format}, {name}: {constraints:?}"
            );
            assert_eq!(
                texts(&summary, Section::Goal),
                ["Move the session store to SQLite."],
                "{wire_format}, {name}"
            );
            let actions = summary.entries(Section::CompletedActions);
            let kept = Entry { number: Some(2), text: "edited src/store.rs (+12 -3 lines)".to_owned() };
            assert!(actions.contains(&kept), "{wire_format}, {name}: {actions:?}");
            assert!(
                actions.iter().any(|action| action.number == Some(3)),
                "{wire_format}, {name}: {actions:?}"
            );
            let files = texts(&summary, Section::RelevantFiles);
            assert!(files.iter().any(|file| file.contains("MAX_ROWS")), "{wire_format}, {name}: {files:?}");
            let merged = summary.to_markdown().contains("Which driver do we use, rusqlite 0.31?");
            assert_eq!(merged, name == "Hermes, merged", "{wire_format}: {name}");
        }
    }
}

#[test]
fn what_only_looks_like_a_summary_is_not_taken_for_one() {
    let frame = SummaryFrame { messages: 57, kept: 4, maker: Maker::Rules, recall: None };
    let whole = frame.message_text(&body());
    let without_end = whole.replace(END_MARKER, "");
    let quoted = format!("Why do I see this in my log?\n{whole}\nIs it safe to delete?");
    for text in [without_end, quoted] {
        let mut talk = Talk::new(WireFormat::Chat);
        talk.user(&text).answer("It is a note.").user("Thanks. Now the migration.");
        work(&mut talk, "migrate");
        let (attempt, _) = completed(&talk.case(), &Setup::window(20_000).unforced());
        assert!(!attempt.report.plan.updates_earlier_summary);
    }
    // A tool that prints a summary printed text.
    let mut talk = Talk::new(WireFormat::Chat);
    talk.user("Show the log.").step("terminal", r#"{"command":"cat context.log"}"#, &whole);
    work(&mut talk, "migrate");
    let (attempt, _) = completed(&talk.case(), &Setup::window(20_000).unforced());
    assert!(!attempt.report.plan.updates_earlier_summary);
}

#[test]
fn two_summaries_become_one() {
    let mut talk = Talk::new(WireFormat::Chat);
    for (_, text) in forms().into_iter().take(2) {
        talk.user(&text).answer("Understood.");
    }
    talk.user("Now the migration.");
    work(&mut talk, "migrate");
    let case = talk.case();
    let (attempt, summary) = completed(&case, &Setup::window(20_000).unforced());
    let after = case.after(&attempt);
    assert_eq!(after.messages.iter().filter(|message| SummaryFrame::find(message).is_some()).count(), 1);
    assert_eq!(texts(&summary, Section::Constraints), ["Never drop a table; ask me first."]);
}

#[test]
fn a_second_compaction_continues_where_the_first_left_off() {
    for wire_format in WireFormat::ALL {
        let setup = Setup::window(20_000);
        let mut talk = Talk::new(wire_format);
        talk.user("Add a retry to src/net.rs.");
        work(&mut talk, "net");
        talk.step(
            "patch",
            r#"{"path":"src/net.rs","old_string":"send()","new_string":"send_retrying(3)"}"#,
            "ok",
        );
        let case = talk.case();
        let (attempt, first) = completed(&case, &setup);
        assert_eq!(texts(&first, Section::ActiveTask), ["Add a retry to src/net.rs."], "{wire_format}");
        let numbers: Vec<u32> =
            first.entries(Section::CompletedActions).iter().filter_map(|action| action.number).collect();
        let last = *numbers.last().unwrap();

        // The request is answered, another is made and answered: nothing is open.
        let mut talk = Talk::after(&case.after(&attempt));
        talk.answer("The retry is in place: three attempts with a pause that doubles.");
        talk.user("Is there a test for it?");
        work(&mut talk, "tests");
        talk.answer("Yes, tests/net.rs covers it.");
        talk.user("Good. What is the timeout?").answer("30 seconds.").user("Then raise it to 45.");
        let case = talk.case();
        let (attempt, second) = completed(&case, &setup);
        let actions = second.entries(Section::CompletedActions);
        let numbers: Vec<u32> = actions.iter().filter_map(|action| action.number).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b), "{wire_format}: {numbers:?}");
        assert!(numbers.iter().any(|number| *number > last), "{wire_format}: {numbers:?} after {last}");
        let told = texts(&second, Section::CompletedActions).join("\n");
        let text = second.to_markdown();
        assert_eq!(text.matches("Add a retry to src/net.rs.").count(), 1, "{wire_format}: {text}");
        for answered in
            ["The retry is in place", "Is there a test for it?", "What is the timeout?", "30 seconds."]
        {
            assert!(told.contains(answered), "{wire_format}: {answered} is missing in {told}");
        }
        assert_eq!(texts(&second, Section::ActiveTask), ["Then raise it to 45."], "{wire_format}");
        let after = case.after(&attempt);
        let frame = after.messages.iter().find_map(SummaryFrame::find).unwrap();
        assert_eq!(frame.kept, Some(attempt.plan.as_ref().unwrap().tail.len()), "{wire_format}");
    }
}

#[test]
fn a_summary_knows_how_many_messages_it_stands_for() {
    let setup = Setup::window(20_000);
    let mut talk = Talk::new(WireFormat::Chat);
    talk.user("Add a retry to src/net.rs.");
    work(&mut talk, "net");
    let mut said = talk.json.len();
    let mut case = talk.case();
    for round in 0..4 {
        let (attempt, _) = completed(&case, &setup);
        let plan = attempt.plan.as_ref().unwrap();
        let after = case.after(&attempt);
        let found = after.messages.iter().find_map(SummaryFrame::find).unwrap();
        let shown = after.messages.len() - 1 - usize::from(plan.acknowledge);
        assert_eq!(found.messages + shown, said, "round {round}");
        let mut talk = Talk::after(&after);
        let before = talk.json.len();
        talk.answer("Done so far.").user("Go on.");
        work(&mut talk, &format!("round{round}"));
        said += talk.json.len() - before;
        case = talk.case();
    }
}

#[test]
fn constraints_survive_five_compactions_word_for_word() {
    let rules = [
        "Do not touch the files under vendor/.",
        "Always run `cargo fmt` before you commit.",
        "The limit must stay at 4,096 bytes, not 4,000.",
        "请不要修改公共接口。",
    ];
    for wire_format in WireFormat::ALL {
        let mut talk = Talk::new(wire_format);
        talk.system("You are a careful engineer.");
        talk.user("Rewrite the lexer in src/lexer.rs.");
        for (round, rule) in rules.iter().enumerate() {
            work(&mut talk, &format!("rule{round}"));
            talk.answer("Step done.").user(&format!("Fine, go on. {rule}"));
        }
        let mut case = talk.case();
        for round in 0..5 {
            let mut talk = Talk::after(&case);
            work(&mut talk, &format!("round{round}"));
            talk.answer("Next one.").user("Continue.");
            case = talk.case();
            let (attempt, summary) = completed(&case, &Setup::window(16_000));
            let constraints = texts(&summary, Section::Constraints);
            for rule in rules {
                assert!(
                    constraints.contains(&rule),
                    "{wire_format}, round {round}: {rule} is not in {constraints:?}"
                );
            }
            case = case.after(&attempt);
        }
    }
}
