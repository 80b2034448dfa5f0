//! What the tests of the contract are written with: short ways to open, say, compact and look.

use throughline_store::{
    AppendRange, ArtifactPlace, Continuation, Dependants, EndReason, Link, LinkKind, MessageRun, Millis,
    NewMessage, NewSession, NewSummary, NewViewItem, Origin, Owner, Result, Selection, Session, SessionId,
    Store, StoreError, StoredMessage, StoredRendition, ViewItem, ViewMessage, ViewSelection,
};
use throughline_transcript::{Role, WireFormat, decode_message_text, text_message};

/// Runs the functions of a module on every implementation of the store. One that is left out is dead code.
macro_rules! on_every_backend {
    ($($name:ident),* $(,)?) => {
        mod memory {
            $(#[test] fn $name() { super::$name(&throughline_store::MemoryStore::new()); })*
        }
        on_databases!($($name),*);
    };
}

/// The same for functions that search, which the small store in memory cannot.
macro_rules! on_databases {
    ($($name:ident),* $(,)?) => {
        $crate::contract::support::on_databases_as!(databases; $($name),*);
    };
    ($module:ident; $($name:ident),* $(,)?) => {
        $crate::contract::support::on_databases_as!($module; $($name),*);
    };
}

macro_rules! on_databases_as {
    ($module:ident; $($name:ident),*) => {
        mod $module {
            mod in_memory {
                $(#[test] fn $name() {
                    super::super::$name(&throughline_store::SqliteStore::in_memory().unwrap());
                })*
            }
            mod on_disk {
                $(#[test] fn $name() {
                    let home = tempfile::tempdir().unwrap();
                    super::super::$name(&$crate::contract::support::sqlite_in(home.path()));
                })*
            }
            #[cfg(feature = "postgres")]
            mod on_postgres {
                $(#[test] fn $name() {
                    if let Some(store) = $crate::contract::support::postgres() {
                        super::super::$name(&store);
                    }
                })*
            }
        }
    };
}
pub(crate) use on_databases_as;

/// Runs functions on records whose large texts are in a folder of their own, and in a bucket.
macro_rules! on_artifact_places {
    ($($name:ident),* $(,)?) => {
        mod places {
            mod sqlite_with_folder {
                $(#[test] fn $name() {
                    let home = tempfile::tempdir().unwrap();
                    let store = $crate::contract::support::sqlite_in(home.path());
                    let place = $crate::contract::support::folder_in(home.path());
                    super::super::$name(&store.with_artifacts(Some(&place)).unwrap());
                })*
            }
            #[cfg(feature = "s3")]
            mod sqlite_with_bucket {
                $(#[test] fn $name() {
                    let Some(place) = $crate::contract::support::bucket() else { return };
                    let store = throughline_store::SqliteStore::in_memory().unwrap();
                    super::super::$name(&store.with_artifacts(Some(&place)).unwrap());
                })*
            }
            #[cfg(feature = "postgres")]
            mod postgres_with_folder {
                $(#[test] fn $name() {
                    let Some(store) = $crate::contract::support::postgres() else { return };
                    let home = tempfile::tempdir().unwrap();
                    let place = $crate::contract::support::folder_in(home.path());
                    super::super::$name(&store.with_artifacts(Some(&place)).unwrap());
                })*
            }
            #[cfg(all(feature = "postgres", feature = "s3"))]
            mod postgres_with_bucket {
                $(#[test] fn $name() {
                    let Some(store) = $crate::contract::support::postgres() else { return };
                    let Some(place) = $crate::contract::support::bucket() else { return };
                    super::super::$name(&store.with_artifacts(Some(&place)).unwrap());
                })*
            }
        }
    };
}
pub(crate) use on_artifact_places;

/// A folder for large texts.
pub(crate) fn folder_in(home: &std::path::Path) -> ArtifactPlace {
    ArtifactPlace::parse(&format!("file://{}/large", home.display()), []).unwrap()
}

/// A prefix of its own in a bucket; `None`, and the test is skipped, where there is no server for it.
#[cfg(feature = "s3")]
#[track_caller]
pub(crate) fn bucket() -> Option<ArtifactPlace> {
    use std::sync::atomic::{AtomicU32, Ordering};
    static MADE: AtomicU32 = AtomicU32::new(0);
    let server = object_storage()?;
    let prefix = format!("records/{}", MADE.fetch_add(1, Ordering::Relaxed));
    let address = server.bucket("large-texts", &prefix);
    Some(ArtifactPlace::parse(&address, throughline_testkit::ObjectStorage::credentials()).unwrap())
}

