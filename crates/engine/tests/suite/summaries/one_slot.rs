//! A server that works on one call at a time, as people run models on their own machines: a summary prepared in the
//! background is never in the way of a call that somebody waits for.

use std::sync::Arc;
use std::time::Duration;

use throughline_compaction::Quality;
use throughline_engine::EngineEvent;
use throughline_testkit::{RecordedRequest, Reply};
use throughline_transcript::WireFormat;

use crate::summaries::stage::{Stage, is_summary_request, talk};

/// Far longer than anything here takes; what waits behind a summary that never ends would wait for ever.
const FOR_EVER: Duration = Duration::from_secs(120);

/// A conversation at a one-slot server, near its threshold, with a summary being prepared that is never finished.
async fn preparing(wire_format: WireFormat) -> Stage {
    let mut stage =
        Stage::with_slots(Some(1), wire_format, Arc::new(|_| Reply::stall()), FOR_EVER, |_| Vec::new()).await;
    stage.fail();
    // Only one of the wires demands a limit.
    stage.limits_output = wire_format == WireFormat::Anthropic;
    let mut turn = 0;
    while !stage.session.is_preparing() {
        stage.say(talk(turn)).await;
        turn += 1;
        assert!(turn < 400, "nothing is prepared");
    }
    let calls = stage.upstream.calls().len();
    until(stage.upstream.until_asked(calls + 1)).await;
    assert!(is_summary_request(&stage.upstream.calls()[calls].text()), "{wire_format}");
    stage
}

/// Waits for something that happens, or fails the test.
async fn until<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(FOR_EVER, future).await.unwrap_or_else(|_| panic!("it never happened"))
}

fn summaries(stage: &Stage) -> Vec<RecordedRequest> {
    stage.upstream.calls().into_iter().filter(|call| is_summary_request(&call.text())).collect()
}

fn postponed(stage: &Stage) -> usize {
    stage.events().iter().filter(|event| matches!(event, EngineEvent::PreparationPostponed)).count()
}

#[tokio::test]
async fn a_call_does_not_wait_behind_a_summary_in_preparation() {
    for wire_format in WireFormat::ALL {
        let mut stage = preparing(wire_format).await;
        // The server never finishes the summary: the call comes through only if the summary is cancelled.
        until(stage.say("And now?".to_owned())).await;
        until(stage.upstream.until_hung_up()).await;
        // The call may be over before the preparation that it cancelled has ended.
        until(stage.session.until_prepared()).await;
        assert_eq!(postponed(&stage), 1, "{wire_format}: {}", stage.told());
        assert!(!stage.session.is_preparing(), "{wire_format}: it is not begun again at once");
        assert_eq!(stage.session.compactions(), 0);
        assert_eq!(summaries(&stage).len(), 1, "{wire_format}");
        stage.assert_nothing_lost(wire_format.name());
    }
}

#[tokio::test]
async fn a_summary_is_made_at_the_threshold_after_preparations_were_cancelled() {
    for wire_format in WireFormat::ALL {
        let mut stage = preparing(wire_format).await;
        until(stage.say("And now?".to_owned())).await;
        // From here on the server finishes what it is asked.
        stage.succeed();
        let mut turn = stage.said.len();
        while stage.session.compactions() == 0 {
            until(stage.say(talk(turn))).await;
            turn += 1;
            assert!(turn < 400, "{wire_format}: {}", stage.told());
        }
        let quality = stage.events().into_iter().find_map(|event| match event {
            EngineEvent::CompactionCompleted { quality, .. } => Some(quality),
            _ => None,
        });
        assert_eq!(quality, Some(Quality::Model), "{wire_format}: {}", stage.told());
        // One for every twentieth of the threshold that the conversation grew, and the one that was used.
        assert!(summaries(&stage).len() <= 6, "{wire_format}: {}", summaries(&stage).len());
        stage.assert_nothing_lost(wire_format.name());
    }
}

#[tokio::test]
async fn a_summary_call_has_a_limit_of_output_on_every_wire() {
    for (wire_format, member) in [
        (WireFormat::Chat, "max_tokens"),
        (WireFormat::Responses, "max_output_tokens"),
        (WireFormat::Anthropic, "max_tokens"),
    ] {
        let mut stage = preparing(wire_format).await;
        let asked = summaries(&stage).remove(0).json();
        let cap = asked[member].as_u64().unwrap_or_else(|| panic!("{wire_format}: {asked}"));
        // Half as much again as the budget of the summary, and room to think: far from the window of 32,000.
        assert!((100..6_000).contains(&cap), "{wire_format}: {cap}");
        until(stage.say("And now?".to_owned())).await;
    }
}
