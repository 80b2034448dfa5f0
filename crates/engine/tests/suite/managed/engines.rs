//! Engines other than the built-in one: behind JSON, failing, or returning what must not be sent.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde::Serialize;
use serde::de::DeserializeOwned;
use throughline_compaction::AbortReason;
use throughline_compaction::Quality;
use throughline_compaction::{Maker, SummariseError, Summariser, SummaryFuture, SummaryRequest};
use throughline_engine::{
    Boundary, CompactedView, CompressOutcome, CompressReport, CompressRequest, Compressor, CompressorSetup,
    ContextEngine, EngineError, EngineEvent, EngineFuture, EngineStatus, MeasuredUsage, ModelInForce,
    NewItem, OneSummariser, PendingRequest, PrepareOutcome, SessionStart, Snapshot, SummaryDraft,
};
use throughline_transcript::{Message, Role, WireFormat, text_message};

use crate::managed::support::{Stage, saying, talk, talk_until_compacted};

struct Failing(SummariseError);

impl Summariser for Failing {
    fn name(&self) -> &str {
        "failing"
    }

    fn maker(&self) -> Maker {
        Maker::Model
    }

    fn window_tokens(&self) -> Option<u64> {
        None
    }

    fn summarise<'a>(&'a self, _request: SummaryRequest<'a>) -> SummaryFuture<'a> {
        Box::pin(std::future::ready(Err(self.0.clone())))
    }
}

/// The built-in engine with a summariser that always fails.
pub(crate) fn failing(error: SummariseError) -> Arc<dyn ContextEngine> {
    let summarisers = Arc::new(OneSummariser(Arc::new(Failing(error))));
    Arc::new(Compressor::new(CompressorSetup { summarisers, ..CompressorSetup::by_rules() }))
}

/// The built-in engine as if it were in another process: whatever goes in or comes out crosses as text.
struct BehindJson(Compressor);

fn crossed<T: Serialize + DeserializeOwned>(value: &T) -> T {
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

fn back<'a, T: Serialize + DeserializeOwned + Send + 'a>(
    answer: impl Future<Output = Result<T, EngineError>> + Send + 'a,
) -> EngineFuture<'a, T> {
    Box::pin(async move {
        match answer.await {
            Ok(answer) => Ok(crossed(&answer)),
            Err(error) => Err(crossed(&error)),
        }
    })
}

impl ContextEngine for BehindJson {
    fn name(&self) -> &str {
        "behind-json"
    }

    fn update_model<'a>(&'a self, model: &'a ModelInForce) -> EngineFuture<'a, ()> {
        back(async move { self.0.update_model(&crossed(model)).await })
    }

    fn update_from_response<'a>(&'a self, usage: &'a MeasuredUsage) -> EngineFuture<'a, ()> {
        back(async move { self.0.update_from_response(&crossed(usage)).await })
    }

    fn should_compress(&self, prompt_tokens: u64) -> EngineFuture<'_, bool> {
        back(self.0.should_compress(prompt_tokens))
    }

    fn should_compress_preflight<'a>(&'a self, pending: &'a PendingRequest) -> EngineFuture<'a, bool> {
        back(async move { self.0.should_compress_preflight(&crossed(pending)).await })
    }

    fn has_content_to_compress<'a>(&'a self, conversation: &'a Snapshot) -> EngineFuture<'a, bool> {
        back(async move { self.0.has_content_to_compress(&crossed(conversation)).await })
    }

    fn compress<'a>(&'a self, request: &'a CompressRequest) -> EngineFuture<'a, CompressOutcome> {
        back(async move { self.0.compress(&crossed(request)).await })
    }

    fn prepare<'a>(&'a self, conversation: &'a Snapshot) -> EngineFuture<'a, PrepareOutcome> {
        back(async move { self.0.prepare(&crossed(conversation)).await })
    }

    fn messages_appended<'a>(&'a self, conversation: &'a Snapshot) -> EngineFuture<'a, ()> {
        back(async move { self.0.messages_appended(&crossed(conversation)).await })
    }

    fn session_started<'a>(&'a self, start: &'a SessionStart) -> EngineFuture<'a, ()> {
        back(async move { self.0.session_started(&crossed(start)).await })
    }

    fn boundary<'a>(&'a self, boundary: &'a Boundary) -> EngineFuture<'a, ()> {
        back(async move { self.0.boundary(&crossed(boundary)).await })
    }

    fn status(&self) -> EngineFuture<'_, EngineStatus> {
        back(self.0.status())
    }
}

