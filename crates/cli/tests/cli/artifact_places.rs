//! Large texts in a place of their own, retention, and the data of one owner, as an operator meets them.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::clients::gateway::Gateway;
use crate::harness::{Ended, World};
use crate::samples::claude_log;

fn succeeded(ended: &Ended) -> String {
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    ended.text()
}

/// A conversation in which a tool answered at length.
fn with_large_result() -> String {
    let call = json!({ "id": "c1", "type": "function", "function": { "name": "Read", "arguments": "{}" } });
    json!([
        { "role": "user", "content": "Read the log." },
        { "role": "assistant", "content": null, "tool_calls": [call] },
        { "role": "tool", "tool_call_id": "c1", "content": "a line of the log\n".repeat(9_000) },
        { "role": "assistant", "content": "It has 9,000 lines." },
    ])
    .to_string()
}

fn last(world: &World) -> String {
    world.run(&["sessions", "--json"]).json()["sessions"][0]["tip"]["id"].as_str().unwrap().to_owned()
}

#[test]
fn large_texts_are_stored_where_the_settings_say() {
    let place = tempfile::tempdir().unwrap();
    let world =
        World::with_config(&format!("store:\n  artifacts: file://{}/large\n", place.path().display()));
    world.write("log.json", with_large_result());
    succeeded(&world.run(&["import", "log.json"]));
    let status = succeeded(&world.run(&["store", "status"]));
    assert!(status.contains(&format!("Large texts  file://{}", place.path().display())), "{status}");
    let exported = succeeded(&world.run(&["sessions", "export", "last"]));
    assert!(exported.contains("a line of the log"), "{exported}");
    assert!(succeeded(&world.run(&["search", "line of the log"])).contains("line of the log"));
    assert_eq!(world.run(&["doctor", "--json"]).json()["well"], true);
    assert_eq!(world.run(&["backup", "copy.tar", "--json"]).json()["artifacts_elsewhere"], 1);
    assert!(succeeded(&world.run(&["backup", "copy2.tar"])).contains("not included"));

    let id = last(&world);
    succeeded(&world.run(&["sessions", "delete", &id, "--yes"]));
    // The clock of the test stands still, long before the file was written.
    let env = [("THROUGHLINE_NOW", "2099-01-01T00:00:00Z")];
    let counted = world.run_with(&["store", "gc", "--dry-run", "--json"], b"", &env).json();
    assert_eq!((&counted["garbage"], &counted["removed"]), (&1.into(), &0.into()), "{counted}");
    let kept = world.run_with(&["store", "gc", "--grace", "100y", "--json"], b"", &env).json();
    assert_eq!((&kept["younger"], &kept["removed"]), (&1.into(), &0.into()), "{kept}");
    let said = succeeded(&world.run_with(&["store", "gc"], b"", &env));
    assert!(said.contains("Removed 1 of 1 large text"), "{said}");
    assert_eq!(world.run(&["store", "gc", "--grace", "soon"]).code, Some(2));
}

#[test]
fn place_that_cannot_be_used_is_named_without_secrets() {
    let world = World::new();
    world.write("log.json", with_large_result());
    for (address, expected) in [
        ("s3://me:s3cret@bucket/prefix", "environment"),
        ("ftp://bucket/prefix?token=s3cret", "`ftp`"),
        ("large", "no scheme"),
    ] {
        let env = [("THROUGHLINE_STORE__ARTIFACTS", address)];
        let ended = world.run_with(&["import", "log.json"], b"", &env);
        assert_eq!(ended.code, Some(4), "{}", ended.stderr);
        assert!(!ended.stderr.contains("s3cret"), "{}", ended.stderr);
        #[cfg(feature = "s3")]
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
        let _ = expected;
    }
    #[cfg(not(feature = "s3"))]
    {
        let env = [("THROUGHLINE_STORE__ARTIFACTS", "s3://bucket/prefix")];
        let ended = world.run_with(&["import", "log.json"], b"", &env);
        assert!(ended.stderr.contains("Cargo feature `s3`"), "{}", ended.stderr);
    }
}

