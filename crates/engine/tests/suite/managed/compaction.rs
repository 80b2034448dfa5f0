//! Compactions in the course of a conversation: when they come, what they leave, what stands in their way.

use std::sync::Arc;

use throughline_compaction::NoOpReason;
use throughline_compaction::SummaryFrame;
use throughline_engine::{
    Automatic, BlockCause, CallInput, CompactionResult, EngineEvent, Envelope, ManualCompaction, ModelTarget,
    SessionError, SessionSetup, ThresholdOrigin, Trigger,
};
use throughline_store::{EndReason, LockRequest, Owner, SearchQuery};
use throughline_tokens::Usage;
use throughline_transcript::{RawJson, WireFormat};
use throughline_wire::RequestParts;

use crate::managed::support::{
    Act, MODEL, START_MS, Stage, envelope, holder, saying, talk, talk_until_compacted, target, user, words,
};

fn completed(stage: &Stage) -> Vec<(Trigger, u64, u64)> {
    let done = |event| match event {
        EngineEvent::CompactionCompleted { trigger, report, .. } => {
            Some((trigger, report.tokens.before, report.tokens.after))
        }
        _ => None,
    };
    stage.told().into_iter().filter_map(done).collect()
}

#[tokio::test]
async fn a_long_conversation_goes_on_in_windows_and_nothing_is_lost() {
    for wire_format in WireFormat::ALL {
        let stage = Stage::new(wire_format, 12_000);
        let mut session = stage.open().await;
        let turns = talk_until_compacted(&stage, &mut session, 4).await;
        let done = completed(&stage);
        assert_eq!(done.len(), 4, "{wire_format}");
        for (_, before, after) in &done {
            assert!(*before >= 5_500 && *after < 5_000, "{wire_format}: {before} -> {after}");
        }
        // Each was a boundary in a chain, and the last session is the one that is written to.
        let chain = stage.store.chain(&Owner::default(), session.id()).unwrap();
        assert_eq!(chain.len(), 5, "{wire_format}");
        assert_eq!(chain[4].id, *session.id());
        for ended in &chain[..4] {
            assert_eq!(ended.end_reason, Some(EndReason::COMPRESSION), "{wire_format}");
        }
        // Every word that was said is in the record, once, and is found.
        let transcript = stage.transcript();
        for turn in 0..turns {
            let question = format!("Question {turn}: ");
            assert_eq!(
                transcript.iter().filter(|json| json.contains(&question)).count(),
                1,
                "{wire_format} {turn}"
            );
        }
        let query = SearchQuery { text: "src/file_0.rs".to_owned(), ..SearchQuery::default() };
        assert!(!stage.store.search(&Owner::default(), &query).unwrap().hits.is_empty(), "{wire_format}");
        // What is sent fits, and begins with what a summary needs.
        let body = stage.script.last_body();
        assert!(body.contains(SummaryFrame::TAG), "{wire_format}");
        assert!(body.contains(&SummaryFrame::SYSTEM_NOTE[..40]), "{wire_format}");
        assert!(body.len() / 4 < 6_500, "{wire_format}: {}", body.len());
    }
}

#[tokio::test]
async fn the_summary_in_the_record_names_what_it_stands_for() {
    let stage = Stage::new(WireFormat::Anthropic, 12_000);
    let mut session = stage.open().await;
    talk_until_compacted(&stage, &mut session, 3).await;
    let summaries = stage.store.summaries(&Owner::default(), session.id()).unwrap();
    assert_eq!(summaries.len(), 3);
    assert_eq!(summaries[1].supersedes, Some(summaries[0].id));
    assert_eq!(summaries[2].supersedes, Some(summaries[1].id));
    // Each stands for at least everything the one before stood for.
    let covered =
        |at: usize| -> u64 { summaries[at].sources.iter().map(|run| run.end_seq - run.first_seq).sum() };
    assert!(covered(0) < covered(1) && covered(1) < covered(2));
    assert!(summaries[2].figures["trigger"].is_string(), "{}", summaries[2].figures);
    // The view in memory is the view of the record.
    let shown = stage.store.view(&Owner::default(), session.id(), None).unwrap();
    let shown: Vec<&str> = shown.iter().map(throughline_store::ViewMessage::json).collect();
    let held: Vec<&str> = session.messages().iter().map(throughline_transcript::Message::json).collect();
    assert_eq!(shown, held);
}

