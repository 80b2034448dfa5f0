//! The second net: what preflight stood back from is compacted before it is too late.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use throughline_compaction::AbortReason;
use throughline_engine::{
    CompressOutcome, CompressRequest, Compressor, CompressorSetup, ContextEngine, EngineEvent, EngineFuture,
    EngineStatus, MeasuredUsage, ModelInForce, Trigger, answered,
};
use throughline_gateway::GatewayEvent;
use throughline_testkit::{Reply, Script};
use throughline_transcript::WireFormat;

use crate::stage::{MODEL, Stage};

/// The built-in engine, whose summaries fail for as long as it is told so.
struct Failing {
    inner: Compressor,
    fails: Arc<AtomicBool>,
}

impl ContextEngine for Failing {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn update_model<'a>(&'a self, model: &'a ModelInForce) -> EngineFuture<'a, ()> {
        self.inner.update_model(model)
    }

    fn update_from_response<'a>(&'a self, usage: &'a MeasuredUsage) -> EngineFuture<'a, ()> {
        self.inner.update_from_response(usage)
    }

    fn should_compress(&self, prompt_tokens: u64) -> EngineFuture<'_, bool> {
        self.inner.should_compress(prompt_tokens)
    }

    fn compress<'a>(&'a self, request: &'a CompressRequest) -> EngineFuture<'a, CompressOutcome> {
        if self.fails.load(Ordering::Relaxed) {
            let detail = "whoever writes summaries is down".to_owned();
            return answered(CompressOutcome::Aborted { reason: AbortReason::SummariserFailed, detail });
        }
        self.inner.compress(request)
    }

    fn status(&self) -> EngineFuture<'_, EngineStatus> {
        self.inner.status()
    }
}

/// How each compaction that was begun came about.
fn triggers(stage: &Stage) -> Vec<Trigger> {
    let events = stage.events.lock().unwrap();
    let begun = events.iter().filter_map(|event| match event {
        GatewayEvent::Engine { event: EngineEvent::CompactionStarted { trigger, .. }, .. } => Some(*trigger),
        _ => None,
    });
    begun.collect()
}

#[tokio::test]
async fn a_conversation_in_cooldown_is_compacted_at_ninety_percent_all_the_same() {
    const WINDOW_TOKENS: u64 = 60_000;
    let fails = Arc::new(AtomicBool::new(true));
    let told = Arc::clone(&fails);
    let engine = Arc::new(move |_owner: &throughline_store::Owner| {
        let inner = Compressor::new(CompressorSetup::by_rules());
        Arc::new(Failing { inner, fails: Arc::clone(&told) }) as Arc<dyn ContextEngine>
    });
    let script = Script::answering(|request| Reply::text(format!("Answer {}.", request.order)));
    let stage = Stage::with_engine(engine, Some(WINDOW_TOKENS), script).await;
    let mut talk: Vec<Value> = Vec::new();
    let (mut put_off, mut compacted_at) = (0, None);
    for turn in 0..300 {
        talk.push(
            json!({ "role": "user", "content": format!("Turn {turn}: {}", "some words ".repeat(150)) }),
        );
        let response =
            stage.ask(WireFormat::Chat, &json!({ "model": MODEL, "messages": talk }).to_string()).await;
        assert_eq!(response.status(), 200, "turn {turn}");
        let answer: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        talk.push(answer["choices"][0]["message"].clone());
        if stage.compactions() > 0 {
            compacted_at = Some(turn);
            break;
        }
        if !triggers(&stage).is_empty() {
            // The first attempt failed; from now on summaries could be written, but the conversation is in cooldown.
            fails.store(false, Ordering::Relaxed);
            put_off += 1;
        }
    }
    assert!(compacted_at.is_some(), "nothing was compacted");
    assert!(put_off >= 5, "it was in cooldown for {put_off} turns only");
    assert_eq!(triggers(&stage).len(), 2, "{:?}", triggers(&stage));
}
