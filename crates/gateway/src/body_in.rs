//! Bodies of requests: read to their end within a limit, and unpacked where a client packed them.

use std::io::Read;

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::HeaderMap;
use hyper::body::Incoming;
use hyper::header::CONTENT_ENCODING;

use crate::refused::Refused;

/// Reads a body as it was sent.
pub(crate) async fn read(body: Incoming, limit_bytes: usize) -> Result<Bytes, Refused> {
    match Limited::new(body, limit_bytes).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Refused::too_large(limit_bytes)),
        Err(_) => Err(Refused::bad_request("the body broke off")),
    }
}

/// Unpacks a body as its headers say. Several encodings are undone in the reverse of their order.
pub(crate) fn unpack(headers: &HeaderMap, packed: Bytes, limit_bytes: usize) -> Result<Vec<u8>, Refused> {
    let mut encodings = Vec::new();
    for value in headers.get_all(CONTENT_ENCODING) {
        let value = value.to_str().map_err(|_| Refused::unsupported("content-encoding cannot be read"))?;
        encodings.extend(value.split(',').map(|one| one.trim().to_ascii_lowercase()));
    }
    encodings.retain(|encoding| !encoding.is_empty() && encoding != "identity");
    if encodings.len() > 2 {
        return Err(Refused::unsupported("the body is packed more than twice"));
    }
    let mut body = Vec::from(packed);
    for encoding in encodings.iter().rev() {
        body = unpack_one(encoding, &body, limit_bytes)?;
    }
    Ok(body)
}

fn unpack_one(encoding: &str, packed: &[u8], limit_bytes: usize) -> Result<Vec<u8>, Refused> {
    match encoding {
        "gzip" | "x-gzip" => read_all(flate2::read::MultiGzDecoder::new(packed), limit_bytes),
        // What is called deflate comes with the header of zlib, or without any.
        "deflate" => read_all(flate2::read::ZlibDecoder::new(packed), limit_bytes).or_else(|refused| {
            if refused.status == hyper::StatusCode::PAYLOAD_TOO_LARGE {
                return Err(refused);
            }
            read_all(flate2::read::DeflateDecoder::new(packed), limit_bytes)
        }),
        "zstd" => match zstd::stream::read::Decoder::new(packed) {
            Ok(decoder) => read_all(decoder, limit_bytes),
            Err(_) => Err(Refused::bad_request("the body cannot be unpacked")),
        },
        other => {
            let shown: String = other.chars().take(40).collect();
            Err(Refused::unsupported(format!(
                "content-encoding `{shown}` is not understood; gzip, deflate and zstd are"
            )))
        }
    }
}

/// Reads to the end, but not beyond the limit: a few bytes may unpack to very many.
fn read_all(reader: impl Read, limit_bytes: usize) -> Result<Vec<u8>, Refused> {
    let mut body = Vec::new();
    let most = u64::try_from(limit_bytes).unwrap_or(u64::MAX).saturating_add(1);
    reader
        .take(most)
        .read_to_end(&mut body)
        .map_err(|_| Refused::bad_request("the body cannot be unpacked"))?;
    if body.len() > limit_bytes {
        return Err(Refused::too_large(limit_bytes));
    }
    Ok(body)
}

#[cfg(test)]
#[path = "body_in_tests.rs"]
mod tests;
