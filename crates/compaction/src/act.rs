//! Tool calls understood: what was done, to what, and what came of it.

mod call;
mod envelope;
mod family;
mod line;
mod result;

pub(crate) use call::is_member_name;
pub use call::{Act, one_line};
pub(crate) use envelope::readable;
pub use family::ToolFamily;
pub use line::{CLEARED, thousands};
pub use result::ActOutcome;
pub(crate) use result::slice_start;

#[cfg(test)]
#[path = "act_tests.rs"]
mod tests;
