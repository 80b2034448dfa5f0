//! Reading inputs and replacing files.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn causes(failure: &CliError) -> String {
    anstream::adapter::strip_str(&failure.render()).to_string()
}

#[test]
fn plain_and_packed_files_read_alike() {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("a.json");
    // The format is recognised by the first bytes, not by the name.
    let packed = folder.path().join("b.json");
    fs::write(&plain, b"[1, 2]").unwrap();
    let mut members = gzip(b"[1, ");
    members.extend(gzip(b"2]"));
    fs::write(&packed, members).unwrap();
    assert_eq!(read_input(&plain).unwrap(), b"[1, 2]");
    assert_eq!(read_input(&packed).unwrap(), b"[1, 2]");
}

#[test]
fn broken_gzip_is_distinguished_from_cut_off_gzip() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.gz");
    let whole = gzip(&b"some text ".repeat(1000));
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let cut = read_input(&path).unwrap_err();
    assert_eq!(cut.exit(), Exit::BadInput);
    assert!(causes(&cut).contains("ends too early"), "{}", causes(&cut));

    let mut wrong_checksum = whole;
    let at = wrong_checksum.len() - 6;
    wrong_checksum[at] ^= 0xff;
    fs::write(&path, &wrong_checksum).unwrap();
    let broken = read_input(&path).unwrap_err();
    assert_eq!(broken.exit(), Exit::BadInput);
    assert!(causes(&broken).contains("is broken"), "{}", causes(&broken));
}

#[test]
fn reading_stops_at_the_limit() {
    let zeros = gzip(&vec![0; 100_000]);
    assert!(read_bounded(MultiGzDecoder::new(&zeros[..]), 99_999).unwrap().is_none());
    assert_eq!(read_bounded(MultiGzDecoder::new(&zeros[..]), 100_000).unwrap().unwrap().len(), 100_000);
}

#[test]
fn unreadable_inputs_say_why() {
    let folder = tempfile::tempdir().unwrap();
    let missing = read_input(&folder.path().join("nothing.json")).unwrap_err();
    assert_eq!(missing.exit(), Exit::InputUnreadable);
    let is_folder = read_input(folder.path()).unwrap_err();
    assert_eq!(is_folder.exit(), Exit::InputUnreadable);
    assert!(causes(&is_folder).contains("it is a folder"));
    let zstd = folder.path().join("a.zst");
    fs::write(&zstd, [0x28, 0xb5, 0x2f, 0xfd, 0, 0]).unwrap();
    assert!(causes(&read_input(&zstd).unwrap_err()).contains("it is zstd"));
}

#[test]
fn a_written_file_replaces_the_old_one_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.json");
    write_atomic(&path, b"one").unwrap();
    write_atomic(&path, b"two").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"two");
    assert_eq!(names_in(folder.path()), ["out.json"]);
}

#[test]
fn refusals_leave_the_old_file_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let is_folder = write_atomic(folder.path(), b"x").unwrap_err();
    assert_eq!(is_folder.exit(), Exit::OutputFailed);
    let no_folder = write_atomic(&folder.path().join("no/such/out.json"), b"x").unwrap_err();
    assert_eq!(no_folder.exit(), Exit::OutputFailed);
    assert!(causes(&no_folder).contains("does not exist"));

    let path = folder.path().join("locked.json");
    fs::write(&path, b"old").unwrap();
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).unwrap();
    assert!(causes(&write_atomic(&path, b"new").unwrap_err()).contains("read-only"));
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(names_in(folder.path()), ["locked.json"]);
}

#[cfg(unix)]
#[test]
fn permissions_and_links_stay() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.json");
    fs::write(&path, b"old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let link = folder.path().join("link.json");
    symlink(&path, &link).unwrap();
    write_atomic(&link, b"new").unwrap();
    assert!(link.is_symlink());
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);

    let dangling = folder.path().join("dangling.json");
    symlink(folder.path().join("gone"), &dangling).unwrap();
    assert!(causes(&write_atomic(&dangling, b"x").unwrap_err()).contains("target does not exist"));
}

#[cfg(unix)]
#[test]
fn devices_are_written_to_not_replaced() {
    use std::os::unix::fs::FileTypeExt as _;
    let null = Path::new("/dev/null");
    write_atomic(null, b"x").unwrap();
    assert!(fs::metadata(null).unwrap().file_type().is_char_device());
}
