//! Advice for the user about a failed call, with the setting or variable to change.
//!
//! Not for: errors that are recovered from automatically.

use throughline_transcript::WireFormat;

use crate::endpoint::{Endpoint, EndpointKind, KeySource};
use crate::provider_error::{
    ConnectStage, ImageComplaint, KeyForm, ProviderError, ProviderErrorKind, WrongWireSign,
};

impl ProviderError {
    /// Returns advice about a failed call. `None` if only waiting helps, or no remedy is known.
    #[must_use]
    pub fn advice(&self, endpoint: &Endpoint, model: &str) -> Option<String> {
        advice_at(self, endpoint, model, &endpoint.base.of_wire(endpoint.wire))
    }

    /// Returns advice about a list of models that could not be fetched.
    #[must_use]
    pub fn advice_on_list(&self, endpoint: &Endpoint, model: &str) -> Option<String> {
        advice_at(self, endpoint, model, &endpoint.models_url())
    }
}

/// Returns advice for an error of the address `asked`.
fn advice_at(trouble: &ProviderError, endpoint: &Endpoint, model: &str, asked: &str) -> Option<String> {
    let prefix = &endpoint.settings_prefix;
    let address = endpoint.base.as_str();
    let provider = endpoint.kind.name();
    Some(match &trouble.kind {
        ProviderErrorKind::Auth if other_wire_of_key(trouble, endpoint).is_some() => {
            let wire = other_wire_of_key(trouble, endpoint)?;
            format!(
                "{address} requires its key as the {wire} wire sends it: set `{prefix}.wire` to `{wire}`, or check `{prefix}.base_url`"
            )
        }
        ProviderErrorKind::Auth => match &endpoint.key_source {
            KeySource::Variable(name) => {
                format!("check the key in {name}, or name another variable in `{prefix}.api_key_env`")
            }
            KeySource::Setting(setting) => format!("check the key in `{setting}`"),
            KeySource::NotNeeded => {
                format!("{address} requires a key: name the variable that holds it in `{prefix}.api_key_env`")
            }
        },
        ProviderErrorKind::Forbidden => {
            format!(
                "the account behind the key may not use `{model}` at {provider}: check it there, or set another `{prefix}.default`"
            )
        }
        ProviderErrorKind::UnknownModel => {
            format!(
                "`{model}` is not known at {address}: set `{prefix}.default` to one of its models (`throughline models` lists them)"
            )
        }
        ProviderErrorKind::Quota { affordable_tokens: Some(tokens) } => {
            format!("add credit at {provider}, or set `{prefix}.max_tokens` to at most {tokens}")
        }
        ProviderErrorKind::Quota { affordable_tokens: None } => {
            format!("add credit or raise the limit at {provider}")
        }
        ProviderErrorKind::OverAllowance { .. } => {
            format!(
                "the plan at {provider} does not take prompts of this size: set `compression.threshold_tokens` below its limit, or raise the plan"
            )
        }
        ProviderErrorKind::WrongWire { sign } => wrong_wire(*sign, endpoint, asked),
        ProviderErrorKind::Unreachable { stage } => match stage {
            ConnectStage::Name => format!("check the host in `{prefix}.base_url` ({address})"),
            ConnectStage::Connect | ConnectStage::Closed if endpoint.base.is_local() => {
                format!("start the server at {address}, or set `{prefix}.base_url`")
            }
            ConnectStage::Connect | ConnectStage::Closed => {
                format!("check the network and `{prefix}.base_url` ({address})")
            }
            ConnectStage::Tls => {
                format!("check the certificate of {address}; a server without one is spoken to by http://")
            }
        },
        ProviderErrorKind::OutputCapTooLarge { largest_cap_tokens: Some(tokens), .. } => {
            format!("set `{prefix}.max_tokens` to at most {tokens}")
        }
        ProviderErrorKind::OutputCapTooLarge { largest_cap_tokens: None, .. } => {
            format!("lower `{prefix}.max_tokens`")
        }
        ProviderErrorKind::ImageRefused { complaint: ImageComplaint::NotSupported } => {
            format!("set `{prefix}.default` to a model that takes pictures")
        }
        _ => return None,
    })
}

/// Returns the wire format whose key header the endpoint expects, if it is not the one sent. Only an endpoint whose wire format the user
/// chose can be called in another.
fn other_wire_of_key(trouble: &ProviderError, endpoint: &Endpoint) -> Option<WireFormat> {
    match endpoint.wire {
        // Without a key, the missing key is the first problem.
        _ if endpoint.kind != EndpointKind::Custom || endpoint.key.is_none() => None,
        WireFormat::Chat | WireFormat::Responses if trouble.key_form == Some(KeyForm::ApiKeyHeader) => {
            Some(WireFormat::Anthropic)
        }
        WireFormat::Anthropic if trouble.key_form == Some(KeyForm::Bearer) => Some(WireFormat::Chat),
        _ => None,
    }
}

fn wrong_wire(sign: WrongWireSign, endpoint: &Endpoint, tried: &str) -> String {
    let prefix = &endpoint.settings_prefix;
    let wire = match endpoint.wire {
        WireFormat::Chat => "Chat Completions",
        WireFormat::Responses => "Responses",
        WireFormat::Anthropic => "Anthropic Messages",
    };
    match sign {
        WrongWireSign::NoSuchPath => {
            format!(
                "{tried} does not exist: `{prefix}.base_url` usually ends in /v1, and `{prefix}.wire` says which wire is spoken ({wire} now)"
            )
        }
        WrongWireSign::Redirect => {
            format!("{tried} leads elsewhere: set `{prefix}.base_url` to where it leads")
        }
        WrongWireSign::Html | WrongWireSign::NotJson | WrongWireSign::OtherShape => {
            format!(
                "what answers at {tried} does not speak {wire}: check `{prefix}.base_url` and `{prefix}.wire`"
            )
        }
    }
}

#[cfg(test)]
#[path = "advice_tests.rs"]
mod tests;
