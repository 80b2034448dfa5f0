//! A managed conversation over any upstream and store.

use std::sync::Arc;

use throughline_engine::{
    Automatic, CallInput, CallPolicy, CompactionResult, Compressor, CompressorSetup, ContextEngine,
    EngineEvent, Envelope, EventSink, Host as _, IncomingMessage, LockPolicy, ManagedSession,
    ManualCompaction, ModelTarget, PriceSource, RecordPolicy, SessionError, SessionSetup, ThresholdOrigin,
    ToolOutputPolicy, Upstream,
};
use throughline_provider::CachePolicy;
use throughline_redact::Redactor;
use throughline_store::{IdLength, MemoryStore, NewSession, Origin, Owner, SessionId, Store};
use throughline_tokens::{Catalogue, LimitPolicy};
use throughline_transcript::{RawJson, Role, SharedText, WireFormat, decode_message, text_message};
use throughline_wire::{Answer, CapMember, RequestError, RequestParts, System};

use crate::process_host::ProcessHost;

/// The longest answer that is asked for where the wire format demands a limit and none was set.
const ANTHROPIC_OUTPUT_TOKENS: u64 = 8_192;

/// Settings of a [`Session`](crate::Session).
pub struct SessionBuilder {
    upstream: Arc<dyn Upstream>,
    model: String,
    wire_format: WireFormat,
    window_tokens: Option<u64>,
    system: Option<String>,
    tools: Option<String>,
    output_cap_tokens: Option<u64>,
    store: Arc<dyn Store>,
    engine: Option<Arc<dyn ContextEngine>>,
    events: Arc<dyn EventSink>,
    resume: Option<SessionId>,
}

impl SessionBuilder {
    /// The model, as requests name it. Its window is looked up unless one is given.
    #[must_use]
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.model = name.into();
        self
    }

    /// The wire format of the upstream: Chat Completions by default.
    #[must_use]
    pub fn wire_format(mut self, wire_format: WireFormat) -> Self {
        self.wire_format = wire_format;
        self
    }

    /// The model's window.
    #[must_use]
    pub fn window_tokens(mut self, tokens: u64) -> Self {
        self.window_tokens = Some(tokens);
        self
    }

    /// The system prompt.
    #[must_use]
    pub fn system(mut self, text: impl Into<String>) -> Self {
        self.system = Some(text.into());
        self
    }

    /// Tool definitions: a JSON list in the wire format.
    #[must_use]
    pub fn tools(mut self, json: impl Into<String>) -> Self {
        self.tools = Some(json.into());
        self
    }

    /// The longest answer to ask for.
    #[must_use]
    pub fn output_cap_tokens(mut self, tokens: u64) -> Self {
        self.output_cap_tokens = Some(tokens);
        self
    }

    /// The record; in memory by default.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = store;
        self
    }

    /// Called with everything that happens: compactions, retries, long tool results set aside. Must not wait.
    #[must_use]
    pub fn on_event(mut self, listener: impl Fn(EngineEvent) + Send + Sync + 'static) -> Self {
        self.events = Arc::new(listener);
        self
    }

    /// Continues a conversation of the store instead of beginning one.
    #[must_use]
    pub fn resume(mut self, id: SessionId) -> Self {
        self.resume = Some(id);
        self
    }

    /// Opens the session. Needs a Tokio runtime, as everything a session does.
    ///
    /// # Errors
    ///
    /// When the record cannot be written, the conversation to resume is not there, or the window is too small.
    pub async fn build(self) -> Result<EmbeddedSession, SessionError> {
        let facts = Catalogue::shipped_facts(&self.model);
        let demanded = (self.wire_format == WireFormat::Anthropic).then_some(ANTHROPIC_OUTPUT_TOKENS);
        let output_cap_tokens = self.output_cap_tokens.or(demanded);
        let cap = CapMember::usual(self.wire_format);
        let parts = RequestParts {
            system: self.system.as_deref().map(System::Text),
            tools: self.tools.as_deref().map(RawJson),
            output_cap: output_cap_tokens.map(|tokens| (cap, tokens)),
            ..RequestParts::new(&self.model)
        };
        let envelope = Envelope::build(self.wire_format, &parts)?;
        let engine = self.engine.unwrap_or_else(|| {
            let setup = CompressorSetup { redactor: Some(Redactor::new()), ..CompressorSetup::by_rules() };
            Arc::new(Compressor::new(setup))
        });
        let host = Arc::new(ProcessHost);
        let now_ms = host.now_ms();
        let new = NewSession {
            id: SessionId::new(now_ms, host.random(), IdLength::Gateway),
            owner: Owner::default(),
            link: None,
            started_ms: now_ms,
            model: Some(self.model.clone()),
            title: None,
            origin: Origin { program: "library".to_owned(), key: None, project: None },
            wire_format: self.wire_format,
        };
        let setup = SessionSetup {
            store: self.store,
            owner: Owner::default(),
            engine,
            host,
            events: self.events,
            target: ModelTarget {
                policy: LimitPolicy::for_window(self.window_tokens.unwrap_or(facts.window_tokens)),
                model: self.model,
                provider: String::new(),
                endpoint: "embedded".to_owned(),
                wire_format: self.wire_format,
                window_origin: "given by the program".to_owned(),
                threshold_origin: ThresholdOrigin::General,
                cache: CachePolicy::Unmarked,
                cache_minimum_tokens: facts.cache_minimum_tokens,
                price_source: PriceSource::of_seller(String::new()),
                upstream: self.upstream,
            },
            alternatives: Vec::new(),
            policy: CallPolicy {
                automatic: Automatic::On,
                record: RecordPolicy::Require,
                lock: LockPolicy::Compactions,
                ids: IdLength::Gateway,
                recall: None,
            },
            tool_output: ToolOutputPolicy::default(),
        };
        let managed = match &self.resume {
            Some(id) => ManagedSession::open(setup, id).await?,
            None => ManagedSession::create(setup, new).await?,
        };
        Ok(EmbeddedSession { managed, envelope })
    }
}

