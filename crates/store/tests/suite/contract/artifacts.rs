//! Artifacts: large texts, kept once, read in pieces.

use throughline_store::{Artifact, ArtifactId, ArtifactRange, NewArtifact, NewMessage, Store, StoreError};
use throughline_transcript::decode_message_text;

use crate::contract::support::*;

fn put(store: &dyn Store, name: &str, text: &str) -> Artifact {
    let session = id(name);
    let new = NewArtifact { session: &session, text, label: "bash", at_ms: 42 };
    store.put_artifact(&owner(), new).unwrap()
}

fn read(store: &dyn Store, artifact: &Artifact, range: ArtifactRange) -> String {
    store.read_artifact(&owner(), &artifact.id, range).unwrap()
}

fn an_artifact_is_described_and_read_back(store: &dyn Store) {
    open(store, "one");
    let text = "first\nsecond \u{1f50e}\r\n\nfourth";
    let artifact = put(store, "one", text);
    assert_eq!(artifact.id, ArtifactId::of(text.as_bytes()));
    assert_eq!((artifact.bytes, artifact.lines), (text.len() as u64, 4));
    assert_eq!((artifact.label.as_str(), artifact.created_ms), ("bash", 42));
    assert!(artifact.stored_bytes > 0);
    assert_eq!(read(store, &artifact, ArtifactRange::All), text);
    assert_eq!(store.artifact(&owner(), &artifact.id).unwrap(), artifact);
    assert_eq!(store.artifacts(&owner(), &id("one")).unwrap(), [artifact]);
}

fn odd_texts_survive(store: &dyn Store) {
    open(store, "one");
    for text in ["", "\n", "\0\u{1}\u{7f}", "\u{feff}x", "no end"] {
        let artifact = put(store, "one", text);
        assert_eq!(read(store, &artifact, ArtifactRange::All), text);
        assert_eq!(artifact.bytes, text.len() as u64);
    }
}

fn the_same_text_is_kept_once(store: &dyn Store) {
    open(store, "one");
    open(store, "two");
    let first = put(store, "one", "text");
    let session = id("two");
    let again = NewArtifact { session: &session, text: "text", label: "other", at_ms: 99 };
    let second = store.put_artifact(&owner(), again).unwrap();
    assert_eq!(first, second);
    assert_eq!(put(store, "one", "text"), first);
    assert_eq!(store.artifacts(&owner(), &id("one")).unwrap(), std::slice::from_ref(&first));
    assert_eq!(store.artifacts(&owner(), &id("two")).unwrap(), [first]);
}

fn the_chain_shares_its_artifacts_in_the_order_they_came(store: &dyn Store) {
    open(store, "one");
    let first = put(store, "one", "zzz");
    compact(store, "one", "two", "S");
    let second = put(store, "two", "aaa");
    open(store, "other");
    put(store, "other", "elsewhere");
    assert_eq!(store.artifacts(&owner(), &id("one")).unwrap(), [first.clone(), second.clone()]);
    assert_eq!(store.artifacts(&owner(), &id("two")).unwrap(), [first, second]);
}

fn pieces_by_line_and_by_byte(store: &dyn Store) {
    open(store, "one");
    let text: String = (1..=30_000).map(|at| format!("line {at} \u{e9}\u{4e2d}\n")).collect();
    let artifact = put(store, "one", &text);
    let lines = |first, count| read(store, &artifact, ArtifactRange::Lines { first, count });
    assert_eq!(lines(1, 1), "line 1 \u{e9}\u{4e2d}\n");
    assert_eq!(lines(0, 1), lines(1, 1));
    assert_eq!(lines(29_999, 5), "line 29999 \u{e9}\u{4e2d}\nline 30000 \u{e9}\u{4e2d}\n");
    assert_eq!(lines(15_000, 2), "line 15000 \u{e9}\u{4e2d}\nline 15001 \u{e9}\u{4e2d}\n");
    assert_eq!(lines(30_001, 1), "");
    assert_eq!(lines(1, 0), "");
    assert_eq!(lines(u64::MAX, u64::MAX), "");
    assert_eq!(lines(1, u64::MAX), text);
    let bytes = |first, count| read(store, &artifact, ArtifactRange::Bytes { first, count });
    assert_eq!(bytes(0, u64::MAX), text);
    assert_eq!(bytes(0, 6), "line 1");
    // The two letters are bytes 7..9 and 9..12; ends inside them move inwards.
    assert_eq!(bytes(7, 2), "\u{e9}");
    assert_eq!(bytes(8, 4), "\u{4e2d}");
    assert_eq!(bytes(7, 4), "\u{e9}");
    assert_eq!(bytes(8, 1), "");
    assert_eq!(bytes(10, 1), "");
    assert_eq!(bytes(text.len() as u64 - 1, 10), "\n");
    assert_eq!(bytes(text.len() as u64, 10), "");
    assert_eq!(bytes(u64::MAX, u64::MAX), "");
    for first in [262_140, 262_143, 262_144, 262_145, 300_001] {
        for count in [0, 1, 2, 3, 7, 70_000] {
            let expected = ArtifactRange::Bytes { first, count }.of(&text);
            assert_eq!(bytes(first, count), expected, "{count} bytes from {first}");
        }
    }
}

