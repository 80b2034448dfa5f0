//! For tests: helpers for records on disk.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use throughline_transcript::{Role, WireFormat, decode_message_text, text_message};

use super::SqliteStore;
use super::connection::{self, OpenMode};
use crate::ids::{Owner, SessionId};
use crate::message::NewMessage;
use crate::sessions::session::{NewSession, Origin};
use crate::store::Store;

/// A folder with a record, removed when dropped.
pub(super) struct Home {
    pub(super) folder: tempfile::TempDir,
}

impl Home {
    pub(super) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("record.db")
    }

    pub(super) fn open(&self) -> SqliteStore {
        SqliteStore::open(&self.path(), 0).unwrap()
    }

    /// A closed record with some messages in session `one`, so that everything is in the database file.
    pub(super) fn with_messages(count: usize) -> Self {
        let home = Self::new();
        let store = home.open();
        open_session(&store, "one");
        say(
            &store,
            "one",
            &(0..count).map(|at| format!("message {at} {}", "x".repeat(300))).collect::<Vec<_>>(),
        );
        drop(store);
        assert!(!connection::has_journal(&home.path()), "closing empties the journal");
        home
    }
}

pub(super) fn id(text: &str) -> SessionId {
    SessionId::from_text(text)
}

pub(super) fn owner() -> Owner {
    Owner::default()
}

pub(super) fn open_session(store: &SqliteStore, name: &str) {
    let new = NewSession {
        id: id(name),
        owner: owner(),
        link: None,
        started_ms: 1,
        model: None,
        title: None,
        origin: Origin { program: "chat".to_owned(), key: None, project: None },
        wire_format: WireFormat::Chat,
    };
    store.open_session(new, None).unwrap();
}

pub(super) fn message(text: &str) -> NewMessage {
    let message = decode_message_text(text_message(WireFormat::Chat, Role::User, text)).unwrap();
    NewMessage { message, tokens: 5, at_ms: 2, tools: Vec::new(), rendition: None }
}

pub(super) fn say(store: &SqliteStore, name: &str, texts: &[impl AsRef<str>]) {
    let messages = texts.iter().map(|text| message(text.as_ref())).collect();
    store.append(&owner(), &id(name), messages).unwrap();
}

pub(super) fn count(store: &SqliteStore, name: &str) -> usize {
    store.messages(&owner(), &id(name)).unwrap().len()
}

/// A connection of another process.
pub(super) fn stranger(path: &Path) -> Connection {
    connection::connect(path, OpenMode::Write, Duration::ZERO).unwrap()
}
