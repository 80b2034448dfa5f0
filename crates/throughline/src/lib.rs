//! Context management for programs that talk to language models.
//!
//! Long conversations fill a model's window. This library replaces the older part of one by notes, keeps the rest byte for
//! byte, and checks that paths, numbers and open work survive. It is what the `throughline` command is built on, for Rust
//! programs: agents, proxies, chat servers.
//!
//! - [`Compactor`]: messages in; compacted messages and a report out. No runtime, no network, no model.
//! - [`Session`] (feature `session`, on by default): a conversation whose every call goes through Throughline. It stores each
//!   message, sends the model a view that fits, compacts at the threshold and recovers from overflows. Calls go through any
//!   [`Upstream`]; the record is any [`Store`], in memory unless you give another.
//!
//! ```
//! use throughline::Compactor;
//!
//! let list = r#"[{"role":"user","content":"Rename the module to waiting_list."},
//!                {"role":"assistant","content":"Done: src/waiting_list.rs."}]"#;
//! let compacted = Compactor::builder().window_tokens(32_768).build()?.compact(list)?;
//! assert_eq!(compacted.messages.len(), 2, "far below the threshold: unchanged");
//! # Ok::<(), throughline::CompactorError>(())
//! ```
//!
//! Features: `session` (default), `sqlite` (the record on disk), `http` (endpoints over HTTP). With
//! `default-features = false` there is the compactor alone.
//!
//! Not for: settings files, terminals and servers; those are the command's.

mod compactor;
#[cfg(feature = "session")]
mod fn_upstream;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "session")]
mod process_host;
#[cfg(feature = "session")]
mod session;

pub use compactor::{Compacted, Compactor, CompactorBuilder, CompactorError};
#[cfg(feature = "session")]
pub use fn_upstream::upstream_fn;
#[cfg(feature = "http")]
pub use http::http_upstream;
#[cfg(feature = "session")]
pub use session::{EmbeddedSession as Session, SessionBuilder};

pub use throughline_compaction::{Outcome, Report};
#[cfg(feature = "session")]
pub use throughline_engine::{EngineEvent, SessionError, Upstream};
#[cfg(feature = "sqlite")]
pub use throughline_store::SqliteStore;
#[cfg(feature = "session")]
pub use throughline_store::{MemoryStore, SessionId, Store};
pub use throughline_transcript::WireFormat;
#[cfg(feature = "session")]
pub use throughline_wire::Answer;
