//! Context engines in other processes: their protocol, a host that is protected against them, and Throughline as such an engine for other
//! hosts.
//!
//! Parts: `protocol` the messages; `connection` one process with limits on everything it does; `health` the state shared by all
//! conversations of an engine; `process_engine` that process as a [`ContextEngine`](throughline_engine::ContextEngine); `manifest` how it
//! is started; `masked` secrets in its output; `services` the host's services for engines; `stand_in` the engine in its place after a
//! failure; `absent` an engine that could not be started; `serve` an engine of ours as such a process; `conformance` the checks for every
//! engine.
//!
//! For hosts that run an engine of their own, and for programs that run Throughline's engines in another host.
//!
//! ```
//! use throughline_plugin::Manifest;
//!
//! let manifest = Manifest::read("truncate", b"name: truncate\ncommand: python3 truncate.py\n")?;
//! assert_eq!(manifest.command, ["python3", "truncate.py"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Not for: the lookup of engines, and the rules for views (`throughline-engine` checks every view).

mod conformance;
mod connection;
mod fallback;
mod health;
mod line_reader;
mod manifest;
mod process_engine;
mod protocol;
mod redaction;
mod serve;
mod services;
mod unavailable;

pub use conformance::{CheckVerdict, ConformanceCheck, MakeEngine};
pub use connection::{EngineBounds, Launch};
pub use fallback::FallbackEngine;
pub use health::EngineHealth;
pub use manifest::Manifest;
pub use process_engine::ProcessEngine;
pub use protocol::{PROTOCOL_SCHEMA, PROTOCOL_VERSION, SummaryParams, SummaryText};
pub use serve::serve_engine;
pub use services::{HostServices, PlainServices, ServiceFuture};
pub use unavailable::UnavailableEngine;
