//! The built-in engine on coding sessions of all three wires.

use std::collections::BTreeSet;
use std::sync::Arc;

use throughline_compaction::SummariseError;
use throughline_compaction::{AbortReason, NoOpReason, Quality};
use throughline_store::SessionId;
use throughline_tokens::Usage;
use throughline_transcript::{Groups, Message, SharedText, WireFormat, decode_message, violations};

use super::{Compressor, CompressorSetup, OnSummaryFailure, OneSummariser};
use crate::context_engine::ContextEngine;
use crate::context_engine::lifecycle::{Boundary, BoundaryReason};
use crate::context_engine::outcome::{
    CompactedView, CompressOutcome, CompressRequest, Headroom, NewItem, PrepareOutcome,
};
use crate::context_engine::snapshot::Snapshot;
use crate::context_engine::status::MeasuredUsage;
use crate::decide::trigger::Trigger;
use crate::test_talk::{LoggingSummariser, model_at_threshold, model_of, session, snapshot};

fn request(conversation: &Snapshot) -> CompressRequest {
    CompressRequest {
        conversation: conversation.clone(),
        trigger: Trigger::Preflight,
        room: Headroom::Left,
        focus: None,
        force: false,
        target_tokens: None,
        keep_messages: None,
        memory_context: None,
    }
}

fn written_by(diary: &Arc<LoggingSummariser>) -> CompressorSetup {
    let summariser: Arc<dyn throughline_compaction::Summariser> = Arc::<LoggingSummariser>::clone(diary);
    CompressorSetup { summarisers: Arc::new(OneSummariser(summariser)), ..CompressorSetup::by_rules() }
}

async fn engine(setup: CompressorSetup, window_tokens: u64) -> Compressor {
    let engine = Compressor::new(setup);
    engine.update_model(&model_of(window_tokens)).await.unwrap();
    engine
}

fn completed(outcome: CompressOutcome) -> CompactedView {
    match outcome {
        CompressOutcome::Completed(done) => *done,
        other => panic!("not completed: {other:?}"),
    }
}

/// Returns the messages of a new view as JSON.
fn bytes(done: &CompactedView, conversation: &Snapshot) -> Vec<String> {
    let json = |item: &NewItem| match item {
        NewItem::Kept { item } => conversation.messages[*item].json().to_owned(),
        NewItem::Rewritten { json, .. } | NewItem::Summary { json } | NewItem::Synthetic { json, .. } => {
            json.clone()
        }
    };
    done.view.iter().map(json).collect()
}

#[tokio::test]
async fn folds_the_middle_of_a_session_on_every_wire() {
    for wire_format in WireFormat::ALL {
        let now = snapshot(wire_format, &session(wire_format, 300, 400_000));
        let engine = engine(CompressorSetup::by_rules(), now.prompt_tokens * 2).await;
        assert!(engine.should_compress(now.prompt_tokens).await.unwrap());
        assert!(engine.has_content_to_compress(&now).await.unwrap());
        let done = completed(engine.compress(&request(&now)).await.unwrap());
        assert_eq!(done.quality, Quality::Rules);
        assert!(done.report.tokens.after * 2 < done.report.tokens.before, "{wire_format}: {:?}", done.report);
        // Every message is either shown or covered, and only once.
        let summary = done.summary.as_ref().unwrap();
        let mut shown: Vec<usize> = done
            .view
            .iter()
            .filter_map(|item| match item {
                NewItem::Kept { item } | NewItem::Rewritten { item, .. } => Some(*item),
                _ => None,
            })
            .collect();
        shown.extend(&summary.covers);
        shown.sort_unstable();
        assert_eq!(shown, (0..now.messages.len()).collect::<Vec<_>>(), "{wire_format}");
        // The view is valid in the wire format.
        let view: Vec<_> = bytes(&done, &now)
            .into_iter()
            .map(|json| decode_message(SharedText::new(json)).unwrap())
            .collect();
        assert_eq!(violations(wire_format, &view, &Groups::of(&view)), [], "{wire_format}");
    }
}

