//! What went wrong with a call, in kinds that say what can be done about it.
//!
//! Not for: finding out (that is `classify`), and acting on it (that is the caller's).

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A failed call, understood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderError {
    /// What went wrong.
    pub kind: ProviderErrorKind,
    /// The HTTP status, where there was an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The provider's own code for it, such as `context_length_exceeded`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The provider's own words, shortened.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub words: String,
    /// How long the provider asks callers to wait.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "millis")]
    pub retry_after: Option<Duration>,
    /// Whether the provider itself says that trying again helps or does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub should_retry: Option<bool>,
    /// The provider's id of this request, for its support.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// How the provider wants its key, where it says so in a refusal. Read from its words before keys are masked in them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_form: Option<KeyForm>,
}

/// A way to send a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyForm {
    /// In the header `x-api-key`, as on Anthropic's wire.
    ApiKeyHeader,
    /// As a bearer token in the header `authorization`, as on the other wires.
    Bearer,
}

/// Kinds of trouble. Numbers are there only where the provider stated them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ProviderErrorKind {
    /// The prompt does not fit, whatever the output cap. A smaller prompt helps.
    PromptTooLong {
        /// The window, or the largest prompt where the provider limits that by itself.
        window_tokens: Option<u64>,
        /// How large the prompt was. Never a window.
        prompt_tokens: Option<u64>,
    },
    /// The prompt fits, the room asked for the answer does not. A smaller cap helps; a smaller prompt is not needed.
    OutputCapTooLarge {
        /// The largest cap that will be accepted.
        largest_cap_tokens: Option<u64>,
        /// The window, where the cap was too large for it rather than for the model.
        window_tokens: Option<u64>,
        /// How large the prompt was.
        prompt_tokens: Option<u64>,
    },
    /// The request has too many bytes, however many tokens that is.
    PayloadTooLarge {
        /// How many are accepted.
        limit_bytes: Option<u64>,
        /// How many were sent.
        sent_bytes: Option<u64>,
    },
    /// A picture was not accepted.
    ImageRefused {
        /// What the provider objects to.
        complaint: ImageComplaint,
    },
    /// The plan does not let a prompt of this size through at once. Waiting does not help, a smaller prompt does.
    OverAllowance {
        /// What the plan allows.
        allowed_tokens: Option<u64>,
        /// What was asked of it.
        asked_tokens: Option<u64>,
    },
    /// Too many requests or tokens in a while. Waiting helps.
    RateLimit,
    /// Nothing left to pay with, or a plan used up.
    Quota {
        /// The output cap that could still be paid for.
        affordable_tokens: Option<u64>,
    },
    /// The key is missing, wrong or expired.
    Auth,
    /// The key is good, but not for this.
    Forbidden,
    /// The provider does not have this model, or has not loaded one.
    UnknownModel,
    /// The provider has more to do than it can.
    Overload,
    /// It took too long.
    Timeout,
    /// The provider will not answer this for reasons of policy.
    ContentPolicy,
    /// The request is wrong in itself.
    MalformedRequest {
        /// What is wrong with it, where that is known.
        complaint: RequestComplaint,
    },
    /// The server at the address does not speak this wire format.
    WrongWire {
        /// How that was seen.
        sign: WrongWireSign,
    },
    /// No server answers there.
    Unreachable {
        /// How far it got.
        stage: ConnectStage,
    },
    /// The answer broke off.
    Interrupted,
    /// The provider failed and does not say why.
    ServerFault,
    /// None of these for certain.
    Unknown,
}

/// Why a picture was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageComplaint {
    /// Too many bytes or pixels.
    TooLarge {
        /// The most bytes, where stated.
        limit_bytes: Option<u64>,
    },
    /// Too many pictures.
    TooMany,
    /// The model cannot see.
    NotSupported,
    /// It could not be read.
    Unreadable,
}

/// What is wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestComplaint {
    /// A parameter the model or the provider does not know.
    UnknownParameter {
        /// Which, where stated.
        name: Option<String>,
    },
    /// Reasoning sent back was changed, or is not from this provider.
    ForeignReasoning,
    /// Tool calls and their results do not pair.
    ToolPairing,
    /// The provider refuses the order of the roles.
    RoleOrder,
    /// Something else.
    Other,
}

/// How it was seen that a wire is not spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WrongWireSign {
    /// A web page came back.
    Html,
    /// The path does not exist, or not for this method.
    NoSuchPath,
    /// JSON came back, but not of this wire.
    OtherShape,
    /// Something that is no JSON came back.
    NotJson,
    /// It points to another address, to which no key is taken along.
    Redirect,
}

/// How far a connection got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConnectStage {
    /// The name does not resolve.
    Name,
    /// Nothing listens, or it did not take the connection in time.
    Connect,
    /// The two could not agree on encryption, or the certificate is not trusted.
    Tls,
    /// The connection was closed before anything came back.
    Closed,
}

/// Whether sending the same again may help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Not as it is.
    No,
    /// After a while of our choice.
    Backoff,
    /// After the while the provider asked for.
    After(Duration),
}

impl ProviderError {
    /// Trouble of a kind about which nothing else is known.
    #[must_use]
    pub fn of(kind: ProviderErrorKind) -> Self {
        Self {
            kind,
            status: None,
            code: None,
            words: String::new(),
            retry_after: None,
            should_retry: None,
            request_id: None,
            key_form: None,
        }
    }

