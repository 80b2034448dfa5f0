//! Exporting and deleting a conversation.

use std::sync::Arc;

use bytes::Bytes;
use hyper::Response;
use hyper::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue};
use serde_json::json;
use throughline_redact::Redactor;
use throughline_store::{Dependants, Export, ExportForm, ExportOptions, ExportSide, Session};

use super::error::ApiError;
use super::query::Query;
use super::read::ask;
use super::response;
use crate::http::response_body::ResponseBody;
use crate::tenant::Tenant;

/// `GET /api/sessions/{id}/export`.
pub(super) async fn export(
    gateway: &Tenant,
    reference: &str,
    query: &Query,
) -> Result<Response<ResponseBody>, ApiError> {
    let side = match query.text("side") {
        None | Some("said") => ExportSide::Said,
        Some("shown") => ExportSide::Shown,
        Some(_) => return Err(ApiError::invalid("`side` must be `said` or `shown`")),
    };
    let (form, ending, kind) = match query.text("form") {
        None | Some("list") => (ExportForm::List, "json", "application/json"),
        Some("lines") => (ExportForm::Lines, "jsonl", "application/x-ndjson"),
        Some("body") => (ExportForm::Body, "json", "application/json"),
        Some(_) => return Err(ApiError::invalid("`form` must be `list`, `lines` or `body`")),
    };
    let redact = query.switch("redact")?;
    let reference = reference.to_owned();
    let exported = ask(gateway, move |store, owner| {
        let session = Session::find(store, owner, &reference)?;
        let redactor = redact.then(Redactor::new);
        let options = ExportOptions { side, form, redactor: redactor.as_ref() };
        Ok((Export::of(store, owner, &session.id, &options)?, session.id))
    });
    let (exported, id) = exported.await?;
    let mut response = Response::new(ResponseBody::whole(Bytes::from(exported.text)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let name: String =
        id.as_str().chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).collect();
    let disposition = HeaderValue::from_str(&format!("attachment; filename=\"{name}.{ending}\""));
    headers.insert(CONTENT_DISPOSITION, disposition.map_err(|_| ApiError::internal())?);
    Ok(response)
}

/// `DELETE /api/sessions/{id}`.
pub(super) async fn delete(
    gateway: &Arc<Tenant>,
    reference: &str,
    query: &Query,
) -> Result<Response<ResponseBody>, ApiError> {
    let dependants = if query.switch("dependants")? { Dependants::Delete } else { Dependants::Refuse };
    let named = reference.to_owned();
    let found = ask(gateway, move |store, owner| {
        let session = Session::find(store, owner, &named)?;
        let root = store.chain(owner, &session.id)?.into_iter().next().map(|root| root.id);
        Ok((root.unwrap_or_else(|| session.id.clone()), session.id))
    });
    let (conversation, id) = found.await?;
    // The lock keeps other requests away from the session; a call in progress is recorded first.
    let slot = gateway.pool.of_conversation(&gateway.setup.owner, &conversation);
    let held = match &slot {
        Some(slot) => Some(Arc::clone(&slot.session).lock_owned().await),
        None => None,
    };
    let gone = ask(gateway, move |store, owner| store.delete(owner, &id, dependants)).await?;
    if let Some(slot) = &slot {
        gateway.pool.remove(slot);
    }
    drop(held);
    response::json(&json!({ "deleted": gone }))
}