#[tokio::test]
async fn everything_crosses_to_another_process_and_back() {
    let now = snapshot(WireFormat::Anthropic, &session(WireFormat::Anthropic, 120, 200_000));
    let engine = engine(CompressorSetup::by_rules(), now.prompt_tokens * 2).await;
    let sent = serde_json::to_string(&request(&now)).unwrap();
    let received: CompressRequest = serde_json::from_str(&sent).unwrap();
    let outcome = engine.compress(&received).await.unwrap();
    let sent = serde_json::to_string(&outcome).unwrap();
    assert_eq!(serde_json::from_str::<CompressOutcome>(&sent).unwrap(), outcome);
    let here = completed(engine.compress(&request(&now)).await.unwrap());
    assert_eq!(bytes(&completed(outcome), &now), bytes(&here, &now));
}

#[tokio::test]
async fn the_providers_count_decides_and_not_the_estimate() {
    let mut now = snapshot(WireFormat::Chat, &session(WireFormat::Chat, 200, 300_000));
    let window = now.prompt_tokens * 2;
    let compressor = engine(CompressorSetup::by_rules(), window).await;
    // The estimate is at the threshold, the provider counted a fifth less.
    now.prompt_tokens = now.prompt_tokens * 4 / 5;
    let outcome = compressor.compress(&request(&now)).await.unwrap();
    assert!(
        matches!(outcome, CompressOutcome::NoOp { reason: NoOpReason::BelowThreshold, .. }),
        "{outcome:?}"
    );
    // The estimate is a fifth below, the provider counted up to the threshold: figures are the provider's.
    let compressor = engine(CompressorSetup::by_rules(), window).await;
    now.sizes = Arc::new(now.sizes.iter().map(|size| size * 4 / 5).collect());
    now.prompt_tokens = window / 2;
    let done = completed(compressor.compress(&request(&now)).await.unwrap());
    assert!(done.report.tokens.before.abs_diff(window / 2) <= 1, "{:?}", done.report.tokens);
}

#[tokio::test]
async fn a_target_is_kept_to() {
    let now = snapshot(WireFormat::Anthropic, &session(WireFormat::Anthropic, 400, 800_000));
    let compressor = engine(CompressorSetup::by_rules(), now.prompt_tokens * 2).await;
    let usual = completed(compressor.compress(&request(&now)).await.unwrap()).report.tokens.after;
    let target = usual / 2;
    let request = CompressRequest { target_tokens: Some(target), force: true, ..request(&now) };
    let done = completed(compressor.compress(&request).await.unwrap());
    assert!(done.report.tokens.after <= target, "{:?} for {target}", done.report.tokens);
}

#[tokio::test]
async fn when_the_summariser_fails() {
    let transient = || SummariseError::Transient("429".to_owned());
    let permanent = || SummariseError::Permanent("401".to_owned());
    let unusable = || SummariseError::Unusable("it was empty".to_owned());
    let aborted = |reason| Err(reason);
    // failure, room, setting -> by rules, or given up
    let cases = [
        (
            transient(),
            Headroom::Left,
            OnSummaryFailure::UseRules,
            aborted(AbortReason::SummariserUnavailable),
        ),
        (transient(), Headroom::None, OnSummaryFailure::UseRules, Ok(Quality::Rules)),
        (permanent(), Headroom::Left, OnSummaryFailure::UseRules, Ok(Quality::Rules)),
        (unusable(), Headroom::Left, OnSummaryFailure::UseRules, Ok(Quality::Rules)),
        (transient(), Headroom::None, OnSummaryFailure::Abort, aborted(AbortReason::SummariserUnavailable)),
        (permanent(), Headroom::None, OnSummaryFailure::Abort, aborted(AbortReason::SummariserFailed)),
        (unusable(), Headroom::Left, OnSummaryFailure::Abort, aborted(AbortReason::SummaryUnusable)),
    ];
    let now = snapshot(WireFormat::Chat, &session(WireFormat::Chat, 120, 200_000));
    for (failure, room, on_failure, expected) in cases {
        let diary = Arc::new(LoggingSummariser::failing(failure.clone()));
        let setup = CompressorSetup { on_failure, ..written_by(&diary) };
        let compressor = engine(setup, now.prompt_tokens * 2).await;
        let outcome = compressor.compress(&CompressRequest { room, ..request(&now) }).await.unwrap();
        let seen = match &outcome {
            CompressOutcome::Completed(done) => Ok(done.quality),
            CompressOutcome::Aborted { reason, .. } => Err(*reason),
            CompressOutcome::NoOp { .. } => panic!("{outcome:?}"),
        };
        assert_eq!(seen, expected, "{failure} {room:?} {on_failure:?}");
        if let CompressOutcome::Completed(done) = outcome {
            assert!(done.report.warnings[0].starts_with("compacted by rules, because"), "{:?}", done.report);
        }
    }
}