/// The built-in engine, which does not answer one of the questions it is asked.
pub(crate) struct Faulty {
    inner: Compressor,
    asked: AtomicUsize,
    failing: AtomicUsize,
    is_down: AtomicBool,
}

impl Faulty {
    pub(crate) fn new() -> Self {
        let inner = Compressor::new(CompressorSetup::by_rules());
        Self {
            inner,
            asked: AtomicUsize::new(0),
            failing: AtomicUsize::new(usize::MAX),
            is_down: AtomicBool::new(false),
        }
    }

    /// Lets it answer nothing at all, or everything again.
    pub(crate) fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::Relaxed);
    }

    /// Lets the question after so many others be the one.
    pub(crate) fn fail_at(&self, after: usize) {
        self.failing.store(self.asked.load(Ordering::Relaxed) + after, Ordering::Relaxed);
    }

    /// Whether that question has come.
    pub(crate) fn has_failed(&self) -> bool {
        self.asked.load(Ordering::Relaxed) > self.failing.load(Ordering::Relaxed)
    }

    fn unless_failing<'a, T: Send + 'a>(&self, answer: EngineFuture<'a, T>) -> EngineFuture<'a, T> {
        let is_chosen = self.asked.fetch_add(1, Ordering::Relaxed) == self.failing.load(Ordering::Relaxed);
        if is_chosen || self.is_down.load(Ordering::Relaxed) {
            let (engine, detail) = ("faulty".to_owned(), "it crashed".to_owned());
            return Box::pin(std::future::ready(Err(EngineError::Unavailable { engine, detail })));
        }
        answer
    }
}

impl ContextEngine for Faulty {
    fn name(&self) -> &str {
        "faulty"
    }

    fn update_model<'a>(&'a self, model: &'a ModelInForce) -> EngineFuture<'a, ()> {
        self.unless_failing(self.inner.update_model(model))
    }

    fn update_from_response<'a>(&'a self, usage: &'a MeasuredUsage) -> EngineFuture<'a, ()> {
        self.unless_failing(self.inner.update_from_response(usage))
    }

    fn should_compress(&self, prompt_tokens: u64) -> EngineFuture<'_, bool> {
        self.unless_failing(self.inner.should_compress(prompt_tokens))
    }

    fn compress<'a>(&'a self, request: &'a CompressRequest) -> EngineFuture<'a, CompressOutcome> {
        self.unless_failing(self.inner.compress(request))
    }

    fn prepare<'a>(&'a self, conversation: &'a Snapshot) -> EngineFuture<'a, PrepareOutcome> {
        self.unless_failing(self.inner.prepare(conversation))
    }

    fn messages_appended<'a>(&'a self, conversation: &'a Snapshot) -> EngineFuture<'a, ()> {
        self.unless_failing(self.inner.messages_appended(conversation))
    }

    fn session_started<'a>(&'a self, start: &'a SessionStart) -> EngineFuture<'a, ()> {
        self.unless_failing(self.inner.session_started(start))
    }

    fn boundary<'a>(&'a self, boundary: &'a Boundary) -> EngineFuture<'a, ()> {
        self.unless_failing(self.inner.boundary(boundary))
    }

    fn status(&self) -> EngineFuture<'_, EngineStatus> {
        self.inner.status()
    }
}

