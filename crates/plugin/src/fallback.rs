//! An engine with a fallback that answers when it does not, if the user enabled that.

use std::sync::{Arc, Mutex, PoisonError};

use throughline_engine::{
    Boundary, CompressOutcome, CompressRequest, ContextEngine, EngineError, EngineFuture, EngineStatus,
    MeasuredUsage, ModelInForce, NoticeFilter, PendingRequest, PrepareOutcome, Profitability, SessionEnd,
    SessionStart, Snapshot, ToolAnswer, ToolRequest, ToolSchema, Trigger,
};

/// Called when the fallback is used, with the reason; once while the reason stays the same.
pub(crate) type OnFallback = Arc<dyn Fn(&EngineError) + Send + Sync>;

/// An engine with a fallback.
pub struct FallbackEngine {
    engine: Arc<dyn ContextEngine>,
    stand_in: Arc<dyn ContextEngine>,
    stepped_in: OnFallback,
    told: Mutex<NoticeFilter>,
}

impl FallbackEngine {
    /// Creates an engine that is replaced by `stand_in` when it fails.
    #[must_use]
    pub fn new(
        engine: Arc<dyn ContextEngine>,
        stand_in: Arc<dyn ContextEngine>,
        stepped_in: OnFallback,
    ) -> Self {
        Self { engine, stand_in, stepped_in, told: Mutex::default() }
    }

    fn tell(&self, error: &EngineError) {
        if self.told.lock().unwrap_or_else(PoisonError::into_inner).is_news(error) {
            (self.stepped_in)(error);
        }
    }

    fn either<'a, T: Send + 'a>(
        &'a self,
        ask: impl Fn(&'a dyn ContextEngine) -> EngineFuture<'a, T> + Send + 'a,
    ) -> EngineFuture<'a, T> {
        Box::pin(async move {
            match ask(self.engine.as_ref()).await {
                Ok(answer) => Ok(answer),
                Err(error) => {
                    self.tell(&error);
                    ask(self.stand_in.as_ref()).await
                }
            }
        })
    }

    /// Calls both; a failure of the engine itself is ignored.
    fn both<'a>(
        &'a self,
        tell: impl Fn(&'a dyn ContextEngine) -> EngineFuture<'a, ()> + Send + 'a,
    ) -> EngineFuture<'a, ()> {
        Box::pin(async move {
            if let Err(error) = tell(self.engine.as_ref()).await {
                self.tell(&error);
            }
            tell(self.stand_in.as_ref()).await
        })
    }
}

impl ContextEngine for FallbackEngine {
    fn name(&self) -> &str {
        self.engine.name()
    }

    fn update_model<'a>(&'a self, model: &'a ModelInForce) -> EngineFuture<'a, ()> {
        self.both(move |engine| engine.update_model(model))
    }

    fn update_from_response<'a>(&'a self, usage: &'a MeasuredUsage) -> EngineFuture<'a, ()> {
        self.both(move |engine| engine.update_from_response(usage))
    }

    fn should_compress(&self, prompt_tokens: u64) -> EngineFuture<'_, bool> {
        self.either(move |engine| engine.should_compress(prompt_tokens))
    }

    fn should_compress_preflight<'a>(&'a self, pending: &'a PendingRequest) -> EngineFuture<'a, bool> {
        self.either(move |engine| engine.should_compress_preflight(pending))
    }

    fn compaction_due_at<'a>(&'a self, conversation: &'a Snapshot) -> EngineFuture<'a, Option<u64>> {
        self.either(move |engine| engine.compaction_due_at(conversation))
    }

    fn worth_compressing<'a>(
        &'a self,
        conversation: &'a Snapshot,
        trigger: Trigger,
    ) -> EngineFuture<'a, Profitability> {
        self.either(move |engine| engine.worth_compressing(conversation, trigger))
    }

    fn has_content_to_compress<'a>(&'a self, conversation: &'a Snapshot) -> EngineFuture<'a, bool> {
        self.either(move |engine| engine.has_content_to_compress(conversation))
    }

    fn compress<'a>(&'a self, request: &'a CompressRequest) -> EngineFuture<'a, CompressOutcome> {
        Box::pin(async move {
            match self.engine.compress(request).await {
                Ok(outcome) => {
                    self.told.lock().unwrap_or_else(PoisonError::into_inner).forget();
                    Ok(outcome)
                }
                Err(error) => {
                    self.tell(&error);
                    self.stand_in.compress(request).await
                }
            }
        })
    }

    fn prepare<'a>(&'a self, conversation: &'a Snapshot) -> EngineFuture<'a, PrepareOutcome> {
        self.engine.prepare(conversation)
    }

    fn messages_appended<'a>(&'a self, conversation: &'a Snapshot) -> EngineFuture<'a, ()> {
        self.both(move |engine| engine.messages_appended(conversation))
    }

    fn session_started<'a>(&'a self, start: &'a SessionStart) -> EngineFuture<'a, ()> {
        self.both(move |engine| engine.session_started(start))
    }

    fn session_ended<'a>(&'a self, end: &'a SessionEnd) -> EngineFuture<'a, ()> {
        self.both(move |engine| engine.session_ended(end))
    }

    fn session_reset(&self) -> EngineFuture<'_, ()> {
        self.both(|engine| engine.session_reset())
    }

    fn boundary<'a>(&'a self, boundary: &'a Boundary) -> EngineFuture<'a, ()> {
        self.both(move |engine| engine.boundary(boundary))
    }

    fn tool_schemas(&self) -> EngineFuture<'_, Vec<ToolSchema>> {
        self.engine.tool_schemas()
    }

    fn handle_tool_call<'a>(&'a self, call: &'a ToolRequest) -> EngineFuture<'a, ToolAnswer> {
        self.engine.handle_tool_call(call)
    }

    fn status(&self) -> EngineFuture<'_, EngineStatus> {
        self.either(|engine| engine.status())
    }
}
