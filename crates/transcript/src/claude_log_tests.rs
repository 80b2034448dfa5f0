//! Tests of the messages assembled from lines of a Claude Code log.

use crate::decode::{DecodeError, DecodeOptions, decode};
use crate::detect::WireFormatChoice;
use crate::group::Groups;
use crate::transcript::{Source, Transcript};
use crate::validate::violations;
use crate::write::WireFormat;

fn read_with(lines: &[String], options: &DecodeOptions) -> Transcript {
    let text = lines.join("\n");
    let transcript =
        decode(text.clone().into_bytes(), options).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!((transcript.source, transcript.wire_format), (Source::ClaudeCodeLog, WireFormat::Anthropic));
    transcript
}

fn read(lines: &[String]) -> Transcript {
    read_with(lines, &DecodeOptions::default())
}

fn contents(transcript: &Transcript) -> Vec<&str> {
    transcript.messages.iter().map(|m| m.json()).collect()
}

fn notes(transcript: &Transcript) -> Vec<String> {
    let place = |line: Option<usize>| line.map(|n| format!("{n}: ")).unwrap_or_default();
    transcript.notes.iter().map(|note| format!("{}{}", place(note.line), note.text)).collect()
}

fn assert_acceptable(transcript: &Transcript) {
    assert_eq!(
        violations(WireFormat::Anthropic, &transcript.messages, &Groups::of(&transcript.messages)),
        []
    );
}

/// A line of the log: `uuid` under `parent`, with further members of the line and of its message.
fn line(kind: &str, uuid: &str, parent: &str, more: &str, inner: &str, content: &str) -> String {
    let parent = if parent.is_empty() { "null".to_owned() } else { format!("\"{parent}\"") };
    format!(
        r#"{{"parentUuid":{parent},"sessionId":"s","type":"{kind}",{more}"message":{{"role":"{kind}",{inner}"content":{content}}},"uuid":"{uuid}"}}"#
    )
}

fn user(uuid: &str, parent: &str, text: &str) -> String {
    line("user", uuid, parent, "", "", &format!("\"{text}\""))
}

fn assistant(uuid: &str, parent: &str, id: &str, block: &str) -> String {
    line("assistant", uuid, parent, "", &format!("\"id\":\"{id}\",\"model\":\"m-1\","), &format!("[{block}]"))
}

fn result(uuid: &str, parent: &str, call: &str) -> String {
    line("user", uuid, parent, "", "", &format!("[{}]", result_block(call)))
}

