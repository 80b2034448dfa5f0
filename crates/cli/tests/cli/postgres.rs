//! A record on PostgreSQL as commands meet it: the same commands, the same output; and what they say where it cannot be used.

use throughline_testkit::{Missing, PostgresServer, skip};

use crate::harness::{Ended, World};
use crate::samples::claude_log;

/// A world whose settings name an empty database, and the address of that; `None` where there is no PostgreSQL.
#[track_caller]
fn world_on_postgres() -> Option<(World, String)> {
    let Some(server) = PostgresServer::shared() else {
        skip(&Missing::Program { name: "PostgreSQL", installed_by: "apt-get install postgresql" });
        return None;
    };
    let url = server.empty_database();
    // Nobody asks for a password here; the output must not show one all the same.
    let url = url.replace("postgres://postgres@", "postgres://postgres:s3cret@");
    Some((World::with_config(&format!("store:\n  url: {url}\n  connections: 2\n")), url))
}

fn succeeded(ended: &Ended) -> String {
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    ended.text()
}

/// How long a compaction took stands at the end of its report.
fn without_times(text: &str) -> &str {
    text.split_once("\nTime\n").map_or(text, |(text, _)| text)
}

#[test]
fn commands_say_the_same_of_a_record_on_either_engine() {
    let Some((on_server, _)) = world_on_postgres() else { return };
    let in_file = World::new();
    for world in [&on_server, &in_file] {
        world.write("parser.jsonl", claude_log("5e551011", "Port the parser", 40));
    }
    for arguments in [
        &["import", "parser.jsonl"] as &[&str],
        &["import", "parser.jsonl", "--json"],
        &["compress", "--session", "last", "--context-length", "16k", "--quiet"],
        &["sessions"],
        &["sessions", "--json"],
        &["sessions", "show", "last"],
        &["sessions", "tree", "last"],
        &["sessions", "rename", "last", "The parser"],
        &["sessions", "export", "last"],
        &["sessions", "undo", "last"],
        &["inspect", "--session", "last"],
        &["state", "last"],
        &["report", "last"],
        &["usage"],
        &["insights"],
        &["status"],
        &["sessions", "delete", "last", "--yes"],
        &["sessions"],
    ] {
        let (server, file) = (on_server.run(arguments), in_file.run(arguments));
        assert_eq!(server.code, file.code, "{arguments:?}: {}", server.stderr);
        assert_eq!(without_times(&server.text()), without_times(&file.text()), "{arguments:?}");
        assert!(!server.stderr.contains("s3cret"), "{arguments:?}: {}", server.stderr);
    }
    assert!(in_file.home().join("record.db").exists());
    assert!(!on_server.home().join("record.db").exists(), "nothing is recorded beside the database");
}

#[test]
fn the_environment_names_the_record_too_and_no_output_shows_its_password() {
    let Some((_, url)) = world_on_postgres() else { return };
    let world = World::new();
    let env = [("THROUGHLINE_STORE__URL", url.as_str())];
    world.write("parser.jsonl", claude_log("5e551011", "Port the parser", 4));
    succeeded(&world.run_with(&["import", "parser.jsonl"], b"", &env));
    assert!(succeeded(&world.run_with(&["sessions"], b"", &env)).contains("Port the parser"));
    for arguments in [&["config", "show"] as &[&str], &["config", "show", "--json"]] {
        let shown = succeeded(&world.run_with(arguments, b"", &env));
        assert!(shown.contains("postgres:****@") && !shown.contains("s3cret"), "{shown}");
    }
    let other = world.run(&["sessions"]);
    assert!(other.stderr.contains("nothing is recorded yet"), "{}", other.stderr);
}

