//! Endpoints: provider, address, wire format and key.
//!
//! An endpoint is made from settings and from environment variables that the caller lets it look up. Errors name the setting or variable to
//! change. Not for: sending requests.

use std::fmt;

use throughline_transcript::WireFormat;

use crate::cache_policy::CacheSeller;
use crate::endpoint_url::{AddressError, BaseUrl};
use crate::secret::SecretKey;

/// Kinds of endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndpointKind {
    /// Anthropic's API.
    Anthropic,
    /// OpenAI's API.
    OpenAi,
    /// OpenRouter.
    OpenRouter,
    /// OpenAI by a Codex subscription.
    OpenAiCodex,
    /// Ollama.
    Ollama,
    /// A llama.cpp server.
    LlamaCpp,
    /// LM Studio.
    LmStudio,
    /// Any other address.
    Custom,
}

impl EndpointKind {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Anthropic,
        Self::OpenAi,
        Self::OpenRouter,
        Self::OpenAiCodex,
        Self::Ollama,
        Self::LlamaCpp,
        Self::LmStudio,
        Self::Custom,
    ];

    /// Returns the name used in configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::OpenRouter => "openrouter",
            Self::OpenAiCodex => "openai-codex",
            Self::Ollama => "ollama",
            Self::LlamaCpp => "llama.cpp",
            Self::LmStudio => "lmstudio",
            Self::Custom => "custom",
        }
    }

    /// Parses a name used in settings, in its common spellings.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        let plain: String = word.chars().filter(char::is_ascii_alphanumeric).collect();
        let plain = plain.to_ascii_lowercase();
        Some(match plain.as_str() {
            "anthropic" | "claude" => Self::Anthropic,
            "openai" => Self::OpenAi,
            "openrouter" => Self::OpenRouter,
            "openaicodex" | "codex" => Self::OpenAiCodex,
            "ollama" => Self::Ollama,
            "llamacpp" | "llamaserver" => Self::LlamaCpp,
            "lmstudio" => Self::LmStudio,
            "custom" => Self::Custom,
            _ => return None,
        })
    }

    /// Returns its default address.
    #[must_use]
    pub fn usual_address(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("https://api.anthropic.com"),
            Self::OpenAi => Some("https://api.openai.com/v1"),
            Self::OpenRouter => Some("https://openrouter.ai/api/v1"),
            Self::OpenAiCodex => Some("https://chatgpt.com/backend-api/codex"),
            Self::Ollama => Some("http://127.0.0.1:11434/v1"),
            Self::LlamaCpp => Some("http://127.0.0.1:8080/v1"),
            Self::LmStudio => Some("http://127.0.0.1:1234/v1"),
            Self::Custom => None,
        }
    }

    /// Returns the environment variable that usually has its key.
    #[must_use]
    pub fn usual_key_variable(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::OpenAi => Some("OPENAI_API_KEY"),
            Self::OpenRouter => Some("OPENROUTER_API_KEY"),
            Self::OpenAiCodex => Some("CODEX_ACCESS_TOKEN"),
            Self::Ollama | Self::LlamaCpp | Self::LmStudio | Self::Custom => None,
        }
    }

    /// Returns the window that it allows for a model, if known to be smaller than the model's own.
    #[must_use]
    pub fn window_limit_tokens(self, model: &str) -> Option<u64> {
        // Subscriptions offer smaller windows than the same models have on the API.
        const CODEX: u64 = 272_000;
        const CODEX_SPARK: u64 = 128_000;
        match self {
            Self::OpenAiCodex if model.to_ascii_lowercase().contains("spark") => Some(CODEX_SPARK),
            Self::OpenAiCodex => Some(CODEX),
            _ => None,
        }
    }

    /// Returns the wire formats it supports, the preferred one first.
    #[must_use]
    pub fn wires(self) -> &'static [WireFormat] {
        match self {
            Self::Anthropic => &[WireFormat::Anthropic],
            Self::OpenAi => &[WireFormat::Responses, WireFormat::Chat],
            Self::OpenRouter => &[WireFormat::Chat, WireFormat::Anthropic, WireFormat::Responses],
            Self::OpenAiCodex => &[WireFormat::Responses],
            Self::Ollama | Self::LlamaCpp | Self::LmStudio => {
                &[WireFormat::Chat, WireFormat::Responses, WireFormat::Anthropic]
            }
            Self::Custom => &[WireFormat::Chat, WireFormat::Anthropic, WireFormat::Responses],
        }
    }

    /// Whether support for all of [`wires`](Self::wires) is an assumption: for servers of the user's own, whose version
    /// and settings are unknown. All of them support the first.
    #[must_use]
    pub fn wires_are_assumed(self) -> bool {
        match self {
            Self::Ollama | Self::LlamaCpp | Self::LmStudio | Self::Custom => true,
            Self::Anthropic | Self::OpenAi | Self::OpenRouter | Self::OpenAiCodex => false,
        }
    }

    /// Returns the providers that serve a model of this name, its maker first. `None` if the name reveals neither the maker (`claude-...`,
    /// `gpt-...`) nor the seller (`maker/name`).
    #[must_use]
    pub fn serving(model: &str) -> Option<&'static [Self]> {
        let name = model.trim().to_ascii_lowercase();
        let begins = |start: &&str| name.starts_with(*start);
        Some(match name.as_str() {
            name if name.contains('/') => &[Self::OpenRouter],
            name if name.contains("claude") => &[Self::Anthropic, Self::OpenRouter],
            _ if ["gpt", "o1", "o3", "o4", "codex"].iter().any(begins) && !begins(&"gpt-oss") => {
                &[Self::OpenAi, Self::OpenRouter]
            }
            _ => return None,
        })
    }

    /// Returns the kind of the endpoint at an address.
    #[must_use]
    pub fn at(base: &BaseUrl) -> Self {
        let host = base.host();
        let is = |domain: &str| host == domain || host.ends_with(&format!(".{domain}"));
        match base.port() {
            _ if is("anthropic.com") => Self::Anthropic,
            _ if is("openai.com") => Self::OpenAi,
            _ if is("openrouter.ai") => Self::OpenRouter,
            _ if is("chatgpt.com") => Self::OpenAiCodex,
            Some(11_434) if base.is_local() => Self::Ollama,
            Some(1_234) if base.is_local() => Self::LmStudio,
            _ => Self::Custom,
        }
    }
}

