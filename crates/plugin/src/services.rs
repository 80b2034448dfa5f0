//! What a host offers to its engines: summaries by the host's models, a store of their own, a log.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use throughline_engine::ModelAnswer;

use crate::protocol::SummaryParams;

/// An answer of the host on its way; words when there is none.
pub type ServiceFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>;

/// What a host offers to one engine of one conversation.
pub trait HostServices: Send + Sync {
    /// A summary.
    fn summarise<'a>(&'a self, wish: &'a SummaryParams) -> ServiceFuture<'a, ModelAnswer>;

    /// A value the engine kept.
    fn get<'a>(&'a self, key: &'a str) -> ServiceFuture<'a, Option<Value>>;

    /// Keeps a value.
    fn put<'a>(&'a self, key: &'a str, value: Value) -> ServiceFuture<'a, ()>;

    /// Forgets a value.
    fn delete<'a>(&'a self, key: &'a str) -> ServiceFuture<'a, ()>;

    /// Names of kept values that begin with `prefix`, sorted.
    fn list<'a>(&'a self, prefix: &'a str) -> ServiceFuture<'a, Vec<String>>;

    /// A line for the log: what the engine wrote on its standard error, or asked to be told.
    fn log(&self, line: &str);
}

/// Services of a host that has no model for summaries and keeps values as long as it lives.
#[derive(Debug, Default)]
pub struct PlainServices {
    kept: Mutex<BTreeMap<String, Value>>,
    log: Mutex<Vec<String>>,
}

/// Lines of the log that are kept.
const LOG_LINES: usize = 1_000;

impl PlainServices {
    /// The log so far.
    #[must_use]
    pub fn log_lines(&self) -> Vec<String> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn with<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut BTreeMap<String, Value>) -> T,
    ) -> ServiceFuture<'static, T> {
        let answer = act(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        Box::pin(std::future::ready(Ok(answer)))
    }
}

impl HostServices for PlainServices {
    fn summarise<'a>(&'a self, _wish: &'a SummaryParams) -> ServiceFuture<'a, ModelAnswer> {
        Box::pin(std::future::ready(Err("no model writes summaries here".to_owned())))
    }

    fn get<'a>(&'a self, key: &'a str) -> ServiceFuture<'a, Option<Value>> {
        self.with(|kept| kept.get(key).cloned())
    }

    fn put<'a>(&'a self, key: &'a str, value: Value) -> ServiceFuture<'a, ()> {
        self.with(|kept| drop(kept.insert(key.to_owned(), value)))
    }

    fn delete<'a>(&'a self, key: &'a str) -> ServiceFuture<'a, ()> {
        self.with(|kept| drop(kept.remove(key)))
    }

    fn list<'a>(&'a self, prefix: &'a str) -> ServiceFuture<'a, Vec<String>> {
        self.with(|kept| kept.keys().filter(|key| key.starts_with(prefix)).cloned().collect())
    }

    fn log(&self, line: &str) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if log.len() < LOG_LINES {
            log.push(line.to_owned());
        }
    }
}
