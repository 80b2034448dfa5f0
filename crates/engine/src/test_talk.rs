//! For tests: long conversations, snapshots of them, models of a given window, and a summariser that logs its calls.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use throughline_compaction::{
    Maker, Section, SummariseError, Summariser, SummaryDocument, SummaryFuture, SummaryRequest,
};
use throughline_store::SessionId;
use throughline_testkit::big_transcript;
use throughline_tokens::{CachePrices, ContentProfile, LimitPolicy, Limits, TokenModel};
use throughline_transcript::{DecodeOptions, Message, WireFormat, decode};

use crate::context_engine::snapshot::Snapshot;
use crate::limits::in_force::{EngineLimits, ModelInForce, NotesPrice};

/// The model of every test.
pub(crate) const MODEL: &str = "test-model";

/// Returns a coding session with this many messages and about this many bytes.
pub(crate) fn session(wire_format: WireFormat, messages: usize, bytes: usize) -> Vec<Message> {
    let json = big_transcript(wire_format, bytes, messages, 7);
    decode(json.into_bytes(), &DecodeOptions::default()).unwrap().messages
}

/// Returns a snapshot of these messages, with provider counts equal to the estimates.
pub(crate) fn snapshot(wire_format: WireFormat, messages: &[Message]) -> Snapshot {
    let model = TokenModel::for_model(MODEL, wire_format);
    let sizes: Vec<u64> =
        messages.iter().map(|message| model.estimate_content(&ContentProfile::of_message(message))).collect();
    let fixed_tokens = 500;
    Snapshot {
        session: SessionId::from_text("20261115_093000_a1b2c3"),
        wire_format,
        prompt_tokens: sizes.iter().sum::<u64>() + fixed_tokens,
        messages: Arc::new(messages.to_vec()),
        sizes: Arc::new(sizes),
        fixed_tokens,
        cached_prompt: None,
    }
}

/// Returns a model with this window and default limits.
pub(crate) fn model_of(window_tokens: u64) -> ModelInForce {
    let limits = EngineLimits::from(&Limits::compute(&LimitPolicy::for_window(window_tokens)).unwrap());
    ModelInForce {
        model: MODEL.to_owned(),
        provider: "test".to_owned(),
        window_tokens,
        limits,
        prices: CachePrices::default(),
        notes_price: NotesPrice::default(),
    }
}

/// Returns a model whose threshold is the size of this conversation.
pub(crate) fn model_at_threshold(conversation: &Snapshot) -> ModelInForce {
    model_of(conversation.prompt_tokens * 2)
}

/// A summariser that logs its requests and then answers or fails as configured.
#[derive(Default)]
pub(crate) struct LoggingSummariser {
    pub(crate) asked: Mutex<Vec<LoggedRequest>>,
    pub(crate) failure: Option<SummariseError>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoggedRequest {
    pub(crate) span: Range<usize>,
    pub(crate) summarised: Vec<usize>,
    pub(crate) earlier: Option<String>,
}

impl LoggingSummariser {
    pub(crate) fn failing(failure: SummariseError) -> Self {
        Self { failure: Some(failure), ..Self::default() }
    }

    pub(crate) fn pages(&self) -> Vec<LoggedRequest> {
        self.asked.lock().unwrap().clone()
    }
}

impl Summariser for LoggingSummariser {
    fn name(&self) -> &str {
        "diary"
    }

    fn maker(&self) -> Maker {
        Maker::Model
    }

    fn window_tokens(&self) -> Option<u64> {
        None
    }

    fn summarise<'a>(&'a self, request: SummaryRequest<'a>) -> SummaryFuture<'a> {
        self.asked.lock().unwrap().push(LoggedRequest {
            span: request.span.clone(),
            summarised: request.summarised().collect(),
            earlier: request.earlier.map(SummaryDocument::to_markdown),
        });
        let answer = match &self.failure {
            Some(failure) => Err(failure.clone()),
            None => {
                let mut document = request.earlier.cloned().unwrap_or_default();
                let page = self.asked.lock().unwrap().len();
                document.add(Section::Goal, format!("page {page} of the diary"));
                Ok(document)
            }
        };
        Box::pin(std::future::ready(answer))
    }
}
