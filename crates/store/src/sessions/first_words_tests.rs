//! Tests of names from first words, in the store in memory.

use throughline_transcript::{Role, SharedText, WireFormat, decode_message, text_message};

use crate::ids::{IdLength, Owner, SessionId};
use crate::memory::MemoryStore;
use crate::message::NewMessage;
use crate::sessions::session::{NewSession, Origin};
use crate::store::Store as _;

/// Returns the name of a session with these texts of a user.
fn name(texts: &[&str]) -> Option<String> {
    let (store, owner) = (MemoryStore::new(), Owner::default());
    let id = SessionId::new(1_794_744_000_000, 7, IdLength::Local);
    let session = NewSession {
        id: id.clone(),
        owner: owner.clone(),
        link: None,
        started_ms: 1,
        model: None,
        title: None,
        origin: Origin::default(),
        wire_format: WireFormat::Chat,
    };
    store.open_session(session, None).unwrap();
    let messages = texts.iter().map(|text| {
        let json = text_message(WireFormat::Chat, Role::User, text);
        let message = decode_message(SharedText::new(json)).unwrap();
        NewMessage { message, tokens: 9, at_ms: 1, tools: Vec::new(), rendition: None }
    });
    store.append(&owner, &id, messages.collect()).unwrap();
    store.session(&owner, &id).unwrap().first_words(&store, &owner).unwrap()
}

#[test]
fn words_of_a_person_are_the_name() {
    let command = "<command-name>/clear</command-name>\n<command-args></command-args>";
    assert_eq!(
        name(&["<system-reminder>Be brief.</system-reminder>", "Port\n  the parser.", "Later."]).as_deref(),
        Some("Port the parser.")
    );
    assert_eq!(name(&[command, "Port the parser."]).as_deref(), Some("Port the parser."));
}

#[test]
fn command_is_the_name_where_nothing_else_was_said() {
    let command = "<command-message>review</command-message>\n<command-name>/review</command-name>\n<command-args>12 --all</command-args>";
    assert_eq!(name(&[command]).as_deref(), Some("/review 12 --all"));
    assert_eq!(name(&["<command-name>/init</command-name>"]).as_deref(), Some("/init"));
}

#[test]
fn long_beginnings_are_cut_and_empty_ones_are_no_name() {
    assert_eq!(name(&[&"wordy ".repeat(1_000)]).unwrap().chars().count(), 240);
    assert_eq!(name(&["<system-reminder>Be brief.</system-reminder>"]), None);
    assert_eq!(name(&[]), None);
}
