//! A script for the upstream, a clock that is set by hand, and sessions made of both.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use throughline_engine::{
    Automatic, CallInput, CallPolicy, Compressor, CompressorSetup, ContextEngine, EngineEvent, Envelope,
    Host, IncomingMessage, LockPolicy, ManagedSession, ModelTarget, PieceSender, PriceSource, RecordPolicy,
    SessionSetup, ThresholdOrigin, ToolOutputPolicy, Upstream, UpstreamAnswer, UpstreamFailure,
    UpstreamFailureCause, UpstreamFuture,
};
use throughline_provider::{
    CachePolicy, CacheSeller, CacheTtl, OutgoingCall, ProviderError, ProviderErrorKind,
};
use throughline_store::{Holder, IdLength, Millis, NewSession, Origin, Owner, SessionId, SqliteStore, Store};
use throughline_tokens::{LimitPolicy, Usage};
use throughline_transcript::{Message, RawJson, Role, SharedText, WireFormat, decode_message, text_message};
use throughline_wire::{Answer, AnswerDraft, AnswerPart, RequestParts, System, ToolCall};
use tokio_util::sync::CancellationToken;

/// When every story begins.
pub(crate) const START_MS: Millis = 1_763_200_000_000;

/// A clock that is set by hand, and numbers that only count up.
#[derive(Default)]
pub(crate) struct TestHost {
    pub(crate) passed_ms: AtomicI64,
    random: AtomicU32,
}

impl TestHost {
    pub(crate) fn pass_secs(&self, secs: i64) {
        self.passed_ms.fetch_add(secs * 1_000, Ordering::Relaxed);
    }
}

impl Host for TestHost {
    fn now_ms(&self) -> Millis {
        START_MS + self.passed_ms.load(Ordering::Relaxed)
    }

    fn random(&self) -> u32 {
        self.random.fetch_add(1, Ordering::Relaxed)
    }

    fn holder(&self) -> Holder {
        holder(1)
    }

    fn is_alive(&self, holder: &Holder) -> bool {
        holder.process_id != 404
    }
}

pub(crate) fn holder(process_id: u32) -> Holder {
    Holder { host: "here".to_owned(), process_id, process_start: 1, what: "chat".to_owned() }
}