#[tokio::test]
async fn the_latest_question_stands_last_and_word_for_word() {
    for wire_format in WireFormat::ALL {
        let stage = Stage::new(wire_format, 12_000);
        let mut session = stage.open().await;
        talk_until_compacted(&stage, &mut session, 1).await;
        // One long step after another, until a compaction falls into the middle of a turn.
        let question = "Rename `Widget` to `Gadget` everywhere, but not in the changelog.";
        let before = session.compactions();
        session.call(saying(wire_format, question)).await.unwrap();
        for step in 0..60 {
            if session.compactions() > before {
                break;
            }
            let call = format!("step_{step}");
            let read = crate::managed::support::reading(&call, "src/widget.rs");
            stage.script.then(crate::managed::support::Act::Say(read));
            session.call(CallInput::new(envelope(wire_format), Vec::new())).await.unwrap();
            let result = crate::managed::support::result(wire_format, &call, &words(step + 40, 120));
            session.call(CallInput::new(envelope(wire_format), vec![result])).await.unwrap();
        }
        assert!(session.compactions() > before, "{wire_format}");
        let held = session.messages();
        let human: Vec<_> = held.iter().filter(|message| message.is_human()).collect();
        assert!(human.last().unwrap().text().contains(question), "{wire_format}");
        let summary = held.iter().position(|message| message.json().contains(SummaryFrame::TAG)).unwrap();
        let asked = held.iter().rposition(|message| message.json().contains(question)).unwrap();
        assert!(summary < asked, "{wire_format}");
    }
}

#[tokio::test]
async fn turned_off_means_off_on_every_automatic_path() {
    let mut stage = Stage::new(WireFormat::Chat, 12_000);
    stage.setup.policy.automatic = Automatic::Off;
    let mut session = stage.open().await;
    for turn in 0..20 {
        talk(&stage, &mut session, turn).await;
    }
    assert_eq!(session.compactions(), 0);
    assert_eq!(session.idle_in_ms(), None);
    assert!(session.idle().await.is_none());
    assert_eq!(stage.told_names(), [] as [&str; 0]);
    // By hand it works all the same.
    let result = session.compact(ManualCompaction::default()).await;
    assert!(matches!(result, CompactionResult::Completed(_)), "{result:?}");
}

#[tokio::test]
async fn by_hand_below_the_threshold_and_nothing_twice() {
    let stage = Stage::new(WireFormat::Anthropic, 200_000);
    let mut session = stage.open().await;
    for turn in 0..12 {
        talk(&stage, &mut session, turn).await;
    }
    let focus = Some("the files that were read".to_owned());
    let result = session.compact(ManualCompaction { focus, ..ManualCompaction::default() }).await;
    let CompactionResult::Completed(done) = &result else { panic!("{result:?}") };
    assert!(done.report.messages.after < done.report.messages.before);
    assert_eq!(completed(&stage)[0].0, Trigger::Manual);
    let again = session.compact(ManualCompaction::default()).await;
    assert!(matches!(again, CompactionResult::NoOp { reason: NoOpReason::NothingNew, .. }), "{again:?}");
    // The conversation goes on.
    talk(&stage, &mut session, 99).await;
}

