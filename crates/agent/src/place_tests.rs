//! Inside is inside, whatever the path looks like.

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
    assert!(!place("/etc/hostname").0);
    assert!(workspace.place("dangling").is_err());
    assert!(workspace.place("dangling/file").is_err());
}
