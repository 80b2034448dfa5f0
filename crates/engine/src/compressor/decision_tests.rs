//! Tests of when a compaction is delayed, and how small it makes the view at the hard limit.

use std::sync::Arc;

use throughline_compaction::NoOpReason;
use throughline_tokens::{CachePrices, LimitPolicy, Limits};
use throughline_transcript::WireFormat;

use super::*;
use crate::compressor::{Compressor, CompressorSetup, OneSummariser};
use crate::context_engine::ContextEngine as _;
use crate::context_engine::outcome::CompressOutcome;
use crate::limits::in_force::{EngineLimits, NotesPrice};
use crate::test_talk::{LoggingSummariser, MODEL, session, snapshot};

/// A coding session of about this many tokens, beside a fixed part.
fn conversation(wire_format: WireFormat, message_tokens: u64, fixed_tokens: u64) -> Snapshot {
    let all = session(wire_format, 400, 1_200_000);
    let whole = snapshot(wire_format, &all);
    let mut used = 0;
    let within = |size: &&u64| {
        let is_within = used < message_tokens;
        used += **size;
        is_within
    };
    let messages = whole.sizes.iter().take_while(within).count();
    let mut found = snapshot(wire_format, &all[..messages]);
    found.fixed_tokens = fixed_tokens;
    found.prompt_tokens = found.estimated_tokens();
    found
}

fn model(window_tokens: u64, reserved_output_tokens: u64, fixed_tokens: u64) -> ModelInForce {
    let policy = LimitPolicy { reserved_output_tokens, ..LimitPolicy::for_window(window_tokens) };
    let limits = EngineLimits::from(&Limits::beside(&policy, fixed_tokens).unwrap());
    // A model with a price for its answers.
    let prices = CachePrices { output_permille: 5_000, ..CachePrices::default() };
    let notes_price = NotesPrice::default();
    ModelInForce {
        model: MODEL.to_owned(),
        provider: "test".to_owned(),
        window_tokens,
        limits,
        prices,
        notes_price,
    }
}

async fn engine(diary: &Arc<LoggingSummariser>, model: &ModelInForce) -> Compressor {
    let summariser: Arc<dyn throughline_compaction::Summariser> = Arc::<LoggingSummariser>::clone(diary);
    let setup =
        CompressorSetup { summarisers: Arc::new(OneSummariser(summariser)), ..CompressorSetup::by_rules() };
    let engine = Compressor::new(setup);
    engine.update_model(model).await.unwrap();
    engine
}

#[tokio::test]
async fn a_compaction_at_the_threshold_waits_beside_a_large_fixed_part() {
    for wire_format in WireFormat::ALL {
        let model = model(90_000, 32_000, 31_000);
        let now = conversation(wire_format, 27_000, 31_000);
        assert!(now.prompt_tokens >= model.limits.threshold_tokens, "{wire_format}");
        let diary = Arc::new(LoggingSummariser::default());
        let engine = engine(&diary, &model).await;
        assert!(engine.should_compress(now.prompt_tokens).await.unwrap());
        let worth = engine.worth_compressing(&now, Trigger::Preflight).await.unwrap();
        assert!(matches!(worth, Profitability::No { .. }), "{wire_format}: {worth:?}");
        let outcome = engine.compress(&automatic(&now, Trigger::Preflight)).await.unwrap();
        let CompressOutcome::NoOp { reason: NoOpReason::DoesNotPay, detail } = &outcome else {
            panic!("{wire_format}: {outcome:?}")
        };
        assert!(detail.contains("required"), "{detail}");
        assert!(engine.due_at(&now).unwrap() > now.prompt_tokens);
        assert_eq!(diary.pages().len(), 0, "{wire_format}: nobody was paid");
        // No summary is prepared too early.
        let early = conversation(wire_format, 15_000, 31_000);
        let due_at = engine.compaction_due_at(&early).await.unwrap().unwrap();
        assert!(early.prompt_tokens * 100 < due_at * 80, "{wire_format}: {due_at}");
    }
}

#[tokio::test]
async fn a_compaction_at_the_hard_limit_goes_so_deep_that_it_pays() {
    for wire_format in WireFormat::ALL {
        let model = model(90_000, 32_000, 31_000);
        let now = conversation(wire_format, 47_500, 31_000);
        assert!(now.prompt_tokens > model.hard_limit_tokens(), "{wire_format}: {}", now.prompt_tokens);
        let diary = Arc::new(LoggingSummariser::default());
        let engine = engine(&diary, &model).await;
        let request = CompressRequest { room: Headroom::None, ..automatic(&now, Trigger::Preflight) };
        let outcome = engine.compress(&request).await.unwrap();
        let CompressOutcome::Completed(done) = outcome else { panic!("{wire_format}: {outcome:?}") };
        let sum = done.report.payback.unwrap();
        let left = done.report.tokens.after - 31_000;
        // A step is kept or dropped as a whole, so it may miss by one.
        assert!(sum.freed_tokens + sum.growth_tokens >= sum.required_tokens, "{wire_format}: {sum:?}");
        assert!(left * 2 < done.report.tokens.before - 31_000, "{wire_format}: {:?}", done.report.tokens);
    }
}

#[tokio::test]
async fn the_usual_numbers_pay_at_the_threshold() {
    for wire_format in WireFormat::ALL {
        let model = model(200_000, 32_000, 4_000);
        let now = conversation(wire_format, 97_000, 4_000);
        assert!(now.prompt_tokens >= 100_000, "{wire_format}: {}", now.prompt_tokens);
        let engine = Compressor::new(CompressorSetup::by_rules());
        engine.update_model(&model).await.unwrap();
        assert_eq!(
            engine.worth_compressing(&now, Trigger::Preflight).await.unwrap(),
            Profitability::Yes,
            "{wire_format}"
        );
        assert_eq!(engine.due_at(&now).unwrap(), 100_000, "{wire_format}");
        let outcome = engine.compress(&automatic(&now, Trigger::Preflight)).await.unwrap();
        let CompressOutcome::Completed(done) = outcome else { panic!("{wire_format}: {outcome:?}") };
        assert!(done.report.payback.unwrap().pays, "{wire_format}");
    }
}

#[tokio::test]
async fn what_a_person_asks_for_and_what_was_refused_need_not_pay() {
    let wire_format = WireFormat::Anthropic;
    let model = model(90_000, 32_000, 31_000);
    let now = conversation(wire_format, 27_000, 31_000);
    for trigger in [Trigger::Manual, Trigger::Overflow] {
        let engine = engine(&Arc::new(LoggingSummariser::default()), &model).await;
        let request = CompressRequest { force: true, ..automatic(&now, trigger) };
        let outcome = engine.compress(&request).await.unwrap();
        let CompressOutcome::Completed(done) = outcome else { panic!("{trigger:?}: {outcome:?}") };
        assert!(!done.report.payback.unwrap().pays, "{trigger:?}: and it is told that it does not");
    }
}
