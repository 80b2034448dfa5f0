//! Classifies a failed call: by structured fields first, then sizes, then phrases, then the status.
//!
//! The order matters. Rates come before sizes (`60000 tokens per minute` is not a window), complaints about parameters before both (they
//! mention `max_tokens` and mean something else). A kind is only chosen if the error names it: a short message in a long conversation does
//! not prove an overflow.

use std::time::Duration;

use crate::codes;
use crate::error_body::{BodyForm, ErrorContents, head};
use crate::failure::{Failure, TransportFault};
use crate::lexemes::lexemes;
use crate::phrases::{self, cap_too_large, flat, names_cap, says};
use crate::provider_error::{
    ConnectStage, ImageComplaint, KeyForm, ProviderError, ProviderErrorKind, RequestComplaint, WrongWireSign,
};
use crate::retry_after::{from_budgets, from_headers, from_words, header};
use crate::sizes::{RequestLimits, StatedSizes, Verdict};

/// The longest part of an error text that is stored.
const MOST_WORDS_BYTES: usize = 600;

impl ProviderError {
    /// Classifies a failed call.
    #[must_use]
    pub fn classify(failure: Failure<'_>, limits: RequestLimits) -> ProviderError {
        match failure {
            Failure::Transport(fault) => ProviderError::of(match fault {
                TransportFault::Name => ProviderErrorKind::Unreachable { stage: ConnectStage::Name },
                TransportFault::Connect => ProviderErrorKind::Unreachable { stage: ConnectStage::Connect },
                TransportFault::Tls => ProviderErrorKind::Unreachable { stage: ConnectStage::Tls },
                TransportFault::Closed => ProviderErrorKind::Unreachable { stage: ConnectStage::Closed },
                TransportFault::FirstByteTimeout | TransportFault::Silence => ProviderErrorKind::Timeout,
                TransportFault::Cut => ProviderErrorKind::Interrupted,
                TransportFault::Garbled => ProviderErrorKind::WrongWire { sign: WrongWireSign::NotJson },
            }),
            Failure::Event { data } => ErrorCase::new(None, &[], data.as_bytes(), limits).trouble(),
            Failure::Answer { status, headers, body } => {
                ErrorCase::new(Some(status), headers, body, limits).trouble()
            }
        }
    }
}

/// A failure with everything that helps to classify it.
struct ErrorCase<'a> {
    /// The status of the answer, or the one named inside it.
    status: Option<u16>,
    told_status: Option<u16>,
    headers: &'a [(&'a str, &'a str)],
    said: ErrorContents,
    line: String,
    sizes: StatedSizes,
    limits: RequestLimits,
}

impl<'a> ErrorCase<'a> {
    fn new(
        status: Option<u16>,
        headers: &'a [(&'a str, &'a str)],
        body: &[u8],
        limits: RequestLimits,
    ) -> Self {
        let mut said = ErrorContents::read(body);
        if let Some(kind) = header(headers, "x-amzn-errortype") {
            said.codes.insert(0, kind.split(':').next().unwrap_or_default().to_ascii_lowercase());
        }
        // A stream or a gateway that answers 200 names the real status in the body.
        let inner =
            said.codes.iter().find_map(|code| code.parse().ok().filter(|code| (400..=599).contains(code)));
        let effective = match status {
            None | Some(200..=299) => inner.or(status),
            Some(_) => status,
        };
        let found = lexemes(&said.words());
        let mut sizes = StatedSizes::read(&found);
        sizes.window = said.window_tokens.or(sizes.window);
        sizes.prompt = said.prompt_tokens.or(sizes.prompt);
        Self { status: effective, told_status: status, headers, line: flat(&found), said, sizes, limits }
    }

    fn trouble(&self) -> ProviderError {
        let kind = self.kind();
        let retry_after = self.retry_after(&kind);
        let key_form = if kind == ProviderErrorKind::Auth { self.key_form() } else { None };
        ProviderError {
            kind,
            key_form,
            status: self.told_status,
            code: self.code(),
            words: one_line(self.said.best_text()),
            retry_after,
            should_retry: match header(self.headers, "x-should-retry") {
                Some("true") => Some(true),
                Some("false") => Some(false),
                _ => None,
            },
            request_id: ["request-id", "x-request-id", "x-amzn-requestid", "cf-ray"]
                .iter()
                .find_map(|name| header(self.headers, name))
                .map(str::to_owned)
                .or_else(|| self.said.request_id.clone()),
        }
    }

