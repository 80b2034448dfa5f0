//! Tests that a compaction has the same result with and without a prepared summary: the same head, a tail by the same rules, and correct
//! text around the summary.

use std::sync::Arc;

use proptest::prelude::*;
use throughline_compaction::{Summariser, find_summary, is_acknowledgement};
use throughline_transcript::{Message, Role, SharedText, WireFormat, decode_message, text_message};

use super::*;
use crate::compressor::decision::automatic;
use crate::compressor::{Compressor, CompressorSetup, OneSummariser};
use crate::context_engine::ContextEngine as _;
use crate::context_engine::outcome::{
    CompactedView, CompressOutcome, CompressRequest, NewItem, PrepareOutcome,
};
use crate::decide::trigger::Trigger;
use crate::limits::in_force::ModelInForce;
use crate::test_talk::{LoggingSummariser, model_of, session, snapshot};

async fn engine(model: &ModelInForce) -> (Compressor, Arc<LoggingSummariser>) {
    let diary = Arc::new(LoggingSummariser::default());
    let summariser: Arc<dyn Summariser> = Arc::<LoggingSummariser>::clone(&diary);
    let setup =
        CompressorSetup { summarisers: Arc::new(OneSummariser(summariser)), ..CompressorSetup::by_rules() };
    let engine = Compressor::new(setup);
    engine.update_model(model).await.unwrap();
    (engine, diary)
}

/// Splits a view into the items before the summary, the summary's text, and the items after it.
fn parts(done: &CompactedView) -> (Vec<NewItem>, Message, Vec<NewItem>) {
    let at = done.view.iter().position(|item| matches!(item, NewItem::Summary { .. })).unwrap();
    let NewItem::Summary { json } = &done.view[at] else { panic!("no summary") };
    let summary = decode_message(SharedText::new(json.clone())).unwrap();
    let is_ours = |item: &NewItem| match item {
        NewItem::Synthetic { json, .. } => {
            is_acknowledgement(&decode_message(SharedText::new(json.clone())).unwrap())
        }
        _ => false,
    };
    let behind = done.view[at + 1..].iter().filter(|item| !is_ours(item)).cloned().collect();
    (done.view[..at].to_vec(), summary, behind)
}

fn tokens_of(items: &[NewItem], conversation: &Snapshot) -> u64 {
    let size = |item: &NewItem| match item {
        NewItem::Kept { item } | NewItem::Rewritten { item, .. } => conversation.sizes[*item],
        NewItem::Summary { .. } | NewItem::Synthetic { .. } => 0,
    };
    items.iter().map(size).sum()
}

/// The results of both ways.
struct BothWays {
    at_once: CompactedView,
    prepared: CompactedView,
    /// Number of summary requests while preparing.
    pages: usize,
}

/// Compacts a conversation once directly, and once with a summary prepared when it had `early` messages.
async fn both_ways(
    wire_format: WireFormat,
    all: &[Message],
    early: usize,
    window_tokens: u64,
) -> Option<BothWays> {
    let model = model_of(window_tokens);
    let now = snapshot(wire_format, all);
    let request = CompressRequest { force: true, ..automatic(&now, Trigger::Overflow) };
    let (fresh, _) = engine(&model).await;
    let at_once = fresh.compress(&request).await.unwrap();
    let (ahead, diary) = engine(&model).await;
    let was_ready = ahead.prepare(&snapshot(wire_format, &all[..early])).await.unwrap();
    let PrepareOutcome::Ready { .. } = was_ready else { return None };
    let prepared = ahead.compress(&request).await.unwrap();
    match (at_once, prepared) {
        (CompressOutcome::Completed(at_once), CompressOutcome::Completed(prepared)) => {
            Some(BothWays { at_once: *at_once, prepared: *prepared, pages: diary.pages().len() })
        }
        _ => None,
    }
}

/// A conversation whose first message has about this many characters.
fn begun_with(wire_format: WireFormat, messages: usize, bytes: usize, first_chars: usize) -> Vec<Message> {
    let mut all = session(wire_format, messages, bytes);
    let first = all.iter().position(|message| message.role() == Role::User).unwrap_or(0);
    let words = "Keep to the plan that was agreed on with the people of the harbour. ";
    let text = words.repeat(first_chars.div_ceil(words.len()));
    all[first] = decode_message(SharedText::new(text_message(wire_format, Role::User, &text))).unwrap();
    all
}

fn holds(ways: &BothWays, now: &Snapshot, window_tokens: u64, what: &str) {
    let (head, _, tail) = parts(&ways.at_once);
    let (prepared_head, summary, prepared_tail) = parts(&ways.prepared);
    assert_eq!(prepared_head, head, "{what}: the same head");
    let budgets = now.scaled_budgets(&model_of(window_tokens).budgets(), None);
    let (tokens, at_once) = (tokens_of(&prepared_tail, now), tokens_of(&tail, now));
    assert!(tokens >= at_once.min(budgets.tail_tokens), "{what}: {tokens} where {at_once} are due");
    let most = budgets.stretched_tail_tokens.max(budgets.tail_tokens * 5 / 4).max(at_once);
    assert!(tokens <= most, "{what}: {tokens} where {most} are allowed");
    assert!(
        tail.iter().all(|item| prepared_tail.contains(item)),
        "{what}: nothing that is kept at once goes"
    );
    assert_eq!(prepared_tail.last(), tail.last(), "{what}: the end is the end");
    let found = find_summary(&summary).unwrap();
    assert_eq!(found.kept, Some(prepared_tail.len()), "{what}: the preface says what follows");
    assert!(ways.prepared.report.prepared, "{what}");
    assert_eq!(ways.prepared.report.messages.before, now.messages.len() as u64, "{what}");
    assert_eq!(ways.prepared.report.messages.after, ways.prepared.view.len() as u64, "{what}");
}

/// The usual case: prepared at four fifths of the threshold and used at the threshold, with a first message that fits half a tail at the
/// threshold but not at the time of preparation.
#[tokio::test]
async fn a_head_that_fits_is_kept_by_a_summary_that_was_prepared() {
    for wire_format in WireFormat::ALL {
        let all = begun_with(wire_format, 300, 450_000, 8_003);
        let now = snapshot(wire_format, &all);
        let window = now.prompt_tokens * 2;
        let mut used = now.fixed_tokens;
        let early = now.sizes.iter().take_while(|size| {
            used += **size;
            used * 100 <= now.prompt_tokens * 85
        });
        let ways = both_ways(wire_format, &all, early.count(), window).await.unwrap();
        assert!(!parts(&ways.at_once).0.is_empty(), "{wire_format}: there is a head to lose");
        assert_eq!(ways.pages, 1, "{wire_format}: nobody is asked twice");
        holds(&ways, &now, window, &wire_format.to_string());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(throughline_testkit::cases(48)))]

    #[test]
    fn a_prepared_summary_gives_the_view_that_is_made_at_once(
        wire in 0usize..3,
        messages in 60usize..260,
        first_chars in 20usize..12_000,
        early_percent in 55usize..100,
        window_percent in 40u64..230,
    ) {
        let wire_format = WireFormat::ALL[wire];
        let all = begun_with(wire_format, messages, messages * 1_500, first_chars);
        let now = snapshot(wire_format, &all);
        let window = now.prompt_tokens * window_percent / 100;
        let early = all.len() * early_percent / 100;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        if let Some(ways) = runtime.block_on(both_ways(wire_format, &all, early, window)) {
            holds(&ways, &now, window, &format!("{wire_format}, {early} of {} messages", all.len()));
        }
    }
}
