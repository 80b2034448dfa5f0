//! Addresses of endpoints: converts what a user writes to the URL of each wire format.
//!
//! Users write `https://host`, `https://host/v1`, or copy the whole path of a wire format; all mean the same endpoint. Not for: whether a
//! server answers there.

use std::net::{IpAddr, Ipv4Addr};

use throughline_transcript::WireFormat;
use url::Url;

/// Why an address cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Not an address.
    #[error("it is not an address")]
    Malformed,
    /// Neither http nor https.
    #[error("it does not begin with http:// or https://")]
    Scheme,
    /// The address contains a key or password, which would end up in logs.
    #[error("it contains a user name or password; put the key into a setting of its own")]
    Credentials,
}

/// The address of an endpoint, without the path of a wire format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl {
    url: Url,
}

impl BaseUrl {
    /// Parses an address as users write it.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let text = text.trim().trim_end_matches('/');
        let mut url = Url::parse(text).map_err(|_| AddressError::Malformed)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(AddressError::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(AddressError::Credentials);
        }
        url.set_query(None);
        url.set_fragment(None);
        let path = url.path().trim_end_matches('/');
        let wires = ["/chat/completions", "/v1/messages", "/messages", "/responses"];
        let bare = wires.iter().find_map(|wire| path.strip_suffix(wire)).unwrap_or(path).to_owned();
        url.set_path(&bare);
        Ok(Self { url })
    }

    /// Returns the address as it is shown and stored.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.url.as_str().trim_end_matches('/')
    }

    /// Returns the host.
    #[must_use]
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// Returns the port, given or default for the scheme.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.url.port_or_known_default()
    }

    /// Returns the URL for a wire format. An address without a path gets the default `/v1`; Anthropic's format always has it.
    #[must_use]
    pub fn of_wire(&self, wire_format: WireFormat) -> String {
        let base = self.as_str();
        match wire_format {
            WireFormat::Anthropic => format!("{}/v1/messages", self.root()),
            WireFormat::Chat => format!("{}/chat/completions", self.versioned(base)),
            WireFormat::Responses => format!("{}/responses", self.versioned(base)),
        }
    }

    /// Returns the URL of the list of models.
    #[must_use]
    pub fn of_models(&self) -> String {
        format!("{}/models", self.versioned(self.as_str()))
    }

    /// Returns the root of the server, for queries outside any wire format.
    #[must_use]
    pub fn root(&self) -> &str {
        let base = self.as_str();
        base.strip_suffix("/v1").unwrap_or(base)
    }

    fn versioned(&self, base: &str) -> String {
        if self.url.path().trim_end_matches('/').is_empty() { format!("{base}/v1") } else { base.to_owned() }
    }

    /// Whether the server is on this machine or in the local network, where models start slowly and cost nothing.
    #[must_use]
    pub fn is_local(&self) -> bool {
        let host = self.host().trim_start_matches('[').trim_end_matches(']');
        match host.parse::<IpAddr>() {
            Ok(IpAddr::V4(ip)) => is_local_v4(ip),
            Ok(IpAddr::V6(ip)) => match ip.to_ipv4_mapped() {
                Some(ip) => is_local_v4(ip),
                None => ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local(),
            },
            Err(_) => {
                !host.contains('.')
                    || [".local", ".internal", ".localhost", ".lan"].iter().any(|end| host.ends_with(end))
            }
        }
    }
}

fn is_local_v4(ip: Ipv4Addr) -> bool {
    let [first, second, ..] = ip.octets();
    // 100.64.0.0/10 is the range of overlay networks.
    let is_carrier_range = first == 100 && (64..128).contains(&second);
    ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified() || is_carrier_range
}

#[cfg(test)]
#[path = "endpoint_url_tests.rs"]
mod tests;
