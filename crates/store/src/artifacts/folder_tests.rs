//! Tests of the folder of artifacts.

use proptest::prelude::*;

use super::*;
use crate::artifacts::artifact::NewArtifact;
use crate::artifacts::frames::FRAME_TEXT_BYTES;

fn folder() -> (tempfile::TempDir, ArtifactFolder) {
    let home = tempfile::tempdir().unwrap();
    let folder = ArtifactFolder::open(home.path().join("artifacts")).unwrap();
    (home, folder)
}

/// Lines of increasing length: more than one frame, and no line crosses a frame.
fn long_text() -> String {
    (0..9_000).map(|n| format!("line {n} {}\n", "é中x".repeat(n % 40))).collect()
}

fn problem_of(error: StoreError) -> String {
    match error {
        StoreError::ArtifactDamaged { problem, .. } => problem,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_put_is_read_back_and_known() {
    let (_home, folder) = folder();
    for text in ["", "\n", "one", "one\n", "one\ntwo", &long_text()] {
        let (id, file) = folder.put(text).unwrap();
        assert_eq!(id, ArtifactId::of(text.as_bytes()));
        assert_eq!(folder.read(&id, ArtifactRange::All).unwrap(), text);
        assert_eq!(folder.stat(&id).unwrap(), file);
        assert_eq!((file.bytes, file.lines), (text.len() as u64, NewArtifact::count_lines(text)));
        assert_eq!(file.stored_bytes, fs::metadata(folder.file_path(&id)).unwrap().len());
        folder.verify(&id).unwrap();
    }
}

#[test]
fn the_same_text_is_written_once() {
    let (_home, folder) = folder();
    let (id, first) = folder.put("the same").unwrap();
    let written = fs::metadata(folder.file_path(&id)).unwrap().modified().unwrap();
    assert_eq!(folder.put("the same").unwrap(), (id.clone(), first));
    assert_eq!(fs::metadata(folder.file_path(&id)).unwrap().modified().unwrap(), written);
    assert_eq!(folder.list().unwrap(), FolderListing { artifacts: vec![id], strangers: vec![] });
}

#[test]
fn any_zstd_reader_gets_the_text() {
    let (_home, folder) = folder();
    let text = long_text();
    let (id, _) = folder.put(&text).unwrap();
    let packed = fs::read(folder.file_path(&id)).unwrap();
    assert_eq!(zstd::decode_all(packed.as_slice()).unwrap(), text.as_bytes());
}

#[cfg(unix)]
#[test]
fn only_the_owner_may_read() {
    use std::os::unix::fs::PermissionsExt as _;
    let (_home, folder) = folder();
    let (id, _) = folder.put("private").unwrap();
    let path = folder.file_path(&id);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    assert_eq!(mode(folder.path()), 0o700);
}

#[test]
fn a_missing_file_is_named_as_such() {
    let (_home, folder) = folder();
    let (id, _) = folder.put("soon gone").unwrap();
    folder.remove(&id).unwrap();
    folder.remove(&id).unwrap();
    assert_eq!(problem_of(folder.read(&id, ArtifactRange::All).unwrap_err()), "missing");
    assert_eq!(problem_of(folder.stat(&id).unwrap_err()), "missing");
}

#[test]
fn every_changed_or_missing_byte_is_noticed() {
    let (_home, folder) = folder();
    let text = "some text that is long enough to be compressed, compressed, compressed\n".repeat(20);
    let (id, _) = folder.put(&text).unwrap();
    let path = folder.file_path(&id);
    let good = fs::read(&path).unwrap();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x55;
        fs::write(&path, &bad).unwrap();
        let read = folder.read(&id, ArtifactRange::All);
        assert!(read.as_ref().map_or(true, |read| *read == text), "byte {at}");
        fs::write(&path, &good[..at]).unwrap();
        problem_of(folder.read(&id, ArtifactRange::All).unwrap_err());
    }
}

#[test]
fn a_damaged_file_is_replaced_when_the_text_comes_again() {
    let (_home, folder) = folder();
    let (id, _) = folder.put("the text").unwrap();
    fs::write(folder.file_path(&id), b"rubbish").unwrap();
    assert_eq!(problem_of(folder.verify(&id).unwrap_err()), "cut short or not an artifact");
    folder.put("the text").unwrap();
    folder.verify(&id).unwrap();
}

#[test]
fn another_text_under_the_name_is_noticed() {
    let (_home, folder) = folder();
    let (one, _) = folder.put("one").unwrap();
    let (two, _) = folder.put("two").unwrap();
    fs::copy(folder.file_path(&two), folder.file_path(&one)).unwrap();
    assert_eq!(problem_of(folder.verify(&one).unwrap_err()), "not what its name says");
}

#[test]
fn strangers_in_the_folder_are_distinguished() {
    let (_home, folder) = folder();
    let (id, _) = folder.put("text").unwrap();
    let stray = folder.path().join("notes.txt");
    let left_behind = folder.file_path(&id).with_file_name(".new-abc");
    let misplaced = folder.path().join(format!("{id}.zst"));
    for path in [&stray, &left_behind, &misplaced] {
        fs::write(path, b"x").unwrap();
    }
    let listing = folder.list().unwrap();
    assert_eq!(listing.artifacts, [id]);
    let mut expected = vec![stray, left_behind, misplaced];
    expected.sort();
    assert_eq!(listing.strangers, expected);
}

#[test]
fn a_folder_that_is_not_there_is_empty() {
    let home = tempfile::tempdir().unwrap();
    let folder = ArtifactFolder::at(home.path().join("none"));
    assert_eq!(folder.list().unwrap(), FolderListing::default());
    let id = ArtifactId::of(b"x");
    assert_eq!(problem_of(folder.verify(&id).unwrap_err()), "missing");
    assert!(!folder.path().exists());
    folder.put("x").unwrap();
    folder.verify(&id).unwrap();
}

#[test]
fn names_that_are_none_find_nothing() {
    let (_home, folder) = folder();
    for name in ["", "a", "é", "../../etc/passwd", "0123"] {
        let id = ArtifactId::from_text(name);
        assert!(folder.read(&id, ArtifactRange::All).is_err(), "{name}");
    }
}

#[test]
fn pieces_of_a_large_text_are_those_of_the_text() {
    let (_home, folder) = folder();
    let text = long_text();
    assert!(text.len() > 3 * FRAME_TEXT_BYTES);
    let (id, _) = folder.put(&text).unwrap();
    let check = |range: ArtifactRange| {
        assert_eq!(folder.read(&id, range).unwrap(), range.of(&text), "{range:?}");
    };
    let lines = NewArtifact::count_lines(&text);
    for first in [0, 1, 2, 2_000, 2_001, lines - 1, lines, lines + 1, u64::MAX] {
        for count in [0, 1, 2, 3_000, u64::MAX] {
            check(ArtifactRange::Lines { first, count });
        }
    }
    let frame = FRAME_TEXT_BYTES as u64;
    for first in
        [0, 1, frame - 9, frame - 1, frame, frame + 1, text.len() as u64 - 1, text.len() as u64, u64::MAX]
    {
        for count in [0, 1, 2, 3, frame, u64::MAX] {
            check(ArtifactRange::Bytes { first, count });
        }
    }
}

#[test]
fn a_line_longer_than_a_frame_is_read_whole() {
    let (_home, folder) = folder();
    let text = format!("short\n{}\nlast\n", "ü".repeat(FRAME_TEXT_BYTES));
    let (id, _) = folder.put(&text).unwrap();
    for first in 1..5 {
        let range = ArtifactRange::Lines { first, count: 1 };
        assert_eq!(folder.read(&id, range).unwrap(), range.of(&text));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(throughline_testkit::cases(64)))]

    #[test]
    fn any_piece_of_any_text(
        lines in proptest::collection::vec(("[a-zé中\r]{0,3}", 1usize..60_000), 0..12),
        first in 0u64..700_000,
        count in 0u64..700_000,
        open in proptest::bool::ANY,
    ) {
        let (_home, folder) = folder();
        let mut text: String = lines.iter().map(|(word, times)| word.repeat(*times) + "\n").collect();
        if open {
            text.push_str("open end");
        }
        let (id, _) = folder.put(&text).unwrap();
        for range in [
            ArtifactRange::Bytes { first, count },
            ArtifactRange::Lines { first: first % 14, count: count % 14 },
        ] {
            prop_assert_eq!(folder.read(&id, range).unwrap(), range.of(&text));
        }
    }
}
