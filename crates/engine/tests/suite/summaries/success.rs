//! A summary that is written: by whom, how, and what stands in the record about it.

use std::sync::Arc;
use std::time::Duration;

use throughline_engine::EngineEvent;
use throughline_store::UsageKind;
use throughline_testkit::Reply;
use throughline_transcript::WireFormat;

use crate::summaries::stage::{MODEL, Stage, is_summary_request, words};

async fn stage(wire_format: WireFormat) -> Stage {
    Stage::new(wire_format, Arc::new(|_| Reply::text("")), Duration::from_secs(60), |_| Vec::new()).await
}

#[tokio::test]
async fn riding_reads_the_prompt_from_the_cache_and_is_booked() {
    let mut stage = stage(WireFormat::Anthropic).await;
    stage.fill_to(78).await;
    stage.say(words(5, 4_300)).await;
    assert_eq!(stage.session.compactions(), 1, "{}", stage.told());
    let written_by = stage.events().into_iter().find_map(|event| match event {
        EngineEvent::CompactionCompleted { report, .. } => report.written_by,
        _ => None,
    });
    let written_by = written_by.unwrap();
    assert_eq!((written_by.model.as_str(), written_by.form.as_str(), written_by.calls), (MODEL, "riding", 1));
    let booked = stage.booked();
    let [call] = booked.as_slice() else { panic!("{booked:?}") };
    assert_eq!((call.usage, call.usage_kind), (written_by.usage, UsageKind::Measured));
    let (read, prompt) = (call.usage.cache_read, call.usage.prompt());
    assert!(read * 10 > prompt * 7, "{read} of {prompt} tokens were read from the cache");
    assert!(call.latency_ms.is_some() && call.error.is_none() && call.key.is_some());
    let summaries = throughline_store::Store::summaries(
        stage.store.as_ref(),
        &throughline_store::Owner::default(),
        &stage.tip(),
    );
    let summary = summaries.unwrap().pop().unwrap();
    assert_eq!(summary.author, MODEL);
    assert_eq!(summary.figures["written_by"]["form"], "riding");
    stage.assert_nothing_lost("riding");
    // The conversation itself never holds the instruction.
    let asked = stage.upstream.calls().into_iter().filter(|call| is_summary_request(&call.text()));
    assert_eq!(asked.count(), 1);
}

#[tokio::test]
async fn a_long_conversation_is_compacted_again_and_again_on_every_wire() {
    for wire_format in WireFormat::ALL {
        let mut stage = stage(wire_format).await;
        for turn in 0..900 {
            stage.say(crate::summaries::stage::talk(turn)).await;
            if stage.session.compactions() == 4 {
                break;
            }
        }
        assert_eq!(stage.session.compactions(), 4, "{wire_format}");
        stage.assert_nothing_lost(&wire_format.to_string());
        let told = stage.told();
        assert!(!told.contains("aborted") && !told.contains("by rules"), "{wire_format}: {told}");
        assert!(stage.booked().iter().all(|call| call.error.is_none()), "{wire_format}");
    }
}
