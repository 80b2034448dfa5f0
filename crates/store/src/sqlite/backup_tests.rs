//! Tests of backups: written during other writes, restored with only `tar`.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use throughline_transcript::{Role, WireFormat, decode_message_text, text_message};

use super::*;
use crate::artifacts::artifact::{ArtifactRange, NewArtifact};
use crate::ids::{Owner, SessionId};
use crate::message::NewMessage;
use crate::search::request::SearchQuery;
use crate::sessions::session::{NewSession, Origin};
use crate::store::Store;

fn said(text: &str) -> NewMessage {
    let message = decode_message_text(text_message(WireFormat::Chat, Role::User, text)).unwrap();
    NewMessage { message, tokens: 1, at_ms: 0, tools: Vec::new(), rendition: None }
}

fn open_in(home: &Path) -> SqliteStore {
    SqliteStore::open(&home.join(DATABASE), 0).unwrap()
}

fn id() -> SessionId {
    SessionId::from_text("one")
}

/// A record with a few messages and two artifacts.
fn filled(home: &Path) -> SqliteStore {
    let store = open_in(home);
    let new = NewSession {
        id: id(),
        owner: Owner::default(),
        link: None,
        started_ms: 0,
        model: None,
        title: None,
        origin: Origin::default(),
        wire_format: WireFormat::Chat,
    };
    store.open_session(new, None).unwrap();
    store
        .append(&Owner::default(), &id(), (0..50).map(|at| said(&format!("message {at}"))).collect())
        .unwrap();
    for text in ["first artifact", "second artifact"] {
        let session = id();
        let new = NewArtifact { session: &session, text, label: "bash", at_ms: 0 };
        store.put_artifact(&Owner::default(), new).unwrap();
    }
    store
}

fn back_up(store: &SqliteStore, to: &Path) -> Result<BackupReport> {
    store.back_up(to, 1_700_000_000_000, &mut |_| ())
}

/// Unpacks a backup as its instructions say.
fn unpack(backup: &Path) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let status = Command::new("tar").arg("-xf").arg(backup).arg("-C").arg(home.path()).status().unwrap();
    assert!(status.success());
    home
}

fn words(store: &SqliteStore) -> Vec<String> {
    let messages = store.messages(&Owner::default(), &id()).unwrap();
    messages.iter().map(|message| message.decode().unwrap().text().into_owned()).collect()
}

fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_backup_is_restored_by_unpacking_it() {
    let home = tempfile::tempdir().unwrap();
    let store = filled(home.path());
    let backup = home.path().join("backup.tar");
    let report = back_up(&store, &backup).unwrap();
    assert_eq!((report.sessions, report.messages, report.artifacts), (1, 50, 2));
    assert_eq!(report.bytes, fs::metadata(&backup).unwrap().len());
    assert!(report.missing_artifacts.is_empty() && report.problems.is_empty());

    let restored_home = unpack(&backup);
    assert_eq!(names_in(restored_home.path()), ["RESTORE.txt", "artifacts", "record.db"]);
    let restored = open_in(restored_home.path());
    assert_eq!(words(&restored), words(&store));
    let artifacts = restored.artifacts(&Owner::default(), &id()).unwrap();
    assert_eq!(artifacts, store.artifacts(&Owner::default(), &id()).unwrap());
    let text = restored.read_artifact(&Owner::default(), &artifacts[1].id, ArtifactRange::All).unwrap();
    assert_eq!(text, "second artifact");
    let query = SearchQuery { text: "artifact".into(), ..SearchQuery::default() };
    assert_eq!(restored.search(&Owner::default(), &query).unwrap().hits.len(), 2);
    restored.append(&Owner::default(), &id(), vec![said("and on it goes")]).unwrap();
}

#[test]
fn the_backup_is_of_one_moment_while_others_write() {
    let home = tempfile::tempdir().unwrap();
    let store = filled(home.path());
    let other = open_in(home.path());
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut batches = 0;
            while !is_done.load(Ordering::Relaxed) || batches == 0 {
                // Always two at once: a snapshot never has only one of them.
                other.append(&Owner::default(), &id(), vec![said("left"), said("right")]).unwrap();
                batches += 1;
            }
            batches
        });
        for at in 0..5 {
            let backup = home.path().join(format!("{at}.tar"));
            let report = back_up(&store, &backup).unwrap();
            assert!(report.problems.is_empty(), "{:?}", report.problems);
            let restored_home = unpack(&backup);
            let restored = open_in(restored_home.path());
            let words = words(&restored);
            assert_eq!(words.len() as u64, report.messages);
            assert_eq!(words.len() % 2, 0);
            assert_eq!(words.iter().filter(|word| *word == "left").count(), (words.len() - 50) / 2);
        }
        is_done.store(true, Ordering::Relaxed);
        assert!(writer.join().unwrap() > 0);
    });
}

