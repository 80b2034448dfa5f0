//! Large texts in a place of their own: which record it belongs to, what is garbage, and what is said when it fails.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

#[cfg(feature = "s3")]
use throughline_store::ArtifactId;
#[cfg(feature = "postgres")]
use throughline_store::Owner;
use throughline_store::{
    Artifact, ArtifactPlace, ArtifactRange, Dependants, GarbageOptions, GarbageReport, NewArtifact,
    SqliteStore, Store, StoreError, StoreUpkeep,
};

#[cfg(any(feature = "postgres", feature = "s3"))]
use crate::contract::support::say;
use crate::contract::support::{folder_in, id, open, owner, sqlite_in};

const DAY_MS: i64 = 86_400_000;

fn put(store: &dyn Store, session: &str, text: &str) -> Artifact {
    let new = NewArtifact { session: &id(session), text, label: "", at_ms: 5 };
    store.put_artifact(&owner(), new).unwrap()
}

fn read(store: &dyn Store, artifact: &Artifact) -> Result<String, StoreError> {
    store.read_artifact(&owner(), &artifact.id, ArtifactRange::All)
}

/// Garbage of any age, as if it were a day later.
#[expect(clippy::disallowed_methods, reason = "files are as old as the clock of the machine says")]
fn all_garbage(dry_run: bool) -> GarbageOptions {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    GarbageOptions { now_ms: i64::try_from(now.as_millis()).unwrap() + DAY_MS, grace_ms: DAY_MS / 2, dry_run }
}

type Collect<'a> = &'a dyn Fn(&GarbageOptions) -> GarbageReport;

fn garbage_is_collected_after_its_grace(store: &dyn Store, collect: Collect<'_>) {
    open(store, "one");
    open(store, "two");
    let stays = put(store, "one", &"stays ".repeat(3_000));
    let goes = put(store, "two", &"goes ".repeat(3_000));
    store.delete(&owner(), &id("two"), Dependants::Refuse).unwrap();

    let young = GarbageOptions { grace_ms: 30 * DAY_MS, ..all_garbage(false) };
    let report = collect(&young);
    assert_eq!((report.objects, report.garbage, report.younger, report.removed), (2, 0, 1, 0), "{report:?}");
    let counted = collect(&all_garbage(true));
    assert_eq!((counted.objects, counted.garbage, counted.removed), (2, 1, 0), "{counted:?}");
    assert_eq!(counted.garbage_bytes, goes.stored_bytes);
    let report = collect(&all_garbage(false));
    assert_eq!((report.garbage, report.removed), (1, 1), "{report:?}");
    let report = collect(&all_garbage(false));
    assert_eq!((report.objects, report.garbage), (1, 0), "{report:?}");
    assert!(read(store, &stays).unwrap().starts_with("stays "));

    // A text that was garbage is stored anew.
    let again = put(store, "one", &"goes ".repeat(3_000));
    assert!(read(store, &again).unwrap().starts_with("goes "));
}

fn a_place_belongs_to_one_record(first: SqliteStore, second: SqliteStore, place: &ArtifactPlace) {
    let first = first.with_artifacts(Some(place)).unwrap();
    open(&first, "one");
    put(&first, "one", "a text");
    let refused = second.with_artifacts(Some(place)).unwrap_err();
    assert!(matches!(refused, StoreError::BadArtifactPlace { .. }), "{refused:?}");
    assert!(refused.to_string().contains("another record"), "{refused}");
}

#[test]
fn garbage_in_a_folder_is_collected_after_its_grace() {
    let home = tempfile::tempdir().unwrap();
    let store = sqlite_in(home.path()).with_artifacts(Some(&folder_in(home.path()))).unwrap();
    garbage_is_collected_after_its_grace(&store, &|options| {
        store.collect_garbage(options, &mut |_| ()).unwrap()
    });
    // What is not ours stays.
    std::fs::write(home.path().join("large/README"), "ours").unwrap();
    std::fs::write(home.path().join("large/.new-abc"), "left behind").unwrap();
    let report = store.collect_garbage(&all_garbage(false), &mut |_| ()).unwrap();
    assert_eq!(report.removed, 1, "{report:?}");
    assert!(home.path().join("large/README").exists());
}

#[test]
fn folder_belongs_to_one_record() {
    let homes = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [first, second] = [sqlite_in(homes[0].path()), sqlite_in(homes[1].path())];
    a_place_belongs_to_one_record(first, second, &folder_in(homes[0].path()));
}

