//! Only paths that lead into the workspace count as inside.

use super::*;

#[test]
fn links_and_dots_are_followed_before_anything_is_decided() {
    let outside = tempfile::tempdir().unwrap();
    let inside = tempfile::tempdir().unwrap();
    std::fs::create_dir(inside.path().join("src")).unwrap();
    std::fs::write(inside.path().join("src/a.rs"), "x").unwrap();
    std::os::unix::fs::symlink(outside.path(), inside.path().join("away")).unwrap();
    std::os::unix::fs::symlink(inside.path().join("src"), inside.path().join("near")).unwrap();
    std::os::unix::fs::symlink("nowhere/at/all", inside.path().join("dangling")).unwrap();
    let workspace = Workspace::new(inside.path()).unwrap();
    let place = |given: &str| workspace.place(given).map(|place| (place.inside, place.shown)).unwrap();
    assert_eq!(place("src/a.rs"), (true, "src/a.rs".to_owned()));
    assert_eq!(place("near/a.rs"), (true, "src/a.rs".to_owned()));
    assert_eq!(place("src/../src/new/b.rs"), (true, "src/new/b.rs".to_owned()));
    assert_eq!(place("."), (true, ".".to_owned()));
    assert!(!place("away/file").0, "a link that leads outside");
    assert!(!place("../other").0);
    assert!(!place("src/new/../../../../etc/passwd").0, "dot-dots behind a folder that is not there");
    assert!(!place("not-there/../away/file").0, "a link behind a dot-dot");
    assert!(!place("not-there/../away/new/file").0);
    assert_eq!(place("not-there/../near/a.rs"), (true, "src/a.rs".to_owned()));
    assert!(!place("/etc/hostname").0);
    assert!(workspace.place("dangling").is_err());
    assert!(workspace.place("dangling/file").is_err());
}

#[test]
fn folder_put_in_the_place_of_another_is_another_folder() {
    let outside = tempfile::tempdir().unwrap();
    let (folder, kept) = (outside.path().join("allowed"), outside.path().join("kept"));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("a"), "x").unwrap();
    let before = FolderIdentity::of(&folder);
    assert!(before.is_some());
    assert_eq!(before, FolderIdentity::of(&folder.join("a")), "a file is in its folder");
    assert_eq!(before, FolderIdentity::of(&folder.join("not there yet")));
    std::fs::write(folder.join("b"), "y").unwrap();
    assert_eq!(before, FolderIdentity::of(&folder), "what is in it makes no difference");
    std::fs::rename(&folder, &kept).unwrap();
    std::fs::create_dir(&folder).unwrap();
    assert_ne!(before, FolderIdentity::of(&folder));
}
