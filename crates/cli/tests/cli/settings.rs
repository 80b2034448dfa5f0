//! Settings that are wrong, wherever they came from, and settings that count.

use crate::harness::World;
use crate::samples::{long_chat, short_chat};

#[cfg(not(feature = "postgres"))]
#[test]
fn a_record_on_postgres_needs_the_feature() {
    let ended = World::with_config("store: {url: 'postgres://me:s3cret@db/record'}").run(&["sessions"]);
    assert_eq!(ended.code, Some(4), "{}", ended.stderr);
    assert!(ended.stderr.contains("Cargo feature `postgres`"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("s3cret"), "{}", ended.stderr);
}

#[test]
fn a_bad_value_in_the_file_is_named_with_its_line_and_range() {
    let world = World::with_config("# mine\ncompression:\n  threshold: 1.7\n");
    world.write("chat.json", short_chat().to_string());
    insta::assert_snapshot!(world.seen(&["compress", "chat.json"]));
}

#[test]
fn a_mistyped_key_in_the_file_warns_and_names_the_nearest() {
    let world = World::with_config("compression:\n  treshold: 0.6\n");
    world.write("chat.json", short_chat().to_string());
    let ended = world.run(&["inspect", "chat.json"]);
    assert_eq!(ended.code, Some(0));
    insta::assert_snapshot!(ended.stderr);
}

#[test]
fn a_set_of_an_unknown_key_is_refused_with_the_nearest() {
    let world = World::new();
    world.write("chat.json", short_chat().to_string());
    insta::assert_snapshot!(world.seen(&["inspect", "chat.json", "--set", "compression.treshold=0.6"]));
}

#[test]
fn a_set_out_of_range_is_refused() {
    let world = World::new();
    world.write("chat.json", short_chat().to_string());
    insta::assert_snapshot!(world.seen(&["compress", "chat.json", "--set", "model.context_length=0"]));
}

#[test]
fn a_bad_variable_is_refused_by_name() {
    let world = World::new();
    world.write("chat.json", short_chat().to_string());
    let env = [("THROUGHLINE_COMPRESSION__PROTECT_LAST_N", "many")];
    insta::assert_snapshot!(world.seen_with(&["compress", "chat.json"], b"", &env));
}

#[test]
fn the_later_source_wins_and_the_window_says_where_it_came_from() {
    let world = World::with_config("model:\n  context_length: 50000\n");
    world.write("chat.json", short_chat().to_string());
    let window = |arguments: &[&str], env: &[(&str, &str)]| {
        let json =
            world.run_with(&[&["inspect", "chat.json", "--json"], arguments].concat(), b"", env).json();
        json["window"]["tokens"].as_u64().unwrap()
    };
    let variable = [("THROUGHLINE_MODEL__CONTEXT_LENGTH", "60000")];
    assert_eq!(window(&[], &[]), 50_000);
    assert_eq!(window(&[], &variable), 60_000);
    assert_eq!(window(&["--set", "model.context_length=70000"], &variable), 70_000);
    assert_eq!(window(&["--context-length", "80k"], &variable), 80_000);
}

#[test]
fn a_lower_threshold_compacts_sooner() {
    let world = World::new();
    world.write("long.json", long_chat(60).to_string());
    let outcome = |arguments: &[&str]| {
        let json = world
            .run(&[&["compress", "long.json", "--json", "--context-length", "30k"], arguments].concat())
            .json();
        json["outcome"]["kind"].as_str().unwrap().to_owned()
    };
    assert_eq!(outcome(&[]), "no_op");
    assert_eq!(outcome(&["--set", "compression.threshold=0.2"]), "completed");
    assert_eq!(outcome(&["--force"]), "completed");
}