#[tokio::test]
async fn a_prepared_summary_is_spliced_in_without_asking_again() {
    let all = session(WireFormat::Anthropic, 300, 600_000);
    let (early, late) = (snapshot(WireFormat::Anthropic, &all[..280]), snapshot(WireFormat::Anthropic, &all));
    let diary = Arc::new(LoggingSummariser::default());
    let compressor = engine(written_by(&diary), late.prompt_tokens * 2).await;
    let PrepareOutcome::Ready { messages } = compressor.prepare(&early).await.unwrap() else { panic!() };
    assert!(messages > 100, "{messages}");
    let done = completed(compressor.compress(&request(&late)).await.unwrap());
    assert_eq!(diary.pages().len(), 1);
    assert!(done.report.prepared);
    // The messages that came since stand at the end as they are.
    let tail: Vec<_> = (280..300).map(|item| NewItem::Kept { item }).collect();
    assert!(done.view.ends_with(&tail));
    assert_eq!(done.report.messages.before, 300);
    assert_eq!(done.report.messages.after, done.view.len() as u64);
    assert!(done.report.tokens.before.abs_diff(late.prompt_tokens) <= 1);
}

/// Prepares after `early` messages, compacts after all of them, and compares what was summarised with what is covered. Returns whether a
/// human message was pinned the first time and not the second.
async fn extends(all: &[Message], wire_format: WireFormat, early: usize, window_tokens: u64) -> bool {
    let (before, now) = (snapshot(wire_format, &all[..early]), snapshot(wire_format, all));
    let diary = Arc::new(LoggingSummariser::default());
    let compressor = engine(written_by(&diary), window_tokens).await;
    assert!(matches!(compressor.prepare(&before).await.unwrap(), PrepareOutcome::Ready { .. }));
    let done = completed(compressor.compress(&request(&now)).await.unwrap());
    let pages = diary.pages();
    assert_eq!(pages.len(), 2, "{wire_format} {early}");
    // No message is summarised twice, and the second page starts from the first.
    let first: BTreeSet<usize> = pages[0].summarised.iter().copied().collect();
    let second: BTreeSet<usize> = pages[1].summarised.iter().copied().collect();
    assert_eq!(first.intersection(&second).count(), 0, "{wire_format} {early}");
    assert!(pages[1].earlier.as_ref().unwrap().contains("page 1 of the diary"), "{wire_format} {early}");
    let covers: BTreeSet<usize> = done.summary.unwrap().covers.into_iter().collect();
    // The first page may include messages that the head shows now; together the pages include everything that is covered.
    let told: BTreeSet<usize> = first.union(&second).copied().collect();
    assert!(covers.is_subset(&told), "{wire_format} {early}");
    assert!(done.report.prepared, "{wire_format} {early}");
    pages[0].span.clone().any(|index| second.contains(&index))
}

#[tokio::test]
async fn a_prepared_summary_is_extended_by_what_came_since() {
    for wire_format in WireFormat::ALL {
        let all = session(wire_format, 400, 600_000);
        let window = snapshot(wire_format, &all).prompt_tokens * 2;
        extends(&all, wire_format, 150, window).await;
        // With a small tail the last human message is often pinned. It was included in the prepared summary, and is not included again once
        // a newer human message arrives.
        let mut unpinned = 0;
        for early in (100..200).step_by(10) {
            unpinned += usize::from(extends(&all, wire_format, early, window / 6).await);
        }
        assert_eq!(unpinned, 0, "{wire_format}");
    }
}

