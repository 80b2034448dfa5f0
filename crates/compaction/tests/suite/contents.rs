//! What gets into a summary: the focus most of the room, secrets never, facts with what they are.

use throughline_compaction::{Section, SummaryDocument, SummaryFrame};
use throughline_transcript::WireFormat;

use crate::harness::{Case, Setup, text_tokens};
use crate::talk::Talk;

/// A session about two things in equal shares: a database schema and a web page.
fn two_topics() -> Case {
    let mut talk = Talk::new(WireFormat::Chat);
    talk.user("Clean up the project.");
    for n in 0..60 {
        let table = format!(r#"{{"path":"db/schema/table_{n:02}.sql"}}"#);
        talk.step("read_file", &table, &format!("CREATE TABLE schema_rows_{n:02} (id bigint);\n").repeat(12));
        let page = format!(r#"{{"path":"web/pages/page_{n:02}.html"}}"#);
        talk.step("read_file", &page, &format!("<div class=\"card_{n:02}\">text</div>\n").repeat(12));
        let edit = format!(r#"{{"command":"psql -f db/schema/table_{n:02}.sql"}}"#);
        talk.step("terminal", &edit, "CREATE TABLE\n");
        let build = format!(r#"{{"command":"npm run build -- page_{n:02}"}}"#);
        talk.step("terminal", &build, "built in 320 ms\n");
    }
    talk.answer("Both are clean.").user("Thanks. What is next?");
    talk.case()
}

fn share_of(document: &SummaryDocument, words: &[&str]) -> f64 {
    let mut about = 0;
    let mut all = 0;
    for section in Section::ALL {
        for entry in document.entries(section) {
            for piece in entry.text.split([',', ';', '\n']) {
                let tokens = text_tokens(piece);
                all += tokens;
                if words.iter().any(|word| piece.contains(word)) {
                    about += tokens;
                }
            }
        }
    }
    about as f64 / all.max(1) as f64
}

#[test]
fn the_focus_gets_most_of_the_room() {
    let case = two_topics();
    let words = ["schema", "table_", "psql"];
    let plain = case.compact(&Setup::window(20_000));
    let without = share_of(plain.summary.as_ref().unwrap(), &words);
    let setup = Setup { focus: Some("the database schema"), ..Setup::window(20_000) };
    let focused = case.compact(&setup);
    let with = share_of(focused.summary.as_ref().unwrap(), &words);
    assert!((0.58..=0.72).contains(&with) && with > without, "{with:.2}, without a focus {without:.2}");
}

/// Secrets of several kinds; none is real.
const SECRETS: &[(&str, &str)] = &[
    ("AWS_ACCESS_KEY_ID=AKIAQ3EGRJ7WZ5TNM2XK", "AKIAQ3EGRJ7WZ5TNM2XK"),
    ("GITHUB_TOKEN=ghp_9sKd83hFq02LmZx7Vb5Tn1Rw4Yc6Ua0PeHj2", "ghp_9sKd83hFq02LmZx7Vb5Tn1Rw4Yc6Ua0PeHj2"),
    ("password: \"tr0ub4dor&3-battery\"", "tr0ub4dor&3-battery"),
    ("postgres://admin:Zk4vQ9xW2p@db.example.com:5432/main", "Zk4vQ9xW2p"),
    (
        "Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
        "dozjgNryP4J3jVmNHl0w5N",
    ),
];

#[test]
fn secrets_never_get_into_a_summary() {
    for wire_format in WireFormat::ALL {
        let mut talk = Talk::new(wire_format);
        talk.user("Set up the deployment. The limit is MAX_TOKENS=4096 and the build id is 20260311.");
        for (line, _) in SECRETS {
            talk.user(&format!("Always use this one: {line}"))
                .answer(&format!("I decided to use {line} because you said so."));
            let call = format!(
                r#"{{"command":{}}}"#,
                throughline_transcript::compact_json_string(&format!("export {line} && deploy"))
            );
            talk.step("terminal", &call, &format!("error: refused for {line}\nexit code 1\n"));
        }
        for n in 0..25 {
            talk.step(
                "read_file",
                &format!(r#"{{"path":"deploy/step_{n}.sh"}}"#),
                &format!("echo step_{n}\n").repeat(60),
            );
        }
        talk.answer("Deployed.").user("Good.");
        let case = talk.case();
        let attempt = case.compact(&Setup::window(12_000));
        assert!(attempt.outcome.is_completed(), "{:?}", attempt.outcome);
        let after = case.after(&attempt);
        let summary =
            after.messages.iter().find(|message| SummaryFrame::find(message).is_some()).unwrap().text();
        for (line, secret) in SECRETS {
            assert!(
                !summary.contains(secret),
                "{wire_format}: {secret} of {line:?} is in the summary:\n{summary}"
            );
        }
        assert!(attempt.report.facts.redacted > 0, "{wire_format}");
        for harmless in ["MAX_TOKENS", "4096", "20260311"] {
            assert!(summary.contains(harmless), "{wire_format}: {harmless} is missing:\n{summary}");
        }
    }
}

#[test]
fn what_was_refused_stopped_or_failed_is_not_told_as_done() {
    for wire_format in WireFormat::ALL {
        let mut talk = Talk::new(wire_format);
        talk.user("Clean up the project.");
        let refused = "Error: The person did not allow this, and nothing was done. Find another way.";
        talk.step("write_file", r#"{"path":"src/refused.rs","content":"x"}"#, refused);
        talk.step("terminal", r#"{"command":"make never-run"}"#, refused);
        let stopped = "Error: The person stopped the turn before this was run; nothing was done.";
        talk.step("patch", r#"{"path":"src/stopped.rs","old_text":"a","new_text":"b"}"#, stopped);
        let missing = "Error: cannot read src/missing.rs: there is no such file";
        talk.step("read_file", r#"{"path":"src/missing.rs"}"#, missing);
        talk.step("write_file", r#"{"path":"src/written.rs","content":"x"}"#, "wrote src/written.rs");
        for n in 0..60 {
            let page = format!(r#"{{"path":"web/pages/page_{n:02}.html"}}"#);
            talk.step("read_file", &page, &format!("<div class=\"card_{n:02}\">text</div>\n").repeat(30));
        }
        talk.answer("It is clean.").user("Thanks. What is next?");
        let attempt = talk.case().compact(&Setup::window(16_000));
        let document = attempt.summary.as_ref().unwrap();
        let told = |section: Section| {
            let entries = document.entries(section).iter().map(|entry| entry.text.as_str());
            entries.collect::<Vec<_>>().join("\n")
        };
        let (done, files) = (told(Section::CompletedActions), told(Section::RelevantFiles));
        assert!(
            done.contains("written.rs") && files.contains("written.rs"),
            "{wire_format}: {done}\n{files}"
        );
        for nothing in ["refused.rs", "never-run", "stopped.rs"] {
            assert!(!done.contains(nothing), "{wire_format}: {nothing} in {done}");
            assert!(!files.contains(nothing), "{wire_format}: {nothing} in {files}");
        }
        assert!(!files.contains("missing.rs"), "{wire_format}: {files}");
        let tried = done.lines().find(|line| line.contains("missing.rs")).unwrap_or("failed");
        assert!(tried.contains("failed"), "{wire_format}: {tried}");
    }
}
