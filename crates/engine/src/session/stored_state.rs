//! State of a session that is stored in the record: guards, limits, windows that providers stated, notices.

use std::sync::Arc;

use serde_json::json;
use throughline_store::{Guard, GuardScope};

use super::ManagedSession;
use super::record::{LEARNT_WINDOW, blocking};
use crate::decide::guard::GUARD_NAME;
use crate::recorded_state::RecordedState;

impl ManagedSession {
    /// Stores the state of the guards if it changed. A failure is reported and stops nothing, because the state is also in memory.
    pub(super) async fn store_guard(&mut self) {
        if self.compaction.guard == self.compaction.stored_guard {
            return;
        }
        let (store, guard) = (Arc::clone(&self.setup.store), self.compaction.guard.clone());
        let scope = GuardScope::Chain(self.setup.owner.clone(), self.id().clone());
        let now_ms = self.setup.host.now_ms();
        let kept = blocking(move || {
            let value =
                Guard { name: GUARD_NAME.to_owned(), value: json!(guard), set_ms: now_ms, expires_ms: None };
            store.set_guard(&scope, GUARD_NAME, (!guard.is_clear()).then_some(&value))
        })
        .await;
        match kept {
            Ok(()) => self.compaction.stored_guard = self.compaction.guard.clone(),
            Err(error) => {
                self.notice(format!("the guards of this conversation could not be recorded: {error}"))
            }
        }
    }

    /// Stores the limits in use if they changed. If that fails, commands show the limits from the settings; the next call tries again.
    pub(super) async fn store_limits(&mut self) {
        if self.persistence.stored_limits.as_ref().is_some_and(|kept| self.matches_limits(kept)) {
            return;
        }
        let (store, owner, session) =
            (Arc::clone(&self.setup.store), self.setup.owner.clone(), self.id().clone());
        let (now_ms, limits) = (self.setup.host.now_ms(), self.limits_in_use());
        let kept = blocking(move || limits.save(store.as_ref(), owner, session, now_ms).map(|()| limits));
        if let Ok(limits) = kept.await {
            self.persistence.stored_limits = Some(limits);
        }
    }

    /// Passes the user's corrections to the engine. If the record cannot be read, the engine keeps the last ones.
    pub(super) async fn tell_corrections(&mut self) {
        let (store, owner, session) =
            (Arc::clone(&self.setup.store), self.setup.owner.clone(), self.id().clone());
        let now_ms = self.setup.host.now_ms();
        let kept =
            blocking(move || RecordedState::corrections(store.as_ref(), &owner, &session, now_ms)).await;
        if let Ok(corrections) = kept {
            let engine = Arc::clone(&self.setup.engine);
            let told = engine.set_corrections(&corrections).await;
            self.note_engine(told);
        }
    }

    /// Stores a window that the provider stated.
    pub(super) async fn store_window(&self, scope: GuardScope, window_tokens: u64) {
        let store = Arc::clone(&self.setup.store);
        let now_ms = self.setup.host.now_ms();
        let kept = blocking(move || {
            let value = json!({ "tokens": window_tokens });
            let guard = Guard { name: LEARNT_WINDOW.to_owned(), value, set_ms: now_ms, expires_ms: None };
            store.set_guard(&scope, LEARNT_WINDOW, Some(&guard))
        })
        .await;
        if let Err(error) = kept {
            self.notice(format!("the window of {window_tokens} tokens could not be recorded: {error}"));
        }
    }

    /// Shows a notice that is shown only once per user.
    pub(super) async fn notice_once(&self, key: &'static str, text: String) {
        let store = Arc::clone(&self.setup.store);
        let now_ms = self.setup.host.now_ms();
        let first = blocking(move || {
            if store.guard(&GuardScope::Global, key, now_ms)?.is_some() {
                return Ok(false);
            }
            let guard = Guard { name: key.to_owned(), value: json!(true), set_ms: now_ms, expires_ms: None };
            store.set_guard(&GuardScope::Global, key, Some(&guard)).map(|()| true)
        })
        .await;
        // If it cannot be stored as shown, showing it again is better than never.
        if first.unwrap_or(true) {
            self.notice(text);
        }
    }
}
