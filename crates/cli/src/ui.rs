//! Terminal output: text that fits the terminal, tables, figures, gauges, progress, messages of a conversation.

pub(crate) mod figures;
pub(crate) mod gauge;
pub(crate) mod messages;
pub(crate) mod output;
#[cfg(feature = "online")]
pub(crate) mod progress;
pub(crate) mod table;
pub(crate) mod text;