fn an_artifact_without_a_single_line_end_is_read_in_pieces(store: &dyn Store) {
    open(store, "one");
    let text = "\u{1f9f5}ab".repeat(150_000);
    let artifact = put(store, "one", &text);
    assert_eq!(artifact.lines, 1);
    assert!(read(store, &artifact, ArtifactRange::Lines { first: 1, count: 1 }) == text);
    assert_eq!(read(store, &artifact, ArtifactRange::Lines { first: 2, count: 1 }), "");
    assert_eq!(read(store, &artifact, ArtifactRange::Bytes { first: 600_001, count: 10 }), "ab\u{1f9f5}a");
}

fn names_may_be_shortened(store: &dyn Store) {
    open(store, "one");
    let artifacts: Vec<Artifact> = (0..40).map(|at| put(store, "one", &format!("text {at}"))).collect();
    let found = |name: &str| store.artifact(&owner(), &ArtifactId::from_text(name));
    let unique = &artifacts[0].id.as_str()[..20];
    assert_eq!(found(unique).unwrap(), artifacts[0]);
    assert_eq!(found(&unique.to_uppercase()).unwrap(), artifacts[0]);
    let range = ArtifactRange::All;
    assert_eq!(store.read_artifact(&owner(), &ArtifactId::from_text(unique), range).unwrap(), "text 0");
    // Of forty names two begin with the same digit.
    let digit = artifacts
        .iter()
        .map(|artifact| &artifact.id.as_str()[..1])
        .find(|digit| artifacts.iter().filter(|other| other.id.as_str().starts_with(digit)).count() > 1)
        .unwrap();
    match found(digit).unwrap_err() {
        StoreError::AmbiguousArtifact { id, candidates } => {
            assert_eq!(id, digit);
            assert!(candidates.len() > 1 && candidates.iter().all(|name| name.as_str().starts_with(digit)));
        }
        other => panic!("{other:?}"),
    }
    for name in ["", "zz", "%", "../../etc/passwd", "ffffffffffffffffffffffffffffffffff"] {
        assert!(matches!(found(name), Err(StoreError::UnknownArtifact { id }) if id == name), "{name}");
    }
}

fn large_tool_results_are_artifacts_of_their_session(store: &dyn Store) {
    open(store, "one");
    let output = "a line of output\n".repeat(10_000);
    let json = format!(r#"{{"role":"tool","tool_call_id":"c1","content":{}}}"#, serde_json::json!(output));
    let message = decode_message_text(json.clone()).unwrap();
    let new = NewMessage { message, tools: vec!["bash".into()], at_ms: 77, ..said("") };
    store.append(&owner(), &id("one"), vec![new]).unwrap();
    let artifact = store.artifacts(&owner(), &id("one")).unwrap().remove(0);
    assert_eq!(artifact.id, ArtifactId::of(output.as_bytes()));
    assert_eq!((artifact.label.as_str(), artifact.created_ms, artifact.lines), ("bash", 77, 10_000));
    let line = ArtifactRange::Lines { first: 9_999, count: 1 };
    assert_eq!(read(store, &artifact, line), "a line of output\n");
    assert!(store.messages(&owner(), &id("one")).unwrap()[0].json.as_str() == json);
    say(store, "one", &["short"]);
    assert_eq!(store.artifacts(&owner(), &id("one")).unwrap().len(), 1);
}

fn an_artifact_of_nobody_is_refused(store: &dyn Store) {
    let session = id("nobody");
    let new = NewArtifact { session: &session, text: "text", label: "", at_ms: 0 };
    assert_eq!(unknown(store.put_artifact(&owner(), new)), "nobody");
    open(store, "one");
    assert!(store.artifact(&owner(), &ArtifactId::of(b"text")).is_err());
}

on_every_backend!(
    an_artifact_is_described_and_read_back,
    odd_texts_survive,
    the_same_text_is_kept_once,
    the_chain_shares_its_artifacts_in_the_order_they_came,
    pieces_by_line_and_by_byte,
    an_artifact_without_a_single_line_end_is_read_in_pieces,
    names_may_be_shortened,
    large_tool_results_are_artifacts_of_their_session,
    an_artifact_of_nobody_is_refused,
);

super::support::on_artifact_places!(
    an_artifact_is_described_and_read_back,
    odd_texts_survive,
    the_same_text_is_kept_once,
    the_chain_shares_its_artifacts_in_the_order_they_came,
    pieces_by_line_and_by_byte,
    an_artifact_without_a_single_line_end_is_read_in_pieces,
    names_may_be_shortened,
    large_tool_results_are_artifacts_of_their_session,
    an_artifact_of_nobody_is_refused,
);
