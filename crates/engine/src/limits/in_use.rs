//! The model and window of a conversation's last call, stored in the record: so later commands can show the limits that applied without
//! asking an endpoint.

use serde::{Deserialize, Serialize};
use throughline_store::{Guard, GuardScope, Millis, Owner, SessionId, Store, StoreError};

/// The name under which these values are stored with the conversation.
const NAME: &str = "held_with";

/// The model and limits of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitsInUse {
    /// The name of the model.
    pub model: String,
    /// The provider that serves it.
    #[serde(default)]
    pub provider: String,
    /// The address of the endpoint; values learnt about the model are stored with it.
    #[serde(default)]
    pub endpoint: String,
    /// Its window.
    pub window_tokens: u64,
    /// The source of the window, as text to follow its size.
    pub window_origin: String,
    /// Tokens reserved for the answer; `None` if requests state no limit.
    pub output_cap_tokens: Option<u64>,
}

impl LimitsInUse {
    /// Returns the scope under which values learnt about this model at this address are stored.
    #[must_use]
    pub fn scope(&self) -> GuardScope {
        GuardScope::Model { endpoint: self.endpoint.clone(), model: self.model.clone() }
    }

    /// Saves them for the conversation of a session.
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

    /// Loads the last values of a session's conversation; `None` if unknown.
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
