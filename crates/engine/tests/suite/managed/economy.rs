//! Compaction decided in money, on a cold cache, and shorter tool results.

use proptest::prelude::*;
use throughline_engine::{
    CallInput, EngineEvent, Envelope, IncomingMessage, ManagedSession, PriceSource, RecallAccess, Trigger,
};
use throughline_store::{Link, LinkKind, NewSession};
use throughline_testkit::any_conversation;
use throughline_tokens::{Economy, LimitPolicy};
use throughline_transcript::{Message, Role, WireFormat};
use throughline_wire::RequestParts;

use crate::managed::prefix::{replay, unmarked};
use crate::managed::support::{Act, Stage, calling, envelope, reading, result, user, words};

/// A model whose price is known.
const PRICED: &str = "claude-sonnet-4-5";

fn stage(wire_format: WireFormat, economy: Economy) -> Stage {
    let mut stage = Stage::new(wire_format, 200_000);
    stage.setup.target.model = PRICED.to_owned();
    stage.setup.target.price_source = PriceSource::of_seller("");
    stage.setup.target.policy = LimitPolicy { economy, ..LimitPolicy::for_window(200_000) };
    stage
}

/// An agent that reads, step by step, about so many tokens each.
async fn read_on(
    stage: &Stage,
    session: &mut ManagedSession,
    steps: std::ops::Range<usize>,
    about_tokens: usize,
) {
    let wire_format = stage.wire_format;
    let parts = RequestParts::new(PRICED);
    let envelope = Envelope::build(wire_format, &parts).unwrap();
    let mut incoming = match steps.start {
        0 => vec![user(wire_format, "Read every part of the archive.")],
        first => vec![result(wire_format, &format!("call_{}", first - 1), "done")],
    };
    for step in steps {
        let call = format!("call_{step}");
        stage.script.then(Act::Say(reading(&call, &format!("part{step}.txt"))));
        stage.host.pass_secs(20);
        session.call(CallInput::new(envelope.clone(), std::mem::take(&mut incoming))).await.unwrap();
        session.until_prepared().await;
        incoming.push(result(wire_format, &call, &words(step, about_tokens * 2 / 5)));
    }
}

/// What brought compactions about, and the prompt before each.
fn compactions(stage: &Stage) -> Vec<(Trigger, u64)> {
    let made = |event| match event {
        EngineEvent::CompactionCompleted { trigger, report, .. } => Some((trigger, report.tokens.before)),
        _ => None,
    };
    stage.told().into_iter().filter_map(made).collect()
}

#[tokio::test]
async fn a_compaction_that_pays_does_not_wait_for_the_threshold() {
    for wire_format in WireFormat::ALL {
        let stage_off = stage(wire_format, Economy::OFF);
        let mut session = stage_off.open().await;
        read_on(&stage_off, &mut session, 0..40, 1_500).await;
        assert_eq!(compactions(&stage_off), [], "{wire_format}");

        let balanced = stage(wire_format, Economy::BALANCED);
        let mut session = balanced.open().await;
        read_on(&balanced, &mut session, 0..40, 1_500).await;
        let made = compactions(&balanced);
        assert!((1..=4).contains(&made.len()), "{wire_format}: {made:?}");
        assert!(made.iter().all(|(_, before)| (15_000..60_000).contains(before)), "{wire_format}: {made:?}");
        let words: Vec<String> = balanced
            .told()
            .into_iter()
            .filter_map(|event| match event {
                EngineEvent::CompactionCompleted { report, .. } => report.money_words(),
                _ => None,
            })
            .collect();
        assert!(words[0].contains("cents, saves ") && words[0].ends_with("cents per call"), "{words:?}");
    }
}

#[tokio::test]
async fn a_cold_cache_is_compacted_before_the_next_call() {
    for wire_format in WireFormat::ALL {
        let stage = stage(wire_format, Economy::BALANCED);
        let mut session = stage.open().await;
        read_on(&stage, &mut session, 0..12, 1_500).await;
        assert_eq!(compactions(&stage), [], "{wire_format}: nothing pays yet");
        stage.host.pass_secs(270);
        read_on(&stage, &mut session, 12..13, 1_500).await;
        assert_eq!(compactions(&stage), [], "{wire_format}: the cache is warm");
        stage.host.pass_secs(600);
        read_on(&stage, &mut session, 13..14, 1_500).await;
        let made = compactions(&stage);
        assert!(matches!(made.as_slice(), [(Trigger::ColdCache, _)]), "{wire_format}: {made:?}");
        // The answer whose call is being answered is still there as it was said.
        assert!(unmarked(&stage.script.last_body()).contains("part12.txt"), "{wire_format}");
    }
}

#[tokio::test]
async fn a_cache_that_the_client_marked_for_an_hour_stays_warm_for_an_hour() {
    let stage = stage(WireFormat::Anthropic, Economy::BALANCED);
    let mut session = stage.open().await;
    read_on(&stage, &mut session, 0..12, 1_500).await;
    let marked = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_11","content":"done","cache_control":{"type":"ephemeral","ttl":"1h"}}]}"#;
    let marked = throughline_transcript::decode_message_text(marked.to_owned()).unwrap();
    let envelope = Envelope::build(WireFormat::Anthropic, &RequestParts::new(PRICED)).unwrap();
    session.call(CallInput::new(envelope.clone(), vec![IncomingMessage::from(marked)])).await.unwrap();
    stage.host.pass_secs(1_800);
    session
        .call(CallInput::new(envelope.clone(), vec![user(WireFormat::Anthropic, "Go on.")]))
        .await
        .unwrap();
    assert_eq!(compactions(&stage), []);
    stage.host.pass_secs(3_700);
    session.call(CallInput::new(envelope, vec![user(WireFormat::Anthropic, "Go on.")])).await.unwrap();
    assert_eq!(compactions(&stage).len(), 1);
}

