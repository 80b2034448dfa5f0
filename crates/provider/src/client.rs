//! Sends calls, with time limits, retries and cancellation.
//!
//! A call is retried only while no part of its answer was passed on. Redirects are not followed, because they would send the key to another
//! server. Not for: the content of a call, and recovery from errors.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use throughline_wire::Streaming;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::call::{CallEnd, CallError, FailedAttempt, OutgoingCall, RetryLimits, TimeLimits};
use crate::codex;
use crate::endpoint::{Endpoint, EndpointKind};
use crate::failure::TransportFault;
use crate::headers::headers_of;
use crate::held::{HoldBudget, HoldLimits};
use crate::provider_error::{ProviderError, ProviderErrorKind, RequestComplaint, Retry};
use crate::reply::{BrokenCall, Opening, Reply};
use crate::sent_secrets::SentSecrets;
use crate::slots::Slots;
use crate::transport::{Stage, fault_of};

/// The options of a client.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The time limits.
    pub limits: TimeLimits,
    /// The limits on retries.
    pub retries: RetryLimits,
    /// The address of an HTTP proxy for all requests.
    pub proxy: Option<String>,
    /// The seed for random variations of waits.
    pub jitter_seed: u64,
}

/// Why a client cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The proxy's address is invalid.
    #[error("the proxy's address cannot be used")]
    Proxy(#[source] reqwest::Error),
    /// TLS cannot be set up.
    #[error("the HTTP client cannot be set up")]
    Setup(#[source] reqwest::Error),
}

/// Sends calls. Cloning it shares connections.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    limits: TimeLimits,
    retries: RetryLimits,
    jitter: std::sync::Arc<AtomicU64>,
    /// The memory budget for answers, shared by all clones.
    hold: HoldBudget,
    slots: Slots,
}