#[tokio::test]
async fn an_engine_behind_json_sends_the_same_bytes() {
    for wire_format in WireFormat::ALL {
        let mut bodies = Vec::new();
        let here: Arc<dyn ContextEngine> = Arc::new(Compressor::new(CompressorSetup::by_rules()));
        let there = Arc::new(BehindJson(Compressor::new(CompressorSetup::by_rules())));
        for engine in [here, there] {
            let stage = Stage::with_engine(wire_format, 12_000, engine);
            let mut session = stage.open().await;
            talk_until_compacted(&stage, &mut session, 3).await;
            assert_eq!(session.status().await.unwrap().compactions, 3, "{wire_format}");
            bodies.push(stage.script.bodies());
        }
        assert_eq!(bodies[0], bodies[1], "{wire_format}");
    }
}

/// An engine that returns whatever it was told to.
struct Returning(Mutex<Returned>);

type Returned = Box<dyn FnMut(&CompressRequest) -> Result<CompressOutcome, EngineError> + Send>;

impl ContextEngine for Returning {
    fn name(&self) -> &str {
        "returning"
    }

    fn update_model<'a>(&'a self, _model: &'a ModelInForce) -> EngineFuture<'a, ()> {
        throughline_engine::answered(())
    }

    fn update_from_response<'a>(&'a self, _usage: &'a MeasuredUsage) -> EngineFuture<'a, ()> {
        throughline_engine::answered(())
    }

    fn should_compress(&self, prompt_tokens: u64) -> EngineFuture<'_, bool> {
        throughline_engine::answered(prompt_tokens > 4_000)
    }

    fn compress<'a>(&'a self, request: &'a CompressRequest) -> EngineFuture<'a, CompressOutcome> {
        let outcome = (self.0.lock().unwrap())(request);
        Box::pin(std::future::ready(outcome))
    }

    fn status(&self) -> EngineFuture<'_, EngineStatus> {
        Box::pin(std::future::ready(Err(EngineError::Unavailable {
            engine: "returning".to_owned(),
            detail: "it has none".to_owned(),
        })))
    }
}

fn kept(items: impl IntoIterator<Item = usize>) -> Vec<NewItem> {
    items.into_iter().map(|item| NewItem::Kept { item }).collect()
}

fn made(view: Vec<NewItem>, summary: Option<SummaryDraft>) -> CompressOutcome {
    let report = CompressReport::default();
    CompressOutcome::Completed(Box::new(CompactedView { view, summary, quality: Quality::Rules, report }))
}

fn summary(covers: Vec<usize>) -> Option<SummaryDraft> {
    Some(SummaryDraft {
        author: "returning".to_owned(),
        document: "## Goal\n- go on".to_owned(),
        covers,
        facts: serde_json::Value::Null,
        figures: serde_json::Value::Null,
    })
}

fn note(text: &str) -> NewItem {
    NewItem::Summary { json: text_message(WireFormat::Anthropic, Role::User, text) }
}

