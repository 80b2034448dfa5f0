//! Pure decisions on figures, each with a table of tests.
//!
//! `trigger` decides when to compact, `guard` when to postpone it, `recovery` what to do after a failed call, `tools` which tool
//! definitions are left out of a prompt.

pub(crate) mod guard;
pub(crate) mod recovery;
pub(crate) mod recovery_action;
pub(crate) mod tools;
pub(crate) mod trigger;
