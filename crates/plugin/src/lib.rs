//! Context engines in other processes: the protocol they speak, a host that is safe from them, and Throughline as such
//! an engine for the hosts of others.
//!
//! Parts: `protocol` the messages; `connection` one process, bounded in all it does; `health` what all conversations of an
//! engine share; `process_engine` that process as a
//! [`ContextEngine`](throughline_engine::ContextEngine); `manifest` how it is started; `masked` secrets in what it writes; `services` what a host offers to its engines; `stand_in` who answers when it does not; `absent` one that
//! cannot be had; `serve` the other
//! way round; `conformance` checks what every engine has to keep.
//!
//! Not for: where engines are looked up, and what a view has to be like (`throughline-engine` checks every one).

mod absent;
mod conformance;
mod connection;
mod health;
mod lines;
mod manifest;
mod masked;
mod process_engine;
mod protocol;
mod serve;
mod services;
mod stand_in;

pub use absent::AbsentEngine;
pub use conformance::{Check, Ground, MakeEngine, Verdict, check_engine, check_process};
pub use connection::{EngineBounds, Launch};
pub use health::EngineHealth;
pub use manifest::{MANIFEST_FILE, Manifest, ManifestError};
pub use process_engine::ProcessEngine;
pub use protocol::{
    Capabilities, Greeting, Introduction, PROTOCOL_SCHEMA, PROTOCOL_VERSION, RpcError, SummaryText,
    SummaryWish, code, method,
};
pub use serve::serve_engine;
pub use services::{HostServices, PlainServices, ServiceFuture};
pub use stand_in::{SteppedIn, WithStandIn};
