//! For tests of the importers: a record, and a folder to import from.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::ids::{IdLength, Millis, Owner, SessionId};
use crate::import::{ImportCounts, ImportReport, Importer};
use crate::memory::MemoryStore;
use crate::sessions::session::{Session, SessionFilter};
use crate::store::Store;

/// A record and a folder to import from.
pub(super) struct World {
    pub(super) store: MemoryStore,
    pub(super) owner: Owner,
    pub(super) folder: TempDir,
    drawn: u32,
    /// The time that the importer sees.
    pub(super) now_ms: Option<Millis>,
}

impl World {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { store: MemoryStore::new(), owner: Owner::default(), folder, drawn: 0, now_ms: None }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn write(&self, name: &str, lines: &[&str]) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, lines.join("\n") + "\n").unwrap();
        path
    }

    pub(super) fn import(&mut self, path: &Path) -> ImportReport {
        let mut report = ImportReport::default();
        let drawn = &mut self.drawn;
        let mut new_id = |at_ms: Millis| {
            *drawn += 1;
            SessionId::new(at_ms, *drawn, IdLength::Local)
        };
        let mut importer = Importer::new(&self.store, self.owner.clone(), &mut new_id, |_| None);
        if let Some(now_ms) = self.now_ms {
            importer = importer.at(now_ms);
        }
        importer.import_path(path, &mut report, &mut |_| {}).unwrap();
        report
    }

    /// Imports a path without errors and returns the counts.
    pub(super) fn counts(&mut self, path: &Path) -> ImportCounts {
        let report = self.import(path);
        assert_eq!(report.failures().collect::<Vec<_>>(), []);
        report.totals()
    }

    pub(super) fn session(&self, program: &str, key: &str) -> Session {
        self.store.session_by_origin(&self.owner, program, key).unwrap().expect(key)
    }

    pub(super) fn chain(&self, program: &str, key: &str) -> Vec<Session> {
        self.store.chain(&self.owner, &self.session(program, key).id).unwrap()
    }

    pub(super) fn texts(&self, session: &Session) -> Vec<String> {
        let messages = self.store.transcript(&self.owner, &session.id).unwrap();
        messages.iter().map(|message| message.decode().unwrap().text().into_owned()).collect()
    }

    pub(super) fn shown(&self, session: &Session) -> Vec<String> {
        self.store.view(&self.owner, &session.id, None).unwrap().iter().map(|s| s.json().to_owned()).collect()
    }

    pub(super) fn conversations(&self) -> usize {
        let filter = SessionFilter { include_attached: true, ..SessionFilter::default() };
        self.store.conversations(&self.owner, &filter).unwrap().len()
    }
}

/// A line of a Claude Code log.
fn line(kind: &str, uuid: &str, parent: &str, text: &str) -> String {
    let usage = r#","usage":{"input_tokens":10,"cache_read_input_tokens":1000,"cache_creation_input_tokens":50,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":50},"output_tokens":1}"#;
    let (head, tail) = match kind {
        "assistant" => (format!(r#""id":"msg_{uuid}","model":"claude-opus-4-6","stop_reason":null,"#), usage),
        _ => (String::new(), ""),
    };
    let second = uuid.bytes().map(u32::from).sum::<u32>() % 60;
    format!(
        r#"{{"type":"{kind}","uuid":"{uuid}","parentUuid":"{parent}","sessionId":"s1","cwd":"/srv/app","timestamp":"2026-02-07T00:00:{second:02}Z","message":{{{head}"role":"{kind}","content":"{text}"{tail}}}}}"#
    )
}

/// A line of the user.
pub(super) fn user(uuid: &str, parent: &str, text: &str) -> String {
    line("user", uuid, parent, text)
}

/// A line of the model, with the usage of its call.
pub(super) fn answer(uuid: &str, parent: &str, text: &str) -> String {
    line("assistant", uuid, parent, text)
}
