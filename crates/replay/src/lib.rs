//! What a recorded conversation costs, with and without Throughline.
//!
//! A [`Talk`] is a recorded conversation as the calls it was made of. [`replay`] prices it twice by the published rules of
//! prompt caches: as the recorded client sent it, and through the managed call, fed message by message with the recorded
//! answers played as the model's. Nothing is sent anywhere; tokens are estimates, prices are list prices.
//!
//! Parts: `talk` calls from a transcript, `fixed` system prompt and tools, `alone` the recorded client's own prompts,
//! `desk` the upstream that answers and writes bills, `through` the managed call, `summaries` what summaries cost,
//! `first_sight` what is read again because it was set aside.
//!
//! Not for: files, terminals, or what a provider really charged.

mod alone;
mod bill;
mod desk;
mod first_sight;
mod fixed;
mod replay;
mod summaries;
mod talk;
mod through;

pub use alone::PromptError;
pub use bill::Bill;
pub use replay::{ReplayError, ReplayOptions, SessionReplay, SummaryCost, replay};
pub use talk::{RecordedCall, RecordedCompaction, Talk};
