//! Health, settings and tokens of the whole gateway. Only operators can read and change them. A gateway without tokens shows health and
//! settings to everyone, and accepts changes from no one.

use std::collections::BTreeMap;
use std::sync::Arc;

use hyper::{Response, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use throughline_store::StoreError;

use super::body;
use super::error::ApiError;
use super::response;
use crate::auth::access_tokens::{TokenEntry, TokenLimits};
use crate::auth::policy::{AccessPolicy, Rights};
use crate::blocking::blocking;
use crate::http::inbound::InboundRequest;
use crate::http::response_body::ResponseBody;
use crate::operator::{NewToken, OperatorTools, SettingChange};
use crate::shared::Shared;

type Answer = Result<Response<ResponseBody>, ApiError>;

/// Whether a request reads or changes the state of the gateway.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OperatorAccess {
    Read,
    Change,
}

/// Returns the operator's tools, if the request may use them.
fn tools(
    shared: &Shared,
    inbound: &InboundRequest,
    access: OperatorAccess,
) -> Result<Arc<dyn OperatorTools>, ApiError> {
    let refuse = |message: &str| Err(ApiError::new(StatusCode::FORBIDDEN, "forbidden", message));
    match (inbound.rights, access) {
        (Rights::Operator, _) | (Rights::Open, OperatorAccess::Read) => {}
        (Rights::Open, OperatorAccess::Change) => {
            return refuse(
                "a gateway without access tokens cannot be changed from the page; `throughline token new NAME --operator` creates a token",
            );
        }
        (Rights::Owner, _) => {
            return refuse(
                "this needs an operator's token; `throughline token new NAME --operator` creates one",
            );
        }
    }
    shared.operator().ok_or_else(|| ApiError::not_found("this gateway has no settings of its own"))
}

/// Runs an operator's tool on a thread for blocking work.
async fn run<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, ApiError> {
    let done = blocking(move || Ok::<_, StoreError>(work())).await;
    done.map_err(|_| ApiError::internal())?.map_err(ApiError::invalid)
}

/// `GET /api/health`.
pub(super) async fn health(shared: &Shared, inbound: &InboundRequest) -> Answer {
    let tools = tools(shared, inbound, OperatorAccess::Read)?;
    let (record, engines) = run(move || Ok((tools.record_health(), tools.engines()))).await?;
    let record = record.unwrap_or_else(|words| json!({ "well": false, "error": words }));
    let config = shared.config.now();
    let mut counts: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for (upstream, outcome, count) in shared.metrics.upstream_calls() {
        *counts.entry(upstream).or_default().entry(outcome).or_default() += count;
    }
    let upstreams = config.upstreams.all.iter().map(|upstream| {
        let counted = counts.get(&upstream.name);
        let count = |outcome: &str| counted.and_then(|counted| counted.get(outcome)).copied().unwrap_or(0);
        json!({
            "name": upstream.name,
            "address": upstream.base.as_str(),
            "wires": upstream.wires.iter().map(|wire| wire.name()).collect::<Vec<_>>(),
            "models": upstream.models,
            "own_key": upstream.key.is_some(),
            "answered": count("answered"),
            "failed": count("failed"),
            "cancelled": count("cancelled"),
            "last_error": shared.metrics.last_failure(&upstream.name).map(|(message, elapsed)| {
                json!({ "message": message, "seconds_ago": elapsed.as_secs() })
            }),
        })
    });
    response::json(&json!({
        "version": env!("CARGO_PKG_VERSION"),
        "engine": config.settings.context.engine.trim(),
        "engines": engines.unwrap_or_else(|words| json!([{ "name": "?", "problem": words }])),
        "record": record,
        "upstreams": upstreams.collect::<Vec<_>>(),
    }))
}

/// `GET /api/settings`.
pub(super) async fn settings(shared: &Shared, inbound: &InboundRequest) -> Answer {
    let tools = tools(shared, inbound, OperatorAccess::Read)?;
    response::json(&run(move || tools.settings()).await?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SettingBody {
    key: String,
    #[serde(default)]
    value: Option<String>,
    #[serde(default)]
    preview: bool,
}

/// `POST /api/settings`.
pub(super) async fn change_setting(shared: &Shared, inbound: &InboundRequest) -> Answer {
    let tools = tools(shared, inbound, OperatorAccess::Change)?;
    let SettingBody { key, value, preview } = body::required(inbound)?;
    let change = SettingChange { key, value, preview };
    response::json(&run(move || tools.change_setting(&change)).await?)
}

/// `GET /api/tokens`.
pub(super) async fn tokens(shared: &Shared, inbound: &InboundRequest) -> Answer {
    let tools = tools(shared, inbound, OperatorAccess::Change)?;
    let book = run(move || tools.tokens()).await?;
    response::json(&json!({ "tokens": book.entries().iter().map(entry_json).collect::<Vec<_>>() }))
}

fn entry_json(entry: &TokenEntry) -> Value {
    json!({
        "name": entry.name,
        "owner": entry.owner,
        "created_ms": entry.created_ms,
        "operator": entry.operator,
        "limits": entry.limits,
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenBody {
    name: String,
    #[serde(default)]
    owner: Option<String>,
    #[serde(default)]
    limits: TokenLimits,
    #[serde(default)]
    operator: bool,
}

/// `POST /api/tokens`.
pub(super) async fn new_token(shared: &Shared, inbound: &InboundRequest) -> Answer {
    let tools = tools(shared, inbound, OperatorAccess::Change)?;
    let TokenBody { name, owner, limits, operator } = body::required(inbound)?;
    let owner = owner.unwrap_or_else(|| name.clone());
    let token = NewToken { name, owner, limits, operator };
    let made = Arc::clone(&tools);
    let secret = run(move || made.create_token(&token)).await?;
    take_over(shared, tools).await;
    response::json(&json!({ "token": secret }))
}

/// `DELETE /api/tokens/{name}`.
pub(super) async fn revoke_token(shared: &Shared, inbound: &InboundRequest, name: &str) -> Answer {
    let tools = tools(shared, inbound, OperatorAccess::Change)?;
    let name = name.to_owned();
    let revoked = Arc::clone(&tools);
    match run(move || revoked.revoke_token(&name)).await? {
        true => {
            take_over(shared, tools).await;
            response::json(&json!({}))
        }
        false => Err(ApiError::not_found("there is no token with that name")),
    }
}

/// Applies a change of the access tokens from the next request on. If the list cannot be read, the task that watches it reports the
/// error.
async fn take_over(shared: &Shared, tools: Arc<dyn OperatorTools>) {
    if let Ok(book) = run(move || tools.tokens()).await {
        shared.set_access(AccessPolicy::Tokens(book));
    }
}
