//! What a conversation goes through: leaves, condensed nodes, undo, preparation, models that fail, other engines' summaries.

use std::sync::Arc;

use throughline_compaction::AbortReason;
use throughline_compaction::Quality;
use throughline_engine::{CompactionResult, ContextEngine, PrepareOutcome, Snapshot};
use throughline_lcm::LcmLimits;
use throughline_store::SummaryId;
use throughline_testkit::big_transcript;
use throughline_tokens::TokenModel;
use throughline_transcript::{DecodeOptions, Message, Transcript, WireFormat};

use crate::support::{Act, Script, Stage, owner};

const NOTES: &str = "## Goal\n- Ship the release.\n## Constraints & Preferences\n- Never push to main.\n";

fn coding(messages: usize, seed: u64) -> Vec<Message> {
    let json = big_transcript(WireFormat::Anthropic, messages * 900, messages, seed);
    Transcript::decode(json.into_bytes(), &DecodeOptions::default()).unwrap().messages
}

fn stage() -> Stage {
    Stage::new(WireFormat::Anthropic, 40_000, LcmLimits { chunk_tokens: 2_500, ..LcmLimits::default() })
}

fn nodes(stage: &Stage) -> Vec<(SummaryId, u32)> {
    stage.with_recall(|recall| {
        recall.top_nodes(&stage.tip).unwrap().iter().map(|node| (node.id, node.node.level)).collect()
    })
}

#[tokio::test]
async fn leaves_become_condensed_nodes_and_those_become_fewer_again() {
    let mut stage = stage();
    let said = coding(900, 7);
    let mut levels = Vec::new();
    let mut previous = String::new();
    for piece in said.chunks(60) {
        stage.append(piece);
        let result = stage.fold().await;
        assert!(
            matches!(result, CompactionResult::Completed(_) | CompactionResult::NoOp { .. }),
            "{result:?}"
        );
        stage.check();
        assert!(stage.view_tokens() < 20_000, "the view fits below the threshold: {}", stage.view_tokens());
        let notes = stage.notes();
        // What did not change is not sent anew: both begin alike, at least as far as the preface.
        let shared = previous.bytes().zip(notes.bytes()).take_while(|(a, b)| a == b).count();
        assert!(previous.is_empty() || shared > 500, "{shared}");
        previous = notes;
        levels = nodes(&stage).into_iter().map(|(_, level)| level).collect();
    }
    assert_eq!(levels.iter().max(), Some(&2), "{levels:?}");
    assert!(levels.len() <= 20, "{levels:?}");
}

#[tokio::test]
async fn no_call_sees_more_than_its_chunk_and_nothing_is_summarised_twice() {
    let mut stage = stage();
    let script = Script::new(&[Act::Write(NOTES)]);
    stage.model = Some(Arc::clone(&script));
    let said = coding(300, 3);
    for piece in said.chunks(100) {
        stage.append(piece);
        let result = stage.fold().await;
        let CompactionResult::Completed(done) = result else { panic!("{result:?}") };
        assert_eq!(done.quality, Quality::Model);
        stage.check();
    }
    let most = script.sizes.lock().unwrap().iter().copied().max().unwrap();
    let largest =
        stage.store.transcript(&owner(), &stage.tip).unwrap().iter().map(|m| m.tokens).max().unwrap();
    assert!(most <= 2_500.max(largest * 2), "{most}");
    let shown = script.shown.lock().unwrap();
    for message in &said {
        let times = shown.iter().filter(|text| text.contains(message.json())).count();
        assert!(times <= 1, "summarised {times} times: {}", message.json());
    }
    assert!(stage.notes().contains("Never push to main."));
}