#[test]
fn record_is_refused_without_its_place_and_with_another() {
    let home = tempfile::tempdir().unwrap();
    let store = sqlite_in(home.path()).with_artifacts(Some(&folder_in(home.path()))).unwrap();
    open(&store, "one");
    let artifact = put(&store, "one", "a text");
    drop(store);
    let refused = sqlite_in(home.path()).with_artifacts(None).unwrap_err().to_string();
    assert!(refused.contains("/large"), "{refused}");
    let moved = ArtifactPlace::parse(&format!("file://{}/moved", home.path().display()), []).unwrap();
    let refused = sqlite_in(home.path()).with_artifacts(Some(&moved)).unwrap_err().to_string();
    assert!(refused.contains("copy everything there first"), "{refused}");
    std::fs::rename(home.path().join("large"), home.path().join("moved")).unwrap();
    let store = sqlite_in(home.path()).with_artifacts(Some(&moved)).unwrap();
    assert_eq!(read(&store, &artifact).unwrap(), "a text");
    drop(store);
    let reader = SqliteStore::open_read_only(&home.path().join("record.db")).unwrap();
    assert_eq!(read(&reader.with_artifacts(Some(&moved)).unwrap(), &artifact).unwrap(), "a text");
}

#[test]
fn texts_from_before_are_read_where_they_are() {
    let home = tempfile::tempdir().unwrap();
    let store = sqlite_in(home.path());
    open(&store, "one");
    let old = put(&store, "one", "from before");
    let store = store.with_artifacts(Some(&folder_in(home.path()))).unwrap();
    let new = put(&store, "one", "from now");
    assert_eq!(put(&store, "one", "from before").id, old.id);
    assert_eq!(
        (read(&store, &old).unwrap(), read(&store, &new).unwrap()),
        ("from before".into(), "from now".into())
    );
    assert!(home.path().join("artifacts").join(&old.id.as_str()[..2]).exists());
    assert!(home.path().join("large").join(&new.id.as_str()[..2]).exists());
}

#[cfg(feature = "postgres")]
mod on_postgres {
    use super::*;
    use crate::contract::support::postgres;

    #[test]
    fn garbage_in_a_folder_is_collected_after_its_grace() {
        let Some(store) = postgres() else { return };
        let home = tempfile::tempdir().unwrap();
        let store = store.with_artifacts(Some(&folder_in(home.path()))).unwrap();
        super::garbage_is_collected_after_its_grace(&store, &|options| {
            store.collect_garbage(options, &mut |_| ()).unwrap()
        });
    }

    #[test]
    fn each_owner_has_texts_of_their_own() {
        let Some(store) = postgres() else { return };
        let home = tempfile::tempdir().unwrap();
        let store = store.with_artifacts(Some(&folder_in(home.path()))).unwrap();
        open(&store, "one");
        let mine = put(&store, "one", "the same text");
        let theirs = throughline_store::NewSession {
            owner: Owner::new("stranger"),
            ..crate::contract::support::new_session("theirs")
        };
        store.open_session(theirs, None).unwrap();
        let new = NewArtifact { session: &id("theirs"), text: "the same text", label: "", at_ms: 5 };
        assert_eq!(store.put_artifact(&Owner::new("stranger"), new).unwrap().id, mine.id);
        let report = store.collect_garbage(&all_garbage(true), &mut |_| ()).unwrap();
        assert_eq!((report.objects, report.garbage), (2, 0), "{report:?}");
        store.delete(&Owner::new("stranger"), &id("theirs"), Dependants::Refuse).unwrap();
        let report = store.collect_garbage(&all_garbage(false), &mut |_| ()).unwrap();
        assert_eq!((report.objects, report.removed), (2, 1), "{report:?}");
        assert_eq!(read(&store, &mine).unwrap(), "the same text");
    }

    #[test]
    fn texts_in_the_database_are_read_beside_those_elsewhere() {
        let Some(store) = postgres() else { return };
        let home = tempfile::tempdir().unwrap();
        open(&store, "one");
        let text: String = (0..30_000).map(|at| format!("line {at}\n")).collect();
        let old = put(&store, "one", &text);
        let store = store.with_artifacts(Some(&folder_in(home.path()))).unwrap();
        let new = put(&store, "one", &text.to_uppercase());
        for (artifact, expected) in [(&old, "line 20000\n"), (&new, "LINE 20000\n")] {
            let range = ArtifactRange::Lines { first: 20_001, count: 1 };
            assert_eq!(store.read_artifact(&owner(), &artifact.id, range).unwrap(), expected);
        }
        say(&store, "one", &["goes on"]);
        assert!(store.with_artifacts(None).is_err());
    }
}