#[tokio::test]
async fn by_hand_the_last_exchanges_stay_and_all_before_them_is_compacted() {
    let stage = Stage::new(WireFormat::Anthropic, 200_000);
    let mut session = stage.open().await;
    for turn in 0..12 {
        talk(&stage, &mut session, turn).await;
    }
    let texts = |session: &throughline_engine::ManagedSession| -> Vec<String> {
        session.messages().iter().map(|message| message.json().to_owned()).collect()
    };
    let before = texts(&session);
    for exchanges in [3, 1] {
        let kept = session.messages_of_last(exchanges);
        assert_eq!(kept, exchanges * 4, "an exchange is a question, a call, its result and an answer");
        let keep = ManualCompaction { keep_exchanges: Some(exchanges), ..ManualCompaction::default() };
        let result = session.compact(keep).await;
        assert!(matches!(result, CompactionResult::Completed(_)), "{result:?}");
        let after = texts(&session);
        assert_eq!(after[after.len() - kept..], before[before.len() - kept..]);
        assert!(after.len() <= kept + 5, "head and summary, and nothing else: {after:#?}");
    }
    // Everything kept means that nothing is compacted.
    let all = ManualCompaction { keep_exchanges: Some(100), ..ManualCompaction::default() };
    assert!(matches!(session.compact(all).await, CompactionResult::NoOp { .. }));
}

#[tokio::test]
async fn undo_brings_the_earlier_view_back_and_redo_the_later() {
    let stage = Stage::new(WireFormat::Anthropic, 200_000);
    let mut session = stage.open().await;
    for turn in 0..12 {
        talk(&stage, &mut session, turn).await;
    }
    let before: Vec<String> = session.messages().iter().map(|message| message.json().to_owned()).collect();
    session.compact(ManualCompaction::default()).await;
    let folded = session.messages().len();
    talk(&stage, &mut session, 50).await;
    assert_eq!(session.compactions(), 1);
    session.undo().await.unwrap();
    assert_eq!(session.compactions(), 0, "what was undone does not count");
    let undone: Vec<String> = session.messages().iter().map(|message| message.json().to_owned()).collect();
    assert_eq!(undone[..before.len()], before[..]);
    assert_eq!(undone.len(), before.len() + 4);
    assert!(!stage.script.last_body().is_empty());
    talk(&stage, &mut session, 51).await;
    assert!(!stage.script.last_body().contains(SummaryFrame::TAG));
    session.redo().await.unwrap();
    assert_eq!(session.compactions(), 1);
    assert_eq!(session.messages().len(), folded + 8);
    talk(&stage, &mut session, 52).await;
    assert!(stage.script.last_body().contains(SummaryFrame::TAG));
}

