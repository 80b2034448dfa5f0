use std::io::Write;

use hyper::header::HeaderValue;

use super::*;

fn headers(encoding: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_ENCODING, HeaderValue::from_str(encoding).unwrap());
    headers
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn several_encodings_are_undone_in_reverse() {
    let twice = zstd::encode_all(gzip(b"words").as_slice(), 1).unwrap();
    assert_eq!(unpack(&headers("gzip, zstd"), twice.into(), 100).unwrap(), "words");
    assert_eq!(unpack(&headers("identity"), Bytes::from_static(b"words"), 100).unwrap(), "words");
    assert!(unpack(&headers("gzip, gzip, gzip"), Bytes::new(), 100).is_err());
}

#[test]
fn deflate_comes_with_and_without_its_header() {
    let mut raw = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    raw.write_all(b"words").unwrap();
    assert_eq!(unpack(&headers("deflate"), raw.finish().unwrap().into(), 100).unwrap(), "words");
}

#[test]
fn what_is_broken_or_too_large_is_refused() {
    let cut = gzip(&[b'x'; 1000]);
    assert!(unpack(&headers("gzip"), Bytes::copy_from_slice(&cut[..cut.len() / 2]), 2000).is_err());
    assert!(unpack(&headers("zstd"), Bytes::from_static(b"no"), 2000).is_err());
    let refused = unpack(&headers("gzip"), gzip(&[b'x'; 1001]).into(), 1000).unwrap_err();
    assert_eq!(refused.status, hyper::StatusCode::PAYLOAD_TOO_LARGE);
}
