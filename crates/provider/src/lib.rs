//! Calls to models: endpoints, HTTP, classified errors, prompt caching and the reasons of cache misses, the size of a window, and the order
//! of requests to a server with few slots.
//!
//! [`Endpoint`] is the address of a model; [`Client`] sends an [`OutgoingCall`] there and returns a [`Reply`], within time limits and with
//! retries until the first part of an answer was passed on. [`ProviderError::classify`] reads a failure; the
//! kind of the error decides what to do, and [`ProviderError::advice`] returns text for the user. [`CacheMarks`] places marks as the last step before sending; [`CacheOutcome`] is the
//! reason why a prompt was not read from the cache; [`PrefixCache`] predicts what would be read. [`WindowFacts`] resolves a window.
//!
//! For programs that call models and handle every kind of failure.
//!
//! ```
//! use throughline_provider::{RequestLimits, Failure, ProviderError, ProviderErrorKind};
//!
//! let body = br#"{"error":{"message":"prompt is too long: 208310 tokens > 200000 maximum"}}"#;
//! let error = ProviderError::classify(Failure::Answer { status: 400, headers: &[], body }, RequestLimits::default());
//! let overflow =
//!     ProviderErrorKind::PromptTooLong { window_tokens: Some(200_000), prompt_tokens: Some(208_310) };
//! assert_eq!(error.kind, overflow);
//! ```
//!
//! Not for: recovery from errors (the engine), and the form of requests and answers (`throughline-wire`).

mod advice;
#[cfg(feature = "client")]
mod ask;
mod cache_marks;
mod cache_miss;
mod cache_model;
mod cache_policy;
mod call;
mod classify;
#[cfg(feature = "client")]
mod client;
mod codes;
#[cfg(any(test, feature = "client"))]
mod codex;
mod endpoint;
mod endpoint_url;
mod error_body;
mod failure;
mod fingerprint;
#[cfg(feature = "client")]
mod headers;
#[cfg(feature = "client")]
mod held;
mod json_edit;
mod lexemes;
#[cfg(feature = "client")]
mod pass_on;
mod phrases;
mod provider_error;
#[cfg(feature = "client")]
mod reader;
#[cfg(feature = "client")]
mod reply;
mod retry_after;
mod secret;
mod send_state;
#[cfg(feature = "client")]
mod sent_secrets;
mod sizes;
#[cfg(feature = "client")]
mod slots;
#[cfg(feature = "client")]
mod tool_loading;
#[cfg(feature = "client")]
mod transport;
mod window;
mod window_answers;
mod wordings;

#[cfg(feature = "client")]
pub use ask::ListedModel;
pub use cache_marks::{CacheMarks, PlacedMarks, UnmarkedRequest};
pub use cache_miss::{CacheOutcome, CacheRules, SentPrompt};
pub use cache_model::{CacheStyle, MarkComplaint, PrefixCache, PricedPrompt};
pub use cache_policy::{CachePolicy, CacheSeller, CacheTtl, MarkLayout};
pub use call::{CallEnd, CallError, Chunk, HoldBack, OutgoingCall, Refusal, RetryLimits, TimeLimits};
#[cfg(feature = "client")]
pub use client::{Client, ClientOptions};
pub use endpoint::{Endpoint, EndpointError, EndpointKind, EndpointSettings, KeySource};
pub use endpoint_url::BaseUrl;
pub use failure::Failure;
pub use fingerprint::{Fingerprint, PieceHash};
#[cfg(feature = "client")]
pub use held::HoldLimits;
#[cfg(feature = "client")]
pub use pass_on::{PassedReply, PassedRequest};
pub use provider_error::{
    ConnectStage, ImageComplaint, ProviderError, ProviderErrorKind, RequestComplaint, Retry, WrongWireSign,
};
#[cfg(feature = "client")]
pub use reply::Reply;
pub use secret::SecretKey;
pub use send_state::Priority;
pub use sizes::RequestLimits;
#[cfg(feature = "client")]
pub use slots::{ServerSlots, Slots};
pub use window::{EndpointWindow, ResolvedWindow, WindowFacts, WindowQuestion, WindowRoom, WindowSource};
