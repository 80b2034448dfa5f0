//! The name alone, help, version, and command lines that make no sense.

use crate::harness::World;

#[test]
fn help_is_complete() {
    for (name, arguments) in [
        ("help", vec!["--help"]),
        ("help_compress", vec!["compress", "--help"]),
        ("help_inspect", vec!["inspect", "--help"]),
        ("help_config", vec!["config", "--help"]),
        ("help_import", vec!["import", "--help"]),
        ("help_sessions", vec!["sessions", "--help"]),
        ("help_sessions_show", vec!["sessions", "show", "--help"]),
        ("help_sessions_export", vec!["sessions", "export", "--help"]),
        ("help_search", vec!["search", "--help"]),
        ("help_usage", vec!["usage", "--help"]),
        ("help_insights", vec!["insights", "--help"]),
        ("help_doctor", vec!["doctor", "--help"]),
        ("help_backup", vec!["backup", "--help"]),
    ] {
        insta::assert_snapshot!(name, World::new().seen(&arguments));
    }
}

#[test]
fn the_version_is_one_line() {
    let ended = World::new().run(&["--version"]);
    assert_eq!(ended.text(), concat!("throughline ", env!("CARGO_PKG_VERSION"), "\n"));
    assert_eq!(ended.code, Some(0));
}

#[test]
fn senseless_command_lines_exit_with_2() {
    let world = World::new();
    for arguments in [
        &["compres", "x.json"][..],
        &["inspect"],
        &["inspect", "x.json", "--context-length", "0"],
        &["inspect", "x.json", "--dialect", "morse"],
        &["compress", "x.json", "--preview", "--out", "y.json"],
        &["compress", "x.json", "--no-such-flag"],
    ] {
        let ended = world.run(arguments);
        assert_eq!(ended.code, Some(2), "{arguments:?}");
        assert!(ended.stdout.is_empty(), "{arguments:?}");
    }
    insta::assert_snapshot!(
        "a_window_of_no_tokens",
        world.seen(&["compress", "x.json", "--context-length", "0"])
    );
    insta::assert_snapshot!("a_mistyped_command", world.seen(&["compres", "x.json"]));
}

#[test]
fn completions_name_every_command() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = World::new().run(&["completions", shell]).text();
        for command in commands() {
            assert!(script.contains(&command), "{shell} does not know {command}");
        }
    }
}

/// Every command, as the help lists them.
fn commands() -> Vec<String> {
    let help = World::new().run(&["--help"]).text();
    let list =
        help.split("Commands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap().to_owned();
    let commands: Vec<String> = list
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .collect();
    assert!(commands.len() >= 11, "{commands:?}");
    commands
}

#[test]
fn guide_names_every_command() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
    let pages = std::fs::read_dir(folder).unwrap().flatten();
    let guide: String = pages.map(|page| std::fs::read_to_string(page.path()).unwrap()).collect();
    for command in commands() {
        assert!(guide.contains(&format!("throughline {command}")), "no page of docs/guide names {command}");
    }
}

#[test]
fn a_broken_pipe_is_not_an_error() {
    use std::process::{Command, Stdio};
    let home = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_throughline"))
        .args(["config", "defaults"])
        .env_clear()
        .env("THROUGHLINE_HOME", home.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The reader goes away before anything was read.
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty());
}
