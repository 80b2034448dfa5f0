//! Tests of what counts as an important fact, and of summaries that lack or invent some.

use throughline_testkit::GeneratedList;
use throughline_transcript::{Groups, Role, WireFormat, compact_json_string, text_message, tool_result_stub};

use super::*;
use crate::ledger::Ledger;
use crate::plan::{Earlier, Plan};

fn count(text: &str) -> u64 {
    (text.chars().count() as u64).div_ceil(4)
}

fn said(role: Role, text: &str) -> String {
    text_message(WireFormat::Chat, role, text)
}

fn called(id: &str, tool: &str, arguments: &str, result: &str) -> [String; 2] {
    let arguments = compact_json_string(arguments);
    [
        format!(
            r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"{tool}","arguments":{arguments}}}}}]}}"#
        ),
        tool_result_stub(WireFormat::Chat, id, result),
    ]
}

/// Calls `with` with a request whose head is the first message and whose tail is the last.
fn request<T>(middle: Vec<String>, tail: &str, with: impl FnOnce(&SummaryRequest<'_>) -> T) -> T {
    let mut json = vec![said(Role::User, "Start with docs/plan.md.")];
    json.extend(middle);
    json.push(tail.to_owned());
    let messages = GeneratedList::of(WireFormat::Chat, json).messages();
    let groups = Groups::of(&messages);
    let ledger = Ledger::of(&messages, &groups, None);
    let sizes = vec![10; messages.len()];
    let end = messages.len() - 1;
    let plan = Plan {
        head: 0..1,
        middle: 1..end,
        tail: end..end + 1,
        pinned: None,
        earlier: Earlier::default(),
        summary_role: Role::Assistant,
        acknowledge: false,
    };
    with(&SummaryRequest {
        messages: &messages,
        groups: &groups,
        sizes: &sizes,
        ledger: &ledger,
        plan: &plan,
        span: plan.middle.clone(),
        earlier: None,
        focus: Some("the retry_budget"),
        manner: crate::summarise::SummaryKind::default(),
        shown_text: "Start with docs/plan.md.",
        budget_tokens: 1_000,
        count_tokens: &count,
    })
}

fn facts(middle: Vec<String>, tail: &str) -> Vec<String> {
    request(middle, tail, |request| {
        important_facts(request)
            .into_iter()
            .map(|fact| format!("{:?} {} @{}", fact.kind, fact.text, fact.message))
            .collect()
    })
}

#[test]
fn facts_are_what_people_said_and_what_was_changed() {
    let mut middle =
        vec![said(Role::User, "Nice. Never touch src/api.rs! The port is 8443, see https://a.example/doc.")];
    middle.extend(called("1", "patch", r#"{"path":"src/net.rs","old_string":"a","new_string":"b"}"#, "ok"));
    middle.extend(called(
        "2",
        "patch",
        r#"{"path":"src/gone.rs","old_string":"a","new_string":"b"}"#,
        r#"{"success":false,"error":"old_string not found"}"#,
    ));
    middle.extend(called("3", "terminal", r#"{"command":"git commit -am 'Retry'"}"#, "[main 1f2e3d4c]"));
    middle.extend(called("4", "terminal", r#"{"command":"ls"}"#, "a b"));
    middle.extend(called(
        "5",
        "terminal",
        r#"{"command":"make lint"}"#,
        "Exit code 2\nerror: line too long\n",
    ));
    assert_eq!(
        facts(middle, &said(Role::User, "go on with src/api.rs")),
        [
            "Constraint Never touch src/api.rs! @1",
            "Path src/net.rs @2",
            "Command git commit -am 'Retry' @6",
            "Error error: line too long @11",
            "Number 8443 @1",
            "Url https://a.example/doc @1",
        ]
    );
}

#[test]
fn what_the_page_still_shows_is_no_fact_to_carry() {
    let middle = vec![said(Role::User, "See docs/plan.md and src/late.rs, limit 4096.")];
    assert_eq!(facts(middle, &said(Role::User, "now src/late.rs")), ["Number 4096 @1"]);
}

#[test]
fn instructions_in_the_middle_are_facts() {
    let middle = vec![said(Role::System, "Answer in French."), said(Role::Assistant, "Oui.")];
    assert_eq!(facts(middle, &said(Role::User, "go on")), ["Constraint Answer in French. @1"]);
}

#[test]
fn an_error_that_was_made_good_is_history() {
    let mut middle = Vec::new();
    middle.extend(called("1", "terminal", r#"{"command":"make"}"#, "Exit code 2\nerror: no rule\n"));
    middle.extend(called("2", "terminal", r#"{"command":"make"}"#, "done\n"));
    assert_eq!(facts(middle, &said(Role::User, "go on")), Vec::<String>::new());
}

#[test]
fn names_the_model_keeps_writing_are_facts() {
    let mut middle = Vec::new();
    for _ in 0..4 {
        middle.push(said(Role::Assistant, "I look at parse_header again."));
        middle.push(said(Role::Assistant, "And seldom at other_name."));
        middle.truncate(7);
    }
    let found = facts(middle, &said(Role::User, "go on"));
    assert_eq!(found, ["Name parse_header @7"]);
}

#[test]
fn missing_facts_are_attached_as_far_as_there_is_room() {
    let middle =
        || vec![said(Role::User, "Never push to main. The port is 8443 and the key is build_key_7.")];
    for (room, attached) in [(1_000, 3), (12, 2), (8, 1), (0, 0)] {
        let (report, markdown) = request(middle(), &said(Role::User, "go on"), |request| {
            let mut document = SummaryDocument::default();
            let report = check(&mut document, request, Maker::Model, None, room);
            (report, document.to_markdown())
        });
        assert_eq!(
            (report.important, report.attached, report.left_out),
            (3, attached, 3 - attached),
            "{room}"
        );
        assert_eq!(markdown.contains("- Never push to main."), attached >= 1, "{room}: {markdown}");
    }
}

#[test]
fn a_quote_is_found_however_it_is_wrapped() {
    let middle = vec![said(Role::User, "Never push   to\tmain, ever.")];
    let report = request(middle, &said(Role::User, "go on"), |request| {
        let mut document = SummaryDocument::default();
        document.add(Section::Constraints, "The user said: Never push to\nmain, ever.");
        check(&mut document, request, Maker::Model, None, 1_000)
    });
    assert_eq!((report.kept, report.attached), (1, 0), "{report:?}");
}

#[test]
fn inventions_are_taken_out_and_nothing_else() {
    let middle = vec![
        said(Role::User, "The file is src/net/client.rs with 1234567 rows."),
        said(Role::Assistant, "It uses send_all and TIMEOUT_MS=3000."),
    ];
    let (report, text) = request(middle, &said(Role::User, "then use tail_name"), |request| {
        let mut document = SummaryDocument::default();
        document.add(
            Section::CriticalContext,
            "client.rs, net/client.rs, 1,234,567 rows, send_all, TIMEOUT_MS, tail_name, retry_budget; made up: send_none, src/other.rs, 987654",
        );
        let report = check(&mut document, request, Maker::Model, None, 0);
        (report, document.entries(Section::CriticalContext)[0].text.clone())
    });
    assert_eq!(
        text,
        format!(
            "client.rs, net/client.rs, 1,234,567 rows, send_all, TIMEOUT_MS, tail_name, retry_budget; made up: {NOT_IN_RECORD}, {NOT_IN_RECORD}, {NOT_IN_RECORD}"
        )
    );
    let mut removed = report.removed_strings.clone();
    removed.sort();
    assert_eq!(removed, ["987654", "send_none", "src/other.rs"]);
    assert_eq!(report.removed, 3);
}

#[test]
fn rules_quote_and_are_believed() {
    let report = request(vec![said(Role::User, "hello")], &said(Role::User, "go on"), |request| {
        let mut document = SummaryDocument::default();
        document.add(Section::CriticalContext, "src/nowhere.rs");
        check(&mut document, request, Maker::Rules, None, 0)
    });
    assert_eq!(report.removed, 0);
}

#[test]
fn secrets_are_masked_wherever_they_came_from() {
    let secret = "ghp_9sKd83hFq02LmZx7Vb5Tn1Rw4Yc6Ua0PeHj2";
    let middle = vec![said(Role::User, &format!("Always use GITHUB_TOKEN={secret} for it."))];
    let redactor = Redactor::new();
    let (report, markdown) = request(middle, &said(Role::User, "go on"), |request| {
        let mut document = SummaryDocument::default();
        document.add(Section::Goal, format!("use {secret}"));
        let report = check(&mut document, request, Maker::Model, Some(&redactor), 1_000);
        (report, document.to_markdown())
    });
    assert!(!markdown.contains(secret), "{markdown}");
    assert!(report.redacted >= 1);
    let told = serde_json::to_string(&report).unwrap();
    assert!(!told.contains(secret), "{told}");
    assert!(markdown.contains("Always use GITHUB_TOKEN="), "{markdown}");
}

#[test]
fn the_day_something_was_done_is_no_invention() {
    let removed = request(vec![said(Role::User, "Go on.")], &said(Role::User, "And now?"), |request| {
        let mut document = SummaryDocument::default();
        document.add(
            Section::CompletedActions,
            "On 2026-11-16 the tests passed (2026-11-15: one failed); not on 2026-99-16",
        );
        check(&mut document, request, Maker::Model, None, 100).removed_strings
    });
    assert_eq!(removed, ["2026-99-16"]);
}

#[test]
fn masks_are_no_facts_and_do_not_nest() {
    let middle = vec![said(Role::Assistant, "The key is [redacted:github_token] in src/key.rs.")];
    request(middle, &said(Role::User, "Go on."), |request| {
        assert!(
            request.ledger.anchor("github_token").is_none(),
            "a mask names a kind, not a string of the source"
        );
        let mut document = SummaryDocument::default();
        document.add(
            Section::CriticalContext,
            "key [redacted:aws_access_key] and aws_access_key in src/key.rs, [redacted:github_token]",
        );
        let report = check(&mut document, request, Maker::Model, None, 1_000);
        let text = document.to_markdown();
        assert!(!text.contains("[redacted:["), "{text}");
        assert!(
            text.contains("key [redacted:aws_access_key] and [not in the record] in src/key.rs"),
            "{text}"
        );
        assert_eq!(report.removed_strings, ["aws_access_key"]);
    });
}

#[test]
fn secrets_are_attached_as_facts_neither_in_the_clear_nor_as_masks() {
    let token = "ghp_9sKd83hFq02LmZx7Vb5Tn1Rw4Yc6Ua0PeHj2";
    let middle = vec![said(Role::User, &format!("Look at {token} and src/key.rs."))];
    request(middle, &said(Role::User, "Go on."), |request| {
        let mut document = SummaryDocument::default();
        let redactor = throughline_redact::Redactor::new();
        let report = check(&mut document, request, Maker::Rules, Some(&redactor), 1_000);
        let text = document.to_markdown();
        assert!(text.contains("src/key.rs") && !text.contains("redacted") && !text.contains(token), "{text}");
        assert!(report.attached_facts.iter().all(|fact| !fact.text.contains("[redacted:")), "{report:?}");
    });
}

#[test]
fn runs_of_numbers_are_no_facts_and_single_numbers_are() {
    let rows: String = (402..470).map(|row| format!("{row} value\n")).collect();
    let write = format!(r#"{{"path":"rows.txt","content":{}}}"#, compact_json_string(&rows));
    let mut middle = vec![said(Role::User, "The port is 8443 and the timeout is 3000.")];
    for id in ["1", "2", "3", "4", "5"] {
        middle.extend(called(id, "write_file", &write, "ok"));
    }
    let found = facts(middle, &said(Role::User, "Go on."));
    let numbers: Vec<&String> = found.iter().filter(|fact| fact.starts_with("Number")).collect();
    assert_eq!(numbers, ["Number 8443 @1", "Number 3000 @1"], "{found:?}");
}

#[test]
fn what_is_said_in_other_words_stays() {
    let middle = vec![
        said(Role::User, "Push it to github.com and look at lines 100-160 of src/main.rs, or 300 to 420."),
        said(Role::Assistant, "I read docs/plan.md."),
    ];
    request(middle, &said(Role::User, "Go on."), |request| {
        let text = "Files created/modified on GitHub and in PostgreSQL; first/last line; src/main.rs 120-140 and \
                    300-420; not 90-140, src/other, parseConfig or 7000-7100";
        let mut document = SummaryDocument::default();
        document.add(Section::CompletedActions, text);
        let report = check(&mut document, request, Maker::Model, None, 0);
        let mut removed = report.removed_strings.clone();
        removed.sort();
        assert_eq!(removed, ["7000-7100", "90-140", "parseConfig", "src/other"]);
        let left = document.to_markdown();
        for kept in ["created/modified", "GitHub", "PostgreSQL", "first/last", "120-140", "300-420"] {
            assert!(left.contains(kept), "{kept}: {left}");
        }
    });
}
