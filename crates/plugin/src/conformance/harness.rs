//! A scripted model, and a conversation with it.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use throughline_engine::{
    Automatic, CallInput, CallPolicy, ContextEngine, EngineEvent, Envelope, Host, IncomingMessage,
    LockPolicy, ManagedSession, ModelTarget, PieceSender, PriceSource, RecordPolicy, SessionSetup,
    ThresholdOrigin, ToolOutputPolicy, Upstream, UpstreamAnswer, UpstreamFailure, UpstreamFuture,
};
use throughline_provider::{CachePolicy, OutgoingCall, ProviderError, ProviderErrorKind};
use throughline_store::{Holder, IdLength, MemoryStore, Millis, NewSession, Origin, Owner, SessionId, Store};
use throughline_tokens::{LimitPolicy, Usage};
use throughline_transcript::{
    Message, RawJson, Role, SharedText, WireFormat, decode_message, text_message, tool_result_stub,
};
use throughline_wire::{Answer, AnswerDraft, AnswerPart, RequestParts, System, ToolCall};
use tokio_util::sync::CancellationToken;

use super::check::{CheckEnvironment, MakeEngine};

/// The window of the model.
pub(super) const WINDOW_TOKENS: u64 = 12_000;
const MODEL: &str = "by-rote";
/// The start of every conversation.
const START_MS: Millis = 1_763_200_000_000;
const TOOL: &str = "read_file";

/// A clock that advances by a second with each reading, and random numbers that count up.
#[derive(Default)]
pub(super) struct CountingHost {
    looks: AtomicI64,
    numbers: AtomicU32,
}

impl Host for CountingHost {
    fn now_ms(&self) -> Millis {
        START_MS + 1_000 * self.looks.fetch_add(1, Ordering::Relaxed)
    }

    fn random(&self) -> u32 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    fn holder(&self) -> Holder {
        Holder { host: "here".to_owned(), process_id: 1, process_start: 1, what: "check".to_owned() }
    }

    fn is_alive(&self, _holder: &Holder) -> bool {
        true
    }
}

/// Answers questions with a tool call, and results with text. A token is four bytes.
struct ScriptedModel {
    wire_format: WireFormat,
    answers: AtomicUsize,
    bodies: Mutex<Vec<String>>,
}

impl ScriptedModel {
    fn answer(&self, body: &str) -> Option<UpstreamAnswer> {
        let number = self.answers.fetch_add(1, Ordering::Relaxed);
        let draft = if number.is_multiple_of(2) {
            AnswerDraft::of_parts(vec![
                AnswerPart::Text("Let me look.".to_owned()),
                AnswerPart::ToolCall(ToolCall {
                    id: call_id(number / 2),
                    name: TOOL.to_owned(),
                    arguments: format!("{{\"path\":\"src/file_{number}.rs\"}}"),
                }),
            ])
        } else {
            AnswerDraft::text(format!("That is what it says in part {number}."))
        };
        let input = u64::try_from(body.len() / 4).ok()?;
        let draft = AnswerDraft { id: format!("answer_{number}"), ..draft };
        let draft = draft.with_usage(Usage { input, output: 20, ..Usage::default() });
        let answer = Answer::decode(self.wire_format, draft.to_response(self.wire_format).as_bytes()).ok()?;
        Some(UpstreamAnswer { answer, first_content: None })
    }
}

impl Upstream for ScriptedModel {
    fn send<'a>(
        &'a self,
        call: OutgoingCall,
        _pieces: Option<&'a PieceSender>,
        _cancel: &'a CancellationToken,
    ) -> UpstreamFuture<'a> {
        let body = String::from_utf8_lossy(&call.body).into_owned();
        let answer = self.answer(&body);
        self.bodies.lock().unwrap_or_else(PoisonError::into_inner).push(body);
        let unreadable = || Box::new(UpstreamFailure::trouble(ProviderError::of(ProviderErrorKind::Unknown)));
        Box::pin(std::future::ready(answer.ok_or_else(unreadable)))
    }
}

