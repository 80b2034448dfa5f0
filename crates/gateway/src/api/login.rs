//! Logging a browser in and out, and showing a client its own rights.

use std::collections::BTreeSet;

use hyper::Response;
use hyper::header::SET_COOKIE;
use serde_json::json;

use super::error::ApiError;
use super::response;
use crate::auth::login::set_cookie;
use crate::auth::policy::{AccessPolicy, Rights};
use crate::http::inbound::InboundRequest;
use crate::http::response_body::ResponseBody;
use crate::shared::Shared;
use crate::tenant::Tenant;

/// `GET /api/me`.
pub(super) fn me(
    shared: &Shared,
    gateway: &Tenant,
    inbound: &InboundRequest,
) -> Result<Response<ResponseBody>, ApiError> {
    let has_tools = shared.operator().is_some();
    let mut owners = BTreeSet::new();
    if let (Rights::Operator, AccessPolicy::Tokens(book)) = (inbound.rights, shared.access().as_ref()) {
        owners.insert(shared.setup.owner.clone());
        owners.extend(book.entries().iter().map(|entry| entry.owner.clone()));
    }
    response::json(&json!({
        "owner": gateway.setup.owner,
        "access": if inbound.rights == Rights::Open { "open" } else { "token" },
        "sees_gateway": has_tools && inbound.rights != Rights::Owner,
        "changes_gateway": has_tools && inbound.rights == Rights::Operator,
        "owners": owners,
        "version": env!("CARGO_PKG_VERSION"),
        "now_ms": gateway.setup.host.now_ms(),
    }))
}

/// `POST /api/login`: exchanges an access token or a one-time code for a cookie.
pub(super) fn login(shared: &Shared, inbound: &InboundRequest) -> Result<Response<ResponseBody>, ApiError> {
    cookie_response(shared, inbound, inbound.token.as_deref())
}

/// `POST /api/logout`.
pub(super) fn logout(shared: &Shared, inbound: &InboundRequest) -> Result<Response<ResponseBody>, ApiError> {
    cookie_response(shared, inbound, None)
}

fn cookie_response(
    shared: &Shared,
    inbound: &InboundRequest,
    secret: Option<&str>,
) -> Result<Response<ResponseBody>, ApiError> {
    let mut response = response::json(&json!({}))?;
    // A gateway without access tokens needs no cookie.
    if inbound.rights == Rights::Open {
        return Ok(response);
    }
    let setup = &shared.setup;
    let now_ms = setup.host.now_ms();
    let cookie = set_cookie(&inbound.headers, &setup.seal_key, secret, now_ms, shared.tls().is_some());
    response.headers_mut().insert(SET_COOKIE, cookie.ok_or_else(ApiError::internal)?);
    Ok(response)
}
