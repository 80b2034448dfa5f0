//! The gateway: an HTTP server that any agent talks to in place of its provider.
//!
//! A request is read, its conversation is found by what it repeats, and the managed call of the engine does the rest: the
//! record, the view that fits, cache marks, recovery. Answers go back as they come, byte for byte. What is no request of a
//! known wire is passed on untouched.
//!
//! Parts: `server` connections (`tls` where they are secret), `handler` which path means what, `body_in` and `body_out` bodies, `refused` errors in the
//! form of each wire, `upstreams` who is asked, `clues` what a client says of itself, `identity` and `matching` how a
//! conversation is recognised, `seats` the conversations that are being held, `find` which of them a request belongs
//! to, `turn` one managed call, `recall` tools the gateway answers itself, `whole_events` streams that can
//! end with an error, `compact` and `count` what else a client asks for, `seal` and `let_go` what it keeps of a
//! compaction, `pass` everything else (`provider_paths` what tenants may use of it, `provider_objects` whose stored objects are),
//! `gate` who may come in (`presented` with which token, `tokens` by what, `meter` how often), `readiness` whether it can record, `api` what the
//! gateway answers itself, `news` what happens while it happens, `metrics` in figures (from `metered` calls and a
//! `counted_store`), `course` what goes along with a request, `traces` as collectors take
//! them.
//!
//! Not for: rules about context (those are the engine's), settings, terminals, home directories.

mod api;
mod auth;
mod blocking;
mod compaction;
mod config;
mod error;
mod gateway;
mod http;
mod lookup;
mod proxy;
mod recall;
mod shared;
mod telemetry;
mod tenant;

pub use auth::access_tokens::{
    AccessTokens, TOKEN_PREFIX, TokenEntry, TokenError, TokenLimits, random_token_bytes,
};
pub use auth::policy::{AccessPolicy, PeerCheck, PeerUser};
pub use compaction::seal::SealKey;
pub use config::{EngineSource, GatewayConfig, GatewayLimits, GatewaySetup};
pub use gateway::Gateway;
pub use http::server::serve;
pub use http::tls::{Tls, TlsError};
pub use proxy::provider_paths::TenantPaths;
pub use proxy::upstreams::{UpstreamSpec, Upstreams};
pub use recall::{RecallConfig, RecallFuture, RecallOffer, RecallTools};
pub use telemetry::event::{AnswerEnd, GatewayEvent, GatewayEvents, ServedRequest};
pub use telemetry::request_context::current_request;