#[cfg(feature = "s3")]
#[track_caller]
pub(crate) fn object_storage() -> Option<&'static throughline_testkit::ObjectStorage> {
    let server = throughline_testkit::ObjectStorage::shared();
    if server.is_none() {
        let installed_by = ".ci/object-storage";
        throughline_testkit::skip(&throughline_testkit::Missing::Program { name: "moto", installed_by });
    }
    server
}

/// A new record in a database.
pub(crate) fn sqlite_in(folder: &std::path::Path) -> throughline_store::SqliteStore {
    throughline_store::SqliteStore::open(&folder.join("record.db"), 0).unwrap()
}

/// An empty record in a database of its own; `None`, and the test is skipped, where there is no PostgreSQL.
#[cfg(feature = "postgres")]
#[track_caller]
pub(crate) fn postgres() -> Option<throughline_store::PostgresStore> {
    use throughline_store::PostgresStore;
    let Some(server) = throughline_testkit::PostgresServer::shared() else {
        let installed_by = "apt-get install postgresql";
        throughline_testkit::skip(&throughline_testkit::Missing::Program {
            name: "PostgreSQL",
            installed_by,
        });
        return None;
    };
    let url = server.database(|url| drop(PostgresStore::open(url, 2).unwrap()));
    Some(PostgresStore::open(&url, 4).unwrap())
}

/// No window is too small for a view.
pub(crate) const NO_LIMIT: u64 = u64::MAX;

pub(crate) fn owner() -> Owner {
    Owner::default()
}

pub(crate) fn stranger() -> Owner {
    Owner::new("stranger")
}

pub(crate) fn id(text: &str) -> SessionId {
    SessionId::from_text(text)
}

/// A session nobody else is tied to.
pub(crate) fn new_session(name: &str) -> NewSession {
    NewSession {
        id: id(name),
        owner: owner(),
        link: None,
        started_ms: 1_000,
        model: Some("model-a".into()),
        title: None,
        origin: Origin { program: "chat".into(), key: None, project: None },
        wire_format: WireFormat::Chat,
    }
}

pub(crate) fn linked(name: &str, kind: LinkKind, parent: &str, leaves_at: u64) -> NewSession {
    NewSession { link: Some(Link { parent: id(parent), kind, leaves_at }), ..new_session(name) }
}

pub(crate) fn open(store: &dyn Store, name: &str) -> Session {
    store.open_session(new_session(name), None).unwrap()
}

pub(crate) fn branch(store: &dyn Store, name: &str, parent: &str, leaves_at: u64) -> Session {
    store.open_session(linked(name, LinkKind::Branch, parent, leaves_at), None).unwrap()
}

/// A message of ten tokens a user says at second 2.
pub(crate) fn said(text: &str) -> NewMessage {
    said_at(text, 2_000)
}

pub(crate) fn said_at(text: &str, at_ms: Millis) -> NewMessage {
    from_role(Role::User, text, at_ms)
}

pub(crate) fn from_role(role: Role, text: &str, at_ms: Millis) -> NewMessage {
    let message = decode_message_text(text_message(WireFormat::Chat, role, text)).unwrap();
    NewMessage { message, tokens: 10, at_ms, tools: Vec::new(), rendition: None }
}

/// A message that is shown in other words from the first.
pub(crate) fn said_shown_as(text: &str, shown: &str) -> NewMessage {
    NewMessage { rendition: Some(rendition(shown)), ..said(text) }
}

pub(crate) fn rendition(shown: &str) -> StoredRendition {
    StoredRendition {
        kinds: vec!["trimmed".into()],
        json: text_message(WireFormat::Chat, Role::User, shown),
        tokens: 3,
    }
}

pub(crate) fn say(store: &dyn Store, name: &str, texts: &[&str]) -> AppendRange {
    store.append(&owner(), &id(name), texts.iter().map(|text| said(text)).collect()).unwrap()
}

/// What a message or an item of a view says.
pub(crate) fn words(json: &str) -> String {
    decode_message_text(json.to_owned()).unwrap().text().into_owned()
}

pub(crate) fn messages(store: &dyn Store, name: &str) -> Vec<String> {
    texts(&store.messages(&owner(), &id(name)).unwrap())
}

pub(crate) fn transcript(store: &dyn Store, name: &str) -> Vec<String> {
    texts(&store.transcript(&owner(), &id(name)).unwrap())
}

pub(crate) fn texts(messages: &[StoredMessage]) -> Vec<String> {
    messages.iter().map(|message| words(message.json.as_str())).collect()
}

pub(crate) fn shown(store: &dyn Store, name: &str) -> Vec<String> {
    shown_to(store, name, None)
}

