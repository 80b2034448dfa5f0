//! An endpoint over HTTP as an upstream.

use throughline_engine::Upstream;
use throughline_models::HttpUpstream;
use throughline_provider::{
    Client, ClientOptions, Endpoint, EndpointError, EndpointSettings, RetryLimits, TimeLimits,
};
use throughline_transcript::WireFormat;

/// An endpoint by its address, such as `https://api.anthropic.com/v1` or `http://127.0.0.1:11434/v1`, with its key (empty
/// where it needs none) and wire format.
///
/// ```
/// # use throughline::{WireFormat, http_upstream};
/// let upstream = http_upstream("http://127.0.0.1:11434/v1", "", WireFormat::Chat)?;
/// # let _ = upstream;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// When the address cannot be used, or TLS cannot be set up.
pub fn http_upstream(
    base_url: &str,
    api_key: &str,
    wire_format: WireFormat,
) -> Result<impl Upstream + use<>, Box<dyn std::error::Error + Send + Sync>> {
    let settings = EndpointSettings {
        prefix: "http_upstream",
        provider: "auto",
        base_url,
        wire: Some(wire_format),
        api_key,
        api_key_env: "",
        headers: &[],
        model: "",
    };
    let endpoint: Result<Endpoint, EndpointError> = Endpoint::resolve(&settings, |_| None);
    let endpoint = endpoint?;
    let limits = TimeLimits::of(&endpoint);
    let options = ClientOptions { limits, retries: RetryLimits::ONCE, proxy: None, jitter_seed: 0 };
    Ok(HttpUpstream::new(&Client::new(options)?, endpoint, limits))
}
