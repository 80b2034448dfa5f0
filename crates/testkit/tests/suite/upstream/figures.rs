//! Usage by the rules of the provider's cache, reported on each wire as that wire reports it.

use std::time::Duration;

use throughline_provider::{CacheStyle, PrefixCache};
use throughline_testkit::{Reply, Script, ScriptedUpstream, TestClock, UpstreamOptions};
use throughline_tokens::Usage;
use throughline_transcript::WireFormat;
use throughline_wire::Streaming;

use crate::upstream::send;

fn words(count: usize) -> String {
    (0..count).map(|word| format!("word{word} ")).collect()
}

async fn caching(style: CacheStyle, clock: &TestClock) -> ScriptedUpstream {
    let options = UpstreamOptions {
        cache: Some(PrefixCache::new(style)),
        clock: clock.clone(),
        ..UpstreamOptions::default()
    };
    ScriptedUpstream::start_with(options, Script::always(Reply::text("A short answer."))).await.unwrap()
}

async fn usage(upstream: &ScriptedUpstream, wire: WireFormat, streaming: Streaming, body: String) -> Usage {
    let answer = send(upstream, wire, streaming, body).await.unwrap();
    answer.usage().unwrap().unwrap().usage
}

fn marked(rest: &str) -> String {
    format!(
        r#"{{"model":"claude-opus-5","max_tokens":100,"system":[{{"type":"text","text":"{}","cache_control":{{"type":"ephemeral"}}}}],"messages":[{{"role":"user","content":"hello"}}]{rest}}}"#,
        words(2_000)
    )
}

#[tokio::test]
async fn a_marked_prompt_is_written_read_and_forgotten() {
    let clock = TestClock::default();
    let upstream = caching(CacheStyle::Marks, &clock).await;
    let wire = WireFormat::Anthropic;
    let first = usage(&upstream, wire, Streaming::Whole, marked("")).await;
    assert!(first.cache_write > 2_000 && first.cache_read == 0);
    assert!((1..20).contains(&first.input) && (2..12).contains(&first.output));
    clock.advance(Duration::from_secs(299));
    let second = usage(&upstream, wire, Streaming::Streamed, marked(r#","stream":true"#)).await;
    assert_eq!((second.cache_read, second.cache_write, second.input), (first.cache_write, 0, first.input));
    clock.advance(Duration::from_secs(301));
    let third = usage(&upstream, wire, Streaming::Whole, marked("")).await;
    assert_eq!(third, first);
}

#[tokio::test]
async fn automatic_caching_is_reported_inside_the_prompt() {
    for wire in [WireFormat::Chat, WireFormat::Responses] {
        let upstream = caching(CacheStyle::AUTOMATIC, &TestClock::default()).await;
        let text = words(2_000);
        let body = |more: &str| match wire {
            WireFormat::Chat => format!(
                r#"{{"model":"gpt-5","messages":[{{"role":"system","content":"{text}"}},{{"role":"user","content":"{more}"}}]}}"#
            ),
            _ => format!(
                r#"{{"model":"gpt-5","instructions":"{text}","input":[{{"role":"user","content":"{more}"}}]}}"#
            ),
        };
        let first = usage(&upstream, wire, Streaming::Whole, body("one")).await;
        let second = usage(&upstream, wire, Streaming::Whole, body("two")).await;
        assert_eq!((first.cache_read, first.cache_write), (0, 0));
        assert_eq!(second.cache_read % 128, 0);
        let share = second.cache_read as f64 / first.prompt() as f64;
        assert!((0.9..1.0).contains(&share), "{wire:?}: {share}");
        assert_eq!(first.prompt(), second.prompt());
    }
}

#[tokio::test]
async fn marks_that_a_provider_refuses_are_refused_here() {
    let upstream = caching(CacheStyle::Marks, &TestClock::default()).await;
    let block = r#"{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}"#;
    let body = format!(
        r#"{{"model":"claude-opus-5","max_tokens":9,"messages":[{{"role":"user","content":[{}]}}]}}"#,
        [block; 5].join(",")
    );
    let error = send(&upstream, WireFormat::Anthropic, Streaming::Whole, body).await.unwrap_err();
    assert_eq!(error.trouble().unwrap().status, Some(400));
}

#[tokio::test]
async fn a_call_that_failed_wrote_nothing() {
    let options =
        UpstreamOptions { cache: Some(PrefixCache::new(CacheStyle::Marks)), ..UpstreamOptions::default() };
    let replies = vec![Reply::error(500, "api_error", "oops"), Reply::text("Yes."), Reply::text("Yes.")];
    let upstream = ScriptedUpstream::start_with(options, replies).await.unwrap();
    let wire = WireFormat::Anthropic;
    send(&upstream, wire, Streaming::Whole, marked("")).await.unwrap_err();
    assert_eq!(usage(&upstream, wire, Streaming::Whole, marked("")).await.cache_read, 0);
    assert!(usage(&upstream, wire, Streaming::Whole, marked("")).await.cache_read > 0);
}
