//! Permissions of new and of existing files.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::*;

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn context_at(home: PathBuf) -> App {
    App::for_tests(home)
}

#[test]
fn whatever_is_made_first_is_private() {
    let folder = tempfile::tempdir().unwrap();
    let app = context_at(folder.path().join("home"));
    crate::access_token_file::change(&app, |_| Ok(())).unwrap();
    assert_eq!(mode(&app.home), 0o700);
    assert_eq!(mode(&app.home.join("tokens.lock")), 0o600);
    assert_eq!(mode(&app.home.join("tokens.json")), 0o600);
}

#[test]
fn open_permissions_are_closed() {
    let folder = tempfile::tempdir().unwrap();
    let app = context_at(folder.path().join("home"));
    std::fs::create_dir(&app.home).unwrap();
    set(&app.home, 0o755);
    for name in SECRET_FILES {
        std::fs::write(app.home.join(name), "").unwrap();
        set(&app.home.join(name), 0o644);
    }
    make_private(&app).unwrap();
    assert_eq!(mode(&app.home), 0o700);
    for name in SECRET_FILES {
        assert_eq!(mode(&app.home.join(name)), 0o600, "{name}");
    }
}

#[test]
fn folders_that_others_share_are_left_open() {
    let folder = tempfile::tempdir().unwrap();
    let shared = context_at(folder.path().join("shared"));
    std::fs::create_dir(&shared.home).unwrap();
    set(&shared.home, 0o1777);
    make_private(&shared).unwrap();
    assert_eq!(mode(&shared.home), 0o1777);
    let mut own = context_at(folder.path().join("own"));
    own.user_home = Some(own.home.clone());
    std::fs::create_dir(&own.home).unwrap();
    set(&own.home, 0o755);
    make_private(&own).unwrap();
    assert_eq!(mode(&own.home), 0o755);
}
