//! `throughline setup` and `throughline service`, in a home of their own.

use std::path::Path;

use crate::harness::{Ended, World};
use crate::terminal::Terminal;

const CLAUDE: &str = "{\n  \"theme\": \"dark\", \"env\": {\n    \"X\": \"1\"\n  }\n}\n";
const CODEX: &str = "# mine\nmodel = \"gpt-5.5\"   # a note\n\n[tui]\nanimations = false\n";
const HERMES: &str = "# mine\nmodel:\n  default: worker # a note\n";

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// A program in the user's folder of programs that notes how it is called.
fn program(world: &World, name: &str) {
    let path = world.user().join("bin").join(name);
    write(&path, &format!("#!/bin/sh\necho \"{name} $*\" >> '{}'\n", world.user().join("calls").display()));
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn run(world: &World, arguments: &[&str]) -> Ended {
    let path = format!("{}:/usr/bin:/bin", world.user().join("bin").display());
    world.run_with(arguments, b"", &[("PATH", &path), ("SHELL", "/bin/bash")])
}

#[test]
fn setup_shows_what_it_changes_and_undo_gives_every_byte_back() {
    let world = World::new();
    let files = [
        ("claude-code", ".claude/settings.json", CLAUDE, "\"ANTHROPIC_BASE_URL\": \"http://127.0.0.1:8790\""),
        ("codex", ".codex/config.toml", CODEX, "openai_base_url = \"http://127.0.0.1:8790/v1\""),
        ("hermes", ".hermes/config.yaml", HERMES, "  base_url: http://127.0.0.1:8790/v1"),
    ];
    for (name, file, before, line) in files {
        let path = world.user().join(file);
        write(&path, before);
        let shown = run(&world, &["setup", name, "--dry-run"]);
        assert_eq!(shown.code, Some(0), "{}", shown.stderr);
        assert!(
            shown.text().lines().any(|shown| shown.starts_with('+') && shown.contains(line)),
            "{}",
            shown.text()
        );
        assert_eq!(read(&path), before);
        let refused = run(&world, &["setup", name]);
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        assert_eq!(read(&path), before);
        let done = run(&world, &["setup", name, "--yes"]);
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        let after = read(&path);
        assert!(after.contains(line), "{after}");
        let again = run(&world, &["setup", name, "--yes"]);
        assert!(again.text().contains("is set up already"), "{}", again.text());
        assert_eq!(read(&path), after);
        let back = run(&world, &["setup", name, "--undo", "--yes"]);
        assert_eq!(back.code, Some(0), "{}", back.stderr);
        assert_eq!(read(&path), before);
        assert!(run(&world, &["setup", name, "--undo", "--yes"]).text().contains("was not set up"));
    }
    // A file that was not there is gone again.
    assert!(!world.user().join(".claude.json").exists());
    assert_eq!(std::fs::read_dir(world.home().join("setup")).unwrap().count(), 0);
}

/// Two that compact one conversation pay for two summaries, and the second never sees what the first removed.
#[test]
fn hermes_is_told_to_leave_compaction_to_the_gateway() {
    let world = World::new();
    let shown = run(&world, &["serve", "--show", "hermes"]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    let (text, off) = (shown.text(), "compression:\n  enabled: false\n");
    assert!(text.contains("turn Hermes' own compaction off"), "{text}");
    assert!(text.contains(off), "{text}");
    let path = world.user().join(".hermes/config.yaml");
    write(&path, HERMES);
    let preview = run(&world, &["setup", "hermes", "--dry-run"]).text();
    assert!(preview.contains("+compression:\n+  enabled: false\n"), "{preview}");
    run(&world, &["setup", "hermes", "--yes"]);
    assert!(read(&path).contains(off), "{}", read(&path));
    run(&world, &["setup", "hermes", "--undo", "--yes"]);
    assert_eq!(read(&path), HERMES);
}

#[test]
fn undo_keeps_what_the_client_wrote_since() {
    let world = World::new();
    let path = world.user().join(".claude/settings.json");
    write(&path, CLAUDE);
    run(&world, &["setup", "claude-code", "--yes"]);
    let mut now: serde_json::Value = serde_json::from_str(&read(&path)).unwrap();
    now["theme"] = "light".into();
    now["env"]["Y"] = "2".into();
    write(&path, &serde_json::to_string_pretty(&now).unwrap());
    let back = run(&world, &["setup", "claude-code", "--undo", "--yes"]);
    assert_eq!(back.code, Some(0), "{}", back.stderr);
    now["env"].as_object_mut().unwrap().remove("ANTHROPIC_BASE_URL");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&read(&path)).unwrap(), now);
}

