//! One informative line a call, for the tools of Hermes, Claude Code, Codex and others.

use super::*;

/// The line of a call with its answer.
fn line(tool: &str, arguments: &str, answer: &str) -> String {
    let mut act = Act::read(tool, arguments, 0);
    let answer = CallAnswer {
        family: act.family,
        command: &act.target,
        text: answer,
        is_error: None,
        absent_mark: AbsentMark::SaysNothing,
    };
    act.outcome = Some(ActOutcome::read(&answer, 1));
    act.line()
}

/// The outcome of a call to a tool of `family`.
fn outcome(family: ToolFamily, text: &str, is_error: Option<bool>) -> ActOutcome {
    ActOutcome::read(
        &CallAnswer { family, command: "", text, is_error, absent_mark: AbsentMark::SaysNothing },
        0,
    )
}

#[track_caller]
fn assert_lines(cases: &[(&str, &str, &str, &str)]) {
    let mut wrong = String::new();
    for (tool, arguments, answer, expected) in cases {
        let found = line(tool, arguments, answer);
        if found != *expected {
            wrong.push_str(&format!("\n expected {expected}\n    found {found}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn tools_of_hermes() {
    assert_lines(&[
        (
            "terminal",
            r#"{"command":"cargo test --workspace","timeout":180}"#,
            r#"{"output":"running 3 tests\ntest a ... FAILED\ntest result: FAILED. 2 passed; 1 failed\n","exit_code":101,"error":null}"#,
            "[terminal] ran `cargo test --workspace` -> exit 101, 3 lines",
        ),
        (
            "terminal",
            r#"{"command":"true"}"#,
            r#"{"output":"","exit_code":0,"error":null}"#,
            "[terminal] ran `true` -> exit 0, 0 lines",
        ),
        (
            "read_file",
            r#"{"path":"src/main.rs","offset":101,"limit":100}"#,
            r#"{"content":"   101|fn main() {\n   102|}\n","total_lines":240}"#,
            "[read_file] read src/main.rs (lines 101-200) -> 28 chars",
        ),
        ("read_file", r#"{"path":"a.txt"}"#, "plain\ntext\n", "[read_file] read a.txt -> 11 chars"),
        (
            "write_file",
            r#"{"path":"docs/a.md","content":"one\ntwo\nthree\n"}"#,
            r#"{"bytes_written":14,"dirs_created":false}"#,
            "[write_file] wrote docs/a.md (3 lines)",
        ),
        (
            "patch",
            r#"{"mode":"replace","path":"src/a.rs","old_string":"a\nb","new_string":"c"}"#,
            r#"{"success":true,"diff":"..."}"#,
            "[patch] edited src/a.rs (+1 -2 lines)",
        ),
        (
            "patch",
            r#"{"path":"src/a.rs","old_string":"a","new_string":"b"}"#,
            r#"{"success":false,"error":"old_string was not found"}"#,
            "[patch] edited src/a.rs (+1 -1 lines) -> failed, 24 chars",
        ),
        (
            "patch",
            r#"{"mode":"patch","patch":"*** Begin Patch\n*** Update File: src/a.rs\n@@\n-x\n+y\n+z\n*** Add File: src/b.rs\n+new\n*** End Patch"}"#,
            r#"{"success":true}"#,
            "[patch] edited src/a.rs (+3 -1 lines) and src/b.rs",
        ),
        (
            "search_files",
            r#"{"pattern":"fn parse","path":"src","target":"content"}"#,
            r#"{"matches":[{"path":"src/a.rs","line":3}],"total_count":1}"#,
            r#"[search_files] searched "fn parse" in src -> 1 match"#,
        ),
        (
            "web_search",
            r#"{"query":"rust 1.95 release notes"}"#,
            "three results",
            "[web_search] fetched rust 1.95 release notes -> 13 chars",
        ),
        (
            "web_extract",
            r#"{"urls":["https://a.example/x","https://b.example"]}"#,
            &"x".repeat(12_345),
            "[web_extract] fetched https://a.example/x (+1 more) -> 12,345 chars",
        ),
        (
            "browser_navigate",
            r#"{"url":"https://a.example"}"#,
            "loaded",
            "[browser_navigate] fetched https://a.example -> 6 chars",
        ),
        (
            "delegate_task",
            r#"{"goal":"Review the diff","context":"..."}"#,
            "Looks good.",
            "[delegate_task] delegated Review the diff -> 11 chars",
        ),
        (
            "execute_code",
            r#"{"code":"print(1)\nprint(2)"}"#,
            "1\n2\n",
            "[execute_code] ran `print(1) print(2)` -> unknown, 2 lines",
        ),
        ("todo", r#"{"todos":[{"content":"a"},{"content":"b"}]}"#, "ok", "[todo] updated the plan 2 items"),
        (
            "clarify",
            r#"{"question":"Which one?","choices":["a","b"]}"#,
            "a",
            "[clarify] asked Which one? -> 1 char",
        ),
        (
            "memory",
            r#"{"action":"add","target":"user","content":"likes tea"}"#,
            "saved",
            "[memory] called action=add, target=user -> 5 chars",
        ),
    ]);
}

#[test]
fn tools_of_claude_code() {
    assert_lines(&[
        (
            "Bash",
            r#"{"command":"npm test","description":"Run tests"}"#,
            "Exit code 1\nnpm ERR! missing script: test\n",
            "[Bash] ran `npm test` -> exit 1, 2 lines",
        ),
        ("Bash", r#"{"command":"ls"}"#, "a\nb\nc", "[Bash] ran `ls` -> unknown, 3 lines"),
        (
            "Read",
            r#"{"file_path":"/srv/app/a.rs","offset":10,"limit":50}"#,
            "    10\tfn a() {}\n    11\t\n",
            "[Read] read /srv/app/a.rs (lines 10-59) -> 25 chars",
        ),
        (
            "Write",
            r#"{"file_path":"/srv/app/b.rs","content":"x\n"}"#,
            "File created successfully",
            "[Write] wrote /srv/app/b.rs (1 line)",
        ),
        (
            "Edit",
            r#"{"file_path":"/srv/app/b.rs","old_string":"x","new_string":"y\nz"}"#,
            "The file has been updated.",
            "[Edit] edited /srv/app/b.rs (+2 -1 lines)",
        ),
        (
            "MultiEdit",
            r#"{"file_path":"b.rs","edits":[{"old_string":"a","new_string":"b"},{"old_string":"c","new_string":"d"}]}"#,
            "ok",
            "[MultiEdit] edited b.rs (2 edits)",
        ),
        (
            "NotebookEdit",
            r#"{"notebook_path":"n.ipynb","new_source":"print(1)"}"#,
            "ok",
            "[NotebookEdit] edited n.ipynb (+1 -0 lines)",
        ),
        ("Glob", r#"{"pattern":"**/*.rs"}"#, "a.rs\nb.rs\n", r#"[Glob] searched "**/*.rs" -> 2 lines"#),
        (
            "Grep",
            r#"{"pattern":"fn main","path":"src","output_mode":"content"}"#,
            "src/a.rs:1:fn main\n",
            r#"[Grep] searched "fn main" in src -> 1 line"#,
        ),
        (
            "WebFetch",
            r#"{"url":"https://a.example","prompt":"what?"}"#,
            "answer",
            "[WebFetch] fetched https://a.example -> 6 chars",
        ),
        (
            "Task",
            r#"{"description":"Find callers","prompt":"long","subagent_type":"x"}"#,
            "done",
            "[Task] delegated Find callers -> 4 chars",
        ),
        (
            "TodoWrite",
            r#"{"todos":[{"content":"a","status":"pending"}]}"#,
            "ok",
            "[TodoWrite] updated the plan 1 item",
        ),
        (
            "mcp__github__create_issue",
            r#"{"title":"Bug","body":"It breaks"}"#,
            "#12",
            "[mcp__github__create_issue] called title=Bug, body=It breaks -> 3 chars",
        ),
    ]);
}

#[test]
fn tools_of_codex() {
    assert_lines(&[
        (
            "shell",
            r#"{"command":["bash","-lc","make -j4"],"workdir":"/srv"}"#,
            r#"{"output":"ok\nok\n","metadata":{"exit_code":2,"duration_seconds":1.0}}"#,
            "[shell] ran `make -j4` -> exit 2, 2 lines",
        ),
        (
            "exec_command",
            r#"{"cmd":"rg -n foo"}"#,
            "Chunk ID: x\nProcess exited with code 1\nOutput:\n",
            "[exec_command] ran `rg -n foo` -> exit 1, 3 lines",
        ),
        (
            "shell",
            r#"{"command":["apply_patch","*** Begin Patch\n*** Update File: a.rs\n-x\n+y\n*** End Patch"]}"#,
            "Success",
            "[shell] edited a.rs (+1 -1 lines)",
        ),
        (
            "apply_patch",
            "*** Begin Patch\n*** Add File: a.rs\n+x\n+y\n*** Delete File: b.rs\n*** End Patch",
            "Success",
            "[apply_patch] edited a.rs (+2 -0 lines) and b.rs",
        ),
        (
            "update_plan",
            r#"{"plan":[{"step":"a","status":"completed"},{"step":"b","status":"pending"}]}"#,
            "Plan updated",
            "[update_plan] updated the plan 2 items",
        ),
        ("view_image", r#"{"path":"shot.png"}"#, "attached", "[view_image] read shot.png -> 8 chars"),
    ]);
}

#[test]
fn exit_codes_in_every_form() {
    let code = |text: &str| outcome(ToolFamily::Run, text, None).exit;
    for (text, expected) in [
        (r#"{"output":"x","exit_code":3}"#, Some(3)),
        (r#"{"output":"x","metadata":{"exit_code":4}}"#, Some(4)),
        (r#"{"exit_code": 0}"#, Some(0)),
        (r#"{"output":"x","exit_code":-1}"#, Some(-1)),
        ("Exit code 5\nboom", Some(5)),
        ("Exit code: 6\nWall time: 1 s", Some(6)),
        ("boom\nProcess exited with code 7", Some(7)),
        ("Wall time: 0.3 seconds\nExited with code 11\nOutput:\n", Some(11)),
        ("boom\nexit status 8", Some(8)),
        ("exit_code: 9\n", Some(9)),
        ("make: *** [all] Error 2\n[exit code 10]", Some(10)),
        ("all fine", None),
        ("the exit code of the tool is documented", None),
        ("", None),
    ] {
        assert_eq!(code(text), expected, "{text}");
    }
    // A file that speaks of exit codes has none.
    assert_eq!(outcome(ToolFamily::Read, "Exit code 5", None).exit, None);
}

#[test]
fn errors_are_quoted_as_they_stand() {
    let answer = r#"{"output":"   Compiling a v0.1.0\nerror[E0308]: mismatched types\n   --> src/a.rs:3:5\nwarning: unused\n","exit_code":101}"#;
    let found = outcome(ToolFamily::Run, answer, None);
    assert!(found.failed());
    assert_eq!(found.errors, ["error[E0308]: mismatched types"]);
    let found = outcome(ToolFamily::Edit, "String to replace not found in file.", Some(true));
    assert!(found.failed());
    assert_eq!(found.errors, ["String to replace not found in file."]);
    let failed = outcome(ToolFamily::Edit, r#"{"success":false,"error":"no such file"}"#, None);
    assert!(failed.failed());
    assert_eq!(failed.errors, ["no such file"]);
    let empty = outcome(ToolFamily::Edit, r#"{"success":true,"error":""}"#, None);
    assert!(!empty.failed() && empty.errors.is_empty());
    let refused = outcome(ToolFamily::Run, "The tool use was rejected by the user.", Some(true));
    assert!(refused.not_run && refused.errors.is_empty());
}

#[test]
fn a_run_that_went_well_has_no_errors_and_a_verdict() {
    let found = outcome(
        ToolFamily::Run,
        r#"{"output":"test error_paths ... ok\ntest result: ok. 12 passed; 0 failed; 0 ignored\n","exit_code":0}"#,
        None,
    );
    assert!(!found.failed() && found.errors.is_empty());
    assert_eq!(found.verdict.as_deref(), Some("test result: ok. 12 passed; 0 failed; 0 ignored"));
}

#[test]
fn odd_calls_are_told_without_a_panic() {
    assert_lines(&[
        ("terminal", "", "x", "[terminal] ran -> unknown, 1 line"),
        ("terminal", "null", "", "[terminal] ran `null` -> unknown, 0 lines"),
        ("read_file", "[]", "x", "[read_file] read -> 1 char"),
        ("", "{}", "x", "[] called -> 1 char"),
        ("terminal", r#"{"command":7}"#, "x", "[terminal] ran -> unknown, 1 line"),
    ]);
    let long = format!(r#"{{"command":"echo {}"}}"#, "word ".repeat(200));
    let told = line("terminal", &long, "x");
    assert!(told.chars().count() < 200 && told.contains('…'), "{told}");
    let spread = line("terminal", "{\"command\":\"a\\n\\n   b\\tc\"}", "x");
    assert_eq!(spread, "[terminal] ran `a b c` -> unknown, 1 line");
}

#[test]
fn names_of_tools_are_read_whatever_their_spelling() {
    for (names, family) in [
        (["read_file", "ReadFile", "read-file", "mcp__fs__read_file", "READ"], ToolFamily::Read),
        (["terminal", "Bash", "exec_command", "local_shell_call", "run_terminal_cmd"], ToolFamily::Run),
        (["patch", "MultiEdit", "apply_patch", "str_replace_editor", "edit_file"], ToolFamily::Edit),
        (["Grep", "search_files", "list_dir", "codebase_search", "Glob"], ToolFamily::Search),
        (["web_search", "WebFetch", "browser_click", "fetch", "mcp__web__fetch_url"], ToolFamily::Web),
        (["memory", "x", "", "send_mail", "🙂"], ToolFamily::Other),
    ] {
        for name in names {
            assert_eq!(ToolFamily::of(name), family, "{name}");
        }
    }
}

#[test]
fn numbers_are_grouped_by_three() {
    let all = [0, 7, 999, 1_000, 12_345, 1_234_567].map(thousands);
    assert_eq!(all, ["0", "7", "999", "1,000", "12,345", "1,234,567"]);
}

#[test]
fn what_was_refused_or_failed_is_not_done() {
    let refused = "Error: The person did not allow this, and nothing was done. Find another way, or ask them what they want.";
    for family in [ToolFamily::Write, ToolFamily::Run, ToolFamily::Edit] {
        let found = outcome(family, refused, None);
        assert!(found.not_run, "{family:?}");
        let failed = outcome(family, "Error: old_text is not in main.py", None);
        assert!(failed.failed() && !failed.not_run, "{family:?}");
    }
    let read = format!("Error: the first line of a log\n{}", "more\n".repeat(2_000));
    assert!(!outcome(ToolFamily::Read, &read, None).failed(), "a file that was read");
}
