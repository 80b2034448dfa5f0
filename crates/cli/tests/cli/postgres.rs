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
fn commands_for_a_file_say_so() {
    let Some((world, _)) = world_on_postgres() else { return };
    for (arguments, hint) in [(&["backup", "copy.tar"] as &[&str], "pg_dump"), (&["doctor"], "pg_amcheck")] {
        let ended = world.run(arguments);
        assert_eq!(ended.code, Some(3), "{}", ended.stderr);
        let words = ended.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("is for a record in a file"), "{words}");
        assert!(words.contains(hint) && !words.contains("s3cret"), "{words}");
    }
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
