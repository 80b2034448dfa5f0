//! Recorded sessions held again, call by call: what was sent stays sent, and whatever goes out can be sent. Opt-in: the
//! folder is named by `THROUGHLINE_TEST_DATA`; the recordings belong to others and are not part of the repository, so
//! without the folder the test says so and passes.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use throughline_testkit::{Missing, skip};
use throughline_transcript::{DecodeError, DecodeOptions, Groups, Transcript, Violation, ViolationKind};

use crate::managed::prefix::replay;
use crate::managed::support::Stage;

/// Each session is compacted several times.
const WINDOW_TOKENS: u64 = 48_000;

#[expect(
    clippy::disallowed_methods,
    reason = "an opt-in test reads from the environment where its data lies"
)]
fn data_folder() -> Option<PathBuf> {
    std::env::var_os("THROUGHLINE_TEST_DATA").map(PathBuf::from).filter(|folder| folder.is_dir())
}

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_below(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "gz" || ext == "json" || ext == "jsonl") {
            found.push(path);
        }
    }
    found.sort();
}

fn conversations(path: &Path) -> Vec<Transcript> {
    let mut bytes = fs::read(path).unwrap();
    if path.extension().is_some_and(|ext| ext == "gz") {
        let packed = std::mem::take(&mut bytes);
        flate2::read::MultiGzDecoder::new(packed.as_slice()).read_to_end(&mut bytes).unwrap();
    }
    let read = |pick| Transcript::decode(bytes.clone(), &DecodeOptions { pick, ..DecodeOptions::default() });
    match read(None) {
        Ok(transcript) => vec![transcript],
        Err(DecodeError::Several { count }) => (1..=count).filter_map(|pick| read(Some(pick)).ok()).collect(),
        Err(error) => panic!("{}: {error}", path.display()),
    }
}

#[tokio::test]
async fn recorded_sessions_keep_their_prefix() {
    let Some(folder) = data_folder() else {
        skip(&Missing::RecordedSessions);
        return;
    };
    let mut files = Vec::new();
    files_below(&folder, &mut files);
    let (mut all_calls, mut all_compactions) = (0, 0);
    for path in files {
        for transcript in conversations(&path) {
            let found = Violation::find(
                transcript.wire_format,
                &transcript.messages,
                &Groups::of(&transcript.messages),
            );
            let mut allowed: Vec<ViolationKind> = found.into_iter().map(|violation| violation.kind).collect();
            // What comes in is paired, whatever was recorded.
            allowed.retain(|kind| {
                !matches!(kind, ViolationKind::ResultWithoutCall | ViolationKind::ResultBeforeCall)
            });
            let stage = Stage::new(transcript.wire_format, WINDOW_TOKENS);
            let mut session = stage.open().await;
            let held = replay(&stage, &mut session, &transcript.messages, &allowed).await;
            let (calls, compactions) = held.unwrap_or_else(|error| {
                let mut words = error.to_string();
                words.truncate(words.floor_char_boundary(2_000));
                panic!("{}: {words}", path.display())
            });
            all_calls += calls;
            all_compactions += compactions;
        }
    }
    println!("{all_calls} calls, {all_compactions} compactions");
    assert!(all_calls > 0);
}