#[tokio::test]
async fn tools_and_system_prompt_count_too() {
    let wire_format = WireFormat::Anthropic;
    let stage = Stage::new(wire_format, 24_000);
    let mut session = stage.open().await;
    let about = words(5, 4_000);
    let tools = format!(r#"[{{"name":"t","description":"{about}","input_schema":{{"type":"object"}}}}]"#);
    let parts = RequestParts { tools: Some(RawJson(&tools)), ..RequestParts::new(MODEL) };
    let envelope = Envelope::build(wire_format, &parts).unwrap();
    for turn in 0..90 {
        session
            .call(CallInput::new(envelope.clone(), vec![user(wire_format, &words(turn, 60))]))
            .await
            .unwrap();
        // A compaction that is due waits for a summary on its way, and this script answers faster than anybody folds.
        session.until_prepared().await;
        if session.compactions() == 1 {
            break;
        }
    }
    assert_eq!(session.compactions(), 1);
    let messages: usize = stage.transcript().iter().map(String::len).sum();
    assert!(messages / 4 < 11_000, "the messages alone are below 12,000 tokens: {}", messages / 4);
}

#[tokio::test]
async fn what_the_model_said_or_thought_is_not_what_was_sent() {
    let stage = Stage::new(WireFormat::Chat, 12_000);
    let mut session = stage.open().await;
    for question in 0..4 {
        let usage = Usage { input: 900, output: 40_000, reasoning: 30_000, ..Usage::default() };
        stage.script.then(Act::SayUsed("Short, after long thought.", usage));
        session.call(saying(WireFormat::Chat, &format!("Question {question}"))).await.unwrap();
        assert_eq!(session.last_prompt_tokens(), Some(900));
    }
    assert_eq!(stage.told_names(), [] as [&str; 0], "nothing was due");
    let usage = Usage { input: 6_100, output: 1, ..Usage::default() };
    stage.script.then(Act::SayUsed("Yes.", usage));
    session.call(saying(WireFormat::Chat, "One more.")).await.unwrap();
    assert!(session.pressure().of_threshold_permille() > 1_000);
}

#[tokio::test]
async fn a_raised_threshold_is_told_once_for_good() {
    let mut stage = Stage::new(WireFormat::Responses, 200_000);
    stage.setup.target.model = "gpt-5.5".to_owned();
    stage.setup.target.threshold_origin = ThresholdOrigin::CodexRaise;
    let notices = |stage: &Stage| {
        let told = stage.told().into_iter();
        told.filter(|event| matches!(event, EngineEvent::Notice { text } if text.contains("autoraise")))
            .count()
    };
    let session = stage.open().await;
    assert_eq!(notices(&stage), 1);
    drop(session);
    stage.reopen().await;
    let other = throughline_engine::ManagedSession::create(stage.setup.clone(), stage.new_session("s2"));
    other.await.unwrap();
    assert_eq!(notices(&stage), 1);
}

#[tokio::test]
async fn a_smaller_model_compacts_first() {
    let stage = Stage::new(WireFormat::Chat, 60_000);
    let mut session = stage.open().await;
    for turn in 0..25 {
        talk(&stage, &mut session, turn).await;
    }
    assert_eq!(session.compactions(), 0);
    let smaller =
        ModelTarget { model: "small".to_owned(), ..target(WireFormat::Chat, 12_000, stage.script.clone()) };
    session.switch_model(smaller).await.unwrap();
    assert!(session.has_switched_to_smaller());
    assert_eq!(session.compactions(), 0, "nothing happens before the next call");
    session.call(saying(WireFormat::Chat, "And now?")).await.unwrap();
    assert_eq!(completed(&stage)[0].0, Trigger::ModelSwitch);
    assert!(stage.script.last_body().len() / 4 < 12_000);
}

#[tokio::test]
async fn a_cold_cache_is_the_moment_to_fold() {
    let stage = Stage::new(WireFormat::Anthropic, 60_000);
    let mut session = stage.open().await;
    assert!(session.idle().await.is_none(), "nothing was said yet");
    let mut turn = 0;
    while session.pressure().of_threshold_permille() <= 750 {
        assert_eq!(session.idle_in_ms(), None, "time alone makes no difference to a small view");
        talk(&stage, &mut session, turn).await;
        turn += 1;
    }
    assert_eq!(session.idle_in_ms(), Some(300_000));
    assert!(session.idle().await.is_none(), "the cache is warm");
    stage.host.pass_secs(301);
    let result = session.idle().await.unwrap();
    assert!(matches!(result, CompactionResult::Completed(_)), "{result:?}");
    assert_eq!(completed(&stage)[0].0, Trigger::Idle);
    assert_eq!(session.idle_in_ms(), None, "there is room now");
    session.undo().await.unwrap();
    assert_eq!(session.idle_in_ms(), None, "a user who goes back does not find it compacted again");
    assert!(session.idle().await.is_none());
}

#[tokio::test]
async fn idle_time_does_not_try_the_same_again_and_again() {
    // One huge message: over three quarters of the threshold, and nothing in the middle.
    let stage = Stage::new(WireFormat::Anthropic, 60_000);
    let mut session = stage.open().await;
    session.call(saying(WireFormat::Anthropic, &words(1, 10_500))).await.unwrap();
    stage.host.pass_secs(301);
    assert_eq!(session.idle_in_ms(), Some(0));
    assert!(session.idle().await.is_none(), "there is nothing to compact");
    assert_eq!(session.idle_in_ms(), None, "and nothing changes that but more words");
    assert!(session.idle().await.is_none());
    session.call(saying(WireFormat::Anthropic, "Go on.")).await.unwrap();
    assert_eq!(session.idle_in_ms(), Some(300_000));
}

#[tokio::test]
async fn starting_over_ends_one_conversation_and_begins_another() {
    let stage = Stage::new(WireFormat::Chat, 12_000);
    let mut session = stage.open().await;
    talk_until_compacted(&stage, &mut session, 1).await;
    let old = session.id().clone();
    let mut fresh = session.start_over(EndReason::NEW, stage.new_session("s2")).await.unwrap();
    assert_eq!((fresh.id().as_str(), fresh.compactions(), fresh.messages().len()), ("s2", 0, 0));
    assert_eq!(fresh.status().await.unwrap().compactions, 0, "the engine forgot the old one");
    assert_eq!(stage.store.session(&Owner::default(), &old).unwrap().end_reason, Some(EndReason::NEW));
    fresh.call(saying(WireFormat::Chat, "Hello again.")).await.unwrap();
    assert!(!stage.script.last_body().contains(SummaryFrame::TAG));
}

#[tokio::test]
async fn a_model_of_another_wire_does_not_take_over() {
    let stage = Stage::new(WireFormat::Chat, 60_000);
    let mut session = stage.open().await;
    let other = target(WireFormat::Anthropic, 12_000, stage.script.clone());
    let error = session.switch_model(other).await.unwrap_err();
    assert!(matches!(error, SessionError::OtherWire { .. }), "{error}");
    assert_eq!(session.model().window_tokens, 60_000);
    session.call(saying(WireFormat::Chat, "Hello.")).await.unwrap();
}

#[tokio::test]
async fn somebody_else_at_work_is_told_and_not_disturbed() {
    let stage = Stage::new(WireFormat::Chat, 12_000);
    let mut session = stage.open().await;
    let chain = stage.store.session(&Owner::default(), session.id()).unwrap().chain;
    let lock = |process_id| LockRequest {
        name: LockRequest::conversation_name(chain),
        holder: holder(process_id),
        now_ms: START_MS,
        expires_ms: START_MS + 3_600_000,
    };
    stage.store.lock(&lock(2), &|_| true).unwrap();
    for turn in 0..40 {
        talk(&stage, &mut session, turn).await;
    }
    assert_eq!(session.compactions(), 0);
    assert!(stage.told_names().iter().any(|name| name == "compaction_locked"));
    stage.store.unlock(&LockRequest::conversation_name(chain), &holder(2)).unwrap();
    // One that died loses it at once.
    stage.store.lock(&lock(404), &|_| true).unwrap();
    talk_until_compacted(&stage, &mut session, 1).await;
    assert!(stage.store.locks().unwrap().is_empty(), "let go after the compaction");
}

#[tokio::test]
async fn a_session_may_be_held_for_as_long_as_it_is_open() {
    let mut stage = Stage::new(WireFormat::Chat, 12_000);
    stage.setup.policy.lock = throughline_engine::LockPolicy::WholeSession;
    let mut session = stage.open().await;
    talk_until_compacted(&stage, &mut session, 1).await;
    assert_eq!(stage.store.locks().unwrap().len(), 1);
    struct Other(Arc<crate::managed::support::TestHost>);
    impl throughline_engine::Host for Other {
        fn now_ms(&self) -> i64 {
            self.0.now_ms()
        }
        fn random(&self) -> u32 {
            7
        }
        fn holder(&self) -> throughline_store::Holder {
            holder(2)
        }
        fn is_alive(&self, _: &throughline_store::Holder) -> bool {
            true
        }
    }
    let setup = SessionSetup { host: Arc::new(Other(stage.host.clone())), ..stage.setup.clone() };
    let error = throughline_engine::ManagedSession::open(setup, session.id()).await.err().unwrap();
    assert!(matches!(&error, SessionError::Locked { holder, .. } if holder.process_id == 1), "{error}");
    assert!(error.to_string().contains("open elsewhere: chat (process 1 on here)"), "{error}");
    drop(session);
    assert!(stage.store.locks().unwrap().is_empty());
}

#[tokio::test]
async fn another_process_that_compacted_is_followed() {
    let stage = Stage::new(WireFormat::Anthropic, 200_000);
    let mut session = stage.open().await;
    for turn in 0..12 {
        talk(&stage, &mut session, turn).await;
    }
    let mut other = stage.reopen().await;
    let result = other.compact(ManualCompaction::default()).await;
    assert!(matches!(result, CompactionResult::Completed(_)), "{result:?}");
    session.call(saying(WireFormat::Anthropic, "Still there?")).await.unwrap();
    assert_eq!(session.id(), other.id());
    let body = stage.script.last_body();
    assert!(body.contains(SummaryFrame::TAG) && body.contains("Still there?"));
    assert!(stage.transcript().iter().any(|json| json.contains("Still there?")));
}

#[tokio::test]
async fn guards_are_kept_with_the_chain_and_let_go_with_time() {
    use throughline_compaction::SummariseError;
    let failing = crate::managed::engines::failing(SummariseError::Transient("429".to_owned()));
    let mut stage = Stage::with_engine(WireFormat::Chat, 12_000, failing);
    // A conversation that is opened again this close to the end of its window would not be blocked.
    stage.setup.target.policy.hygiene_ratio = 1.0;
    let mut session = stage.open().await;
    let blocked = |stage: &Stage| {
        let causes = stage.told().into_iter().filter_map(|event| match event {
            EngineEvent::CompactionBlocked { cause, .. } => Some(cause),
            _ => None,
        });
        causes.collect::<Vec<_>>()
    };
    for turn in 0.. {
        talk(&stage, &mut session, turn).await;
        // However busy the machine is, the conversation does not grow on behind what is prepared.
        session.until_prepared().await;
        if !blocked(&stage).is_empty() {
            break;
        }
        assert!(turn < 60);
    }
    assert_eq!(blocked(&stage)[0], BlockCause::SummariserFailed);
    assert!(stage.told_names().contains(&"compaction_aborted".to_owned()));
    // Another process inherits the block, ...
    let setup = SessionSetup {
        engine: crate::managed::engines::failing(SummariseError::Transient("429".to_owned())),
        ..stage.setup.clone()
    };
    let mut again = throughline_engine::ManagedSession::open(setup, session.id()).await.unwrap();
    let (before, aborted) = (blocked(&stage).len(), count(&stage, "compaction_aborted"));
    again
        .call(CallInput::new(envelope(WireFormat::Chat), vec![user(WireFormat::Chat, "Hm.")]))
        .await
        .unwrap();
    assert_eq!(blocked(&stage).len(), before + 1);
    assert_eq!(count(&stage, "compaction_aborted"), aborted);
    // ... a person is not blocked, ...
    assert!(matches!(again.compact(ManualCompaction::default()).await, CompactionResult::Aborted { .. }));
    // ... and time lets go of it.
    stage.host.pass_secs(3_600);
    again
        .call(CallInput::new(envelope(WireFormat::Chat), vec![user(WireFormat::Chat, "Hm.")]))
        .await
        .unwrap();
    assert_eq!(count(&stage, "compaction_aborted"), aborted + 2);
    // The conversation itself is whole.
    assert_eq!(again.compactions(), 0);
}

fn count(stage: &Stage, name: &str) -> usize {
    stage.told_names().iter().filter(|told| *told == name).count()
}

#[tokio::test]
async fn a_failing_summariser_gives_way_to_rules_before_nothing_fits() {
    use throughline_compaction::SummariseError;
    let failing = crate::managed::engines::failing(SummariseError::Transient("429".to_owned()));
    let stage = Stage::with_engine(WireFormat::Anthropic, 12_000, failing);
    let mut session = stage.open().await;
    for turn in 0..80 {
        talk(&stage, &mut session, turn).await;
        let sent = stage.script.last_body().len() as u64 / 4;
        assert!(sent <= 12_000, "turn {turn}: {sent}");
    }
    assert!(session.compactions() > 0);
    let by_rules = stage.told().into_iter().any(|event| {
        matches!(event, EngineEvent::CompactionCompleted { report, .. } if report.warnings.iter().any(|warning| warning.contains("compacted by rules, because")))
    });
    assert!(by_rules);
}
