//! `throughline compress`.

use serde_json::{Value, json};

use crate::harness::{World, without_figures};
use crate::samples::{lines, long_anthropic, long_chat, short_chat};

#[test]
fn the_report_of_a_long_chat() {
    let world = World::new();
    world.write("long.json", long_chat(60).to_string());
    let arguments = ["compress", "long.json", "--context-length", "16k"];
    let printed = world.run(&arguments).text();
    let quiet = world.run(&[&arguments[..], &["--quiet"]].concat()).text();
    assert!(quiet.starts_with("Compacted long.json") && printed.starts_with(&quiet), "{quiet}");
    let whole = world.run(&[&arguments[..], &["--details"]].concat()).text();
    let (result, more) = printed.trim_end().rsplit_once("\n\n").unwrap();
    assert!(more.starts_with("--details adds") && whole.starts_with(result), "{printed}");
    assert!(printed.lines().count() <= 24, "it does not fit a small terminal:\n{printed}");
    let (report, summary) = whole.split_at(whole.find("\nSummary (").unwrap());
    let (report, _) = report.split_once("\nTime\n").unwrap();
    insta::assert_snapshot!(without_figures(report));
    for heading in ["## Active Task", "## Goal", "## Completed Actions", "## Critical Context"] {
        assert!(summary.contains(heading), "the summary has no {heading}");
    }
}

#[test]
fn library_returns_the_same_messages() {
    let body = include_bytes!("../../../../examples/waiting-list.json");
    let world = World::new();
    world.write("waiting-list.json", body);
    let printed = world.run(&["compress", "waiting-list.json", "--json"]).json();
    let compacted = throughline::Compactor::builder().build().unwrap().compact(body).unwrap();
    let messages: Vec<Value> =
        compacted.messages.iter().map(|message| serde_json::from_str(message).unwrap()).collect();
    assert_eq!(printed["messages"], Value::Array(messages));
    assert_eq!(printed["report"]["tokens"]["after"], compacted.report.tokens.after);
}

#[test]
fn the_plan_alone() {
    let world = World::new();
    world.write("long.json", long_chat(60).to_string());
    let plan = world.seen(&["compress", "long.json", "--context-length", "16k", "--preview"]);
    insta::assert_snapshot!(without_figures(&plan));
    assert_eq!(world.names(), ["long.json"]);
}

