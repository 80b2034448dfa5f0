//! The durable record: every message, stored once and searchable. What a model is sent is a view of it.
//!
//! [`Store`] is the interface. [`SqliteStore`] stores the record in one database file with a folder of artifacts beside it, or in memory;
//! [`MemoryStore`] is a small store without SQLite and without search, for embedding and tests. Types are plain: nothing here accesses a
//! terminal, a home directory, the environment or the clock; times and random numbers are passed in.
//!
//! For the command, the gateway, and programs that embed sessions.
//!
//! ```
//! use throughline_store::{IdLength, MemoryStore, NewMessage, NewSession, Origin, Owner, SessionId, Store};
//! use throughline_transcript::{Role, SharedText, WireFormat, decode_message, text_message};
//!
//! let (store, owner, at_ms) = (MemoryStore::new(), Owner::default(), 1_794_744_000_000);
//! let id = SessionId::new(at_ms, 7, IdLength::Local);
//! store.open_session(
//!     NewSession {
//!         id: id.clone(),
//!         owner: owner.clone(),
//!         link: None,
//!         started_ms: at_ms,
//!         model: None,
//!         title: None,
//!         origin: Origin { program: "example".to_owned(), key: None, project: None },
//!         wire_format: WireFormat::Chat,
//!     },
//!     None,
//! )?;
//! let json = text_message(WireFormat::Chat, Role::User, "The port is 8080.");
//! let message = decode_message(SharedText::new(json)).ok_or("not a message")?;
//! store.append(&owner, &id, vec![NewMessage { message, tokens: 9, at_ms, tools: Vec::new(), rendition: None }])?;
//! assert_eq!(store.transcript(&owner, &id)?[0].json.as_str(), r#"{"role":"user","content":"The port is 8080."}"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Not for: deciding when to compact, talking to models, printing.

#![cfg_attr(
    not(feature = "sqlite"),
    expect(dead_code, reason = "the store in memory shares its parts with the one on disk")
)]

mod artifacts;
mod call;
mod coding;
#[cfg(feature = "postgres")]
mod copy;
mod error;
mod export;
mod fleet;
mod ids;
#[cfg(feature = "sqlite")]
mod import;
mod layer;
mod memory;
mod message;
#[cfg(feature = "sqlite")]
mod message_codec;
mod overview;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod record_search;
mod savings;
mod search;
mod sessions;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "sqlite")]
mod status;
mod store;
#[cfg(feature = "sqlite")]
mod upkeep;
mod views;

pub use artifacts::artifact::{Artifact, ArtifactId, ArtifactRange, NewArtifact};
#[cfg(feature = "sqlite")]
pub use artifacts::garbage::{GarbageOptions, GarbageReport};
#[cfg(feature = "sqlite")]
pub use artifacts::place::ArtifactPlace;
pub use call::{CallFilter, NewCall, PreambleId, StoredPreamble, ToolCount, UsageBy, UsageKind, UsageTotal};
#[cfg(feature = "postgres")]
pub use copy::CopyReport;
pub use error::{Result, StoreError};
pub use export::{Export, ExportForm, ExportOptions, ExportSide};
pub use fleet::{FleetChange, FleetEvent, FleetListener, FleetPosition, FleetStore, FleetText, PoolStatus};
pub use ids::{IdLength, Millis, Owner, SessionId};
#[cfg(feature = "sqlite")]
pub use import::{FileOutcome, FileReport, ImportCounts, ImportEvent, ImportReport, Importer};
pub use layer::{StoreLayer, StoreMethod};
pub use memory::MemoryStore;
pub use message::{AppendRange, CallNames, MessageHead, NewMessage, StoredMessage, StoredRendition};
pub use overview::UsageOverview;
#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
pub use savings::{Savings, SavingsTotal};
pub use search::request::{Hit, Neighbour, SearchAnswer, SearchQuery};
pub use sessions::guard::{Guard, GuardScope};
pub use sessions::lineage::ViewChange;
pub use sessions::lock::{Holder, Lease, LockOutcome, LockRecord, LockRequest};
pub use sessions::session::{
    Conversation, EndReason, Link, LinkKind, ListCursor, NewSession, Origin, Session, SessionCounters,
    SessionFilter,
};
pub use sessions::version::Version;
#[cfg(feature = "sqlite")]
pub use sqlite::{
    BackupReport, Depth, Diagnosis, Examination, LostArtifact, Migration, RecordProblem, Remedy,
    RepairReport, SalvageReport, SalvagedTable, Severity, SqliteStore, StoreProgress,
};
#[cfg(feature = "sqlite")]
pub use status::StoreStatus;
pub use store::{Dependants, Store};
pub use throughline_search::meaning::{EmbedPurpose, Embedder, Embeddings, VectorState};
pub use throughline_search::texts::rank_texts;
pub use throughline_search::{MatchedWords, SearchMode, Snippet};
#[cfg(feature = "sqlite")]
pub use upkeep::{
    IdleTree, OperatorAction, OwnerTraces, RemovalReport, RetentionPolicy, StoreUpkeep, apply_retention,
    erase_owner, note_action,
};
pub use views::context_map::{CallContext, SentTokens};
pub use views::item::{NewViewItem, ViewItem, ViewMessage};
pub use views::node::{Child, NewNode, NodeHead, SummaryNode};
pub use views::node_graph::{NodeLink, node_problems};
pub use views::page::{ItemEntry, MessageEntry};
pub use views::summary::{
    Continuation, MessageRun, NewSummary, Selection, Summary, SummaryId, ViewSelection,
};

/// Tests that compare the stores with each other and with a plain scan, written against the public names.
#[cfg(test)]
extern crate self as throughline_store;
#[cfg(test)]
#[path = "../tests/model/search_scan.rs"]
mod search_scan;
#[cfg(test)]
#[path = "../tests/model/twins.rs"]
mod twins;
