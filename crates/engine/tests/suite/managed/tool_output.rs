//! Long tool results: set aside when they are first seen, whole in the record, the same bytes from then on.

use throughline_engine::{CallInput, EngineEvent};
use throughline_store::{ArtifactId, ArtifactRange, Owner, ViewMessage};
use throughline_tokens::LimitPolicy;
use throughline_transcript::WireFormat;

use crate::managed::prefix::{shared_prefix, unmarked};
use crate::managed::support::{Act, Stage, envelope, reading, result, saying, words};

/// A conversation in which a tool printed this much.
fn stage(wire_format: WireFormat, result_chars: u64) -> Stage {
    let mut stage = Stage::new(wire_format, 200_000);
    stage.setup.target.policy = LimitPolicy { tool_result_chars: result_chars, ..stage.setup.target.policy };
    stage.setup.tool_output.exempt.clear();
    stage
}

#[tokio::test]
async fn a_long_result_is_shown_short_and_kept_whole() {
    for wire_format in WireFormat::ALL {
        let stage = stage(wire_format, 8_000);
        let mut session = stage.open().await;
        stage.script.then(Act::Say(reading("call_1", "build.log")));
        session.call(saying(wire_format, "Why does the build fail?")).await.unwrap();
        let log = words(3, 4_000);
        session
            .call(CallInput::new(envelope(wire_format), vec![result(wire_format, "call_1", &log)]))
            .await
            .unwrap();
        let body = stage.script.last_body();
        assert!(body.contains("<persisted-output>") && body.len() < 6_000, "{wire_format}: {}", body.len());
        // The record has all of it, as a message and as an artifact.
        assert!(stage.transcript().iter().any(|json| json.contains(&log)), "{wire_format}");
        let told = stage.told().into_iter().find_map(|event| match event {
            EngineEvent::OutputSetAside { tool, chars, artifact, .. } => Some((tool, chars, artifact)),
            _ => None,
        });
        let (tool, chars, artifact) = told.unwrap();
        assert_eq!((tool.as_deref(), chars), (Some("read_file"), log.len() as u64), "{wire_format}");
        let short = ArtifactId::from_text(&artifact.as_str()[..16]);
        assert!(body.contains(short.as_str()), "{wire_format}: the model is told its name");
        let read = stage.store.read_artifact(&Owner::default(), &short, ArtifactRange::All).unwrap();
        assert_eq!(read, log, "{wire_format}");
        // What was sent stays sent, also for another process.
        session.call(saying(wire_format, "And now?")).await.unwrap();
        let next = stage.script.last_body();
        assert_eq!(shared_prefix(&body, &next), unmarked(&body).len() - "]}".len(), "{wire_format}");
        let mut again = stage.reopen().await;
        again.call(saying(wire_format, "Still?")).await.unwrap();
        let later = stage.script.last_body();
        assert_eq!(shared_prefix(&next, &later), unmarked(&next).len() - "]}".len(), "{wire_format}");
        let shown = stage.store.view(&Owner::default(), again.id(), None).unwrap();
        let shown: Vec<&str> = shown.iter().map(ViewMessage::json).collect();
        let held: Vec<&str> = again.messages().iter().map(|message| message.json()).collect();
        assert_eq!(shown, held, "{wire_format}");
    }
}

#[tokio::test]
async fn a_smaller_window_makes_for_smaller_results() {
    let wire_format = WireFormat::Anthropic;
    let log = words(3, 4_000);
    for (window_tokens, is_short) in [(200_000, false), (20_000, true)] {
        let stage = Stage::new(wire_format, window_tokens);
        let mut session = stage.open().await;
        stage.script.then(Act::Say(crate::managed::support::calling("call_1", "terminal", "{}")));
        session.call(saying(wire_format, "Why does the build fail?")).await.unwrap();
        session
            .call(CallInput::new(envelope(wire_format), vec![result(wire_format, "call_1", &log)]))
            .await
            .unwrap();
        assert_eq!(!stage.script.last_body().contains(&log), is_short, "{window_tokens}");
    }
}
