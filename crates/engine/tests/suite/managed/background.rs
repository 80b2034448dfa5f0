//! Summaries prepared while the conversation goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use throughline_compaction::Quality;
use throughline_compaction::{Maker, Section, Summariser, SummaryDocument, SummaryFuture, SummaryRequest};
use throughline_engine::{Automatic, Compressor, CompressorSetup, EngineEvent, OneSummariser};
use throughline_transcript::WireFormat;
use tokio::sync::Semaphore;

use crate::managed::support::{Stage, talk, talk_until_compacted};

/// A summariser that writes a page whenever it is allowed to.
struct Slow {
    allowed: Semaphore,
    asked: AtomicUsize,
}

impl Summariser for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn maker(&self) -> Maker {
        Maker::Model
    }

    fn window_tokens(&self) -> Option<u64> {
        None
    }

    fn summarise<'a>(&'a self, request: SummaryRequest<'a>) -> SummaryFuture<'a> {
        Box::pin(async move {
            self.asked.fetch_add(1, Ordering::Relaxed);
            self.allowed.acquire().await.unwrap().forget();
            let mut document: SummaryDocument = request.earlier.cloned().unwrap_or_default();
            document.add(Section::Goal, "Read the files and answer the questions.");
            Ok(document)
        })
    }
}

fn stage(wire_format: WireFormat, window_tokens: u64, allowed: usize) -> (Stage, Arc<Slow>) {
    let slow = Arc::new(Slow { allowed: Semaphore::new(allowed), asked: AtomicUsize::new(0) });
    let summarisers = Arc::new(OneSummariser(Arc::<Slow>::clone(&slow)));
    let setup = CompressorSetup { summarisers, ..CompressorSetup::by_rules() };
    (Stage::with_engine(wire_format, window_tokens, Arc::new(Compressor::new(setup))), slow)
}

/// The share of the threshold at which a summary was first prepared.
fn prepared_at(stage: &Stage) -> u64 {
    let mut last = 0;
    for event in stage.told() {
        match event {
            EngineEvent::Pressure { pressure, .. } => last = pressure.of_threshold_permille(),
            EngineEvent::PreparationStarted => return last,
            _ => {}
        }
    }
    panic!("nothing was prepared")
}

