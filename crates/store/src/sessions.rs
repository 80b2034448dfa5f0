//! Sessions: the windows of a conversation, how they are linked, and what is stored beside them.
//!
//! Parts: `session` has the types, `chain` the rules by which sessions are linked, `lineage` finds sessions and lists
//! their compactions, `version` detects writes by others, `lock` is for several processes, `guard` small values that
//! outlive a restart.

pub(crate) mod chain;
pub(crate) mod guard;
pub(crate) mod lineage;
pub(crate) mod lock;
pub(crate) mod session;
pub(crate) mod version;
