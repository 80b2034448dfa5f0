//! The configured upstreams, and the choice of one for a request.

use throughline_config::model_fits;
use throughline_provider::{BaseUrl, Endpoint, EndpointKind, KeySource, SecretKey};
use throughline_transcript::WireFormat;
use throughline_wire::Request;

use crate::error::GatewayError;

/// The prefix of the settings of upstreams.
const SETTINGS: &str = "gateway.upstreams.";

/// The name of the upstream behind an endpoint.
pub(crate) fn upstream_name(endpoint: &Endpoint) -> &str {
    endpoint.settings_prefix.strip_prefix(SETTINGS).unwrap_or(&endpoint.settings_prefix)
}

/// A server that answers calls.
#[derive(Clone, Debug)]
pub struct UpstreamSpec {
    /// The name, used in a header and in logs.
    pub name: String,
    /// The base URL.
    pub base: BaseUrl,
    /// The kind of server.
    pub kind: EndpointKind,
    /// The wire formats that it accepts.
    pub wires: Vec<WireFormat>,
    /// Patterns of the models it serves, as in the settings. Empty means all models.
    pub models: Vec<String>,
    /// The operator's key. `None` means that the client's own key is passed on.
    pub key: Option<SecretKey>,
}

impl UpstreamSpec {
    /// The endpoint of the upstream for a wire format.
    #[must_use]
    pub fn endpoint(&self, wire: WireFormat) -> Endpoint {
        let key_source = match self.key {
            Some(_) => KeySource::Setting(format!("{SETTINGS}{}", self.name)),
            None => KeySource::NotNeeded,
        };
        Endpoint {
            kind: self.kind,
            base: self.base.clone(),
            wire,
            key: self.key.clone(),
            key_source,
            headers: Vec::new(),
            settings_prefix: format!("{SETTINGS}{}", self.name),
        }
    }

    /// The wire format in which it is called for requests of `wire`: the same, or one that they can be translated to.
    fn spoken_to(&self, wire: WireFormat) -> Option<WireFormat> {
        if self.wires.contains(&wire) {
            return Some(wire);
        }
        self.wires.iter().copied().find(|spoken| Request::can_translate(wire, *spoken))
    }

    fn serves(&self, model: &str) -> bool {
        self.models.is_empty() || self.models.iter().any(|pattern| model_fits(pattern, model))
    }
}

/// The upstreams in order of preference.
#[derive(Clone, Debug, Default)]
pub struct Upstreams {
    /// All upstreams.
    pub all: Vec<UpstreamSpec>,
}

impl Upstreams {
    /// Returns the upstream for a model and the wire format to call it in: the named one, or else the first that serves the model in
    /// `wire`, or else the first that serves it in a wire format that requests can be translated to.
    pub(crate) fn choose(
        &self,
        named: Option<&str>,
        wire: WireFormat,
        model: &str,
    ) -> Result<(&UpstreamSpec, WireFormat), GatewayError> {
        if let Some(name) = named {
            let Some(upstream) = self.all.iter().find(|upstream| upstream.name == name) else {
                let shown: String = name.chars().take(80).collect();
                return Err(GatewayError::bad_request(format!("there is no upstream `{shown}`")));
            };
            return upstream.spoken_to(wire).map(|spoken| (upstream, spoken)).ok_or_else(|| {
                GatewayError::bad_request(format!(
                    "the upstream `{}` does not speak the {wire} wire, nor one its requests can be translated to",
                    upstream.name
                ))
            });
        }
        let mut reachable = self.all.iter().filter(|upstream| upstream.spoken_to(wire).is_some()).peekable();
        if reachable.peek().is_none() {
            return Err(GatewayError::not_found(format!(
                "no upstream speaks the {wire} wire, nor one its requests can be translated to"
            )));
        }
        let serving: Vec<&UpstreamSpec> = reachable.filter(|upstream| upstream.serves(model)).collect();
        let native = serving.iter().find(|upstream| upstream.wires.contains(&wire));
        let chosen = native.or(serving.first()).copied();
        chosen.and_then(|upstream| Some((upstream, upstream.spoken_to(wire)?))).ok_or_else(|| {
            let shown: String = model.chars().take(120).collect();
            GatewayError::not_found(format!("no upstream serves the model `{shown}`"))
        })
    }

    /// Returns the upstream for requests that name no model.
    pub(crate) fn for_wire(&self, named: Option<&str>, wire: WireFormat) -> Option<&UpstreamSpec> {
        match named {
            Some(name) => self.all.iter().find(|upstream| upstream.name == name),
            None => self.all.iter().find(|upstream| upstream.wires.contains(&wire)).or(self.all.first()),
        }
    }
}

#[cfg(test)]
#[path = "upstreams_tests.rs"]
mod tests;
