//! Tests of every finding on real damage: bytes overwritten, files truncated or deleted, rows removed directly; and of the result of the
//! repair.

use std::fs;
use std::path::PathBuf;

use throughline_search::SearchMode;
use throughline_transcript::{Role, WireFormat, decode_message_text, text_message};

use super::*;
use crate::artifacts::artifact::{Artifact, NewArtifact};
use crate::artifacts::folder::ArtifactFolder;
use crate::call::{NewCall, StoredPreamble};
use crate::ids::{Owner, SessionId};

use crate::message::{NewMessage, StoredRendition};
use crate::search::request::SearchQuery;
use crate::sessions::session::{EndReason, Link, LinkKind, NewSession, Origin};
use crate::sqlite::SqliteStore;
use crate::store::Store;
use crate::views::item::NewViewItem;
use crate::views::summary::Continuation;

pub(super) struct Home {
    folder: tempfile::TempDir,
}

pub(super) fn owner() -> Owner {
    Owner::default()
}

pub(super) fn id(name: &str) -> SessionId {
    SessionId::from_text(name)
}

pub(super) fn said(text: &str) -> NewMessage {
    let message = decode_message_text(text_message(WireFormat::Chat, Role::User, text)).unwrap();
    NewMessage { message, tokens: 5, at_ms: 2, tools: Vec::new(), rendition: None }
}

impl Home {
    /// A record with two conversations: `one`, continued by `two`, and `other`; an artifact; calls.
    pub(super) fn new() -> Self {
        let home = Self { folder: tempfile::tempdir().unwrap() };
        let store = home.open();
        for name in ["one", "other"] {
            home.open_session(&store, name, None);
        }
        let shown = StoredRendition {
            kinds: vec!["trimmed".into()],
            json: text_message(WireFormat::Chat, Role::User, "short"),
            tokens: 1,
        };
        let batch = vec![
            said("alpha one"),
            said("beta two"),
            NewMessage { rendition: Some(shown), ..said("gamma three") },
        ];
        store.append(&owner(), &id("one"), batch).unwrap();
        store.append(&owner(), &id("other"), vec![said("delta four")]).unwrap();
        let preamble = store
            .put_preamble(&StoredPreamble { system: Some("be kind".into()), ..Default::default() })
            .unwrap();
        let call = NewCall {
            model: "m".into(),
            cost_micro_usd: Some(7),
            preamble: Some(preamble),
            ..Default::default()
        };
        store.record_calls(&owner(), &id("one"), vec![call]).unwrap();
        let session = id("one");
        let new =
            NewArtifact { session: &session, text: "the text of an artifact\n", label: "bash", at_ms: 3 };
        store.put_artifact(&owner(), new).unwrap();
        let continuation = Continuation {
            lease: None,
            from: id("one"),
            id: id("two"),
            reason: EndReason::COMPRESSION,
            at_ms: 5,
            made_at_seq: 3,
            summary: None,
            view: store
                .view_items(&owner(), &id("one"))
                .unwrap()
                .into_iter()
                .map(NewViewItem::Kept)
                .collect(),
        };
        store.continue_session(&owner(), continuation).unwrap();
        store.append(&owner(), &id("two"), vec![said("epsilon five")]).unwrap();
        home
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("record.db")
    }

    pub(super) fn open(&self) -> SqliteStore {
        SqliteStore::open(&self.path(), 0).unwrap()
    }

    pub(super) fn open_session(&self, store: &SqliteStore, name: &str, link: Option<Link>) {
        let new = NewSession {
            id: id(name),
            owner: owner(),
            link,
            started_ms: 1,
            model: None,
            title: None,
            origin: Origin { program: "chat".into(), key: None, project: None },
            wire_format: WireFormat::Chat,
        };
        store.open_session(new, None).unwrap();
    }

    /// Changes the database directly.
    pub(super) fn sql(&self, sql: &str) {
        let conn = connection::connect(&self.path(), OpenMode::Write, connection::BUSY_TIMEOUT).unwrap();
        conn.execute_batch(sql).unwrap();
    }