#[tokio::test]
async fn preparing_again_waits_until_enough_came() {
    let all = session(WireFormat::Chat, 300, 600_000);
    let diary = Arc::new(LoggingSummariser::default());
    let compressor = engine(written_by(&diary), snapshot(WireFormat::Chat, &all).prompt_tokens * 2).await;
    // A summary that will be spliced in as it is needs no second one: only after two tails is it brought up to date.
    for (messages, pages) in [(150, 1), (151, 1), (200, 1), (290, 2)] {
        compressor.prepare(&snapshot(WireFormat::Chat, &all[..messages])).await.unwrap();
        assert_eq!(diary.pages().len(), pages, "{messages} messages");
    }
}

/// Returns the tokens of the messages after the summary of a new view.
fn tail_of(done: &CompactedView, conversation: &Snapshot) -> u64 {
    let summary = done.view.iter().position(|item| matches!(item, NewItem::Summary { .. })).unwrap();
    let kept = done.view[summary..].iter().filter_map(|item| match item {
        NewItem::Kept { item } => conversation.sizes.get(*item),
        _ => None,
    });
    kept.sum()
}

/// Returns how many messages of a conversation fill this percentage of a threshold, fixed part included.
fn messages_within(conversation: &Snapshot, percent: u64) -> usize {
    let room = conversation.prompt_tokens * percent / 100;
    let mut used = conversation.fixed_tokens;
    conversation
        .sizes
        .iter()
        .take_while(|size| {
            used += **size;
            used <= room
        })
        .count()
}

#[tokio::test]
async fn a_summary_prepared_near_the_threshold_leaves_the_tail_that_is_due_at_the_threshold() {
    for wire_format in WireFormat::ALL {
        let all = session(wire_format, 400, 600_000);
        // System prompt and tools as large as those of a coding agent: two fifths of the threshold.
        let mut late = snapshot(wire_format, &all);
        late.fixed_tokens = late.sizes.iter().sum::<u64>() * 2 / 3;
        late.prompt_tokens = late.estimated_tokens();
        let model = model_of(late.prompt_tokens * 2);
        let messages = messages_within(&late, 85);
        let mut early = snapshot(wire_format, &all[..messages]);
        early.fixed_tokens = late.fixed_tokens;
        early.prompt_tokens = early.estimated_tokens();
        let diary = Arc::new(LoggingSummariser::default());
        let compressor = engine(written_by(&diary), late.prompt_tokens * 2).await;
        assert!(matches!(compressor.prepare(&early).await.unwrap(), PrepareOutcome::Ready { .. }));
        let done = completed(compressor.compress(&request(&late)).await.unwrap());
        assert_eq!(diary.pages().len(), 1, "{wire_format}: it is spliced in as it is");
        let (tail, due) = (tail_of(&done, &late), model.limits.tail_tokens);
        assert!((due / 2..due * 2).contains(&tail), "{wire_format}: {tail} where {due} are due");
    }
}

#[tokio::test]
async fn a_conversation_that_stops_right_after_preparing_keeps_a_tail() {
    let all = session(WireFormat::Anthropic, 400, 600_000);
    let whole = snapshot(WireFormat::Anthropic, &all);
    let early = snapshot(WireFormat::Anthropic, &all[..messages_within(&whole, 85)]);
    let diary = Arc::new(LoggingSummariser::default());
    let compressor = engine(written_by(&diary), whole.prompt_tokens * 2).await;
    compressor.prepare(&early).await.unwrap();
    let at_rest = CompressRequest { force: true, trigger: Trigger::Idle, ..request(&early) };
    let done = completed(compressor.compress(&at_rest).await.unwrap());
    assert_eq!(diary.pages().len(), 1, "what was prepared tells of everything that is compacted");
    let due = model_of(whole.prompt_tokens * 2).limits.tail_tokens;
    assert!(tail_of(&done, &early) >= due / 4, "{} where {due} are due", tail_of(&done, &early));
}

