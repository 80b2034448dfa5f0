//! Tests of each reason for a miss.

use std::time::Duration;

use throughline_tokens::Usage;
use throughline_transcript::WireFormat;
use throughline_wire::Request;

use super::{CacheOutcome, CacheRules, SentPrompt};
use crate::cache_marks::{CacheMarks, UnmarkedRequest};
use crate::cache_policy::{CacheTtl, MarkLayout};
use crate::fingerprint::{Fingerprint, PieceHash};

const RULES: CacheRules =
    CacheRules { lifetime: Some(Duration::from_secs(300)), minimum_tokens: Some(1_024) };

const BODY: &str = r#"{"model":"claude-x","max_tokens":9,"system":"rules","tools":[{"name":"f"}],"thinking":{"type":"enabled"},"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}"#;

fn sent(wire_format: WireFormat, body: &str, at_secs: i64, prompt_tokens: u64) -> SentPrompt {
    let request = Request::decode(wire_format, body).unwrap();
    let items = request.messages().iter().map(|message| PieceHash::of(message.json())).collect();
    let fingerprint = Fingerprint::of(&request, request.messages(), items);
    SentPrompt {
        fingerprint,
        sent_at_ms: at_secs * 1_000,
        prompt_tokens: Some(prompt_tokens),
        is_cached: true,
    }
}

fn usage(input: u64, cache_read: u64, cache_write: u64) -> Usage {
    Usage { input, cache_read, cache_write, ..Usage::default() }
}

/// Returns the outcome after a change of the body.
fn after(change: impl Fn(&str) -> String) -> CacheOutcome {
    let before = sent(WireFormat::Anthropic, BODY, 0, 10_000);
    let now = sent(WireFormat::Anthropic, &change(BODY), 60, 10_100);
    CacheOutcome::of_call(Some(&before), &now, Some(&usage(100, 0, 10_000)), RULES)
}

#[test]
fn what_follows_a_prompt_that_was_too_small_had_nothing_to_read() {
    let (before, now) =
        (sent(WireFormat::Anthropic, BODY, 0, 900), sent(WireFormat::Anthropic, BODY, 9, 1_100));
    let outcome = CacheOutcome::of_call(Some(&before), &now, Some(&usage(0, 0, 1_100)), RULES);
    assert_eq!(outcome, CacheOutcome::BelowMinimum { prompt_tokens: 900, minimum_tokens: 1_024 });
}

