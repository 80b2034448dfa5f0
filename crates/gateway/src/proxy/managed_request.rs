//! Parses a request for a model, and chooses the upstream, endpoint and options for it.

use throughline_engine::headers_on;
use throughline_models::economy_of;
use throughline_provider::Endpoint;
use throughline_tokens::{Economy, ToolDeferral};
use throughline_transcript::WireFormat;
use throughline_wire::Request;

use crate::error::GatewayError;
use crate::http::inbound::{InboundRequest, client_headers, is_key};
use crate::http::request_body;
use crate::lookup::client_info::ClientInfo;
use crate::proxy::provider_objects::is_guarded;
use crate::proxy::upstreams::UpstreamSpec;
use crate::telemetry::request_context::RequestContext;
use crate::tenant::Tenant;

/// A parsed request for a model, with its endpoint and options.
pub(crate) struct ManagedRequest {
    pub(crate) request: Request,
    pub(crate) model: String,
    pub(crate) client: ClientInfo,
    /// The endpoint to call. Its wire format may differ from the request's.
    pub(crate) endpoint: Endpoint,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) query: Option<String>,
    /// The name of the access token of the request.
    pub(crate) token_name: Option<String>,
    /// The measures that save money on requests of this client.
    pub(crate) economy: Economy,
    /// The upstream, if it stores objects for this tenant under the operator's key.
    pub(crate) objects_at: Option<String>,
}

/// Parses a request and checks that it refers to no stored objects of other owners. Also returns the upstream.
pub(crate) async fn read_managed_request(
    gateway: &Tenant,
    inbound: &InboundRequest,
    wire: WireFormat,
) -> Result<(ManagedRequest, UpstreamSpec), GatewayError> {
    let (mut turn, upstream) = parse_request(gateway, inbound, wire)?;
    if is_guarded(inbound, &upstream) {
        let body = request_body::unpack(&inbound.headers, inbound.packed.clone(), inbound.body_bytes)?;
        Box::pin(gateway.check_references(inbound, &upstream, &body)).await?;
        turn.objects_at = Some(upstream.base.root().to_owned());
    }
    Ok((turn, upstream))
}

/// Parses a request and chooses the upstream.
fn parse_request(
    gateway: &Tenant,
    inbound: &InboundRequest,
    wire: WireFormat,
) -> Result<(ManagedRequest, UpstreamSpec), GatewayError> {
    request_body::check_type(&inbound.headers)?;
    let body = request_body::unpack(&inbound.headers, inbound.packed.clone(), inbound.body_bytes)?;
    let request =
        Request::decode(wire, body).map_err(|error| GatewayError::bad_request(error.to_string()))?;
    let model = request.model().map(|model| model.trim().to_owned()).filter(|model| !model.is_empty());
    let model = model.ok_or_else(|| GatewayError::bad_request("`model` is missing"))?;
    let context = RequestContext::current();
    let run = context.as_ref().and_then(|context| context.run());
    let client = ClientInfo::of(&inbound.headers, &request).in_run(run);
    let config = gateway.config.now();
    let (upstream, spoken) = config.upstreams.choose(client.upstream.as_deref(), wire, &model)?;
    let upstream = upstream.clone();
    let headers = client_headers(inbound, &upstream);
    // Other calls for the conversation, such as summaries, use the client's key too.
    let keys: Vec<_> = headers.iter().filter(|(name, _)| is_key(name)).cloned().collect();
    let keys = if spoken == wire { keys } else { headers_on(spoken, keys) };
    let endpoint = Endpoint { headers: keys, ..upstream.endpoint(spoken) };
    let savings = &config.settings.economy;
    let economy = economy_of(savings, savings.mode_for(client.program, inbound.token_name.as_deref()));
    let by_reference = match savings.tool_references {
        Some(loads) => loads && spoken == wire && wire == WireFormat::Anthropic,
        None => spoken == wire && upstream.kind.loads_tools_by_reference(wire, &model),
    };
    let tools = match economy.tools {
        ToolDeferral::Off => ToolDeferral::Off,
        _ if by_reference => ToolDeferral::ByReference,
        _ => ToolDeferral::ByList,
    };
    let economy = Economy { tools, ..economy };
    Ok((
        ManagedRequest {
            economy,
            request,
            model,
            client,
            endpoint,
            headers,
            query: inbound.query.clone(),
            token_name: inbound.token_name.clone(),
            objects_at: None,
        },
        upstream,
    ))
}