#[test]
fn what_is_there_is_never_overwritten() {
    let home = tempfile::tempdir().unwrap();
    let store = filled(home.path());
    let backup = home.path().join("backup.tar");
    fs::write(&backup, "something dear").unwrap();
    let error = back_up(&store, &backup).unwrap_err();
    assert!(
        matches!(&error, crate::StoreError::Io { source, .. } if source.kind() == io::ErrorKind::AlreadyExists),
        "{error:?}"
    );
    assert_eq!(fs::read(&backup).unwrap(), b"something dear");
    assert_eq!(names_in(home.path()).iter().filter(|name| name.contains("throughline-backup")).count(), 0);
}

#[test]
fn a_backup_that_cannot_be_written_leaves_nothing_behind() {
    let home = tempfile::tempdir().unwrap();
    let store = filled(home.path());
    let before = names_in(home.path());
    let error = back_up(&store, &home.path().join("no such folder/backup.tar")).unwrap_err();
    assert!(matches!(error, crate::StoreError::Io { .. }), "{error:?}");
    assert_eq!(names_in(home.path()), before);
}

#[cfg(unix)]
#[test]
fn only_its_owner_may_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().unwrap();
    let store = filled(home.path());
    let backup = home.path().join("backup.tar");
    back_up(&store, &backup).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&backup), 0o600);
    assert_eq!(mode(&unpack(&backup).path().join(DATABASE)), 0o600);
}

#[test]
fn a_missing_artifact_is_told_and_the_rest_is_kept() {
    let home = tempfile::tempdir().unwrap();
    let store = filled(home.path());
    let artifacts = store.artifacts(&Owner::default(), &id()).unwrap();
    fs::remove_file(store.artifact_files().file_path(&artifacts[0].id)).unwrap();
    let report = back_up(&store, &home.path().join("backup.tar")).unwrap();
    assert_eq!((report.artifacts, report.missing_artifacts), (1, vec![artifacts[0].id.clone()]));
}

#[test]
fn progress_goes_through_every_step_to_its_end() {
    let home = tempfile::tempdir().unwrap();
    let store = filled(home.path());
    let mut steps: Vec<StoreProgress> = Vec::new();
    store.back_up(&home.path().join("backup.tar"), 0, &mut |progress| steps.push(progress)).unwrap();
    for what in ["copying", "checking", "packing", "comparing"] {
        let last = steps.iter().rfind(|step| step.what == what).unwrap();
        assert_eq!(last.done, last.total, "{what}");
    }
}

#[test]
fn an_archive_that_was_altered_before_it_was_named_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, vec![7; 5_000]).unwrap();
    let archive = folder.path().join("archive.tar");
    let entries = vec![ArchiveEntry::of_file("file".into(), &path).unwrap()];
    let hashes = pack(&File::create(&archive).unwrap(), &entries, "note", 0, &mut |_| ()).unwrap();
    verify(&archive, &entries, &hashes, &mut |_| ()).unwrap();
    let mut bytes = fs::read(&archive).unwrap();
    let middle = bytes.len() - 3_000;
    bytes[middle] ^= 1;
    fs::write(&archive, bytes).unwrap();
    assert!(verify(&archive, &entries, &hashes, &mut |_| ()).is_err());
    verify(&archive, &entries[..0], &hashes, &mut |_| ()).unwrap_err();
}

#[test]
fn files_of_a_record_that_cannot_be_opened_are_packed_as_they_lie() {
    let home = tempfile::tempdir().unwrap();
    drop(filled(home.path()));
    let database = home.path().join(DATABASE);
    fs::write(&database, "not a database any more").unwrap();
    fs::write(home.path().join("record.db-wal"), "a journal").unwrap();
    let backup = home.path().join("backup.tar");
    let folder = ArtifactFolder::at(home.path().join(ARTIFACTS));
    back_up_files(&database, &folder, &backup, 0, &mut |_| ()).unwrap();
    let restored = unpack(&backup);
    assert_eq!(fs::read(restored.path().join(DATABASE)).unwrap(), b"not a database any more");
    assert_eq!(fs::read(restored.path().join("record.db-wal")).unwrap(), b"a journal");
    assert_eq!(ArtifactFolder::at(restored.path().join(ARTIFACTS)).list().unwrap(), folder.list().unwrap());
}

