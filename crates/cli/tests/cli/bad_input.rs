//! Everything that can be wrong with an input or an output: a clear message, the documented exit code, no harm done.

use std::io::Write as _;

use serde_json::json;

use crate::harness::World;
use crate::samples::{lines, long_chat, short_chat};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_missing_file() {
    insta::assert_snapshot!(World::new().seen(&["compress", "nowhere.json"]));
}

#[test]
fn a_folder() {
    insta::assert_snapshot!(World::new().seen(&["inspect", "."]));
}

#[test]
fn an_empty_file() {
    let world = World::new();
    insta::assert_snapshot!(world.write("empty.json", "  \n").seen(&["inspect", "empty.json"]));
}

#[test]
fn something_that_is_not_json() {
    let world = World::new();
    insta::assert_snapshot!(
        world.write("notes.md", "# Notes\n\nNot a transcript.\n").seen(&["compress", "notes.md"])
    );
}

#[test]
fn json_that_is_not_a_conversation() {
    let world = World::new();
    insta::assert_snapshot!(
        world.write("package.json", r#"{"name":"x","version":"1.0.0"}"#).seen(&["inspect", "package.json"])
    );
}

#[test]
fn a_list_of_something_else() {
    let world = World::new();
    insta::assert_snapshot!(world.write("numbers.json", "[1, 2, 3]").seen(&["inspect", "numbers.json"]));
}

#[test]
fn a_truncated_file() {
    let world = World::new();
    let whole = serde_json::to_string_pretty(&short_chat()).unwrap();
    world.write("cut.json", &whole[..whole.len() / 2]);
    insta::assert_snapshot!(world.seen(&["compress", "cut.json", "--out", "out.json"]));
    assert_eq!(world.names(), ["cut.json"], "nothing is written");
}

#[test]
fn a_wrong_dialect() {
    let world = World::new();
    world.write("chat.json", short_chat().to_string());
    insta::assert_snapshot!(world.seen(&["inspect", "chat.json", "--dialect", "anthropic"]));
}

#[test]
fn invalid_utf8() {
    let world = World::new();
    world.write("latin1.json", b"[{\"role\":\"user\",\n\"content\":\"caf\xe9\"}]");
    insta::assert_snapshot!(world.seen(&["inspect", "latin1.json"]));
}

#[test]
fn utf16() {
    let world = World::new();
    let utf16: Vec<u8> = "\u{feff}[]".encode_utf16().flat_map(u16::to_le_bytes).collect();
    insta::assert_snapshot!(world.write("wide.json", utf16).seen(&["inspect", "wide.json"]));
}

#[test]
fn broken_gzip() {
    let world = World::new();
    let whole = gzip(short_chat().to_string().as_bytes());
    world.write("cut.json.gz", &whole[..whole.len() - 12]);
    insta::assert_snapshot!(world.seen(&["inspect", "cut.json.gz"]));
    world.write("wrong.json.gz", [&whole[..20], b"garbage garbage garbage"].concat());
    insta::assert_snapshot!(world.seen(&["inspect", "wrong.json.gz"]));
}

#[test]
fn another_compression() {
    let world = World::new();
    world.write("log.zst", [0x28, 0xb5, 0x2f, 0xfd, 1, 2, 3]);
    insta::assert_snapshot!(world.seen(&["inspect", "log.zst"]));
}

#[test]
fn several_conversations_in_one_file() {
    let world = World::new();
    let bundle = json!([{"messages": [{"role": "user", "content": "one"}]}, {"messages": [{"role": "user", "content": "two"}]}]);
    world.write("bundle.json", bundle.to_string());
    insta::assert_snapshot!("several_conversations", world.seen(&["inspect", "bundle.json"]));
    insta::assert_snapshot!("no_such_conversation", world.seen(&["inspect", "bundle.json", "--pick", "3"]));
    let second = world.run(&["inspect", "bundle.json", "--pick", "2", "--json"]).json();
    assert_eq!(second["largest"][0]["glimpse"], "two");
}

/// A result whose call is nowhere, and one that stands before its call.
fn broken_pairs() -> String {
    let mut chat = long_chat(60);
    let messages = chat["messages"].as_array_mut().unwrap();
    let count = messages.len();
    messages
        .insert(count - 2, json!({"role": "tool", "tool_call_id": "call_from_nowhere", "content": "lost"}));
    let late = messages.len() - 4;
    messages.swap(late - 1, late);
    chat.to_string()
}

#[test]
fn broken_pairs_are_reported_by_inspect() {
    let world = World::new();
    world.write("broken.json", broken_pairs());
    let ended = world.run(&["inspect", "broken.json"]);
    assert_eq!(ended.code, Some(0));
    let text = ended.text();
    let rules = &text[text.find("Broken rules").unwrap()..];
    insta::assert_snapshot!(rules);
    let json = world.run(&["inspect", "broken.json", "--json"]).json();
    let kinds: Vec<&str> =
        json["violations"].as_array().unwrap().iter().map(|v| v["kind"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"result_without_call"), "{kinds:?}");
    assert!(kinds.contains(&"result_before_call"), "{kinds:?}");
}

#[test]
fn broken_pairs_are_repaired_by_compress_with_a_warning() {
    let world = World::new();
    world.write("broken.json", broken_pairs());
    let ended =
        world.run(&["compress", "broken.json", "--context-length", "16k", "--out", "whole.json", "--quiet"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    insta::assert_snapshot!(ended.stderr);
    let json = world.run(&["inspect", "whole.json", "--json"]).json();
    assert_eq!(json["violations"], json!([]), "the output breaks no rule");
}

#[test]
fn a_window_that_is_too_small() {
    let world = World::new();
    let mut chat = long_chat(60);
    world.write("long.json", chat.to_string());
    insta::assert_snapshot!("a_tiny_window", world.seen(&["compress", "long.json", "--context-length", "8"]));
    chat["messages"][0]["content"] = json!("You are a careful helper. ".repeat(200));
    world.write("heavy.json", chat.to_string());
    let arguments = ["compress", "heavy.json", "--context-length", "600", "--out", "out.json"];
    insta::assert_snapshot!("a_window_smaller_than_the_head", world.seen(&arguments));
    assert_eq!(world.names(), ["heavy.json", "long.json"], "nothing is written");
}

#[test]
fn outputs_that_cannot_be_written() {
    let world = World::new();
    world.write("long.json", long_chat(60).to_string());
    std::fs::create_dir(world.path("folder")).unwrap();
    world.write("locked.json", "old");
    let mut permissions = std::fs::metadata(world.path("locked.json")).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(world.path("locked.json"), permissions).unwrap();
    for (name, out) in [
        ("out_is_a_folder", "folder"),
        ("out_folder_missing", "no/such/out.json"),
        ("out_read_only", "locked.json"),
    ] {
        insta::assert_snapshot!(
            name,
            world.seen(&["compress", "long.json", "--context-length", "16k", "--out", out])
        );
    }
    assert_eq!(world.read("locked.json"), b"old");
    assert_eq!(world.names(), ["folder", "locked.json", "long.json"]);
}

#[test]
fn a_broken_line_in_a_log_is_named_and_skipped() {
    let world = World::new();
    let good =
        lines(&[json!({"role": "user", "content": "one"}), json!({"role": "assistant", "content": "two"})]);
    world.write(
        "chat.jsonl",
        format!(
            "{good}{{\"role\":\"user\",\"cont\n{}",
            lines(&[json!({"role": "user", "content": "three"})])
        ),
    );
    let ended = world.run(&["inspect", "chat.jsonl", "--json"]);
    assert_eq!(ended.code, Some(0));
    insta::assert_snapshot!(ended.stderr);
    let json = ended.json();
    assert_eq!(json["messages"], 3);
    assert_eq!(json["notes"][0]["line"], 3);
}

#[test]
fn sessions_with_a_lost_artifact_can_be_listed_and_searched() {
    let world = World::new();
    let output = "a line of output\n".repeat(20_000);
    let chat = json!([
        {"role": "user", "content": "list the files"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": output}]},
        {"role": "assistant", "content": "they are listed"},
    ]);
    world.write("chat.json", chat.to_string());
    assert_eq!(world.run(&["import", "chat.json"]).code, Some(0));
    std::fs::remove_dir_all(world.home().join("artifacts")).unwrap();
    let listed = world.run(&["sessions"]);
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    assert!(String::from_utf8(listed.stdout).unwrap().contains("list the files"));
    let found = world.run(&["search", "listed", "--json"]);
    assert_eq!(found.code, Some(0), "{}", found.stderr);
    assert_eq!(found.json()["hits"].as_array().unwrap().len(), 1);
    let shown = world.run(&["sessions", "show", "last"]);
    assert_eq!(shown.code, Some(7), "{}", shown.stderr);
    assert!(shown.stderr.contains("is missing"), "{}", shown.stderr);
}
