//! Token counts that a client requests: by the upstream that would answer the request, or else estimated by the gateway.

use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use throughline_tokens::{ContentProfile, TokenModel};
use throughline_transcript::WireFormat;
use throughline_wire::Request;

use crate::error::GatewayError;
use crate::http::inbound::InboundRequest;
use crate::http::response_body::ResponseBody;
use crate::proxy::managed_request::read_managed_request;
use crate::proxy::passthrough::pass_body_on;
use crate::proxy::provider_paths::AnswerNames;
use crate::tenant::Tenant;

/// The path of requests for a token count.
pub(crate) const PATH: &str = "/v1/messages/count_tokens";

/// Returns the number of tokens of a request.
pub(crate) async fn answer(
    gateway: &Arc<Tenant>,
    inbound: &InboundRequest,
) -> Result<Response<ResponseBody>, GatewayError> {
    let (turn, upstream) = read_managed_request(gateway, inbound, WireFormat::Anthropic).await?;
    if turn.endpoint.wire == WireFormat::Anthropic {
        let body = Bytes::from(turn.request.encode());
        let counted =
            pass_body_on(gateway, inbound, body, &upstream, (WireFormat::Anthropic, AnswerNames::Nothing))
                .await?;
        // Many servers that accept this wire format do not count tokens.
        let cannot = [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED, StatusCode::NOT_IMPLEMENTED];
        if !cannot.contains(&counted.status()) {
            return Ok(counted);
        }
    }
    let json = format!("{{\"input_tokens\":{}}}", estimated_tokens(&turn.request, &turn.model));
    let mut response = Response::new(ResponseBody::whole(Bytes::from(json)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

fn estimated_tokens(request: &Request, model: &str) -> u64 {
    let by = TokenModel::for_model(model, request.wire_format());
    let messages =
        request.messages().iter().map(|message| by.estimate_content(&ContentProfile::of_message(message)));
    by.estimate_content(&ContentProfile::of_preamble(&request.preamble())) + messages.sum::<u64>()
}
