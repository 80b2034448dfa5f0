//! Compacts a conversation and prints what became of it: `cargo run --example compact -p throughline`.
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use throughline::{Compactor, CompactorError, Outcome};

pub(crate) fn main() -> Result<(), CompactorError> {
    // A list of messages, or a whole request body, of any of the three wire formats.
    let conversation = include_bytes!("waiting-list.json");
    let compactor = Compactor::builder().window_tokens(32_768).build()?;

    let compacted = compactor.compact(conversation)?;

    if !matches!(compacted.outcome, Outcome::Completed(_)) {
        println!("left as it was: {:?}", compacted.outcome);
    }
    let tokens = compacted.report.tokens;
    println!("{} -> {} tokens", tokens.before, tokens.after);
    println!("{} messages to send, each as JSON", compacted.messages.len());
    println!("{}", compacted.summary.unwrap_or_default());
    Ok(())
}