#[test]
fn a_plan_names_files_that_were_changed_and_not_those_that_nobody_allowed() {
    let world = World::new();
    let mut chat = long_chat(60);
    let messages = chat["messages"].as_array_mut().unwrap();
    let refused = "Error: The person did not allow this, and nothing was done. Find another way.";
    for (file, answer) in [("refused.rs", refused), ("written.rs", "wrote written.rs")] {
        let arguments = json!({ "path": file, "content": "x" }).to_string();
        let call = json!({"id": file, "type": "function", "function": {"name": "write_file", "arguments": arguments}});
        messages.insert(2, json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        messages.insert(3, json!({"role": "tool", "tool_call_id": file, "content": answer}));
    }
    world.write("long.json", chat.to_string());
    let plan = world.run(&["compress", "long.json", "--context-length", "16k", "--preview"]).text();
    assert!(plan.contains("changed 1 file") && plan.contains("written.rs"), "{plan}");
    assert!(!plan.contains("refused.rs"), "{plan}");
}

#[test]
fn a_plan_that_would_do_nothing() {
    let world = World::new();
    world.write("short.json", short_chat().to_string());
    insta::assert_snapshot!(without_figures(&world.seen(&["compress", "short.json", "--preview"])));
}

#[test]
fn below_the_threshold_nothing_is_done() {
    let world = World::new();
    let bytes = format!("\u{feff}{}\n\n", serde_json::to_string_pretty(&short_chat()).unwrap());
    world.write("short.json", &bytes);
    insta::assert_snapshot!(without_figures(&world.seen(&["compress", "short.json", "--out", "out.json"])));
    assert_eq!(world.read("out.json"), bytes.as_bytes(), "the output is the input, byte for byte");
}

#[test]
fn an_empty_list_is_left_alone() {
    let world = World::new();
    let ended = world.write("none.json", "[]").run(&["compress", "none.json", "--force", "--json"]);
    assert_eq!(ended.code, Some(0));
    let json = ended.json();
    assert_eq!(json["outcome"]["kind"], "no_op");
    assert_eq!(json["outcome"]["reason"], "empty");
    assert_eq!(json["messages"], json!([]));
}

#[test]
fn kept_messages_stand_in_the_output_byte_for_byte() {
    let world = World::new();
    let odd_tail = r#"{"role":"user",  "content":"caf\u00e9 1.0e2", "x":12345678901234567890123, "x":1}"#;
    let mut text = long_chat(60)["messages"].to_string();
    text.truncate(text.len() - 1);
    world.write("list.json", format!("{text},\n{odd_tail}]\n"));
    let ended = world.run(&["compress", "list.json", "--context-length", "16k", "--json"]);
    assert!(ended.text().contains(odd_tail), "--json splices raw messages");
    assert_eq!(ended.json()["outcome"]["kind"], "completed");
    let ended = world.run(&["compress", "list.json", "--context-length", "16k", "--out", "out.json"]);
    assert_eq!(ended.code, Some(0));
    let written = String::from_utf8(world.read("out.json")).unwrap();
    assert!(written.ends_with(&format!("{odd_tail}]\n")));
    assert!(written.starts_with('['));
}

#[test]
fn a_body_keeps_everything_around_its_messages() {
    let world = World::new();
    let messages = long_chat(60)["messages"].to_string();
    world.write("body.json", format!("{{ \"temperature\": 1.0e0, \"messages\": {messages}, \"seed\":7 }}\n"));
    world.run(&["compress", "body.json", "--context-length", "16k", "--out", "out.json"]);
    let written = String::from_utf8(world.read("out.json")).unwrap();
    assert!(written.starts_with("{ \"temperature\": 1.0e0, \"messages\": ["), "{}", &written[..80]);
    assert!(written.ends_with("], \"seed\":7 }\n"));
    let value: Value = serde_json::from_str(&written).unwrap();
    let json = world.run(&["compress", "body.json", "--context-length", "16k", "--json"]).json();
    assert_eq!(value["messages"], json["messages"], "file and --json agree");
}

#[test]
fn a_system_prompt_outside_the_list_gets_the_note_once() {
    let world = World::new();
    world.write("body.json", long_anthropic(60).to_string());
    world.run(&["compress", "body.json", "--context-length", "16k", "--out", "once.json"]);
    let once: Value = serde_json::from_slice(&world.read("once.json")).unwrap();
    let system = once["system"].as_str().unwrap();
    assert!(
        system.starts_with("You are a careful helper.") && system.contains("CONTEXT COMPACTION"),
        "{system}"
    );
    assert_eq!(once["max_tokens"], 1000);
    world.run(&["compress", "once.json", "--force", "--context-length", "16k", "--out", "twice.json"]);
    let twice: Value = serde_json::from_slice(&world.read("twice.json")).unwrap();
    assert_eq!(once["system"], twice["system"]);
    let json = world.run(&["compress", "body.json", "--context-length", "16k", "--json"]).json();
    assert_eq!(json["system"], once["system"]);
}

#[test]
fn lines_stay_lines_and_logs_become_lists() {
    let world = World::new();
    let messages = long_chat(60)["messages"].as_array().unwrap().clone();
    world.write("chat.jsonl", lines(&messages));
    world.run(&["compress", "chat.jsonl", "--context-length", "16k", "--out", "out.jsonl"]);
    let written = String::from_utf8(world.read("out.jsonl")).unwrap();
    assert!(written.lines().count() < messages.len());
    assert!(
        written.lines().all(|line| serde_json::from_str::<Value>(line).is_ok_and(|v| v["role"].is_string()))
    );

    let events: Vec<Value> = long_anthropic(60)["messages"]
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
        .map(|(at, message)| {
            let parent = if at == 0 { Value::Null } else { json!(format!("{}", at - 1)) };
            json!({"type": message["role"], "uuid": at.to_string(), "parentUuid": parent, "sessionId": "s", "message": message})
        })
        .collect();
    world.write("log.jsonl", lines(&events));
    world.run(&["compress", "log.jsonl", "--context-length", "16k", "--out", "list.json"]);
    let list: Value = serde_json::from_slice(&world.read("list.json")).unwrap();
    assert!(list.as_array().unwrap().iter().all(|message| message["role"].is_string()));
}

#[test]
fn output_to_stdout_leaves_the_report_to_stderr() {
    let world = World::new();
    world.write("long.json", long_chat(60).to_string());
    let ended = world.run(&["compress", "long.json", "--context-length", "16k", "--out", "-"]);
    assert!(ended.json()["messages"].is_array());
    assert!(ended.stderr.contains("Compacted long.json"));
}

#[test]
fn the_json_object_has_what_scripts_need() {
    let world = World::new();
    world.write("long.json", long_chat(60).to_string());
    let json =
        world.run(&["compress", "long.json", "--context-length", "200000", "--force", "--json"]).json();
    let plan = &json["report"]["plan"];
    assert_eq!(plan["threshold_tokens"], 100_000);
    assert!(json["report"]["tokens"]["after"].as_u64() < json["report"]["tokens"]["before"].as_u64());
    for member in ["head", "middle", "tail", "tail_budget_tokens", "summary_budget_tokens", "limits"] {
        assert!(!plan[member].is_null(), "plan has no {member}");
    }
    for member in ["pruned", "facts", "timings_us", "warnings", "messages"] {
        assert!(!json["report"][member].is_null(), "report has no {member}");
    }
    let members: Vec<&String> = json.as_object().unwrap().keys().collect();
    insta::assert_snapshot!(format!("{members:?}"));
}

#[test]
fn compacting_twice_changes_nothing_more_and_is_deterministic() {
    let world = World::new();
    world.write("long.json", long_chat(60).to_string());
    for out in ["a.json", "b.json"] {
        world.run(&["compress", "long.json", "--context-length", "16k", "--out", out]);
    }
    assert!(world.read("a.json") == world.read("b.json"), "same input, same bytes");
    let again = world.run(&["compress", "a.json", "--context-length", "16k", "--out", "c.json"]);
    assert_eq!(again.code, Some(0));
    assert!(again.text().starts_with("Left a.json as it is"), "{}", again.text());
    assert!(world.read("c.json") == world.read("a.json"), "nothing new, nothing done");
}

#[test]
fn a_focus_is_passed_on() {
    let world = World::new();
    world.write("long.json", long_chat(300).to_string());
    let with = world
        .run(&["compress", "long.json", "--context-length", "16k", "--focus", "case_17", "--json"])
        .json();
    let without = world.run(&["compress", "long.json", "--context-length", "16k", "--json"]).json();
    assert!(with["summary"] != without["summary"]);
    assert!(with["summary"].as_str().unwrap().contains("case_17"));
}

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/waiting-list.json");

#[test]
fn the_example_of_the_readme_compacts_without_any_option() {
    let world = World::new();
    let json = world.run(&["compress", EXAMPLE, "--json"]).json();
    assert_eq!(json["outcome"]["kind"], "completed");
    assert_eq!(world.run(&["inspect", EXAMPLE, "--json"]).json()["violations"], json!([]));
    assert!(
        json["messages"].to_string().contains("the office wants it in Excel too"),
        "the latest request stays"
    );
    let summary = json["summary"].as_str().unwrap();
    for fact in ["36 hours", "datetime.now()", "tidebook/waitlist.py", "pyproject.toml", "berth_free"] {
        assert!(summary.contains(fact), "the summary lost {fact}");
    }
}

#[test]
fn a_secret_that_a_tool_printed_stays_out_of_the_summary() {
    let world = World::new();
    let secret = "Xq7Lw2vR9kTz4MbN8sHd3pYf";
    assert!(std::fs::read_to_string(EXAMPLE).unwrap().contains(secret));
    for arguments in [&["compress", EXAMPLE][..], &["compress", EXAMPLE, "--context-length", "60k"]] {
        assert!(!world.run(arguments).text().contains(secret), "{arguments:?}");
    }
}
