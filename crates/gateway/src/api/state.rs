//! The state of a conversation (tasks, decisions, requests), and corrections to it.

use std::sync::Arc;

use hyper::Response;
use serde::{Deserialize, Serialize};
use throughline_engine::RecordedState;
use throughline_redact::Redactor;
use throughline_store::{Session, SessionId};

use super::body;
use super::error::ApiError;
use super::response;
use crate::blocking::blocking;
use crate::http::inbound::InboundRequest;
use crate::http::response_body::ResponseBody;
use crate::tenant::Tenant;

/// The most entries in one list of a request.
const MOST_NAMES: usize = 1_000;

#[derive(Serialize)]
struct StateResponse {
    session: SessionId,
    #[serde(flatten)]
    state: RecordedState,
}

/// The corrections that a request makes.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct StateBody {
    drop: Vec<String>,
    restore: Vec<String>,
}

/// `GET /api/sessions/{id}/state`.
pub(super) async fn show(gateway: &Tenant, reference: &str) -> Result<Response<ResponseBody>, ApiError> {
    answer(gateway, reference, StateBody::default()).await
}

/// `POST /api/sessions/{id}/state`.
pub(super) async fn correct(
    gateway: &Tenant,
    inbound: &InboundRequest,
    reference: &str,
) -> Result<Response<ResponseBody>, ApiError> {
    let wish: StateBody = body::required(inbound)?;
    if wish.drop.is_empty() && wish.restore.is_empty() {
        return Err(ApiError::invalid("`drop` or `restore` must name an entry"));
    }
    if wish.drop.len().max(wish.restore.len()) > MOST_NAMES {
        return Err(ApiError::invalid(format!(
            "`drop` and `restore` name at most {MOST_NAMES} entries each"
        )));
    }
    answer(gateway, reference, wish).await
}

/// Makes the corrections and returns the state after them. Unknown names change nothing and are an error.
async fn answer(
    gateway: &Tenant,
    reference: &str,
    wish: StateBody,
) -> Result<Response<ResponseBody>, ApiError> {
    let (store, owner) = (Arc::clone(&gateway.setup.store), gateway.setup.owner.clone());
    let now_ms = gateway.setup.host.now_ms();
    let redactor = gateway.config.now().settings.security.redact_secrets.then(Redactor::new);
    let reference = reference.to_owned();
    let done = blocking(move || {
        let store = store.as_ref();
        let session = Session::find_tip(store, &owner, &reference)?.id;
        if !wish.restore.is_empty() {
            let unknown = RecordedState::restore_entries(store, &owner, &session, &wish.restore, now_ms)?;
            if let Some(name) = unknown.into_iter().next() {
                return Ok(Err(format!("there is no correction `{name}`; nothing was changed")));
            }
        }
        let mut state = RecordedState::load(store, &owner, &session, redactor.as_ref(), now_ms)?;
        let unknown = state.drop_entries(store, &owner, &session, &wish.drop, now_ms)?;
        Ok(match unknown.into_iter().next() {
            Some(name) => Err(format!("there is no entry `{name}`; it was not dropped")),
            None => Ok(StateResponse { session, state }),
        })
    });
    let done = done.await.map_err(|error| ApiError::of_store(gateway, &error))?;
    response::json(&done.map_err(ApiError::not_found)?)
}