#[tokio::test]
async fn undo_brings_the_messages_back_and_folding_again_asks_nobody() {
    let mut stage = stage();
    let script = Script::new(&[Act::Write(NOTES)]);
    stage.model = Some(Arc::clone(&script));
    stage.append(&coding(120, 5));
    let before: Vec<String> = stage.shown().iter().map(|item| item.json().to_owned()).collect();
    assert!(matches!(stage.fold().await, CompactionResult::Completed(_)));
    let (folded, asked) = (stage.notes(), script.calls());
    let mut session = stage.open().await;
    session.undo().await.unwrap();
    stage.tip = session.id().clone();
    drop(session);
    let back: Vec<String> = stage.shown().iter().map(|item| item.json().to_owned()).collect();
    assert_eq!(back, before);
    stage.check();
    let result = stage.fold().await;
    let CompactionResult::Completed(done) = result else { panic!("{result:?}") };
    assert!(done.report.prepared);
    assert_eq!((stage.notes(), script.calls()), (folded, asked));
    stage.check();
}

async fn snapshot(stage: &Stage) -> (throughline_lcm::LcmEngine, Snapshot) {
    let session = stage.open().await;
    let engine = stage.engine();
    engine.update_model(session.model()).await.unwrap();
    let messages = session.messages().to_vec();
    let model = TokenModel::for_model("claude-sonnet-4-5", stage.wire_format);
    let sizes: Vec<u64> = messages
        .iter()
        .map(|message| model.estimate_content(&throughline_tokens::ContentProfile::of_message(message)))
        .collect();
    let prompt_tokens = sizes.iter().sum();
    let snapshot = Snapshot {
        session: stage.tip.clone(),
        wire_format: stage.wire_format,
        messages: Arc::new(messages),
        sizes: Arc::new(sizes),
        fixed_tokens: 0,
        prompt_tokens,
        cached_prompt: None,
    };
    (engine, snapshot)
}

#[tokio::test]
async fn what_was_prepared_is_used_and_outlives_the_process() {
    let mut stage = stage();
    let script = Script::new(&[Act::Write(NOTES)]);
    stage.model = Some(Arc::clone(&script));
    stage.append(&coding(100, 11));
    let (engine, conversation) = snapshot(&stage).await;
    let ready = engine.prepare(&conversation).await.unwrap();
    let PrepareOutcome::Ready { messages } = ready else { panic!("{ready:?}") };
    assert!(messages > 20, "{messages}");
    let prepared = script.calls();
    // Nothing of it is in memory: another engine finds it.
    let (other, conversation) = snapshot(&stage).await;
    assert!(matches!(other.prepare(&conversation).await.unwrap(), PrepareOutcome::Ready { .. }));
    assert_eq!(script.calls(), prepared, "what is ready is not written again");
    stage.append(&coding(20, 12));
    let result = stage.fold().await;
    let CompactionResult::Completed(done) = result else { panic!("{result:?}") };
    assert!(done.report.prepared);
    let shown = script.shown.lock().unwrap();
    for message in stage.store.transcript(&owner(), &stage.tip).unwrap().iter().take(100) {
        let times = shown.iter().filter(|text| text.contains(message.json.as_str())).count();
        assert!(times <= 1, "message {} was summarised {times} times", message.seq);
    }
    drop(shown);
    stage.check();
}

#[tokio::test]
async fn a_model_that_fails_for_now_is_waited_for_and_what_it_wrote_is_kept() {
    let mut stage = stage();
    let script = Script::new(&[Act::Write(NOTES), Act::Write(NOTES), Act::Transient, Act::Write(NOTES)]);
    stage.model = Some(Arc::clone(&script));
    stage.append(&coding(120, 5));
    let result = stage.fold().await;
    let CompactionResult::Aborted { reason, detail } = result else { panic!("{result:?}") };
    assert_eq!(reason, Some(AbortReason::SummariserUnavailable), "{detail}");
    stage.check();
    assert!(nodes(&stage).is_empty(), "the view is as it was");
    let kept = stage.store.nodes_since(&owner(), &stage.tip, SummaryId(0)).unwrap().len();
    assert_eq!(kept, 2);
    let asked = script.calls();
    assert!(matches!(stage.fold().await, CompactionResult::Completed(_)));
    let in_the_end = stage.store.nodes_since(&owner(), &stage.tip, SummaryId(0)).unwrap().len();
    assert_eq!(script.calls() - asked, in_the_end - kept, "the two leaves were not written again");
    stage.check();
}

