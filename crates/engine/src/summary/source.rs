//! How an engine gets its summariser, and the models for questions.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use throughline_compaction::Summariser;
use throughline_provider::Priority;
use throughline_store::SessionId;

use super::host::SummaryHost;
use crate::context_engine::outcome::CompressRequest;

/// Gives the summariser for one request: which one, and knowing what else the request brings, is its own affair.
pub trait SummariserSource: Send + Sync {
    /// The summariser to be used now.
    fn summariser_for(&self, request: &CompressRequest) -> Arc<dyn Summariser>;

    /// Receives the conversation's own calls, if it wants to know.
    fn summary_host(&self) -> Option<Arc<SummaryHost>> {
        None
    }

    /// Whether there is a model that answers questions.
    fn can_answer(&self) -> bool {
        false
    }

    /// Asks the model that writes summaries a question about texts that are given with it.
    fn answer<'a>(&'a self, _question: &'a ModelQuestion<'a>) -> ModelAnswerFuture<'a> {
        Box::pin(std::future::ready(Err("no model writes summaries here".to_owned())))
    }
}

/// The same summariser every time.
#[derive(Clone)]
pub struct OneSummariser(pub Arc<dyn Summariser>);

impl SummariserSource for OneSummariser {
    fn summariser_for(&self, _request: &CompressRequest) -> Arc<dyn Summariser> {
        Arc::clone(&self.0)
    }
}

/// A question with everything it is to be answered from.
#[derive(Clone, Copy, Debug)]
pub struct ModelQuestion<'a> {
    /// The session it is asked in.
    pub session: &'a SessionId,
    /// What the call is booked as.
    pub task: &'static str,
    /// Whether anyone waits for the answer.
    pub priority: Priority,
    /// How to answer.
    pub instructions: &'a str,
    /// What is quoted, and the question.
    pub text: &'a str,
    /// Room for the answer.
    pub answer_tokens: u64,
}

impl ModelQuestion<'_> {
    /// The name under which calls that answer questions are recorded.
    pub const TASK: &'static str = "recall";
}

/// An answer: to a question, or the summary that an engine in another process asked for.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ModelAnswer {
    /// Its words.
    pub text: String,
    /// The model that gave it.
    pub author: String,
}

/// An answer on its way; words when there is none.
pub(crate) type ModelAnswerFuture<'a> =
    Pin<Box<dyn Future<Output = Result<ModelAnswer, String>> + Send + 'a>>;
