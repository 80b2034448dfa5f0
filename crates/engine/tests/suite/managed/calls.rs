//! One call and the next: what is sent, recorded, booked and learnt.

use std::sync::Arc;

use throughline_engine::{CallInput, SessionError, SizeBasis};
use throughline_provider::{CacheOutcome, ProviderErrorKind};
use throughline_store::{Owner, UsageKind};
use throughline_transcript::WireFormat;
use tokio_util::sync::CancellationToken;

use crate::managed::support::{Act, Stage, envelope, reading, result, saying, text_of, user};

#[tokio::test]
async fn a_question_and_its_answer_are_recorded_and_booked() {
    for wire_format in WireFormat::ALL {
        let stage = Stage::new(wire_format, 200_000);
        let mut session = stage.open().await;
        let outcome = session.call(saying(wire_format, "What is in src?")).await.unwrap();
        assert_eq!(text_of(&outcome.answer), "All right.", "{wire_format}");
        assert_eq!(outcome.usage_kind, UsageKind::Measured);
        let transcript = stage.transcript();
        assert_eq!(transcript.len(), 2, "{wire_format}");
        assert!(
            transcript[0].contains("What is in src?") && transcript[1].contains("All right."),
            "{wire_format}"
        );
        let calls = stage.store.calls(&Owner::default(), session.id()).unwrap();
        let [call] = calls.as_slice() else { panic!("{calls:?}") };
        assert_eq!(call.call.task, "chat");
        assert_eq!(call.call.key.as_deref(), Some("answer_1"));
        assert_eq!(call.call.usage, outcome.usage);
        assert_eq!(call.call.sent_to_seq, Some(1), "the call saw the question and not its own answer");
        assert_eq!(call.call.first_token_ms, Some(3));
        let preamble = stage.store.preamble(call.call.preamble.as_ref().unwrap()).unwrap().unwrap();
        assert!(preamble.system.unwrap().contains("careful engineer"), "{wire_format}");
        assert!(preamble.tools.unwrap().contains("read_file"), "{wire_format}");
    }
}

#[tokio::test]
async fn the_body_holds_system_tools_and_everything_said() {
    for wire_format in WireFormat::ALL {
        let stage = Stage::new(wire_format, 200_000);
        let mut session = stage.open().await;
        stage.script.then(Act::Say(reading("call_1", "src/lib.rs")));
        session.call(saying(wire_format, "What is in src?")).await.unwrap();
        let results = vec![result(wire_format, "call_1", "pub fn main() {}")];
        session.call(CallInput::new(envelope(wire_format), results)).await.unwrap();
        let body = stage.script.last_body();
        for piece in ["careful engineer", "read_file", "What is in src?", "Let me look.", "pub fn main()"] {
            assert!(body.contains(piece), "{wire_format}: {piece} is not in {body}");
        }
        // The messages stand last, so that a body only grows at its end.
        let list = if wire_format == WireFormat::Responses { "\"input\":[" } else { "\"messages\":[" };
        assert!(body.find("\"tools\"").unwrap() < body.find(list).unwrap(), "{wire_format}");
    }
}

#[tokio::test]
async fn prompts_are_marked_where_that_is_of_use() {
    let marks = |body: &str| body.matches("cache_control").count();
    for (wire_format, expected) in
        [(WireFormat::Anthropic, 4), (WireFormat::Chat, 4), (WireFormat::Responses, 0)]
    {
        let stage = Stage::new(wire_format, 200_000);
        let mut session = stage.open().await;
        for question in 0..4 {
            let outcome = session.call(saying(wire_format, &format!("Question {question}"))).await.unwrap();
            assert_eq!(outcome.marks.on_system, expected > 0, "{wire_format}");
            let placed = outcome.marks.on_messages.len() + usize::from(outcome.marks.on_system);
            assert_eq!(marks(&stage.script.last_body()), placed, "{wire_format}");
        }
        assert_eq!(marks(&stage.script.last_body()), expected, "{wire_format}");
        // Nothing that is kept ever holds a mark.
        assert!(stage.transcript().iter().all(|message| marks(message) == 0), "{wire_format}");
    }
}

