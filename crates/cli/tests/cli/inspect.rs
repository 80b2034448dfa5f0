//! `throughline inspect`.

use serde_json::json;

use crate::harness::{World, without_figures};
use crate::samples::{lines, long_chat, short_chat};

#[test]
fn a_short_chat() {
    let world = World::new();
    world.write("chat.json", serde_json::to_string_pretty(&short_chat()).unwrap());
    insta::assert_snapshot!(without_figures(&world.seen(&[
        "inspect",
        "chat.json",
        "--context-length",
        "8k"
    ])));
}

#[test]
fn a_short_chat_for_machines() {
    let world = World::new();
    world.write("chat.json", short_chat().to_string());
    insta::assert_snapshot!(world.seen(&[
        "inspect",
        "chat.json",
        "--context-length",
        "8k",
        "--top",
        "2",
        "--json"
    ]));
}

#[test]
fn an_empty_list() {
    let world = World::new();
    insta::assert_snapshot!(world.write("none.json", "[]").seen(&["inspect", "none.json"]));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let world = World::new();
    world.write("long.json", long_chat(40).to_string());
    for width in ["60", "80", "120"] {
        let columns: usize = width.parse().unwrap();
        for arguments in [
            &["inspect", "long.json"][..],
            &["compress", "long.json", "--force"],
            &["compress", "long.json", "--force", "--preview"],
        ] {
            let text = world.run_with(arguments, b"", &[("COLUMNS", width)]).text();
            for line in text.lines() {
                assert!(line.chars().count() <= columns, "{arguments:?} at {width}: {line}");
            }
        }
    }
}

#[test]
fn stdin_and_gzip_read_like_files() {
    use std::io::Write as _;
    let world = World::new();
    let bytes = short_chat().to_string();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes.as_bytes()).unwrap();
    let packed = encoder.finish().unwrap();
    world.write("chat.json", &bytes);
    let mut plain = world.run(&["inspect", "chat.json", "--json"]).json();
    let mut piped = world.run_with(&["inspect", "-", "--json"], &packed, &[]).json();
    assert_eq!(piped["file"], "stdin");
    plain["file"] = json!(null);
    piped["file"] = json!(null);
    assert_eq!(plain, piped);
}

#[test]
fn the_gauge_agrees_with_the_trigger() {
    let world = World::new();
    world.write("long.json", long_chat(40).to_string());
    let tokens = world.run(&["inspect", "long.json", "--json"]).json()["tokens"].as_u64().unwrap();
    let before = world.run(&["compress", "long.json", "--json"]).json()["report"]["tokens"]["before"]
        .as_u64()
        .unwrap();
    assert_eq!(tokens, before);
}

#[test]
fn text_of_others_cannot_drive_the_terminal() {
    let world = World::new();
    let nasty = "\u{1b}[2J\u{1b}[31mred\u{7} \u{202e}txet";
    let chat = json!([
        {"role": "user", "content": nasty},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": nasty, "type": "function", "function": {"name": format!("tool{nasty}"), "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "other", "content": nasty},
    ]);
    world.write("nasty.json", chat.to_string());
    for arguments in [&["inspect", "nasty.json"][..], &["compress", "nasty.json", "--force"]] {
        let ended = world.run(arguments);
        for c in ['\u{1b}', '\u{7}', '\u{202e}'] {
            assert!(
                !ended.text().contains(c) && !ended.stderr.contains(c),
                "{arguments:?} let {c:?} through"
            );
        }
    }
}

#[test]
fn colour_is_there_only_when_asked_for() {
    let world = World::new();
    world.write("chat.json", short_chat().to_string());
    assert!(!world.run(&["inspect", "chat.json"]).text().contains('\u{1b}'));
    assert!(world.run(&["inspect", "chat.json", "--color", "always"]).text().contains('\u{1b}'));
    let never =
        world.run_with(&["inspect", "chat.json", "--color", "never"], b"", &[("CLICOLOR_FORCE", "1")]);
    assert!(!never.text().contains('\u{1b}'));
}

#[test]
fn a_session_log_is_read_and_named() {
    let world = World::new();
    let log = lines(&[
        json!({"type": "user", "uuid": "1", "parentUuid": null, "sessionId": "s", "message": {"role": "user", "content": "Hello"}}),
        json!({"type": "assistant", "uuid": "2", "parentUuid": "1", "sessionId": "s", "message": {"id": "m", "role": "assistant", "model": "some-model", "content": [{"type": "text", "text": "Hi"}]}}),
    ]);
    world.write("log.jsonl", log);
    let json = world.run(&["inspect", "log.jsonl", "--json"]).json();
    assert_eq!(
        (json["source"].as_str(), json["dialect"].as_str()),
        (Some("claude_code_log"), Some("anthropic"))
    );
    assert_eq!(json["messages"], 2);
    assert_eq!(json["model"]["name"], "some-model");
}
