//! What the model sees after a compaction: one line an item, and the summary in full.

use throughline_compaction::{Attempt, Synthetic, ViewItem};
use throughline_transcript::{Message, Part, WireFormat};

use crate::harness::{Case, Setup};
use crate::invariants::check;
use crate::talk::Talk;

/// A small session with a bit of everything: a rule, reading, a failure, an edit, a commit, an answer, a new request.
fn session(wire_format: WireFormat) -> Case {
    let [read, run, edit] = match wire_format {
        WireFormat::Chat => ["read_file", "terminal", "patch"],
        WireFormat::Responses => ["read_file", "shell", "patch"],
        WireFormat::Anthropic => ["Read", "Bash", "Edit"],
    };
    let path = |path: &str| match wire_format {
        WireFormat::Anthropic => format!(r#"{{"file_path":"{path}"}}"#),
        _ => format!(r#"{{"path":"{path}"}}"#),
    };
    let command = |command: &str| format!(r#"{{"command":"{command}"}}"#);
    let change = |path: &str, old: &str, new: &str| {
        let key = if wire_format == WireFormat::Anthropic { "file_path" } else { "path" };
        format!(r#"{{"{key}":"{path}","old_string":"{old}","new_string":"{new}"}}"#)
    };
    let source =
        |name: &str| format!("pub fn {name}_rows(limit: usize) -> usize {{ limit * 2 }}\n").repeat(40);
    let mut talk = Talk::new(wire_format);
    if wire_format != WireFormat::Anthropic {
        talk.system("You work on the report service. Answer briefly.");
    }
    talk.user("The weekly report counts rows twice. Find out why and fix it. Do not change the file format.");
    talk.answer("I will look at the counter first.");
    talk.steps(&[
        (read, &path("src/report/count.rs"), &source("count")),
        (read, &path("src/report/sum.rs"), &source("sum")),
    ]);
    talk.step(run, &command("cargo test -p report"), &failure(wire_format));
    talk.answer("The cause is in src/report/count.rs: count_rows doubles its limit, because the old format had pairs.");
    talk.step(edit, &change("src/report/count.rs", "limit * 2", "limit"), "ok");
    talk.step(run, &command("cargo test -p report"), "test result: ok. 14 passed; 0 failed\n");
    talk.step(run, &command("git commit -am 'Count each row once'"), "[main 4be1c90f] Count each row once\n");
    talk.answer("Fixed in 4be1c90f: each row is counted once. All 14 tests pass.");
    talk.user("Good. Also keep the old totals in the archive; never delete them. How large is it?");
    talk.step(run, &command("du -s archive"), "48210 archive\n");
    talk.answer("The archive has 48210 blocks.");
    talk.user("Then compress everything older than 90 days.");
    for month in 1..=6 {
        let day = format!("2025-{month:02}");
        talk.step(
            run,
            &command(&format!("zstd -q archive/{day}.csv")),
            &format!("archive/{day}.csv.zst\n").repeat(60),
        );
    }
    talk.case()
}

fn failure(wire_format: WireFormat) -> String {
    let printed = "running 14 tests\ntest count::each_row_once ... FAILED\nassertion `left == right` failed: left 84, right 42\ntest result: FAILED. 13 passed; 1 failed\n";
    let printed = format!("{}{printed}", "   Compiling report v0.3.1\n".repeat(30));
    match wire_format {
        WireFormat::Chat => serde_json::json!({ "output": printed, "exit_code": 101, "error": null }).to_string(),
        WireFormat::Responses => {
            serde_json::json!({ "output": printed, "metadata": { "exit_code": 101, "duration_seconds": 2.5 } }).to_string()
        }
        WireFormat::Anthropic => format!("Exit code 101\n{printed}"),
    }
}

/// One line for an item: where it comes from, who speaks, how, and the opening words.
fn line(item: &ViewItem, message: &Message) -> String {
    let origin = match item {
        ViewItem::Verbatim(index) => format!("{index:>3} as it was"),
        ViewItem::Rendition { message, rendition } => format!("{message:>3} {:?}", rendition.kinds),
        ViewItem::Summary(_) => "    summary".to_owned(),
        ViewItem::Synthetic(Synthetic::Acknowledgement, _) => "    acknowledgement".to_owned(),
        ViewItem::Synthetic(Synthetic::StubResult, _) => "    stub result".to_owned(),
    };
    let words = message.parts().iter().map(|part| match part {
        Part::Text(text) => message.str(*text).into_owned(),
        Part::ToolCall { name, arguments, .. } => {
            format!("{}({})", message.str(*name), message.arguments_text(*arguments))
        }
        Part::ToolResult { content, .. } => format!("-> {}", message.result_text(content)),
        other => format!("{other:?}"),
    });
    let words = words.collect::<Vec<_>>().join(" + ").replace('\n', "⏎");
    let opening: String = words.chars().take(90).collect();
    let more = words.chars().count().saturating_sub(90);
    let more = if more > 0 { format!("… (+{more})") } else { String::new() };
    format!("{origin:<22} {:<9} {opening}{more}", message.role().name())
}

fn seen(scenario: &str, case: &Case, attempt: &Attempt) -> String {
    let after = case.after(attempt);
    let lines: Vec<String> =
        attempt.items.iter().zip(&after.messages).map(|(item, m)| line(item, m)).collect();
    let summary =
        after.messages.iter().zip(&attempt.items).find(|(_, item)| matches!(item, ViewItem::Summary(_)));
    let summary = summary.map(|(message, _)| message.text().into_owned()).unwrap_or_default();
    let tokens = attempt.report.tokens;
    format!(
        "{scenario}\n{} messages, {} tokens -> {} items, {} tokens\n\n{}\n\n{summary}\n",
        case.messages.len(),
        tokens.before,
        attempt.items.len(),
        tokens.after,
        lines.join("\n")
    )
}

fn setup() -> Setup {
    Setup::window(4_000).protect(5, 4)
}

#[test]
fn a_chat_session() {
    let case = session(WireFormat::Chat);
    let attempt = case.compact(&setup());
    check(&case, &attempt).unwrap();
    insta::assert_snapshot!(seen(
        "A bug was fixed and committed; the archive is being compressed when the window fills.",
        &case,
        &attempt
    ));
}

#[test]
fn a_responses_session() {
    let case = session(WireFormat::Responses);
    let attempt = case.compact(&setup());
    check(&case, &attempt).unwrap();
    insta::assert_snapshot!(seen("The same work as items of the Responses wire.", &case, &attempt));
}

#[test]
fn an_anthropic_session() {
    let case = session(WireFormat::Anthropic);
    let attempt = case.compact(&setup());
    check(&case, &attempt).unwrap();
    insta::assert_snapshot!(seen(
        "The same work with Claude Code's tools; the system prompt stands outside the list.",
        &case,
        &attempt
    ));
}