    /// How the provider expects its key; `None` if it names both ways.
    fn key_form(&self) -> Option<KeyForm> {
        let by_header = self.says(&["x-api-key"]);
        let as_bearer = self.says(&["bearer", "authorization header"]);
        match (by_header, as_bearer) {
            (true, false) => Some(KeyForm::ApiKeyHeader),
            (false, true) => Some(KeyForm::Bearer),
            _ => None,
        }
    }

    fn kind(&self) -> ProviderErrorKind {
        self.by_form()
            .or_else(|| self.by_policy())
            .or_else(|| self.by_code())
            .or_else(|| self.by_rate())
            .or_else(|| self.by_parameter())
            .or_else(|| self.by_image())
            .or_else(|| self.by_size())
            .or_else(|| self.by_payload())
            .or_else(|| self.by_overflow_phrase())
            .or_else(|| self.by_phrase())
            .or_else(|| self.by_status())
            .unwrap_or(ProviderErrorKind::Unknown)
    }

    fn says(&self, phrases: &[&str]) -> bool {
        says(&self.line, phrases)
    }

    fn status_is(&self, wanted: &[u16]) -> bool {
        self.status.is_some_and(|status| wanted.contains(&status))
    }

    /// Classifies web pages and JSON that is not an error.
    fn by_form(&self) -> Option<ProviderErrorKind> {
        let well = self.status.is_none_or(|status| status < 400);
        if self.status.is_some_and(|status| (300..400).contains(&status)) {
            return Some(ProviderErrorKind::WrongWire { sign: WrongWireSign::Redirect });
        }
        match self.said.form {
            BodyForm::Html if self.status_is(&[401]) => Some(ProviderErrorKind::Auth),
            BodyForm::Html if self.status_is(&[403]) => Some(ProviderErrorKind::Forbidden),
            BodyForm::Html if self.status_is(&[404, 405]) => {
                Some(ProviderErrorKind::WrongWire { sign: WrongWireSign::NoSuchPath })
            }
            BodyForm::Html if self.status_is(&[408, 413, 429]) => None,
            BodyForm::Html if self.status.is_some_and(|status| status >= 500) => None,
            BodyForm::Html => Some(ProviderErrorKind::WrongWire { sign: WrongWireSign::Html }),
            BodyForm::OtherJson if well => {
                Some(ProviderErrorKind::WrongWire { sign: WrongWireSign::OtherShape })
            }
            BodyForm::Text | BodyForm::Empty if well && self.told_status.is_some() => {
                Some(ProviderErrorKind::WrongWire { sign: WrongWireSign::NotJson })
            }
            _ => None,
        }
    }

    fn by_policy(&self) -> Option<ProviderErrorKind> {
        let refused = self.said.has_code(codes::POLICY) || self.says(phrases::POLICY);
        // A plan's data policy is about the account, not about the content.
        (refused && !self.says(&["data policy"])).then_some(ProviderErrorKind::ContentPolicy)
    }

    fn by_code(&self) -> Option<ProviderErrorKind> {
        let has = |codes: &[&str]| self.said.has_code(codes);
        if has(codes::OVERFLOW) || (self.said.window_tokens.is_some() && self.said.prompt_tokens.is_some()) {
            return Some(self.overflow());
        }
        // Gemini says "quota" for a limit that resets within a minute, and states when.
        let refills = self.said.retry_after.is_some_and(|wait| wait <= Duration::from_secs(120));
        if has(codes::QUOTA) && !refills {
            return Some(self.quota());
        }
        if has(codes::AUTH) {
            return Some(ProviderErrorKind::Auth);
        }
        if has(codes::UNKNOWN_MODEL) {
            return Some(ProviderErrorKind::UnknownModel);
        }
        if has(codes::OVERLOAD) {
            return Some(ProviderErrorKind::Overload);
        }
        if has(codes::THROTTLED) {
            return Some(ProviderErrorKind::RateLimit);
        }
        has(codes::TIMEOUT).then_some(ProviderErrorKind::Timeout)
    }

