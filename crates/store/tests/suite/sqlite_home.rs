//! Homes that cannot be written: folders and files without permission, a disk without space.
//!
//! Permissions mean nothing to root, and a full disk needs a disk of its own, so the ignored tests run in a child of
//! this very binary, as nobody or on a small file system that only the child sees.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]
#![cfg(target_os = "linux")]

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use throughline_store::{
    NewArtifact, NewMessage, NewSession, Origin, Owner, SessionId, SqliteStore, Store, StoreError,
};
use throughline_transcript::{Role, WireFormat, decode_message_text, text_message};

const NOBODY: u32 = 65_534;
/// What a child says at the end: a harness that found no test to run succeeds as well.
const DONE: &str = "everything was checked";

fn owner() -> Owner {
    Owner::default()
}

fn one() -> SessionId {
    SessionId::from_text("one")
}

fn open_session(store: &SqliteStore) {
    let new = NewSession {
        id: one(),
        owner: owner(),
        link: None,
        started_ms: 0,
        model: None,
        title: None,
        origin: Origin { program: "test".to_owned(), key: None, project: None },
        wire_format: WireFormat::Chat,
    };
    store.open_session(new, None).unwrap();
}

fn message(text: &str) -> NewMessage {
    let message = decode_message_text(text_message(WireFormat::Chat, Role::User, text)).unwrap();
    NewMessage { message, tokens: 1, at_ms: 1, tools: Vec::new(), rendition: None }
}

fn said(store: &SqliteStore) -> usize {
    store.messages(&owner(), &one()).unwrap().len()
}

/// The folder a child was told to work in.
fn ordered_folder() -> PathBuf {
    PathBuf::from(std::io::stdin().lines().next().unwrap().unwrap())
}

/// Runs a command that runs an ignored test, and hears whether everything in it was checked.
fn run(mut command: Command, test: &str, folder: &Path) {
    let mut child = command
        .args(["--exact", &format!("sqlite_home::{test}"), "--ignored", "--nocapture"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(folder.to_str().unwrap().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && told.contains(DONE), "{told}");
}

/// This program as nobody, or as who we are if that is not root, from a place anybody may run it.
fn as_nobody(folder: &Path) -> Command {
    let program = folder.join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(program);
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// Gives everything in a folder to nobody, if we may.
fn give_away(folder: &Path) {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return;
    }
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            give_away(&path);
        }
        chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    chown(folder, Some(NOBODY), Some(NOBODY)).unwrap();
}

#[test]
fn a_home_that_cannot_be_written_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    for home in ["locked-folder", "locked-file"] {
        let home = folder.path().join(home);
        let store = SqliteStore::open(&home.join("record.db"), 0).unwrap();
        open_session(&store);
        store.append(&owner(), &one(), vec![message("hello"), message("there")]).unwrap();
    }
    let command = as_nobody(folder.path());
    give_away(&folder.path().join("locked-folder"));
    give_away(&folder.path().join("locked-file"));
    fs::set_permissions(folder.path().join("locked-folder"), Permissions::from_mode(0o500)).unwrap();
    fs::set_permissions(folder.path().join("locked-file/record.db"), Permissions::from_mode(0o400)).unwrap();
    run(command, "child_without_permission", folder.path());
    fs::set_permissions(folder.path().join("locked-folder"), Permissions::from_mode(0o700)).unwrap();
    for home in ["locked-folder", "locked-file"] {
        let path = folder.path().join(home).join("record.db");
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        assert_eq!(said(&SqliteStore::open(&path, 0).unwrap()), 2);
    }
}

#[test]
#[ignore = "the child of another test"]
fn child_without_permission() {
    let folder = ordered_folder();
    for home in ["locked-folder", "locked-file"] {
        let path = folder.join(home).join("record.db");
        let error = SqliteStore::open(&path, 0).unwrap_err();
        assert!(matches!(error, StoreError::ReadOnly { .. }), "{home}: {error:?}");
        let store = SqliteStore::open_read_only(&path).unwrap();
        assert_eq!(said(&store), 2, "{home}");
        let error = store.append(&owner(), &one(), vec![message("no")]).unwrap_err();
        assert!(matches!(error, StoreError::ReadOnly { .. }), "{home}: {error:?}");
    }
    let path = folder.join("locked-folder/new-home/record.db");
    let error = SqliteStore::open(&path, 0).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error:?}");
    println!("{DONE}");
}

#[test]
fn a_full_disk_loses_nothing_that_was_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mount = format!("mount -t tmpfs -o size=6m tmpfs '{}'", folder.path().display());
    let may_mount = Command::new("unshare").args(["-rm", "sh", "-c", &mount]).output();
    if !may_mount.is_ok_and(|output| output.status.success()) {
        // The same refusal is tested without a disk of its own beside the store.
        eprintln!("this machine lets nobody mount a file system; not tested");
        return;
    }
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", &format!("{mount} && exec \"$0\" \"$@\"")]);
    command.arg(std::env::current_exe().unwrap());
    run(command, "child_on_a_small_disk", folder.path());
}

#[test]
#[ignore = "the child of another test"]
fn child_on_a_small_disk() {
    let folder = ordered_folder();
    let ballast = folder.join("ballast");
    fs::write(&ballast, vec![1; 1 << 20]).unwrap();
    let path = folder.join("record.db");
    let store = SqliteStore::open(&path, 0).unwrap();
    open_session(&store);
    let mut kept = 0;
    let error = loop {
        let batch =
            (kept..kept + 20).map(|at| message(&format!("number {at} {}", noise(at as u64, 400)))).collect();
        match store.append(&owner(), &one(), batch) {
            Ok(_) => kept += 20,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::DiskFull { .. }), "{error:?}");
    assert!(kept > 100, "{kept}");
    assert_eq!(said(&store), kept);
    let large = noise(7, 3 << 20);
    let artifact = NewArtifact { session: &one(), text: &large, label: "noise", at_ms: 1 };
    let error = store.put_artifact(&owner(), artifact).unwrap_err();
    assert!(matches!(error, StoreError::DiskFull { .. }), "{error:?}");
    assert!(store.artifacts(&owner(), &one()).unwrap().is_empty());
    drop(store);
    let store = SqliteStore::open(&path, 0).unwrap();
    assert_eq!(said(&store), kept, "it opens on a full disk, whole");
    fs::remove_file(&ballast).unwrap();
    store.append(&owner(), &one(), vec![message("space again")]).unwrap();
    assert_eq!(said(&store), kept + 1);
    println!("{DONE}");
}

/// Text that does not compress well.
fn noise(seed: u64, length: usize) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'!' + u8::try_from(state % 90).unwrap()).to_ascii_lowercase()
    })
    .filter(|character| !matches!(character, '"' | '\\'))
    .take(length)
    .collect()
}
