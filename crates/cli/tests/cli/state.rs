//! `state`: what is known of a recorded conversation, and corrections that later compactions honour.

use serde_json::{Value, json};

use crate::harness::World;
use crate::record::recorded;

/// A world in which a conversation with a rule and two requests is recorded.
fn talked() -> World {
    let world = World::new();
    let mut messages = vec![
        json!({ "role": "user", "content": "Add a cache to the loader. Never touch the vendored folder." }),
        json!({ "role": "assistant", "content": "The loader has a cache now: the second load takes 3 ms." }),
    ];
    for number in 0..40 {
        messages.push(json!({ "role": "user", "content": format!("Look at module {number} as well.") }));
        let words = "It reads its part of the table and returns the rows in order. ".repeat(20);
        messages.push(json!({ "role": "assistant", "content": format!("Module {number} is fine. {words}") }));
    }
    messages.push(json!({ "role": "user", "content": "Now write the release notes, please." }));
    world.write("talk.json", Value::from(messages).to_string());
    let ended = world.run(&["import", "talk.json"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    world
}

fn entries(world: &World, arguments: &[&str]) -> Vec<Value> {
    let arguments = [&["state", "last", "--json"][..], arguments].concat();
    world.run(&arguments).json()["entries"].as_array().unwrap().clone()
}

fn named<'a>(entries: &'a [Value], kind: &str, text: &str) -> &'a Value {
    let fits = |entry: &&Value| entry["kind"] == kind && entry["text"].as_str().unwrap().contains(text);
    entries.iter().find(fits).unwrap()
}

#[test]
fn state_names_every_entry_with_its_messages() {
    let world = talked();
    let all = entries(&world, &[]);
    let rule = named(&all, "constraint", "Never touch");
    let first = rule["messages"][0].as_u64().unwrap();
    assert_eq!(rule["id"], format!("constraint-{first}"));
    assert_eq!(named(&all, "request", "Now write the release notes")["status"], "open");
    assert_eq!(named(&all, "request", "Add a cache")["status"], "answered");
    assert_eq!(entries(&world, &["--open", "--kind", "request"]).len(), 1);
    let page = world.run(&["state", "last", "--open"]);
    assert_eq!(page.code, Some(0));
    assert!(page.text().contains("Now write the release notes, please."), "{}", page.text());
    assert!(!page.text().contains("module 7"), "{}", page.text());
}

#[test]
fn state_honours_what_was_dropped_in_later_summaries() {
    let world = talked();
    let all = entries(&world, &[]);
    let rule = named(&all, "constraint", "Never touch")["id"].as_str().unwrap().to_owned();
    let ended = world.run(&["state", "last", "--drop", &rule]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let left = world.run(&["state", "last", "--json"]).json();
    assert!(!left["entries"].to_string().contains(&rule), "{left}");
    assert_eq!(left["corrections"][0]["entry"], rule.as_str());

    let ended = world.run(&["compress", "--session", "last", "--context-length", "12k", "--quiet"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let view = world.run(&["sessions", "show", "last", "--view", "model", "--raw"]).json();
    let notes = view.as_array().unwrap().iter().map(|message| message["content"].to_string());
    let notes = notes.into_iter().find(|text| text.contains("[CONTEXT COMPACTION")).unwrap();
    assert!(notes.contains("## Constraints & Preferences\\nNone."), "{notes}");
    let kept = world.run(&["state", "last", "--json"]).json()["notes"].clone();
    assert_eq!(kept["constraints"], json!({ "known": 0, "kept": 0 }), "{kept}");
    let ended = world.run(&["state", "last", "--restore", &rule]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(entries(&world, &[]), all, "everything is as it was");
}

#[test]
fn state_shows_what_the_last_compaction_kept() {
    let world = talked();
    assert_eq!(world.run(&["state", "last", "--json"]).json()["notes"], Value::Null);
    let ended = world.run(&["compress", "--session", "last", "--context-length", "12k", "--details"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.text().contains("1 of 1 open requests"), "{}", ended.text());
    let notes = world.run(&["state", "last", "--json"]).json()["notes"].clone();
    assert_eq!(notes["open_requests"], json!({ "known": 1, "kept": 1 }), "{notes}");
    assert_eq!(notes["constraints"], json!({ "known": 1, "kept": 1 }), "{notes}");
    let percent: u64 =
        notes["sections"].as_array().unwrap().iter().map(|s| s["percent"].as_u64().unwrap()).sum();
    assert!((97..=103).contains(&percent), "{notes}");
    let shown = world.run(&["sessions", "show", "last"]);
    assert!(shown.text().contains("1 of 1 open requests"), "{}", shown.text());
}

#[test]
fn state_refuses_what_it_does_not_know_and_changes_nothing() {
    let world = recorded();
    let before = world.run(&["state", "last", "--json"]).json();
    for (arguments, code, words) in [
        (&["state", "last", "--drop", "request-9999"][..], 3, "has no entry `request-9999`"),
        (&["state", "last", "--restore", "request-0"][..], 3, "has no correction `request-0`"),
        (&["state", "nobody"][..], 3, "there is no session `nobody`"),
        (&["state", "last", "--kind", "mood"][..], 2, "one of request, report"),
        (&["state", "last", "--drop", "request-0", "--restore", "request-0"][..], 2, "cannot be used with"),
    ] {
        let ended = world.run(arguments);
        assert_eq!(ended.code, Some(code), "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{arguments:?}: {}", ended.stderr);
    }
    assert_eq!(world.run(&["state", "last", "--json"]).json(), before);
    let empty = World::new();
    let ended = empty.run(&["state", "last"]);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert!(ended.stderr.contains("nothing is recorded yet"), "{}", ended.stderr);
}
