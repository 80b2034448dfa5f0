//! Budgets beside a large fixed part: compactions that pay for themselves, and none that do not.

use std::sync::Arc;

use throughline_compaction::NoOpReason;
use throughline_compaction::{Maker, SummariseError, Summariser, SummaryFuture, SummaryRequest};
use throughline_engine::{
    CallInput, CompactionResult, Compressor, CompressorSetup, EngineEvent, Envelope, ManualCompaction,
    OneSummariser,
};
use throughline_tokens::LimitPolicy;
use throughline_transcript::{RawJson, WireFormat};
use throughline_wire::RequestParts;

use crate::managed::support::{Act, MODEL, Stage, reading, result, user, words};

/// A request whose tools take about so many tokens.
fn with_tools(wire_format: WireFormat, about_tokens: usize) -> Envelope {
    // A word of these is about two and a half tokens.
    let about = words(5, about_tokens * 2 / 5);
    let tools = match wire_format {
        WireFormat::Anthropic => {
            format!(r#"[{{"name":"t","description":"{about}","input_schema":{{"type":"object"}}}}]"#)
        }
        _ => format!(
            r#"[{{"type":"function","function":{{"name":"t","description":"{about}","parameters":{{"type":"object"}}}}}}]"#
        ),
    };
    let parts = RequestParts { tools: Some(RawJson(&tools)), ..RequestParts::new(MODEL) };
    Envelope::build(wire_format, &parts).unwrap()
}

/// A compaction that was made, in tokens.
#[derive(Debug)]
struct Made {
    before: u64,
    freed: u64,
    /// What stood behind fixed part and head.
    messages: u64,
}

impl Made {
    /// About half of what stands behind fixed part and head goes at least.
    fn frees_half(&self) -> bool {
        self.freed * 21 >= self.messages * 10
    }
}

/// The compactions that were made.
fn made(stage: &Stage) -> Vec<Made> {
    let done = |event| match event {
        EngineEvent::CompactionCompleted { report, .. } => {
            let payback = report.payback.unwrap();
            let kept = payback.after_tokens - payback.rewritten_tokens;
            let (before, after) = (report.tokens.before, report.tokens.after);
            Some(Made { before, freed: before - after, messages: before - kept })
        }
        _ => None,
    };
    stage.told().into_iter().filter_map(done).collect()
}

/// What was told of compactions that would not have paid.
fn waits(stage: &Stage) -> Vec<String> {
    let told = |event| match event {
        EngineEvent::CompactionNoOp { reason: NoOpReason::DoesNotPay, detail, .. } => Some(detail),
        _ => None,
    };
    stage.told().into_iter().filter_map(told).collect()
}

#[tokio::test]
async fn a_large_fixed_part_is_not_compacted_with_every_call() {
    for wire_format in WireFormat::ALL {
        let mut stage = Stage::new(wire_format, 90_000);
        stage.setup.target.policy =
            LimitPolicy { reserved_output_tokens: 32_000, ..LimitPolicy::for_window(90_000) };
        let mut session = stage.open().await;
        let envelope = with_tools(wire_format, 31_000);
        let mut incoming = vec![user(wire_format, "Read every part of the archive.")];
        for step in 0..30 {
            let call = format!("call_{step}");
            stage.script.then(Act::Say(reading(&call, "archive.txt")));
            session.call(CallInput::new(envelope.clone(), std::mem::take(&mut incoming))).await.unwrap();
            session.until_prepared().await;
            incoming.push(result(wire_format, &call, &words(step, 1_500)));
        }
        let limits = session.model().limits;
        assert!((26_000..36_000).contains(&limits.fixed_tokens), "{wire_format}: {limits:?}");
        let made = made(&stage);
        assert!((1..=3).contains(&made.len()), "{wire_format}: {made:?}");
        assert!(made.iter().all(Made::frees_half), "{wire_format}: {made:?}, {limits:?}");
        assert!(waits(&stage).len() <= 4, "it is told once for each view: {:?}", waits(&stage));
    }
}

#[tokio::test]
async fn a_small_window_is_compacted_rarely_and_well() {
    for wire_format in WireFormat::ALL {
        let stage = Stage::new(wire_format, 8_192);
        let mut session = stage.open().await;
        let envelope = with_tools(wire_format, 2_400);
        for turn in 0..220 {
            let words = words(turn, 12);
            session.call(CallInput::new(envelope.clone(), vec![user(wire_format, &words)])).await.unwrap();
            session.until_prepared().await;
        }
        let limits = session.model().limits;
        let made = made(&stage);
        assert!(!made.is_empty(), "{wire_format}");
        // About fifty tokens a turn, and at least 1,500 of them go each time.
        assert!(made.len() <= 8, "{wire_format}: {made:?}");
        assert!(made.iter().all(Made::frees_half), "{wire_format}: {made:?}, {limits:?}");
        assert!(made.iter().all(|made| made.before <= 8_192), "{wire_format}: {made:?}");
    }
}

/// A summariser that must not be asked.
struct Expensive;

impl Summariser for Expensive {
    fn name(&self) -> &str {
        "expensive"
    }

    fn maker(&self) -> Maker {
        Maker::Model
    }

    fn window_tokens(&self) -> Option<u64> {
        None
    }

    fn summarise<'a>(&'a self, _request: SummaryRequest<'a>) -> SummaryFuture<'a> {
        Box::pin(std::future::ready(Err(SummariseError::Permanent("it was asked".to_owned()))))
    }
}

/// One message that fills most of the window: everything but a few words is the tail.
#[tokio::test]
async fn a_compaction_that_would_free_next_to_nothing_is_neither_paid_for_nor_made() {
    let wire_format = WireFormat::Anthropic;
    let summarisers = Arc::new(OneSummariser(Arc::new(Expensive)));
    let engine = Compressor::new(CompressorSetup { summarisers, ..CompressorSetup::by_rules() });
    let stage = Stage::with_engine(wire_format, 200_000, Arc::new(engine));
    let mut session = stage.open().await;
    let envelope = with_tools(wire_format, 1_000);
    for turn in 0..3 {
        let words = words(turn, 200);
        session.call(CallInput::new(envelope.clone(), vec![user(wire_format, &words)])).await.unwrap();
    }
    session.call(CallInput::new(envelope.clone(), vec![user(wire_format, &words(9, 60_000))])).await.unwrap();
    session.until_prepared().await;
    assert!(session.pressure().of_threshold_permille() > 1_000, "{:?}", session.pressure());
    session.call(CallInput::new(envelope.clone(), vec![user(wire_format, "What is in it?")])).await.unwrap();
    assert_eq!(session.compactions(), 0, "{:?}", made(&stage));
    let told = waits(&stage);
    assert_eq!(told.len(), 1, "{:?}", stage.told_names());
    assert!(told[0].contains("are required"), "{told:?}");
    // A request by hand is carried out all the same.
    let by_hand = session.compact(ManualCompaction::default()).await;
    assert!(matches!(by_hand, CompactionResult::Completed(_)), "{by_hand:?}");
}