/// What the upstream does with a call.
pub(crate) enum Act {
    /// Answers with this.
    Say(AnswerDraft),
    /// Answers, and reports this usage.
    SayUsed(&'static str, Usage),
    /// Answers, and says nothing about usage.
    SayWithoutUsage(&'static str),
    /// The call fails with this error.
    Fail(ProviderError),
    /// Says some of its answer, then breaks off.
    BreakOff(&'static str),
    /// Says this, then nothing more until the call is called off.
    Hang(&'static str),
    /// Answers with these messages as they stand.
    Repeat(Vec<Message>),
    /// Fails as long as the body has more bytes than this, then answers.
    RefuseOver(usize, ProviderError),
}

impl Act {
    pub(crate) fn fail(kind: ProviderErrorKind) -> Self {
        Self::Fail(ProviderError::of(kind))
    }
}

/// An upstream that follows a script and keeps every body. When the script is over it answers in few words. Usage is
/// counted by length: a token is four bytes.
pub(crate) struct Script {
    wire_format: WireFormat,
    acts: Mutex<VecDeque<Act>>,
    pub(crate) bodies: Mutex<Vec<String>>,
    pub(crate) calls: Mutex<Vec<OutgoingCall>>,
}

impl Script {
    pub(crate) fn new(wire_format: WireFormat) -> Arc<Self> {
        let (acts, bodies, calls) = Default::default();
        Arc::new(Self { wire_format, acts, bodies, calls })
    }

    pub(crate) fn then(&self, act: Act) -> &Self {
        self.acts.lock().unwrap().push_back(act);
        self
    }

    /// What was to come does not come any more.
    pub(crate) fn end(&self) {
        self.acts.lock().unwrap().clear();
    }

    pub(crate) fn bodies(&self) -> Vec<String> {
        self.bodies.lock().unwrap().clone()
    }

    pub(crate) fn last_body(&self) -> String {
        self.bodies().pop().unwrap()
    }

    fn answer(&self, draft: AnswerDraft, body: &str) -> Result<UpstreamAnswer, Box<UpstreamFailure>> {
        let number = self.bodies.lock().unwrap().len();
        let usage =
            draft.usage.map(|_| Usage { input: body.len() as u64 / 4, output: 10, ..Usage::default() });
        let draft = AnswerDraft { id: format!("answer_{number}"), ..draft };
        let draft = match usage {
            Some(usage) => draft.with_usage(usage),
            None => draft,
        };
        let answer =
            Answer::decode(self.wire_format, draft.to_response(self.wire_format).as_bytes()).unwrap();
        Ok(UpstreamAnswer { answer, first_content: Some(Duration::from_millis(3)) })
    }

    fn act(&self, body: &str) -> Result<UpstreamAnswer, Box<UpstreamFailure>> {
        let next = self.acts.lock().unwrap().pop_front();
        match next {
            Some(Act::Say(draft)) => self.answer(draft, body),
            Some(Act::SayUsed(text, usage)) => {
                let draft = AnswerDraft { id: "the same every time".to_owned(), ..AnswerDraft::text(text) };
                let json = draft.with_usage(usage).to_response(self.wire_format);
                let answer = Answer::decode(self.wire_format, json.as_bytes()).unwrap();
                Ok(UpstreamAnswer { answer, first_content: None })
            }
            Some(Act::SayWithoutUsage(text)) => {
                self.answer(AnswerDraft { usage: None, ..AnswerDraft::text(text) }, body)
            }
            Some(Act::Fail(trouble)) => Err(Box::new(UpstreamFailure::trouble(trouble))),
            Some(Act::BreakOff(text)) => {
                let received = self.answer(AnswerDraft::text(text), body)?.answer;
                Err(Box::new(UpstreamFailure {
                    received: Some(received),
                    passed_on: throughline_engine::PartialAnswer::Begun,
                    ..UpstreamFailure::trouble(ProviderError::of(ProviderErrorKind::Interrupted))
                }))
            }
            Some(Act::Hang(text)) => {
                let received = self.answer(AnswerDraft::text(text), body)?.answer;
                Err(Box::new(UpstreamFailure {
                    cause: UpstreamFailureCause::Cancelled,
                    received: Some(received),
                    ..UpstreamFailure::trouble(ProviderError::of(ProviderErrorKind::Unknown))
                }))
            }
            Some(Act::Repeat(messages)) => {
                let usage = format!("{{\"prompt_tokens\":{},\"completion_tokens\":9}}", body.len() / 4);
                let answer = Answer { messages, usage_json: Some(usage), ..Answer::empty(self.wire_format) };
                Ok(UpstreamAnswer { answer, first_content: None })
            }
            Some(Act::RefuseOver(limit, trouble)) if body.len() > limit => {
                self.acts.lock().unwrap().push_front(Act::RefuseOver(limit, trouble.clone()));
                Err(Box::new(UpstreamFailure::trouble(trouble)))
            }
            Some(Act::RefuseOver(..)) | None => self.answer(AnswerDraft::text("All right."), body),
        }
    }
}

impl Upstream for Script {
    fn send<'a>(
        &'a self,
        call: OutgoingCall,
        _pieces: Option<&'a PieceSender>,
        cancel: &'a CancellationToken,
    ) -> UpstreamFuture<'a> {
        let body = String::from_utf8(call.body.to_vec()).unwrap();
        // Read by its grammar alone: half a surrogate pair that a client sent is passed on as it came.
        assert!(serde_json::from_str::<serde::de::IgnoredAny>(&body).is_ok(), "{body}");
        self.bodies.lock().unwrap().push(body.clone());
        self.calls.lock().unwrap().push(call);
        let hangs = matches!(self.acts.lock().unwrap().front(), Some(Act::Hang(_)));
        let answered = self.act(&body);
        // A real upstream takes its time; others get on with their work meanwhile.
        Box::pin(async move {
            tokio::task::yield_now().await;
            if hangs {
                cancel.cancelled().await;
            }
            answered
        })
    }
}

/// An empty record: in memory, or, where the tests are to run on PostgreSQL, in a database of its own.
#[track_caller]
pub(crate) fn empty_record() -> Arc<dyn Store> {
    #[cfg(feature = "postgres")]
    if let Some(server) = throughline_testkit::PostgresServer::for_every_record() {
        use throughline_store::PostgresStore;
        let url = server.database(|url| drop(PostgresStore::open(url, 2).unwrap()));
        return Arc::new(PostgresStore::open(&url, 4).unwrap());
    }
    Arc::new(SqliteStore::in_memory().unwrap())
}

/// Everything a session is made of, with handles to look at it.
pub(crate) struct Stage {
    pub(crate) host: Arc<TestHost>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) script: Arc<Script>,
    pub(crate) events: Arc<Mutex<Vec<EngineEvent>>>,
    pub(crate) setup: SessionSetup,
    pub(crate) wire_format: WireFormat,
}

/// The model of every story.
pub(crate) const MODEL: &str = "test-model";

pub(crate) fn target(
    wire_format: WireFormat,
    window_tokens: u64,
    upstream: Arc<dyn Upstream>,
) -> ModelTarget {
    let seller = if wire_format == WireFormat::Chat { CacheSeller::OpenRouter } else { CacheSeller::Other };
    ModelTarget {
        model: MODEL.to_owned(),
        provider: "test".to_owned(),
        endpoint: "http://127.0.0.1/v1".to_owned(),
        wire_format,
        policy: LimitPolicy::for_window(window_tokens),
        window_origin: String::new(),
        threshold_origin: ThresholdOrigin::General,
        cache: CachePolicy::of(seller, wire_format, "claude-test", CacheTtl::FiveMinutes),
        price_source: PriceSource::of_seller("test".to_owned()),
        cache_minimum_tokens: None,
        upstream,
    }
}

impl Stage {
    /// A stage with the built-in engine, whose summaries are made by rules.
    pub(crate) fn new(wire_format: WireFormat, window_tokens: u64) -> Self {
        Self::with_engine(wire_format, window_tokens, Arc::new(Compressor::new(CompressorSetup::by_rules())))
    }

