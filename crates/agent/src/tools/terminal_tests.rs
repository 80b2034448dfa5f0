//! How commands end.

use super::*;

fn terminal() -> (tempfile::TempDir, Terminal) {
    let folder = tempfile::tempdir().unwrap();
    let limits = TerminalLimits { output_bytes: 300, background_bytes: 300, ..TerminalLimits::default() };
    let tool = Terminal::new(Workspace::new(folder.path()).unwrap(), limits);
    (folder, tool)
}

async fn call(tool: &Terminal, arguments: Value) -> Result<String, ToolError> {
    tool.run(&arguments, &CancellationToken::new()).await.map(|output| output.text)
}

#[tokio::test]
async fn output_and_exit_code_come_back() {
    let (_folder, tool) = terminal();
    assert_eq!(
        call(&tool, json!({"command": "echo a; echo b >&2; exit 3"})).await.unwrap(),
        "a\nb\n[exit code 3]"
    );
    assert_eq!(call(&tool, json!({"command": "true"})).await.unwrap(), "[exit code 0]");
    let missing = call(&tool, json!({"command": "pwd", "folder": "nowhere"})).await.unwrap_err();
    assert!(missing.to_string().contains("no folder"), "{missing}");
    let none = call(&tool, json!({"command": "  "})).await.unwrap_err();
    assert!(none.to_string().contains("`command` is missing"), "{none}");
}

#[tokio::test]
async fn a_flood_is_kept_within_bounds() {
    let (_folder, tool) = terminal();
    let text =
        call(&tool, json!({"command": "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done"}))
            .await
            .unwrap();
    assert!(
        text.starts_with("line 0\n") && text.contains("line 1999\n") && text.contains("bytes left out"),
        "{text}"
    );
    assert!(text.len() < 500);
    let size: usize = (0..2_000).map(|line| format!("line {line}\n").len()).sum();
    let said = format!(
        "[the output had {size} bytes, too many to be kept: these are its first 100 and its last 200]"
    );
    assert!(text.ends_with(&format!("{said}\n[exit code 0]")), "{text}");
}

/// Whether this process ignores interrupts: a shell's background job does, and its commands inherit that.
fn interrupts_are_ignored() -> bool {
    const INTERRUPT: u64 = 1 << 1;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() & INTERRUPT != 0)
}

