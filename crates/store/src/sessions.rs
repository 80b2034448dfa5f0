//! Sessions: the windows of a conversation, the links between them, and the values stored with them.
//!
//! Parts: `session` has the types, `chain` the rules by which sessions are linked, `lineage` finds sessions and lists their compactions,
//! `first_words` names those without a title, `version` detects writes by others, `lock` coordinates processes, `guard` stores small values
//! that survive a restart.

pub(crate) mod chain;
pub(crate) mod first_words;
pub(crate) mod guard;
pub(crate) mod lineage;
pub(crate) mod lock;
pub(crate) mod session;
pub(crate) mod version;