#[test]
fn each_reason() {
    assert_eq!(after(|body| body.replace("claude-x", "claude-y")), CacheOutcome::ModelChanged);
    assert_eq!(after(|body| body.replace(r#""f""#, r#""g""#)), CacheOutcome::ToolsChanged);
    assert_eq!(after(|body| body.replace("rules", "other rules")), CacheOutcome::SystemChanged);
    assert_eq!(
        after(|body| body.replace("enabled", "disabled")),
        CacheOutcome::ParametersChanged { names: vec!["thinking".to_owned()] }
    );
    assert_eq!(
        after(|body| body.replace(r#","thinking":{"type":"enabled"}"#, r#","tool_choice":"any""#)),
        CacheOutcome::ParametersChanged { names: vec!["thinking".to_owned(), "tool_choice".to_owned()] }
    );
    assert_eq!(after(|body| body.replace(r#""b""#, r#""B""#)), CacheOutcome::MessagesChanged { item: 1 });
    assert_eq!(after(str::to_owned), CacheOutcome::Unexplained);
    assert_eq!(
        after(|body| body.replace(r#""max_tokens":9"#, r#""max_tokens":10,"temperature":1"#)),
        CacheOutcome::Unexplained
    );
    // The first change in the order of the cache is reported.
    assert_eq!(
        after(|body| body.replace("rules", "x").replace(r#""f""#, r#""g""#)),
        CacheOutcome::ToolsChanged
    );
}

#[test]
fn a_system_prompt_among_the_messages() {
    let body =
        r#"{"model":"m","messages":[{"role":"system","content":"rules"},{"role":"user","content":"a"}]}"#;
    let before = sent(WireFormat::Chat, body, 0, 10_000);
    let now = sent(WireFormat::Chat, &body.replace("rules", "x"), 1, 10_000);
    assert_eq!(
        CacheOutcome::of_call(Some(&before), &now, Some(&usage(10_000, 0, 0)), RULES),
        CacheOutcome::SystemChanged
    );
}

#[test]
fn time_size_and_silence() {
    let before = sent(WireFormat::Anthropic, BODY, 0, 10_000);
    let late = sent(WireFormat::Anthropic, BODY, 301, 10_100);
    let miss = usage(100, 0, 10_000);
    assert_eq!(
        CacheOutcome::of_call(Some(&before), &late, Some(&miss), RULES),
        CacheOutcome::Expired { idle_secs: 301 }
    );
    let in_time = sent(WireFormat::Anthropic, BODY, 300, 10_100);
    assert_eq!(CacheOutcome::of_call(Some(&before), &in_time, Some(&miss), RULES), CacheOutcome::Unexplained);
    let unbounded = CacheRules { lifetime: None, ..RULES };
    assert_eq!(
        CacheOutcome::of_call(Some(&before), &late, Some(&miss), unbounded),
        CacheOutcome::Unexplained
    );
    let small = sent(WireFormat::Anthropic, BODY, 10, 1_000);
    assert_eq!(
        CacheOutcome::of_call(Some(&before), &small, Some(&usage(1_000, 0, 0)), RULES),
        CacheOutcome::BelowMinimum { prompt_tokens: 1_000, minimum_tokens: 1_024 }
    );
    assert_eq!(CacheOutcome::of_call(None, &late, Some(&miss), RULES), CacheOutcome::FirstCall);
    assert_eq!(CacheOutcome::of_call(Some(&before), &late, None, RULES), CacheOutcome::NotReported);
    // A clock that was set back is not a reason.
    let earlier = sent(WireFormat::Anthropic, BODY, -500, 10_100);
    assert_eq!(CacheOutcome::of_call(Some(&before), &earlier, Some(&miss), RULES), CacheOutcome::Unexplained);
}

#[test]
fn hits_and_what_only_looks_like_one() {
    let before = sent(WireFormat::Anthropic, BODY, 0, 10_000);
    let grown = BODY.replace(
        r#"{"role":"user","content":"c"}"#,
        r#"{"role":"user","content":"c"},{"role":"assistant","content":"d"}"#,
    );
    let now = sent(WireFormat::Anthropic, &grown, 60, 10_500);
    let outcome = |usage: Usage| CacheOutcome::of_call(Some(&before), &now, Some(&usage), RULES);
    assert_eq!(outcome(usage(500, 10_000, 0)), CacheOutcome::Hit);
    assert_eq!(outcome(usage(500, 9_984, 16)), CacheOutcome::Hit, "whole blocks of 128 tokens");
    assert_eq!(outcome(usage(0, 0, 10_500)), CacheOutcome::Unexplained, "a write is no hit");
    assert_eq!(outcome(usage(500, 2_000, 8_000)), CacheOutcome::Unexplained, "only the beginning was left");
    // Fewer messages than before, all of them cached.
    let shorter = BODY.replace(r#",{"role":"user","content":"c"}"#, "");
    let shorter = sent(WireFormat::Anthropic, &shorter, 60, 9_000);
    assert_eq!(
        CacheOutcome::of_call(Some(&before), &shorter, Some(&usage(0, 9_000, 0)), RULES),
        CacheOutcome::Hit
    );
    let changed = sent(WireFormat::Anthropic, &BODY.replace(r#""c""#, r#""C""#), 60, 10_000);
    let read = |tokens| {
        CacheOutcome::of_call(Some(&before), &changed, Some(&usage(10_000 - tokens, tokens, 0)), RULES)
    };
    assert_eq!(read(6_000), CacheOutcome::MessagesChanged { item: 2 });
    assert_eq!(read(9_900), CacheOutcome::Hit, "the change cost next to nothing");
    assert_eq!(CacheOutcome::of_call(None, &now, Some(&usage(100, 5_000, 0)), RULES), CacheOutcome::Hit);
}

#[test]
fn marks_that_moved_are_no_change() {
    let request = Request::decode(WireFormat::Anthropic, BODY).unwrap();
    let marks = CacheMarks { layout: MarkLayout::Anthropic, ttl: CacheTtl::OneHour };
    let hashes = |length: usize| -> Vec<PieceHash> {
        let messages = &request.messages()[..length];
        let unmarked = UnmarkedRequest {
            system: request.system(),
            notes_after_system: 0,
            tools: None,
            has_automatic_mark: false,
            messages,
        };
        marks.place(&unmarked).messages.iter().map(|json| PieceHash::of(json)).collect()
    };
    assert_eq!(hashes(3)[..1], hashes(1)[..]);
}

#[test]
fn fingerprints_are_kept_as_text() {
    let prompt = sent(WireFormat::Anthropic, BODY, 7, 10_000);
    let json = serde_json::to_string(&prompt).unwrap();
    assert_eq!(serde_json::from_str::<SentPrompt>(&json).unwrap(), prompt);
    assert!(json.len() < 400, "{json}");
    for bad in [r#""items":"xyz""#, r#""items":"0123456""#, r#""items":"é23456789""#] {
        let items = json.find(r#""items":"#).unwrap();
        let end = json[items + 9..].find('"').unwrap() + items + 10;
        let broken = format!("{}{bad}{}", &json[..items], &json[end..]);
        assert!(serde_json::from_str::<SentPrompt>(&broken).is_err(), "{broken}");
    }
}

#[test]
fn reports_that_speak_of_a_cache() {
    assert!(CacheOutcome::is_reported_in(
        r#"{"prompt_tokens":1,"prompt_tokens_details":{"cached_tokens":0}}"#
    ));
    assert!(CacheOutcome::is_reported_in(r#"{"input_tokens":1,"cache_read_input_tokens":0}"#));
    assert!(!CacheOutcome::is_reported_in(r#"{"prompt_tokens":1,"completion_tokens":2}"#));
}

#[test]
fn outcomes_are_distinguished_in_words() {
    let outcomes = [
        CacheOutcome::Hit,
        CacheOutcome::NotReported,
        CacheOutcome::FirstCall,
        CacheOutcome::ModelChanged,
        CacheOutcome::ToolsChanged,
        CacheOutcome::SystemChanged,
        CacheOutcome::ParametersChanged { names: vec!["thinking".to_owned()] },
        CacheOutcome::MessagesChanged { item: 3 },
        CacheOutcome::Expired { idle_secs: 9 },
        CacheOutcome::BelowMinimum { prompt_tokens: 1, minimum_tokens: 2 },
        CacheOutcome::Unexplained,
    ];
    let words: std::collections::HashSet<String> = outcomes.iter().map(ToString::to_string).collect();
    assert_eq!(words.len(), outcomes.len());
    for outcome in outcomes {
        let json = serde_json::to_string(&outcome).unwrap();
        assert_eq!(serde_json::from_str::<CacheOutcome>(&json).unwrap(), outcome);
    }
}
