//! Asking the same model about the conversation it has just been sent: the same bytes, and an instruction behind them.

use std::sync::{Arc, Mutex};

use throughline_compaction::{RuleSummariser, Summariser};
use throughline_engine::{CachedPrompt, CompressRequest, Compressor, CompressorSetup, SummariserSource};
use throughline_provider::CacheMarks;
use throughline_transcript::{RawJson, WireFormat};

use crate::managed::prefix::unmarked;
use crate::managed::support::{Stage, talk_until_compacted};

/// Keeps what a summariser could ride on, each time one is asked for.
#[derive(Default)]
struct Offered(Mutex<Vec<Option<CachedPrompt>>>);

struct Source(Arc<Offered>);

impl SummariserSource for Source {
    fn summariser_for(&self, request: &CompressRequest) -> Arc<dyn Summariser> {
        self.0.0.lock().unwrap().push(request.conversation.cached_prompt.clone());
        Arc::new(RuleSummariser)
    }
}

#[tokio::test]
async fn a_ride_is_what_was_sent_and_one_message_more() {
    for wire_format in WireFormat::ALL {
        let offered = Arc::new(Offered::default());
        let summarisers = Arc::new(Source(Arc::clone(&offered)));
        let setup = CompressorSetup { summarisers, ..CompressorSetup::by_rules() };
        let stage = Stage::with_engine(wire_format, 12_000, Arc::new(Compressor::new(setup)));
        let mut session = stage.open().await;
        talk_until_compacted(&stage, &mut session, 2).await;
        let rides = offered.0.lock().unwrap().clone();
        assert!(rides.len() >= 2, "{wire_format}");
        let sent: Vec<String> = stage.script.bodies().iter().map(|body| unmarked(body)).collect();
        for cached_prompt in rides {
            let cached_prompt = cached_prompt.unwrap();
            let body =
                String::from_utf8(cached_prompt.body("Tell what happened.").unwrap().to_vec()).unwrap();
            let bare = unmarked(&body);
            let is_prefix = |sent: &&String| bare.starts_with(&sent[..sent.len() - "]}".len()]);
            let longest = sent.iter().filter(is_prefix).max_by_key(|sent| sent.len()).unwrap();
            let added = &bare[longest.len() - "]}".len()..];
            assert!(added.starts_with(",{") && added.len() < 200, "{wire_format}: {added}");
            assert!(added.contains("Tell what happened."), "{wire_format}: {added}");
            let list = if wire_format == WireFormat::Responses { "input" } else { "messages" };
            let items = RawJson(&body).get(list).unwrap().elements().count();
            let apart = usize::from(wire_format == WireFormat::Chat);
            assert_eq!(items, cached_prompt.messages() + 1 + apart, "{wire_format}");
            let marks: usize = RawJson(&body).members().map(|(_, value)| CacheMarks::count_in(value.0)).sum();
            assert!(marks <= CacheMarks::MOST, "{wire_format}: {marks}");
            assert_eq!(marks > 0, wire_format != WireFormat::Responses, "{wire_format}");
            assert!(cached_prompt.prompt_tokens().unwrap() > 1_000, "{wire_format}");
            assert_eq!(cached_prompt.target().model, "test-model");
        }
    }
}
