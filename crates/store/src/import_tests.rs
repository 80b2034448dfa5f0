//! Tests of imported files: plain transcripts, collections, damaged files, and reports.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use super::testing::{World, answer, user};
use super::{FileOutcome, ImportEvent, ImportReport, Importer};
use crate::ids::{IdLength, Millis, Owner, SessionId};

#[test]
fn plain_transcripts_are_known_by_where_they_lie() {
    let mut world = World::new();
    let first = r#"{"role":"user","content":"hi"}"#;
    let list = world.write("a.json", &["[", first, "]"]);
    let twin = world.write("b.json", &["[", first, "]"]);
    assert_eq!((world.counts(&list).new, world.counts(&twin).new), (1, 1));
    world.write("a.json", &["[", first, ",", r#"{"role":"assistant","content":"hello"}"#, "]"]);
    let counts = world.counts(&list);
    assert_eq!((counts.grown, counts.messages), (1, 1));
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&fs::read(&list).unwrap()).unwrap();
    fs::remove_file(&list).unwrap();
    fs::write(world.path("a.json.gz"), packed.finish().unwrap()).unwrap();
    assert_eq!(
        world.counts(&world.path("a.json.gz")).unchanged,
        1,
        "packing a file does not make it another"
    );
}

#[test]
fn an_answer_at_the_end_of_a_new_file_is_recorded_at_once() {
    let mut world = World::new();
    let list = world.write(
        "a.json",
        &["[", r#"{"role":"user","content":"hi"},"#, r#"{"role":"assistant","content":"hello"}"#, "]"],
    );
    let written_ms = super::files::written_ms(&list).unwrap();
    world.now_ms = Some(written_ms + 1);
    let counts = world.counts(&list);
    assert_eq!((counts.messages, counts.held_back), (2, 0));
}

#[test]
fn collections_are_taken_apart() {
    let mut world = World::new();
    let of = |text: &str| format!(r#"{{"traj":[{{"role":"user","content":"{text}"}}]}}"#);
    let array = world.write("all.json", &[&format!("[{},{}]", of("one"), of("two"))]);
    assert_eq!(world.counts(&array).new, 2);
    let lines = world.write("all.jsonl", &[&of("three"), "", &of("four")]);
    assert_eq!(world.counts(&lines).new, 2);
    assert_eq!(world.counts(&lines).unchanged, 2);
    assert_eq!(world.conversations(), 4);
}

#[test]
fn broken_lines_are_named_and_the_rest_is_recorded() {
    let mut world = World::new();
    let log = world.path("s1.jsonl");
    let mut bytes = user("a", "", "fix it").into_bytes();
    bytes.extend_from_slice(b"\n{\"type\":\"user\",\"mess\n\xff\xfe{\n");
    bytes.extend_from_slice(answer("b", "a", "done").as_bytes());
    bytes.extend_from_slice(b"\n{\"type\":\"assis");
    fs::write(&log, bytes).unwrap();
    let report = world.import(&log);
    assert_eq!(report.totals().messages, 2);
    let mut lines: Vec<Option<usize>> = report.files[0].notes.iter().map(|note| note.line).collect();
    lines.sort();
    assert_eq!(lines, [Some(2), Some(3), Some(5)]);
    assert_eq!(report.files[0].outcome, FileOutcome::Failed("it breaks off in line 5".to_owned()));
}

#[test]
fn a_packed_file_that_breaks_off_is_read_as_far_as_it_goes() {
    let mut world = World::new();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for number in 0..2_000 {
        let text = format!("{number} {}", number * 7_919 % 1_000_003);
        writeln!(packed, "{}", user(&format!("u{number}"), "", &text)).unwrap();
    }
    let packed = packed.finish().unwrap();
    let log = world.path("s1.jsonl.gz");
    fs::write(&log, &packed[..packed.len() / 2]).unwrap();
    let report = world.import(&log);
    let recorded = report.totals().messages;
    assert!((100..2_000).contains(&recorded), "{recorded}");
    assert!(matches!(&report.files[0].outcome, FileOutcome::Failed(why) if why.contains("breaks off")));
    fs::write(&log, &packed).unwrap();
    let counts = world.counts(&log);
    assert_eq!((counts.grown, counts.branched, recorded + counts.messages), (1, 0, 2_000));
}

#[test]
fn a_log_that_ends_in_half_a_line_is_recorded_and_says_so() {
    let mut world = World::new();
    let whole: String = (0..3).map(|at| format!("{}\n", user(&format!("u{at}"), "", "words"))).collect();
    let log = world.path("s1.jsonl");
    fs::write(&log, &whole[..whole.len() - 9]).unwrap();
    let report = world.import(&log);
    assert_eq!(report.totals().messages, 2);
    assert_eq!(report.failures().map(|(_, why)| why).collect::<Vec<_>>(), ["it breaks off in line 3"]);
    // The end of the last line may be missing.
    fs::write(&log, whole.trim_end()).unwrap();
    let report = world.import(&log);
    assert_eq!((report.totals().messages, report.failures().count()), (1, 0));
}

#[test]
fn what_is_no_conversation_is_a_failure_by_name_and_passed_over_in_a_folder() {
    let mut world = World::new();
    world.write("notes.txt", &["not looked at"]);
    let index = world.write("index.json", &[r#"{"version":1}"#]);
    let empty = world.write("empty.jsonl", &[""]);
    let cut = world.write("cut.json", &[r#"[{"role":"user","content":"#]);
    let good = world.write("good.json", &[r#"[{"role":"user","content":"hi"}]"#]);
    let folder = world.folder.path().to_owned();
    let report = world.import(&folder);
    assert_eq!((report.files.len(), report.skipped(), report.totals().new), (4, 2, 1));
    let failed: Vec<&Path> = report.failures().map(|(path, _)| path).collect();
    assert_eq!(failed, [cut.as_path()]);
    for path in [&index, &empty] {
        assert_eq!(world.import(path).failures().count(), 1, "{}", path.display());
    }
    assert_eq!(world.counts(&good).unchanged, 1);
    let missing = world.import(Path::new("/nowhere/at/all"));
    let (path, reason) = missing.failures().next().unwrap();
    assert_eq!(path, Path::new("/nowhere/at/all"));
    assert!(reason.contains("No such file") || reason.contains("not found"), "{reason}");
}

#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_looked_into_does_not_keep_the_others_out() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let mut world = World::new();
    world.write("a/good.json", &[r#"[{"role":"user","content":"hi"}]"#]);
    let shut = world.write("b/shut.json", &["[]"]);
    let shut = shut.parent().unwrap();
    symlink("nowhere", world.path("a/gone.json")).unwrap();
    symlink(world.folder.path(), world.path("a/round")).unwrap();
    fs::set_permissions(shut, fs::Permissions::from_mode(0o000)).unwrap();
    // A user with all rights can read that folder too.
    let is_shut = fs::read_dir(shut).is_err();
    let folder = world.folder.path().to_owned();
    let report = world.import(&folder);
    fs::set_permissions(shut, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(report.totals().new, 1);
    let failed: Vec<&Path> = report.failures().map(|(path, _)| path).collect();
    assert_eq!(failed.contains(&shut), is_shut);
    assert!(failed.contains(&world.path("a/gone.json").as_path()), "a link to nothing is told: {failed:?}");
}

#[test]
fn a_record_that_cannot_be_written_ends_the_import_and_what_was_done_is_reported() {
    let world = World::new();
    world.write("a.json", &[r#"[{"role":"user","content":"hi"}]"#]);
    world.write("b.json", &[r#"[{"role":"user","content":"ho"}]"#]);
    let home = tempfile::tempdir().unwrap();
    let record = home.path().join("record.db");
    drop(crate::sqlite::SqliteStore::open(&record, 0).unwrap());
    let store = crate::sqlite::SqliteStore::open_read_only(&record).unwrap();
    let mut new_id = |at_ms: Millis| SessionId::new(at_ms, 1, IdLength::Local);
    let mut importer = Importer::new(&store, Owner::default(), &mut new_id, |_| None);
    let mut report = ImportReport::default();
    let outcome = importer.import_path(world.folder.path(), &mut report, &mut |_| {});
    assert!(matches!(outcome, Err(crate::error::StoreError::ReadOnly { .. })), "{outcome:?}");
    assert_eq!(report.failures().count(), 1, "the second file was not begun: {report:?}");
}

#[test]
fn progress_is_told() {
    let world = World::new();
    world.write("a.json", &[r#"[{"role":"user","content":"hi"}]"#]);
    world.write("b.json", &["{}"]);
    let mut told = Vec::new();
    let mut drawn = 0;
    let mut new_id = |at_ms: Millis| {
        drawn += 1;
        SessionId::new(at_ms, drawn, IdLength::Local)
    };
    let mut importer = Importer::new(&world.store, world.owner.clone(), &mut new_id, |_| None);
    let mut report = ImportReport::default();
    importer
        .import_path(world.folder.path(), &mut report, &mut |event| {
            told.push(match event {
                ImportEvent::Listed { files } => format!("listed {files}"),
                ImportEvent::Began { number, of, .. } => format!("began {number} of {of}"),
                ImportEvent::Recorded { conversations, of } => format!("recorded {conversations} of {of}"),
                ImportEvent::Ended(file) => format!("ended {:?}", file.counts.new),
            });
        })
        .unwrap();
    assert_eq!(told, ["listed 2", "began 1 of 2", "ended 1", "began 2 of 2", "ended 0"]);
}

#[test]
fn an_id_that_is_taken_is_drawn_again() {
    let world = World::new();
    let list = world.write("a.json", &[r#"[{"role":"user","content":"hi"}]"#]);
    let other = world.write("b.json", &[r#"[{"role":"user","content":"ho"}]"#]);
    let mut drawn = 0;
    let mut new_id = |_: Millis| {
        drawn += 1;
        SessionId::from_text(format!("s{}", drawn / 2))
    };
    let mut report = ImportReport::default();
    let mut importer = Importer::new(&world.store, world.owner.clone(), &mut new_id, |_| None);
    for path in [&list, &other] {
        importer.import_path(path, &mut report, &mut |_| {}).unwrap();
    }
    assert_eq!(report.totals().new, 2);
}

#[test]
fn owners_do_not_see_each_others_imports() {
    let mut world = World::new();
    let log = world.write("s1.jsonl", &[&user("a", "", "fix it")]);
    assert_eq!(world.counts(&log).new, 1);
    world.owner = Owner::new("another");
    assert_eq!(world.counts(&log).new, 1);
    assert_eq!(world.counts(&log).unchanged, 1);
}