impl Client {
    /// Installs the cryptography provider of TLS for this process, unless there is one already. Needed before any HTTP client is built.
    pub fn install_crypto() {
        // The call fails if another part of the process has installed one, which does no harm.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }

    /// Builds a client.
    pub fn new(options: ClientOptions) -> Result<Self, ClientError> {
        Self::install_crypto();
        let mut builder = reqwest::Client::builder()
            .connect_timeout(options.limits.connect)
            .redirect(reqwest::redirect::Policy::none())
            .tcp_keepalive(Duration::from_secs(30))
            .user_agent(concat!("throughline/", env!("CARGO_PKG_VERSION")))
            .no_proxy();
        if let Some(address) = &options.proxy {
            builder = builder.proxy(reqwest::Proxy::all(address).map_err(ClientError::Proxy)?);
        }
        Ok(Self {
            http: builder.build().map_err(ClientError::Setup)?,
            limits: options.limits,
            retries: options.retries,
            jitter: std::sync::Arc::new(AtomicU64::new(options.jitter_seed)),
            hold: HoldBudget::default(),
            slots: Slots::default(),
        })
    }

    /// Returns a client with the same connections and other memory limits for answers. The count starts at zero.
    #[must_use]
    pub fn with_hold_limits(&self, limits: HoldLimits) -> Self {
        Self { hold: HoldBudget::new(limits), ..self.clone() }
    }

    /// Returns the client with these server slots, which it shares.
    #[must_use]
    pub fn with_slots(self, slots: Slots) -> Self {
        Self { slots, ..self }
    }

    /// Returns the slots of the servers it sends to.
    #[must_use]
    pub fn slots(&self) -> &Slots {
        &self.slots
    }

    /// Returns a client with the same connections and other limits.
    #[must_use]
    pub fn with_limits(&self, limits: TimeLimits, retries: RetryLimits) -> Self {
        Self { limits, retries, ..self.clone() }
    }

    /// Sends a call and waits for the beginning of its answer, or all of it if no stream was requested. Dropping the future or the returned
    /// reply ends the call; so does `cancel`.
    pub async fn send(
        &self,
        endpoint: &Endpoint,
        call: &OutgoingCall,
        cancel: &CancellationToken,
    ) -> Result<Reply, CallError> {
        let mut attempts: Vec<FailedAttempt> = Vec::new();
        loop {
            let BrokenCall { end, partial, refusal } = match self.attempt(endpoint, call, cancel).await {
                Ok(mut reply) => {
                    tracing::debug!(attempt = attempts.len() + 1, "the answer began");
                    reply.set_attempts(attempts);
                    return Ok(reply);
                }
                Err(broken) => *broken,
            };
            let wait = match &end {
                CallEnd::Failed(trouble) => self.wait_before_next(trouble, &attempts),
                CallEnd::Cancelled => None,
            };
            tracing::debug!(attempt = attempts.len() + 1, ?end, ?wait, "no answer");
            let (Some(wait), CallEnd::Failed(trouble)) = (wait, &end) else {
                return Err(CallError { end, partial, refusal, attempts });
            };
            attempts.push(FailedAttempt { trouble: (**trouble).clone(), waited: wait });
            tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    return Err(CallError { end: CallEnd::Cancelled, partial, refusal, attempts });
                }
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    async fn attempt(
        &self,
        endpoint: &Endpoint,
        call: &OutgoingCall,
        cancel: &CancellationToken,
    ) -> Result<Reply, Box<BrokenCall>> {
        let request = self.request(endpoint, call).map_err(|trouble| BrokenCall::failed(*trouble))?;
        call.send_state.queued();
        let slot = self.slots.acquire(endpoint, call.priority, self.limits.first_byte, cancel).await;
        let slot = slot.map_err(|_| BrokenCall::cancelled())?;
        call.send_state.sent();
        let cancel = &slot.cancel;
        let began = Instant::now();
        let limit = match call.streaming {
            Streaming::Streamed => self.limits.first_byte,
            Streaming::Whole => self.limits.whole,
        };
        let deadline = began + limit;
        let response = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(BrokenCall::cancelled()),
            response = timeout_at(deadline, self.http.execute(request)) => response,
        };
        let response = match response {
            Err(_) => return Err(BrokenCall::transport(TransportFault::FirstByteTimeout)),
            Ok(Err(error)) => return Err(BrokenCall::transport(fault_of(&error, Stage::Sending))),
            Ok(Ok(response)) => response,
        };
        let opening = Opening {
            call,
            secrets: SentSecrets::of(endpoint, &call.headers, call.query.as_deref()),
            cancel: cancel.clone(),
            hold: self.hold.clone(),
            limits: self.limits,
            began,
            first_byte_deadline: deadline,
        };
        let mut reply = opening.read(response).await?;
        reply.hold(slot);
        Ok(reply)
    }

    fn request(
        &self,
        endpoint: &Endpoint,
        call: &OutgoingCall,
    ) -> Result<reqwest::Request, Box<ProviderError>> {
        let unsendable = |words: String| {
            let kind = ProviderErrorKind::MalformedRequest { complaint: RequestComplaint::Other };
            Box::new(ProviderError { words, ..ProviderError::of(kind) })
        };
        let mut url = endpoint.base.of_wire(call.wire_format);
        if let Some(query) = &call.query {
            url.push('?');
            url.push_str(query);
        }
        let headers = headers_of(endpoint, call)
            .map_err(|name| unsendable(format!("header `{name}` cannot be sent")))?;
        let body = match std::str::from_utf8(&call.body) {
            Ok(text) if endpoint.kind == EndpointKind::OpenAiCodex => match codex::body_for(text) {
                Cow::Borrowed(_) => call.body.clone(),
                Cow::Owned(changed) => changed.into(),
            },
            _ => call.body.clone(),
        };
        let request = self.http.post(url).headers(headers).body(body).build();
        request.map_err(|error| unsendable(error.without_url().to_string()))
    }

    /// Returns the wait before a retry; `None` if a retry is useless or the limit is reached.
    fn wait_before_next(&self, trouble: &ProviderError, before: &[FailedAttempt]) -> Option<Duration> {
        let tried = u32::try_from(before.len()).unwrap_or(u32::MAX).saturating_add(1);
        let most = match trouble.kind {
            ProviderErrorKind::Timeout => self.retries.attempts_after_timeout,
            _ => self.retries.attempts,
        };
        if tried >= most {
            return None;
        }
        match trouble.retry() {
            Retry::No => None,
            Retry::After(wait) if wait > self.retries.longest_wait => None,
            // Other clients got the same answer; they should not all return at the same moment.
            Retry::After(wait) => Some(wait + wait.mul_f64(0.1 * self.random())),
            Retry::Backoff => {
                let doubled = self.retries.first_wait.saturating_mul(2u32.saturating_pow(tried - 1));
                Some(doubled.min(self.retries.longest_wait).mul_f64(0.5 + 0.5 * self.random()))
            }
        }
    }

    /// Returns a random number between zero and one.
    fn random(&self) -> f64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut bits = self.jitter.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn limits(&self) -> TimeLimits {
        self.limits
    }

    pub(crate) fn http(&self) -> &reqwest::Client {
        &self.http
    }
}