#[tokio::test]
async fn detailed_then_terse_then_rules() {
    let mut stage = stage();
    let script = Script::new(&[
        Act::WriteLong(9_000),
        Act::Write(NOTES),
        Act::WriteLong(9_000),
        Act::WriteLong(9_000),
        Act::Permanent,
    ]);
    stage.model = Some(Arc::clone(&script));
    stage.append(&coding(120, 5));
    let result = stage.fold().await;
    let CompactionResult::Completed(done) = result else { panic!("{result:?}") };
    assert!(
        done.report.warnings.iter().any(|words| words.contains("by rules, because")),
        "{:?}",
        done.report
    );
    let authors: Vec<String> = stage
        .store
        .nodes_since(&owner(), &stage.tip, SummaryId(0))
        .unwrap()
        .into_iter()
        .map(|n| n.author)
        .collect();
    assert_eq!(authors[0], "scripted", "the terse try was taken");
    assert!(authors[1..].iter().all(|author| author == "rules"), "{authors:?}");
    stage.check();
}

#[tokio::test]
async fn secrets_are_masked_and_inventions_taken_out() {
    let mut stage = stage();
    let notes = "## Goal\n- Deploy with AKIAIOSFODNN7EXAMPLE to src/invented_by_the_model.rs.\n";
    stage.model = Some(Script::new(&[Act::Write(notes)]));
    stage.append(&coding(120, 5));
    assert!(matches!(stage.fold().await, CompactionResult::Completed(_)));
    let notes = stage.notes();
    assert!(!notes.contains("AKIAIOSFODNN7EXAMPLE") && !notes.contains("invented_by_the_model"), "{notes}");
    assert!(notes.contains("[not in the record]"), "{notes}");
}

#[tokio::test]
async fn a_summary_of_the_compressor_is_a_leaf() {
    use throughline_engine::{Compressor, CompressorSetup, ManagedSession, ManualCompaction};
    let mut stage = stage();
    stage.append(&coding(120, 5));
    let mut setup = stage.setup();
    setup.engine = Arc::new(Compressor::new(CompressorSetup::by_rules()));
    let mut session = ManagedSession::open(setup, &stage.tip).await.unwrap();
    assert!(matches!(session.compact(ManualCompaction::default()).await, CompactionResult::Completed(_)));
    stage.tip = session.id().clone();
    drop(session);
    stage.check();
    let plain = nodes(&stage);
    assert_eq!(plain.len(), 1);
    stage.append(&coding(120, 6));
    assert!(matches!(stage.fold().await, CompactionResult::Completed(_)));
    stage.check();
    let tree = stage.with_recall(|recall| recall.tree(&stage.tip).unwrap());
    let known: Vec<SummaryId> = tree
        .nodes
        .iter()
        .flat_map(|node| std::iter::once(&node.head).chain(node.took_up.iter().map(|below| &below.head)))
        .map(|head| head.id)
        .collect();
    assert!(known.contains(&plain[0].0), "{known:?} without {plain:?}");
    // And the other way round: the compressor takes the nodes up as one summary.
    let mut setup = stage.setup();
    setup.engine = Arc::new(Compressor::new(CompressorSetup::by_rules()));
    stage.append(&coding(60, 8));
    let mut session = ManagedSession::open(setup, &stage.tip).await.unwrap();
    let result = session.compact(ManualCompaction::default()).await;
    assert!(matches!(result, CompactionResult::Completed(_)), "{result:?}");
    stage.tip = session.id().clone();
    drop(session);
    stage.check();
}
