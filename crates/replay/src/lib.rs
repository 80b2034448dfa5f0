//! The cost of a recorded conversation, with and without Throughline.
//!
//! A [`Recording`] is a recorded conversation as a list of calls. [`Recording::replay`] prices it twice by the published rules of prompt caches: as
//! the recorded client sent it, and through the managed call, fed message by message with the recorded answers played as the model's.
//! Nothing is sent anywhere; tokens are estimates, prices are list prices.
//!
//! Parts: `recording` calls from a transcript, `fixed` system prompt and tools, `baseline` the recorded client's own prompts, `provider`
//! the upstream that answers and computes bills, `managed` the managed call, `summaries` the cost of summaries, `first_sight` results that
//! are read again because they were stored as artifacts.
//!
//! For programs that compute what a change of limits would have cost.
//!
//! ```
//! use throughline_replay::Recording;
//! use throughline_transcript::{DecodeOptions, Transcript};
//!
//! let list = br#"[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello."}]"#;
//! let recording = Recording::of(&Transcript::decode(list.to_vec(), &DecodeOptions::default())?);
//! assert_eq!(recording.calls.len(), 1);
//! # Ok::<(), throughline_transcript::DecodeError>(())
//! ```
//!
//! Not for: files, terminals, or what a provider really charged.

mod baseline;
mod bill;
mod client_prompt;
mod fake_provider;
mod find_tools;
mod fixed_prompt;
mod managed;
mod observer;
mod options;
mod recording;
mod replay;
mod reread;
mod summary_calls;

pub use bill::{Bill, SummaryCost};
pub use client_prompt::ClientPrompt;
pub use options::ReplayOptions;
pub use recording::{RecordedCall, Recording};
pub use replay::{ReplayError, SessionReplay};
