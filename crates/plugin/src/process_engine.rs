//! A context engine in another process, from the host's side.
//!
//! One process serves one conversation. It is started when first needed, and restarted after it ended, after an increasing wait; it then
//! receives what it needs to continue (the model, the session). It cannot harm the conversation: a late, invalid or missing answer is an
//! error with a reason, and the host checks its views like any others.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use throughline_engine::{
    Boundary, CompressOutcome, CompressRequest, ContextEngine, EngineError, EngineFuture, EngineStatus,
    MeasuredUsage, ModelInForce, PendingRequest, PrepareOutcome, SessionEnd, SessionStart, Snapshot,
    ToolAnswer, ToolRequest, ToolSchema,
};
use throughline_redact::Redactor;
use tokio::sync::Mutex;

use crate::connection::{CallFailure, Connection, EngineBounds, Launch};
use crate::health::{EngineHealth, RestartBackoff};
use crate::protocol::{Capabilities, InitializeParams, InitializeResult, PROTOCOL_VERSION, code, method};
use crate::redaction::masked;
use crate::services::HostServices;

/// An engine in another process.
pub struct ProcessEngine {
    name: String,
    launch: Launch,
    bounds: EngineBounds,
    services: Arc<dyn HostServices>,
    health: Arc<EngineHealth>,
    redactor: Option<Redactor>,
    state: Mutex<ProcessState>,
}

#[derive(Default)]
struct ProcessState {
    open: Option<OpenProcess>,
    /// Sent again after a restart.
    model: Option<ModelInForce>,
    start: Option<SessionStart>,
    /// The waits after calls that ended the process.
    pauses: RestartBackoff,
}

#[derive(Clone)]
struct OpenProcess {
    connection: Arc<Connection>,
    introduction: Arc<InitializeResult>,
}

impl ProcessEngine {
    /// Creates an engine of this name without starting it.
    #[must_use]
    pub fn new(name: &str, launch: Launch, bounds: EngineBounds, services: Arc<dyn HostServices>) -> Self {
        let health = Arc::<EngineHealth>::default();
        let (redactor, state) = (None, Mutex::default());
        Self { name: name.to_owned(), launch, bounds, services, health, redactor, state }
    }

    /// Returns the engine with the health shared by several conversations.
    #[must_use]
    pub fn sharing(self, health: &Arc<EngineHealth>) -> Self {
        Self { health: Arc::clone(health), ..self }
    }

    /// Returns the engine with secrets masked in its output.
    #[must_use]
    pub fn masking(self, redactor: Option<Redactor>) -> Self {
        Self { redactor, ..self }
    }

    /// Starts it if necessary, and returns its introduction.
    pub async fn introduction(&self) -> Result<InitializeResult, EngineError> {
        let mut state = self.state.lock().await;
        Ok(InitializeResult::clone(&self.opened(&mut state).await?.introduction))
    }

    async fn capabilities(&self) -> Result<Capabilities, EngineError> {
        let mut state = self.state.lock().await;
        Ok(self.opened(&mut state).await?.introduction.capabilities)
    }

    /// Returns the process, started if necessary.
    async fn opened(&self, state: &mut ProcessState) -> Result<OpenProcess, EngineError> {
        if let Some(open) = state.open.as_ref().filter(|open| open.connection.is_open()) {
            return Ok(open.clone());
        }
        if let Some(why) = state.pauses.resting().or_else(|| self.health.resting()) {
            return Err(self.unavailable(&why));
        }
        state.open = None;
        match self.start(state).await {
            Ok(open) => {
                self.health.started();
                state.open = Some(open.clone());
                Ok(open)
            }
            Err(error) => {
                let why = detail_of(&error);
                self.health.start_failed(self.bounds.pause, why);
                // The same message until the next start.
                Err(self.unavailable(&self.health.resting().unwrap_or_else(|| why.to_owned())))
            }
        }
    }

    async fn start(&self, state: &ProcessState) -> Result<OpenProcess, EngineError> {
        let opened = Connection::open(&self.launch, self.bounds, &self.services, &self.health);
        let connection = opened.map_err(|why| self.unavailable(&why))?;
        let greeting = InitializeParams {
            protocol: PROTOCOL_VERSION,
            host: concat!("throughline ", env!("CARGO_PKG_VERSION")).to_owned(),
            engine: self.name.clone(),
        };
        let asked = connection.ask(method::INITIALIZE, &greeting, self.bounds.start).await;
        let introduction: InitializeResult = self.read(asked, method::INITIALIZE)?;
        if introduction.protocol != PROTOCOL_VERSION {
            let why = format!(
                "it speaks version {} of the protocol; this program speaks {PROTOCOL_VERSION}",
                introduction.protocol
            );
            connection.kill(&why);
            return Err(self.bad_answer(&why));
        }
        if let Some(model) = &state.model {
            let told = connection.ask(method::UPDATE_MODEL, model, self.bounds.answer).await;
            self.read::<serde::de::IgnoredAny>(told, method::UPDATE_MODEL)?;
        }
        if let Some(start) = &state.start {
            let told = connection.ask(method::SESSION_STARTED, start, self.bounds.answer).await;
            self.read::<serde::de::IgnoredAny>(told, method::SESSION_STARTED)?;
        }
        Ok(OpenProcess { connection, introduction: Arc::new(introduction) })
    }

