//! Whatever fails, and whenever a call is given up: what was said is in the record once, the view in memory is the
//! record's, and the conversation goes on.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use throughline_engine::{
    CallInput, Compressor, CompressorSetup, ContextEngine, EngineEvent, ManagedSession, RecordPolicy,
    SessionError,
};
use throughline_provider::ProviderErrorKind;
use throughline_store::{EndReason, Owner, SessionId, Store, ViewMessage};
use throughline_transcript::{Groups, Violation, WireFormat};

use crate::managed::engines::Faulty;
use crate::managed::record::{FullDisk, Gate};
use crate::managed::support::{Act, Stage, envelope, reading, result, saying, talk, words};

/// A conversation that is about to be compacted, on a disk that may be full.
async fn about_to_be_compacted(
    wire_format: WireFormat,
    policy: RecordPolicy,
) -> (Stage, Arc<FullDisk>, ManagedSession) {
    let engine = Arc::new(Compressor::new(CompressorSetup::by_rules()));
    about_to_be_compacted_by(wire_format, policy, engine).await
}

async fn about_to_be_compacted_by(
    wire_format: WireFormat,
    policy: RecordPolicy,
    engine: Arc<dyn ContextEngine>,
) -> (Stage, Arc<FullDisk>, ManagedSession) {
    let mut stage = Stage::with_engine(wire_format, 12_000, engine);
    // Late enough for a compaction to pay for itself as soon as it is due.
    stage.setup.target.policy.threshold_ratio = 0.75;
    let store = Arc::new(FullDisk::default());
    stage.setup.store = Arc::<FullDisk>::clone(&store);
    stage.setup.policy.record = policy;
    let mut session = stage.open().await;
    let mut turn = 0;
    while session.pressure().of_threshold_permille() < 920 {
        talk(&stage, &mut session, turn).await;
        turn += 1;
    }
    assert_eq!(session.compactions(), 0);
    (stage, store, session)
}

/// What the story says after that: a question that brings the compaction about, a step, another question.
fn story(wire_format: WireFormat, stage: &Stage) -> Vec<(&'static str, CallInput)> {
    stage.script.then(Act::Say(reading("late", "src/late.rs")));
    let question = format!("First question: {}", words(70, 400));
    let results = vec![result(wire_format, "late", &format!("First result: {}", words(71, 60)))];
    vec![
        ("First question:", saying(wire_format, &question)),
        ("First result:", CallInput::new(envelope(wire_format), results)),
        ("Second question.", saying(wire_format, "Second question.")),
    ]
}

/// Everything that must hold whatever happened.
fn check(store: &dyn Store, session: &ManagedSession, said: &[&str], what: &str) {
    let owner = Owner::default();
    let shown = store.view(&owner, session.id(), None).unwrap();
    let shown: Vec<&str> = shown.iter().map(ViewMessage::json).collect();
    let held: Vec<&str> = session.messages().iter().map(|message| message.json()).collect();
    assert_eq!(shown, held, "{what}: the view in memory is the record's");
    let all = store.transcript(&owner, session.id()).unwrap();
    for text in said {
        let times = all.iter().filter(|message| message.json.as_str().contains(text)).count();
        assert_eq!(times, 1, "{what}: {text}");
    }
    let wire_format = store.session(&owner, session.id()).unwrap().wire_format;
    let broken = Violation::find(wire_format, session.messages(), &Groups::of(session.messages()));
    assert!(broken.is_empty(), "{what}: {broken:?}");
    let chain = store.chain(&owner, session.id()).unwrap();
    assert_eq!(chain.last().unwrap().id, *session.id(), "{what}: the newest session is the one in use");
}

/// Makes the calls of the story; one that fails is made again, as a person would. What was kept of it is not said twice.
async fn tell(stage: &Stage, session: &mut ManagedSession, store: &dyn Store) -> Vec<&'static str> {
    let mut said = Vec::new();
    for (text, input) in story(stage.wire_format, stage) {
        let again = CallInput::new(input.envelope.clone(), input.messages.clone());
        said.push(text);
        if session.call(input).await.is_ok() {
            continue;
        }
        let recorded = store.transcript(&Owner::default(), session.id()).unwrap();
        let is_kept = recorded.iter().any(|message| message.json.as_str().contains(text))
            || session.messages().iter().any(|message| message.json().contains(text));
        let messages = if is_kept { Vec::new() } else { again.messages };
        session.call(CallInput { messages, ..CallInput::new(again.envelope, Vec::new()) }).await.unwrap();
    }
    said
}