#[tokio::test]
async fn a_view_that_must_not_be_sent_is_refused_and_the_conversation_stays() {
    // What is returned of a conversation of so many items, the last human one at that place, and the words of the refusal.
    type Bad = (fn(usize, usize) -> CompressOutcome, &'static str);
    let cases: [Bad; 9] = [
        (|_, _| made(Vec::new(), None), "the last human message"),
        (|count, _| made(kept(0..count + 1), None), "it shows item"),
        (|_, human| made(kept([2, 1, human]), None), "stands twice or out of order"),
        (|_, human| made(kept([1, 1, human]), None), "stands twice or out of order"),
        (
            |_, human| made([vec![note("a")], kept([human])].concat(), None),
            "the view shows 1 new summaries, the result describes 0",
        ),
        (
            |_, human| made(kept([human]), summary(vec![0])),
            "the view shows 0 new summaries, the result describes 1",
        ),
        (
            |count, human| made([vec![note("a")], kept([human])].concat(), summary(vec![count + 7])),
            "the summary covers item",
        ),
        (
            |_, human| made([kept([human]), vec![note("a")]].concat(), summary(vec![0])),
            "after the last human message",
        ),
        (
            |_, human| {
                let huge = "word ".repeat(60_000);
                made([vec![note(&huge)], kept([human])].concat(), summary(vec![0]))
            },
            "tokens where there were",
        ),
    ];
    for (index, (bad, words)) in cases.into_iter().enumerate() {
        let engine = Returning(Mutex::new(Box::new(move |request| {
            let messages = &request.conversation.messages;
            let human = messages.iter().rposition(Message::is_human).unwrap();
            Ok(bad(messages.len(), human))
        })));
        let stage = Stage::with_engine(WireFormat::Anthropic, 40_000, Arc::new(engine));
        let mut session = stage.open().await;
        for turn in 0..12 {
            talk(&stage, &mut session, turn).await;
        }
        let refusals: Vec<String> = stage
            .told()
            .into_iter()
            .filter_map(|event| match event {
                EngineEvent::CompactionAborted {
                    reason: Some(AbortReason::ResultInvalid), detail, ..
                } => Some(detail),
                _ => None,
            })
            .collect();
        assert!(!refusals.is_empty(), "case {index}");
        assert!(refusals[0].contains(words), "case {index}: {}", refusals[0]);
        assert_eq!(session.compactions(), 0, "case {index}");
        assert_eq!(stage.transcript().len(), 48, "case {index}");
    }
}

#[tokio::test]
async fn orphaned_results_are_refused() {
    // Keeping a tool result without its call.
    let engine = Returning(Mutex::new(Box::new(|request: &CompressRequest| {
        let messages = &request.conversation.messages;
        let orphan = messages.iter().position(|message| message.has_results()).unwrap();
        let human = messages.iter().rposition(|message| message.is_human()).unwrap();
        Ok(made(kept([orphan, human]), None))
    })));
    let stage = Stage::with_engine(WireFormat::Anthropic, 40_000, Arc::new(engine));
    let mut session = stage.open().await;
    for turn in 0..12 {
        talk(&stage, &mut session, turn).await;
    }
    assert_eq!(session.compactions(), 0);
    let told = stage.told();
    let broken = told.iter().any(|event| {
        matches!(event, EngineEvent::CompactionAborted { detail, .. } if detail.contains("breaks a rule of the wire"))
    });
    assert!(broken, "{told:?}");
}

#[tokio::test]
async fn an_engine_that_does_not_answer_is_told_and_the_conversation_goes_on() {
    let engine = Returning(Mutex::new(Box::new(|_| {
        Err(EngineError::Unavailable { engine: "returning".to_owned(), detail: "it crashed".to_owned() })
    })));
    let stage = Stage::with_engine(WireFormat::Anthropic, 40_000, Arc::new(engine));
    let mut session = stage.open().await;
    for turn in 0..12 {
        talk(&stage, &mut session, turn).await;
    }
    session.call(saying(WireFormat::Anthropic, "Still there?")).await.unwrap();
    let told = stage.told();
    let crashes = told.iter().filter(|event| {
        matches!(event, EngineEvent::CompactionAborted { detail, .. } if detail.contains("it crashed"))
    });
    let crashes = crashes.count();
    assert!((1..12).contains(&crashes), "told, and not asked again at once: {crashes}");
}

#[tokio::test]
async fn an_engine_may_show_less_without_a_summary() {
    // A sliding window: the last few messages and nothing else.
    let engine = Returning(Mutex::new(Box::new(|request: &CompressRequest| {
        let messages = &request.conversation.messages;
        let human = messages.iter().rposition(|message| message.is_human()).unwrap();
        Ok(made(kept(human..messages.len()), None))
    })));
    let stage = Stage::with_engine(WireFormat::Chat, 40_000, Arc::new(engine));
    let mut session = stage.open().await;
    talk_until_compacted(&stage, &mut session, 3).await;
    assert!(stage.transcript().len() > 40);
    assert!(session.messages().len() < 10);
}