    /// Sends a request.
    async fn ask<P: Serialize + Sync, T: DeserializeOwned>(
        &self,
        asked: &str,
        params: &P,
        limit: Duration,
    ) -> Result<T, EngineError> {
        let open = {
            let mut state = self.state.lock().await;
            self.opened(&mut state).await?
        };
        let answer = open.connection.ask(asked, params, limit).await;
        self.noted(answer, asked).await
    }

    /// Parses an answer; records why the process ended.
    async fn noted<T: DeserializeOwned>(
        &self,
        answer: Result<Box<serde_json::value::RawValue>, CallFailure>,
        asked: &str,
    ) -> Result<T, EngineError> {
        let is_gone = matches!(answer, Err(CallFailure::Gone(_)));
        let read = self.read(answer, asked);
        let mut state = self.state.lock().await;
        match (&read, is_gone) {
            (Err(error), true) => state.pauses.failed(self.bounds.pause, detail_of(error)),
            (Ok(_), _) => state.pauses.went_well(),
            (Err(_), false) => {}
        }
        match state.pauses.resting() {
            Some(why) if is_gone => Err(self.unavailable(&why)),
            _ => read,
        }
    }

    async fn tell<P: Serialize + Sync>(&self, asked: &str, params: &P) -> Result<(), EngineError> {
        self.ask::<P, serde::de::IgnoredAny>(asked, params, self.bounds.answer).await.map(drop)
    }

    fn read<T: DeserializeOwned>(
        &self,
        answer: Result<Box<serde_json::value::RawValue>, CallFailure>,
        asked: &str,
    ) -> Result<T, EngineError> {
        match answer {
            Ok(result) => serde_json::from_str(result.get())
                .map_err(|error| self.bad_answer(&format!("`{asked}`: {error}"))),
            Err(CallFailure::Gone(why)) => Err(self.unavailable(&why)),
            Err(CallFailure::Unreadable(why)) => Err(self.bad_answer(&format!("`{asked}`: {why}"))),
            Err(CallFailure::Error(error)) => Err(self.unavailable(&format!("`{asked}`: {}", error.message))),
        }
    }

    fn unavailable(&self, detail: &str) -> EngineError {
        EngineError::Unavailable { engine: self.name.clone(), detail: detail.to_owned() }
    }

    fn bad_answer(&self, detail: &str) -> EngineError {
        EngineError::BadAnswer { engine: self.name.clone(), detail: detail.to_owned() }
    }
}

/// Returns the detail of an error without the name of the engine.
fn detail_of(error: &EngineError) -> &str {
    match error {
        EngineError::Unavailable { detail, .. } | EngineError::BadAnswer { detail, .. } => detail,
        EngineError::UnknownTool { tool, .. } => tool,
    }
}

/// A conversation as it is sent to an engine.
#[derive(Serialize)]
struct SnapshotParams<'a> {
    conversation: &'a Snapshot,
}

/// A size as it is sent to an engine.
#[derive(Serialize)]
struct PromptParams {
    prompt_tokens: u64,
}

/// Empty parameters.
#[derive(Serialize)]
struct NoParams {}

impl ContextEngine for ProcessEngine {
    fn name(&self) -> &str {
        &self.name
    }

    fn update_model<'a>(&'a self, model: &'a ModelInForce) -> EngineFuture<'a, ()> {
        Box::pin(async move {
            // A process that is started later receives the model when it starts.
            let is_running = {
                let mut state = self.state.lock().await;
                state.model = Some(model.clone());
                state.open.as_ref().is_some_and(|open| open.connection.is_open())
            };
            match is_running {
                true => self.tell(method::UPDATE_MODEL, model).await,
                false => self.introduction().await.map(drop),
            }
        })
    }

    fn update_from_response<'a>(&'a self, usage: &'a MeasuredUsage) -> EngineFuture<'a, ()> {
        Box::pin(self.tell(method::UPDATE_FROM_RESPONSE, usage))
    }

