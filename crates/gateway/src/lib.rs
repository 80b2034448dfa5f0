//! The gateway: an HTTP server that any agent talks to in place of its provider.
//!
//! A request is read, its session is found by the messages it repeats, and the engine makes the managed call: it records
//! the messages, sends the view that fits, sets cache marks and recovers from errors. Answers go back as they arrive, byte
//! for byte. Requests of other kinds pass through unchanged.
//!
//! The path of a request, top down: `http::server` accepts a connection, `http::router` decides what the path means,
//! `auth::admission` checks who sends it, `http::request_body` reads it, `proxy::call` makes the managed call
//! (`proxy::managed_request` parses it, `lookup::session_lookup` finds its session, `proxy::client_history` separates new
//! messages from repeated ones), and `proxy::response_stream` sends the answer back.
//!
//! Parts:
//! - `http`: connections, TLS, routes, bodies, headers
//! - `auth`: access tokens, rate limits, spend limits
//! - `lookup`: which session a request belongs to, and the pool of open sessions
//! - `proxy`: managed calls, pass-through, upstreams, paths and objects of providers
//! - `compaction`: compactions that a client requests, and the sealed item it keeps
//! - `recall`: tools that the gateway answers itself
//! - `api`: the gateway's own API under `/api`
//! - `ui`: the web page under `/ui/`; `operator`: what only the program around the gateway can do
//! - `telemetry`: events, metrics, traces
//! - `shared` and `tenant`: state of the whole gateway, and of one owner
//!
//! For programs that serve several agents or people from one place; the command `throughline serve` is one.
//!
//! ```
//! use throughline_gateway::{AccessTokens, TokenLimits};
//!
//! let mut tokens = AccessTokens::default();
//! let secret = tokens.add("laptop", "ada", &[7; 32], 0, TokenLimits::default())?;
//! assert_eq!(tokens.find(&secret).map(|entry| entry.owner.as_str()), Some("ada"));
//! assert!(!tokens.to_json().contains(&secret), "only a hash is stored");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
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
mod operator;
mod proxy;
mod recall;
mod shared;
mod telemetry;
mod tenant;
mod ui;

pub use auth::access_tokens::{AccessTokens, TokenEntry, TokenLimits};
pub use auth::policy::{AccessPolicy, PeerCheck, PeerUser};
pub use compaction::seal::SealKey;
pub use config::{EngineSource, GatewayConfig, GatewayLimits, GatewaySetup};
pub use gateway::Gateway;
pub use http::tls::{Tls, TlsError};
pub use operator::{NewToken, OperatorTools, SettingChange};
pub use proxy::provider_paths::TenantPaths;
pub use proxy::upstreams::{UpstreamSpec, Upstreams};
pub use recall::{RecallConfig, RecallFuture, RecallOffer, RecallTools};
pub use telemetry::event::{AnswerEnd, GatewayEvent, GatewayEvents, ServedRequest};
