//! The order of replies.

use std::collections::HashMap;
use std::fmt;

use super::Replies;
use super::client_summary;
use super::recorded::RecordedRequest;
use super::reply::Reply;

/// Computes the reply to a recorded request.
type Answering = Box<dyn FnMut(&RecordedRequest) -> Reply + Send>;

/// The replies to calls.
pub struct Script(Kind);

enum Kind {
    Row(Replies),
    /// Answers calls, except a client's own request for a summary.
    Model(Answering),
    Closure(Answering),
}

impl Script {
    /// One reply per call, in this order. Further calls get an error 599.
    #[must_use]
    pub fn row(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self(Kind::Row(replies.into_iter().collect()))
    }

    /// The reply of a closure to each call. A client's own request for a summary is answered with a summary instead, as by a real model.
    #[must_use]
    pub fn answering(answer: impl FnMut(&RecordedRequest) -> Reply + Send + 'static) -> Self {
        Self(Kind::Model(Box::new(answer)))
    }

    /// The reply of a closure to each call, including a client's own request for a summary.
    #[must_use]
    pub fn answering_all(answer: impl FnMut(&RecordedRequest) -> Reply + Send + 'static) -> Self {
        Self(Kind::Closure(Box::new(answer)))
    }

    /// The same reply to every call.
    #[must_use]
    pub fn always(reply: Reply) -> Self {
        Self::answering_all(move |_| reply.clone())
    }

    fn next(&mut self, request: &RecordedRequest) -> Reply {
        match &mut self.0 {
            Kind::Row(replies) => replies.pop_front().unwrap_or_else(|| {
                Reply::error(599, "script_over", "the script of this upstream has no reply left")
            }),
            Kind::Model(answer) if request.summarising_client().is_none() => answer(request),
            Kind::Model(_) => client_summary::summary(),
            Kind::Closure(answer) => answer(request),
        }
    }

    fn left(&self) -> usize {
        match &self.0 {
            Kind::Row(replies) => replies.len(),
            Kind::Model(_) | Kind::Closure(_) => 0,
        }
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Row(replies) => f.debug_tuple("Row").field(&replies.len()).finish(),
            Kind::Model(_) | Kind::Closure(_) => f.write_str("Closure"),
        }
    }
}

impl From<Reply> for Script {
    fn from(reply: Reply) -> Self {
        Self::row([reply])
    }
}

impl From<Vec<Reply>> for Script {
    fn from(replies: Vec<Reply>) -> Self {
        Self::row(replies)
    }
}

/// Scripts by model.
#[derive(Debug)]
pub(crate) struct Scripts {
    usual: Script,
    by_model: HashMap<String, Script>,
}

impl Scripts {
    pub(super) fn new(usual: Script) -> Self {
        Self { usual, by_model: HashMap::new() }
    }

    pub(super) fn for_model(&mut self, model: &str, script: Script) {
        self.by_model.insert(model.to_owned(), script);
    }

    pub(super) fn next(&mut self, request: &RecordedRequest) -> Reply {
        let own = request.model().and_then(|model| self.by_model.get_mut(&model));
        own.unwrap_or(&mut self.usual).next(request)
    }

    pub(super) fn left(&self) -> usize {
        self.usual.left() + self.by_model.values().map(Script::left).sum::<usize>()
    }
}
