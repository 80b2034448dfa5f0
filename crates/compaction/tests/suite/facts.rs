//! A model's summary held against the record: what it left out is attached, what it made up is taken out, and an answer
//! of no use leaves everything as it was.

use std::sync::Mutex;

use throughline_compaction::{
    AbortReason, Attempt, Completion, Maker, Outcome, Quality, Section, SummariseError, Summariser,
    SummaryDocument, SummaryFuture, SummaryRequest,
};
use throughline_transcript::WireFormat;

use crate::harness::{Case, Setup};
use crate::invariants::{check, check_unchanged};
use crate::talk::Talk;

type Answer = Result<SummaryDocument, SummariseError>;

/// A model of the test's making.
struct Model {
    window_tokens: Option<u64>,
    answer: Box<dyn Fn(&SummaryRequest<'_>) -> Answer + Send + Sync>,
    /// The spans it was asked about, with their tokens and whether it was given an earlier summary.
    asked: Mutex<Vec<(std::ops::Range<usize>, u64, bool)>>,
}

impl Model {
    fn new(answer: impl Fn(&SummaryRequest<'_>) -> Answer + Send + Sync + 'static) -> Self {
        Self { window_tokens: None, answer: Box::new(answer), asked: Mutex::new(Vec::new()) }
    }
}

impl Summariser for Model {
    fn name(&self) -> &str {
        "a model of the test"
    }

    fn maker(&self) -> Maker {
        Maker::Model
    }

    fn window_tokens(&self) -> Option<u64> {
        self.window_tokens
    }

