//! Tests of converting transcripts to calls.

use throughline_tokens::{ContentProfile, Family, TokenModel};
use throughline_transcript::{DecodeOptions, decode};

use super::*;

fn recording(text: &str) -> Recording {
    Recording::of(&decode(text.as_bytes().to_vec(), &DecodeOptions::default()).unwrap())
}

/// A line of a Claude Code log, this many seconds after its start.
fn line(kind: &str, secs: u32, more: &str, content: &str) -> String {
    let message = match kind {
        "assistant" => format!(
            r#"{{"id":"m{secs}","role":"assistant","model":"claude-opus-4-6","content":{content}{more}}}"#
        ),
        _ => format!(r#"{{"role":"user","content":{content}}}"#),
    };
    let outside = if kind == "user" { more } else { "" };
    format!(
        r#"{{"type":"{kind}","uuid":"u{secs}","sessionId":"s","timestamp":"2026-02-01T10:{:02}:{:02}.000Z","message":{message}{outside}}}"#,
        secs / 60,
        secs % 60,
    )
}

fn answer(secs: u32, prompt_tokens: u64) -> String {
    let usage = format!(
        r#","stop_reason":"end_turn","usage":{{"input_tokens":3,"cache_read_input_tokens":{},"cache_creation_input_tokens":0,"output_tokens":9}}"#,
        prompt_tokens - 3
    );
    line("assistant", secs, &usage, r#"[{"type":"text","text":"Done."}]"#)
}

#[test]
fn a_log_tells_calls_times_usage_and_its_own_compactions() {
    let log = [
        line("user", 0, "", r#""Fix the parser""#),
        answer(10, 30_020),
        line("user", 70, "", r#""And the tests""#),
        answer(80, 30_040),
        line("user", 90, r#","isCompactSummary":true"#, r#""The parser was fixed.""#),
        line("user", 91, "", r#""Go on""#),
        answer(100, 30_030),
    ];
    let recording = recording(&log.join("\n"));
    assert_eq!(recording.model.as_deref(), Some("claude-opus-4-6"));
    let calls: Vec<_> =
        recording.calls.iter().map(|call| (call.incoming.clone(), call.answer.clone())).collect();
    assert_eq!(calls, [(0..1, 1..2), (2..3, 3..4), (4..6, 6..7)]);
    let begun = recording.calls[0].at_ms;
    assert_eq!(
        recording.calls.iter().map(|call| call.at_ms - begun).collect::<Vec<_>>(),
        [0, 70_000, 90_000]
    );
    assert_eq!(recording.calls[1].usage.as_ref().unwrap().usage.prompt(), 30_040);
    assert_eq!(recording.compactions.len(), 1);
    assert_eq!((recording.compactions[0].message, recording.compactions[0].summary_follows), (4, true));
    // The first two calls see everything, the last one starts with the summary.
    let starts: Vec<usize> = recording.calls.iter().map(|call| recording.view_of(call).0).collect();
    assert_eq!(starts, [0, 0, 4]);
}

#[test]
fn what_stands_before_the_messages_is_what_a_window_begins_with() {
    let model = TokenModel::of(Family::Claude);
    let log = |first: u64, second: u64| {
        [
            line("user", 0, "", r#""Fix the parser""#),
            answer(10, first),
            line("user", 90, r#","isCompactSummary":true"#, r#""The parser was fixed.""#),
            answer(100, second),
        ]
        .join("\n")
    };
    let messages = |recording: &Recording, place: usize| {
        model.estimate_content(&ContentProfile::of_message(&recording.messages[place]))
    };
    let talk_of = |first, second| recording(&log(first, second));
    // A resumed session starts with more than its log has: the smaller of two windows is used.
    let resumed = talk_of(90_000, 30_000);
    assert_eq!(resumed.fixed_tokens(&model), 30_000 - messages(&resumed, 2));
    let usual = talk_of(30_000, 35_000);
    assert_eq!(usual.fixed_tokens(&model), 30_000 - messages(&usual, 0));
}

#[test]
fn a_request_tells_it_itself_and_a_list_without_times_gets_steady_ones() {
    let body = r#"{"model":"gpt-5","instructions":"Be brief.","tools":[{"type":"function","name":"look"}],"input":[
        {"role":"user","content":"Hello"},
        {"type":"reasoning","id":"r","summary":[]},
        {"type":"function_call","call_id":"c","name":"look","arguments":"{}"},
        {"type":"function_call_output","call_id":"c","output":"nothing"},
        {"role":"assistant","content":[{"type":"output_text","text":"Nothing there."}]}]}"#;
    let recording = recording(body);
    let calls: Vec<_> =
        recording.calls.iter().map(|call| (call.incoming.clone(), call.answer.clone())).collect();
    assert_eq!(calls, [(0..1, 1..3), (3..4, 4..5)], "items of one answer are one call");
    let between = recording.calls[1].at_ms - recording.calls[0].at_ms;
    assert_eq!(between, 3 * USUAL_STEP_MS / 2);
    let fixed = recording.fixed_tokens(&TokenModel::of(Family::O200k));
    assert!((5..60).contains(&fixed), "{fixed}");
}

#[test]
fn a_list_without_answers_has_no_calls() {
    assert!(recording(r#"[{"role":"user","content":"Hello"}]"#).calls.is_empty());
}

#[test]
fn a_codex_log_brings_the_view_after_its_compaction_along() {
    let line = |kind: &str, payload: &str| {
        format!(r#"{{"timestamp":"2026-02-01T10:00:00.000Z","type":"{kind}","payload":{payload}}}"#)
    };
    let says = |role: &str, text: &str| {
        let part = if role == "user" { "input_text" } else { "output_text" };
        line(
            "response_item",
            &format!(
                r#"{{"type":"message","role":"{role}","content":[{{"type":"{part}","text":"{text}"}}]}}"#
            ),
        )
    };
    let replaced = r#"{"message":"","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"What came before, in short."}]}]}"#;
    let log = [
        line("session_meta", r#"{"id":"s","cwd":"/srv","cli_version":"1"}"#),
        says("user", "Fix the parser"),
        says("assistant", "Done."),
        line("compacted", replaced),
        says("assistant", "I go on."),
    ];
    let recording = recording(&log.join("\n"));
    assert_eq!(recording.calls.len(), 2, "the compaction parts two answers");
    let (start, view) = recording.view_of(&recording.calls[1]);
    assert_eq!(start, recording.calls[1].answer.start);
    assert_eq!(view.len(), 1);
    assert!(recording.view_of(&recording.calls[0]).1.is_empty());
}
