//! The kinds of errors of a call, chosen by what can be done about them.
//!
//! Not for: classification (`classify`), and recovery (the caller).

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A failed call, classified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderError {
    /// The kind of error.
    pub kind: ProviderErrorKind,
    /// The HTTP status, if there was a response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The provider's own code for it, such as `context_length_exceeded`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The provider's own words, shortened.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub words: String,
    /// How long the provider asks clients to wait.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "millis")]
    pub retry_after: Option<Duration>,
    /// Whether the provider states that a retry helps or does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub should_retry: Option<bool>,
    /// The provider's id of this request, for its support.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// How the provider expects its key, if a refusal says so. Read from its text before keys are masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_form: Option<KeyForm>,
}

/// A way to send a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyForm {
    /// In the header `x-api-key`, as in the Anthropic format.
    ApiKeyHeader,
    /// As a bearer token in the header `authorization`, as in the other formats.
    Bearer,
}

/// Kinds of errors. Numbers are present only if the provider stated them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ProviderErrorKind {
    /// The prompt does not fit, regardless of the output limit. A smaller prompt helps.
    PromptTooLong {
        /// The window, or the largest prompt if the provider limits that separately.
        window_tokens: Option<u64>,
        /// The size of the prompt. Never a window.
        prompt_tokens: Option<u64>,
    },
    /// The prompt fits, but the output limit does not. A lower limit helps; a smaller prompt is not needed.
    OutputCapTooLarge {
        /// The largest output limit that will be accepted.
        largest_cap_tokens: Option<u64>,
        /// The window, if the output limit was too large for it rather than for the model.
        window_tokens: Option<u64>,
        /// The size of the prompt.
        prompt_tokens: Option<u64>,
    },
    /// The request has too many bytes, however many tokens that is.
    PayloadTooLarge {
        /// The number of bytes accepted.
        limit_bytes: Option<u64>,
        /// The number of bytes sent.
        sent_bytes: Option<u64>,
    },
    /// An image was refused.
    ImageRefused {
        /// What the provider objects to.
        complaint: ImageComplaint,
    },
    /// The plan does not allow a prompt of this size at once. A smaller prompt helps, waiting does not.
    OverAllowance {
        /// The size that the plan allows.
        allowed_tokens: Option<u64>,
        /// The size of the request.
        asked_tokens: Option<u64>,
    },
    /// Too many requests or tokens within a period. Waiting helps.
    RateLimit,
    /// The account has no credit left, or a plan is used up.
    Quota {
        /// The output limit that the account could still pay for.
        affordable_tokens: Option<u64>,
    },
    /// The key is missing, wrong or expired.
    Auth,
    /// The key is valid, but not for this.
    Forbidden,
    /// The provider does not have this model, or has not loaded one.
    UnknownModel,
    /// The provider is overloaded.
    Overload,
    /// The call timed out.
    Timeout,
    /// The provider refuses to answer for reasons of policy.
    ContentPolicy,
    /// The request is invalid.
    MalformedRequest {
        /// The problem, as far as known.
        complaint: RequestComplaint,
    },
    /// The server at the address uses another wire format.
    WrongWire {
        /// How that was detected.
        sign: WrongWireSign,
    },
    /// No server answers there.
    Unreachable {
        /// The stage at which the connection failed.
        stage: ConnectStage,
    },
    /// The answer broke off.
    Interrupted,
    /// The provider failed without a stated reason.
    ServerFault,
    /// The kind could not be determined.
    Unknown,
}

/// Why an image was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageComplaint {
    /// Too many bytes or pixels.
    TooLarge {
        /// The maximum size, if stated.
        limit_bytes: Option<u64>,
    },
    /// Too many images.
    TooMany,
    /// The model does not accept images.
    NotSupported,
    /// The image could not be decoded.
    Unreadable,
}

/// What is wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestComplaint {
    /// A parameter unknown to the model or the provider.
    UnknownParameter {
        /// Its name, if stated.
        name: Option<String>,
    },
    /// Reasoning that was sent back was changed, or is from another provider.
    ForeignReasoning,
    /// Tool calls and their results do not pair.
    ToolPairing,
    /// The provider refuses the order of the roles.
    RoleOrder,
    /// Something else.
    Other,
}

/// How it was detected that the server uses another wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WrongWireSign {
    /// The response was a web page.
    Html,
    /// The path does not exist, or not for this method.
    NoSuchPath,
    /// The response was JSON of another format.
    OtherShape,
    /// The response was not JSON.
    NotJson,
    /// The response was a redirect to another address, which does not get the key.
    Redirect,
}

/// The stage at which a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConnectStage {
    /// The name does not resolve.
    Name,
    /// No server listens, or it did not accept the connection in time.
    Connect,
    /// No common encryption, or an untrusted certificate.
    Tls,
    /// The connection was closed before any response.
    Closed,
}

/// Whether resending the same request may help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Not as it is.
    No,
    /// After a wait of our choice.
    Backoff,
    /// After the wait that the provider stated.
    After(Duration),
}

impl ProviderError {
    /// An error of a kind, without further details.
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

    /// Returns whether resending the same request may help.
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
        // The provider's statement decides if the kind does not, and if it rules out a retry.
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
    /// Returns a short name for counting and for configuration.
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

/// Serialises waits as whole milliseconds, which every language can read.
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
