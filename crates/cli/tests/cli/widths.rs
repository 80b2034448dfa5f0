//! Every command at every width: nothing panics, the exit code is the same, and tables and bars keep to the terminal.
//!
//! The commands are those that `--help` lists, so a new one without an example here fails the test.

use std::collections::BTreeMap;
use std::path::Path;

use crate::chat::{Served, served, world_of};
use crate::harness::World;
use crate::samples::{claude_log, long_chat};
use crate::terminal::Terminal;
use throughline_testkit::{Reply, Script};

const WIDTHS: [u16; 8] = [10, 20, 40, 46, 60, 80, 100, 200];
const USUAL_WIDTH: u16 = 80;

/// How each command is called, in this order. Those that write come last, and what they change is a copy.
const EXAMPLES: [(&str, &[&str]); 66] = [
    ("", &["--version"]),
    ("run", &["run", "no-such-program"]),
    ("chat", &["chat", "-q", "And now?"]),
    ("inspect", &["inspect", "long.json", "--context-length", "32k"]),
    ("compress", &["compress", "long.json", "--preview", "--context-length", "16k"]),
    ("compress", &["compress", "long.json", "--force", "--context-length", "16k"]),
    ("replay", &["replay", "claude.jsonl"]),
    ("import", &["import", "other.jsonl"]),
    ("sessions", &["sessions"]),
    ("sessions list", &["sessions", "list", "--all"]),
    ("sessions show", &["sessions", "show", "last"]),
    ("sessions show", &["sessions", "show", "last", "--view", "model"]),
    ("sessions tree", &["sessions", "tree", "last"]),
    ("sessions export", &["sessions", "export", "last", "--out", "exported.json"]),
    ("search", &["search", "parser"]),
    ("vectors", &["vectors"]),
    ("lcm", &["lcm"]),
    ("lcm tree", &["lcm", "tree", "last"]),
    ("lcm show", &["lcm", "show", "n1"]),
    ("usage", &["usage"]),
    ("usage", &["usage", "last"]),
    ("savings", &["savings"]),
    ("savings", &["savings", "last"]),
    ("insights", &["insights", "--days", "365"]),
    ("insights", &["insights", "--days", "3650"]),
    ("doctor", &["doctor"]),
    ("models", &["models", "claude-sonnet-4-5", "--offline"]),
    ("models", &["models", "--list"]),
    ("serve", &["serve", "--show", "claude-code"]),
    ("open", &["open", "nowhere"]),
    ("report", &["report", "last", "--out", "report.html"]),
    ("state", &["state", "last"]),
    ("status", &["status"]),
    ("setup", &["setup", "claude-code", "--dry-run"]),
    ("service", &["service"]),
    ("service install", &["service", "install", "--dry-run"]),
    ("service status", &["service", "status"]),
    ("service logs", &["service", "logs"]),
    ("service uninstall", &["service", "uninstall"]),
    ("token", &["token"]),
    ("token new", &["token", "new", "laptop"]),
    ("token list", &["token", "list"]),
    ("token revoke", &["token", "revoke", "laptop"]),
    ("token off", &["token", "off"]),
    ("plugins", &["plugins"]),
    ("plugins check", &["plugins", "check", "nowhere"]),
    ("plugins schema", &["plugins", "schema"]),
    ("engine", &["engine", "--stdio"]),
    ("mcp", &["mcp", "--show"]),
    ("config", &["config"]),
    ("config show", &["config", "show"]),
    ("config get", &["config", "get", "compression"]),
    ("config check", &["config", "check"]),
    ("config path", &["config", "path"]),
    ("config defaults", &["config", "defaults"]),
    ("config set", &["config", "set", "compression.threshold", "0.6"]),
    ("config unset", &["config", "unset", "compression.threshold"]),
    ("completions", &["completions", "bash"]),
    ("backup", &["backup", "backup.tar"]),
    ("store", &["store"]),
    ("store status", &["store", "status"]),
    ("store copy", &["store", "copy", "--to", "elsewhere.db"]),
    ("store gc", &["store", "gc", "--dry-run"]),
    ("store log", &["store", "log"]),
    ("store expire", &["--set", "store.retention.days=1", "store", "expire", "--dry-run"]),
    ("store export-owner", &["store", "export-owner", "local", "--to", "nowhere/export"]),
];

/// More of them, which change the record.
const CHANGES: [(&str, &[&str]); 5] = [
    ("sessions rename", &["sessions", "rename", "last", "A conversation about rivers and the sea"]),
    ("sessions undo", &["sessions", "undo", "last"]),
    ("sessions redo", &["sessions", "redo", "last"]),
    ("sessions delete", &["sessions", "delete", "last", "--yes"]),
    ("store erase-owner", &["store", "erase-owner", "local", "--yes"]),
];

