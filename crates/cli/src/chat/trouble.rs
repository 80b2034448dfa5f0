//! What a conversation can run into, in words for the person who holds it.

use throughline_engine::CallError;

use crate::failure::{Exit, Failure};
use crate::record::refused;

/// A failed call as a failure of the program.
pub(super) fn failure_of(error: CallError) -> Failure {
    match error {
        CallError::Record(error) => refused(error),
        CallError::Locked { holder, .. } => Failure::new(Exit::Busy, "the conversation is open elsewhere")
            .because(format!("{} works on it", crate::text::on_one_line(&holder.to_string())))
            .hint("leave it there first, or begin another one here"),
        CallError::GaveUp(gave_up) => {
            let failure = Failure::new(Exit::Unanswered, "the model gave no answer")
                .because(crate::text::printable(&gave_up.trouble.to_string()));
            let failure = gave_up
                .tried
                .iter()
                .fold(failure, |failure, tried| failure.because(format!("tried: {tried}")));
            failure.hint(gave_up.advice_words())
        }
        CallError::Limits { .. } | CallError::FixedTooLarge { .. } | CallError::OtherWire { .. } => {
            Failure::new(Exit::BadConfig, error.to_string())
        }
        CallError::Cancelled => Failure::new(Exit::Unanswered, "stopped"),
        other => Failure::new(Exit::Internal, other.to_string()),
    }
}