impl fmt::Display for EndpointKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The settings of an endpoint. Empty texts count as absent.
#[derive(Clone, Copy, Debug)]
pub struct EndpointSettings<'a> {
    /// The settings' own prefix, for messages: `model`, `auxiliary.compression`.
    pub prefix: &'a str,
    /// The provider's name. `auto` or empty chooses the provider for which a key is found.
    pub provider: &'a str,
    /// The address, if not the default one.
    pub base_url: &'a str,
    /// The wire format, if not the preferred one.
    pub wire: Option<WireFormat>,
    /// The key itself.
    pub api_key: &'a str,
    /// The environment variable with the key.
    pub api_key_env: &'a str,
    /// Headers to send along.
    pub headers: &'a [(String, String)],
    /// The requested model, which helps `auto` to choose.
    pub model: &'a str,
}

/// The source of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// A setting.
    Setting(String),
    /// An environment variable.
    Variable(String),
    /// No key is needed.
    NotNeeded,
}

/// Why settings do not define an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// Nothing is configured, and nothing was found.
    #[error(
        "no model endpoint is configured: set `{prefix}.provider` or `{prefix}.base_url`, or one of the variables {variables}"
    )]
    NotConfigured {
        /// Prefix of the settings.
        prefix: String,
        /// The variables to set one of.
        variables: String,
    },
    /// An unknown provider.
    #[error("`{prefix}.provider` is `{name}`, which is not known{}; known are {known}", nearest.as_ref().map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default())]
    UnknownProvider {
        /// Prefix of the settings.
        prefix: String,
        /// The name as configured.
        name: String,
        /// The known name that is most similar.
        nearest: Option<String>,
        /// All known names.
        known: String,
    },
    /// The address is invalid.
    #[error("`{prefix}.base_url` cannot be used: {reason}")]
    BadAddress {
        /// Prefix of the settings.
        prefix: String,
        /// What is wrong with the address.
        reason: AddressError,
    },
    /// A custom provider without an address.
    #[error("`{prefix}.provider` is `custom`, so `{prefix}.base_url` must say where it is")]
    NoAddress {
        /// Prefix of the settings.
        prefix: String,
    },
    /// The required key is missing.
    #[error(
        "there is no key for {provider}: set the variable {variable}, or name another in `{prefix}.api_key_env`"
    )]
    NoKey {
        /// Prefix of the settings.
        prefix: String,
        /// The provider.
        provider: &'static str,
        /// The variable that was looked up.
        variable: String,
    },
    /// A key or header contains characters that cannot be sent.
    #[error("{what} contains characters that cannot be sent in a header")]
    NotSendable {
        /// The name of the part.
        what: String,
    },
    /// The provider does not support the wire format.
    #[error(
        "{provider} does not speak the {wire} wire: set `{prefix}.wire` to `auto`, or another `{prefix}.provider`"
    )]
    WireNotSpoken {
        /// Prefix of the settings.
        prefix: String,
        /// The provider.
        provider: &'static str,
        /// The wire format.
        wire: WireFormat,
    },
}