#[tokio::test]
async fn an_answer_without_usage_is_estimated_and_shown_so() {
    let stage = Stage::new(WireFormat::Chat, 200_000);
    let mut session = stage.open().await;
    stage.script.then(Act::SayWithoutUsage("Done."));
    let outcome = session.call(saying(WireFormat::Chat, "Do it.")).await.unwrap();
    assert_eq!(outcome.usage_kind, UsageKind::Estimated);
    assert!(outcome.usage.input > 0 && outcome.usage.output > 0);
    assert_eq!(outcome.cache, CacheOutcome::NotReported);
    let calls = stage.store.calls(&Owner::default(), session.id()).unwrap();
    assert_eq!(calls[0].call.usage_kind, UsageKind::Estimated);
    assert_eq!(session.last_prompt_tokens(), None);
}

#[tokio::test]
async fn the_next_request_is_measured_from_the_last_one() {
    let stage = Stage::new(WireFormat::Anthropic, 200_000);
    let mut session = stage.open().await;
    let outcome = session.call(saying(WireFormat::Anthropic, "One.")).await.unwrap();
    assert_eq!(session.last_prompt_tokens(), Some(outcome.usage.prompt()));
    session.call(saying(WireFormat::Anthropic, "Two.")).await.unwrap();
    let bases: Vec<SizeBasis> = stage
        .told()
        .into_iter()
        .filter_map(|event| match event {
            throughline_engine::EngineEvent::Pressure { basis, .. } => Some(basis),
            _ => None,
        })
        .collect();
    assert_eq!(bases[0], SizeBasis::Estimated);
    let SizeBasis::Measured { last_prompt_tokens, added_tokens } = bases[1] else { panic!("{bases:?}") };
    assert_eq!(last_prompt_tokens, outcome.usage.prompt());
    assert!((1..100).contains(&added_tokens), "{added_tokens}");
}

#[tokio::test]
async fn what_was_learnt_of_a_model_helps_the_next_conversation() {
    let stage = Stage::new(WireFormat::Chat, 2_000_000);
    let mut session = stage.open().await;
    for turn in 0..12 {
        let text = crate::managed::support::words(turn, 600);
        session.call(saying(WireFormat::Chat, &text)).await.unwrap();
    }
    let learnt = session.calibration_factor();
    assert!((learnt - 1.0).abs() > 0.05, "{learnt}");
    let setup = stage.setup.clone();
    let other = throughline_engine::ManagedSession::create(setup, stage.new_session("s2")).await.unwrap();
    assert!((other.calibration_factor() - learnt).abs() < 0.01, "{} {learnt}", other.calibration_factor());
}

#[tokio::test]
async fn a_conversation_is_taken_up_with_the_same_bytes() {
    for wire_format in WireFormat::ALL {
        let stage = Stage::new(wire_format, 200_000);
        let mut session = stage.open().await;
        stage.script.then(Act::Say(reading("call_1", "src/lib.rs")));
        session.call(saying(wire_format, "What is in src?")).await.unwrap();
        let results = vec![result(wire_format, "call_1", "pub fn main() {}")];
        session.call(CallInput::new(envelope(wire_format), results)).await.unwrap();
        drop(session);
        let mut again = stage.reopen().await;
        again.call(saying(wire_format, "And now?")).await.unwrap();
        let bodies = stage.script.bodies();
        let [.., before, after] = bodies.as_slice() else { panic!() };
        let (before, after) =
            (crate::managed::prefix::unmarked(before), crate::managed::prefix::unmarked(after));
        let shared = before.len() - "]}".len();
        assert_eq!(before[..shared], after[..shared], "{wire_format}");
    }
}