#[tokio::test]
async fn failed_commands_are_reported_to_the_person() {
    let (_folder, tool) = terminal();
    for (command, trouble) in [
        ("true", None),
        ("exit 3", Some("exit code 3")),
        ("kill -TERM $$", Some("ended by signal 15")),
        ("kill -INT $$", Some("ended by Ctrl-C")),
    ] {
        if command.contains("INT") && interrupts_are_ignored() {
            continue;
        }
        let arguments = json!({ "command": command });
        let output = tool.run(&arguments, &CancellationToken::new()).await.unwrap();
        assert_eq!(output.trouble.as_deref(), trouble, "{command}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_command_does_not_outlive_the_program_however_that_ends() {
    let (folder, _tool) = terminal();
    let mut running = RunningCommand::start("sleep 300 & wait", &folder.path().to_owned(), 300).unwrap();
    // This is what the kernel does when the program is killed.
    running.lifeline = None;
    assert_eq!(running.finish().await, End::Signal("15".to_owned()));
}

#[cfg(unix)]
#[tokio::test]
async fn what_a_command_leaves_running_goes_on() {
    let (folder, tool) = terminal();
    let command = "(while [ ! -e go.txt ]; do sleep 0.05; done; echo > gone.txt) > /dev/null & echo left";
    let text = call(&tool, json!({ "command": command })).await.unwrap();
    assert_eq!(text, "left\n[exit code 0]");
    std::fs::write(folder.path().join("go.txt"), "").unwrap();
    until_there(&folder.path().join("gone.txt")).await;
}

#[test]
fn files_that_would_be_lost_are_seen() {
    let (folder, tool) = terminal();
    std::fs::write(folder.path().join("main.py"), "print(1)\n").unwrap();
    std::fs::write(folder.path().join("empty.py"), "").unwrap();
    let danger = |command: &str| match &tool.propose(&json!({ "command": command })).unwrap().effects[..] {
        [Effect::Runs { dangers, .. }] => dangers.first().copied(),
        other => panic!("{other:?}"),
    };
    assert_eq!(danger("echo x > main.py"), Some(crate::danger::Danger::Replaces));
    for harmless in ["echo x > empty.py", "echo x > new.py", "echo x >> main.py"] {
        assert_eq!(danger(harmless), None, "{harmless}");
    }
}

#[tokio::test]
async fn a_command_without_end_is_stopped_with_all_it_started() {
    let (folder, tool) = terminal();
    let arguments =
        json!({"command": "sleep 300 & echo started; sleep 300; touch after", "timeout_seconds": 1});
    let told = call(&tool, arguments).await.unwrap_err().to_string();
    assert!(told.starts_with("started\n[stopped after 1 s"), "{told}");
    assert!(!folder.path().join("after").exists());
}

#[tokio::test]
async fn a_person_can_stop_it() {
    let (_folder, tool) = terminal();
    let cancel = CancellationToken::new();
    let arguments = json!({"command": "sleep 300"});
    let running = tool.run(&arguments, &cancel);
    let stopping = async {
        tokio::task::yield_now().await;
        cancel.cancel();
    };
    let (ended, ()) = tokio::join!(running, stopping);
    assert_eq!(ended, Err(ToolError::Stopped));
}

#[tokio::test]
async fn the_background_can_be_looked_at_and_stopped() {
    let (_folder, tool) = terminal();
    let begun = call(&tool, json!({"command": "echo up; sleep 300", "background": true})).await.unwrap();
    assert!(begun.starts_with("process 1 runs"), "{begun}");
    let ended = call(&tool, json!({"process": 1, "stop": true})).await.unwrap();
    assert!(ended.contains("$ echo up") && ended.ends_with("[stopped]"), "{ended}");
    assert!(call(&tool, json!({"process": 7})).await.unwrap_err().to_string().contains("no process 7"));
}

/// Waits for a file, up to a limit.
#[cfg(unix)]
async fn until_there(path: &std::path::Path) {
    for _ in 0..3_000 {
        if path.exists() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{} never came", path.display());
}

#[cfg(unix)]
#[tokio::test]
async fn leaving_stops_background_commands() {
    let (folder, tool) = terminal();
    let command = "trap 'echo > left.txt; exit' TERM; echo > up.txt; while :; do sleep 0.05; done";
    call(&tool, json!({"command": command, "background": true})).await.unwrap();
    until_there(&folder.path().join("up.txt")).await;
    drop(tool);
    until_there(&folder.path().join("left.txt")).await;
}

#[cfg(unix)]
#[tokio::test]
async fn caller_that_stops_waiting_leaves_nothing_running() {
    let (folder, tool) = terminal();
    let (up, stop) = (folder.path().join("up.txt"), CancellationToken::new());
    // Neither the command nor its child reacts to SIGTERM.
    let arguments = json!({"command": "trap '' TERM; sleep 300 & echo $! > up.tmp; mv up.tmp up.txt; wait"});
    tokio::select! {
        ended = tool.run(&arguments, &stop) => panic!("it does not end: {ended:?}"),
        () = until_there(&up) => {}
    }
    let started: i32 = std::fs::read_to_string(&up).unwrap().trim().parse().unwrap();
    for _ in 0..3_000 {
        let state = std::fs::read_to_string(format!("/proc/{started}/stat")).unwrap_or_default();
        if state.is_empty() || state.contains(") Z ") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("process {started} still runs");
}

#[test]
fn proposal_shows_the_command_before_it_runs() {
    let (_folder, tool) = terminal();
    let proposal = tool.propose(&json!({"command": "rm -rf x\necho done"})).unwrap();
    assert_eq!(proposal.title, "run rm -rf x ...");
    assert!(matches!(&proposal.effects[..], [Effect::Runs { dangers, .. }] if !dangers.is_empty()));
    assert!(tool.propose(&json!({"process": 1})).unwrap().effects.is_empty());
}