#[tokio::test]
async fn a_write_that_fails_leaves_nothing_half_done() {
    for policy in [RecordPolicy::Require, RecordPolicy::GoOn] {
        let mut compacted = 0;
        for failing in 0.. {
            let wire_format = WireFormat::ALL[failing % 3];
            let (stage, store, mut session) = about_to_be_compacted(wire_format, policy).await;
            store.fail_at(failing);
            let mut said = tell(&stage, &mut session, store.as_ref()).await;
            let has_failed = store.stop_failing();
            // What could not be written then is written now.
            session.call(saying(wire_format, "Last question.")).await.unwrap();
            said.push("Last question.");
            let what = format!("{policy:?}, write {failing}");
            check(store.as_ref(), &session, &said, &what);
            compacted += session.compactions();
            // Every call is in the ledger, whenever the disk was full.
            let calls = store.calls(&Owner::default(), session.id()).unwrap();
            assert_eq!(calls.len(), stage.script.bodies().len(), "{what}");
            if !has_failed {
                assert!(failing > 8, "{failing} writes");
                break;
            }
        }
        assert!(compacted > 0, "{policy:?}");
    }
}

#[tokio::test]
async fn an_engine_that_fails_once_is_missed_only_then() {
    let mut compacted = 0;
    for failing in 0.. {
        let wire_format = WireFormat::ALL[failing % 3];
        let engine = Arc::new(Faulty::new());
        let by = Arc::<Faulty>::clone(&engine);
        let (stage, store, mut session) =
            about_to_be_compacted_by(wire_format, RecordPolicy::Require, by).await;
        engine.fail_at(failing);
        let said = tell(&stage, &mut session, store.as_ref()).await;
        check(store.as_ref(), &session, &said, &format!("question {failing}"));
        compacted += session.compactions();
        if !engine.has_failed() {
            assert!(failing > 8, "{failing} questions");
            break;
        }
        let told = stage.told();
        let is_told = |event: &EngineEvent| format!("{event:?}").contains("it crashed");
        assert!(told.iter().any(is_told), "question {failing}: it is reported");
    }
    assert!(compacted > 5);
}

#[tokio::test]
async fn an_engine_that_fails_at_its_start_is_reported_once_and_used_when_it_works() {
    let engine = Arc::new(Faulty::new());
    engine.set_down(true);
    let stage = Stage::with_engine(WireFormat::Chat, 12_000, Arc::<Faulty>::clone(&engine));
    let mut session = stage.open().await;
    for turn in 0..6 {
        talk(&stage, &mut session, turn).await;
    }
    assert_eq!(session.compactions(), 0);
    let notices = |stage: &Stage| -> Vec<String> {
        stage
            .told()
            .into_iter()
            .filter_map(|event| match event {
                EngineEvent::Notice { text } => Some(text),
                _ => None,
            })
            .collect()
    };
    let told = notices(&stage);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("it crashed") && told[0].contains("is not compacted"), "{}", told[0]);
    engine.set_down(false);
    let mut turn = 6;
    while session.compactions() == 0 {
        assert!(turn < 60, "it is never used");
        talk(&stage, &mut session, turn).await;
        turn += 1;
    }
    assert_eq!(session.status().await.unwrap().engine, "compressor", "it knows its model");
    engine.set_down(true);
    talk(&stage, &mut session, turn).await;
    assert_eq!(notices(&stage).len(), 2, "it had worked, so that is news");
    assert_eq!(stage.transcript().len(), 4 * (turn + 1));
    session.end(EndReason::named("new")).await.unwrap();
}

/// Polls a future so many times and then drops it. Whatever asks the record during a poll is answered after it, so that
/// every question to the record is a moment of its own.
struct GivenUpAfter<'a, F> {
    inner: Option<Pin<Box<F>>>,
    polls_left: usize,
    gate: &'a Gate,
}

impl<F: Future> Future for GivenUpAfter<'_, F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(left) = self.polls_left.checked_sub(1) else {
            self.inner = None;
            return Poll::Ready(None);
        };
        self.polls_left = left;
        self.gate.close();
        let polled = self.inner.as_mut().unwrap().as_mut().poll(context);
        if polled.is_pending() && left == 0 {
            self.inner = None;
        }
        self.gate.open();
        match polled {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}

