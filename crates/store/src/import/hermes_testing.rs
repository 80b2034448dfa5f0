//! For tests: a database as Hermes writes it, and a record for the import.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};
use tempfile::TempDir;

use crate::ids::{IdLength, Millis, Owner, SessionId};
use crate::import::{ImportCounts, ImportReport, Importer};
use crate::memory::MemoryStore;
use crate::sessions::session::Session;
use crate::store::Store;

const SESSIONS: &str = "CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT NOT NULL, model TEXT, model_config TEXT, \
    system_prompt TEXT, parent_session_id TEXT, started_at REAL NOT NULL, ended_at REAL, end_reason TEXT, \
    input_tokens INTEGER DEFAULT 0, output_tokens INTEGER DEFAULT 0, cache_read_tokens INTEGER DEFAULT 0, \
    cache_write_tokens INTEGER DEFAULT 0, reasoning_tokens INTEGER DEFAULT 0, cwd TEXT, git_repo_root TEXT, \
    billing_provider TEXT, billing_base_url TEXT, billing_mode TEXT, estimated_cost_usd REAL, actual_cost_usd REAL, \
    title TEXT, api_call_count INTEGER DEFAULT 0)";
const MESSAGES: &str = "CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, \
    role TEXT NOT NULL, content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL, \
    reasoning TEXT, reasoning_content TEXT, reasoning_details TEXT, codex_reasoning_items TEXT, \
    codex_message_items TEXT, active INTEGER NOT NULL DEFAULT 1, compacted INTEGER NOT NULL DEFAULT 0, api_content TEXT)";
const USAGE: &str = "CREATE TABLE session_model_usage (session_id TEXT NOT NULL, model TEXT NOT NULL, \
    billing_provider TEXT NOT NULL DEFAULT '', billing_base_url TEXT NOT NULL DEFAULT '', \
    billing_mode TEXT NOT NULL DEFAULT '', task TEXT NOT NULL DEFAULT '', api_call_count INTEGER NOT NULL DEFAULT 0, \
    input_tokens INTEGER NOT NULL DEFAULT 0, output_tokens INTEGER NOT NULL DEFAULT 0, \
    cache_read_tokens INTEGER NOT NULL DEFAULT 0, cache_write_tokens INTEGER NOT NULL DEFAULT 0, \
    reasoning_tokens INTEGER NOT NULL DEFAULT 0, estimated_cost_usd REAL NOT NULL DEFAULT 0, \
    actual_cost_usd REAL NOT NULL DEFAULT 0, first_seen REAL, last_seen REAL)";
/// A summary as Hermes writes it.
pub(super) const SUMMARY: &str = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n\n## Goal\nfix it\n\n--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---";

/// Hermes' database and our record.
pub(super) struct Hermes {
    pub(super) folder: TempDir,
    pub(super) theirs: Connection,
    pub(super) ours: MemoryStore,
    drawn: u32,
    pub(super) clock: f64,
}

impl Hermes {
    pub(super) fn new() -> Self {
        Self::with(&[SESSIONS, MESSAGES, USAGE])
    }

    #[expect(clippy::disallowed_methods, reason = "a test makes the database of another program")]
    pub(super) fn with(tables: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let theirs = Connection::open(folder.path().join("state.db")).unwrap();
        for table in tables {
            theirs.execute_batch(table).unwrap();
        }
        Self { folder, theirs, ours: MemoryStore::new(), drawn: 0, clock: 1_000.0 }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("state.db")
    }

    pub(super) fn session(&self, id: &str, parent: Option<&str>, started_at: f64) {
        self.theirs
            .execute(
                "INSERT INTO sessions (id, source, model, parent_session_id, started_at, cwd, title, system_prompt) \
                 VALUES (?1, 'cli', 'claude-opus-4-6', ?2, ?3, '/srv/app', ?4, 'be brief')",
                params![id, parent, started_at, format!("title of {id}")],
            )
            .unwrap();
    }

    pub(super) fn end(&self, id: &str, reason: &str, at: f64) {
        self.theirs
            .execute(
                "UPDATE sessions SET end_reason = ?2, ended_at = ?3 WHERE id = ?1",
                params![id, reason, at],
            )
            .unwrap();
    }

    pub(super) fn mark(&self, id: &str, config: &str) {
        self.theirs
            .execute("UPDATE sessions SET model_config = ?2 WHERE id = ?1", params![id, config])
            .unwrap();
    }

    pub(super) fn say(&mut self, session: &str, role: &str, content: &str) -> i64 {
        self.clock += 1.0;
        self.theirs
            .execute(
                "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?1, ?2, ?3, ?4)",
                params![session, role, content, self.clock],
            )
            .unwrap();
        self.theirs.last_insert_rowid()
    }

    pub(super) fn talk(&mut self, session: &str, from: usize, to: usize) {
        for number in from..to {
            let role = if number % 2 == 0 { "user" } else { "assistant" };
            self.say(session, role, &format!("m{number}"));
        }
    }

    pub(super) fn archive(&self, session: &str) {
        self.theirs
            .execute(
                "UPDATE messages SET active = 0, compacted = 1 WHERE session_id = ?1 AND active = 1",
                [session],
            )
            .unwrap();
    }

    pub(super) fn import(&mut self) -> ImportReport {
        let path = self.path();
        self.import_at(&path)
    }

    pub(super) fn import_at(&mut self, path: &Path) -> ImportReport {
        let drawn = &mut self.drawn;
        let mut new_id = |at_ms: Millis| {
            *drawn += 1;
            SessionId::new(at_ms, *drawn, IdLength::Local)
        };
        let mut report = ImportReport::default();
        let mut importer = Importer::new(&self.ours, Owner::default(), &mut new_id, |message| {
            throughline_compaction::find_summary(message).map(|found| found.body)
        });
        importer.import_path(path, &mut report, &mut |_| {}).unwrap();
        report
    }

    pub(super) fn counts(&mut self) -> ImportCounts {
        let report = self.import();
        assert_eq!(report.failures().collect::<Vec<_>>(), []);
        report.totals()
    }

    pub(super) fn root(&self, key: &str) -> Session {
        self.ours.session_by_origin(&Owner::default(), "hermes", key).unwrap().expect(key)
    }

    pub(super) fn chain(&self, key: &str) -> Vec<Session> {
        self.ours.chain(&Owner::default(), &self.root(key).id).unwrap()
    }

    pub(super) fn texts(&self, session: &Session) -> Vec<String> {
        let messages = self.ours.transcript(&Owner::default(), &session.id).unwrap();
        messages.iter().map(|message| message.decode().unwrap().text().into_owned()).collect()
    }

    pub(super) fn shown(&self, session: &Session) -> Vec<String> {
        let view = self.ours.view(&Owner::default(), &session.id, None).unwrap();
        view.iter().map(|shown| shown.json().to_owned()).collect()
    }
}