    /// Classifies rate limits and plans. Before sizes, because their numbers look like windows.
    fn by_rate(&self) -> Option<ProviderErrorKind> {
        let over = ProviderErrorKind::OverAllowance {
            allowed_tokens: self.sizes.allowance,
            asked_tokens: self.sizes.asked,
        };
        if self.says(phrases::LONG_CONTEXT_PLAN) {
            return Some(over);
        }
        let rate =
            self.says(phrases::RATE) || self.said.has_code(&["rate_limit_error", "rate_limit_exceeded"]);
        if rate && self.says(phrases::LARGER_THAN_RATE) {
            return Some(over);
        }
        if self.status_is(&[429]) || (rate && !self.status_is(&[401, 402, 403, 404, 413])) {
            let refills = self.waits_shortly() || self.says(&["per minute", " rpm ", " tpm "]);
            return Some(if self.says(phrases::OVERLOAD) {
                ProviderErrorKind::Overload
            } else if self.says(phrases::QUOTA) && !refills {
                self.quota()
            } else {
                ProviderErrorKind::RateLimit
            });
        }
        if self.status_is(&[402]) {
            let passes = self.says(&["try again", "retry", "reset"]) && !self.says(&["credit", "balance"]);
            return Some(if passes { ProviderErrorKind::RateLimit } else { self.quota() });
        }
        None
    }

    fn waits_shortly(&self) -> bool {
        let wait = self.said.retry_after.or_else(|| from_words(&self.said.words()));
        wait.is_some_and(|wait| wait <= Duration::from_secs(120))
    }

    /// Classifies unknown parameters. Before sizes: such texts name `max_tokens`, but the complaint is about the name.
    fn by_parameter(&self) -> Option<ProviderErrorKind> {
        let unknown = self.says(phrases::UNKNOWN_PARAMETER) && !self.says(&["image", "model not found"]);
        unknown.then(|| ProviderErrorKind::MalformedRequest {
            complaint: RequestComplaint::UnknownParameter {
                name: self.said.parameter.clone().or_else(|| self.quoted()),
            },
        })
    }

    /// The name in quotes after `parameter`, as OpenAI and others write it.
    fn quoted(&self) -> Option<String> {
        let text = self.said.best_text();
        let at = text.find(['\'', '`', '"'])?;
        let quote = text[at..].chars().next()?;
        let rest = &text[at + quote.len_utf8()..];
        let name = &rest[..rest.find(quote)?];
        let fits = !name.is_empty() && name.len() <= 80 && !name.contains(char::is_whitespace);
        fits.then(|| name.to_owned())
    }

    fn by_image(&self) -> Option<ProviderErrorKind> {
        let pictures = self.says(&["image", "picture", "vision", "media"]);
        if !pictures || self.status_is(&[401, 402, 403, 404, 429]) {
            return None;
        }
        let complaint = if self.says(&["too many images", "many images", "number of images"]) {
            ImageComplaint::TooMany
        } else if self.says(&[
            "image exceeds",
            "image dimensions exceed",
            "image size",
            "image too large",
            "image is too large",
            "max allowed size",
            "image_too_large",
            "larger than the maximum image",
        ]) {
            ImageComplaint::TooLarge { limit_bytes: self.sizes.byte_limit }
        } else if self.says(&[
            "image input is not supported",
            "does not support image",
            "not support image",
            "images are not supported",
            "image_url is only supported",
            "only supported by certain models",
            "does not support vision",
            "not a multimodal model",
            "no endpoints found that support image",
            "image inputs are not supported",
        ]) {
            ImageComplaint::NotSupported
        } else if self.says(&[
            "could not process image",
            "invalid image",
            "unable to process input image",
            "failed to decode image",
            "invalid_image",
            "image does not match the provided media type",
        ]) {
            ImageComplaint::Unreadable
        } else {
            return None;
        };
        Some(ProviderErrorKind::ImageRefused { complaint })
    }

    /// Whether this answer can be about sizes at all.
    fn may_be_about_size(&self) -> bool {
        !self.status_is(&[401, 403, 404, 405, 407, 408])
    }

