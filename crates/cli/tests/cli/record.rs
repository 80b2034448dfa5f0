//! The record: `import`, `sessions`, and what they say when something is not as it should be.

use serde_json::{Value, json};
use throughline_store::{Holder, LockOutcome, LockRequest, Owner, SqliteStore, Store as _};

use crate::harness::{NOW, World};
use crate::samples::{claude_log, long_chat};

/// A world in which a long session of Claude Code is recorded.
pub(crate) fn recorded() -> World {
    let world = World::new();
    world.write("parser.jsonl", claude_log("5e551011", "Port the parser", 40));
    let ended = world.run(&["import", "parser.jsonl"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    world
}

/// The id of the newest session.
pub(crate) fn last(world: &World) -> String {
    world.run(&["sessions", "--json"]).json()["sessions"][0]["tip"]["id"].as_str().unwrap().to_owned()
}

fn compacted() -> World {
    let world = recorded();
    let ended = world.run(&["compress", "--session", "last", "--context-length", "16k", "--quiet"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    world
}

#[test]
fn importing_tells_what_came_of_it() {
    let world = World::new();
    world.write("parser.jsonl", claude_log("5e551011", "Port the parser", 40));
    insta::assert_snapshot!("import", world.seen(&["import", "parser.jsonl"]));
    insta::assert_snapshot!("import_again", world.seen(&["import", "parser.jsonl"]));
    world.write("parser.jsonl", claude_log("5e551011", "Port the parser", 42));
    let grown = world.run(&["import", "parser.jsonl", "--json"]).json();
    assert_eq!(grown["totals"]["grown"], 1);
    assert_eq!(grown["totals"]["messages"], 4, "only what is new: {grown}");
}

#[test]
fn without_a_path_the_usual_places_are_searched() {
    let world = World::new();
    insta::assert_snapshot!("import_without_histories", world.seen(&["import"]));
    let folder = world.user().join(".claude/projects/parser");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("5e551011.jsonl"), claude_log("5e551011", "Port the parser", 2)).unwrap();
    insta::assert_snapshot!("import_from_usual_places", world.seen(&["import"]));
}

#[test]
fn imports_at_the_same_time_record_everything_once() {
    let world = World::new();
    for number in 0..3 {
        world.write(
            &format!("{number}.jsonl"),
            claude_log(&format!("5e55101{number}"), "Port the parser", 30),
        );
    }
    // None of them finds a record: they make it at the same time too.
    let messages = std::thread::scope(|scope| {
        let import = || {
            let ended = world.run(&["import", ".", "--json"]);
            assert_eq!(ended.code, Some(0), "{}", ended.stderr);
            ended.json()["totals"]["messages"].as_u64().unwrap()
        };
        let imports: Vec<_> = (0..4).map(|_| scope.spawn(import)).collect();
        imports.into_iter().map(|import| import.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(messages.iter().filter(|messages| **messages > 0).count(), 1, "{messages:?}");
    let listed = world.run(&["sessions", "--json"]).json();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 3);
    assert_eq!(world.run(&["doctor"]).code, Some(0));
}

#[test]
fn a_broken_line_is_named_and_the_rest_is_imported() {
    let world = World::new();
    let log = claude_log("5e551011", "", 3);
    let mut rows: Vec<&str> = log.lines().collect();
    rows.insert(2, "{\"type\":\"user\",\"mess");
    world.write("broken.jsonl", rows.join("\n"));
    let ended = world.run(&["import", "broken.jsonl"]);
    assert!(ended.stderr.contains("broken.jsonl:3: "), "{}", ended.stderr);
    assert_eq!(world.run(&["sessions", "--json"]).json()["sessions"][0]["totals"]["messages"], 7);
}

#[test]
fn a_file_that_cannot_be_imported_fails_and_the_others_stay() {
    let world = World::new();
    world.write("good.jsonl", claude_log("5e551011", "Good", 3));
    world.write("bad.json", "{\"messages\": [{\"role\": \"user\", ");
    insta::assert_snapshot!("import_of_a_bad_file", world.seen(&["import", "good.jsonl", "bad.json"]));
    assert_eq!(world.run(&["sessions", "--json"]).json()["sessions"].as_array().unwrap().len(), 1);
    let missing = world.run(&["import", "nowhere.jsonl"]);
    assert_eq!(missing.code, Some(6));
}

#[test]
fn nothing_recorded_is_no_failure() {
    let world = World::new();
    insta::assert_snapshot!("sessions_of_nothing", world.seen(&["sessions"]));
    for arguments in [&["search", "x"][..], &["usage"], &["insights"], &["sessions", "list", "--json"]] {
        let ended = world.run(arguments);
        assert_eq!(ended.code, Some(0), "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("nothing is recorded yet"), "{arguments:?}: {}", ended.stderr);
    }
    assert_eq!(world.run(&["sessions", "--json"]).json(), json!({ "sessions": [], "more": false }));
    assert!(!world.home().join("record.db").exists(), "reading makes no record");
    insta::assert_snapshot!("show_of_nothing", world.seen(&["sessions", "show", "last"]));
}

#[test]
fn the_list_and_the_transcript() {
    let world = recorded();
    insta::assert_snapshot!("sessions_list", world.seen(&["sessions"]));
    let page = world.run(&["sessions", "show", "last"]).text();
    let start: Vec<&str> = page.lines().take(40).collect();
    insta::assert_snapshot!("sessions_show", start.join("\n"));
    assert!(page.lines().all(|line| line.chars().count() <= 80), "no line is wider than the terminal");
}

#[test]
fn messages_come_back_byte_for_byte() {
    let world = recorded();
    let raw: Value =
        serde_json::from_slice(&world.run(&["sessions", "show", "last", "--raw"]).stdout).unwrap();
    let log = claude_log("5e551011", "Port the parser", 40);
    let said: Vec<Value> = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).unwrap().get("message").cloned())
        .collect();
    assert_eq!(raw.as_array().unwrap().len(), said.len());
    let json = world.run(&["sessions", "show", "last", "--json"]).json();
    assert_eq!(json["messages"].as_array().unwrap().len(), said.len());
    assert_eq!(json["messages"][0]["message"]["content"], said[0]["content"]);
}

#[test]
fn a_recorded_session_is_compacted_undone_and_redone() {
    let world = recorded();
    let before = last(&world);
    let report = world.run(&["compress", "--session", "last", "--context-length", "16k", "--json"]).json();
    assert_eq!(report["outcome"]["kind"], "completed");
    assert_eq!(report["committed"]["from"], before.as_str());
    let after = last(&world);
    assert_eq!(report["committed"]["to"], after.as_str());
    let sent = world.run(&["sessions", "show", "last", "--view", "model", "--raw"]).json();
    assert_eq!(sent, report["messages"], "the view is what the compaction made");
    let said = world.run(&["sessions", "show", "last", "--raw"]).json();
    assert_eq!(said.as_array().unwrap().len(), 81, "everything said is still there");
    let shown = world.run(&["sessions", "show", &after]).text();
    assert!(shown.contains("══ compacted 2026-11-15 12:00 by the built-in rules ═"), "{shown}");

    let tight = world.run(&["sessions", "undo", &after, "--context-length", "1k"]);
    assert_eq!(tight.code, Some(3));
    assert!(tight.stderr.contains("the limit is 1,000"), "{}", tight.stderr);
    assert_eq!(last(&world), after, "nothing was changed");

    let undone = world.run(&["sessions", "undo", "last"]);
    assert_eq!(undone.code, Some(0), "{}", undone.stderr);
    let sent = world.run(&["sessions", "show", "last", "--view", "model", "--raw"]).json();
    assert_eq!(sent, said, "everything is sent again");
    let redone = world.run(&["sessions", "redo", "last", "--json"]).json();
    assert_eq!(redone["messages"]["before"], 81);
    let sent = world.run(&["sessions", "show", "last", "--view", "model", "--raw"]).json();
    assert_eq!(sent, report["messages"]);
    let tree = world.run(&["sessions", "tree", "last"]).text();
    assert!(tree.contains("ended: compression") && tree.contains("ended: undo"), "{tree}");
    assert_eq!(tree.lines().filter(|line| line.contains("continuation")).count(), 3, "{tree}");
    let again = world.run(&["sessions", "redo", "last"]);
    assert_eq!(again.code, Some(3), "there is nothing left to redo");
}

#[test]
fn an_earlier_summary_is_updated_by_the_next_compaction() {
    let world = compacted();
    let longer = claude_log("5e551011", "Port the parser", 90);
    world.write("parser.jsonl", longer);
    assert_eq!(world.run(&["import", "parser.jsonl"]).code, Some(0));
    let report = world.run(&["compress", "--session", "last", "--context-length", "16k", "--json"]).json();
    assert_eq!(report["outcome"]["kind"], "completed");
    assert_eq!(report["report"]["plan"]["updates_earlier_summary"], true);
    let sent = world.run(&["sessions", "show", "last", "--view", "model", "--json"]).json();
    let kinds: Vec<&str> =
        sent["items"].as_array().unwrap().iter().map(|item| item["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "summary").count(), 1, "{kinds:?}");
    let said = world.run(&["sessions", "show", "last", "--raw"]).json();
    assert_eq!(said.as_array().unwrap().len(), 181);
}

#[test]
fn a_preview_records_nothing() {
    let world = recorded();
    let before = last(&world);
    let plan = world.run(&["compress", "--session", "last", "--context-length", "16k", "--preview"]);
    assert!(plan.text().starts_with("Would compact session"), "{}", plan.text());
    assert_eq!(last(&world), before);
    let below = world.run(&["compress", "--session", "last"]);
    assert_eq!(below.code, Some(0), "{}", below.stderr);
    assert_eq!(last(&world), before, "below the threshold nothing is done");
}

#[test]
fn sessions_are_renamed_exported_and_deleted() {
    let world = recorded();
    assert_eq!(world.run(&["sessions", "rename", "last", "A new name"]).code, Some(0));
    assert_eq!(world.run(&["sessions", "--json"]).json()["sessions"][0]["title"], "A new name");
    let by_title = world.run(&["sessions", "show", "A new name", "--json"]).json();
    assert_eq!(by_title["session"]["id"], last(&world).as_str());

    assert_eq!(world.run(&["sessions", "export", "last", "--out", "out.json"]).code, Some(0));
    let exported: Value = serde_json::from_slice(&world.read("out.json")).unwrap();
    assert_eq!(exported, world.run(&["sessions", "show", "last", "--raw"]).json());

    let unasked = world.run(&["sessions", "delete", "last"]);
    assert_eq!(unasked.code, Some(2), "{}", unasked.stderr);
    assert!(unasked.stderr.contains("--yes"));
    insta::assert_snapshot!("sessions_delete", world.seen(&["sessions", "delete", "last", "--yes"]));
    assert_eq!(world.run(&["sessions", "--json"]).json()["sessions"], json!([]));
}

#[test]
fn unknown_and_ambiguous_ids_are_distinguished() {
    let world = recorded();
    world.write("other.jsonl", claude_log("5e551012", "Another one", 3));
    world.run(&["import", "other.jsonl"]);
    insta::assert_snapshot!("unknown_id", world.seen(&["sessions", "show", "nothing-like-it"]));
    insta::assert_snapshot!("ambiguous_id", world.seen(&["sessions", "show", "2026"]));
    let whole = last(&world);
    assert_eq!(world.run(&["sessions", "show", &whole[..whole.len() - 1]]).code, Some(0));

    let world = compacted();
    let newest = world.run(&["sessions", "show", "2026", "--json"]).json();
    assert_eq!(newest["session"]["id"], last(&world).as_str(), "all that fit are of one conversation");
}

#[test]
fn invalid_dates_are_refused() {
    let world = recorded();
    for arguments in [
        &["sessions", "--since", "2026-13-01"][..],
        &["search", "x", "--until", "someday"],
        &["insights", "--days", "0"],
    ] {
        assert_eq!(world.run(arguments).code, Some(2), "{arguments:?}");
    }
    insta::assert_snapshot!("an_invalid_date", world.seen(&["sessions", "--since", "2026-13-01"]));
}

#[test]
fn what_is_not_a_record_is_refused_and_left_alone() {
    let world = World::new();
    let file = world.home().join("record.db");
    std::fs::write(&file, "just some text, longer than a database header would be, by a good deal of words")
        .unwrap();
    let before = std::fs::read(&file).unwrap();
    for arguments in [&["sessions"][..], &["search", "x"], &["import", "x.json"]] {
        world.write("x.json", long_chat(2).to_string());
        let ended = world.run(arguments);
        assert_eq!(ended.code, Some(7), "{arguments:?}: {}", ended.stderr);
    }
    assert_eq!(std::fs::read(&file).unwrap(), before);
    insta::assert_snapshot!("not_a_record", world.seen(&["sessions"]));
}

#[test]
fn a_damaged_or_newer_record_is_refused_and_left_alone() {
    let file = |world: &World| world.home().join("record.db");
    let world = recorded();
    let whole = std::fs::read(file(&world)).unwrap();
    assert!(!world.home().join("record.db-wal").exists(), "the last one to leave takes the journal along");
    let mut newer = whole.clone();
    // Where SQLite keeps the version of a schema in the header of a file.
    newer[60..64].copy_from_slice(&99_u32.to_be_bytes());
    let mut others = whole.clone();
    others[68..72].copy_from_slice(b"Else");
    for (name, bytes) in
        [("newer", newer), ("others", others), ("cut_off", whole[..whole.len() / 3].to_vec())]
    {
        std::fs::write(file(&world), &bytes).unwrap();
        for arguments in
            [&["sessions"][..], &["sessions", "rename", "last", "x"], &["import", "parser.jsonl"]]
        {
            let ended = world.run(arguments);
            assert_eq!(ended.code, Some(7), "{name} {arguments:?}: {} {}", ended.text(), ended.stderr);
        }
        assert!(std::fs::read(file(&world)).unwrap() == bytes, "{name} was changed");
        insta::assert_snapshot!(format!("record_{name}"), world.seen(&["sessions"]));
    }
}

#[test]
fn a_conversation_that_somebody_works_on_is_left_alone() {
    let world = recorded();
    let store = SqliteStore::open(&world.home().join("record.db"), 0).unwrap();
    let session = store.resolve(&Owner::default(), "last").unwrap();
    let holder = |host: &str| Holder {
        host: host.to_owned(),
        process_id: 4711,
        process_start: 1,
        what: "chat".to_owned(),
    };
    let now_ms = 1_794_744_000_000 - 60_000;
    let hold = |expires_ms| {
        let name = LockRequest::conversation_name(session.chain);
        let request = LockRequest { name, holder: holder("elsewhere"), now_ms, expires_ms };
        assert!(matches!(store.lock(&request, &|_| true).unwrap(), LockOutcome::Taken { from: None, .. }));
    };
    hold(now_ms + 600_000);
    for arguments in [
        &["sessions", "rename", "last", "x"][..],
        &["sessions", "delete", "last", "--yes"],
        &["sessions", "undo", "last"],
        &["compress", "--session", "last", "--force"],
    ] {
        let ended = world.run(arguments);
        assert_eq!(ended.code, Some(8), "{arguments:?}: {}", ended.stderr);
    }
    insta::assert_snapshot!("in_use", world.seen(&["sessions", "rename", "last", "x"]));
    assert_eq!(world.run(&["sessions", "show", "last"]).code, Some(0), "reading needs no lock");
    store.unlock(&LockRequest::conversation_name(session.chain), &holder("elsewhere")).unwrap();
    hold(now_ms + 1);
    let ended = world.run(&["sessions", "rename", "last", "x"]);
    assert_eq!(ended.code, Some(0), "a lock whose time is up holds nobody back: {}", ended.stderr);
    assert!(
        ended.stderr.contains("took over the lock of chat (process 4711 on elsewhere)"),
        "{}",
        ended.stderr
    );
    assert!(store.locks().unwrap().is_empty(), "and it is let go again");
}

#[cfg(unix)]
#[test]
fn the_record_and_exports_are_their_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = recorded();
    world.run(&["sessions", "export", "last", "--out", "out.json"]);
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&world.home().join("record.db")), 0o600);
    assert_eq!(mode(&world.home().join("artifacts")), 0o700);
    assert_eq!(mode(&world.path("out.json")), 0o600);
}

#[test]
fn exports_have_their_forms_and_mask_secrets() {
    let world = World::new();
    let key = "sk-ant-api03-Zk3Jv8Qm2Xw7Rt5Yb9Nc4Hd6Lf1Gp0Sa";
    let chat = json!({"model": "claude-opus-4-6", "system": "Be brief.", "messages": [
        {"role": "user", "content": format!("my key is {key}")}, {"role": "assistant", "content": "Noted."},
        {"role": "user", "content": "Thanks."}]});
    world.write("chat.json", chat.to_string());
    assert_eq!(world.run(&["import", "chat.json"]).code, Some(0));
    let list = world.run(&["sessions", "export", "last"]);
    assert_eq!(list.json(), chat["messages"]);
    let lines = world.run(&["sessions", "export", "last", "--format", "jsonl"]).text();
    assert_eq!(lines.lines().count(), 3);
    let body = world.run(&["sessions", "export", "last", "--format", "body"]).json();
    assert_eq!((&body["system"], &body["messages"]), (&chat["system"], &chat["messages"]));
    let masked = world.run(&["sessions", "export", "last", "--redact"]);
    assert!(!masked.text().contains(key) && masked.text().contains("my key is "), "{}", masked.text());
    assert!(masked.stderr.contains("secrets were masked in 1 message"), "{}", masked.stderr);
}

#[test]
fn a_backup_is_whole_and_replaces_nothing() {
    let world = recorded();
    insta::assert_snapshot!("backup", crate::harness::without_figures(&world.seen(&["backup", "copy.tar"])));
    let again = world.run(&["backup", "copy.tar"]);
    assert_eq!(again.code, Some(5), "{}", again.stderr);
    let json = world.run(&["backup", "other.tar", "--json"]).json();
    assert_eq!(json["messages"], 81);
    assert_eq!(World::new().run(&["backup", "none.tar"]).code, Some(6));
}

#[test]
fn any_question_is_safe() {
    let world = recorded();
    for question in [
        "",
        "\"",
        "-x",
        "--",
        "NEAR(a b)",
        "a* OR NOT b",
        "{col}: x",
        "😀",
        "'; DROP TABLE messages; --",
        &"x".repeat(10_000),
    ] {
        let ended = world.run(&["search", "--json", "--", question]);
        assert_eq!(ended.code, Some(0), "{question:?}: {}", ended.stderr);
        assert!(ended.json()["hits"].is_array());
    }
    assert_eq!(world.run(&["search", "-n", "3", "cargo"]).code, Some(0));
}

#[test]
fn searching_usage_and_insights() {
    let world = recorded();
    insta::assert_snapshot!("search", world.seen(&["search", "case_17", "--limit", "2", "--context", "1"]));
    insta::assert_snapshot!("search_nothing", world.seen(&["search", "no such words"]));
    let json = world.run(&["search", "case_17", "--role", "assistant", "--tool", "Bash", "--json"]).json();
    assert_eq!(json["hits"][0]["role"], "assistant");
    insta::assert_snapshot!("usage_of_a_session", world.seen(&["usage", "last"]));
    insta::assert_snapshot!("insights", world.seen(&["insights", "--days", "7"]));
    let total = &world.run(&["usage", "--json"]).json()["total"];
    assert_eq!(total["calls"], 40);
    assert_eq!(total["usage"]["output"], 40 * 200);
    assert_eq!(world.run(&["usage", "--since", NOW, "--json"]).json()["total"]["calls"], 0);
}

/// Filters are combined, find what is there, and each one alone excludes it.
#[test]
fn filters_of_a_search() {
    let world = recorded();
    let messages = json!([
        {"role": "user", "content": "Repair case_17 of the printer."},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "edit", "arguments": json!({"path": "src/printer.rs", "text": "case_17"}).to_string()}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "Edited src/printer.rs for case_17."},
    ]);
    world.write("printer.json", messages.to_string());
    assert_eq!(world.run(&["import", "printer.json"]).code, Some(0));
    let found = |filters: &[&str]| {
        let ended = world.run(&[&["search", "case_17", "--json"], filters].concat());
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended.json()["hits"].as_array().unwrap().len()
    };
    let both = found(&["--tool", "Bash"]);
    assert!(both > 0 && found(&["--tool", "edit"]) > 0);
    assert_eq!(found(&["--tool", "Bash", "--project", "parser", "--since", "2026-11-14"]), both);
    assert_eq!(found(&["--tool", "Bash", "--project", "parser", "--until", "2026-11-13"]), 0);
    assert_eq!(found(&["--tool", "Bash", "--project", "printer"]), 0);
    assert!(found(&["--file", "src/printer.rs", "--tool", "edit", "--role", "assistant"]) > 0);
    assert_eq!(found(&["--file", "src/printer.rs", "--project", "parser"]), 0);
    assert_eq!(found(&["--file", "src/other.rs"]), 0);
}

/// What a search names can be opened where it stands.
#[test]
fn the_messages_around_a_hit() {
    let world = recorded();
    let hit = world.run(&["search", "case_17", "--tool", "Bash", "--json"]).json()["hits"][0].clone();
    let (id, seq) = (hit["session"].as_str().unwrap().to_owned(), hit["seq"].to_string());
    insta::assert_snapshot!("messages_around_one", world.seen(&["sessions", "show", &id, "--around", &seq]));
    let shown = world.run(&["sessions", "show", &id, "--around", &seq, "--json"]).json();
    let numbers: Vec<u64> = shown["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["seq"].as_u64().unwrap())
        .collect();
    let at: u64 = seq.parse().unwrap();
    assert_eq!(numbers, (at - 10..=at + 10).collect::<Vec<_>>());
    let raw = world.run(&["sessions", "show", "last", "--around", "0", "--raw"]).json();
    assert_eq!(raw.as_array().unwrap().len(), 11, "nothing stands before the first");
    let missing = world.run(&["sessions", "show", "last", "--around", "9000"]);
    assert_eq!(missing.code, Some(3));
    assert!(missing.stderr.contains("there is no message #9000 in this conversation"), "{}", missing.stderr);
    assert!(missing.stderr.contains("its messages are #0 to #"), "{}", missing.stderr);
}

#[test]
fn a_transcript_cannot_drive_the_terminal() {
    let world = World::new();
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\rhidden\u{8}";
    let log = json!([
        {"role": "user", "content": format!("evil {evil}")},
        {"role": "assistant", "content": evil, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": evil, "arguments": json!({ "x": evil }).to_string()}}]},
        {"role": "tool", "tool_call_id": "c1", "content": evil},
        {"role": "user", "content": "So far."},
    ]);
    world.write("evil.json", log.to_string());
    world.run(&["import", "evil.json"]);
    world.run(&["sessions", "rename", "last", evil]);
    for arguments in [
        &["sessions"][..],
        &["sessions", "show", "last"],
        &["sessions", "show", "last", "--full", "--view", "model"],
        &["sessions", "tree", "last"],
        &["search", "evil", "--context", "2"],
        &["search", "hidden"],
        &["usage", "last"],
        &["insights"],
        &["inspect", "--session", "last"],
        &["sessions", "delete", "last"],
        &["sessions", "show", evil],
    ] {
        let ended = world.run(arguments);
        for text in [ended.text(), ended.stderr] {
            let bad = text.chars().find(|c| c.is_control() && *c != '\n');
            assert_eq!(bad, None, "{arguments:?}: {text:?}");
        }
    }
}

#[test]
fn the_doctor_finds_a_healthy_record_well() {
    let world = recorded();
    insta::assert_snapshot!("doctor_well", crate::harness::without_figures(&world.seen(&["doctor"])));
    let json = world.run(&["doctor", "--quick", "--json"]).json();
    assert_eq!((&json["well"], &json["messages"]), (&json!(true), &json!(81)));
    let nothing = world.run(&["doctor", "--fix"]);
    assert_eq!(nothing.code, Some(0), "{}", nothing.stderr);
    assert!(nothing.text().starts_with("Nothing to repair"), "{}", nothing.text());
    assert_eq!(World::new().run(&["doctor"]).code, Some(0), "no record is no illness");
}

#[cfg(unix)]
#[test]
fn the_doctor_mends_what_can_be_mended_after_a_backup() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = recorded();
    let file = world.home().join("record.db");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    insta::assert_snapshot!("doctor_unwell", crate::harness::without_figures(&world.seen(&["doctor"])));
    let fixed = world.run(&["doctor", "--fix", "--json"]);
    assert_eq!(fixed.code, Some(0), "{}", fixed.stderr);
    assert_eq!(fixed.json()["well"], true);
    assert!(world.home().join("before_fix_20261115_120000.tar").exists());
    assert_eq!(world.run(&["doctor"]).code, Some(0));
}

#[test]
fn the_doctor_saves_what_can_be_read_of_a_damaged_record() {
    let world = recorded();
    let file = world.home().join("record.db");
    let mut bytes = std::fs::read(&file).unwrap();
    let page = 4096;
    assert!(bytes.len() > 20 * page);
    let last = bytes.len() - 3 * page;
    bytes[last..last + page].fill(0xa5);
    std::fs::write(&file, &bytes).unwrap();
    let sick = world.run(&["doctor", "--json"]);
    assert_eq!(sick.code, Some(7), "{} {}", sick.text(), sick.stderr);
    assert_eq!(sick.json()["well"], false);
    assert!(std::fs::read(&file).unwrap() == bytes, "looking changes nothing");
    let fixed = world.run(&["doctor", "--fix"]);
    assert!(fixed.text().contains("as it was before: "), "{} {}", fixed.text(), fixed.stderr);
    assert_eq!(world.run(&["sessions"]).code, Some(0), "the record can be used again");
}
