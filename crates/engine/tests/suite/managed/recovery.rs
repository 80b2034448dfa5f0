//! Calls that fail, and what is done about it.

use throughline_engine::{
    Automatic, CallInput, EngineEvent, ModelTarget, RecoveryAction, SessionError, Trigger,
};
use throughline_provider::{ProviderError, ProviderErrorKind};
use throughline_store::{GuardScope, Owner};
use throughline_transcript::{RawJson, WireFormat};
use throughline_wire::{CapMember, RequestParts};

use crate::managed::support::{
    Act, MODEL, START_MS, Script, Stage, decoded, envelope, saying, talk, target, user, words,
};

fn too_long(window_tokens: Option<u64>) -> ProviderError {
    ProviderError::of(ProviderErrorKind::PromptTooLong { window_tokens, prompt_tokens: None })
}

async fn filled(stage: &Stage, turns: usize) -> throughline_engine::ManagedSession {
    let mut session = stage.open().await;
    for turn in 0..turns {
        talk(stage, &mut session, turn).await;
    }
    session
}

fn gave_up(error: SessionError) -> throughline_engine::RecoveryFailure {
    match error {
        SessionError::Exhausted(gave_up) => *gave_up,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_refused_prompt_is_compacted_and_sent_again() {
    for wire_format in WireFormat::ALL {
        let stage = Stage::new(wire_format, 200_000);
        let mut session = filled(&stage, 20).await;
        let size = stage.script.last_body().len();
        stage.script.then(Act::RefuseOver(size / 2, too_long(None)));
        let outcome = session.call(saying(wire_format, "And now?")).await.unwrap();
        assert!(
            matches!(outcome.tried[..], [RecoveryAction::Compacted { .. }]),
            "{wire_format}: {:?}",
            outcome.tried
        );
        assert_eq!(session.model().window_tokens, 200_000, "{wire_format}: nobody stated a window");
        let trigger = stage.told().into_iter().find_map(|event| match event {
            EngineEvent::CompactionCompleted { trigger, .. } => Some(trigger),
            _ => None,
        });
        assert_eq!(trigger, Some(Trigger::Overflow), "{wire_format}");
        // Both calls are booked, the failed one as such.
        let calls = stage.store.calls(&Owner::default(), session.id()).unwrap();
        let [.., failed, answered] = calls.as_slice() else { panic!() };
        assert!(failed.call.error.as_ref().unwrap().starts_with("prompt_too_long"), "{wire_format}");
        assert_eq!(answered.call.error, None);
        assert_ne!(failed.session, answered.session, "{wire_format}");
    }
}

#[tokio::test]
async fn a_stated_window_is_learnt_for_good() {
    let stage = Stage::new(WireFormat::Chat, 200_000);
    let mut session = filled(&stage, 20).await;
    let stated = stage.script.last_body().len() as u64 / 8;
    stage.script.then(Act::Fail(too_long(Some(stated))));
    session.call(saying(WireFormat::Chat, "And now?")).await.unwrap();
    assert_eq!(session.model().window_tokens, stated);
    assert!(stage.told().contains(&EngineEvent::WindowLearnt {
        model: MODEL.to_owned(),
        window_tokens: stated,
        was_tokens: 200_000,
    }));
    let scope = GuardScope::Model { endpoint: "http://127.0.0.1/v1".to_owned(), model: MODEL.to_owned() };
    let kept = ModelTarget::learnt_window(stage.store.as_ref(), &scope, START_MS).unwrap();
    assert_eq!(kept, Some(stated));
    assert!(stage.script.last_body().len() as u64 / 4 < stated);
}

#[tokio::test]
async fn an_output_cap_is_lowered_for_one_call_and_nothing_is_compacted() {
    let stage = Stage::new(WireFormat::Anthropic, 200_000);
    let mut session = filled(&stage, 6).await;
    let parts = RequestParts { output_cap: Some((CapMember::MaxTokens, 20_000)), ..RequestParts::new(MODEL) };
    let envelope = throughline_engine::Envelope::build(WireFormat::Anthropic, &parts).unwrap();
    let kind = ProviderErrorKind::OutputCapTooLarge {
        largest_cap_tokens: None,
        window_tokens: Some(200_000),
        prompt_tokens: Some(190_000),
    };
    stage.script.then(Act::fail(kind));
    let input = |text| CallInput::new(envelope.clone(), vec![user(WireFormat::Anthropic, text)]);
    let outcome = session.call(input("Go on.")).await.unwrap();
    assert_eq!(outcome.tried, [RecoveryAction::LoweredCap { tokens: 9_936 }]);
    assert_eq!(session.compactions(), 0);
    assert_eq!(session.model().window_tokens, 200_000);
    let cap = |body: &str| RawJson(body).get("max_tokens").unwrap().0.to_owned();
    assert_eq!(cap(&stage.script.last_body()), "9936");
    session.call(input("And on.")).await.unwrap();
    assert_eq!(cap(&stage.script.last_body()), "20000", "the next call asks for what was wanted");
}

#[tokio::test]
async fn at_most_three_compactions_then_a_larger_model_then_words() {
    let mut stage = Stage::new(WireFormat::Chat, 100_000);
    let big = Script::new(WireFormat::Chat);
    let larger = ModelTarget { model: "big".to_owned(), ..target(WireFormat::Chat, 1_000_000, big.clone()) };
    stage.setup.alternatives = vec![larger];
    let mut session = filled(&stage, 30).await;
    stage.script.then(Act::RefuseOver(0, too_long(None)));
    let outcome = session.call(saying(WireFormat::Chat, "And now?")).await.unwrap();
    assert_eq!(outcome.model, "big");
    let compactions =
        outcome.tried.iter().filter(|tried| matches!(tried, RecoveryAction::Compacted { .. })).count();
    assert!((1..=3).contains(&compactions), "{:?}", outcome.tried);
    assert_eq!(outcome.tried.last(), Some(&RecoveryAction::AskedAnother { model: "big".to_owned() }));
    let body = big.last_body();
    assert_eq!(RawJson(&body).get("model").unwrap().as_text().unwrap(), "big");
    assert!(stage.told().iter().any(|event| matches!(event, EngineEvent::FallbackUsed { .. })));
    // When that does not help either, the message says what was tried, and the conversation is whole.
    big.then(Act::RefuseOver(0, too_long(None)));
    let before = stage.transcript().len();
    let error = session.call(saying(WireFormat::Chat, "And again?")).await.unwrap_err();
    let words = error.to_string();
    assert!(words.contains("asked big") && words.contains("the conversation is intact"), "{words}");
    assert!(words.contains("choose a model with a larger window"), "{words}");
    assert_eq!(stage.transcript().len(), before + 1, "the question is kept, nothing is lost");
}

#[tokio::test]
async fn an_overflow_with_compaction_turned_off_says_so() {
    let mut stage = Stage::new(WireFormat::Chat, 100_000);
    stage.setup.policy.automatic = Automatic::Off;
    let mut session = filled(&stage, 10).await;
    stage.script.then(Act::Fail(too_long(Some(8_000))));
    let error = session.call(saying(WireFormat::Chat, "And now?")).await.unwrap_err();
    assert!(error.to_string().contains("`compression.enabled: true`"), "{error}");
    assert_eq!(gave_up(error).tried, []);
    assert_eq!(session.compactions(), 0);
    assert_eq!(session.model().window_tokens, 100_000);
}

#[tokio::test(start_paused = true)]
async fn what_passes_is_waited_for_and_booked_each_time() {
    let stage = Stage::new(WireFormat::Anthropic, 200_000);
    let mut session = stage.open().await;
    stage.script.then(Act::fail(ProviderErrorKind::Overload)).then(Act::fail(ProviderErrorKind::RateLimit));
    let began = tokio::time::Instant::now();
    let outcome = session.call(saying(WireFormat::Anthropic, "Hello.")).await.unwrap();
    assert!(
        matches!(outcome.tried[..], [RecoveryAction::Waited { .. }, RecoveryAction::Waited { .. }]),
        "{:?}",
        outcome.tried
    );
    assert!(began.elapsed().as_millis() >= 1_500);
    let calls = stage.store.calls(&Owner::default(), session.id()).unwrap();
    let errors: Vec<_> =
        calls.iter().map(|call| call.call.error.as_deref().map(|e| e.split(':').next().unwrap())).collect();
    assert_eq!(errors, [Some("overload"), Some("rate_limit"), None]);
    // The same bytes each time.
    let bodies = stage.script.bodies();
    assert!(bodies.iter().all(|body| *body == bodies[0]));
}

#[tokio::test]
async fn a_wrong_key_is_said_at_once() {
    let stage = Stage::new(WireFormat::Chat, 200_000);
    let mut session = stage.open().await;
    stage.script.then(Act::fail(ProviderErrorKind::Auth));
    let error = session.call(saying(WireFormat::Chat, "Hello.")).await.unwrap_err();
    assert!(error.to_string().starts_with("the key was not accepted"), "{error}");
    assert_eq!(stage.script.bodies().len(), 1);
    // Mended, it goes on with the same conversation.
    session.call(saying(WireFormat::Chat, "Hello again.")).await.unwrap();
    assert_eq!(stage.transcript().len(), 3);
}

#[tokio::test]
async fn too_many_bytes_cost_old_pictures_first() {
    let wire_format = WireFormat::Anthropic;
    let stage = Stage::new(wire_format, 200_000);
    let mut session = stage.open().await;
    let picture = |number: usize| {
        let data = "iVBORw0KGgo".to_owned() + &"A".repeat(40_000 + number);
        let json = format!(
            r#"{{"role":"user","content":[{{"type":"text","text":"Picture {number}"}},{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{data}"}}}}]}}"#
        );
        CallInput::new(envelope(wire_format), vec![decoded(json).into()])
    };
    for number in 0..3 {
        session.call(picture(number)).await.unwrap();
    }
    let kind = ProviderErrorKind::PayloadTooLarge { limit_bytes: Some(100_000), sent_bytes: None };
    stage.script.then(Act::RefuseOver(100_000, ProviderError::of(kind)));
    let outcome = session.call(picture(3)).await.unwrap();
    assert!(
        matches!(outcome.tried[..], [RecoveryAction::RemovedImages { bytes }] if bytes > 100_000),
        "{:?}",
        outcome.tried
    );
    let body = stage.script.last_body();
    assert!(body.contains("Picture 0") && body.contains("Picture 3"), "the words stay");
    assert_eq!(body.matches("base64").count(), 1, "the newest picture stays");
    // The originals are in the record.
    assert_eq!(stage.transcript().iter().filter(|json| json.contains("base64")).count(), 4);
    // What was sent stays sent.
    session.call(saying(wire_format, "What do you see?")).await.unwrap();
    let next = stage.script.last_body();
    let shared = crate::managed::prefix::shared_prefix(&body, &next);
    assert!(shared + 8 >= crate::managed::prefix::unmarked(&body).len(), "{shared}");
}

#[tokio::test]
async fn too_many_bytes_without_pictures_are_compacted_by_bytes() {
    let stage = Stage::new(WireFormat::Chat, 1_000_000);
    let mut session = filled(&stage, 30).await;
    let limit = stage.script.last_body().len() * 2 / 3;
    let kind = ProviderErrorKind::PayloadTooLarge { limit_bytes: Some(limit as u64), sent_bytes: None };
    stage.script.then(Act::RefuseOver(limit, ProviderError::of(kind)));
    let outcome = session.call(saying(WireFormat::Chat, &words(3, 20))).await.unwrap();
    assert!(matches!(outcome.tried[..], [RecoveryAction::Compacted { .. }]), "{:?}", outcome.tried);
    assert_eq!(session.model().window_tokens, 1_000_000);
}