fn result_block(call: &str) -> String {
    format!(r#"{{"tool_use_id":"{call}","type":"tool_result","content":"out {call}"}}"#)
}

fn use_block(call: &str) -> String {
    format!(r#"{{"type":"tool_use","id":"{call}","name":"Bash","input":{{"n":1.0}}}}"#)
}

const TEXT: &str = r#"{"type":"text","text":"caf\u00e9"}"#;

#[test]
fn lines_with_one_message_id_are_one_message() {
    let transcript = read(&[
        user("1", "", "go"),
        assistant("2", "1", "m1", r#"{"type":"thinking","thinking":"t","signature":"s"}"#),
        assistant("3", "2", "m1", TEXT),
        assistant("4", "3", "m1", &use_block("a")),
        result("5", "4", "a"),
        assistant("6", "5", "m2", TEXT),
    ]);
    let joined = format!(
        r#"{{"role":"assistant","content":[{{"type":"thinking","thinking":"t","signature":"s"}},{TEXT},{}]}}"#,
        use_block("a")
    );
    assert_eq!(
        contents(&transcript),
        [
            r#"{"role":"user","content":"go"}"#,
            joined.as_str(),
            &format!(r#"{{"role":"user","content":[{}]}}"#, result_block("a")),
            &format!(r#"{{"role":"assistant","content":[{TEXT}]}}"#),
        ]
    );
    assert_eq!(transcript.preamble.model.as_deref(), Some("m-1"));
    assert!(transcript.notes.is_empty());
    assert_acceptable(&transcript);
}

#[test]
fn results_of_parallel_calls_are_one_message_however_they_arrive() {
    let calls = format!("{},{},{}", use_block("a"), use_block("b"), use_block("c"));
    let results = format!("{},{},{}", result_block("a"), result_block("b"), result_block("c"));
    let wanted = [
        r#"{"role":"user","content":"go"}"#.to_owned(),
        format!(r#"{{"role":"assistant","content":[{calls}]}}"#),
        format!(r#"{{"role":"user","content":[{results}]}}"#),
    ];
    let after = [
        user("1", "", "go"),
        assistant("2", "1", "m1", &use_block("a")),
        assistant("3", "2", "m1", &use_block("b")),
        assistant("4", "3", "m1", &use_block("c")),
        result("5", "2", "a"),
        result("6", "3", "b"),
        result("7", "4", "c"),
    ];
    assert_eq!(contents(&read(&after)), wanted);
    let between = [
        user("1", "", "go"),
        assistant("2", "1", "m1", &use_block("a")),
        result("5", "2", "a"),
        assistant("3", "2", "m1", &use_block("b")),
        result("6", "3", "b"),
        assistant("4", "3", "m1", &use_block("c")),
        result("7", "4", "c"),
    ];
    assert_eq!(contents(&read(&between)), wanted);
    assert_acceptable(&read(&between));
}

#[test]
fn a_note_of_the_client_does_not_part_results_from_their_calls() {
    let note =
        |uuid: &str, parent: &str| line("user", uuid, parent, "\"isMeta\":true,", "", "\"the client says\"");
    let transcript = read(&[
        user("1", "", "go"),
        assistant("2", "1", "m1", &use_block("a")),
        assistant("3", "2", "m1", &use_block("b")),
        note("4", "3"),
        result("5", "4", "a"),
        note("6", "5"),
        result("7", "6", "b"),
        assistant("8", "7", "m2", TEXT),
    ]);
    let roles: Vec<(bool, bool)> =
        transcript.messages.iter().map(|m| (m.has_results(), m.is_machine_written())).collect();
    assert_eq!(
        roles,
        [(false, false), (false, false), (true, false), (false, true), (false, true), (false, false)]
    );
    assert_acceptable(&transcript);
}

#[test]
fn results_stand_before_what_else_is_said_with_them() {
    let mixed = format!(r#"[{{"type":"text","text":"stop"}},{}]"#, result_block("b"));
    let transcript = read(&[
        user("1", "", "go"),
        assistant("2", "1", "m1", &use_block("a")),
        assistant("3", "2", "m1", &use_block("b")),
        result("4", "3", "a"),
        line("user", "5", "4", "", "", &mixed),
    ]);
    let wanted = format!(
        r#"{{"role":"user","content":[{},{},{{"type":"text","text":"stop"}}]}}"#,
        result_block("a"),
        result_block("b")
    );
    assert_eq!(transcript.messages[2].json(), wanted);
    assert!(transcript.messages[2].is_human());
    assert_acceptable(&transcript);
}

#[test]
fn rows_of_sub_agents_and_error_notices_are_left_out_and_counted() {
    let transcript = read(&[
        user("1", "", "go"),
        line("user", "2", "1", "\"isSidechain\":true,", "", "\"sub task\""),
        line("assistant", "3", "2", "\"isSidechain\":true,", "\"id\":\"m9\",", &format!("[{TEXT}]")),
        line("assistant", "4", "1", "\"isApiErrorMessage\":true,", "\"id\":\"m8\",", &format!("[{TEXT}]")),
        line("assistant", "5", "4", "", "\"id\":\"m7\",\"model\":\"<synthetic>\",", &format!("[{TEXT}]")),
        assistant("6", "1", "m1", TEXT),
    ]);
    assert_eq!(transcript.messages.len(), 2);
    assert_eq!(
        notes(&transcript),
        [
            "messages of sub-agents, left out: 2",
            "error notices of the client that were never sent, left out: 2"
        ]
    );
    assert_eq!(transcript.preamble.model.as_deref(), Some("m-1"), "an error notice names no model");
}

#[test]
fn bookkeeping_is_no_message() {
    let transcript = read(&[
        r#"{"type":"summary","summary":"Earlier","leafUuid":"x"}"#.into(),
        r#"{"type":"file-history-snapshot","messageId":"m","snapshot":{}}"#.into(),
        user("1", "", "go"),
        r#"{"type":"progress","parentUuid":"1","data":{}}"#.into(),
        r#"{"type":"system","subtype":"turn_duration","content":"3 s","parentUuid":"1"}"#.into(),
        r#"{"type":"queue-operation","operation":"enqueue","content":"later"}"#.into(),
        line("assistant", "2", "1", "", "\"id\":\"m\",", "\"\""),
    ]);
    assert_eq!(transcript.messages.len(), 2);
    assert!(transcript.notes.is_empty());
}

#[test]
fn what_programs_wrote_is_not_taken_for_a_person() {
    let transcript = read(&[
        line("user", "1", "", "\"isMeta\":true,", "", "\"looks like words\""),
        user("2", "1", "<command-name>/clear</command-name>"),
        user("3", "2", "real words"),
    ]);
    let human: Vec<bool> = transcript.messages.iter().map(|m| m.is_human()).collect();
    assert_eq!(human, [false, false, true]);
    assert!(transcript.messages[0].is_machine_written());
}

#[test]
fn branches_that_were_edited_away_are_left_out() {
    let transcript = read(&[
        user("1", "", "first"),
        assistant("2", "1", "m1", TEXT),
        user("3", "2", "second, mistyped"),
        assistant("4", "3", "m2", &use_block("a")),
        result("5", "4", "a"),
        user("6", "2", "second"),
        assistant("7", "6", "m3", TEXT),
    ]);
    let text: Vec<String> = transcript.messages.iter().map(|m| m.text().into_owned()).collect();
    assert_eq!(text, ["first", "café", "second", "café"]);
    assert_eq!(notes(&transcript), ["messages on branches that were edited away, left out: 3"]);
    assert_acceptable(&transcript);
}

#[test]
fn a_prompt_with_a_picture_can_be_edited_away_too() {
    let picture =
        r#"[{"type":"text","text":"mistyped"},{"type":"image","source":{"type":"base64","data":""}}]"#;
    let transcript = read(&[
        user("1", "", "first"),
        assistant("2", "1", "m1", TEXT),
        line("user", "3", "2", "", "", picture),
        assistant("4", "3", "m2", TEXT),
        user("5", "2", "second"),
    ]);
    let text: Vec<String> = transcript.messages.iter().map(|m| m.text().into_owned()).collect();
    assert_eq!(text, ["first", "café", "second"]);
}

#[test]
fn parallel_results_under_one_parent_are_no_branches() {
    let transcript = read(&[
        user("1", "", "go"),
        assistant("2", "1", "m1", &format!("{},{}", use_block("a"), use_block("b"))),
        result("3", "2", "a"),
        result("4", "2", "b"),
        user("5", "2", "<system-reminder>x</system-reminder>"),
    ]);
    assert!(transcript.notes.is_empty(), "{:?}", transcript.notes);
    assert_eq!(transcript.messages.len(), 4);
}

#[test]
fn a_line_that_stands_twice_counts_once() {
    let lines = [user("1", "", "go"), assistant("2", "1", "m1", TEXT), user("3", "2", "on")];
    let mut doubled = lines.to_vec();
    doubled.extend_from_slice(&lines);
    assert_eq!(contents(&read(&doubled)), contents(&read(&lines)));
}

#[test]
fn the_clients_own_compaction_is_noted_or_begun_from() {
    let lines = [
        user("1", "", "old"),
        assistant("2", "1", "m1", TEXT),
        r#"{"type":"system","subtype":"compact_boundary","parentUuid":null,"uuid":"3"}"#.to_owned(),
        line("user", "4", "3", "\"isCompactSummary\":true,", "", "\"what was\""),
        assistant("5", "4", "m2", TEXT),
        user("6", "5", "new"),
    ];
    let whole = read(&lines);
    assert_eq!(whole.messages.len(), 5);
    assert_eq!(notes(&whole), ["4: the client's own compaction; everything before it is read too"]);
    assert!(whole.messages[2].is_machine_written(), "a summary is not a person's");
    let since = read_with(&lines, &DecodeOptions { since_compaction: true, ..DecodeOptions::default() });
    let text: Vec<String> = since.messages.iter().map(|m| m.text().into_owned()).collect();
    assert_eq!(text, ["what was", "café", "new"]);
    assert!(since.notes.is_empty());
}

#[test]
fn a_broken_line_is_reported_with_its_number() {
    let mut lines = vec![user("1", "", "go"), assistant("2", "1", "m1", TEXT), user("3", "2", "on")];
    lines.insert(1, r#"{"type":"user","message":{"content":"\x"}}"#.into());
    lines.push(lines[0][..40].to_owned());
    let transcript = read(&lines);
    assert_eq!(transcript.messages.len(), 3);
    assert_eq!(
        notes(&transcript),
        ["2: broken JSON (invalid escape), skipped", "5: broken JSON (EOF while parsing a string), skipped"]
    );
}

#[test]
fn a_log_of_one_line_and_a_line_over_several() {
    let one = user("1", "", "go");
    assert_eq!(contents(&read(std::slice::from_ref(&one))), [r#"{"role":"user","content":"go"}"#]);
    let spread = one.replace(",\"", ",\n  \"");
    assert_eq!(contents(&read(&[spread])), [r#"{"role":"user","content":"go"}"#]);
}

#[test]
fn another_wire_cannot_be_forced_on_a_log() {
    let options =
        DecodeOptions { wire_format: WireFormatChoice::Forced(WireFormat::Chat), ..DecodeOptions::default() };
    let error = decode(user("1", "", "go").into_bytes(), &options).unwrap_err();
    assert!(matches!(error, DecodeError::WrongWireFormat { forced: WireFormat::Chat, .. }), "{error}");
    assert!(error.to_string().ends_with("it is a session log, whose messages are in the anthropic form"));
    let right = DecodeOptions {
        wire_format: WireFormatChoice::Forced(WireFormat::Anthropic),
        ..DecodeOptions::default()
    };
    assert_eq!(read_with(&[user("1", "", "go")], &right).messages.len(), 1);
}

#[test]
fn messages_that_only_name_a_session_are_no_log() {
    let lines = "{\"role\":\"user\",\"content\":\"u\",\"sessionId\":\"s\"}\n{\"role\":\"assistant\",\"content\":\"a\"}\n";
    let transcript = decode(lines.as_bytes().to_vec(), &DecodeOptions::default()).unwrap();
    assert_eq!((transcript.source, transcript.messages.len()), (Source::Lines, 2));
}

#[test]
fn a_log_is_written_as_the_list_it_stands_for() {
    let transcript = read(&[user("1", "", "go"), assistant("2", "1", "m1", TEXT)]);
    let mut out = Vec::new();
    transcript.write_unchanged(&mut out);
    let wanted = format!(
        "[{{\"role\":\"user\",\"content\":\"go\"}},{{\"role\":\"assistant\",\"content\":[{TEXT}]}}]\n"
    );
    assert_eq!(String::from_utf8(out).unwrap(), wanted);
}