#[tokio::test]
async fn a_cancelled_call_is_booked_and_the_conversation_goes_on() {
    let stage = Stage::new(WireFormat::Chat, 200_000);
    let mut session = stage.open().await;
    let cancel = CancellationToken::new();
    stage.script.then(Act::Hang("I was going to say"));
    let input = CallInput { cancel: cancel.clone(), ..saying(WireFormat::Chat, "Never mind.") };
    let script = Arc::clone(&stage.script);
    let canceller = tokio::spawn(async move {
        while script.bodies().is_empty() {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    });
    let error = session.call(input).await.unwrap_err();
    canceller.await.unwrap();
    assert!(matches!(error, SessionError::Cancelled), "{error}");
    let calls = stage.store.calls(&Owner::default(), session.id()).unwrap();
    let [call] = calls.as_slice() else { panic!("{calls:?}") };
    assert_eq!(call.call.error.as_deref(), Some("cancelled"));
    session.call(saying(WireFormat::Chat, "Something else.")).await.unwrap();
    let transcript = stage.transcript();
    assert_eq!(transcript.len(), 4);
    assert!(transcript[1].contains("I was going to say"), "what had arrived is kept");
}

#[tokio::test]
async fn a_call_that_is_called_off_before_it_is_sent_costs_nothing() {
    let stage = Stage::new(WireFormat::Chat, 200_000);
    let mut session = stage.open().await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let input = CallInput { cancel, ..saying(WireFormat::Chat, "Never mind.") };
    let error = session.call(input).await.unwrap_err();
    assert!(matches!(error, SessionError::Cancelled), "{error}");
    assert!(stage.script.bodies().is_empty());
    assert!(stage.store.calls(&Owner::default(), session.id()).unwrap().is_empty());
    session.call(saying(WireFormat::Chat, "Something else.")).await.unwrap();
    assert_eq!(stage.transcript().len(), 3, "what was said is said");
}

#[tokio::test]
async fn what_arrived_of_a_broken_answer_is_kept() {
    let stage = Stage::new(WireFormat::Anthropic, 200_000);
    let mut session = stage.open().await;
    stage.script.then(Act::BreakOff("I had begun to"));
    let error = session.call(saying(WireFormat::Anthropic, "Tell me.")).await.unwrap_err();
    let SessionError::Exhausted(gave_up) = &error else { panic!("{error}") };
    assert_eq!(gave_up.trouble.kind, ProviderErrorKind::Interrupted);
    assert!(error.to_string().contains("ask again"), "{error}");
    assert!(stage.transcript()[1].contains("I had begun to"));
}

#[tokio::test]
async fn calls_may_be_made_from_any_thread() {
    fn goes_anywhere<T: Send>(value: T) -> T {
        value
    }
    let stage = Stage::new(WireFormat::Chat, 200_000);
    let mut session = goes_anywhere(stage.open().await);
    goes_anywhere(session.call(saying(WireFormat::Chat, "Hello."))).await.unwrap();
}

#[tokio::test]
async fn another_wire_is_refused_before_anything_is_recorded() {
    let stage = Stage::new(WireFormat::Chat, 200_000);
    let mut session = stage.open().await;
    let input = CallInput::new(envelope(WireFormat::Anthropic), vec![user(WireFormat::Chat, "Hello.")]);
    let error = session.call(input).await.unwrap_err();
    assert_eq!(error.to_string(), "the conversation is on the chat wire, the request on the anthropic wire");
    assert_eq!(stage.transcript().len(), 0);
}

#[tokio::test]
async fn a_window_smaller_than_the_fixed_part_says_what_mends_it() {
    let stage = Stage::new(WireFormat::Anthropic, 600);
    let mut session = stage.open().await;
    let long = "You never forget the rules. ".repeat(300);
    let parts = throughline_wire::RequestParts {
        system: Some(throughline_wire::System::Text(&long)),
        ..throughline_wire::RequestParts::new("test-model")
    };
    let envelope = throughline_engine::Envelope::build(WireFormat::Anthropic, &parts).unwrap();
    let input = CallInput::new(envelope, vec![user(WireFormat::Anthropic, "Hello.")]);
    let error = session.call(input).await.unwrap_err();
    assert!(matches!(error, SessionError::FixedTooLarge { room_tokens: 600, .. }), "{error}");
    assert!(error.to_string().contains("`model.context_length`"), "{error}");
    assert!(stage.script.bodies().is_empty());
}
