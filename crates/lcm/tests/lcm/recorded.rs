//! What holds for generated conversations holds for recorded ones. Opt-in: the folder is named by `THROUGHLINE_TEST_DATA`;
//! the recordings belong to others and are not part of the repository, so without the folder the test says so and passes.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use throughline_lcm::LcmLimits;
use throughline_testkit::{Missing, skip};
use throughline_transcript::{DecodeOptions, Transcript};

use crate::properties::fold_in_pieces;
use crate::support::Stage;

/// Small beside the sessions, so that nodes are condensed again and again.
const WINDOW_TOKENS: u64 = 48_000;
const PIECES: usize = 8;

#[expect(
    clippy::disallowed_methods,
    reason = "an opt-in test reads from the environment where its data lies"
)]
fn data_folder() -> Option<PathBuf> {
    std::env::var_os("THROUGHLINE_TEST_DATA").map(PathBuf::from).filter(|folder| folder.is_dir())
}

fn session(path: &Path) -> Option<Transcript> {
    let mut bytes = fs::read(path).ok()?;
    if path.extension().is_some_and(|ext| ext == "gz") {
        let packed = std::mem::take(&mut bytes);
        flate2::read::MultiGzDecoder::new(packed.as_slice()).read_to_end(&mut bytes).ok()?;
    }
    Transcript::decode(bytes, &DecodeOptions::default()).ok()
}

#[tokio::test]
async fn nodes_of_recorded_sessions_hold_together() {
    let Some(folder) = data_folder() else {
        skip(&Missing::RecordedSessions);
        return;
    };
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let (mut sessions, mut folded) = (0, 0);
    for transcript in files.iter().filter_map(|path| session(path)) {
        let limits = LcmLimits { chunk_tokens: 3_000, nodes_tokens: Some(3_000), ..LcmLimits::default() };
        let stage = Stage::new(transcript.wire_format, WINDOW_TOKENS, limits);
        folded += fold_in_pieces(stage, &transcript.messages, PIECES).await;
        sessions += 1;
    }
    assert!(sessions > 0, "no session could be read");
    assert!(folded > sessions, "{folded} compactions of {sessions} sessions");
}
