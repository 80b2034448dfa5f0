//! Models at upstreams, with everything a call needs: limits, prices, timeouts and wire format.

use std::sync::Arc;

use throughline_engine::{ManagedSession, ModelTarget, PriceSource, learnt_window};
use throughline_models::{ModelAtEndpoint, ModelFactSources, ModelSpec, learnt_scope};
use throughline_provider::{Endpoint, EndpointKind, TimeLimits};
use throughline_tokens::{Catalogue, Usage};
use throughline_transcript::WireFormat;

use crate::error::GatewayError;
use crate::proxy::managed_request::ManagedRequest;
use crate::proxy::upstreams::upstream_name;
use crate::telemetry::event::GatewayEvent;
use crate::telemetry::upstream::InstrumentedUpstream;
use crate::tenant::Tenant;

impl Tenant {
    /// A model at an upstream, ready for calls in conversations of a wire format, translated if the upstream uses another.
    pub(crate) async fn target_for(
        &self,
        endpoint: Endpoint,
        model: &str,
        wire: WireFormat,
    ) -> Result<ModelTarget, GatewayError> {
        let spoken = endpoint.wire;
        let config = self.config.now();
        let usual = TimeLimits::of(&endpoint);
        let silence = config.silence.unwrap_or(usual.silence);
        let limits = TimeLimits { silence, ..usual };
        let name = upstream_name(&endpoint).to_owned();
        let found = self.model_at(endpoint, model).await;
        let target = found.target_within(&config.client, limits);
        let mut target = target.ok_or_else(GatewayError::internal)?;
        let metrics = Arc::clone(&self.metrics);
        target.upstream = Arc::new(InstrumentedUpstream { inner: target.upstream, metrics, name });
        let (events, model) = (Arc::clone(&self.setup.events), model.to_owned());
        let left_out = Arc::new(move |what: &str| {
            let words = format!(
                "requests for {model} are translated to the {spoken} wire format, which cannot express {what}"
            );
            events.tell(GatewayEvent::Warning(words));
        });
        Ok(target.for_wire(wire, &self.setup.host, left_out))
    }

    /// The model that a request names, with the options of the request.
    pub(crate) async fn target_of(&self, turn: &ManagedRequest) -> Result<ModelTarget, GatewayError> {
        let mut target =
            self.target_for(turn.endpoint.clone(), &turn.model, turn.request.wire_format()).await?;
        target.policy.economy = turn.economy;
        Ok(target)
    }

    /// Switches the session to the model that the request names, if it has used another.
    pub(crate) async fn switch_model_if_named(
        &self,
        session: &mut ManagedSession,
        turn: &ManagedRequest,
    ) -> Result<(), GatewayError> {
        if session.model().model == turn.model {
            return Ok(());
        }
        let target = self.target_of(turn).await?;
        session.switch_model(target).await.map_err(|error| self.call_failed(&error))
    }

    /// The known facts about a model at an upstream.
    pub(crate) async fn model_at(&self, endpoint: Endpoint, model: &str) -> ModelAtEndpoint {
        let (store, host) = (Arc::clone(&self.setup.store), Arc::clone(&self.setup.host));
        let scope = learnt_scope(&endpoint, model);
        let learnt =
            tokio::task::spawn_blocking(move || learnt_window(store.as_ref(), &scope, host.now_ms()));
        let learnt = learnt.await.ok().and_then(Result::ok).flatten();
        let config = self.config.now();
        let settings = config.settings.as_ref();
        let wish = ModelSpec {
            model: model.to_owned(),
            wire: Some(endpoint.wire),
            window: config.window.clone(),
            ..ModelSpec::main(settings)
        };
        let before = ModelFactSources { settings, catalogue: &config.catalogue, said: None, learnt };
        let seller = seller_at(endpoint.kind).to_owned();
        let mut found = ModelAtEndpoint::of(&wish, Some(endpoint), &before);
        found.price_source.seller = seller;
        found
    }

    /// Whether the price of a model at an upstream is known.
    pub(crate) fn knows_price(&self, endpoint: &Endpoint, model: &str) -> bool {
        let catalogue = Catalogue::clone(&self.config.now().catalogue);
        let source = PriceSource { catalogue, seller: seller_at(endpoint.kind).to_owned() };
        let usage = Usage { input: 1_000_000, output: 1_000_000, ..Usage::default() };
        source.cost(model, self.setup.host.now_ms(), usage, 0).micro_usd.is_some()
    }
}

/// The seller whose prices apply at an upstream. Clients request models of real providers by name; an address of the operator's own leads
/// to one of them, so that the maker's list price applies.
fn seller_at(kind: EndpointKind) -> &'static str {
    match kind {
        EndpointKind::Custom => "",
        kind => kind.name(),
    }
}
