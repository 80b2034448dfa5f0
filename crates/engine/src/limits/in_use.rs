//! The model and window of a conversation's last call, stored in the record: later commands can show the limits that applied
//! without asking an endpoint.

use serde::{Deserialize, Serialize};
use throughline_store::{Guard, GuardScope, Millis, Owner, SessionId, Store, StoreError};

/// The name these values are kept under, with the conversation.
const NAME: &str = "held_with";

/// What a conversation is held with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitsInUse {
    /// The model.
    pub model: String,
    /// Who serves it.
    #[serde(default)]
    pub provider: String,
    /// Where: what was learnt about the model is kept with this address.
    #[serde(default)]
    pub endpoint: String,
    /// Its window.
    pub window_tokens: u64,
    /// Where the window came from, to be written after its size.
    pub window_origin: String,
    /// Tokens that are kept free for the answer; none where requests state no cap.
    pub output_cap_tokens: Option<u64>,
}

impl LimitsInUse {
    /// Under what values that were learnt of this model at this address are kept.
    #[must_use]
    pub fn scope(&self) -> GuardScope {
        GuardScope::Model { endpoint: self.endpoint.clone(), model: self.model.clone() }
    }

    /// Keeps them for the conversation of a session.
    pub fn save(
        &self,
        store: &dyn Store,
        owner: Owner,
        session: SessionId,
        at_ms: Millis,
    ) -> Result<(), StoreError> {
        let value = serde_json::json!(self);
        let guard = Guard { name: NAME.to_owned(), value, set_ms: at_ms, expires_ms: None };
        store.set_guard(&GuardScope::Chain(owner, session), NAME, Some(&guard))
    }

    /// What the conversation of a session was last held with; `None` where that is unknown.
    pub fn load(
        store: &dyn Store,
        owner: &Owner,
        session: &SessionId,
        now_ms: Millis,
    ) -> Result<Option<Self>, StoreError> {
        let scope = GuardScope::Chain(owner.clone(), session.clone());
        let guard = store.guard(&scope, NAME, now_ms)?;
        Ok(guard.and_then(|guard| serde_json::from_value(guard.value).ok()))
    }
}
