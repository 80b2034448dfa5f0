//! The durable record: everything said, kept once and findable; what a model sees is a view on it.
//!
//! [`Store`] is the door. [`SqliteStore`] keeps the record in one database file with a folder of artifacts beside it;
//! [`MemoryStore`] is its twin for tests and passing work. Types are plain: nothing here knows a terminal, a home
//! directory, the environment or the clock; times and random numbers are passed in.
//!
//! Not for: deciding when to compact, talking to models, printing.

mod artifact;
mod artifact_folder;
mod artifact_pieces;
mod artifact_table;
mod assembly;
mod call;
mod chain;
mod clues;
mod commit;
mod dag;
mod error;
mod export;
mod fold;
mod guard;
mod ids;
mod import;
mod lineage;
mod lock;
mod matching;
mod memory;
mod message;
mod node;
mod overview;
mod page;
mod query;
mod rank;
mod search;
mod searchable;
mod session;
mod sieve;
mod snippet;
mod splice;
mod sqlite;
mod store;
mod summary;
mod terms;
mod version;
mod view;

pub use artifact::{Artifact, ArtifactId, ArtifactRange, NewArtifact, count_lines};
pub use artifact_folder::{ArtifactFile, ArtifactFolder, FolderListing};
pub use call::{
    Call, CallFilter, NewCall, PreambleId, StoredPreamble, ToolCount, UsageBy, UsageKind, UsageTotal,
};
pub use chain::compactions_in_view;
pub use commit::{CommitAs, LoadedView};
pub use dag::{Link as NodeLink, node_problems};
pub use error::{Result, StoreError};
pub use export::{Export, ExportForm, ExportOptions, ExportSide, export, last_preamble};
pub use guard::{Guard, GuardScope};
pub use ids::{IdLength, Millis, Owner, SessionId};
pub use import::{
    FileOutcome, FileReport, HistoryPlace, ImportCounts, ImportEvent, ImportReport, Importer, history_places,
};
pub use lineage::{Turning, find_session, find_tip, lineage, turnings, turnings_along};
pub use lock::{HeldLock, Holder, LockOutcome, LockRequest, conversation_lock};
pub use memory::MemoryStore;
pub use message::{Appended, CallNames, NewMessage, StoredMessage, StoredRendition};
pub use node::{
    Child, LEAF_LEVEL, NewNode, Node, NodeHead, TOP_LEVEL, TOP_NODES, bounds, holds, joined as joined_runs,
};
pub use overview::{UsageOverview, cache_misses};
pub use page::{ItemEntry, MessageEntry};
pub use search::{ArtifactPlace, Hit, Neighbour, SearchAnswer, SearchMode, SearchQuery, Snippet};
pub use session::{
    Conversation, Counters, EndReason, Link, LinkKind, ListPlace, MAX_NUMBERED, NewSession, Origin, Session,
    SessionFilter, numbered_key,
};
pub use sqlite::{
    BackupReport, BroughtForward, Depth, Diagnosis, Examination, Finding, LostArtifact, MendReport,
    MessagePlace, Progress, Remedy, SalvageReport, SalvagedTable, Severity, SqliteStore, diagnose, mend,
};
pub use store::{Dependants, Store};
pub use summary::{Continuation, NewSummary, Run, Selection, Summary, SummaryId};
pub use version::{LastMessage, Version};
pub use view::{NewViewItem, Shown, ViewItem};
