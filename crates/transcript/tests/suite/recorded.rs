//! Every recorded session goes through. Opt-in: the folder is named by `THROUGHLINE_TEST_DATA`; the recordings belong to
//! others and are not part of the repository, so without the folder the test says so and passes.

#![expect(clippy::expect_used, clippy::panic, reason = "helpers of a test fail it by panicking")]

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use throughline_testkit::{Missing, skip};
use throughline_transcript::{
    DecodeError, DecodeOptions, Groups, Message, Source, Transcript, Violation, ViolationKind, WireFormat,
};

#[expect(
    clippy::disallowed_methods,
    reason = "an opt-in test reads from the environment where its data lies"
)]
fn data_folder() -> Option<PathBuf> {
    std::env::var_os("THROUGHLINE_TEST_DATA").map(PathBuf::from).filter(|folder| folder.is_dir())
}

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is readable") {
        let path = entry.expect("the entry is readable").path();
        if path.is_dir() {
            files_below(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "gz" || ext == "json" || ext == "jsonl") {
            found.push(path);
        }
    }
    found.sort();
}

fn bytes_of(path: &Path) -> Vec<u8> {
    let raw = fs::read(path).expect("the file is readable");
    if path.extension().is_none_or(|ext| ext != "gz") {
        return raw;
    }
    let mut bytes = Vec::new();
    flate2::read::MultiGzDecoder::new(raw.as_slice()).read_to_end(&mut bytes).expect("the file is gzip");
    bytes
}

/// All conversations of a file: one, or each of a collection.
fn conversations(path: &Path, bytes: &[u8]) -> Vec<Transcript> {
    let read = |pick| Transcript::decode(bytes.to_vec(), &DecodeOptions { pick, ..DecodeOptions::default() });
    match read(None) {
        Ok(transcript) => vec![transcript],
        Err(DecodeError::Several { count }) => {
            (1..=count).map(|number| read(Some(number)).expect("every conversation is readable")).collect()
        }
        Err(error) => panic!("{}: {error}", path.display()),
    }
}

/// What is wrong with a recording beyond calls that were really never answered (an interrupted turn, or the result that
/// stood on the broken line).
fn unexpected(transcript: &Transcript) -> Vec<Violation> {
    let groups = Groups::of(&transcript.messages);
    let mut found = Violation::find(transcript.wire_format, &transcript.messages, &groups);
    found.retain(|violation| violation.kind != ViolationKind::CallWithoutResult);
    found
}

/// Every byte of a list or body goes back as it came.
fn goes_back_unchanged(transcript: &Transcript, document: &[u8]) -> bool {
    let mut out = Vec::new();
    transcript.write_unchanged(&mut out);
    out == document
}

#[test]
fn every_recorded_session_is_read() {
    let Some(folder) = data_folder() else {
        skip(&Missing::RecordedSessions);
        return;
    };
    let mut files = Vec::new();
    files_below(&folder, &mut files);
    assert!(!files.is_empty(), "{} holds no recordings", folder.display());
    let mut broken_lines = Vec::new();
    let (mut read, mut messages, mut humans) = (0, 0, 0);
    for path in files {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let bytes = bytes_of(&path);
        let found = conversations(&path, &bytes);
        for transcript in &found {
            assert!(!transcript.messages.is_empty(), "{name} is empty");
            assert_eq!(unexpected(transcript), [], "{name}");
            if transcript.source == Source::ClaudeCodeLog {
                assert_eq!(transcript.wire_format, WireFormat::Anthropic, "{name}");
                assert!(transcript.preamble.model.is_some(), "{name} names its model");
            } else if found.len() == 1 {
                assert!(goes_back_unchanged(transcript, &bytes), "{name}");
            }
            let broken = transcript.notes.iter().filter(|note| note.text.starts_with("broken JSON"));
            broken_lines.extend(broken.map(|note| (name.clone(), note.line)));
            read += 1;
            messages += transcript.messages.len();
            humans += transcript.messages.iter().filter(|message| Message::is_human(message)).count();
        }
    }
    println!("{read} conversations, {messages} messages, {humans} of them by people");
    // Of all the recordings one has a line that is not JSON.
    let named: Vec<(&str, Option<usize>)> =
        broken_lines.iter().map(|(name, line)| (name.split('.').next().unwrap_or_default(), *line)).collect();
    assert_eq!(named, [("c0_48f428f9", Some(19))]);
}
