//! The gateway's own API under `/api`: reading the record, compacting by hand, live events, and conversations whose
//! history the gateway keeps for clients that have none.
//!
//! Every request is answered from the record of one owner. Parts: `routes` maps paths to handlers, `query` and `body` parse
//! requests, `error` is the error type, and each subject has a file. `openapi.json` describes all of it; a test compares it
//! with the routes.
//!
//! Not for: the wire formats of providers.

mod body;
mod change;
mod context;
mod conversations;
mod error;
mod events;
mod login;
mod manage;
mod names;
mod now;
mod operator;
mod query;
mod read;
mod response;
mod routes;
mod session_handle;
mod state;

use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{ALLOW, HeaderValue};
use hyper::{Method, Response, StatusCode};
use throughline_store::Owner;

use crate::auth::access_tokens::AccessTokens;
use crate::auth::policy::Rights;
use crate::error::GatewayError;
use crate::http::inbound::InboundRequest;
use crate::http::response_body::ResponseBody;
use crate::shared::Shared;
use crate::tenant::Tenant;

use error::ApiError;
use query::Query;
use routes::{OWNER, Route, RouteMatch};

/// The OpenAPI description of the API, which `GET /api/openapi.json` returns.
const OPENAPI: &str = include_str!("api/openapi.json");

/// Returns an error of another part of the gateway in the form of this API.
pub(crate) fn refuse(refused: &GatewayError) -> Response<ResponseBody> {
    ApiError::of(refused).respond()
}

/// Answers a request to a path under `/api`.
pub(crate) async fn answer(
    shared: &Shared,
    gateway: Arc<Tenant>,
    inbound: InboundRequest,
) -> Response<ResponseBody> {
    let is_head = inbound.method == Method::HEAD;
    let mut response = answered(shared, &gateway, inbound).await.unwrap_or_else(|error| error.respond());
    if is_head {
        *response.body_mut() = ResponseBody::empty();
    }
    response
}

async fn answered(
    shared: &Shared,
    gateway: &Arc<Tenant>,
    inbound: InboundRequest,
) -> Result<Response<ResponseBody>, ApiError> {
    let (route, parameters) = match routes::find(&inbound.method, &inbound.path)? {
        RouteMatch::Route(route, parameters) => (route, parameters),
        RouteMatch::OtherMethods(allowed) => {
            let mut response = ApiError::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                format!("{allowed} only"),
            )
            .respond();
            if let Ok(allowed) = HeaderValue::from_str(&allowed) {
                response.headers_mut().insert(ALLOW, allowed);
            }
            return Ok(response);
        }
    };
    let query = Query::parse(inbound.query.as_deref(), routes::parameters_of(route))?;
    let gateway = &tenant_meant(shared, gateway, &inbound, &query)?;
    let name = parameters.as_str();
    match route {
        Route::Description => Ok(described()),
        Route::Sessions => read::sessions(gateway, &query).await,
        Route::Session => read::session(gateway, name).await,
        Route::Transcript => read::transcript(gateway, name, &query).await,
        Route::View => read::view(gateway, name).await,
        Route::State => state::show(gateway, name).await,
        Route::CorrectState => state::correct(gateway, &inbound, name).await,
        Route::Search => read::search(gateway, &query).await,
        Route::Usage => read::usage(gateway, &query).await,
        Route::Savings => read::savings(gateway, &query).await,
        Route::Events => events::stream(gateway, &inbound, &query).await,
        Route::Compact => manage::compact(gateway, &inbound, name).await,
        Route::Undo => manage::select(gateway, &inbound, name, manage::ViewStep::Back).await,
        Route::Redo => manage::select(gateway, &inbound, name, manage::ViewStep::Forward).await,
        Route::Run => read::run(gateway, name),
        Route::Me => login::me(shared, gateway, &inbound),
        Route::Login => login::login(shared, &inbound),
        Route::Logout => login::logout(shared, &inbound),
        Route::Now => now::now(gateway, &query).await,
        Route::Calls => context::calls(gateway, &inbound, name, &query).await,
        Route::Compaction => context::compaction(gateway, name).await,
        Route::Summary => context::summary(gateway, name).await,
        Route::Export => change::export(gateway, name, &query).await,
        Route::Delete => change::delete(gateway, name, &query).await,
        Route::Health => operator::health(shared, &inbound).await,
        Route::Settings => operator::settings(shared, &inbound).await,
        Route::ChangeSetting => operator::change_setting(shared, &inbound).await,
        Route::Tokens => operator::tokens(shared, &inbound).await,
        Route::NewToken => operator::new_token(shared, &inbound).await,
        Route::RevokeToken => operator::revoke_token(shared, &inbound, name).await,
        Route::Message => conversations::say(gateway, &inbound, name).await,
    }
}

/// Returns the tenant whose data is requested: the client's own, or the one that an operator names with `owner`.
fn tenant_meant(
    shared: &Shared,
    own: &Arc<Tenant>,
    inbound: &InboundRequest,
    query: &Query,
) -> Result<Arc<Tenant>, ApiError> {
    let Some(owner) = query.text(OWNER).filter(|owner| *owner != own.setup.owner.as_str()) else {
        return Ok(Arc::clone(own));
    };
    if inbound.rights != Rights::Operator {
        return Err(ApiError::new(
            StatusCode::FORBIDDEN,
            "forbidden",
            "another owner's data needs an operator's token",
        ));
    }
    if !AccessTokens::is_name(owner) {
        return Err(ApiError::invalid("`owner` is not a valid owner name"));
    }
    Ok(shared.tenant(&Owner::new(owner)))
}

fn described() -> Response<ResponseBody> {
    response::whole(StatusCode::OK, Bytes::from_static(OPENAPI.as_bytes()))
}

#[cfg(test)]
#[path = "api/openapi_tests.rs"]
mod tests;
