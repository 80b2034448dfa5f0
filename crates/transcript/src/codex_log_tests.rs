//! Tests of the items read from lines of a Codex rollout log.

use crate::decode::{DecodeOptions, decode};
use crate::transcript::{Source, Transcript};
use crate::write::WireFormat;

fn read_with(lines: &[&str], options: &DecodeOptions) -> Transcript {
    let text = lines.join("\n") + "\n";
    let transcript = decode(text.into_bytes(), options).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((transcript.source, transcript.wire_format), (Source::CodexLog, WireFormat::Responses));
    transcript
}

fn read(lines: &[&str]) -> Transcript {
    read_with(lines, &DecodeOptions::default())
}

fn since_compaction(lines: &[&str]) -> Transcript {
    read_with(lines, &DecodeOptions { since_compaction: true, ..DecodeOptions::default() })
}

fn items(transcript: &Transcript) -> Vec<&str> {
    transcript.messages.iter().map(|m| m.json()).collect()
}

const USER: &str = r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"caf\u00e9"}]}"#;
const REASONING: &str = r#"{"type":"reasoning","summary":[],"encrypted_content":"x"}"#;
const CALL: &str = r#"{"type":"function_call","name":"shell","arguments":"{}","call_id":"c"}"#;
const OUTPUT: &str = r#"{"type":"function_call_output","call_id":"c","output":"o"}"#;

fn item(payload: &str) -> String {
    format!(r#"{{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":{payload}}}"#)
}

#[test]
fn items_are_taken_as_they_stand() {
    let transcript = read(&[
        r#"{"type":"session_meta","payload":{"id":"s","cwd":"/","instructions":"be brief"}}"#,
        &item(USER),
        r#"{"type":"turn_context","payload":{"model":"gpt-x","cwd":"/"}}"#,
        &item(REASONING),
        r#"{"type":"event_msg","payload":{"type":"agent_reasoning","text":"t"}}"#,
        &item(CALL),
        &item(OUTPUT),
        r#"{"type":"event_msg","payload":{"type":"token_count","info":null}}"#,
    ]);
    assert_eq!(items(&transcript), [USER, REASONING, CALL, OUTPUT]);
    assert_eq!(transcript.preamble.model.as_deref(), Some("gpt-x"));
    assert_eq!(transcript.preamble.system.as_ref().map(|s| s.as_str()), Some("\"be brief\""));
    assert!(transcript.notes.is_empty());
}

#[test]
fn newer_instructions_are_an_object() {
    let transcript = read(&[
        r#"{"type":"session_meta","payload":{"id":"s","instructions":null,"base_instructions":{"text":"be brief"}}}"#,
        &item(USER),
    ]);
    assert_eq!(transcript.preamble.system.as_ref().map(|s| s.as_str()), Some(r#"{"text":"be brief"}"#));
}

#[test]
fn old_logs_have_items_on_the_lines() {
    let search = r#"{"type":"web_search_call","id":"w","status":"completed"}"#;
    let open_reasoning = r#"{"type":"reasoning","id":"r","summary":[]}"#;
    let lines = [
        r#"{"id":"s","timestamp":"2025-05-01T00:00:00Z","instructions":"be brief"}"#,
        USER,
        r#"{"record_type":"state"}"#,
        open_reasoning,
        CALL,
        OUTPUT,
        r#"{"record_type":"state","id":"x"}"#,
        search,
    ];
    let transcript = read(&lines);
    assert_eq!(items(&transcript), [USER, open_reasoning, CALL, OUTPUT, search]);
    assert_eq!(transcript.preamble.system.as_ref().map(|s| s.as_str()), Some("\"be brief\""));
    let without_states: Vec<&str> = lines.into_iter().filter(|line| !line.contains("record_type")).collect();
    assert_eq!(items(&read(&without_states)), [USER, open_reasoning, CALL, OUTPUT, search]);
}

#[test]
fn snapshots_of_the_work_tree_stay_out() {
    let snapshot = r#"{ "type" : "ghost_snapshot", "ghost_commit":{"id":"1"}}"#;
    let speaks_of_one =
        r#"{"type":"function_call_output","call_id":"c","output":"{\"type\":\"ghost_snapshot\"}"}"#;
    let holds_one = r#"{"type":"x_new","inner":{"type":"ghost_snapshot"}}"#;
    let transcript =
        read(&[&item(USER), &item(snapshot), &item(CALL), &item(speaks_of_one), &item(holds_one)]);
    assert_eq!(items(&transcript), [USER, CALL, speaks_of_one, holds_one]);
}

#[test]
fn the_clients_own_compaction_is_noted() {
    let lines = [
        &item(USER),
        r#"{"type":"compacted","payload":{"message":"what was"}}"#,
        &item(REASONING),
        &item(CALL),
    ];
    let transcript = read(&lines);
    assert_eq!(items(&transcript), [USER, REASONING, CALL]);
    assert_eq!(transcript.notes[0].line, Some(2));
    assert_eq!(transcript.notes[0].text, "the client's own compaction; everything before it is read too");
}

#[test]
fn reading_since_the_compaction_begins_with_what_took_the_place() {
    let summary_only = since_compaction(&[
        &item(CALL),
        r#"{"type":"compacted","payload":{"message":"what \"was\""}}"#,
        &item(USER),
    ]);
    assert_eq!(summary_only.messages.len(), 2);
    assert_eq!(summary_only.messages[0].text(), "what \"was\"");
    assert!(summary_only.messages[0].is_machine_written());
    assert!(!summary_only.messages[0].is_human());
    let replaced = format!(
        r#"{{"type":"compacted","payload":{{"message":"","replacement_history":[{USER},{REASONING}]}}}}"#
    );
    let replaced = since_compaction(&[&item(CALL), &replaced, &item(OUTPUT)]);
    assert_eq!(items(&replaced), [USER, REASONING, OUTPUT]);
    assert!(replaced.notes.is_empty());
}

#[test]
fn a_broken_line_is_reported_with_its_number() {
    let cut_off = &item(OUTPUT)[..50];
    let transcript = read(&[&item(USER), &item(CALL), cut_off]);
    assert_eq!(items(&transcript), [USER, CALL]);
    assert_eq!(transcript.notes[0].line, Some(3));
    assert!(transcript.notes[0].text.starts_with("broken JSON ("));
}

#[test]
fn what_programs_wrote_is_shown_by_its_tags() {
    let context = r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>\n<cwd>/</cwd>\n</environment_context>"}]}"#;
    let transcript = read(&[&item(context), &item(USER)]);
    assert!(transcript.messages[0].is_machine_written());
    assert!(transcript.messages[1].is_human());
}