#[test]
fn another_address_of_the_gateway_is_written_over_ours() {
    let world = World::new();
    let path = world.user().join(".claude/settings.json");
    write(&path, CLAUDE);
    run(&world, &["setup", "claude-code", "--yes"]);
    let done = run(&world, &["--set", "gateway.bind=127.0.0.1:9999", "setup", "claude-code", "--yes"]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(read(&path).contains("127.0.0.1:9999") && !read(&path).contains("8790"), "{}", read(&path));
    run(&world, &["setup", "claude-code", "--undo", "--yes"]);
    assert_eq!(read(&path), CLAUDE);
}

#[test]
fn values_of_others_are_replaced_only_when_that_is_wanted() {
    let world = World::new();
    let path = world.user().join(".claude/settings.json");
    let before = CLAUDE.replace("\"X\": \"1\"", "\"ANTHROPIC_BASE_URL\": \"http://proxy:1\"");
    write(&path, &before);
    let refused = run(&world, &["setup", "claude-code", "--yes"]);
    assert_eq!(refused.code, Some(4), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("http://proxy:1") && refused.stderr.contains("gateway.upstreams"),
        "{}",
        refused.stderr
    );
    assert_eq!(read(&path), before);
    let done = run(&world, &["setup", "claude-code", "--yes", "--replace"]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(!read(&path).contains("proxy"));
    run(&world, &["setup", "claude-code", "--undo", "--yes"]);
    assert_eq!(read(&path), before);
}

#[test]
fn settings_that_cannot_be_edited_stay_as_they_are() {
    for (text, words) in [("{\"env\": ", "is invalid"), ("{\"env\": []}", "cannot be edited")] {
        let world = World::new();
        let path = world.user().join(".claude/settings.json");
        write(&path, text);
        let refused = run(&world, &["setup", "claude-code", "--yes"]);
        assert_eq!(refused.code, Some(3), "{}", refused.stderr);
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
        assert_eq!(read(&path), text);
        assert!(!world.home().join("setup").exists());
    }
}

/// The second file of a client cannot be written: the first is put back.
#[test]
fn nothing_is_half_written() {
    let world = World::new();
    let path = world.user().join(".claude/settings.json");
    write(&path, CLAUDE);
    let other = world.user().join(".claude.json");
    write(&other, "{}");
    let mut rights = std::fs::metadata(&other).unwrap().permissions();
    rights.set_readonly(true);
    std::fs::set_permissions(&other, rights).unwrap();
    let refused = run(&world, &["setup", "claude-code", "--yes"]);
    assert_eq!(refused.code, Some(5), "{}", refused.stderr);
    assert!(refused.stderr.contains("nothing was changed"), "{}", refused.stderr);
    assert_eq!((read(&path).as_str(), read(&other).as_str()), (CLAUDE, "{}"));
    assert!(run(&world, &["setup", "claude-code", "--undo", "--yes"]).text().contains("was not set up"));
}

#[test]
fn setup_without_names_says_what_is_here_and_undo_takes_all_back() {
    let world = World::new();
    program(&world, "codex");
    write(&world.user().join(".codex/config.toml"), CODEX);
    let refused = run(&world, &["setup"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("codex, completion"), "{}", refused.stderr);
    run(&world, &["setup", "codex", "completion", "--yes"]);
    let script = world.user().join(".local/share/bash-completion/completions/throughline");
    assert!(read(&script).contains("_throughline"));
    let back = run(&world, &["setup", "--undo", "--yes"]);
    assert_eq!(back.code, Some(0), "{}", back.stderr);
    assert!(!script.exists());
    assert_eq!(read(&world.user().join(".codex/config.toml")), CODEX);
}

#[test]
fn setup_asks_at_a_terminal() {
    let world = World::new();
    let path = world.user().join(".claude/settings.json");
    write(&path, CLAUDE);
    let mut terminal = Terminal::start(&world, &["setup", "claude-code", "--no-mcp"]);
    terminal.see("Make these changes?");
    terminal.press("n\r");
    assert_eq!(terminal.end(), 0);
    assert_eq!(read(&path), CLAUDE);
    let mut terminal = Terminal::start(&world, &["setup", "claude-code", "--no-mcp"]);
    terminal.see("Make these changes?");
    terminal.press("y\r");
    terminal.see("is set up");
    assert_eq!(terminal.end(), 0);
    assert!(read(&path).contains("ANTHROPIC_BASE_URL"));
}

#[test]
fn service_is_installed_by_systemd_and_removed() {
    let world = World::new();
    for name in ["systemctl", "systemd-analyze", "journalctl"] {
        program(&world, name);
    }
    let unit = world.user().join(".config/systemd/user/throughline.service");
    let shown = run(&world, &["service", "install", "--dry-run"]);
    assert!(shown.text().contains("ExecStart=") && !unit.exists(), "{}", shown.text());
    assert!(run(&world, &["service", "status"]).text().contains("not installed"));
    let done = run(&world, &["service", "install"]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let text = read(&unit);
    assert!(text.contains(&format!("Environment=\"THROUGHLINE_HOME={}\"", world.home().display())), "{text}");
    assert!(run(&world, &["service", "status"]).text().contains("The service runs"));
    assert_eq!(run(&world, &["service", "logs", "-n", "7"]).code, Some(0));
    let removed = run(&world, &["service", "uninstall"]);
    assert_eq!(removed.code, Some(0), "{}", removed.stderr);
    assert!(!unit.exists());
    let calls = read(&world.user().join("calls"));
    for call in [
        "systemctl --user enable throughline.service",
        "systemctl --user restart throughline.service",
        "journalctl --no-pager --user -u throughline.service -n 7",
        "systemctl --user disable --now throughline.service",
    ] {
        assert!(calls.lines().any(|line| line == call), "{call}\n{calls}");
    }
    // A unit of somebody else stays.
    write(&unit, "[Service]\n");
    assert_eq!(run(&world, &["service", "install"]).code, Some(5));
    assert_eq!(run(&world, &["service", "uninstall"]).code, Some(5));
    assert_eq!(read(&unit), "[Service]\n");
}

#[test]
fn unit_passes_systemd_analyze() {
    let analyze = Path::new("/usr/bin/systemd-analyze");
    if !analyze.exists() {
        return;
    }
    let world = World::new();
    program(&world, "systemctl");
    run(&world, &["service", "install"]);
    let unit = world.user().join(".config/systemd/user/throughline.service");
    let output = std::process::Command::new(analyze).args(["--user", "verify"]).arg(&unit).output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(!words.lines().any(|line| line.contains("throughline.service")), "{words}");
}

#[test]
fn manual_pages_are_of_all_commands() {
    let world = World::new();
    let ended = world.run(&["man", "pages"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let names: Vec<_> =
        std::fs::read_dir(world.path("pages")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    for name in ["throughline.1", "throughline-run.1", "throughline-service-install.1"] {
        assert!(names.iter().any(|found| found == name), "{names:?}");
    }
    assert!(!names.iter().any(|found| found == "throughline-man.1"));
    let page = String::from_utf8(world.read("pages/throughline-run.1")).unwrap();
    assert!(page.contains("or\\-direct"), "{page}");
}
