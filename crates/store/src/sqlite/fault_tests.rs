//! Tests of permissions, damage, a full disk, a locked file: each has its error, and no committed data is lost.

use std::fs;
use std::time::Duration;

use super::connection;
use super::connection::ARTIFACTS;
use super::test_home::*;
use super::*;
use crate::message::NewMessage;
use crate::sessions::session::SessionFilter;
use crate::store::Store;

#[cfg(unix)]
mod permissions {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn files_and_folders_are_their_owners_only() {
        let home = Home::new();
        let path = home.folder.path().join("new").join("home").join("record.db");
        let store = SqliteStore::open(&path, 0).unwrap();
        open_session(&store, "one");
        say(&store, "one", &["hello"]);
        for suffix in ["", "-wal", "-shm"] {
            assert_eq!(mode(&connection::beside(&path, suffix)), 0o600, "record.db{suffix}");
        }
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        assert_eq!(mode(&path.parent().unwrap().join(ARTIFACTS)), 0o700);
    }

    #[test]
    fn what_others_could_read_they_no_longer_can() {
        let home = Home::with_messages(3);
        let reader = stranger(&home.path());
        let _: i64 = reader.query_row("SELECT count(*) FROM messages", [], |row| row.get(0)).unwrap();
        for suffix in ["", "-wal", "-shm"] {
            fs::set_permissions(connection::beside(&home.path(), suffix), fs::Permissions::from_mode(0o644))
                .unwrap();
        }
        let store = home.open();
        assert_eq!(count(&store, "one"), 3);
        for suffix in ["", "-wal", "-shm"] {
            assert_eq!(mode(&connection::beside(&home.path(), suffix)), 0o600, "record.db{suffix}");
        }
    }
}

#[test]
fn what_is_no_database_is_refused_and_left_alone() {
    let home = Home::new();
    let text = "Dear diary. ".repeat(500);
    fs::write(home.path(), &text).unwrap();
    let error = SqliteStore::open(&home.path(), 0).unwrap_err();
    assert!(matches!(error, StoreError::NotOurs { .. }), "{error:?}");
    assert!(matches!(SqliteStore::open_read_only(&home.path()), Err(StoreError::NotOurs { .. })));
    assert_eq!(fs::read_to_string(home.path()).unwrap(), text);
}

#[test]
fn a_database_of_another_program_is_refused_and_left_alone() {
    let home = Home::new();
    fs::write(home.path(), "").unwrap();
    stranger(&home.path()).execute_batch("CREATE TABLE bookmarks (url TEXT)").unwrap();
    let before = fs::read(home.path()).unwrap();
    let error = SqliteStore::open(&home.path(), 0).unwrap_err();
    assert!(matches!(error, StoreError::NotOurs { .. }), "{error:?}");
    assert_eq!(fs::read(home.path()).unwrap(), before);
}

#[test]
fn a_folder_in_its_place_is_refused() {
    let home = Home::new();
    fs::create_dir(home.path()).unwrap();
    assert!(matches!(SqliteStore::open(&home.path(), 0), Err(StoreError::NotOurs { .. })));
}

#[test]
fn a_record_of_a_newer_version_is_refused_and_left_alone() {
    let home = Home::with_messages(1);
    stranger(&home.path()).pragma_update(None, "user_version", 99).unwrap();
    for opened in [SqliteStore::open(&home.path(), 0), SqliteStore::open_read_only(&home.path())] {
        let error = opened.unwrap_err();
        assert!(matches!(error, StoreError::FutureSchema { found: 99, known: 4, .. }), "{error:?}");
    }
    let kept: i64 =
        stranger(&home.path()).query_row("SELECT count(*) FROM messages", [], |row| row.get(0)).unwrap();
    assert_eq!(kept, 1);
}

#[test]
fn a_record_that_was_cut_short_is_damaged_and_not_begun_anew() {
    for keep in [1, 2, 3] {
        let home = Home::with_messages(300);
        let file = fs::OpenOptions::new().write(true).open(home.path()).unwrap();
        let bytes = file.metadata().unwrap().len();
        file.set_len(bytes / 4 * keep).unwrap();
        drop(file);
        let before = fs::read(home.path()).unwrap();
        let error = SqliteStore::open(&home.path(), 0).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{keep} quarters: {error:?}");
        assert_eq!(fs::read(home.path()).unwrap(), before, "nothing is written over what is left");
    }
}

#[test]
fn an_empty_file_with_traces_of_a_record_is_damaged() {
    let home = Home::with_messages(1);
    fs::create_dir_all(home.folder.path().join(ARTIFACTS).join("ab")).unwrap();
    fs::write(home.path(), "").unwrap();
    let error = SqliteStore::open(&home.path(), 0).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
}

#[test]
fn an_empty_file_without_any_is_a_new_record() {
    let home = Home::new();
    fs::write(home.path(), "").unwrap();
    open_session(&home.open(), "one");
}