/// A header as written by builds before the `tar` crate.
fn old_header(name: &str, size: u64) -> [u8; 512] {
    fn octal(field: &mut [u8], value: u64) {
        let digits = format!("{value:0width$o}", width = field.len() - 1);
        field[..digits.len()].copy_from_slice(digits.as_bytes());
    }
    let mut block = [0_u8; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    octal(&mut block[100..108], 0o600);
    octal(&mut block[108..116], 0);
    octal(&mut block[116..124], 0);
    octal(&mut block[124..136], size);
    octal(&mut block[136..148], 1_700_000_000);
    block[156] = b'0';
    block[257..265].copy_from_slice(b"ustar\x0000");
    block[148..156].fill(b' ');
    let sum = block.iter().map(|byte| u64::from(*byte)).sum();
    octal(&mut block[148..155], sum);
    block
}

#[test]
fn headers_are_what_earlier_builds_wrote_but_for_the_padding_of_the_checksum() {
    let without_checksum = |mut block: [u8; 512]| {
        block[148..156].fill(b' ');
        block
    };
    for (name, size) in [(DATABASE, 0), (NOTE, 513), ("artifacts/ab/cdef.zst", 0o777_7777_7777)] {
        let (new, old) = (header(name, size, 1_700_000_000).unwrap(), old_header(name, size));
        assert_eq!(without_checksum(*new.as_bytes()), without_checksum(old), "{name}");
        assert_eq!(new.cksum().unwrap(), tar::Header::from_byte_slice(&old).cksum().unwrap(), "{name}");
    }
}

#[test]
fn a_backup_of_an_earlier_build_is_restored_by_unpacking_it() {
    let home = tempfile::tempdir().unwrap();
    drop(filled(home.path()));
    let folder = ArtifactFolder::at(home.path().join(ARTIFACTS));
    let mut files = vec![(NOTE.to_owned(), b"how to restore it".to_vec())];
    files.push((DATABASE.to_owned(), fs::read(home.path().join(DATABASE)).unwrap()));
    for id in folder.list().unwrap().artifacts {
        let path = folder.file_path(&id);
        files.push((name_in_archive(&folder, &path), fs::read(path).unwrap()));
    }
    let mut bytes = Vec::new();
    for (name, content) in &files {
        bytes.extend(old_header(name, content.len() as u64));
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.resize(bytes.len() + 1_024, 0);
    let backup = home.path().join("old.tar");
    fs::write(&backup, bytes).unwrap();
    let restored = unpack(&backup);
    for (name, content) in &files[1..] {
        assert_eq!(fs::read(restored.path().join(name)).unwrap(), *content, "{name}");
    }
    // The function that checks new archives can read it too.
    let entries: Vec<ArchiveEntry> = files[1..]
        .iter()
        .map(|(name, _)| ArchiveEntry::of_file(name.clone(), &restored.path().join(name)).unwrap())
        .collect();
    let hashes: Vec<blake3::Hash> = files[1..].iter().map(|(_, content)| blake3::hash(content)).collect();
    verify(&backup, &entries, &hashes, &mut |_| ()).unwrap();
    SqliteStore::open(&restored.path().join(DATABASE), 1).unwrap();
}

#[test]
fn sizes_beyond_eight_gigabytes_survive() {
    for size in [0o777_7777_7777, 0o777_7777_7777 + 1, 1 << 40] {
        assert_eq!(header(DATABASE, size, 0).unwrap().entry_size().unwrap(), size);
    }
}

#[test]
fn a_file_that_shrinks_while_it_is_packed_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, vec![7; 5_000]).unwrap();
    let entries = vec![ArchiveEntry::of_file("file".into(), &path).unwrap()];
    fs::write(&path, vec![7; 4_000]).unwrap();
    let archive = File::create(folder.path().join("archive.tar")).unwrap();
    pack(&archive, &entries, "note", 0, &mut |_| ()).unwrap_err();
}