    pub(super) fn findings(&self, depth: Depth) -> Vec<RecordProblem> {
        let examination = Examination { depth, now_ms: 1_000, is_alive: &|_| true, artifacts: None };
        Diagnosis::of_file(&self.path(), &examination, &mut |_| ()).unwrap().findings
    }

    /// Returns the only finding of a quick check.
    pub(super) fn finding(&self) -> RecordProblem {
        let mut findings = self.findings(Depth::Quick);
        assert_eq!(findings.len(), 1, "{findings:?}");
        findings.remove(0)
    }

    pub(super) fn repair(&self) -> RepairReport {
        let examination =
            Examination { depth: Depth::Thorough, now_ms: 1_000, is_alive: &|_| true, artifacts: None };
        let backups = fs::read_dir(self.folder.path()).unwrap().count();
        let backup = self.folder.path().join(format!("backup-{backups}.tar"));
        let report = RepairReport::of_repair(&self.path(), &examination, &backup, &mut |_| ()).unwrap();
        assert_eq!(report.backup.is_some(), backup.exists());
        report
    }

    /// Repairs the record; only these findings may remain.
    pub(super) fn repair_all_but(&self, left: &[&str]) -> RepairReport {
        let report = self.repair();
        let names: Vec<String> = report.after.iter().map(name_of).collect();
        assert_eq!(names, left, "{:?}", report.after);
        assert!(report.backup.is_some());
        let again = self.repair();
        assert_eq!(again.before, report.after, "mending twice changes nothing");
        report
    }

    fn artifact(&self) -> Artifact {
        self.open().artifacts(&owner(), &id("one")).unwrap().remove(0)
    }

    fn artifact_path(&self) -> PathBuf {
        ArtifactFolder::at(self.folder.path().join("artifacts")).file_path(&self.artifact().id)
    }

    pub(super) fn shown(&self, name: &str) -> Vec<String> {
        let view = self.open().view(&owner(), &id(name), None).unwrap();
        view.iter()
            .map(|item| decode_message_text(item.json().to_owned()).unwrap().text().into_owned())
            .collect()
    }

    pub(super) fn finds(&self, text: &str, mode: SearchMode) -> bool {
        let query = SearchQuery { text: text.into(), mode, ..SearchQuery::default() };
        !self.open().search(&owner(), &query).unwrap().hits.is_empty()
    }
}

/// Writes a file that others may not read.
pub(super) fn write_private(path: &Path, bytes: &[u8]) {
    let _ = fs::remove_file(path);
    connection::make_private_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Returns the name of a finding in JSON.
pub(super) fn name_of(finding: &RecordProblem) -> String {
    serde_json::to_value(finding).unwrap()["finding"].as_str().unwrap().to_owned()
}

#[test]
fn a_record_that_is_well_has_no_findings() {
    let home = Home::new();
    for depth in [Depth::Quick, Depth::Thorough] {
        assert_eq!(home.findings(depth), []);
    }
    let examination = Examination { depth: Depth::Quick, now_ms: 0, is_alive: &|_| true, artifacts: None };
    let mut steps = Vec::new();
    let diagnosis = Diagnosis::of_file(&home.path(), &examination, &mut |step| steps.push(step)).unwrap();
    assert!(diagnosis.is_well());
    assert_eq!((diagnosis.sessions, diagnosis.messages, diagnosis.artifacts), (3, 5, 1));
    assert_eq!(diagnosis.database_bytes, fs::metadata(home.path()).unwrap().len());
    assert!(steps.iter().any(|step| step.what == "pages" && step.done == step.total));
    let report = home.repair();
    assert_eq!((report.backup, report.salvaged), (None, None));
}

#[test]
fn it_looks_while_others_write() {
    let home = Home::new();
    let store = home.open();
    store.append(&owner(), &id("two"), vec![said("still going")]).unwrap();
    assert_eq!(home.findings(Depth::Thorough), []);
    store.append(&owner(), &id("two"), vec![said("and on")]).unwrap();
}

#[test]
fn no_record_is_not_a_lost_one() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home { folder };
    assert_eq!(home.finding(), RecordProblem::NoRecord { path: home.path() });
    assert!(home.repair().backup.is_none());
    assert!(!home.path().exists());

    let home = Home::new();
    fs::remove_file(home.path()).unwrap();
    assert_eq!(home.finding(), RecordProblem::MissingDatabase { path: home.path() });
    assert!(!home.finding().is_mendable());
}

