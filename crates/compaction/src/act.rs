//! Tool calls: what each one did, to what, and with which result.

mod call;
mod contract;
mod envelope;
mod family;
mod line;
mod looking;
mod result;
mod status;
mod status_readers;
mod text;

pub use call::Act;
pub(crate) use call::is_member_name;
pub use contract::AbsentMark;
pub(crate) use envelope::readable;
pub use family::ToolFamily;
pub(crate) use line::CLEARED;
pub(crate) use looking::only_looks;
pub use result::ActOutcome;
pub use status::CallAnswer;
pub(crate) use status::CallStatus;
pub use text::{one_line, thousands};
pub(crate) use text::{slice_end, slice_start};

#[cfg(test)]
#[path = "act_tests.rs"]
mod tests;
