//! `throughline replay`.

use crate::harness::World;
use crate::samples::{claude_log, long_anthropic, long_chat, short_chat};

#[test]
fn one_session_in_full() {
    let world = World::new();
    world.write("session.jsonl", claude_log("s1", "", 30));
    insta::assert_snapshot!(world.seen(&["replay", "session.jsonl"]));
}

#[test]
fn several_and_a_folder_with_other_things() {
    let world = World::new();
    std::fs::create_dir_all(world.path("logs/deep")).unwrap();
    world
        .write("logs/a.jsonl", claude_log("s1", "", 12))
        .write("logs/deep/b.jsonl", claude_log("s2", "", 20))
        .write("logs/package.json", r#"{"name":"no transcript"}"#)
        .write("logs/notes.txt", "not looked at")
        .write("chat.json", long_chat(10).to_string());
    insta::assert_snapshot!(world.seen(&["replay", "logs", "chat.json"]));
}

#[test]
fn for_machines() {
    let world = World::new();
    world.write("session.jsonl", claude_log("s1", "", 60));
    let page = world.run(&["replay", "session.jsonl", "--context-length", "16k", "--json"]).json();
    let one = &page["conversations"][0];
    assert_eq!(one["name"], "session.jsonl");
    assert_eq!(one["model"], "claude-opus-4-6");
    assert_eq!((&one["window_tokens"], &one["threshold_tokens"]), (&16_000.into(), &8_000.into()));
    let (without, with) = (&one["replay"]["without"], &one["replay"]["with"]);
    assert_eq!(without["calls"], 60);
    assert!(with["compactions"].as_u64().unwrap() > 0);
    assert!(with["summaries_micro_usd"].as_u64().unwrap() > 0);
    assert!(with["largest_prompt_tokens"].as_u64() < without["largest_prompt_tokens"].as_u64());
    assert_eq!(page["total"]["without"], *without);
    assert_eq!(one["replay"]["logged"]["calls"], 60);
    assert_eq!(page["summaries"], "by_model");
    assert_eq!(page["failures"].as_array().unwrap().len(), 0);
}

#[test]
fn a_model_without_a_price_and_one_that_is_named() {
    let world = World::new();
    world.write("chat.json", long_chat(10).to_string());
    let unpriced = world.run(&["replay", "chat.json"]).text();
    assert!(unpriced.contains('?') && unpriced.contains("--model names one"), "{unpriced}");
    let priced = world.run(&["replay", "chat.json", "--model", "gpt-5"]).text();
    assert!(priced.contains('$') && !priced.contains('?'), "{priced}");
    let anthropic = long_anthropic(10).to_string();
    let from_stdin =
        world.run_with(&["replay", "-", "--model", "claude-opus-4-5"], anthropic.as_bytes(), &[]);
    assert_eq!(from_stdin.code, Some(0), "{}", from_stdin.stderr);
}

#[test]
fn what_cannot_be_replayed_says_why() {
    let world = World::new();
    std::fs::create_dir_all(world.path("empty")).unwrap();
    world
        .write("request.json", r#"[{"role":"user","content":"Hello"}]"#)
        .write("broken.json", "{")
        .write("chat.json", short_chat().to_string());
    insta::assert_snapshot!("nothing_there", world.seen(&["replay", "nowhere.jsonl"]));
    insta::assert_snapshot!("no_answers", world.seen(&["replay", "request.json"]));
    insta::assert_snapshot!("an_empty_folder", world.seen(&["replay", "empty"]));
    insta::assert_snapshot!("a_bad_ttl", world.seen(&["replay", "chat.json", "--cache-ttl", "2h"]));
    insta::assert_snapshot!("a_tiny_window", world.seen(&["replay", "chat.json", "--context-length", "100"]));
    let mixed = world.run(&["replay", "chat.json", "broken.json", "request.json"]);
    assert_eq!(mixed.code, Some(3));
    assert!(mixed.text().contains("our-own-model") || mixed.text().contains("chat.json"));
    assert!(mixed.stderr.contains("2 files could not be replayed"), "{}", mixed.stderr);
    assert!(
        mixed.stderr.contains("broken.json") && mixed.stderr.contains("request.json"),
        "{}",
        mixed.stderr
    );
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let world = World::new();
    world.write("session.jsonl", claude_log("s1", "", 12)).write("other.jsonl", claude_log("s2", "", 12));
    for width in ["60", "80", "120"] {
        let columns: usize = width.parse().unwrap();
        let text =
            world.run_with(&["replay", "session.jsonl", "other.jsonl"], b"", &[("COLUMNS", width)]).text();
        for line in text.lines() {
            assert!(line.chars().count() <= columns, "{width}: {line}");
        }
    }
}
