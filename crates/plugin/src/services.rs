//! The services of a host for its engines: summaries by the host's models, a store for the engine, a log.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::protocol::{SummaryParams, SummaryText};

/// The future of a service; the error is a message.
pub type ServiceFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>;

/// The services of a host for one engine of one conversation.
pub trait HostServices: Send + Sync {
    /// Returns a summary.
    fn summarise<'a>(&'a self, wish: &'a SummaryParams) -> ServiceFuture<'a, SummaryText>;

    /// Returns a stored value.
    fn get<'a>(&'a self, key: &'a str) -> ServiceFuture<'a, Option<Value>>;

    /// Stores a value.
    fn put<'a>(&'a self, key: &'a str, value: Value) -> ServiceFuture<'a, ()>;

    /// Deletes a value.
    fn delete<'a>(&'a self, key: &'a str) -> ServiceFuture<'a, ()>;

    /// Returns the names of stored values that start with `prefix`, sorted.
    fn list<'a>(&'a self, prefix: &'a str) -> ServiceFuture<'a, Vec<String>>;

    /// Logs a line from the engine's standard error, or one that it sent.
    fn log(&self, line: &str);
}

/// Services of a host without a model for summaries, with a store in memory.
#[derive(Debug, Default)]
pub struct PlainServices {
    kept: Mutex<BTreeMap<String, Value>>,
    log: Mutex<Vec<String>>,
}

/// The maximum number of log lines stored.
const LOG_LINES: usize = 1_000;

impl PlainServices {
    /// Returns the log so far.
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
    fn summarise<'a>(&'a self, _wish: &'a SummaryParams) -> ServiceFuture<'a, SummaryText> {
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