    fn by_size(&self) -> Option<ProviderErrorKind> {
        if !self.may_be_about_size() {
            return None;
        }
        match self.sizes.verdict(self.limits) {
            // A limit on a value is a limit on the output only if the error names the output limit.
            Verdict::Cap { largest, window, prompt }
                if self.sizes.largest_cap.is_none() || self.is_about_cap() =>
            {
                Some(ProviderErrorKind::OutputCapTooLarge {
                    largest_cap_tokens: largest,
                    window_tokens: window,
                    prompt_tokens: prompt,
                })
            }
            Verdict::Prompt { window, prompt } => {
                Some(ProviderErrorKind::PromptTooLong { window_tokens: window, prompt_tokens: prompt })
            }
            _ => None,
        }
    }

    fn is_about_cap(&self) -> bool {
        names_cap(&self.line)
            || self.says(&["output tokens", "completion tokens", "available_tokens"])
            || self.said.parameter.as_deref().is_some_and(|name| names_cap(&name.to_ascii_lowercase()))
    }

    fn by_payload(&self) -> Option<ProviderErrorKind> {
        let large = self.status_is(&[413])
            || self.says(phrases::PAYLOAD)
            || self.said.has_code(&["request_too_large", "string_above_max_length"]);
        let tokens = self.says_prompt_too_long();
        (large && !tokens && self.may_be_about_size()).then_some(ProviderErrorKind::PayloadTooLarge {
            limit_bytes: self.sizes.byte_limit,
            sent_bytes: self.sizes.bytes_sent,
        })
    }

    fn says_prompt_too_long(&self) -> bool {
        self.says(phrases::PROMPT_TOO_LONG) || phrases::length_of_prompt_exceeded(&self.line)
    }

    fn by_overflow_phrase(&self) -> Option<ProviderErrorKind> {
        if !self.may_be_about_size() {
            return None;
        }
        if self.says_prompt_too_long() {
            return Some(self.overflow());
        }
        let empty_answer = self.says(&["empty response", "no content", "empty content"]);
        (cap_too_large(&self.line) && !empty_answer).then_some(ProviderErrorKind::OutputCapTooLarge {
            largest_cap_tokens: None,
            window_tokens: None,
            prompt_tokens: self.sizes.prompt,
        })
    }

    /// Classifies an overflow. The sizes decide which part is too large.
    fn overflow(&self) -> ProviderErrorKind {
        self.by_size().unwrap_or_else(|| ProviderErrorKind::PromptTooLong {
            window_tokens: self.sizes.certain_limit(),
            prompt_tokens: self.sizes.stated_prompt(),
        })
    }

    fn quota(&self) -> ProviderErrorKind {
        ProviderErrorKind::Quota { affordable_tokens: self.sizes.allowance }
    }

    fn by_phrase(&self) -> Option<ProviderErrorKind> {
        // A permanent refusal that mentions a timeout is about a setting of that name.
        let passing =
            self.status.is_none_or(|status| !(400..500).contains(&status)) || self.status_is(&[408, 409]);
        let forbids = self.status_is(&[403]) || self.status.is_none();
        let malformed = |complaint| ProviderErrorKind::MalformedRequest { complaint };
        if self.says(phrases::QUOTA) {
            Some(self.quota())
        } else if self.says(phrases::AUTH) && !self.status_is(&[404]) {
            Some(ProviderErrorKind::Auth)
        } else if self.says(phrases::UNKNOWN_MODEL) || self.is_missing_model() {
            Some(ProviderErrorKind::UnknownModel)
        } else if self.says(phrases::NO_SUCH_PATH) {
            Some(ProviderErrorKind::WrongWire { sign: WrongWireSign::NoSuchPath })
        } else if self.says(phrases::FOREIGN_REASONING) {
            Some(malformed(RequestComplaint::ForeignReasoning))
        } else if self.says(phrases::TOOL_PAIRING) {
            Some(malformed(RequestComplaint::ToolPairing))
        } else if self.says(phrases::ROLE_ORDER) {
            Some(malformed(RequestComplaint::RoleOrder))
        } else if self.says(phrases::OVERLOAD) && passing {
            Some(ProviderErrorKind::Overload)
        } else if self.says(phrases::TIMEOUT) && passing {
            Some(ProviderErrorKind::Timeout)
        } else if self.says(phrases::FORBIDDEN) && forbids {
            Some(ProviderErrorKind::Forbidden)
        } else {
            None
        }
    }

