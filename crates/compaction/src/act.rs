//! Tool calls understood: what was done, to what, and what came of it.

mod call;
mod envelope;
mod family;
mod line;
mod looking;
mod result;
mod status;
mod status_readers;

pub(crate) use call::is_member_name;
pub use call::{Act, one_line};
pub(crate) use envelope::readable;
pub use family::ToolFamily;
pub use line::{CLEARED, thousands};
pub(crate) use looking::only_looks;
pub use result::ActOutcome;
pub(crate) use result::{slice_end, slice_start};
pub use status::{CallAnswer, CallStatus, Evidence, StatusReading, read_status};

#[cfg(test)]
#[path = "act_tests.rs"]
mod tests;