    /// Whether sending the same again may help.
    #[must_use]
    pub fn retry(&self) -> Retry {
        let passes = match self.kind {
            ProviderErrorKind::RateLimit
            | ProviderErrorKind::Overload
            | ProviderErrorKind::Timeout
            | ProviderErrorKind::Interrupted
            | ProviderErrorKind::ServerFault => true,
            ProviderErrorKind::Unreachable { stage } => {
                matches!(stage, ConnectStage::Connect | ConnectStage::Closed)
            }
            ProviderErrorKind::Unknown => self.status.is_none_or(|status| status == 409 || status >= 500),
            _ => false,
        };
        // The provider's word counts where we are not sure ourselves, and where it says no.
        let wanted = match self.should_retry {
            Some(false) => false,
            Some(true) => passes || self.kind == ProviderErrorKind::Unknown,
            None => passes,
        };
        match self.retry_after {
            _ if !wanted => Retry::No,
            Some(wait) => Retry::After(wait),
            None => Retry::Backoff,
        }
    }
}

impl ProviderErrorKind {
    /// A short name for counting and for configuration.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::PromptTooLong { .. } => "prompt_too_long",
            Self::OutputCapTooLarge { .. } => "output_cap_too_large",
            Self::PayloadTooLarge { .. } => "payload_too_large",
            Self::ImageRefused { .. } => "image_refused",
            Self::OverAllowance { .. } => "over_allowance",
            Self::RateLimit => "rate_limit",
            Self::Quota { .. } => "quota",
            Self::Auth => "auth",
            Self::Forbidden => "forbidden",
            Self::UnknownModel => "unknown_model",
            Self::Overload => "overload",
            Self::Timeout => "timeout",
            Self::ContentPolicy => "content_policy",
            Self::MalformedRequest { .. } => "malformed_request",
            Self::WrongWire { .. } => "wrong_wire",
            Self::Unreachable { .. } => "unreachable",
            Self::Interrupted => "interrupted",
            Self::ServerFault => "server_fault",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for ProviderErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PromptTooLong { window_tokens, prompt_tokens } => {
                f.write_str("the prompt is too long")?;
                match (prompt_tokens, window_tokens) {
                    (Some(prompt), Some(window)) => write!(f, ": {prompt} tokens for a window of {window}"),
                    (None, Some(window)) => write!(f, " for a window of {window} tokens"),
                    (Some(prompt), None) => write!(f, ": {prompt} tokens"),
                    (None, None) => Ok(()),
                }
            }
            Self::OutputCapTooLarge { largest_cap_tokens, .. } => {
                f.write_str("the output cap is too large")?;
                largest_cap_tokens.map_or(Ok(()), |largest| write!(f, ", at most {largest} tokens fit"))
            }
            Self::PayloadTooLarge { limit_bytes, .. } => {
                f.write_str("the request has too many bytes")?;
                limit_bytes.map_or(Ok(()), |limit| write!(f, ", at most {limit} are accepted"))
            }
            Self::ImageRefused { complaint } => f.write_str(match complaint {
                ImageComplaint::TooLarge { .. } => "a picture is too large",
                ImageComplaint::TooMany => "too many pictures",
                ImageComplaint::NotSupported => "the model does not take pictures",
                ImageComplaint::Unreadable => "a picture could not be read",
            }),
            Self::OverAllowance { allowed_tokens, .. } => {
                f.write_str("the prompt is larger than the plan allows at once")?;
                allowed_tokens.map_or(Ok(()), |allowed| write!(f, ", which is {allowed} tokens"))
            }
            Self::RateLimit => f.write_str("the rate limit is reached"),
            Self::Quota { .. } => f.write_str("the quota or credit is used up"),
            Self::Auth => f.write_str("the key was not accepted"),
            Self::Forbidden => f.write_str("the key is not allowed to do this"),
            Self::UnknownModel => f.write_str("the model is not known there"),
            Self::Overload => f.write_str("the provider is overloaded"),
            Self::Timeout => f.write_str("it took too long"),
            Self::ContentPolicy => f.write_str("refused by the provider's content policy"),
            Self::MalformedRequest { complaint } => match complaint {
                RequestComplaint::UnknownParameter { name: Some(name) } => {
                    write!(f, "the parameter `{name}` is not known there")
                }
                RequestComplaint::UnknownParameter { name: None } => {
                    f.write_str("a parameter is not known there")
                }
                RequestComplaint::ForeignReasoning => f.write_str("reasoning sent back was not accepted"),
                RequestComplaint::ToolPairing => f.write_str("tool calls and results do not pair"),
                RequestComplaint::RoleOrder => f.write_str("the order of roles was not accepted"),
                RequestComplaint::Other => f.write_str("the request was not accepted"),
            },
            Self::WrongWire { sign } => f.write_str(match sign {
                WrongWireSign::Html => "a web page answered instead of a model",
                WrongWireSign::NoSuchPath => "there is no such path at this address",
                WrongWireSign::OtherShape => "the answer is of another wire",
                WrongWireSign::NotJson => "the answer is no JSON",
                WrongWireSign::Redirect => "this address leads to another",
            }),
            Self::Unreachable { stage } => f.write_str(match stage {
                ConnectStage::Name => "the name of the host does not resolve",
                ConnectStage::Connect => "nothing answers at this address",
                ConnectStage::Tls => "no secure connection could be made",
                ConnectStage::Closed => "the connection was closed before an answer",
            }),
            Self::Interrupted => f.write_str("the answer broke off"),
            Self::ServerFault => f.write_str("the provider failed"),
            Self::Unknown => f.write_str("the call failed for a reason that is not known"),
        }
    }
}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(status) = self.status {
            write!(f, " (HTTP {status})")?;
        }
        if self.words.is_empty() { Ok(()) } else { write!(f, ": {}", self.words) }
    }
}

impl std::error::Error for ProviderError {}

/// Waits as whole milliseconds, which every language can read back.
mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(wait: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(from)?.map(Duration::from_millis))
    }
}

#[cfg(test)]
#[path = "provider_error_tests.rs"]
mod tests;