    /// `model 'x' not found`, `The model x does not exist`, `model: x` under a `not_found_error`.
    fn is_missing_model(&self) -> bool {
        let words: Vec<&str> = self.line.split_whitespace().collect();
        let model =
            words.iter().position(|word| matches!(*word, "model" | "models") || word.starts_with("models/"));
        let Some(at) = model else { return false };
        let near = words.iter().skip(at).take(8).copied().collect::<Vec<_>>().join(" ");
        says(&near, &["not found", "does not exist", "not exist", "doesn't exist", "is not available"])
            || (self.said.has_code(&["not_found_error", "not_found"]) && self.status_is(&[404]))
    }

    fn by_status(&self) -> Option<ProviderErrorKind> {
        let malformed = ProviderErrorKind::MalformedRequest { complaint: RequestComplaint::Other };
        let code = |codes: &[&str]| self.said.has_code(codes);
        Some(match self.status {
            Some(401 | 407) => ProviderErrorKind::Auth,
            Some(402) => self.quota(),
            Some(403) => ProviderErrorKind::Forbidden,
            Some(404 | 405 | 501) => ProviderErrorKind::WrongWire { sign: WrongWireSign::NoSuchPath },
            Some(408 | 504 | 522 | 524) => ProviderErrorKind::Timeout,
            Some(429) => ProviderErrorKind::RateLimit,
            Some(498 | 503 | 529) => ProviderErrorKind::Overload,
            // A bare status says nothing: some providers answer an overflow that way.
            Some(400 | 422) if self.said.texts.is_empty() => return None,
            Some(400 | 415 | 422) => malformed,
            Some(500..=599) => ProviderErrorKind::ServerFault,
            _ if code(&["rate_limit_error", "rate_limit_exceeded"]) => ProviderErrorKind::RateLimit,
            _ if code(&["permission_error", "permission_denied", "accessdeniedexception"]) => {
                ProviderErrorKind::Forbidden
            }
            _ if code(&["invalid_request_error", "validationexception", "invalid_argument"]) => malformed,
            _ if code(&["api_error", "server_error", "internal_server_error", "internalserverexception"]) => {
                ProviderErrorKind::ServerFault
            }
            _ => return None,
        })
    }

    fn retry_after(&self, kind: &ProviderErrorKind) -> Option<Duration> {
        let waits = matches!(
            kind,
            ProviderErrorKind::RateLimit
                | ProviderErrorKind::Overload
                | ProviderErrorKind::Quota { .. }
                | ProviderErrorKind::ServerFault
                | ProviderErrorKind::Timeout
                | ProviderErrorKind::Unknown
        );
        let told = || {
            from_headers(self.headers)
                .or(self.said.retry_after)
                .or_else(|| from_words(&self.said.words()))
                .or_else(|| from_budgets(self.headers))
        };
        if waits { told() } else { None }
    }

    /// Returns the most specific code. A generic one is used only if there is no other.
    fn code(&self) -> Option<String> {
        const GENERIC: [&str; 5] =
            ["invalid_request_error", "badrequesterror", "api_error", "bad_request", "invalid_argument"];
        // `response.failed` and `failed` name the event, not the reason.
        let is_event = |code: &str| code == "error" || code == "failed" || code.starts_with("response.");
        let named = || self.said.codes.iter().filter(|code| code.parse::<u32>().is_err() && !is_event(code));
        named()
            .find(|code| !GENERIC.contains(&code.as_str()))
            .or_else(|| named().next())
            .or_else(|| self.said.codes.first())
            .cloned()
    }
}

/// Returns a text as one line of bounded length.
fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let kept = head(&line, MOST_WORDS_BYTES);
    if kept.len() < line.len() { format!("{kept}…") } else { line }
}

#[cfg(test)]
#[path = "classify_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "classify_kind_tests.rs"]
mod kind_tests;

#[cfg(test)]
#[path = "classify_property_tests.rs"]
mod property_tests;