#[test]
fn a_file_that_is_no_database_is_left_alone() {
    let home = Home::new();
    fs::write(home.path(), "these are notes, not a database, and there are quite a few of them".repeat(200))
        .unwrap();
    let before = fs::read(home.path()).unwrap();
    let finding = home.finding();
    assert!(
        matches!(&finding, RecordProblem::NotADatabase { path, .. } if *path == home.path()),
        "{finding:?}"
    );
    let report = home.repair();
    assert_eq!(report.salvaged, None);
    assert_eq!(report.after, report.before);
    assert_eq!(fs::read(home.path()).unwrap(), before);
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    let home = Home { folder: tempfile::tempdir().unwrap() };
    fs::write(home.path(), "").unwrap();
    home.sql("CREATE TABLE theirs (x)");
    assert_eq!(home.finding(), RecordProblem::OtherProgram { path: home.path() });
    assert!(home.repair().backup.is_none());
}

#[test]
fn newer_and_older_schemas_are_distinguished() {
    let home = Home::new();
    let now = version_after(STEPS);
    match recognise(&home.path(), &FolderListing::default(), now + 1).unwrap() {
        FileState::Nothing(finding) => {
            assert_eq!(finding, RecordProblem::OldSchema { found: now, known: now + 1 });
        }
        FileState::Record(_) => panic!("an older record was taken for a new one"),
    }
    home.sql("PRAGMA user_version = 7");
    assert_eq!(home.finding(), RecordProblem::FutureSchema { found: 7, known: now });
    assert!(home.repair().backup.is_none());
}

#[test]
fn a_place_that_cannot_be_read_is_reported() {
    let home = Home { folder: tempfile::tempdir().unwrap() };
    fs::create_dir(home.path()).unwrap();
    assert!(matches!(home.finding(), RecordProblem::Inaccessible { .. }), "{:?}", home.finding());
}

