//! A real small model behind a real server: conversations several times its window go on, through real overflows and real
//! compactions, on every wire.
//!
//! Runs where `.ci/local-model` has installed the model, which takes a hundred megabytes and a minute.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should say where")]

mod server;
mod talk;

use throughline_engine::EngineEvent;
use throughline_transcript::WireFormat;

use server::Served;
use talk::{Summaries, Talk};

/// The window the server gives the model.
const WINDOW_TOKENS: u64 = 2_048;
/// The window we believe in until the server says otherwise.
const BELIEVED_TOKENS: u64 = 8_192;

/// The model writes the summaries, as far as one so small can; rules step in where it fails.
#[tokio::test]
async fn a_conversation_several_times_the_window_goes_on() {
    let Some(served) = Served::start(WINDOW_TOKENS).await else { return };
    let talk = hold(&served, WireFormat::Chat, 3, Summaries::ByModel).await;
    println!("{} tokens said, {} compactions", talk.said_tokens(), talk.compactions());
    let asked = talk.calls_for_summaries();
    assert!(!asked.is_empty());
    for call in asked {
        assert!(call.usage.prompt() <= WINDOW_TOKENS, "{call:?}");
        let outcome = call.error.as_deref().unwrap_or("a summary");
        println!("asked for a summary with {} tokens: {outcome}", call.usage.prompt());
    }
}

/// At the same time as the one above, with a server of its own: each of them keeps one core busy.
#[tokio::test]
async fn so_it_does_on_every_wire() {
    let Some(served) = Served::start(WINDOW_TOKENS).await else { return };
    for wire_format in [WireFormat::Anthropic, WireFormat::Responses] {
        let talk = hold(&served, wire_format, 2, Summaries::ByRules).await;
        assert_eq!(talk.calls_for_summaries(), Vec::new(), "{wire_format}");
    }
}

/// Talks until so many windows were filled and as many compactions made, and checks what must hold then.
async fn hold(served: &Served, wire_format: WireFormat, windows: u64, summaries: Summaries) -> Talk {
    let mut talk = Talk::begin(served, wire_format, BELIEVED_TOKENS, summaries).await;
    while talk.said_tokens() < windows * WINDOW_TOKENS || talk.compactions() < windows {
        talk.say_next().await;
    }
    talk.assert_nothing_lost();
    let learnt = talk.events().into_iter().find_map(|event| match event {
        EngineEvent::WindowLearnt { window_tokens, .. } => Some(window_tokens),
        _ => None,
    });
    assert_eq!(
        learnt,
        Some(WINDOW_TOKENS),
        "{wire_format}: the server refused a prompt and stated its window"
    );
    let summary = talk.summary().unwrap();
    assert!(summary.contains("[CONTEXT COMPACTION"), "{wire_format}: {summary}");
    talk
}
