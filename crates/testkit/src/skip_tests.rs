//! Notes about skipped tests, and the summary.

use super::*;

const PYTHON: Missing<'_> = Missing::Program { name: "python3", installed_by: "your package manager" };

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("throughline-skip-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

#[test]
fn skip_report_counts_each_test_once_and_says_what_is_missing() {
    let folder = folder("report");
    let file = folder.join("run");
    note(&file, "engines::one", &PYTHON);
    note(&file, "engines::one", &PYTHON);
    note(&file, "engines::two", &PYTHON);
    note(&file, "recorded::all", &Missing::RecordedSessions);
    let report = SkipReport::take(&file);
    assert_eq!(report.tests(), 3);
    assert_eq!(
        report.to_string(),
        "skipped: 3 tests did not run and count as passed above:\n    \
         2  python3 not found (your package manager installs it)\n    \
         1  recorded sessions not found (THROUGHLINE_TEST_DATA names their folder)\n\
         THROUGHLINE_REQUIRE_ALL=1 makes tests fail that miss what can be installed."
    );
    assert_eq!(SkipReport::take(&file), SkipReport::default(), "the file of a run is read once");
    let _ = std::fs::remove_dir_all(folder);
}

#[test]
fn skip_report_of_a_complete_machine_says_so() {
    let report = SkipReport::take(Path::new("/no/such/file"));
    assert_eq!((report.tests(), report.to_string().starts_with("skipped: no test")), (0, true));
}