    fn should_compress(&self, prompt_tokens: u64) -> EngineFuture<'_, bool> {
        Box::pin(async move {
            self.ask(method::SHOULD_COMPRESS, &PromptParams { prompt_tokens }, self.bounds.answer).await
        })
    }

    fn should_compress_preflight<'a>(&'a self, pending: &'a PendingRequest) -> EngineFuture<'a, bool> {
        Box::pin(async move {
            match self.capabilities().await?.preflight {
                true => self.ask(method::SHOULD_COMPRESS_PREFLIGHT, pending, self.bounds.answer).await,
                false => self.should_compress(pending.total_tokens).await,
            }
        })
    }

    fn has_content_to_compress<'a>(&'a self, conversation: &'a Snapshot) -> EngineFuture<'a, bool> {
        Box::pin(async move {
            match self.capabilities().await?.has_content {
                true => {
                    self.ask(method::HAS_CONTENT, &SnapshotParams { conversation }, self.bounds.answer).await
                }
                false => Ok(!conversation.messages.is_empty()),
            }
        })
    }

    fn compress<'a>(&'a self, request: &'a CompressRequest) -> EngineFuture<'a, CompressOutcome> {
        Box::pin(async move {
            let outcome = self.ask(method::COMPRESS, request, self.bounds.compress).await?;
            Ok(match &self.redactor {
                Some(redactor) => masked(outcome, redactor),
                None => outcome,
            })
        })
    }

    fn prepare<'a>(&'a self, conversation: &'a Snapshot) -> EngineFuture<'a, PrepareOutcome> {
        Box::pin(async move {
            match self.capabilities().await?.prepare {
                true => {
                    self.ask(method::PREPARE, &SnapshotParams { conversation }, self.bounds.compress).await
                }
                false => Ok(PrepareOutcome::Nothing),
            }
        })
    }

    fn messages_appended<'a>(&'a self, conversation: &'a Snapshot) -> EngineFuture<'a, ()> {
        Box::pin(async move {
            match self.capabilities().await?.messages {
                true => self.tell(method::MESSAGES_APPENDED, &SnapshotParams { conversation }).await,
                false => Ok(()),
            }
        })
    }

    fn session_started<'a>(&'a self, start: &'a SessionStart) -> EngineFuture<'a, ()> {
        Box::pin(async move {
            let is_running = {
                let mut state = self.state.lock().await;
                state.start = Some(start.clone());
                state.open.as_ref().is_some_and(|open| open.connection.is_open())
            };
            match is_running {
                true => self.tell(method::SESSION_STARTED, start).await,
                false => self.introduction().await.map(drop),
            }
        })
    }

    fn session_ended<'a>(&'a self, ended: &'a SessionEnd) -> EngineFuture<'a, ()> {
        Box::pin(async move {
            match self.capabilities().await?.lifecycle {
                true => self.tell(method::SESSION_ENDED, ended).await,
                false => Ok(()),
            }
        })
    }

    fn session_reset(&self) -> EngineFuture<'_, ()> {
        Box::pin(async move {
            match self.capabilities().await?.lifecycle {
                true => self.tell(method::SESSION_RESET, &NoParams {}).await,
                false => Ok(()),
            }
        })
    }

    fn boundary<'a>(&'a self, boundary: &'a Boundary) -> EngineFuture<'a, ()> {
        Box::pin(async move {
            {
                let mut state = self.state.lock().await;
                if let Some(start) = &mut state.start {
                    start.session.clone_from(&boundary.new);
                }
            }
            match self.capabilities().await?.lifecycle {
                true => self.tell(method::BOUNDARY, boundary).await,
                false => Ok(()),
            }
        })
    }

    fn tool_schemas(&self) -> EngineFuture<'_, Vec<ToolSchema>> {
        Box::pin(async move {
            match self.capabilities().await?.tools {
                true => self.ask(method::TOOL_SCHEMAS, &NoParams {}, self.bounds.answer).await,
                false => Ok(Vec::new()),
            }
        })
    }

    fn handle_tool_call<'a>(&'a self, call: &'a ToolRequest) -> EngineFuture<'a, ToolAnswer> {
        Box::pin(async move {
            let unknown = || EngineError::UnknownTool { engine: self.name.clone(), tool: call.name.clone() };
            if !self.capabilities().await?.tools {
                return Err(unknown());
            }
            let open = {
                let mut state = self.state.lock().await;
                self.opened(&mut state).await?
            };
            match open.connection.ask(method::TOOL_CALL, call, self.bounds.compress).await {
                Err(CallFailure::Error(error)) if error.code == code::UNKNOWN_TOOL => Err(unknown()),
                answer => self.noted(answer, method::TOOL_CALL).await,
            }
        })
    }

    fn status(&self) -> EngineFuture<'_, EngineStatus> {
        Box::pin(self.ask(method::STATUS, &NoParams {}, self.bounds.answer))
    }
}
