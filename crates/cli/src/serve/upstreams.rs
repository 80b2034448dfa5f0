//! The upstreams of the gateway: one from the command line, those in the settings, or the providers themselves.

use throughline_config::{GatewayUpstream, Settings};
use throughline_gateway::{UpstreamSpec, Upstreams};
use throughline_provider::{BaseUrl, EndpointKind, SecretKey};
use throughline_transcript::WireFormat;

use crate::app::App;
use crate::error::{CliError, Exit};

/// Returns the upstreams.
pub(super) fn find(only: Option<&str>, settings: &Settings, app: &App) -> Result<Upstreams, CliError> {
    if let Some(url) = only {
        let base = BaseUrl::parse(url).map_err(|error| {
            CliError::new(Exit::Usage, format!("--upstream {url} cannot be used")).because(error.to_string())
        })?;
        let kind = EndpointKind::at(&base);
        let wires = WireFormat::ALL.to_vec();
        let upstream =
            UpstreamSpec { name: "upstream".to_owned(), base, kind, wires, models: Vec::new(), key: None };
        return Ok(Upstreams { all: vec![upstream] });
    }
    let configured = &settings.gateway.upstreams;
    if configured.is_empty() {
        return Ok(Upstreams { all: providers() });
    }
    let all = configured.iter().map(|(name, upstream)| of_setting(name, upstream, app));
    Ok(Upstreams { all: all.collect::<Result<_, _>>()? })
}

/// The providers themselves, called with the client's own key.
fn providers() -> Vec<UpstreamSpec> {
    let named = [
        (EndpointKind::OpenRouter, &["*/*"][..]),
        (EndpointKind::Anthropic, &[][..]),
        (EndpointKind::OpenAi, &[][..]),
    ];
    let spec = |(kind, models): (EndpointKind, &[&str])| {
        Some(UpstreamSpec {
            name: kind.name().to_owned(),
            base: BaseUrl::parse(kind.usual_address()?).ok()?,
            kind,
            wires: kind.wires().to_vec(),
            models: models.iter().map(|model| (*model).to_owned()).collect(),
            key: None,
        })
    };
    named.into_iter().filter_map(spec).collect()
}

fn of_setting(name: &str, upstream: &GatewayUpstream, app: &App) -> Result<UpstreamSpec, CliError> {
    let key = format!("gateway.upstreams.{name}");
    let wrong = |what: &str, why: String| {
        CliError::new(Exit::BadConfig, format!("`{key}.{what}` cannot be used")).because(why)
    };
    let address = upstream.base_url.as_deref().unwrap_or_default();
    if address.trim().is_empty() {
        return Err(wrong("base_url", "the address of the upstream is missing".to_owned()));
    }
    let base = BaseUrl::parse(address).map_err(|error| wrong("base_url", error.to_string()))?;
    let kind = EndpointKind::at(&base);
    let mut wires = Vec::new();
    for word in listed(upstream.wires.as_deref()) {
        let wire = WireFormat::ALL.into_iter().find(|wire| wire.name() == word);
        wires.push(wire.ok_or_else(|| {
            wrong("wires", format!("`{word}` is not a wire format; use chat, responses or anthropic"))
        })?);
    }
    if wires.is_empty() {
        wires = kind.wires().to_vec();
    }
    let secret = match upstream.api_key_env.as_deref().map(str::trim).filter(|name| !name.is_empty()) {
        None => None,
        Some(variable) => {
            let found = app.variable(variable).and_then(SecretKey::new);
            Some(found.ok_or_else(|| {
                wrong("api_key_env", format!("the variable {variable} is not set"))
                    .hint("remove the setting to pass on the client's own key")
            })?)
        }
    };
    let models = listed(upstream.models.as_deref()).map(str::to_owned).collect();
    Ok(UpstreamSpec { name: name.to_owned(), base, kind, wires, models, key: secret })
}

fn listed(text: Option<&str>) -> impl Iterator<Item = &str> {
    text.unwrap_or_default().split(',').map(str::trim).filter(|word| !word.is_empty())
}

/// Describes an upstream on one line.
pub(super) fn line(upstream: &UpstreamSpec) -> String {
    let wires: Vec<&str> = upstream.wires.iter().map(|wire| wire.name()).collect();
    let models =
        if upstream.models.is_empty() { "all models".to_owned() } else { upstream.models.join(", ") };
    let key = if upstream.key.is_some() { "own key" } else { "the client's key" };
    format!("  {:<12} {}  ({}; {models}; {key})\n", upstream.name, upstream.base.as_str(), wires.join(", "))
}
