//! An engine that was selected and is not available: it answers every request with the reason, so that the conversation continues without
//! it and the user is informed.

use throughline_engine::{
    CompressOutcome, CompressRequest, ContextEngine, EngineError, EngineFuture, EngineStatus, MeasuredUsage,
    ModelInForce,
};

/// An unavailable engine.
pub struct UnavailableEngine {
    name: String,
    why: String,
}

impl UnavailableEngine {
    /// Creates the engine of this name, with the reason why it is unavailable.
    #[must_use]
    pub fn new(name: &str, why: &str) -> Self {
        Self { name: name.to_owned(), why: why.to_owned() }
    }

    fn refuse<T: Send + 'static>(&self) -> EngineFuture<'_, T> {
        let (engine, detail) = (self.name.clone(), self.why.clone());
        Box::pin(std::future::ready(Err(EngineError::Unavailable { engine, detail })))
    }
}

impl ContextEngine for UnavailableEngine {
    fn name(&self) -> &str {
        &self.name
    }

    fn update_model<'a>(&'a self, _model: &'a ModelInForce) -> EngineFuture<'a, ()> {
        self.refuse()
    }

    fn update_from_response<'a>(&'a self, _usage: &'a MeasuredUsage) -> EngineFuture<'a, ()> {
        self.refuse()
    }

    fn should_compress(&self, _prompt_tokens: u64) -> EngineFuture<'_, bool> {
        self.refuse()
    }

    fn compress<'a>(&'a self, _request: &'a CompressRequest) -> EngineFuture<'a, CompressOutcome> {
        self.refuse()
    }

    fn status(&self) -> EngineFuture<'_, EngineStatus> {
        self.refuse()
    }
}