fn call_id(turn: usize) -> String {
    format!("call_{turn}")
}

/// A conversation under test.
pub(super) struct SessionHarness {
    wire_format: WireFormat,
    upstream: Arc<ScriptedModel>,
    store: Arc<MemoryStore>,
    events: Arc<Mutex<Vec<EngineEvent>>>,
    setup: SessionSetup,
    said: Vec<String>,
    pub(super) session: ManagedSession,
}

impl SessionHarness {
    /// Starts a conversation with an engine of its own.
    pub(super) async fn open(wire_format: WireFormat, make: MakeEngine<'_>) -> Result<Self, String> {
        let store = Arc::new(MemoryStore::new());
        let host = Arc::new(CountingHost::default());
        let upstream =
            Arc::new(ScriptedModel { wire_format, answers: AtomicUsize::new(0), bodies: Mutex::default() });
        let events = Arc::<Mutex<Vec<EngineEvent>>>::default();
        let told = Arc::clone(&events);
        let mut setup = SessionSetup {
            engine: make(&CheckEnvironment {
                store: Arc::<MemoryStore>::clone(&store),
                owner: Owner::default(),
                host: Arc::<CountingHost>::clone(&host),
            }),
            store: Arc::<MemoryStore>::clone(&store),
            owner: Owner::default(),
            host,
            events: Arc::new(move |event| told.lock().unwrap_or_else(PoisonError::into_inner).push(event)),
            target: target(wire_format, Arc::<ScriptedModel>::clone(&upstream)),
            alternatives: Vec::new(),
            policy: CallPolicy {
                automatic: Automatic::On,
                record: RecordPolicy::Require,
                lock: LockPolicy::Compactions,
                ids: IdLength::Local,
                recall: None,
            },
            tool_output: ToolOutputPolicy::default(),
        };
        // An engine with another name is checked by its behaviour.
        setup.target.provider = "check".to_owned();
        let new = NewSession {
            id: SessionId::from_text("checked"),
            owner: Owner::default(),
            link: None,
            started_ms: START_MS,
            model: Some(MODEL.to_owned()),
            title: None,
            origin: Origin { program: "check".to_owned(), key: None, project: None },
            wire_format,
        };
        let session = ManagedSession::create(setup.clone(), new).await.map_err(|error| error.to_string())?;
        Ok(Self { wire_format, upstream, store, events, setup, said: Vec::new(), session })
    }

    /// Resumes the conversation as in another process, with another engine of the same kind.
    pub(super) async fn take_up(self, make: MakeEngine<'_>) -> Result<Self, String> {
        let engine: Arc<dyn ContextEngine> = make(&CheckEnvironment {
            store: Arc::clone(&self.setup.store),
            owner: self.setup.owner.clone(),
            host: Arc::clone(&self.setup.host),
        });
        let setup = SessionSetup { engine, ..self.setup.clone() };
        let id = self.session.id().clone();
        drop(self.session);
        let session = ManagedSession::open(setup.clone(), &id).await.map_err(|error| error.to_string())?;
        Ok(Self { session, setup, ..self })
    }

    /// One exchange: the user asks, the model calls a tool, gets its result and answers.
    pub(super) async fn talk(&mut self) -> Result<(), String> {
        let turn = self.said.len();
        let question = format!("Question {turn}: {}", words(turn, 60));
        let message = text_message(self.wire_format, Role::User, &question);
        self.said.push(question.clone());
        self.call(message).await?;
        if !self.last_body().contains(&question) {
            return Err(format!("question {turn} was not in the request that asked it"));
        }
        let result = tool_result_stub(self.wire_format, &call_id(turn), &words(turn + 1, 160));
        let result = match self.wire_format {
            WireFormat::Anthropic => format!("{{\"role\":\"user\",\"content\":[{result}]}}"),
            WireFormat::Chat | WireFormat::Responses => result,
        };
        self.call(result).await?;
        self.check_events()
    }

