//! The lossless engine `lcm`, and the tools that find the messages behind its notes.
//!
//! [`LcmEngine`] is a [`ContextEngine`](throughline_engine::ContextEngine): old messages are covered by leaves, leaves by condensed nodes,
//! and the record has every message. [`RecallReader`] finds, describes and expands, over any record and for summaries of any engine. The
//! tools `lcm_grep`, `lcm_describe`, `lcm_expand` and `lcm_expand_query` use it everywhere.
//!
//! For hosts that offer recall to a model, or the engine `lcm` to their sessions.
//!
//! ```
//! use throughline_lcm::RecallToolset;
//!
//! let names: Vec<String> = RecallToolset::schemas().into_iter().map(|schema| schema.name).collect();
//! assert!(names.iter().all(|name| RecallToolset::NAMES.contains(&name.as_str())));
//! ```
//!
//! Not for: terminals, sockets, the clock.

mod engine;
mod limits;
mod owner_store;
mod recall;

pub use engine::{LcmEngine, LcmSetup};
pub use limits::{LcmLimits, RecallLimits};
pub use recall::expand::{ExpandQuery, ExpandedItem, Expansion};
pub use recall::grep::{GrepPattern, GrepQuery};
pub use recall::names::list_names;
pub use recall::record_tools::{RecordToolError, RecordTools};
pub use recall::tools::RecallToolset;
pub use recall::tree::TreeNode;
pub use recall::{NodeDescription, RecallError, RecallReader};