#[test]
fn a_record_is_copied_to_a_database_and_back_to_a_file() {
    let Some((on_server, url)) = world_on_postgres() else { return };
    let in_file = World::new();
    in_file.write("parser.jsonl", claude_log("5e551011", "Port the parser", 40));
    succeeded(&in_file.run(&["import", "parser.jsonl"]));
    succeeded(&in_file.run(&["compress", "--session", "last", "--context-length", "16k", "--quiet"]));
    let status = in_file.run(&["store", "status", "--json"]).json();
    assert_eq!((&status["engine"], &status["sessions"]), (&"sqlite".into(), &2.into()));

    let copied = in_file.run(&["store", "copy", "--to", &url, "--json"]);
    assert_eq!(copied.code, Some(0), "{}", copied.stderr);
    assert_eq!(copied.json()["messages"], status["messages"]);
    let on_postgres = on_server.run(&["store", "status", "--json"]).json();
    assert_eq!((&on_postgres["engine"], &on_postgres["sessions"]), (&"postgresql".into(), &2.into()));
    assert!(on_postgres["server"]["connections"].as_u64() > Some(0), "{on_postgres}");
    let shown = succeeded(&on_server.run(&["store", "status"]));
    assert!(shown.contains("PostgreSQL") && !shown.contains("s3cret"), "{shown}");

    let back = on_server.path("back.db");
    succeeded(&on_server.run(&["store", "copy", "--to", back.to_str().unwrap()]));
    let home = World::new();
    std::fs::rename(&back, home.home().join("record.db")).unwrap();
    for arguments in
        [&["sessions", "export", "last"] as &[&str], &["sessions", "show", "last"], &["search", "parser"]]
    {
        let [file, server, again] = [&in_file, &on_server, &home].map(|world| world.run(arguments));
        assert_eq!(succeeded(&file), server.text(), "{arguments:?}");
        assert_eq!(file.text(), again.text(), "{arguments:?}");
    }
    let examined = on_server.run(&["doctor", "--json"]).json();
    assert_eq!((&examined["well"], &examined["sessions"]), (&true.into(), &2.into()), "{examined}");
    let refused = in_file.run(&["store", "copy", "--to", &url]);
    assert_eq!(refused.code, Some(7), "{}", refused.stderr);
    assert!(refused.stderr.contains("not empty") && !refused.stderr.contains("s3cret"), "{}", refused.stderr);
    assert_eq!(in_file.run(&["store", "copy", "--to", "other.db"]).code, Some(3));
}

#[test]
fn backup_is_for_a_file_and_says_so() {
    let Some((world, _)) = world_on_postgres() else { return };
    let ended = world.run(&["backup", "copy.tar"]);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    let words = ended.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("is for a record in a file"), "{words}");
    assert!(words.contains("pg_dump") && !words.contains("s3cret"), "{words}");
}

#[test]
fn doctor_repairs_what_follows_from_other_rows_on_a_server() {
    let Some((world, url)) = world_on_postgres() else { return };
    world.write("parser.jsonl", claude_log("5e551011", "Port the parser", 40));
    succeeded(&world.run(&["import", "parser.jsonl"]));
    let sound = world.run(&["doctor", "--fix"]);
    assert!(succeeded(&sound).contains("Nothing to repair"), "{}", sound.text());
    let server = PostgresServer::shared().unwrap();
    let database = url.rsplit('/').next().unwrap();
    server.run(database, "UPDATE sessions SET messages = messages + 7");
    server.run(database, "DELETE FROM search_open");
    let unwell = world.run(&["doctor"]);
    assert_eq!(unwell.code, Some(7), "{}", unwell.stderr);
    assert!(unwell.stderr.contains("doctor --fix"), "{}", unwell.stderr);
    let repaired = world.run(&["doctor", "--fix"]);
    assert!(succeeded(&repaired).starts_with("Repaired 2 things"), "{}", repaired.text());
    assert!(!repaired.text().contains("s3cret") && !repaired.text().contains("as it was before"));
    let report = world.run(&["doctor", "--fix", "--json"]).json();
    assert_eq!((&report["well"], &report["backup"]), (&true.into(), &serde_json::Value::Null), "{report}");
    assert!(succeeded(&world.run(&["search", "parser"])).contains("Port the parser"));
}