#[test]
fn credentials_in_the_settings_of_the_store_are_never_shown() {
    let world = World::new();
    let artifacts = "s3://AKIAHUNTER:s3/cret@bucket/prefix?region=eu-central-1&secret_access_key=s3cret";
    let url = "postgres://me:s3cret@127.0.0.1:1/record?connect_timeout=1&password=s3cret";
    for (settings, shown) in [
        (vec![("THROUGHLINE_STORE__ARTIFACTS", artifacts)], "s3://****@bucket/prefix?region=eu-central-1"),
        (vec![("THROUGHLINE_STORE__DIRECT_URL", url)], "postgres://me:****@127.0.0.1:1/record"),
        (vec![("THROUGHLINE_STORE__URL", "host=db user=me password=s3cret")], "password=****"),
    ] {
        for arguments in [
            &["config", "show"] as &[&str],
            &["config", "show", "--json"],
            &["store", "status"],
            &["doctor"],
            &["sessions"],
            &[
                "serve",
                "--bind",
                "127.0.0.1:0",
                "--upstream",
                "http://me:s3cret@127.0.0.1:1",
                "--set",
                "store.connections=0",
            ],
        ] {
            let ended = world.run_with(arguments, b"", &settings);
            let text = format!("{}{}", ended.text(), ended.stderr);
            for secret in ["s3cret", "s3/cret", "AKIAHUNTER"] {
                assert!(!text.contains(secret), "{arguments:?}: {text}");
            }
            if arguments == ["config", "show"] {
                assert!(text.contains(shown), "{text}");
            }
        }
    }
}

#[cfg(feature = "s3")]
#[test]
fn large_texts_are_stored_in_a_bucket_and_copied_there() {
    use throughline_testkit::{Missing, ObjectStorage, skip};
    let Some(server) = ObjectStorage::shared() else {
        skip(&Missing::Program { name: "moto", installed_by: ".ci/object-storage" });
        return;
    };
    let address = server.bucket("commands", "one");
    let secrets = ObjectStorage::credentials();
    let mut env: Vec<(&str, &str)> =
        secrets.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let world = World::new();
    world.write("log.json", with_large_result());
    env.push(("THROUGHLINE_STORE__ARTIFACTS", &address));
    succeeded(&world.run_with(&["import", "log.json"], b"", &env));
    let exported = succeeded(&world.run_with(&["sessions", "export", "last"], b"", &env));
    assert!(exported.contains("a line of the log"));
    let status = world.run_with(&["store", "status", "--json"], b"", &env).json();
    assert_eq!(status["artifacts_in"], "s3://commands/one");
    let without = world.run(&["sessions"]);
    assert_eq!(without.code, Some(4), "{}", without.stderr);
    assert!(without.stderr.contains("s3://commands/one"), "{}", without.stderr);

    #[cfg(feature = "postgres")]
    if let Some(postgres) = throughline_testkit::PostgresServer::shared() {
        let database = postgres.empty_database();
        let other = server.bucket("commands", "two");
        let copy = ["store", "copy", "--to", &database, "--artifacts", &other, "--json"];
        let copied = world.run_with(&copy, b"", &env);
        assert_eq!(copied.code, Some(0), "{}", copied.stderr);
        assert_eq!(copied.json()["artifacts"], 1);
        let env = env.iter().copied().filter(|(name, _)| name.starts_with("AWS_"));
        let env = env
            .chain([("THROUGHLINE_STORE__URL", database.as_str()), ("THROUGHLINE_STORE__ARTIFACTS", &other)]);
        let env: Vec<(&str, &str)> = env.collect();
        assert_eq!(succeeded(&World::new().run_with(&["sessions", "export", "last"], b"", &env)), exported);
        let status = World::new().run_with(&["store", "status", "--json"], b"", &env).json();
        assert_eq!(status["artifacts_in"], "s3://commands/two");
        assert!(status["artifact_bytes"].as_u64() > Some(0), "{status}");
    }
}

