//! The secrets of one request, masked in everything that is recorded or logged about its answer.

use bytes::Bytes;

use crate::call::Refusal;
use crate::endpoint::Endpoint;
use crate::provider_error::ProviderError;
use crate::secret::{SHORTEST_PART, SecretKey};

/// Everything sent with a request that must not be recorded or logged with its answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentSecrets {
    /// The key of the endpoint's owner, which is masked for the client too.
    own: Option<SecretKey>,
    /// Keys that the client sent itself.
    of_client: Vec<SecretKey>,
}

impl SentSecrets {
    /// The secrets of a request with these headers and this query.
    pub(crate) fn of(endpoint: &Endpoint, headers: &[(String, String)], query: Option<&str>) -> Self {
        let all = endpoint.headers.iter().chain(headers);
        let values = all.filter(|(name, _)| is_secret_name(name)).flat_map(|(_, value)| words_of_key(value));
        let parameters = query.unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        let parameters = parameters.filter(|(name, _)| is_secret_name(name)).map(|(_, value)| value);
        let mut of_client: Vec<SecretKey> = Vec::new();
        for value in values.chain(parameters) {
            // A client's key is passed on and also used for calls outside the conversation, so it occurs twice.
            if !of_client.iter().any(|key| key.expose() == value.trim()) {
                of_client.extend(SecretKey::new(value));
            }
        }
        Self { own: endpoint.key.clone(), of_client }
    }

    /// Masks the secrets in the error of a failed call.
    pub(crate) fn scrub_trouble(&self, trouble: &mut ProviderError) {
        for key in self.own.iter().chain(&self.of_client) {
            trouble.words = key.scrub(&trouble.words);
            for text in [&mut trouble.code, &mut trouble.request_id].into_iter().flatten() {
                *text = key.scrub(text);
            }
        }
    }

    /// Masks the endpoint's own key in an error response for a client. The client knows its own keys.
    pub(crate) fn scrub_refusal(&self, refusal: &mut Refusal) {
        let Some(key) = &self.own else { return };
        if let Ok(text) = std::str::from_utf8(&refusal.body) {
            let scrubbed = key.scrub(text);
            if scrubbed != text {
                refusal.body = Bytes::from(scrubbed);
                refusal.headers.retain(|(name, _)| name != "content-length");
            }
        }
        for (_, value) in &mut refusal.headers {
            *value = key.scrub(value);
        }
    }
}

/// Whether a header or a parameter of this name carries a secret.
fn is_secret_name(name: &str) -> bool {
    let has = |part: &str| {
        name.as_bytes().windows(part.len()).any(|window| window.eq_ignore_ascii_case(part.as_bytes()))
    };
    name.eq_ignore_ascii_case("cookie")
        || name.eq_ignore_ascii_case("key")
        || ["auth", "api-key", "api_key", "apikey", "token", "secret"].into_iter().any(has)
}

/// Returns the parts of a header's value that may be a key, without the scheme before it.
fn words_of_key(value: &str) -> impl Iterator<Item = &str> {
    let last = value.split_whitespace().count().saturating_sub(1);
    let words = value.split_whitespace().enumerate();
    words.filter(move |(at, word)| *at == last || word.len() >= SHORTEST_PART).map(|(_, word)| word)
}
