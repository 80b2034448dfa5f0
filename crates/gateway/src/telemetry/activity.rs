//! The active conversations of one owner: how full each window was before the last call.
//!
//! The data is in memory, bounded, and lost when the gateway stops. Everything else about a conversation is in the record.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use throughline_engine::{EngineEvent, Pressure, SizeBasis};
use throughline_store::{Millis, SentTokens, SessionId};

use crate::telemetry::event::GatewayEvent;

/// The most conversations in memory, more than anybody watches at once.
const MOST: usize = 500;

/// How full the window of a conversation was.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PressureEntry {
    pub(crate) at_ms: Millis,
    pub(crate) basis: SizeBasis,
    #[serde(flatten)]
    pub(crate) pressure: Pressure,
}

/// The active conversations of one owner.
#[derive(Default)]
pub(crate) struct Activity {
    pressures: Mutex<HashMap<SessionId, PressureEntry>>,
    /// The token counts of sessions' first views. They never change, and computing them reads messages.
    bases: Mutex<HashMap<SessionId, SentTokens>>,
}

impl Activity {
    pub(crate) fn note(&self, event: &GatewayEvent, at_ms: Millis) {
        let GatewayEvent::Engine { conversation, event } = event else { return };
        let mut known = lock(&self.pressures);
        let (pressure, basis) = match event {
            EngineEvent::Pressure { pressure, basis } => (pressure, basis),
            EngineEvent::CompactionCompleted { report, .. } => {
                if let Some(entry) = known.get_mut(conversation) {
                    entry.pressure.tokens = report.tokens.after;
                    entry.basis = SizeBasis::Estimated;
                    entry.at_ms = at_ms;
                }
                return;
            }
            _ => return,
        };
        if known.len() >= MOST
            && !known.contains_key(conversation)
            && let Some(oldest) = known.iter().min_by_key(|(_, entry)| entry.at_ms).map(|(id, _)| id.clone())
        {
            known.remove(&oldest);
        }
        known.insert(conversation.clone(), PressureEntry { at_ms, basis: *basis, pressure: *pressure });
    }

    /// How full the window of a conversation was before its last call, by its first session.
    pub(crate) fn pressure(&self, conversation: &SessionId) -> Option<PressureEntry> {
        lock(&self.pressures).get(conversation).cloned()
    }

    /// The token count of a session's first view; computed by `find` if it is not known.
    pub(crate) fn base<E>(
        &self,
        session: &SessionId,
        find: impl FnOnce() -> Result<SentTokens, E>,
    ) -> Result<SentTokens, E> {
        if let Some(known) = lock(&self.bases).get(session) {
            return Ok(*known);
        }
        let found = find()?;
        let mut bases = lock(&self.bases);
        if bases.len() >= MOST {
            bases.clear();
        }
        bases.insert(session.clone(), found);
        Ok(found)
    }
}

// The maps hold plain values, so a panic elsewhere leaves them usable.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