/// A conversation whose every call goes through Throughline: each message is stored, the model is sent a view that fits its
/// window, and the older part is compacted when the threshold is reached.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use throughline::{Session, upstream_fn};
///
/// let upstream = upstream_fn(|_body| async {
///     Ok((200, r#"{"choices":[{"message":{"role":"assistant","content":"Paris."}}]}"#.to_owned()))
/// });
/// let mut session = Session::builder(upstream).model("gpt-5").system("Answer briefly.").build().await?;
/// assert_eq!(session.send("What is the capital of France?").await?.text(), "Paris.");
/// assert_eq!(session.messages().count(), 2);
/// # Ok(()) }
/// ```
pub struct EmbeddedSession {
    managed: ManagedSession,
    envelope: Envelope,
}

impl EmbeddedSession {
    /// A session whose calls go through this upstream.
    #[must_use]
    pub fn builder(upstream: impl Upstream + 'static) -> SessionBuilder {
        SessionBuilder {
            upstream: Arc::new(upstream),
            model: String::new(),
            wire_format: WireFormat::Chat,
            window_tokens: None,
            system: None,
            tools: None,
            output_cap_tokens: None,
            store: Arc::new(MemoryStore::new()),
            engine: None,
            events: Arc::new(|_event: EngineEvent| {}),
            resume: None,
        }
    }

    /// Sends what a person said and returns the answer. Both are in the record then.
    ///
    /// # Errors
    ///
    /// When the upstream fails for good or the record cannot be written. The conversation stays usable.
    pub async fn send(&mut self, text: &str) -> Result<Answer, SessionError> {
        self.send_json([text_message(self.envelope.wire_format(), Role::User, text)]).await
    }

    /// Sends messages of the wire format as JSON, such as the results of tool calls, and returns the answer.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send), and when a text is not a message.
    pub async fn send_json(
        &mut self,
        messages: impl IntoIterator<Item = String>,
    ) -> Result<Answer, SessionError> {
        let decoded = |(index, json)| {
            let not_one = || RequestError::NotAMessage {
                member: "messages",
                index,
                detail: "not the JSON of a message of any wire format".to_owned(),
            };
            decode_message(SharedText::new(json)).map(IncomingMessage::from).ok_or_else(not_one)
        };
        let messages = messages.into_iter().enumerate().map(decoded).collect::<Result<Vec<_>, _>>()?;
        Ok(self.managed.call(CallInput::new(self.envelope.clone(), messages)).await?.answer)
    }

    /// Compacts now. Returns whether there is a new view.
    pub async fn compact(&mut self) -> bool {
        let done = self.managed.compact(ManualCompaction::default()).await;
        matches!(done, CompactionResult::Completed(_))
    }

    /// The session in the store. A compaction continues the conversation under a new id.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        self.managed.id()
    }

    /// What the model is sent with the next call, each message as JSON.
    pub fn messages(&self) -> impl Iterator<Item = &str> {
        self.managed.messages().iter().map(|message| message.json())
    }

    /// Compactions so far.
    #[must_use]
    pub fn compactions(&self) -> u64 {
        self.managed.compactions()
    }
}
