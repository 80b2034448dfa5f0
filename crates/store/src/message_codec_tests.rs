//! Tests of packing messages.

use proptest::prelude::*;
use throughline_testkit::{Rng, any_conversation, big_transcript};
use throughline_transcript::{DecodeOptions, SharedText, WireFormat, decode, decode_message};

use super::*;
use crate::artifacts::extract::ARTIFACT_CHARACTERS;
use crate::artifacts::files::ArtifactFiles;
use crate::artifacts::folder::ArtifactFolder;

fn folder() -> (tempfile::TempDir, ArtifactFiles) {
    let home = tempfile::tempdir().unwrap();
    let folder = ArtifactFiles::beside(ArtifactFolder::open(home.path().join("artifacts")).unwrap());
    (home, folder)
}

fn message(json: String) -> Message {
    decode_message(SharedText::new(json)).unwrap()
}

fn result_message(raw_text: &str) -> Message {
    message(format!(
        r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","content":"{raw_text}"}}]}}"#
    ))
}

/// Packs and unpacks a message; returns the coding and the number of artifacts.
fn there_and_back(message: &Message, folder: &ArtifactFiles) -> (i64, usize) {
    let packed = pack(message, folder).unwrap();
    assert_eq!(unpack(packed.coding, &packed.bytes, folder).unwrap(), message.json());
    (packed.coding, packed.artifacts.len())
}

#[test]
fn small_messages_are_plain_and_large_ones_are_compressed_if_that_helps() {
    let (_home, folder) = folder();
    assert_eq!(there_and_back(&result_message("small"), &folder), (PLAIN, 0));
    assert_eq!(there_and_back(&result_message(&"words again ".repeat(200)), &folder), (COMPRESSED, 0));
    let mut rng = Rng::new(1);
    let noise: String = (0..4_000).map(|_| char::from(b'0' + (rng.below(75)) as u8)).collect();
    let noise = noise.replace('\\', "x");
    assert_eq!(there_and_back(&result_message(&noise), &folder).1, 0);
}

#[test]
fn a_large_result_is_cut_out_whichever_way_it_was_escaped() {
    let (_home, folder) = folder();
    let minimal = r#"line \"é\" 中 😀 \\ \t\u0001\n"#.repeat(ARTIFACT_CHARACTERS / 10);
    let ascii = r#"line \"\u00e9\" \u4e2d \ud83d\ude00 \\ \t\u0001\n"#.repeat(ARTIFACT_CHARACTERS / 10);
    for raw in [&minimal, &ascii] {
        let message = result_message(raw);
        let packed = pack(&message, &folder).unwrap();
        assert_eq!((packed.coding, packed.artifacts.len()), (SPLICED, 1));
        assert!(packed.bytes.len() < 200, "{}", packed.bytes.len());
        assert!(unpack_skeleton(packed.coding, &packed.bytes).unwrap().json.contains(r#""content":"""#));
        assert_eq!(unpack(packed.coding, &packed.bytes, &folder).unwrap(), message.json());
    }
    // Both have the same text, so there is one file.
    assert_eq!(folder.list().unwrap().artifacts.len(), 1);
}

#[test]
fn what_cannot_be_written_again_byte_for_byte_stays_whole() {
    let (_home, folder) = folder();
    for unusual in [r"a\/b ", r"\u00E9 ", r"\u0041", r"\ud800 ", r"\u000a"] {
        let raw = unusual.repeat(ARTIFACT_CHARACTERS);
        assert_eq!(there_and_back(&result_message(&raw), &folder), (COMPRESSED, 0), "{unusual}");
    }
    assert!(folder.list().unwrap().artifacts.is_empty());
}

#[test]
fn the_limit_counts_characters_and_only_results_are_cut_out() {
    let (_home, folder) = folder();
    let at_limit = "é".repeat(ARTIFACT_CHARACTERS);
    assert_eq!(there_and_back(&result_message(&at_limit), &folder).1, 0);
    assert_eq!(there_and_back(&result_message(&format!("{at_limit}é")), &folder).1, 1);
    let spoken = message(format!(r#"{{"role":"user","content":"{at_limit}{at_limit}"}}"#));
    assert_eq!(there_and_back(&spoken, &folder), (COMPRESSED, 0));
}

#[test]
fn several_large_results_and_a_large_rest() {
    let (_home, folder) = folder();
    let block = |id: usize| {
        let text = format!("result {id}\\n").repeat(ARTIFACT_CHARACTERS / 5);
        format!(
            r#"{{"type":"tool_result","tool_use_id":"t{id}","content":[{{"type":"text","text":"{text}"}}]}}"#
        )
    };
    let rest = "many words ".repeat(500);
    let json = format!(
        r#"{{"role":"user","content":[{},{},{{"type":"text","text":"{rest}"}},{}]}}"#,
        block(1),
        block(2),
        block(1)
    );
    assert_eq!(there_and_back(&message(json), &folder), (SPLICED_COMPRESSED, 3));
    assert_eq!(folder.list().unwrap().artifacts.len(), 2);
}

#[test]
fn a_missing_artifact_is_an_error_and_the_skeleton_is_there() {
    let (_home, folder) = folder();
    let message = result_message(&"x".repeat(ARTIFACT_CHARACTERS + 1));
    let packed = pack(&message, &folder).unwrap();
    folder.remove(&packed.artifacts[0].id).unwrap();
    let error = unpack(packed.coding, &packed.bytes, &folder).unwrap_err();
    assert!(matches!(error, StoreError::ArtifactDamaged { .. }), "{error:?}");
    unpack_skeleton(packed.coding, &packed.bytes).unwrap();
}

#[test]
fn any_bytes_are_refused_or_read_but_never_trusted() {
    let (_home, folder) = folder();
    let packed =
        pack(&result_message(&"x".repeat(ARTIFACT_CHARACTERS + 1)), &folder).unwrap().bytes.into_owned();
    let mut rng = Rng::new(7);
    for _ in 0..2_000 {
        let bytes = throughline_testkit::mutate(&packed, &mut rng);
        for coding in -1..5 {
            let _ = unpack(coding, &bytes, &folder);
        }
    }
}

#[test]
fn a_whole_coding_session_comes_back_byte_for_byte() {
    let (_home, folder) = folder();
    for wire_format in [WireFormat::Anthropic, WireFormat::Chat, WireFormat::Responses] {
        let text = big_transcript(wire_format, 3_000_000, 12, 3);
        let transcript = decode(text.into_bytes(), &DecodeOptions::default()).unwrap();
        let artifacts: usize =
            transcript.messages.iter().map(|message| there_and_back(message, &folder).1).sum();
        assert!(artifacts > 0, "{wire_format:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(throughline_testkit::cases(64)))]

    #[test]
    fn any_message_comes_back_byte_for_byte(list in any_conversation()) {
        let (_home, folder) = folder();
        for message in list.messages() {
            there_and_back(&message, &folder);
        }
    }

    #[test]
    fn any_large_result_comes_back_byte_for_byte(
        pieces in proptest::collection::vec(
            prop_oneof!["[ -~&&[^\"\\\\]]{1,9}", r#"\\["\\/bfnrt]"#, r"\\u[0-9a-fA-F]{4}", "[é中😀\u{7f}]"],
            1..6,
        ),
    ) {
        let (_home, folder) = folder();
        let unit = pieces.concat();
        there_and_back(&result_message(&unit.repeat(ARTIFACT_CHARACTERS / unit.len().min(6) + 1)), &folder);
    }
}
