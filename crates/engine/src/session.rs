//! A session with its record, its view, its engine and its model: where every call to a model happens.
//!
//! `call` is prepare, send, settle, recover. It records what is new, measures the whole pending request, asks the engine,
//! compacts if that is due, writes the body with the same bytes for what was sent before, and handles each failure one counted
//! step at a time. A session makes one call at a time; callers that share a session queue.
//!
//! State: [`ManagedSession`] consists of `PromptState` (what is sent), `Budget` (limits and sizes), `CompactionState`,
//! `Persistence` (what the record has) and `EngineLink`.
//!
//! Parts: `call` the loop, `automatic_recall` passages that go along with what a person says, `prepare` sizes and bodies, `compaction` one compaction, `background` summaries ahead of time,
//! `recover` steps after a failure, `settle` what an answer changes, `persist` messages on their way into the record,
//! `concurrent` records that other processes write to, `client_bytes` a client's own bytes for earlier messages, `maintain`
//! everything between calls, `economy` limits that are decided in money, `tools` tool definitions by need, `record` blocking access to the store.

mod automatic_recall;
mod background;
mod budget;
mod call;
mod call_input;
mod call_state;
mod client_bytes;
mod compaction;
mod compaction_result;
mod compaction_state;
mod concurrent;
mod economy;
mod engine_link;
mod error;
mod maintain;
mod managed;
mod persist;
mod persistence;
mod prepare;
mod prompt_state;
mod record;
mod recover;
mod settle;
mod setup;
mod stored_state;
mod summary_host;
mod tools;

pub use call_input::{CacheMarking, CallInput, CallOutcome, RecordTiming};
pub use client_bytes::ClientBytes;
pub use compaction_result::{CompactionResult, ManualCompaction};
pub use economy::RecallAccess;
pub use error::SessionError;
pub use managed::ManagedSession;
pub(crate) use record::learnt_calibration;
pub use record::learnt_window;
pub use setup::{
    AutomaticRecall, CallPolicy, Freshness, History, IncomingMessage, LockPolicy, RecordPolicy, SessionSetup,
};
pub use tools::DeferredTools;