pub(crate) fn shown_to(store: &dyn Store, name: &str, to_seq: Option<u64>) -> Vec<String> {
    let view = store.view(&owner(), &id(name), to_seq).unwrap();
    view.iter().map(|item| words(item.json())).collect()
}

pub(crate) fn view(store: &dyn Store, name: &str) -> Vec<ViewMessage> {
    store.view(&owner(), &id(name), None).unwrap()
}

pub(crate) fn session(store: &dyn Store, name: &str) -> Session {
    store.session(&owner(), &id(name)).unwrap()
}

pub(crate) fn ids(sessions: &[Session]) -> Vec<String> {
    sessions.iter().map(|session| session.id.to_string()).collect()
}

pub(crate) fn chain(store: &dyn Store, name: &str) -> Vec<String> {
    ids(&store.chain(&owner(), &id(name)).unwrap())
}

pub(crate) fn family(store: &dyn Store, name: &str) -> Vec<String> {
    ids(&store.family(&owner(), &id(name)).unwrap())
}

pub(crate) fn end(store: &dyn Store, name: &str, reason: EndReason) {
    store.end_session(&owner(), &id(name), &reason, 9_000).unwrap();
}

pub(crate) fn delete(store: &dyn Store, name: &str, dependants: Dependants) -> Result<Vec<String>> {
    let gone = store.delete(&owner(), &id(name), dependants)?;
    Ok(gone.iter().map(ToString::to_string).collect())
}

pub(crate) fn range(session: &str, first_seq: u64, end_seq: u64) -> ViewItem {
    ViewItem::Range { session: id(session), first_seq, end_seq: Some(end_seq) }
}

pub(crate) fn open_range(session: &str, first_seq: u64) -> ViewItem {
    ViewItem::Range { session: id(session), first_seq, end_seq: None }
}

pub(crate) fn summary_of(session: &str, first_seq: u64, end_seq: u64, document: &str) -> NewSummary {
    NewSummary {
        author: "rules".into(),
        document: document.into(),
        sources: vec![MessageRun { session: id(session), first_seq, end_seq }],
        supersedes: None,
        facts: serde_json::json!({"kept": 3}),
        figures: serde_json::json!({"tokens_before": 100}),
    }
}

/// A compaction that folds everything of a session away but its last message, if it has any.
pub(crate) fn folding(store: &dyn Store, from: &str, to: &str, summary: &str) -> Continuation {
    let old = session(store, from);
    let kept = old.next_seq.saturating_sub(1).max(old.first_seq);
    let json = text_message(WireFormat::Chat, Role::User, summary);
    let tail = (kept < old.next_seq).then(|| NewViewItem::Kept(range(from, kept, old.next_seq)));
    Continuation {
        lease: None,
        from: id(from),
        id: id(to),
        reason: EndReason::COMPRESSION,
        at_ms: 5_000,
        made_at_seq: old.next_seq,
        summary: Some(summary_of(from, old.first_seq, kept, summary)),
        view: std::iter::once(NewViewItem::Summary { json, tokens: 7 }).chain(tail).collect(),
    }
}

pub(crate) fn compact(store: &dyn Store, from: &str, to: &str, summary: &str) -> Session {
    store.continue_session(&owner(), folding(store, from, to, summary)).unwrap()
}

pub(crate) fn select(
    store: &dyn Store,
    selection: Selection,
    at: &str,
    to: &str,
    limit: u64,
) -> Result<Session> {
    store.select_view(&owner(), selecting(selection, at, to, limit))
}

/// Another view for a conversation to go on with.
pub(crate) fn selecting(selection: Selection, at: &str, to: &str, limit_tokens: u64) -> ViewSelection {
    ViewSelection { session: id(at), selection, successor: id(to), at_ms: 6_000, limit_tokens, lease: None }
}

pub(crate) fn undo(store: &dyn Store, at: &str, to: &str) -> Session {
    select(store, Selection::Undo, at, to, NO_LIMIT).unwrap()
}

pub(crate) fn redo(store: &dyn Store, at: &str, to: &str) -> Session {
    select(store, Selection::Redo, at, to, NO_LIMIT).unwrap()
}

/// The session an error says is not there.
pub(crate) fn unknown<T: std::fmt::Debug>(result: Result<T>) -> String {
    match result.unwrap_err() {
        StoreError::UnknownSession { reference } => reference,
        other => panic!("expected an unknown session, got {other:?}"),
    }
}

/// A message of ours that says this.
pub(crate) fn words_json(text: &str) -> String {
    text_message(WireFormat::Chat, Role::User, text)
}