#[tokio::test]
async fn a_call_may_be_given_up_at_any_moment() {
    let mut ended_in_time = 0;
    let (mut given_up, mut compacted) = (0, 0);
    for moment in 0..60 {
        for next in ["goes on", "is killed"] {
            let wire_format = WireFormat::ALL[moment % 3];
            let (stage, store, mut session) = about_to_be_compacted(wire_format, RecordPolicy::Require).await;
            let mut story = story(wire_format, &stage).into_iter();
            let (first, input) = story.next().unwrap();
            let call = Some(Box::pin(session.call(input)));
            let done = GivenUpAfter { inner: call, polls_left: moment, gate: store.gate() }.await;
            let what = format!("poll {moment}, then the process {next}");
            if done.is_some() {
                ended_in_time += 1;
                continue;
            }
            given_up += 1;
            if next == "is killed" {
                drop(session);
                // What was being written is written, or it is not.
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                let setup = throughline_engine::SessionSetup {
                    engine: Arc::new(Compressor::new(CompressorSetup::by_rules())),
                    ..stage.setup.clone()
                };
                session = ManagedSession::open(setup, &SessionId::from_text("s1")).await.unwrap();
            }
            // The person asks something else; the model has nothing further to look at.
            stage.script.end();
            let (other, input) = story.nth(1).unwrap();
            session.call(input).await.unwrap();
            let owner = Owner::default();
            let all = store.transcript(&owner, session.id()).unwrap();
            let times = all.iter().filter(|message| message.json.as_str().contains(first)).count();
            assert!(times <= 1, "{what}: it was said {times} times");
            check(store.as_ref(), &session, &[other], &what);
            assert!(store.locks().unwrap().is_empty(), "{what}: no lock is left");
            compacted += session.compactions();
        }
        if ended_in_time > 4 {
            break;
        }
    }
    assert!(given_up > 10 && compacted > 0 && ended_in_time > 0, "{given_up} {compacted} {ended_in_time}");
}

#[tokio::test(start_paused = true)]
async fn whatever_the_provider_says_the_conversation_is_intact() {
    use throughline_provider::{ConnectStage, ImageComplaint, ProviderError};
    let kinds = [
        ProviderErrorKind::PromptTooLong { window_tokens: None, prompt_tokens: None },
        ProviderErrorKind::PromptTooLong { window_tokens: Some(9_000), prompt_tokens: Some(20_000) },
        ProviderErrorKind::OverAllowance { allowed_tokens: Some(100), asked_tokens: None },
        ProviderErrorKind::OutputCapTooLarge {
            largest_cap_tokens: None,
            window_tokens: None,
            prompt_tokens: None,
        },
        ProviderErrorKind::PayloadTooLarge { limit_bytes: None, sent_bytes: None },
        ProviderErrorKind::ImageRefused { complaint: ImageComplaint::Unreadable },
        ProviderErrorKind::Quota { affordable_tokens: None },
        ProviderErrorKind::RateLimit,
        ProviderErrorKind::Overload,
        ProviderErrorKind::Timeout,
        ProviderErrorKind::Interrupted,
        ProviderErrorKind::ServerFault,
        ProviderErrorKind::Unknown,
        ProviderErrorKind::Unreachable { stage: ConnectStage::Connect },
        ProviderErrorKind::Auth,
        ProviderErrorKind::UnknownModel,
        ProviderErrorKind::ContentPolicy,
    ];
    for (index, kind) in kinds.into_iter().enumerate() {
        let wire_format = WireFormat::ALL[index % 3];
        let (stage, store, mut session) = about_to_be_compacted(wire_format, RecordPolicy::Require).await;
        let what = format!("{kind:?}");
        // It says so again and again, ...
        stage.script.then(Act::RefuseOver(0, ProviderError::of(kind)));
        let error = session.call(saying(wire_format, "First question.")).await.unwrap_err();
        let SessionError::Exhausted(gave_up) = &error else { panic!("{what}: {error}") };
        let words = error.to_string();
        assert!(words.contains("the conversation is intact") && words.contains("; "), "{what}: {words}");
        let compactions = gave_up.tried.iter().filter(|tried| {
            use throughline_engine::RecoveryAction;
            matches!(tried, RecoveryAction::Compacted { .. } | RecoveryAction::CompactedInVain { .. })
        });
        assert!(compactions.count() <= 3, "{what}: {:?}", gave_up.tried);
        check(store.as_ref(), &session, &["First question."], &what);
        // ... and then no longer.
        stage.script.end();
        session.call(saying(wire_format, "Second question.")).await.unwrap();
        check(store.as_ref(), &session, &["First question.", "Second question."], &what);
        let calls = store.calls(&Owner::default(), session.id()).unwrap();
        assert_eq!(calls.len(), stage.script.bodies().len(), "{what}: every attempt is booked");
        assert!(store.writes.load(Ordering::Relaxed) > 0);
    }
}
