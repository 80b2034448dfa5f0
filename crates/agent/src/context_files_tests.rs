//! Which project files are used, and in which order.

use std::fs;

use super::*;

#[test]
fn from_the_root_of_the_repository_down_one_file_a_folder() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("project");
    let inner = root.join("crates/one");
    fs::create_dir_all(&inner).unwrap();
    fs::create_dir_all(root.join(".git")).unwrap();
    fs::write(place.path().join("AGENTS.md"), "not of this project").unwrap();
    fs::write(root.join("AGENTS.md"), "general").unwrap();
    fs::write(root.join("CLAUDE.md"), "not read beside the other").unwrap();
    fs::write(inner.join("CLAUDE.md"), "particular").unwrap();
    let texts =
        |folder: &Path| -> Vec<String> { context_files(folder).into_iter().map(|file| file.text).collect() };
    assert_eq!(texts(&inner), ["general", "particular"]);
    assert_eq!(texts(&root.join("crates")), ["general"]);
    fs::remove_dir_all(root.join(".git")).unwrap();
    assert_eq!(texts(&inner), ["particular"], "without a repository, the folder alone");
}

#[test]
fn files_that_are_not_text_are_left_out() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("AGENTS.md"), [0xff, 0xfe, 0x00]).unwrap();
    assert_eq!(context_files(place.path()), []);
}
