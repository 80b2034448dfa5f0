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
mod body_in;
mod body_out;
mod clues;
mod compact;
mod config;
mod count;
mod counted_store;
mod course;
mod event;
mod find;
mod gate;
mod gateway;
mod handler;
mod held_end;
mod identity;
mod let_go;
mod matching;
mod meter;
mod metered;
mod metrics;
mod news;
mod pass;
mod path;
mod peer;
mod presented;
mod previous;
mod provider_objects;
mod provider_paths;
mod quotes;
mod readiness;
mod recall;
mod refused;
mod relations;
mod seal;
mod seats;
mod server;
mod tls;
mod tokens;
mod traces;
mod turn;
mod upstreams;
mod whole_events;

pub use config::{EngineSource, GatewayConfig};
pub use course::current_request;
pub use event::{AnswerEnd, GatewayEvent, GatewayEvents, Served};
pub use gateway::{Access, Gateway, GatewayLimits, GatewaySetup, PeerCheck, PeerUser};
pub use provider_paths::TenantPaths;
pub use recall::{Offer, Recall, RecallFuture, RecallTools};
pub use seal::SealKey;
pub use server::serve;
pub use tls::{Tls, TlsError};
pub use tokens::{TOKEN_PREFIX, TokenBook, TokenEntry, TokenError, TokenLimits, random_token_bytes};
pub use upstreams::{UpstreamSpec, Upstreams};
