//! Arguments that several commands share. Those of a single command are defined beside it.

mod transcript;
mod window;

pub(crate) mod time;

pub(crate) use transcript::TranscriptArgs;
pub(crate) use window::{WindowArgs, parse_tokens};
