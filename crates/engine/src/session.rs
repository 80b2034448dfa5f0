//! An open session: its record, view, engine and model. Every call to a model goes through it.
//!
//! `call` has four phases: prepare, send, settle, recover. It records new messages, measures the whole pending request, asks the engine,
//! compacts if that is due, encodes the body with the same bytes for messages that were sent before, and handles each failure by one
//! counted step. A session makes one call at a time; callers that share a session queue.
//!
//! State: [`ManagedSession`] consists of `PromptState` (what is sent), `Budget` (limits and sizes), `CompactionState`, `Persistence` (what
//! the record has) and `EngineLink`.
//!
//! Parts: `call` the loop, `automatic_recall` passages sent along with human messages, `prepare` sizes and bodies, `compaction` one
//! compaction, `background` summaries in advance, `shared_preparation` the same through the record, `recover` steps after a failure,
//! `settle` the effects of an answer, `persist` writes messages to the record, `concurrent` records that other processes write to,
//! `client_bytes` a client's own bytes for earlier messages, `maintain` everything between calls, `economy` limits decided by cost, `tools`
//! tool definitions by need, `record` blocking access to the store.

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
mod shared_preparation;
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