#[test]
fn a_corrupted_page_is_named_and_the_rest_stays_readable() {
    let home = Home::with_messages(400);
    let (root, page_bytes): (u64, u64) = stranger(&home.path())
        .query_row(
            "SELECT rootpage, (SELECT page_size FROM pragma_page_size) FROM sqlite_schema WHERE name = 'messages'",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    let mut bytes = fs::read(home.path()).unwrap();
    let at = ((root - 1) * page_bytes) as usize;
    bytes[at..at + page_bytes as usize].fill(0xA5);
    fs::write(home.path(), bytes).unwrap();
    let store = home.open();
    let error = store.messages(&owner(), &id("one")).unwrap_err();
    match &error {
        StoreError::Damaged { path, .. } => assert_eq!(*path, home.path()),
        other => panic!("{other:?}"),
    }
    let error = store.append(&owner(), &id("one"), vec![message("more")]).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
    let session = store.session(&owner(), &id("one")).unwrap();
    assert_eq!(
        (session.next_seq, session.counters.messages),
        (400, 400),
        "nothing of the failed write is kept"
    );
    assert_eq!(store.conversations(&owner(), &SessionFilter::default()).unwrap().len(), 1);
}

#[test]
fn a_message_whose_bytes_are_not_what_was_written_is_damage() {
    let home = Home::with_messages(2);
    stranger(&home.path()).execute("UPDATE messages SET coding = 1 WHERE seq = 1", []).unwrap();
    match home.open().messages(&owner(), &id("one")) {
        Err(StoreError::Damaged { path, .. }) => assert_eq!(path, home.path()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_record_that_another_keeps_locked_is_busy_and_can_be_read() {
    let home = Home::with_messages(2);
    let store =
        SqliteStore::open_with(&home.path(), 0, STEPS, Duration::from_millis(20), &mut |_| ()).unwrap();
    let other = stranger(&home.path());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.append(&owner(), &id("one"), vec![message("more")]).unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "{error:?}");
    assert_eq!(count(&store, "one"), 2);
    assert_eq!(count(&home.open(), "one"), 2, "opening needs no lock either");
    other.execute_batch("ROLLBACK").unwrap();
    say(&store, "one", &["more"]);
    assert_eq!(count(&store, "one"), 3);
}

#[test]
fn a_full_disk_is_named_and_nothing_half_is_kept() {
    let home = Home::with_messages(10);
    let store = home.open();
    let pages: i64 = {
        let writer = store.writer().unwrap();
        let pages = writer.conn.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        writer.conn.pragma_update(None, "max_page_count", pages + 5).unwrap();
        pages
    };
    let many: Vec<NewMessage> =
        (0..200).map(|at| message(&format!("{at} {}", "word ".repeat(100)))).collect();
    let error = store.append(&owner(), &id("one"), many.clone()).unwrap_err();
    assert!(matches!(error, StoreError::DiskFull { .. }), "{error:?}");
    let session = store.session(&owner(), &id("one")).unwrap();
    assert_eq!((session.next_seq, session.counters.messages), (10, 10));
    assert_eq!(count(&store, "one"), 10);
    store.writer().unwrap().conn.pragma_update(None, "max_page_count", pages + 5_000).unwrap();
    store.append(&owner(), &id("one"), many).unwrap();
    assert_eq!(count(&store, "one"), 210);
}

#[test]
fn a_record_opened_for_reading_refuses_to_be_written() {
    let home = Home::with_messages(2);
    let writing = home.open();
    let reading = SqliteStore::open_read_only(&home.path()).unwrap();
    say(&writing, "one", &["more"]);
    assert_eq!(count(&reading, "one"), 3, "it sees what others write");
    let error = reading.append(&owner(), &id("one"), vec![message("no")]).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error:?}");
    assert!(matches!(reading.rename(&owner(), &id("one"), Some("no")), Err(StoreError::ReadOnly { .. })));
}

#[test]
fn a_record_that_is_not_there_is_not_made_for_reading() {
    let home = Home::new();
    assert!(matches!(SqliteStore::open_read_only(&home.path()), Err(StoreError::Io { .. })));
    assert!(!home.path().exists());
}

#[test]
fn a_record_without_room_is_not_writable() {
    let home = Home::with_messages(3);
    let store = home.open();
    let writer = |change: &dyn Fn(&Connection)| change(&store.writer().unwrap().conn);
    let pages = std::cell::Cell::new(0i64);
    writer(&|conn| {
        pages.set(conn.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap());
        conn.pragma_update(None, "max_page_count", pages.get()).unwrap();
    });
    let error = store.check_writable().unwrap_err();
    assert!(matches!(error, StoreError::DiskFull { .. }), "{error:?}");
    writer(&|conn| conn.pragma_update(None, "max_page_count", pages.get() + 100).unwrap());
    // Repeated checks use the space of one.
    for _ in 0..20 {
        store.check_writable().unwrap();
    }
    assert_eq!(count(&store, "one"), 3);
}

#[cfg(unix)]
#[test]
fn a_record_that_was_removed_or_replaced_is_not_writable() {
    let home = Home::with_messages(3);
    let store = home.open();
    store.check_writable().unwrap();
    let away = home.folder.path().join("away.db");
    fs::rename(home.path(), &away).unwrap();
    assert!(store.check_writable().is_err());
    fs::write(home.path(), "").unwrap();
    assert!(store.check_writable().is_err());
    fs::rename(&away, home.path()).unwrap();
    store.check_writable().unwrap();
}