/// An endpoint that can be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The kind.
    pub kind: EndpointKind,
    /// The address.
    pub base: BaseUrl,
    /// The wire format.
    pub wire: WireFormat,
    /// Its key.
    pub key: Option<SecretKey>,
    /// The source of the key.
    pub key_source: KeySource,
    /// Headers to send along, in this order.
    pub headers: Vec<(String, String)>,
    /// The prefix of its settings, for messages.
    pub settings_prefix: String,
}

impl Endpoint {
    /// Makes an endpoint from settings. `variable` looks up the environment for the caller.
    ///
    /// ```
    /// use throughline_provider::{Endpoint, EndpointSettings};
    ///
    /// let settings = EndpointSettings {
    ///     prefix: "model",
    ///     provider: "auto",
    ///     base_url: "",
    ///     wire: None,
    ///     api_key: "",
    ///     api_key_env: "",
    ///     headers: &[],
    ///     model: "claude-opus-4-8",
    /// };
    /// let variable = |name: &str| (name == "ANTHROPIC_API_KEY").then(|| "sk-ant-example".to_owned());
    /// let endpoint = Endpoint::resolve(&settings, variable)?;
    /// assert_eq!(endpoint.kind.name(), "anthropic");
    /// # Ok::<(), throughline_provider::EndpointError>(())
    /// ```
    pub fn resolve(
        settings: &EndpointSettings<'_>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, EndpointError> {
        let prefix = settings.prefix.to_owned();
        let filled = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let address = settings.base_url.trim();
        let given = (!address.is_empty()).then(|| BaseUrl::parse(address)).transpose();
        let given = given.map_err(|reason| EndpointError::BadAddress { prefix: prefix.clone(), reason })?;
        let kind = kind_of(settings, given.as_ref(), &filled)?;
        let base = match given {
            Some(base) => base,
            None => match listening_address(kind, &filled).as_deref().or(kind.usual_address()) {
                Some(usual) => BaseUrl::parse(usual)
                    .map_err(|reason| EndpointError::BadAddress { prefix: prefix.clone(), reason })?,
                None => return Err(EndpointError::NoAddress { prefix }),
            },
        };
        let wire = match settings.wire {
            Some(wire) if !kind.wires().contains(&wire) => {
                return Err(EndpointError::WireNotSpoken { prefix, provider: kind.name(), wire });
            }
            Some(wire) => wire,
            None => kind.wires().first().copied().unwrap_or(WireFormat::Chat),
        };
        let (key, key_source) = key_of(settings, kind, &base, &filled)?;
        let sendable = |text: &str| text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
        if key.as_ref().is_some_and(|key| !sendable(key.expose())) {
            return Err(EndpointError::NotSendable { what: "the key".to_owned() });
        }
        let bad = settings.headers.iter().find(|(name, value)| {
            let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            name.is_empty() || !name.bytes().all(token) || !sendable(value)
        });
        if let Some((name, _)) = bad {
            return Err(EndpointError::NotSendable { what: format!("the header `{name}`") });
        }
        let headers = settings.headers.to_vec();
        Ok(Self { kind, base, wire, key, key_source, headers, settings_prefix: prefix })
    }