#[cfg(unix)]
#[test]
fn files_open_to_others_are_closed() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let artifact = home.artifact_path();
    for path in [home.path(), artifact.clone(), artifact.parent().unwrap().to_path_buf()] {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    match home.finding() {
        RecordProblem::OpenToOthers { count, paths } => {
            assert_eq!(count, 3);
            assert!(paths.contains(&artifact) && paths.contains(&home.path()));
        }
        other => panic!("{other:?}"),
    }
    home.repair_all_but(&[]);
    assert_eq!(fs::metadata(&artifact).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn lost_artifacts_are_named_with_those_who_refer_to_them() {
    let home = Home::new();
    let (artifact, path) = (home.artifact(), home.artifact_path());
    let whole = fs::read(&path).unwrap();
    let lost = |depth| match home.findings(depth).as_slice() {
        [RecordProblem::LostArtifacts { count: 1, artifacts }] => artifacts[0].clone(),
        other => panic!("{other:?}"),
    };
    fs::remove_file(&path).unwrap();
    let missing = lost(Depth::Quick);
    assert_eq!((missing.id, missing.problem.as_str(), missing.path), (artifact.id, "missing", path.clone()));
    assert_eq!((missing.sessions, missing.messages), (vec![id("one")], 0));
    write_private(&path, &whole[..whole.len() - 3]);
    assert_ne!(lost(Depth::Quick).problem, "missing");
    let mut altered = whole.clone();
    altered[12] ^= 1;
    write_private(&path, &altered);
    assert_eq!(home.findings(Depth::Quick), []);
    assert_eq!(lost(Depth::Thorough).problem, "damaged");
    assert!(home.repair().backup.is_none(), "nothing can be mended");
    write_private(&path, &whole);
    assert_eq!(home.findings(Depth::Thorough), []);
}

#[test]
fn a_message_whose_artifact_is_lost_is_counted_with_it() {
    let home = Home::new();
    let output = "a line\n".repeat(20_000);
    let json = format!(r#"{{"role":"tool","tool_call_id":"c","content":{}}}"#, serde_json::json!(output));
    let new = NewMessage { message: decode_message_text(json).unwrap(), ..said("") };
    let store = home.open();
    store.append(&owner(), &id("two"), vec![new]).unwrap();
    let artifacts = store.artifacts(&owner(), &id("two")).unwrap();
    fs::remove_file(store.artifact_files().file_path(&artifacts[1].id)).unwrap();
    match home.findings(Depth::Thorough).as_slice() {
        [RecordProblem::LostArtifacts { count: 1, artifacts }] => {
            assert_eq!((artifacts[0].messages, &artifacts[0].sessions), (1, &vec![id("two")]));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_nobody_refers_to_is_removed_and_strange_files_are_not() {
    let home = Home::new();
    let folder = ArtifactFolder::at(artifacts_beside(&home.path()));
    let (orphan, _) = folder.put("nobody refers to this").unwrap();
    let abandoned = folder.file_path(&orphan).parent().unwrap().join(".new-abc");
    let strange = folder.path().join("notes.txt");
    write_private(&abandoned, b"half");
    write_private(&strange, b"mine");
    let findings = home.findings(Depth::Quick);
    assert_eq!(findings.len(), 3, "{findings:?}");
    assert!(findings.iter().any(|finding| matches!(finding,
        RecordProblem::OrphanedArtifacts { count: 1, bytes, artifacts } if *bytes > 0 && *artifacts == [orphan.clone()])));
    assert!(findings.contains(&RecordProblem::AbandonedFiles { paths: vec![abandoned.clone()] }));
    assert!(findings.contains(&RecordProblem::StrangeFiles { paths: vec![strange.clone()] }));
    let report = home.repair_all_but(&["strange_files"]);
    assert!(!folder.file_path(&orphan).exists() && !abandoned.exists() && strange.exists());
    let backup = fs::File::open(report.backup.unwrap()).unwrap();
    let names: Vec<String> = tar::Archive::new(backup)
        .entries()
        .unwrap()
        .map(|entry| entry.unwrap().path().unwrap().to_string_lossy().into_owned())
        .collect();
    assert!(
        names.iter().any(|name| name.contains(orphan.as_str())),
        "the backup has what was removed: {names:?}"
    );
}

#[test]
fn artifacts_whose_sessions_are_gone_are_released() {
    let home = Home::new();
    let path = home.artifact_path();
    home.sql("DELETE FROM artifact_refs");
    assert!(matches!(home.finding(), RecordProblem::OrphanedArtifacts { count: 1, .. }));
    home.repair_all_but(&[]);
    assert!(!path.exists());
}

#[test]
fn a_dead_end_is_opened_again_unless_it_was_imported() {
    let home = Home::new();
    let store = home.open();
    store.end_session(&owner(), &id("other"), &EndReason::COMPRESSION, 9).unwrap();
    drop(store);
    assert_eq!(home.finding(), RecordProblem::DeadEnds { count: 1, sessions: vec![id("other")] });
    home.repair_all_but(&[]);
    let store = home.open();
    store.append(&owner(), &id("other"), vec![said("it goes on")]).unwrap();
    store.end_session(&owner(), &id("other"), &EndReason::COMPRESSION, 9).unwrap();
    drop(store);
    home.sql("UPDATE sessions SET origin_key = 'theirs' WHERE id = 'other'");
    assert_eq!(home.repair().after, [RecordProblem::DeadEnds { count: 1, sessions: vec![id("other")] }]);
}

#[test]
fn sessions_that_hang_on_nothing_can_be_used() {
    let home = Home::new();
    let store = home.open();
    let link = Link { parent: id("other"), kind: LinkKind::Branch, leaves_at: 1 };
    home.open_session(&store, "branch", Some(link));
    store.append(&owner(), &id("branch"), vec![said("own words")]).unwrap();
    drop(store);
    home.sql(
        "UPDATE clues_open SET covered = covered & ~1 WHERE block = (SELECT id / 2 FROM messages WHERE session = 2);
         DELETE FROM messages WHERE session = 2;
         DELETE FROM view_items WHERE session = 2;
         DELETE FROM sessions WHERE ordinal = 2;",
    );
    let names: Vec<String> = home.findings(Depth::Quick).iter().map(name_of).collect();
    assert_eq!(names, ["lost_parents", "broken_views"]);
    home.repair_all_but(&["lost_parents"]);
    assert_eq!(home.shown("branch"), ["own words"]);
    let store = home.open();
    assert_eq!(store.transcript(&owner(), &id("branch")).unwrap().len(), 1);
    assert_eq!(store.chain(&owner(), &id("branch")).unwrap().len(), 1);
}

#[test]
fn wrong_places_among_others_are_worked_out_anew() {
    let home = Home::new();
    for sql in [
        "UPDATE sessions SET is_tip = 1 WHERE id = 'one'",
        "UPDATE sessions SET is_tip = 0 WHERE id = 'two'",
        "UPDATE sessions SET tree = 77 WHERE id = 'two'",
        "UPDATE sessions SET is_attached = 1 WHERE id = 'other'",
    ] {
        home.sql(sql);
        assert!(matches!(home.finding(), RecordProblem::WrongLinks { count: 1, .. }), "{sql}");
        home.repair_all_but(&[]);
    }
    // A circle: each is the other's parent.
    home.sql("UPDATE sessions SET parent = 3, parent_id = 'two', link_kind = 'branch', leaves_at = 0 WHERE ordinal = 1");
    assert_eq!(home.open().family(&owner(), &id("one")).unwrap().len(), 2);
    assert_eq!(home.open().transcript(&owner(), &id("two")).unwrap().len(), 4);
    assert!(matches!(home.finding(), RecordProblem::WrongLinks { count: 1, .. }), "{:?}", home.finding());
    home.repair_all_but(&["lost_parents"]);
}

fn answer(text: &str) -> NewMessage {
    let message = decode_message_text(text_message(WireFormat::Chat, Role::Assistant, text)).unwrap();
    NewMessage { message, ..said("") }
}

/// Appends a turn as a gateway does: the new messages, then the answer of a call whose prompt ended there.
fn turn(store: &SqliteStore, new: Vec<NewMessage>, answered: &str) {
    let at = store.append(&owner(), &id("shared"), new).unwrap().next_seq;
    store.append(&owner(), &id("shared"), vec![answer(answered)]).unwrap();
    let call = NewCall { model: "m".into(), sent_to_seq: Some(at), ..Default::default() };
    store.record_calls(&owner(), &id("shared"), vec![call]).unwrap();
}

#[test]
fn turns_that_two_gateways_recorded_twice_are_reported_and_left() {
    let home = Home::new();
    let store = home.open();
    home.open_session(&store, "shared", None);
    turn(&store, vec![said("one")], "answer 1");
    turn(&store, vec![said("two")], "answer 2");
    // People repeat a message and get the same answer.
    turn(&store, vec![said("go on")], "Done.");
    turn(&store, vec![said("go on")], "Done.");
    assert_eq!(home.findings(Depth::Quick), []);
    // A gateway that did not see the last turn treats its client's repetition as new.
    turn(&store, vec![said("three")], "answer 3");
    let echoed = NewMessage {
        message: decode_message_text(
            r#"{"role":"assistant","content":"answer 3","refusal":null}"#.to_owned(),
        )
        .unwrap(),
        ..said("")
    };
    turn(&store, vec![said("three"), echoed, said("four")], "answer 4");
    let found = home.findings(Depth::Quick);
    assert_eq!(found, [RecordProblem::DoubledMessages { count: 2, sessions: vec![id("shared")] }]);
    assert!(!found[0].is_mendable());
    assert_eq!(found[0].severity(), Severity::Warning);
    let before = store.messages(&owner(), &id("shared")).unwrap();
    drop(store);
    home.repair();
    assert_eq!(home.open().messages(&owner(), &id("shared")).unwrap(), before);
}

#[test]
fn a_conversation_that_was_attached_later_is_well() {
    let home = Home::new();
    let store = home.open();
    home.open_session(&store, "title", None);
    store.append(&owner(), &id("title"), vec![said("a title")]).unwrap();
    home.open_session(&store, "main", None);
    let link = Link { parent: id("main"), kind: LinkKind::SideCall, leaves_at: 0 };
    store.attach(&owner(), &id("title"), &link).unwrap();
    drop(store);
    assert_eq!(home.findings(Depth::Thorough), []);
}
