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

#[test]
fn logs_come_to_the_same_sum_in_insights_and_replay() {
    let world = World::new();
    // Usage noted before the answer was complete, and another model from the middle on.
    let unfinished = claude_log("s1", "", 12).replace(r#""stop_reason":"end_turn""#, r#""stop_reason":null"#);
    let lines: Vec<&str> = unfinished.lines().collect();
    let (first, second) = lines.split_at(lines.len() / 2);
    let mixed = format!(
        "{}\n{}\n",
        first.join("\n"),
        second.join("\n").replace("claude-opus-4-6", "claude-sonnet-4-5")
    );
    assert!(mixed.contains("claude-sonnet-4-5") && mixed.contains(r#""stop_reason":null"#));
    std::fs::create_dir_all(world.path("logs")).unwrap();
    world.write("logs/a.jsonl", mixed).write("logs/b.jsonl", claude_log("s2", "", 8));
    let own_prices = r#"{"version": 1, "models": [{"name": "claude-sonnet-4-5",
        "rates": [{"input": 7, "output": 70, "cache_read": 0.7, "cache_write": 8}]}]}"#;
    for prices in [None, Some(own_prices)] {
        let _ = std::fs::remove_file(world.home().join("record.db"));
        if let Some(prices) = prices {
            std::fs::write(world.home().join("models.json"), prices).unwrap();
        }
        assert_eq!(world.run(&["import", "logs"]).code, Some(0));
        let insights = world.run(&["insights", "--days", "365", "--json"]).json()["total"].clone();
        let logged = world.run(&["replay", "logs", "--json"]).json()["total"]["logged"].clone();
        assert_eq!((&insights["calls"], &insights["usage"]), (&logged["calls"], &logged["usage"]));
        assert_eq!(insights["cost_micro_usd"], logged["micro_usd"], "{prices:?}");
        assert_eq!(insights["estimated"], 0, "figures of a log are the provider's own");
        assert_eq!(insights["usage"]["output"], 20 * 200, "and are not replaced");
        let page = world.run(&["insights", "--days", "365"]).text();
        assert!(!page.contains('~'), "{page}");
    }
}