#[tokio::test]
async fn what_was_prepared_for_another_view_is_not_used() {
    let all = session(WireFormat::Chat, 200, 300_000);
    let (early, late) = (snapshot(WireFormat::Chat, &all[..180]), snapshot(WireFormat::Chat, &all));
    let diary = Arc::new(LoggingSummariser::default());
    let compressor = engine(written_by(&diary), late.prompt_tokens * 2).await;
    compressor.prepare(&early).await.unwrap();
    let elsewhere = Snapshot { session: SessionId::from_text("other"), ..late.clone() };
    let done = completed(compressor.compress(&request(&elsewhere)).await.unwrap());
    assert!(!done.report.prepared);
    // A focus of the user rules out the prepared summary.
    let focused = CompressRequest { focus: Some("the schema".to_owned()), ..request(&late) };
    assert!(!completed(compressor.compress(&focused).await.unwrap()).report.prepared);
    assert_eq!(diary.pages().len(), 3);
    // A failure to prepare is reported and does no harm.
    let failing = Arc::new(LoggingSummariser::failing(SummariseError::Transient("429".to_owned())));
    let compressor = engine(written_by(&failing), late.prompt_tokens * 2).await;
    let outcome = compressor.prepare(&early).await.unwrap();
    assert!(matches!(outcome, PrepareOutcome::Failed { .. }), "{outcome:?}");
}

#[tokio::test]
async fn facts_grown_message_by_message_are_those_gathered_at_once() {
    for wire_format in WireFormat::ALL {
        let all = session(wire_format, 240, 300_000);
        let now = snapshot(wire_format, &all);
        let window = now.prompt_tokens * 2;
        let grown = engine(CompressorSetup::by_rules(), window).await;
        for messages in (1..all.len()).step_by(7) {
            grown.messages_appended(&snapshot(wire_format, &all[..messages])).await.unwrap();
        }
        let fresh = engine(CompressorSetup::by_rules(), window).await;
        let [grown, fresh] = [
            completed(grown.compress(&request(&now)).await.unwrap()),
            completed(fresh.compress(&request(&now)).await.unwrap()),
        ];
        assert_eq!(bytes(&grown, &now), bytes(&fresh, &now), "{wire_format}");
    }
}

#[tokio::test]
async fn status_follows_the_conversation() {
    let now = snapshot(WireFormat::Chat, &session(WireFormat::Chat, 20, 20_000));
    let compressor = Compressor::new(CompressorSetup::by_rules());
    assert!(compressor.status().await.is_err());
    compressor.update_model(&model_at_threshold(&now)).await.unwrap();
    let usage = Usage { input: 100, cache_read: 4_900, output: 9_999, ..Usage::default() };
    let measured = MeasuredUsage { session: now.session.clone(), usage: Some(usage) };
    compressor.update_from_response(&measured).await.unwrap();
    let status = compressor.status().await.unwrap();
    assert_eq!(status.last_prompt_tokens, Some(5_000));
    assert_eq!(status.pressure.of_threshold_permille(), 5_000 * 1_000 / status.threshold_tokens);
    let boundary = Boundary {
        reason: BoundaryReason::Compression,
        old: now.session.clone(),
        new: SessionId::from_text("next"),
    };
    compressor.boundary(&boundary).await.unwrap();
    let status = compressor.status().await.unwrap();
    assert_eq!((status.compactions, status.last_prompt_tokens), (1, None));
    let undone = Boundary { reason: BoundaryReason::Undo, ..boundary };
    compressor.boundary(&undone).await.unwrap();
    assert_eq!(compressor.status().await.unwrap().compactions, 0, "what was undone does not count");
    let redone = Boundary { reason: BoundaryReason::Redo, ..undone };
    compressor.boundary(&redone).await.unwrap();
    assert_eq!(compressor.status().await.unwrap().compactions, 1);
}
