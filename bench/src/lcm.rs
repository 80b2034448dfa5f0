//! The lossless engine: what it keeps in view and finds again, and its cost in a very long conversation.
//!
//! Parts: `stage` a conversation in a record, compacted through the managed call; `recorded` needed anchors of recorded sessions,
//! compared with the compressor at the same size of view; `long` a generated conversation of ten million tokens.

mod long;
mod recorded;
mod stage;

use std::path::Path;

/// Runs the benchmark and formats both tables.
pub(crate) fn run(data: Option<&Path>, tokens: u64) -> Result<String, String> {
    let mut out = String::new();
    if let Some(folder) = data {
        out.push_str(&recorded::run(folder)?);
    }
    if tokens > 0 {
        out.push_str(&long::run(tokens)?);
    }
    Ok(out)
}

/// Whether a limit holds, in words.
fn verdict(holds: bool) -> &'static str {
    if holds { "holds" } else { "BROKEN" }
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}
