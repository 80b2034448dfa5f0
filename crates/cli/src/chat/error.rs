//! The errors of a conversation, as messages for the user.

use throughline_engine::SessionError;
use throughline_provider::ProviderError;

use crate::error::{CliError, Exit};
use crate::record::refused;

/// Converts a failed call into an error of the command line.
pub(super) fn failure_of(error: SessionError) -> CliError {
    match error {
        SessionError::Record(error) => refused(error),
        SessionError::Locked { holder, .. } => {
            CliError::new(Exit::Busy, "the conversation is open elsewhere")
                .because(format!("in use by {}", crate::ui::text::on_one_line(&holder.to_string())))
                .hint("close it there first, or start a new one here")
        }
        SessionError::Exhausted(gave_up) => {
            // The kind of error and its remedy come first, then the provider's message.
            let bare = ProviderError { words: String::new(), ..gave_up.trouble.clone() };
            let failure = CliError::new(Exit::Unanswered, format!("{bare}: {}", gave_up.advice_words()));
            let failure = match gave_up.trouble.words.as_str() {
                "" => failure,
                words => failure.because(crate::ui::text::printable(words)),
            };
            gave_up.tried.iter().fold(failure, |failure, tried| failure.because(format!("tried: {tried}")))
        }
        SessionError::Limits { .. } | SessionError::FixedTooLarge { .. } | SessionError::OtherWire { .. } => {
            CliError::new(Exit::BadConfig, error.to_string())
        }
        SessionError::Cancelled => CliError::new(Exit::Unanswered, "stopped"),
        other => CliError::new(Exit::Internal, other.to_string()),
    }
}