    /// Returns the URL of its list of models.
    pub(crate) fn models_url(&self) -> String {
        match self.wire {
            WireFormat::Anthropic => format!("{}/v1/models", self.base.root()),
            WireFormat::Chat | WireFormat::Responses => self.base.of_models(),
        }
    }

    /// Whether it is at the default address of its kind.
    #[must_use]
    pub fn is_at_usual_address(&self) -> bool {
        let usual = self.kind.usual_address().and_then(|usual| BaseUrl::parse(usual).ok());
        usual.is_some_and(|usual| usual.host() == self.base.host())
    }

    /// Returns the seller, as caching distinguishes them.
    #[must_use]
    pub fn cache_seller(&self) -> CacheSeller {
        match self.kind {
            EndpointKind::Anthropic => CacheSeller::Anthropic,
            EndpointKind::OpenRouter => CacheSeller::OpenRouter,
            EndpointKind::OpenAi | EndpointKind::OpenAiCodex => CacheSeller::OpenAi,
            _ => CacheSeller::Other,
        }
    }

    /// Returns the headers with the key and those the wire format requires, in a fixed order.
    #[cfg(any(test, feature = "client"))]
    pub(crate) fn wire_headers(&self, wire_format: WireFormat) -> Vec<(&'static str, String)> {
        let mut headers = Vec::new();
        if wire_format == WireFormat::Anthropic {
            headers.push(("anthropic-version", "2023-06-01".to_owned()));
        }
        let Some(key) = &self.key else { return headers };
        // Subscription tokens go into the bearer header; Anthropic expects its API keys in a header of its own.
        let is_token = key.expose().starts_with("sk-ant-oat");
        let takes_own_name = wire_format == WireFormat::Anthropic && self.kind != EndpointKind::OpenRouter;
        if is_token {
            headers.push(("anthropic-beta", "oauth-2025-04-20".to_owned()));
        }
        if takes_own_name && !is_token {
            headers.push(("x-api-key", key.expose().to_owned()));
        } else {
            headers.push(("authorization", format!("Bearer {}", key.expose())));
        }
        if self.kind == EndpointKind::OpenAiCodex
            && let Some(account) = crate::codex::account_of(key.expose())
        {
            headers.push((crate::codex::ACCOUNT_HEADER, account));
        }
        headers
    }
}

