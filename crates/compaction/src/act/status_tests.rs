//! Each format in which the end of a command is reported, and the property that a reported failure is never ok.

use proptest::prelude::*;

use super::CallStatus::{Failed, Ok, Unknown};
use super::*;
use crate::act::status_readers::{Reader, may_count, read_counts};

fn read(command: &str, text: &str, is_error: Option<bool>) -> StatusReading {
    let printed = crate::act::envelope::unwrapped(text);
    let answer =
        CallAnswer { family: ToolFamily::Run, command, text, is_error, absent_mark: AbsentMark::SaysNothing };
    read_status(&answer, printed.as_deref().unwrap_or(text))
}

#[track_caller]
fn assert_table(command: &str, cases: &[(&str, CallStatus, Option<i32>)]) {
    let mut wrong = String::new();
    for (text, status, exit) in cases {
        let found = read(command, text, None);
        if (found.status, found.exit) != (*status, *exit) {
            wrong.push_str(&format!("\n{text:?}\n  expected {status:?} {exit:?}, found {found:?}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn exit_statements_of_agents_are_read() {
    assert_table(
        "./run",
        &[
            // The spellings of terminals and agents.
            ("boom\nexit code: 1", Failed, Some(1)),
            ("boom\nexit_code=3", Failed, Some(3)),
            ("<returncode>1</returncode>\n<output>\nboom\n</output>", Failed, Some(1)),
            ("<returncode>0</returncode>\n<output>\nfine\n</output>", Ok, Some(0)),
            ("Exit code 1\nboom", Failed, Some(1)),
            ("Exit Code: 2\nboom", Failed, Some(2)),
            ("Exit code: 0\nWall time: 0.1 seconds\nOutput:\nfine\n", Ok, Some(0)),
            (
                "Chunk ID: a1\nWall time: 0.1 seconds\nProcess exited with code 7\nOutput:\nboom",
                Failed,
                Some(7),
            ),
            ("fine\n[exit code 0]", Ok, Some(0)),
            ("boom\n[ended by signal 9]", Failed, None),
            ("fine\n[The command completed with exit code 0.]", Ok, Some(0)),
            ("boom\n[The command completed with exit code 1.]", Failed, Some(1)),
            ("boom\nexit status 8", Failed, Some(8)),
            ("boom\nExit status: 4", Failed, Some(4)),
            ("boom\nreturn code: 5", Failed, Some(5)),
            ("boom\nReturn_Code = 6", Failed, Some(6)),
            ("boom\nrc=2", Failed, Some(2)),
            ("boom\n[exit 3]", Failed, Some(3)),
            ("boom\n(exit: 3)", Failed, Some(3)),
            ("exit_code=3 duration=0.2s\nboom", Failed, Some(3)),
            ("Shell exited with -1", Failed, Some(-1)),
            // Another program's status within a line: a failure shows, a success does not.
            ("error: process didn't exit successfully: `x` (exit status: 101)", Failed, Some(101)),
            ("subprocess.CalledProcessError: Command 'x' returned non-zero exit status 1.", Failed, Some(1)),
            ("web-1 exited with code 0", Unknown, None),
            // What looks like one and is none.
            ("the exit code of the tool is documented", Unknown, None),
            ("Exit code 1 on failure, 0 on success", Unknown, None),
            ("on exit: 3 files were left", Unknown, None),
            ("wrc=3 src=4", Unknown, None),
            ("sys.exit(1)", Unknown, None),
            ("version exit code 1.5", Unknown, None),
        ],
    );
}

#[test]
fn envelopes_are_read() {
    assert_table(
        "./run",
        &[
            (r#"{"output":"x","exit_code":3}"#, Failed, Some(3)),
            (r#"{"output":"x","exit_code":0,"error":null}"#, Ok, Some(0)),
            (r#"{"output":"x","exit_code":0,"error":"a warning"}"#, Ok, Some(0)),
            (r#"{"output":"x","metadata":{"exit_code":2}}"#, Failed, Some(2)),
            (r#"{"output":"x","metadata":{"exit":0}}"#, Ok, Some(0)),
            (r#"{"stdout":"","stderr":"boom","returncode":1}"#, Failed, Some(1)),
            (r#"{"stdout":"x","exitCode":127}"#, Failed, Some(127)),
            (r#"{"stdout":"x","rc":1}"#, Failed, Some(1)),
            (r#"{"stdout":"x","status":"error"}"#, Failed, None),
            (r#"{"stdout":"x","status":"success"}"#, Ok, None),
            (r#"{"output":"x","timed_out":true}"#, Failed, None),
            (r#"{"success":false,"error":"no"}"#, Failed, None),
            (r#"{"success":true}"#, Ok, None),
            (r#"{"ok":false}"#, Failed, None),
            (r#"{"content":"x","isError":true}"#, Failed, None),
            (r#"{"is_error":false,"content":"x"}"#, Ok, None),
            // Data that a command printed.
            (r#"{"status":200,"code":5,"name":"x"}"#, Unknown, None),
        ],
    );
}

#[test]
fn summaries_of_test_runners_are_read() {
    assert_table(
        "./run",
        &[
            // pytest
            ("1 failed, 3 passed", Failed, None),
            ("8 passed, 2 failed", Failed, None),
            ("==== 1 failed, 3 passed in 0.12s ====", Failed, None),
            ("==== 3 passed, 1 warning in 0.12s ====", Ok, None),
            ("==== 2 passed, 1 error in 0.12s ====", Failed, None),
            ("FAILED tests/test_a.py::test_b - assert 1 == 2", Failed, None),
            ("5 passed", Ok, None),
            ("no tests ran in 0.01s", Unknown, None),
            // cargo
            ("test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out", Failed, None),
            (
                "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
                Ok,
                None,
            ),
            ("     Summary [   0.1s] 3 tests run: 2 passed, 1 failed, 0 skipped", Failed, None),
            ("     Summary [   0.1s] 3 tests run: 3 passed, 0 skipped", Ok, None),
            ("error: could not compile `a` (lib) due to 1 previous error", Failed, None),
            ("    Finished `dev` profile [unoptimized] target(s) in 0.1s", Ok, None),
            // go
            ("--- FAIL: TestA (0.00s)\nFAIL\nFAIL\ta/b\t0.01s", Failed, None),
            ("ok  \ta/b\t0.01s", Ok, None),
            ("ok  \ta/b\t0.01s\nFAIL\ta/c\t0.01s\nok  \ta/d\t0.01s", Failed, None),
            // jest, vitest, mocha, node
            ("Tests:       1 failed, 3 passed, 4 total", Failed, None),
            ("Tests:       4 passed, 4 total\nSnapshots:   0 total", Ok, None),
            (" Test Files  1 failed | 2 passed (3)\n      Tests  2 failed | 8 passed (10)", Failed, None),
            ("      Tests  8 passed (8)", Ok, None),
            ("  3 passing (20ms)\n  1 failing", Failed, None),
            ("  3 passing (20ms)", Ok, None),
            ("# tests 4\n# pass 3\n# fail 1", Failed, None),
            ("ℹ tests 4\nℹ pass 4\nℹ fail 0", Ok, None),
            ("ok 1 - a\nnot ok 2 - b", Failed, None),
            // unittest, RSpec, minitest, PHPUnit
            ("Ran 3 tests in 0.001s\n\nFAILED (failures=1, errors=1)", Failed, None),
            ("Ran 3 tests in 0.001s\n\nOK", Ok, None),
            ("10 examples, 2 failures", Failed, None),
            ("10 examples, 0 failures", Ok, None),
            ("5 runs, 7 assertions, 1 failures, 0 errors, 0 skips", Failed, None),
            ("Tests: 3, Assertions: 5, Failures: 1.", Failed, None),
            ("OK (3 tests, 5 assertions)", Ok, None),
            // Maven, Gradle, dotnet
            ("Tests run: 5, Failures: 1, Errors: 0, Skipped: 0", Failed, None),
            ("Tests run: 5, Failures: 0, Errors: 0, Skipped: 0", Ok, None),
            ("[INFO] BUILD FAILURE", Failed, None),
            ("BUILD SUCCESSFUL in 3s", Ok, None),
            ("Failed!  - Failed:     1, Passed:     3, Skipped:     0, Total:     4", Failed, None),
            ("Passed!  - Failed:     0, Passed:     3, Skipped:     0, Total:     3", Ok, None),
            // Build tools and linters
            ("make: *** [Makefile:3: all] Error 2", Failed, None),
            ("make[1]: *** [all] Error 1", Failed, None),
            ("ninja: build stopped: subcommand failed.", Failed, None),
            ("npm ERR! missing script: test", Failed, None),
            ("npm error code ELIFECYCLE", Failed, None),
            ("✖ 3 problems (2 errors, 1 warning)", Unknown, None),
            ("All checks passed!", Ok, None),
            ("0 issues.", Ok, None),
            ("0 issues were found in the cellar", Unknown, None),
            ("[main 4be1c90f] Count each row once\n 1 file changed, 2 insertions(+)", Ok, None),
            ("[main] not a commit", Unknown, None),
            ("Success: no issues found in 3 source files", Ok, None),
            ("bash: foo: command not found", Failed, None),
            // Not summaries
            ("2 failed login attempts, 3 passed the captcha", Unknown, None),
            ("processed 12 rows, 3 skipped", Unknown, None),
            ("", Unknown, None),
            ("a\nb\nc", Unknown, None),
        ],
    );
}

#[test]
fn marks_of_the_wire_are_evidence_and_their_absence_is_none() {
    assert_eq!(read("ls", "a\nb", None).status, Unknown);
    assert_eq!(read("ls", "a\nb", Some(false)).status, Ok);
    assert_eq!(read("ls", "a\nb", Some(true)).status, Failed);
    assert_eq!(read("./a", "Command running in background with ID: b1", Some(false)).status, Unknown);
    assert_eq!(
        read("./a", "Wall time: 10 s\nProcess running with session ID 5\nOutput:\n", None).status,
        Unknown
    );
    let other = |text: &str, is_error| {
        let answer = CallAnswer {
            family: ToolFamily::Read,
            command: "",
            text,
            is_error,
            absent_mark: AbsentMark::SaysNothing,
        };
        read_status(&answer, text).status
    };
    assert_eq!(other("1 failed, 3 passed", None), Unknown, "a file that speaks of failures");
    assert_eq!(other("1 failed, 3 passed", Some(false)), Ok);
    assert_eq!(other("Error: no such file", None), Failed);
    assert_eq!(other("<tool_use_error>File does not exist.</tool_use_error>", None), Failed);
}

#[test]
fn an_absent_mark_is_success_where_the_tool_states_every_failure() {
    let read = |tool: &str, command: &str, text: &str| {
        let absent_mark = AbsentMark::of(tool);
        let answer = CallAnswer { family: ToolFamily::of(tool), command, text, is_error: None, absent_mark };
        read_status(&answer, text).status
    };
    assert_eq!(read("Bash", "make", "built"), Ok, "Claude Code");
    assert_eq!(read("Bash", "make", ""), Ok);
    assert_eq!(read("Bash", "make", "Exit code 2\nno rule"), Failed);
    assert_eq!(read("Bash", "make | tail", "built"), Unknown, "a pipe hides the status");
    assert_eq!(read("bash", "make", "built"), Unknown, "not known to mark a status");
    for tool in ["terminal", "shell", "exec_command", "execute_command", "run_shell_command"] {
        assert_eq!(read(tool, "make", "built"), Unknown, "{tool}");
    }
}

#[test]
fn a_pipe_hides_the_status_of_what_stands_before_it() {
    let zero = r#"{"output":"built","exit_code":0}"#;
    let cases = [
        ("make", Ok),
        ("make | tail -5", Unknown),
        ("make 2>&1 |& tee log", Unknown),
        ("cd a && make | tail", Unknown),
        ("make | tail; git stash pop", Ok),
        ("make | grep x && ./run", Ok),
        ("make | tail;", Unknown),
        ("make || true", Unknown),
        ("make || :; ls", Unknown),
        ("make || make again", Ok),
        ("set -o pipefail; make | tail", Ok),
        ("make --only 'a|b' \"c|d\" e\\|f", Ok),
        ("make >| log", Ok),
        ("ls | head", Ok),
        ("cat a.json | jq .", Ok),
    ];
    for (command, status) in cases {
        assert_eq!(read(command, zero, None).status, status, "{command}: a stated zero");
        assert_eq!(read(command, "built", Some(false)).status, status, "{command}: a mark of success");
        assert_eq!(read(command, "built", None).status, Unknown, "{command}: nothing but output");
        assert_eq!(read(command, "3 passed in 0.1s", None).status, Ok, "{command}: the output says it");
    }
}

#[test]
fn zero_of_a_pipeline_does_not_hide_a_failure() {
    let failed = "test result: FAILED. 2 passed; 1 failed; 0 ignored";
    assert_eq!(read("cargo test 2>&1 | tail -3", failed, Some(false)).status, Failed);
    assert_eq!(read("cargo test", failed, Some(false)).status, Failed);
    let loose = "error: something went wrong";
    assert_eq!(read("./a | tail", loose, Some(false)).status, Failed);
    assert_eq!(read("./a", loose, Some(false)).status, Ok, "the status is that of the command");
    assert_eq!(read("cat build.log", loose, Some(false)).status, Ok);
    assert_eq!(read("cat build.log", failed, Some(false)).status, Unknown, "another run's report");
    assert_eq!(read("cat build.log", loose, None).status, Unknown);
}

#[test]
fn readers_report_nothing_for_plain_text() {
    let readers: [&Reader; 5] = [&ENVELOPE, &EXIT_STATEMENT, &TEST_AND_BUILD, &ERROR_TEXT, &LOOSE_ERROR];
    for reader in readers {
        for text in ["", "done", "copied 3 files", "{", "[1,2]", "exit", "rc", "passed"] {
            assert_eq!((reader.read)(text), Report::default(), "{}: {text:?}", reader.name);
        }
    }
}

/// Statements of failure, with numbers to fill in.
fn failure() -> impl Strategy<Value = String> {
    (1u32..300, 0u32..300, 0usize..22).prop_map(|(bad, good, which)| match which {
        0 => format!("exit code: {bad}"),
        1 => format!("exit_code={bad}"),
        2 => format!("<returncode>{bad}</returncode>"),
        3 => format!("{bad} failed, {good} passed"),
        4 => format!("{good} passed, {bad} failed"),
        5 => format!("=== {bad} failed, {good} passed in 1.20s ==="),
        6 => format!("test result: FAILED. {good} passed; {bad} failed; 0 ignored"),
        7 => format!("FAIL\tpkg/a\t0.{bad}s"),
        8 => format!("Tests:       {bad} failed, {good} passed, {} total", bad + good),
        9 => "npm ERR! code ELIFECYCLE".to_owned(),
        10 => format!("make: *** [Makefile:{bad}: all] Error 2"),
        11 => format!("FAILED (failures={bad})"),
        12 => format!("Tests run: {}, Failures: {bad}, Errors: 0, Skipped: 0", bad + good),
        13 => format!("{good} examples, {bad} failures"),
        14 => "BUILD FAILED in 3s".to_owned(),
        15 => format!("Process exited with code {bad}"),
        16 => format!("[exit code {bad}]"),
        17 => format!("# fail {bad}"),
        18 => "error: could not compile `a` (lib) due to 2 previous errors".to_owned(),
        19 => format!("Exit code {bad}"),
        20 => format!("exit status {bad}"),
        _ => "--- FAIL: TestA (0.00s)".to_owned(),
    })
}

fn success() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "3 passed in 0.1s",
        "test result: ok. 3 passed; 0 failed; 0 ignored",
        "ok  \tpkg/b\t0.1s",
        "    Finished `dev` profile",
        "OK",
        "PASS",
        "All checks passed!",
        "exit code: 0",
        "[exit code 0]",
        "compiling a",
        "",
    ])
}

proptest! {
    /// The look at the bytes of a line passes over none that counts something.
    #[test]
    fn lines_with_counts_are_read(
        (before, after) in (
            prop::sample::select(vec!["", "Tests: ", "=== ", "✓ ", "test result: ok. ", "# ", "Summary [ 0.1s] "]),
            prop::sample::select(vec!["", " ===", " in 0.12s", "!", ".", " (3 total)"]),
        ),
        items in prop::collection::vec((
            prop::sample::select(vec![
                "passed", "Failures", "failed", "ERRORS", "tests", "Tests run", "runs", "examples", "suites",
                "timeout", "broken", "succeeded", "skipped", "total", "assertions", "other",
            ]),
            0u32..30,
            0usize..5,
        ), 1..4),
        joint in prop::sample::select(vec![", ", "; ", " | ", ","]),
    ) {
        let items = items.iter().map(|(word, number, form)| match form {
            0 => format!("{number} {word}"),
            1 => format!("{word}: {number}"),
            2 => format!("{word}={number}"),
            3 => format!("{number}{word}"),
            _ => format!("{word} {number}"),
        });
        let line = format!("{before}{}{after}", items.collect::<Vec<_>>().join(joint));
        if read_counts(&line) != Default::default() {
            prop_assert!(may_count(&line), "{line}");
        }
    }

    #[test]
    fn a_reported_failure_is_never_ok(
        failure in failure(),
        before in prop::collection::vec(success(), 0..4),
        after in prop::collection::vec(success(), 0..4),
        is_error in prop::sample::select(vec![None, Some(false), Some(true)]),
        command in prop::sample::select(vec!["make test", "cargo test | tail", "", "cat log", "a; b"]),
        in_envelope in any::<bool>(),
    ) {
        let lines: Vec<&str> = before.iter().copied().chain([failure.as_str()]).chain(after.iter().copied()).collect();
        let output = lines.join("\n");
        let text = if in_envelope {
            serde_json::json!({ "output": output, "exit_code": 0 }).to_string()
        } else {
            output
        };
        let found = read(command, &text, is_error);
        prop_assert_ne!(found.status, Ok, "{} {:?}", text, found);
    }

    #[test]
    fn any_answer_is_read_without_panic_and_ok_has_evidence(
        text in "(\\PC|\n){0,300}",
        command in "\\PC{0,40}",
        is_error in prop::sample::select(vec![None, Some(false), Some(true)]),
    ) {
        let found = read(&command, &text, is_error);
        prop_assert!(found.status != Ok || found.evidence.is_some());
        prop_assert!(found.status != Ok || found.exit.is_none_or(|code| code == 0));
    }
}