#[test]
fn a_database_that_cannot_be_used_is_named_without_its_password() {
    let Some((_, url)) = world_on_postgres() else { return };
    let run = |url: &str| World::new().run_with(&["sessions"], b"", &[("THROUGHLINE_STORE__URL", url)]);
    let nowhere = run("postgres://me:s3cret@%2Fnowhere/record");
    let missing = run(&format!("{url}_missing"));
    let no_user = run("postgres://db/record?password=s3cret");
    let no_database = run("mysql://me:s3cret@db/record");
    let codes = [&nowhere, &missing, &no_user, &no_database].map(|ended| ended.code);
    assert_eq!(codes, [Some(9), Some(9), Some(4), Some(4)], "{}{}", nowhere.stderr, missing.stderr);
    for ended in [nowhere, missing, no_user, no_database] {
        assert!(!ended.stderr.contains("s3cret"), "{}", ended.stderr);
    }
}

#[test]
fn access_tokens_are_in_the_database_for_every_home_directory() {
    let Some((one, url)) = world_on_postgres() else { return };
    let two = World::with_config(&format!("store:\n  url: {url}\n  connections: 2\n"));
    let list = |world: &World| world.run(&["token", "list", "--json"]).json()["tokens"].clone();
    let off = two.run(&["token", "off"]);
    assert!(off.stderr.contains("no tokens are required"), "{}", off.stderr);
    let made = one.run(&["token", "new", "ci", "--per-minute", "60", "--json"]).json();
    let secret = made["token"].as_str().unwrap();
    assert!(!one.home().join("tokens.json").exists(), "nothing is beside the database");
    assert_eq!((&list(&two)[0]["name"], &list(&two)[0]["limits"]), (&"ci".into(), &made["limits"]));
    let taken = two.run(&["token", "new", "ci"]);
    assert_eq!(taken.code, Some(3), "{}", taken.stderr);
    succeeded(&two.run(&["token", "new", "desk", "--owner", "local", "--operator"]));
    assert_eq!(list(&one).as_array().unwrap().len(), 2);
    assert_eq!(two.run(&["token", "off"]).code, Some(3), "there are some still");
    succeeded(&two.run(&["token", "revoke", "ci"]));
    assert_eq!(one.run(&["token", "revoke", "ci"]).code, Some(3), "it is gone everywhere");
    succeeded(&one.run(&["token", "revoke", "desk"]));
    succeeded(&one.run(&["token", "off"]));
    let off = two.run(&["token", "off"]);
    assert!(off.stderr.contains("no tokens are required"), "{}", off.stderr);
    assert!(!format!("{}{}", off.stderr, list(&one)).contains(&secret[3..]));
}

#[test]
fn access_tokens_of_a_home_directory_are_taken_along_to_the_database_once() {
    let Some((on_server, url)) = world_on_postgres() else { return };
    let before = World::new();
    succeeded(&before.run(&["token", "new", "laptop"]));
    let moved = [("THROUGHLINE_STORE__URL", url.as_str())];
    let shown = before.run_with(&["token", "list", "--json"], b"", &moved);
    assert_eq!(shown.json()["tokens"][0]["name"], "laptop", "{}", shown.stderr);
    assert!(shown.stderr.contains("tokens.json.moved"), "{}", shown.stderr);
    assert!(!before.home().join("tokens.json").exists());
    assert_eq!(on_server.run(&["token", "list", "--json"]).json()["tokens"][0]["name"], "laptop");
    // A second list does not replace the one that is there.
    let other = World::new();
    succeeded(&other.run(&["token", "new", "other"]));
    let shown = other.run_with(&["token", "list", "--json"], b"", &moved).json();
    assert_eq!(shown["tokens"].as_array().unwrap().len(), 1, "{shown}");
    assert!(other.home().join("tokens.json").exists());
}