    fn summarise<'a>(&'a self, request: SummaryRequest<'a>) -> SummaryFuture<'a> {
        let tokens = request.sizes[request.span.clone()].iter().sum();
        self.asked.lock().unwrap().push((request.span.clone(), tokens, request.earlier.is_some()));
        Box::pin(std::future::ready((self.answer)(&request)))
    }
}

/// A conversation with an edit, a constraint and a commit in its middle.
fn session() -> Case {
    let mut talk = Talk::new(WireFormat::Chat);
    talk.user("Fix the overflow in the ledger.");
    talk.step("read_file", r#"{"path":"src/ledger.rs"}"#, &"let total: i32 = sum;\n".repeat(300));
    talk.answer("The sum is 32 bits wide.");
    talk.user("Right. Never change the file format, and keep the limit at 7654321 rows.");
    talk.step(
        "patch",
        r#"{"path":"src/ledger/total.rs","old_string":"i32","new_string":"i64"}"#,
        r#"{"success":true}"#,
    );
    talk.step("terminal", r#"{"command":"cargo test -p ledger"}"#, &"test sums ... ok\n".repeat(200));
    talk.step(
        "terminal",
        r#"{"command":"git commit -am 'Widen the sum'"}"#,
        "[main 9f3c2ab1] Widen the sum\n 1 file changed",
    );
    talk.answer("The sum is 64 bits wide now.");
    for n in 0..14 {
        talk.user(&format!("And column {n}?")).answer("It fits.");
    }
    talk.case()
}

fn setup() -> Setup {
    Setup::window(6_000).protect(1, 4)
}

fn run(model: &Model) -> (Case, Attempt) {
    let case = session();
    let attempt = case.compact_with(&setup(), model);
    (case, attempt)
}

fn document(entries: &[(Section, &str)]) -> SummaryDocument {
    let mut document = SummaryDocument::default();
    for (section, text) in entries {
        document.add(*section, *text);
    }
    document
}

#[test]
fn what_a_model_left_out_is_attached() {
    let model = Model::new(|_| Ok(document(&[(Section::Goal, "Fix the overflow.")])));
    let (case, attempt) = run(&model);
    check(&case, &attempt).unwrap();
    assert!(
        matches!(attempt.outcome, Outcome::Completed(Completion { quality: Quality::Model, .. })),
        "{:?}",
        attempt.outcome
    );
    let summary = attempt.summary.as_ref().unwrap();
    let constraints: Vec<&str> =
        summary.entries(Section::Constraints).iter().map(|entry| entry.text.as_str()).collect();
    assert_eq!(constraints, ["Never change the file format, and keep the limit at 7654321 rows."]);
    let text = summary.to_markdown();
    for fact in ["src/ledger/total.rs", "git commit -am 'Widen the sum'"] {
        assert!(text.contains(fact), "{fact} is missing:\n{text}");
    }
    // Rules add what the model left out, and only what they leave out too is attached.
    let facts = &attempt.report.facts;
    assert!(facts.important > 0 && facts.left_out == 0, "{facts:?}");
    assert_eq!(facts.important, facts.kept + facts.attached + facts.left_out);
    // Each with the message it stands in.
    for fact in &facts.attached_facts {
        let json = case.messages[fact.message].json().to_owned();
        let source = throughline_transcript::JsonStr::unescape(&json);
        assert!(source.contains(&fact.text) || json.contains(&fact.text), "{fact:?} is not in its message");
    }
}

#[test]
fn what_a_model_kept_is_not_attached_again() {
    let model = Model::new(|_| {
        Ok(document(&[
            (Section::Constraints, "Never change the file format, and keep the limit at 7654321 rows."),
            (Section::CriticalContext, "edited src/ledger/total.rs, then git commit -am 'Widen the sum'"),
        ]))
    });
    let (_, attempt) = run(&model);
    let facts = &attempt.report.facts;
    assert_eq!((facts.attached, facts.removed), (0, 0), "{facts:?}");
    assert_eq!(facts.kept, facts.important);
}

#[test]
fn what_a_model_made_up_is_taken_out_and_reported() {
    let model = Model::new(|_| {
        Ok(document(&[
            (Section::CompletedActions, "edited src/ledger/total.rs and src/invented/helper.rs"),
            (Section::CriticalContext, "commit 9f3c2ab1 and commit deadbeef77; limit 7654321, also 8888123"),
        ]))
    });
    let (case, attempt) = run(&model);
    check(&case, &attempt).unwrap();
    let text = attempt.summary.as_ref().unwrap().to_markdown();
    for invented in ["src/invented/helper.rs", "deadbeef77", "8888123"] {
        assert!(!text.contains(invented), "{invented} is still there:\n{text}");
        assert!(attempt.report.facts.removed_strings.iter().any(|removed| removed == invented), "{invented}");
    }
    for real in ["src/ledger/total.rs", "9f3c2ab1", "7654321"] {
        assert!(text.contains(real), "{real} was taken out:\n{text}");
    }
    assert_eq!(attempt.report.facts.removed, 3, "{:?}", attempt.report.facts.removed_strings);
    assert_eq!(text.matches("[not in the record]").count(), 3, "{text}");
}

#[test]
fn the_rules_quote_and_are_not_searched_for_inventions() {
    let case = session();
    let attempt = case.compact(&setup());
    assert_eq!(attempt.report.facts.removed, 0);
    assert!(
        matches!(attempt.outcome, Outcome::Completed(Completion { quality: Quality::Rules, .. })),
        "{:?}",
        attempt.outcome
    );
}

#[test]
fn an_empty_answer_is_a_failure() {
    let (case, attempt) = run(&Model::new(|_| Ok(SummaryDocument::default())));
    check_unchanged(&case, &attempt).unwrap();
    let Outcome::Aborted { reason, .. } = attempt.outcome else { panic!("{:?}", attempt.outcome) };
    assert_eq!(reason, AbortReason::SummaryUnusable);
}

#[test]
fn an_answer_longer_than_what_it_replaces_is_not_accepted() {
    let model = Model::new(|request| {
        let mut document = SummaryDocument::default();
        for index in request.summarised() {
            let text = request.messages[index].json();
            document.add(Section::CriticalContext, format!("{index}: {text} {text}"));
        }
        Ok(document)
    });
    let (case, attempt) = run(&model);
    check_unchanged(&case, &attempt).unwrap();
    let Outcome::Aborted { reason, .. } = attempt.outcome else { panic!("{:?}", attempt.outcome) };
    assert_eq!(reason, AbortReason::SummaryUnusable);
}

#[test]
fn failures_leave_everything_as_it_was() {
    let cases = [
        (SummariseError::Transient("503".to_owned()), AbortReason::SummariserUnavailable),
        (SummariseError::Permanent("no such model".to_owned()), AbortReason::SummariserFailed),
        (SummariseError::Unusable("it refused".to_owned()), AbortReason::SummaryUnusable),
    ];
    for (error, expected) in cases {
        let told = error.to_string();
        let (case, attempt) = run(&Model::new(move |_| Err(error.clone())));
        check_unchanged(&case, &attempt).unwrap();
        assert_eq!(attempt.outcome, Outcome::Aborted { reason: expected, detail: told });
    }
}

#[test]
fn an_answer_over_its_budget_is_trimmed_from_its_oldest_details() {
    let model = Model::new(|request| {
        let mut document = document(&[(Section::Constraints, "Never change the file format.")]);
        while (request.count_tokens)(&document.to_markdown()) < request.budget_tokens * 3 / 2 {
            document.add_action("looked at the next column");
        }
        Ok(document)
    });
    let (case, attempt) = run(&model);
    check(&case, &attempt).unwrap();
    let budget = attempt.report.plan.summary_budget_tokens;
    let summary = attempt.summary.as_ref().unwrap();
    // Facts attached in the room that was left are framed by a few words.
    let used = crate::harness::text_tokens(&summary.to_markdown());
    assert!(used <= budget + 16, "{used} of {budget}");
    assert_eq!(attempt.report.warnings.len(), 1, "{:?}", attempt.report.warnings);
    let numbers: Vec<u32> =
        summary.entries(Section::CompletedActions).iter().filter_map(|action| action.number).collect();
    assert!(numbers[0] > 1 && numbers.is_sorted(), "{numbers:?}");
}

/// Numbers the messages of its span, one action each, from one.
fn by_message(request: &SummaryRequest<'_>) -> Answer {
    let mut document = SummaryDocument::default();
    for index in request.summarised() {
        document.add_action(format!("message {index}"));
    }
    document.add(Section::ActiveTask, format!("part from {}", request.span.start));
    document.add(Section::Constraints, "Never change the file format.");
    Ok(document)
}

#[test]
fn a_small_window_gets_the_middle_in_parts() {
    let mut talk = Talk::new(WireFormat::Chat);
    talk.user("Read every part.");
    for step in 0..40 {
        talk.steps(&[
            ("read_file", r#"{"path":"a.rs"}"#, &format!("{step} a\n").repeat(80)),
            ("read_file", r#"{"path":"b.rs"}"#, &format!("{step} b\n").repeat(80)),
        ]);
    }
    let case = talk.case();
    let mut model = Model::new(by_message);
    model.window_tokens = Some(3_000);
    let attempt = case.compact_with(&Setup::window(16_000), &model);
    check(&case, &attempt).unwrap();
    assert!(attempt.outcome.is_completed(), "{:?}", attempt.outcome);
    let plan = attempt.plan.as_ref().unwrap();

    let asked = model.asked.lock().unwrap().clone();
    assert!(asked.len() >= 3, "{asked:?}");
    assert_eq!(asked[0].0.start, plan.middle.start);
    assert_eq!(asked.last().unwrap().0.end, plan.middle.end);
    for pair in asked.windows(2) {
        assert_eq!(pair[0].0.end, pair[1].0.start, "the parts cover the middle");
    }
    for (span, tokens, _) in &asked {
        assert!(*tokens <= 3_000 * 60 / 100, "{span:?} has {tokens} tokens");
        let parted = case.groups.as_slice().iter().any(|g| g.start < span.end && span.end < g.end);
        assert!(!parted, "{span:?} parts a group");
    }

    let summary = attempt.summary.as_ref().unwrap();
    let actions = summary.entries(Section::CompletedActions);
    let numbers: Vec<u32> = actions.iter().filter_map(|action| action.number).collect();
    assert_eq!(numbers.len(), actions.len());
    let consecutive = numbers.windows(2).all(|pair| pair[1] == pair[0] + 1);
    assert!(consecutive, "{numbers:?}");
    assert_eq!(actions.last().unwrap().number, Some(plan.summarised().count() as u32));
    // The task is the person's request, whatever the parts call it, and what all parts say is said once.
    assert_eq!(summary.entries(Section::ActiveTask)[0].text, "Read every part.");
    assert!(summary.entries(Section::Constraints).len() <= 1);
}

#[test]
fn only_the_first_part_sees_the_earlier_summary_and_numbers_go_on_from_it() {
    let model = Model::new(by_message);
    let mut talk = Talk::new(WireFormat::Chat);
    talk.user("Read every part.");
    for step in 0..40 {
        talk.step("read_file", r#"{"path":"a.rs"}"#, &format!("{step} a\n").repeat(160));
    }
    let case = talk.case();
    let first = case.compact_with(&Setup::window(16_000), &model);
    let last_number = first.summary.as_ref().unwrap().next_action_number() - 1;

    let mut talk = Talk::after(&case.after(&first));
    for step in 0..40 {
        talk.step("read_file", r#"{"path":"c.rs"}"#, &format!("{step} c\n").repeat(160));
    }
    let case = talk.case();
    let mut model = Model::new(|request| {
        let mut document = request.earlier.cloned().unwrap_or_default();
        for index in request.summarised() {
            document.add_action(format!("later message {index}"));
        }
        Ok(document)
    });
    model.window_tokens = Some(4_000);
    let second = case.compact_with(&Setup::window(16_000), &model);
    assert!(second.outcome.is_completed(), "{:?}", second.outcome);
    let asked = model.asked.lock().unwrap().clone();
    let with_earlier: Vec<bool> = asked.iter().map(|(_, _, earlier)| *earlier).collect();
    assert!(
        with_earlier.len() > 1 && with_earlier[0] && !with_earlier[1..].contains(&true),
        "{with_earlier:?}"
    );
    let summary = second.summary.as_ref().unwrap();
    let folded = second.plan.as_ref().unwrap().summarised().count() as u32;
    assert_eq!(summary.next_action_number() - 1, last_number + folded);
}

#[test]
fn a_window_that_holds_not_one_step_is_refused() {
    let mut model = Model::new(by_message);
    model.window_tokens = Some(0);
    let (case, attempt) = run(&model);
    check_unchanged(&case, &attempt).unwrap();
    let Outcome::Aborted { reason, detail } = attempt.outcome else { panic!("{:?}", attempt.outcome) };
    assert_eq!(reason, AbortReason::SummariserFailed);
    assert!(detail.contains("window of 0 tokens is too small"), "{detail}");
    assert_eq!(model.asked.lock().unwrap().len(), 0);
}