#[cfg(feature = "s3")]
mod in_buckets {
    use std::io::{Read as _, Write as _};
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex};

    use throughline_testkit::ObjectStorage;

    use super::*;
    use crate::contract::support::{bucket, object_storage};

    #[test]
    fn garbage_is_collected_after_its_grace() {
        let Some(place) = bucket() else { return };
        let store = SqliteStore::in_memory().unwrap().with_artifacts(Some(&place)).unwrap();
        super::garbage_is_collected_after_its_grace(&store, &|options| {
            store.collect_garbage(options, &mut |_| ()).unwrap()
        });
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn garbage_is_collected_after_its_grace_beside_a_server() {
        let Some(store) = crate::contract::support::postgres() else { return };
        let Some(place) = bucket() else { return };
        let store = store.with_artifacts(Some(&place)).unwrap();
        super::garbage_is_collected_after_its_grace(&store, &|options| {
            store.collect_garbage(options, &mut |_| ()).unwrap()
        });
    }

    #[test]
    fn bucket_belongs_to_one_record() {
        let Some(place) = bucket() else { return };
        let stores = [SqliteStore::in_memory().unwrap(), SqliteStore::in_memory().unwrap()];
        let [first, second] = stores;
        a_place_belongs_to_one_record(first, second, &place);
    }

    #[test]
    fn encryption_settings_are_passed_on() {
        let Some(server) = object_storage() else { return };
        let address = server.bucket("encrypted", "here") + "&server_side_encryption=AES256";
        let place = ArtifactPlace::parse(&address, ObjectStorage::credentials()).unwrap();
        let store = SqliteStore::in_memory().unwrap().with_artifacts(Some(&place)).unwrap();
        open(&store, "one");
        let artifact = put(&store, "one", "a text");
        let name = artifact.id.as_str();
        let head = server.request("HEAD", &format!("/encrypted/here/{}/{name}.zst", &name[..2]));
        assert!(head.to_ascii_lowercase().contains("x-amz-server-side-encryption: aes256"), "{head}");
    }

    #[test]
    fn lost_text_is_named_with_its_object() {
        let Some(server) = object_storage() else { return };
        let address = server.bucket("losing", "here");
        let place = ArtifactPlace::parse(&address, ObjectStorage::credentials()).unwrap();
        let store = SqliteStore::in_memory().unwrap().with_artifacts(Some(&place)).unwrap();
        open(&store, "one");
        let artifact = put(&store, "one", "a text");
        let name = artifact.id.as_str();
        let object = format!("losing/here/{}/{name}.zst", &name[..2]);
        server.request("DELETE", &format!("/{object}"));
        let lost = read(&store, &artifact).unwrap_err();
        assert!(matches!(lost, StoreError::ArtifactDamaged { .. }), "{lost:?}");
        assert!(lost.to_string().contains(&format!("missing: s3://{object}")), "{lost}");
    }

    #[test]
    fn bucket_that_does_not_exist_is_named() {
        let Some(server) = object_storage() else { return };
        let address = server.address("nowhere", "here");
        let place = ArtifactPlace::parse(&address, ObjectStorage::credentials()).unwrap();
        let refused = SqliteStore::in_memory().unwrap().with_artifacts(Some(&place)).unwrap_err().to_string();
        assert!(refused.contains("s3://nowhere/here") && refused.contains("does not exist"), "{refused}");
    }

    /// What is said when every request to a service is answered like this.
    fn said_of(status: &str, body: &str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/xml\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let _ = stream.read(&mut [0; 16 * 1024]);
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        let credentials = [("AWS_ACCESS_KEY_ID", "AKIDHUNTER2"), ("AWS_SECRET_ACCESS_KEY", "hunter2")];
        let credentials = credentials.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let place =
            ArtifactPlace::parse(&format!("s3://bucket/here?endpoint={endpoint}"), credentials).unwrap();
        let refused = SqliteStore::in_memory().unwrap().with_artifacts(Some(&place)).unwrap_err().to_string();
        assert!(
            refused.starts_with("the place for large texts, s3://bucket/here, cannot be used: "),
            "{refused}"
        );
        assert!(!refused.to_ascii_lowercase().contains("hunter2"), "{refused}");
        refused
    }

    fn error(code: &str, more: &str) -> String {
        format!(
            "<Error><Code>{code}</Code><Message>no</Message><AWSAccessKeyId>AKIDHUNTER2</AWSAccessKeyId>{more}</Error>"
        )
    }

    #[test]
    fn refusals_are_told_apart() {
        for (status, body, expected) in [
            ("403 Forbidden", error("AccessDenied", ""), "access is denied"),
            ("400 Bad Request", error("ExpiredToken", ""), "have expired"),
            ("403 Forbidden", error("InvalidAccessKeyId", ""), "are not accepted"),
            ("403 Forbidden", error("SignatureDoesNotMatch", ""), "are not accepted"),
            ("403 Forbidden", error("RequestTimeTooSkewed", ""), "set the clock"),
            (
                "400 Bad Request",
                error("AuthorizationHeaderMalformed", "<Region>eu-west-1</Region>"),
                "add ?region=eu-west-1",
            ),
            ("301 Moved Permanently", error("PermanentRedirect", ""), "another region"),
            ("400 Bad Request", error("SomethingElse", ""), "answered SomethingElse"),
        ] {
            let said = said_of(status, &body);
            assert!(said.contains(expected), "{status} {body}: {said}");
        }
    }

    #[test]
    fn service_that_cannot_be_reached_is_named() {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("s3://bucket/here?endpoint=http://127.0.0.1:{port}");
        let place = ArtifactPlace::parse(&address, ObjectStorage::credentials()).unwrap();
        let store = SqliteStore::in_memory().unwrap();
        let refused = store.with_artifacts(Some(&place)).unwrap_err().to_string();
        assert!(refused.to_lowercase().contains("refused"), "{refused}");
    }

    #[test]
    fn messages_without_large_texts_store_no_object() {
        let Some(place) = bucket() else { return };
        let store = SqliteStore::in_memory().unwrap().with_artifacts(Some(&place)).unwrap();
        open(&store, "one");
        say(&store, "one", &["short"]);
        assert_eq!(store.messages(&owner(), &id("one")).unwrap().len(), 1);
        assert!(store.artifact(&owner(), &ArtifactId::of(b"nothing")).is_err());
    }

    /// A proxy before a service, which can have every request answered as if the credentials had expired.
    #[derive(Default)]
    struct Expiry {
        is_over: AtomicBool,
        open: Mutex<Vec<TcpStream>>,
    }

    impl Expiry {
        fn expire(&self) {
            self.is_over.store(true, Ordering::SeqCst);
            // What was asked before is over with its connection.
            for stream in self.open.lock().unwrap().drain(..) {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }

        fn renew(&self) {
            self.is_over.store(false, Ordering::SeqCst);
        }
    }

    fn with_expiring_credentials(server: &ObjectStorage) -> (ArtifactPlace, Arc<Expiry>) {
        let address = server.bucket("expiring", "here");
        let (before, upstream) = address.split_once("http://").unwrap();
        let end = upstream.find('&').unwrap_or(upstream.len());
        let (upstream, after) = (upstream[..end].to_owned(), upstream[end..].to_owned());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap();
        let expiry = Arc::<Expiry>::default();
        let seen = Arc::clone(&expiry);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(mut client) = client else { return };
                if seen.is_over.load(Ordering::SeqCst) {
                    let body = error("ExpiredToken", "");
                    let length = body.len();
                    let _ = client.read(&mut [0; 64 * 1024]);
                    let _ = write!(
                        client,
                        "HTTP/1.1 400 Bad Request\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
                    );
                    continue;
                }
                let mut service = TcpStream::connect(&upstream).unwrap();
                seen.open.lock().unwrap().push(client.try_clone().unwrap());
                let (mut from, mut to) = (client.try_clone().unwrap(), service.try_clone().unwrap());
                std::thread::spawn(move || std::io::copy(&mut from, &mut to));
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut service, &mut client);
                    let _ = client.shutdown(Shutdown::Both);
                });
            }
        });
        let address = format!("{before}http://{own}{after}");
        (ArtifactPlace::parse(&address, ObjectStorage::credentials()).unwrap(), expiry)
    }

    #[test]
    fn credentials_that_expire_at_run_time_are_named_and_all_else_goes_on() {
        let Some(server) = object_storage() else { return };
        let (place, expiry) = with_expiring_credentials(server);
        let store = SqliteStore::in_memory().unwrap().with_artifacts(Some(&place)).unwrap();
        open(&store, "one");
        let before = put(&store, "one", "a text from before");
        expiry.expire();
        let session = id("one");
        let new = NewArtifact { session: &session, text: "a text of later", label: "read", at_ms: 2 };
        let refused = store.put_artifact(&owner(), new).unwrap_err().to_string();
        assert!(refused.contains("have expired; renew them"), "{refused}");
        // What needs no large text is written and read as before.
        say(&store, "one", &["short"]);
        assert_eq!(store.messages(&owner(), &id("one")).unwrap().len(), 1);
        assert!(store.artifact(&owner(), &before.id).is_ok());
        // With new credentials everything works again.
        expiry.renew();
        assert_eq!(read(&store, &before).unwrap(), "a text from before");
        let after = put(&store, "one", "a text from after");
        assert_eq!(read(&store, &after).unwrap(), "a text from after");
    }
}
