//! The lossless engine `lcm`, and the tools that find what its notes stand for.
//!
//! [`LcmEngine`] is a [`ContextEngine`](throughline_engine::ContextEngine): old messages are covered by leaves, leaves by
//! condensed nodes, and everything stays in the record. [`Recall`] finds, describes and expands, over any record and for
//! summaries of any engine: it is what the tools `lcm_grep`, `lcm_describe`, `lcm_expand` and `lcm_expand_query` are made
//! of, wherever they are offered.
//!
//! Not for: terminals, sockets, the clock.

mod about;
mod chunk;
mod condense;
mod engine;
mod expand;
mod fold;
mod grep;
mod leaves;
mod limits;
mod outcome;
mod places;
mod question;
mod recall;
mod record;
mod text;
mod tools;
mod tree;
mod write;

pub use engine::{LCM_ENGINE, LcmEngine, LcmSetup};
pub use expand::{Expand, Expanded, ExpandedItem, Expansion};
pub use grep::{Grep, GrepAnswer, GrepHit, Pattern};
pub use limits::{LcmLimits, RecallLimits};
pub use question::{Answered, Question};
pub use recall::{Described, Recall, RecallError};
pub use tools::{QUESTION_TOOL, RECALL_TOOLS, Recaller, is_lookup, schemas as recall_schemas};
pub use tree::{Tree, TreeNode};