#[tokio::test]
async fn a_side_call_is_sent_as_it_is() {
    let stage = stage(WireFormat::Anthropic, Economy::THRIFT);
    let main = stage.open().await;
    let link = Link { parent: main.id().clone(), kind: LinkKind::SideCall, leaves_at: 0 };
    let new = NewSession { link: Some(link), ..stage.new_session("side") };
    let mut session = ManagedSession::create(stage.setup.clone(), new).await.unwrap();
    read_on(&stage, &mut session, 0..40, 1_500).await;
    stage.host.pass_secs(10_000);
    read_on(&stage, &mut session, 40..41, 1_500).await;
    assert_eq!(compactions(&stage), []);
}

#[tokio::test]
async fn nothing_is_done_where_the_price_is_not_known_and_that_is_reported_once() {
    let mut stage = Stage::new(WireFormat::Anthropic, 200_000);
    stage.setup.target.policy.economy = Economy::THRIFT;
    let mut session = stage.open().await;
    let mut incoming = vec![user(WireFormat::Anthropic, "Read.")];
    for step in 0..40 {
        let call = format!("call_{step}");
        stage.script.then(Act::Say(reading(&call, "part.txt")));
        session
            .call(CallInput::new(envelope(WireFormat::Anthropic), std::mem::take(&mut incoming)))
            .await
            .unwrap();
        incoming.push(result(WireFormat::Anthropic, &call, &words(step, 600)));
    }
    assert_eq!(compactions(&stage), []);
    let told = stage.told().into_iter().filter(
        |event| matches!(event, EngineEvent::Notice { text } if text.contains("the price of test-model is not known")),
    );
    assert_eq!(told.count(), 1);
}

/// A log of about 9,000 bytes with one error in it.
fn log() -> String {
    let mut log: String =
        (0..200).map(|number| format!("test part::case_{number} ... ok and fine\n")).collect();
    log.insert_str(4_400, "\ntest part::parser ... FAILED at src/parse.rs:12\n");
    log
}

#[tokio::test]
async fn results_are_shortened_where_the_model_can_read_all_of_them() {
    for wire_format in WireFormat::ALL {
        for (access, is_shortened) in
            [(RecallAccess::Offered("Read {artifact}.".to_owned()), true), (RecallAccess::NotOffered, false)]
        {
            let stage = stage(wire_format, Economy::THRIFT);
            let mut session = stage.open().await;
            let envelope = Envelope::build(wire_format, &RequestParts::new(PRICED)).unwrap();
            stage.script.then(Act::Say(calling("call_0", "bash", r#"{"command":"test"}"#)));
            session
                .call(CallInput::new(envelope.clone(), vec![user(wire_format, "Test it.")]))
                .await
                .unwrap();
            session.set_recall_access(access);
            session
                .call(CallInput::new(envelope, vec![result(wire_format, "call_0", &log())]))
                .await
                .unwrap();
            let body = stage.script.last_body();
            assert!(body.contains("parser ... FAILED"), "{wire_format}: {body}");
            assert_eq!(body.contains("case_90 "), !is_shortened, "{wire_format}: {body}");
            assert_eq!(body.contains("kept as artifact"), is_shortened, "{wire_format}: {body}");
            // The record has what the tool returned, and all of it can be read.
            assert!(stage.transcript().iter().any(|message| message.contains("case_90 ")));
            let artifacts = stage.store.artifacts(&stage.setup.owner, &stage.tip()).unwrap();
            assert_eq!(artifacts.len(), usize::from(is_shortened));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(throughline_testkit::cases(96)))]

    /// Between two compactions nothing that was sent changes, whatever is decided and however long anybody waits.
    #[test]
    fn what_was_sent_stays_sent_in_every_mode(
        list in any_conversation(),
        window_tokens in 4_000u64..40_000,
        thrift: bool,
        pauses in prop::collection::vec(prop_oneof![3 => 1i64..200, 1 => 400i64..8_000], 1..6),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let economy = if thrift { Economy::THRIFT } else { Economy::BALANCED };
            let mut stage = stage(list.wire_format, economy);
            stage.setup.target.policy = LimitPolicy { economy, ..LimitPolicy::for_window(window_tokens) };
            stage.setup.tool_output.recall = Some("Read {artifact}.".to_owned());
            let mut session = stage.open().await;
            let messages = list.messages();
            // The conversation comes in parts, with a pause before each.
            let size = messages.len().div_ceil(pauses.len()).max(1);
            let mut parts: Vec<Vec<Message>> = vec![Vec::new()];
            for message in messages {
                let is_full = parts.last().is_some_and(|part| part.len() >= size);
                let ends = parts.last().and_then(|part| part.last()).is_some_and(|last| last.role() == Role::Assistant);
                if is_full && ends && message.role() != Role::Assistant {
                    parts.push(Vec::new());
                }
                parts.last_mut().unwrap().push(message);
            }
            for (part, pause) in parts.iter().zip(pauses.iter().cycle()) {
                stage.host.pass_secs(*pause);
                replay(&stage, &mut session, part, &[]).await?;
            }
            Ok::<(), TestCaseError>(())
        })?;
    }
}