    async fn call(&mut self, json: String) -> Result<(), String> {
        let message = decode_message(SharedText::new(json)).ok_or("a message of the check is none")?;
        let input = CallInput::new(envelope(self.wire_format)?, vec![IncomingMessage::from(message)]);
        let asked = self.session.call(input).await;
        asked.map_err(|error| format!("after {} exchanges a call failed: {error}", self.said.len()))?;
        // Gives summaries in preparation time to run.
        for _ in 0..16 {
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    fn last_body(&self) -> String {
        self.upstream
            .bodies
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .last()
            .cloned()
            .unwrap_or_default()
    }

    /// Fails if the engine was refused or did not answer, whatever happened to the conversation.
    pub(super) fn check_events(&self) -> Result<(), String> {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.iter().find_map(complaint).map_or(Ok(()), Err)
    }

    /// Checks that the record has every message once and in order, however much was compacted.
    pub(super) fn check_record(&self) -> Result<(), String> {
        let all = self.store.transcript(&self.setup.owner, self.session.id());
        let all = all.map_err(|error| error.to_string())?;
        for (turn, question) in self.said.iter().enumerate() {
            let times = all.iter().filter(|message| message.json.as_str().contains(question)).count();
            if times != 1 {
                return Err(format!("question {turn} is in the record {times} times"));
            }
        }
        Ok(())
    }

    /// Messages of the view, as they are sent.
    pub(super) fn view(&self) -> Vec<String> {
        self.session.messages().iter().map(|message| message.json().to_owned()).collect()
    }
}

/// Returns the problem reported by an event, if any.
fn complaint(event: &EngineEvent) -> Option<String> {
    match event {
        EngineEvent::CompactionAborted { detail, .. } => Some(format!("a compaction failed: {detail}")),
        EngineEvent::Notice { text } => Some(text.clone()),
        _ => None,
    }
}

fn target(wire_format: WireFormat, upstream: Arc<dyn Upstream>) -> ModelTarget {
    ModelTarget {
        model: MODEL.to_owned(),
        provider: "check".to_owned(),
        endpoint: "http://127.0.0.1/v1".to_owned(),
        wire_format,
        policy: LimitPolicy { protect_last_n: 4, ..LimitPolicy::for_window(WINDOW_TOKENS) },
        window_origin: String::new(),
        threshold_origin: ThresholdOrigin::General,
        cache: CachePolicy::Unmarked,
        price_source: PriceSource::of_seller("check".to_owned()),
        cache_minimum_tokens: None,
        upstream,
    }
}

fn envelope(wire_format: WireFormat) -> Result<Envelope, String> {
    let tools = match wire_format {
        WireFormat::Anthropic => {
            r#"[{"name":"read_file","description":"Reads a file","input_schema":{"type":"object"}}]"#
        }
        WireFormat::Chat => {
            r#"[{"type":"function","function":{"name":"read_file","parameters":{"type":"object"}}}]"#
        }
        WireFormat::Responses => r#"[{"type":"function","name":"read_file","parameters":{"type":"object"}}]"#,
    };
    let parts = RequestParts {
        system: Some(System::Text("Answer from what the files say.")),
        tools: Some(RawJson(tools)),
        ..RequestParts::new(MODEL)
    };
    Envelope::build(wire_format, &parts).map_err(|error| error.to_string())
}

/// Returns this many words, different for each number.
pub(super) fn words(number: usize, count: usize) -> String {
    const WORDS: [&str; 12] = [
        "river", "stone", "engine", "paper", "window", "garden", "signal", "market", "copper", "letter",
        "bridge", "season",
    ];
    let word = |at: usize| WORDS.get((at * 7 + number * 5 + at / 12) % WORDS.len()).unwrap_or(&"word");
    let all: Vec<String> = (0..count).map(|at| format!("{}{}", word(at), (at * number) % 97)).collect();
    all.join(" ")
}

/// Returns a message for a list that is given to an engine.
pub(super) fn message(json: String) -> Result<Message, String> {
    decode_message(SharedText::new(json)).ok_or_else(|| "a message of the check is none".to_owned())
}