/// Returns the kind: as named, or else by the address, or else by the model and the available keys.
fn kind_of(
    settings: &EndpointSettings<'_>,
    base: Option<&BaseUrl>,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<EndpointKind, EndpointError> {
    let name = settings.provider.trim();
    if !name.is_empty() && !name.eq_ignore_ascii_case("auto") {
        return EndpointKind::parse(name).ok_or_else(|| unknown_provider(settings.prefix, name));
    }
    if let Some(base) = base {
        return Ok(EndpointKind::at(base));
    }
    let has_key =
        |kind: &EndpointKind| kind.usual_key_variable().is_some_and(|name| variable(name).is_some());
    let keyed = [EndpointKind::Anthropic, EndpointKind::OpenAi, EndpointKind::OpenRouter];
    let makers = match settings.model.trim() {
        "" => &keyed[..],
        name => EndpointKind::serving(name).unwrap_or(&[EndpointKind::OpenRouter]),
    };
    makers.iter().copied().find(has_key).ok_or_else(|| {
        let names: Vec<&str> = keyed.iter().filter_map(|kind| kind.usual_key_variable()).collect();
        EndpointError::NotConfigured { prefix: settings.prefix.to_owned(), variables: names.join(", ") }
    })
}

/// Returns the address of a server on this machine, from the environment variables that the server or its clients read.
fn listening_address(kind: EndpointKind, variable: &impl Fn(&str) -> Option<String>) -> Option<String> {
    let address = match kind {
        EndpointKind::Ollama => variable("OLLAMA_HOST")?,
        EndpointKind::LlamaCpp => {
            let (host, port) = (variable("LLAMA_ARG_HOST"), variable("LLAMA_ARG_PORT"));
            if host.is_none() && port.is_none() {
                return None;
            }
            let host = host.unwrap_or_else(|| "127.0.0.1".to_owned());
            format!("{host}:{}", port.unwrap_or_else(|| "8080".to_owned()))
        }
        EndpointKind::LmStudio => variable("LM_STUDIO_API_BASE")?,
        _ => return None,
    };
    let address = address.trim();
    let (scheme, rest) = address.split_once("://").unwrap_or(("http", address));
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    // A server that listens on all addresses also listens on this one.
    let host = match host {
        _ if host.starts_with(':') => format!("127.0.0.1{host}"),
        _ if host.starts_with("0.0.0.0") => host.replacen("0.0.0.0", "127.0.0.1", 1),
        _ => host.replacen("[::]", "127.0.0.1", 1),
    };
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let usual = if kind == EndpointKind::Ollama && !address.contains("://") { ":11434" } else { "" };
    let port = if has_port { "" } else { usual };
    let path = if path.trim_matches('/').is_empty() { "v1" } else { path };
    let url = format!("{scheme}://{host}{port}/{path}");
    BaseUrl::parse(&url).is_ok().then_some(url)
}

fn unknown_provider(prefix: &str, name: &str) -> EndpointError {
    let known: Vec<&str> = EndpointKind::ALL.iter().map(|kind| kind.name()).collect();
    let lower = name.to_ascii_lowercase();
    // A typo usually keeps the first letters.
    let shared = |other: &&&str| lower.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let nearest =
        known.iter().filter(|other| shared(other) >= 3).max_by_key(shared).map(|near| (*near).to_owned());
    EndpointError::UnknownProvider {
        prefix: prefix.to_owned(),
        name: name.to_owned(),
        nearest,
        known: known.join(", "),
    }
}

fn key_of(
    settings: &EndpointSettings<'_>,
    kind: EndpointKind,
    base: &BaseUrl,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<(Option<SecretKey>, KeySource), EndpointError> {
    if let Some(key) = SecretKey::new(settings.api_key) {
        return Ok((Some(key), KeySource::Setting(format!("{}.api_key", settings.prefix))));
    }
    let named = settings.api_key_env.trim();
    // The default variable belongs to the default address: its key is not sent to another one.
    let is_usual = kind.usual_address().and_then(|usual| BaseUrl::parse(usual).ok());
    let is_usual = is_usual.is_some_and(|usual| usual.host() == base.host());
    let usual = kind.usual_key_variable().filter(|_| is_usual);
    let name = if named.is_empty() { usual } else { Some(named) };
    let Some(name) = name else { return Ok((None, KeySource::NotNeeded)) };
    match variable(name).and_then(|value| SecretKey::new(&value)) {
        Some(key) => Ok((Some(key), KeySource::Variable(name.to_owned()))),
        None => Err(EndpointError::NoKey {
            prefix: settings.prefix.to_owned(),
            provider: kind.name(),
            variable: name.to_owned(),
        }),
    }
}

#[cfg(test)]
#[path = "endpoint_tests.rs"]
mod tests;