    pub(crate) fn with_engine(
        wire_format: WireFormat,
        window_tokens: u64,
        engine: Arc<dyn ContextEngine>,
    ) -> Self {
        let host = Arc::new(TestHost::default());
        let store = empty_record();
        let script = Script::new(wire_format);
        let events: Arc<Mutex<Vec<EngineEvent>>> = Arc::default();
        let told = Arc::clone(&events);
        let upstream: Arc<dyn Upstream> = Arc::<Script>::clone(&script);
        let setup = SessionSetup {
            store: Arc::clone(&store),
            owner: Owner::default(),
            engine,
            host: Arc::<TestHost>::clone(&host),
            events: Arc::new(move |event| told.lock().unwrap().push(event)),
            target: target(wire_format, window_tokens, upstream),
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
        Self { host, store, script, events, setup, wire_format }
    }

    pub(crate) fn new_session(&self, id: &str) -> NewSession {
        NewSession {
            id: SessionId::from_text(id),
            owner: Owner::default(),
            link: None,
            started_ms: START_MS,
            model: Some(MODEL.to_owned()),
            title: None,
            origin: Origin { program: "chat".to_owned(), key: None, project: None },
            wire_format: self.wire_format,
        }
    }

    pub(crate) async fn open(&self) -> ManagedSession {
        ManagedSession::create(self.setup.clone(), self.new_session("s1")).await.unwrap()
    }

    /// Takes the conversation up as another process would.
    pub(crate) async fn reopen(&self) -> ManagedSession {
        let setup = SessionSetup {
            engine: Arc::new(Compressor::new(CompressorSetup::by_rules())),
            ..self.setup.clone()
        };
        ManagedSession::open(setup, &SessionId::from_text("s1")).await.unwrap()
    }

    pub(crate) fn told(&self) -> Vec<EngineEvent> {
        self.events.lock().unwrap().clone()
    }

    /// The names of the events so far that are no figures, in order.
    pub(crate) fn told_names(&self) -> Vec<String> {
        let name = |event: &EngineEvent| {
            let json = serde_json::to_value(event).unwrap();
            json["event"].as_str().unwrap().to_owned()
        };
        self.told().iter().map(name).filter(|name| name != "pressure").collect()
    }

    pub(crate) fn transcript(&self) -> Vec<String> {
        let all = self.store.transcript(&Owner::default(), &self.tip()).unwrap();
        all.iter().map(|message| message.json.as_str().to_owned()).collect()
    }

    pub(crate) fn tip(&self) -> SessionId {
        let chain = self.store.chain(&Owner::default(), &SessionId::from_text("s1")).unwrap();
        chain.last().unwrap().id.clone()
    }
}

/// A short system prompt, two tools, and a cap on output.
pub(crate) fn envelope(wire_format: WireFormat) -> Envelope {
    let tools = match wire_format {
        WireFormat::Anthropic => {
            r#"[{"name":"read_file","description":"Reads a file","input_schema":{"type":"object"}}]"#
        }
        _ => r#"[{"type":"function","function":{"name":"read_file","parameters":{"type":"object"}}}]"#,
    };
    let parts = RequestParts {
        system: Some(System::Text("You are a careful engineer. Keep to the style of the repository.")),
        tools: Some(RawJson(tools)),
        ..RequestParts::new(MODEL)
    };
    Envelope::build(wire_format, &parts).unwrap()
}

pub(crate) fn decoded(json: String) -> Message {
    decode_message(SharedText::new(json)).unwrap()
}

pub(crate) fn user(wire_format: WireFormat, text: &str) -> IncomingMessage {
    decoded(text_message(wire_format, Role::User, text)).into()
}

/// A call with one message of a person.
pub(crate) fn saying(wire_format: WireFormat, text: &str) -> CallInput {
    CallInput::new(envelope(wire_format), vec![user(wire_format, text)])
}

/// An answer that wants a file read.
pub(crate) fn reading(id: &str, path: &str) -> AnswerDraft {
    calling(id, "read_file", &format!("{{\"path\":\"{path}\"}}"))
}

/// An answer that wants a tool.
pub(crate) fn calling(id: &str, tool: &str, arguments: &str) -> AnswerDraft {
    AnswerDraft::of_parts(vec![
        AnswerPart::Text("Let me look.".to_owned()),
        AnswerPart::ToolCall(ToolCall {
            id: id.to_owned(),
            name: tool.to_owned(),
            arguments: arguments.to_owned(),
        }),
    ])
}

/// The result of a tool call.
pub(crate) fn result(wire_format: WireFormat, call: &str, text: &str) -> IncomingMessage {
    let stub = throughline_transcript::tool_result_stub(wire_format, call, text);
    let json = match wire_format {
        WireFormat::Anthropic => format!("{{\"role\":\"user\",\"content\":[{stub}]}}"),
        _ => stub,
    };
    decoded(json).into()
}

/// Text of about so many words, different for each number.
pub(crate) fn words(number: usize, count: usize) -> String {
    const WORDS: [&str; 12] = [
        "river", "stone", "engine", "paper", "window", "garden", "signal", "market", "copper", "letter",
        "bridge", "season",
    ];
    let word = |at: usize| WORDS[(at * 7 + number * 5 + at / 12) % WORDS.len()];
    (0..count).map(|at| format!("{}{}", word(at), (at * number) % 97)).collect::<Vec<_>>().join(" ")
}

/// Makes calls until the conversation has been compacted so often, each with a tool call and its result. Returns how many
/// exchanges that took.
pub(crate) async fn talk_until_compacted(
    stage: &Stage,
    session: &mut ManagedSession,
    compactions: u64,
) -> usize {
    let mut turn = 0;
    while session.compactions() < compactions {
        assert!(turn < 400, "{compactions} compactions never came");
        talk(stage, session, turn).await;
        turn += 1;
    }
    turn
}

/// One exchange: a person asks, the model reads a file, then answers.
pub(crate) async fn talk(stage: &Stage, session: &mut ManagedSession, turn: usize) {
    let wire_format = stage.wire_format;
    let call = format!("call_{turn}");
    stage.script.then(Act::Say(reading(&call, &format!("src/file_{turn}.rs"))));
    session.call(saying(wire_format, &format!("Question {turn}: {}", words(turn, 30)))).await.unwrap();
    a_moment().await;
    let result = result(wire_format, &call, &words(turn + 1, 120));
    session.call(CallInput::new(envelope(wire_format), vec![result])).await.unwrap();
    a_moment().await;
}

/// Tools and people take their time: what is worked on in the background gets done meanwhile, if it can be.
async fn a_moment() {
    for _ in 0..16 {
        tokio::task::yield_now().await;
    }
}

/// What an answer says.
pub(crate) fn text_of(answer: &Answer) -> String {
    answer.text()
}