#[test]
fn old_conversations_expire_and_what_was_done_is_shown() {
    let world = World::new();
    world.write("parser.jsonl", claude_log("5e551011", "Port the parser", 4));
    succeeded(&world.run(&["import", "parser.jsonl"]));
    let unset = world.run(&["store", "expire"]);
    assert_eq!(unset.code, Some(4), "{}", unset.stderr);
    let young = world.run(&["--set", "store.retention.days=36500", "store", "expire"]);
    assert!(succeeded(&young).contains("Removed 0 conversations"), "{}", young.text());
    assert!(succeeded(&world.run(&["store", "log"])).contains("Nothing was expired"));

    let env = [("THROUGHLINE_NOW", "2027-11-15T00:00:00Z"), ("USER", "ada")];
    let dry = ["--set", "store.retention.days=30", "store", "expire", "--dry-run"];
    assert!(succeeded(&world.run_with(&dry, b"", &env)).contains("Would remove 1 conversation"));
    let expire = ["--set", "store.retention.days=30", "store", "expire", "--json"];
    assert_eq!(world.run_with(&expire, b"", &env).json()["conversations"], 1);
    assert_eq!(world.run(&["sessions", "--json"]).json()["sessions"], json!([]));
    let log = succeeded(&world.run(&["store", "log"]));
    assert!(log.contains("retention: 1 conversation") && log.contains("by ada@"), "{log}");
}

#[test]
fn gateway_removes_old_conversations() {
    let home = tempfile::tempdir().unwrap();
    let settings = "store:\n  retention:\n    days: 1\nauxiliary:\n  compression:\n    provider: rules\n";
    std::fs::write(home.path().join("config.yaml"), settings).unwrap();
    let place = home.path().to_str().unwrap().to_owned();
    let world = World::new();
    // The clock of the gateway is the machine's; whatever it shows, this is older.
    let log = claude_log("5e551011", "Port the parser", 4).replace("2026-11-14T", "2020-11-14T");
    world.write("parser.jsonl", log);
    let env = [("THROUGHLINE_HOME", place.as_str())];
    succeeded(&world.run_with(&["import", "parser.jsonl"], b"", &env));
    let sessions = || world.run_with(&["sessions", "--json"], b"", &env).json()["sessions"].clone();
    assert_eq!(sessions().as_array().map(Vec::len), Some(1));
    let _gateway = Gateway::configured(home);
    let begun = Instant::now();
    while sessions() != json!([]) {
        assert!(begun.elapsed() < Duration::from_secs(300), "nothing was removed");
        std::thread::sleep(Duration::from_millis(200));
    }
    let log = world.run_with(&["store", "log", "--json"], b"", &env).json();
    assert_eq!(log["actions"][0]["action"], "retention", "{log}");
}

#[test]
fn everything_of_an_owner_is_exported_and_erased() {
    let world = World::new();
    world.write("log.json", with_large_result());
    world.write("parser.jsonl", claude_log("5e551011", "Port the parser", 4));
    succeeded(&world.run(&["import", "log.json", "parser.jsonl"]));
    let to = world.path("export");
    let exported = world.run(&["store", "export-owner", "local", "--to", "export", "--json"]).json();
    assert_eq!((&exported["conversations"], &exported["artifacts"]), (&2.into(), &1.into()), "{exported}");
    let files: Vec<String> = std::fs::read_dir(to.join("conversations"))
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    let messages = files.iter().flat_map(|file| file.lines()).filter(|line| line.contains("\"message\":"));
    let mut count = 0;
    for line in messages {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(value["of_session"].is_string() && !value["message"].is_null(), "{line}");
        count += 1;
    }
    assert_eq!(exported["messages"], count);
    assert!(files.iter().any(|file| file.contains("a line of the log")));
    assert!(files.iter().any(|file| file.contains("\"call\":")));
    assert_eq!(std::fs::read_dir(to.join("artifacts")).unwrap().count(), 1);
    assert_eq!(world.run(&["store", "export-owner", "local", "--to", "export"]).code, Some(5));

    let refused = world.run(&["store", "erase-owner", "local"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert_eq!(world.run(&["store", "erase-owner", "ann", "--yes", "--json"]).json()["sessions"], 0);
    let erased = succeeded(&world.run(&["store", "erase-owner", "local", "--yes"]));
    assert!(erased.contains("Deleted 2 conversations"), "{erased}");
    assert_eq!(world.run(&["sessions", "--json"]).json()["sessions"], json!([]));
    let log = succeeded(&world.run(&["store", "log"]));
    for act in ["export-owner local: 2 conversations", "erase-owner ann: 0", "erase-owner local: 2"] {
        assert!(log.contains(act), "{log}");
    }
}