/// What these print is a document as it stands, not a page that is laid out.
const AS_IT_STANDS: [&str; 10] = [
    "",
    "completions",
    "config defaults",
    "config show",
    "config get",
    "plugins schema",
    "chat",
    "setup",
    "service install",
    "service logs",
];

fn examples() -> impl Iterator<Item = &'static (&'static str, &'static [&'static str])> {
    EXAMPLES.iter().chain(&CHANGES)
}

/// Every command that `--help` lists below this one, itself included.
fn commands(world: &World, above: &[String], found: &mut Vec<String>) {
    let mut arguments: Vec<&str> = above.iter().map(String::as_str).collect();
    arguments.push("--help");
    let help = world.run(&arguments).text();
    found.push(above.join(" "));
    let listed = help.split("\nCommands:\n").nth(1).unwrap_or_default();
    // A command stands two columns in, what continues its description further.
    let lines = listed.lines().take_while(|line| !line.is_empty());
    let names =
        lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next().filter(|name| !name.is_empty()));
    for name in names {
        let below: Vec<String> = above.iter().cloned().chain([name.to_owned()]).collect();
        commands(world, &below, found);
    }
}

/// A world with a little of everything in its record.
fn furnished() -> (Served, World) {
    let served = served(Script::answering(|_| Reply::text("It goes on. ".repeat(40))));
    let world = world_of(&served);
    world.write("long.json", long_chat(60).to_string());
    world.write("claude.jsonl", claude_log("5e551011", "Port the parser", 40));
    world.write("other.jsonl", claude_log("5e551012", "", 6));
    assert_eq!(world.run(&["import", "claude.jsonl"]).code, Some(0));
    assert_eq!(world.run(&["chat", "-q", "Where does the river go?"]).code, Some(0));
    (served, world)
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir_all(&to).unwrap();
            // As `fs::copy` does it for files: a folder of artifacts that others may read is a finding of `doctor`.
            std::fs::set_permissions(&to, entry.metadata().unwrap().permissions()).unwrap();
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// The same world once more.
fn copied(world: &World) -> World {
    let copied = World::new();
    copy(world.home(), copied.home());
    copy(world.user(), copied.user());
    copy(&world.path(""), &copied.path(""));
    copied
}

/// Every example at a width: how it ended, by its arguments. Lines that are too long are added to `too_long`.
fn run_all(world: &World, width: u16, too_long: &mut Vec<String>) -> BTreeMap<String, u32> {
    let world = copied(world);
    let mut codes = BTreeMap::new();
    for (command, arguments) in examples() {
        let name = arguments.join(" ");
        let mut terminal = Terminal::start_sized(&world, arguments, &[("TZ", "UTC")], (50, width));
        if *command == "engine" {
            // Nobody asks it anything.
            terminal.press("\x04");
        }
        let (code, written) = terminal.ended();
        assert!(!written.contains("panicked at"), "{name} at {width}:\n{written}");
        assert!(code < 100, "{name} at {width} ended with {code}:\n{written}");
        codes.insert(name.clone(), code);
        if AS_IT_STANDS.contains(command) || code == 2 {
            continue;
        }
        // A line that shows how far something is goes back to its beginning and is written over.
        for line in written.split(['\n', '\r']) {
            let line = anstream::adapter::strip_str(line).to_string();
            let line = line.trim_end();
            // One word cannot be broken: a path or an id has to be copied.
            let is_one_word = !line.trim().contains(' ');
            if unicode_width::UnicodeWidthStr::width(line) > width.into() && !is_one_word {
                too_long.push(format!("{name} at {width}: {line}"));
            }
        }
    }
    codes
}

#[test]
fn every_command_fits_every_width_and_none_panics() {
    let (_served, world) = furnished();
    let mut listed = Vec::new();
    commands(&world, &[], &mut listed);
    for command in &listed {
        assert!(examples().any(|(known, _)| known == command), "`throughline {command}` has no example");
    }
    for (known, _) in examples() {
        assert!(listed.iter().any(|command| command == known), "there is no `throughline {known}`");
    }
    let mut too_long = Vec::new();
    let usual = run_all(&world, USUAL_WIDTH, &mut too_long);
    assert_eq!(usual["doctor"], 0, "the copied record is well");
    for (command, arguments) in examples() {
        // A group of commands without one of them is not understood.
        let is_group = listed.iter().any(|below| below.starts_with(&format!("{command} ")));
        let code = usual[&arguments.join(" ")];
        assert!(code != 2 || is_group && arguments.len() == 1, "the example {arguments:?} makes no sense");
    }
    for width in WIDTHS.into_iter().filter(|width| *width != USUAL_WIDTH) {
        assert_eq!(run_all(&world, width, &mut too_long), usual, "at {width} columns");
    }
    assert!(too_long.is_empty(), "{}", too_long.join("\n"));
}