#[tokio::test]
async fn the_conversation_goes_on_while_a_summary_is_written() {
    let (stage, slow) = stage(WireFormat::Anthropic, 16_000, 0);
    let mut session = stage.open().await;
    // The summariser is not allowed to finish, and still nobody waits before the threshold.
    let mut turn = 0;
    while slow.asked.load(Ordering::Relaxed) == 0 {
        talk(&stage, &mut session, turn).await;
        turn += 1;
        assert!(turn < 60);
    }
    // Nor behind it, as long as there is room.
    while session.pressure().of_threshold_permille() < 1_200 {
        talk(&stage, &mut session, turn).await;
        turn += 1;
    }
    assert_eq!(session.compactions(), 0);
    let share = prepared_at(&stage);
    assert!((700..1_000).contains(&share), "{share}");
    // Once it may finish, the threshold is crossed with what was prepared.
    slow.allowed.add_permits(100);
    talk_until_compacted(&stage, &mut session, 1).await;
    let done = stage.told().into_iter().find_map(|event| match event {
        EngineEvent::CompactionCompleted { quality, report, .. } => Some((quality, report)),
        _ => None,
    });
    let (quality, report) = done.unwrap();
    assert_eq!(quality, Quality::Model);
    assert!(report.prepared);
    assert!(stage.told_names().contains(&"preparation_ready".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_never_comes_is_not_waited_for_without_end() {
    let (stage, _slow) = stage(WireFormat::Chat, 16_000, 0);
    let mut session = stage.open().await;
    // The summariser never answers. While there is room nobody waits for it; then it is given its time, and rules step in.
    let mut turn = 0;
    while session.compactions() == 0 {
        talk(&stage, &mut session, turn).await;
        turn += 1;
        assert!(turn < 80, "{:?}", stage.told_names());
    }
    let failure = |event: &EngineEvent| matches!(event, EngineEvent::PreparationFailed { detail } if detail.contains("did not answer within 900 s"));
    assert!(stage.told().iter().any(failure), "{:?}", stage.told_names());
    let by_rules = |event: &EngineEvent| {
        matches!(event, EngineEvent::CompactionCompleted { report, .. }
            if report.warnings.iter().any(|warning| warning.contains("did not answer within 900 s")))
    };
    assert!(stage.told().iter().any(by_rules));
}

#[tokio::test]
async fn every_compaction_finds_its_summary_prepared() {
    for wire_format in WireFormat::ALL {
        let (stage, slow) = stage(wire_format, 16_000, 1_000);
        let mut session = stage.open().await;
        let mut turn = 0;
        while session.compactions() < 3 {
            talk(&stage, &mut session, turn).await;
            // However busy the machine is, what is prepared is there before the next question.
            session.until_prepared().await;
            turn += 1;
            assert!(turn < 400, "three compactions never came");
        }
        let prepared = stage.told().into_iter().filter_map(|event| match event {
            EngineEvent::CompactionCompleted { report, .. } => Some(report.prepared),
            _ => None,
        });
        assert!(prepared.into_iter().all(|prepared| prepared), "{wire_format}");
        // Each message was told about once: a page or two for every compaction, not one for every call.
        let asked = slow.asked.load(Ordering::Relaxed);
        assert!((3..=9).contains(&asked), "{wire_format}: {asked}");
    }
}

#[tokio::test]
async fn a_person_who_asks_for_something_else_does_not_wait_for_what_is_prepared() {
    let (stage, slow) = stage(WireFormat::Anthropic, 16_000, 0);
    let mut session = stage.open().await;
    let mut turn = 0;
    while slow.asked.load(Ordering::Relaxed) == 0 {
        talk(&stage, &mut session, turn).await;
        turn += 1;
    }
    assert!(session.is_preparing());
    // Whatever is asked now is answered; the one who was asked first is not waited for.
    slow.allowed.add_permits(1);
    let focus = Some("the files".to_owned());
    let manual = throughline_engine::ManualCompaction { focus, ..Default::default() };
    let asked_before = slow.asked.load(Ordering::Relaxed);
    let result = session.compact(manual).await;
    assert!(matches!(result, throughline_engine::CompactionResult::Completed(_)), "{result:?}");
    assert_eq!(slow.asked.load(Ordering::Relaxed), asked_before + 1);
}

#[tokio::test]
async fn who_stops_waiting_for_what_is_prepared_does_not_give_it_up() {
    let (stage, slow) = stage(WireFormat::Anthropic, 16_000, 0);
    let mut session = stage.open().await;
    let mut turn = 0;
    while slow.asked.load(Ordering::Relaxed) == 0 {
        talk(&stage, &mut session, turn).await;
        turn += 1;
    }
    tokio::select! {
        biased;
        () = session.until_prepared() => panic!("nobody has written it yet"),
        () = tokio::task::yield_now() => {}
    }
    assert!(session.is_preparing());
    slow.allowed.add_permits(1_000);
    session.until_prepared().await;
    let ready = |event: &EngineEvent| matches!(event, EngineEvent::PreparationReady { .. });
    assert!(stage.told().iter().any(ready), "{:?}", stage.told());
}

#[tokio::test]
async fn nothing_is_prepared_when_compaction_is_off() {
    let (mut stage, slow) = stage(WireFormat::Chat, 16_000, 1_000);
    stage.setup.policy.automatic = Automatic::Off;
    let mut session = stage.open().await;
    for turn in 0..30 {
        talk(&stage, &mut session, turn).await;
    }
    assert_eq!(slow.asked.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_session_that_is_dropped_gives_its_summary_up() {
    let (stage, slow) = stage(WireFormat::Chat, 16_000, 0);
    let mut session = stage.open().await;
    let mut turn = 0;
    while slow.asked.load(Ordering::Relaxed) == 0 {
        talk(&stage, &mut session, turn).await;
        turn += 1;
    }
    drop(session);
    tokio::task::yield_now().await;
    slow.allowed.add_permits(1);
    tokio::task::yield_now().await;
    assert_eq!(slow.allowed.available_permits(), 1, "nobody is left to take it");
}
