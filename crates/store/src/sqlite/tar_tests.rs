//! Tests of writing and reading archives.

use std::process::Command;

use super::*;

fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = TarWriter::new(Vec::new(), 1_700_000_000);
    for (name, content) in files {
        let hash = writer.file(name, content.len() as u64, &mut &content[..], &mut |_| ()).unwrap();
        assert_eq!(hash, blake3::hash(content));
    }
    writer.finish().unwrap()
}

fn unpack(bytes: &[u8]) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    read_tar(bytes, |entry, content| {
        let mut body = Vec::new();
        content.read_to_end(&mut body)?;
        files.push((entry.name.clone(), body));
        Ok(())
    })?;
    Ok(files)
}

#[test]
fn what_is_written_is_read_back_whatever_its_size() {
    let bodies: Vec<Vec<u8>> =
        [0, 1, 511, 512, 513, 70_000].iter().map(|size| (0..*size).map(|at| at as u8).collect()).collect();
    let names: Vec<String> = (0..bodies.len()).map(|at| format!("artifacts/{at}")).collect();
    let files: Vec<(&str, &[u8])> =
        names.iter().map(String::as_str).zip(bodies.iter().map(Vec::as_slice)).collect();
    let read = unpack(&archive(&files)).unwrap();
    assert_eq!(read.len(), files.len());
    for ((name, body), (read_name, read_body)) in files.iter().zip(&read) {
        assert_eq!((*name, *body), (read_name.as_str(), read_body.as_slice()));
    }
}

#[test]
fn the_system_s_own_tar_unpacks_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("backup.tar");
    std::fs::write(&file, archive(&[("record.db", b"the record"), ("artifacts/ab/cd", b"text")])).unwrap();
    let status = Command::new("tar").arg("-xf").arg(&file).arg("-C").arg(folder.path()).status().unwrap();
    assert!(status.success());
    assert_eq!(std::fs::read(folder.path().join("record.db")).unwrap(), b"the record");
    assert_eq!(std::fs::read(folder.path().join("artifacts/ab/cd")).unwrap(), b"text");
}

#[test]
fn sizes_beyond_eight_gigabytes_survive() {
    for size in [LARGEST_OCTAL_SIZE, LARGEST_OCTAL_SIZE + 1, u64::MAX] {
        let block = header("record.db", size, 0).unwrap();
        assert_eq!(parse(&block).unwrap(), TarEntry { name: "record.db".into(), size });
    }
}

#[test]
fn a_file_that_is_shorter_than_announced_is_an_error() {
    let mut writer = TarWriter::new(Vec::new(), 0);
    let error = writer.file("record.db", 10, &mut &b"short"[..], &mut |_| ()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn a_name_that_does_not_fit_is_refused() {
    let name = "x".repeat(101);
    assert_eq!(header(&name, 0, 0).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    assert_eq!(parse(&header(&name[..100], 0, 0).unwrap()).unwrap().name, name[..100]);
}

#[test]
fn an_archive_that_was_cut_off_or_altered_is_an_error() {
    let whole = archive(&[("record.db", &[7; 1000])]);
    for cut in [0, 100, 512, 1200, 1600, 2048] {
        assert!(unpack(&whole[..cut]).is_err(), "cut at {cut}");
    }
    for at in [0, 124, 148] {
        let mut altered = whole.clone();
        altered[at] ^= 1;
        assert!(unpack(&altered).is_err(), "altered at {at}");
    }
}
