//! The first minute: the name alone says what was found and what to do next; `compress` without a file offers the newest
//! session and reads it only when told to.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::harness::World;
use crate::samples::claude_log;
use crate::terminal::Terminal;

/// Nobody answers at any of these.
const NO_SERVERS: [(&str, &str); 3] = [
    ("OLLAMA_HOST", "127.0.0.1:9"),
    ("LLAMA_ARG_PORT", "9"),
    ("LM_STUDIO_API_BASE", "http://127.0.0.1:9/v1"),
];

/// A log of Claude Code and an older one, and one of a sub-agent that is the newest of all.
fn world_with_sessions() -> (World, PathBuf) {
    let world = World::new();
    let folder = world.user().join(".claude/projects/-work-shop");
    fs::create_dir_all(&folder).unwrap();
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_794_744_000);
    for (name, minutes) in [("old.jsonl", 90), ("new.jsonl", 5), ("agent-1.jsonl", 1)] {
        let path = folder.join(name);
        fs::write(&path, claude_log("shop", "The shop", 30)).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(now - Duration::from_secs(60 * minutes)).unwrap();
    }
    (world, folder.join("new.jsonl"))
}

#[test]
fn bare_name_with_nothing_found() {
    insta::assert_snapshot!(World::new().seen_with(&[], b"", &NO_SERVERS));
}

#[test]
fn bare_name_says_what_was_found() {
    let (world, _) = world_with_sessions();
    let programs = world.path("bin");
    fs::create_dir_all(&programs).unwrap();
    fs::write(programs.join("claude"), "").unwrap();
    let path = programs.display().to_string();
    let mut environment = vec![("PATH", path.as_str()), ("ANTHROPIC_API_KEY", "sk-ant-secret")];
    environment.extend(NO_SERVERS);
    let seen = world.seen_with(&[], b"", &environment);
    assert!(!seen.contains("sk-ant-secret"), "a key is never shown");
    insta::assert_snapshot!(seen);
}

#[test]
fn bare_name_at_a_terminal_explains_itself_and_ends() {
    let (world, _) = world_with_sessions();
    for columns in [60, 80, 200] {
        let terminal = Terminal::start_sized(&world, &[], &NO_SERVERS, (40, columns));
        terminal.see("2 sessions, the newest of Claude Code, 5 min ago");
        terminal.see("throughline --help");
        assert_eq!(terminal.end(), 0);
    }
}

#[test]
fn compress_offers_the_newest_session_and_reads_it_when_wanted() {
    let (world, newest) = world_with_sessions();
    let before = fs::read(&newest).unwrap();
    let mut terminal =
        Terminal::start(&world, &["compress", "--context-length", "16k", "--force", "--quiet"]);
    terminal.see("one of Claude Code");
    terminal.see("new.jsonl");
    terminal.see("[Y/n]");
    terminal.press("\r");
    terminal.see("tokens");
    assert_eq!(terminal.end(), 0);
    assert_eq!(fs::read(&newest).unwrap(), before, "a log is only read");
}

#[test]
fn compress_reads_nothing_without_consent() {
    let (world, newest) = world_with_sessions();
    // It could not be read if it were tried.
    fs::write(&newest, "not a log").unwrap();
    let mut terminal = Terminal::start(&world, &["compress"]);
    terminal.see("[Y/n]");
    terminal.press("n\r");
    terminal.see("required arguments were not provided");
    assert_eq!(terminal.end(), 2);
}

#[test]
fn compress_without_a_file_is_an_error_where_nobody_can_be_asked() {
    let (world, _) = world_with_sessions();
    let ended = world.run(&["compress"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("required arguments were not provided"), "{}", ended.stderr);
    // At a terminal without any history too.
    let terminal = Terminal::start(&World::new(), &["compress"]);
    terminal.see("required arguments were not provided");
    assert_eq!(terminal.end(), 2);
}
