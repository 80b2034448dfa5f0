//! What a provider's cache did, and why it did not: worked out from what was sent before, booked with the call.

use throughline_engine::{CallInput, Envelope, ManagedSession, ManualCompaction};
use throughline_provider::CacheOutcome;
use throughline_store::Owner;
use throughline_tokens::Usage;
use throughline_transcript::{RawJson, WireFormat};
use throughline_wire::{RequestParts, System};

use crate::managed::support::{Act, MODEL, Stage, envelope, reading, result, saying, talk, user, words};

const WIRE: WireFormat = WireFormat::Anthropic;

fn missed() -> Usage {
    Usage { input: 0, cache_write: 9_000, output: 10, ..Usage::default() }
}

fn hit() -> Usage {
    Usage { input: 100, cache_read: 8_900, output: 10, ..Usage::default() }
}

async fn ask(stage: &Stage, session: &mut ManagedSession, usage: Usage, envelope: Envelope) -> CacheOutcome {
    stage.script.then(Act::SayUsed("Yes.", usage));
    let input = CallInput::new(envelope, vec![user(WIRE, "Is it so?")]);
    session.call(input).await.unwrap().cache
}

fn other(system: &str, tool: &str, thinking: Option<&'static str>) -> Envelope {
    let tools =
        format!(r#"[{{"name":"{tool}","description":"Reads a file","input_schema":{{"type":"object"}}}}]"#);
    let parameters: Vec<(&str, &str)> = thinking.map(|json| ("thinking", json)).into_iter().collect();
    let parts = RequestParts {
        system: Some(System::Text(system)),
        tools: Some(RawJson(&tools)),
        parameters: &parameters,
        ..RequestParts::new(MODEL)
    };
    Envelope::build(WIRE, &parts).unwrap()
}

#[tokio::test]
async fn every_miss_has_its_reason_in_the_ledger() {
    let mut stage = Stage::new(WIRE, 200_000);
    stage.setup.target.cache_minimum_tokens = Some(1_024);
    let mut session = stage.open().await;
    let small = Usage { input: 500, output: 10, ..Usage::default() };
    let outcome = ask(&stage, &mut session, small, envelope(WIRE)).await;
    assert_eq!(outcome, CacheOutcome::BelowMinimum { prompt_tokens: 500, minimum_tokens: 1_024 });
    assert_eq!(ask(&stage, &mut session, hit(), envelope(WIRE)).await, CacheOutcome::Hit);
    // A write is no hit.
    assert_eq!(ask(&stage, &mut session, missed(), envelope(WIRE)).await, CacheOutcome::Unexplained);
    let tools = other("You are a careful engineer. Keep to the style of the repository.", "search", None);
    assert_eq!(ask(&stage, &mut session, missed(), tools).await, CacheOutcome::ToolsChanged);
    let system = other("You are a careless engineer.", "search", None);
    assert_eq!(ask(&stage, &mut session, missed(), system).await, CacheOutcome::SystemChanged);
    let thinking = || {
        other("You are a careless engineer.", "search", Some(r#"{"type":"enabled","budget_tokens":1024}"#))
    };
    let outcome = ask(&stage, &mut session, missed(), thinking()).await;
    assert_eq!(outcome, CacheOutcome::ParametersChanged { names: vec!["thinking".to_owned()] });
    stage.host.pass_secs(301);
    let outcome = ask(&stage, &mut session, missed(), thinking()).await;
    assert_eq!(outcome, CacheOutcome::Expired { idle_secs: 301 });
    let calls = stage.store.calls(&Owner::default(), session.id()).unwrap();
    let booked: Vec<Option<&str>> = calls.iter().map(|call| call.call.cache_miss.as_deref()).collect();
    assert_eq!(
        booked,
        [
            Some("500 tokens are below the minimum of 1024"),
            None,
            Some("nothing changed, dropped by the provider"),
            Some("the tools changed"),
            Some("the system prompt changed"),
            Some("parameters changed: thinking"),
            Some("expired after 301 s"),
        ],
        "each is booked, though the server gives every answer the same id"
    );
}

#[tokio::test]
async fn a_compaction_is_a_reason() {
    let stage = Stage::new(WIRE, 200_000);
    let mut session = stage.open().await;
    for turn in 0..12 {
        talk(&stage, &mut session, turn).await;
    }
    session.compact(ManualCompaction::default()).await;
    let outcome = ask(&stage, &mut session, missed(), envelope(WIRE)).await;
    // The note behind the system prompt comes with the first summary.
    assert_eq!(outcome, CacheOutcome::SystemChanged);
    for turn in 12..24 {
        talk(&stage, &mut session, turn).await;
    }
    session.compact(ManualCompaction::default()).await;
    let outcome = ask(&stage, &mut session, missed(), envelope(WIRE)).await;
    assert!(matches!(outcome, CacheOutcome::MessagesChanged { .. }), "{outcome:?}");
}

#[tokio::test]
async fn another_process_knows_what_was_sent_and_how_large_it_was() {
    for wire_format in WireFormat::ALL {
        let stage = Stage::new(wire_format, 200_000);
        let mut session = stage.open().await;
        for turn in 0..6 {
            talk(&stage, &mut session, turn).await;
        }
        let (pressure, measured, idle) =
            (session.pressure(), session.last_prompt_tokens(), session.idle_in_ms());
        drop(session);
        let mut again = stage.reopen().await;
        assert_eq!(again.pressure(), pressure, "{wire_format}");
        assert_eq!(again.last_prompt_tokens(), measured, "{wire_format}");
        assert_eq!(again.idle_in_ms(), idle, "{wire_format}");
        stage.script.then(Act::SayUsed("Yes.", missed()));
        let outcome = again.call(saying(wire_format, "Is it so?")).await.unwrap();
        assert_eq!(outcome.cache, CacheOutcome::Unexplained, "{wire_format}: nothing changed");
        drop(again);
        let mut third = stage.reopen().await;
        stage.script.then(Act::SayUsed("Yes.", missed()));
        let parts = RequestParts { system: Some(System::Text("Another.")), ..RequestParts::new(MODEL) };
        let input =
            CallInput::new(Envelope::build(wire_format, &parts).unwrap(), vec![user(wire_format, "And?")]);
        assert_eq!(third.call(input).await.unwrap().cache, CacheOutcome::ToolsChanged, "{wire_format}");
    }
}

#[tokio::test]
async fn a_turn_of_many_blocks_is_bridged() {
    // Twelve results of parallel calls: the mark of the call before is out of a cache's reach from the end.
    let stage = Stage::new(WIRE, 200_000);
    let mut session = stage.open().await;
    talk(&stage, &mut session, 0).await;
    stage.script.then(Act::Say(reading("one", "a.rs")));
    session.call(saying(WIRE, &words(2, 20))).await.unwrap();
    let before = stage.script.last_body();
    let mut results = vec![result(WIRE, "one", "fn a() {}")];
    results.extend((0..24).map(|number| user(WIRE, &format!("Note {number}"))));
    let outcome = session.call(CallInput::new(envelope(WIRE), results)).await.unwrap();
    let end_of_call_before = RawJson(&before).get("messages").unwrap().elements().count() - 1;
    assert_eq!(outcome.marks.intermediate, Some(end_of_call_before));
    assert_eq!(outcome.marks.on_messages[0], end_of_call_before);
}
