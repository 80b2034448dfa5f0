//! Reads request bodies within limits of size and time, and decompresses them.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::HeaderMap;
use hyper::body::Body;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};

use crate::config::GatewayLimits;
use crate::error::GatewayError;

/// Reads request bodies and counts the bytes of those in memory.
#[derive(Debug, Default)]
pub(crate) struct BodyReader {
    held_bytes: Arc<AtomicUsize>,
}

/// The share of one request body in the counted bytes; returned when it is dropped.
#[derive(Debug)]
pub(crate) struct BodyBytes {
    all: Arc<AtomicUsize>,
    bytes: usize,
}

impl Drop for BodyBytes {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl BodyReader {
    /// Reads a body within the limits, without decompressing it.
    pub(crate) async fn read<B>(
        &self,
        body: B,
        limit_bytes: usize,
        limits: &GatewayLimits,
    ) -> Result<(Bytes, BodyBytes), GatewayError>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        // A body whose declared length is too large is refused before it is read.
        if body.size_hint().lower() > u64::try_from(limit_bytes).unwrap_or(u64::MAX) {
            return Err(GatewayError::too_large(limit_bytes));
        }
        let reading = self.frames(body, limit_bytes, limits);
        tokio::time::timeout(limits.body_time, reading)
            .await
            .unwrap_or_else(|_| Err(GatewayError::too_slow()))
    }

    async fn frames<B>(
        &self,
        mut body: B,
        limit_bytes: usize,
        limits: &GatewayLimits,
    ) -> Result<(Bytes, BodyBytes), GatewayError>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let mut held = BodyBytes { all: Arc::clone(&self.held_bytes), bytes: 0 };
        let mut first = Bytes::new();
        let mut whole = Vec::new();
        loop {
            let frame = tokio::time::timeout(limits.body_silence, body.frame()).await;
            let Some(frame) = frame.map_err(|_| GatewayError::too_slow())? else { break };
            let frame = frame.map_err(|_| GatewayError::bad_request("the body ended early"))?;
            let Ok(data) = frame.into_data() else { continue };
            held.bytes += data.len();
            let all = held.all.fetch_add(data.len(), Ordering::Relaxed) + data.len();
            if held.bytes > limit_bytes {
                return Err(GatewayError::too_large(limit_bytes));
            }
            if all > limits.all_bodies_bytes {
                return Err(GatewayError::too_busy());
            }
            // Most bodies arrive as one frame, which is not copied.
            if first.is_empty() && whole.is_empty() {
                first = data;
                continue;
            }
            if whole.is_empty() {
                let rest = usize::try_from(body.size_hint().lower()).unwrap_or(0).min(limit_bytes);
                whole.reserve(first.len() + data.len() + rest);
                whole.extend_from_slice(&std::mem::take(&mut first));
            }
            whole.extend_from_slice(&data);
        }
        let bytes = if whole.is_empty() { first } else { Bytes::from(whole) };
        Ok((bytes, held))
    }
}

/// Refuses a request whose content type is not JSON. A missing content type is accepted.
pub(crate) fn check_type(headers: &HeaderMap) -> Result<(), GatewayError> {
    let is_json = |value: &HeaderValue| {
        let value = value.to_str().unwrap_or_default().to_ascii_lowercase();
        let kind = value.split(';').next().unwrap_or_default().trim();
        kind == "application/json" || kind.ends_with("+json")
    };
    if headers.get_all(CONTENT_TYPE).iter().all(is_json) {
        return Ok(());
    }
    Err(GatewayError::unsupported("the content type must be application/json"))
}

/// Decompresses a body as its headers say. Several encodings are undone in reverse order.
pub(crate) fn unpack(headers: &HeaderMap, packed: Bytes, limit_bytes: usize) -> Result<Bytes, GatewayError> {
    let mut encodings = Vec::new();
    for value in headers.get_all(CONTENT_ENCODING) {
        let value =
            value.to_str().map_err(|_| GatewayError::unsupported("content-encoding cannot be read"))?;
        encodings.extend(value.split(',').map(|one| one.trim().to_ascii_lowercase()));
    }
    encodings.retain(|encoding| !encoding.is_empty() && encoding != "identity");
    if encodings.len() > 2 {
        return Err(GatewayError::unsupported("the body has more than two content encodings"));
    }
    let mut body = packed;
    for encoding in encodings.iter().rev() {
        body = Bytes::from(unpack_one(encoding, &body, limit_bytes)?);
    }
    Ok(body)
}

fn unpack_one(encoding: &str, packed: &[u8], limit_bytes: usize) -> Result<Vec<u8>, GatewayError> {
    match encoding {
        "gzip" | "x-gzip" => read_all(flate2::read::MultiGzDecoder::new(packed), limit_bytes),
        // `deflate` is sent both with and without the zlib header.
        "deflate" => read_all(flate2::read::ZlibDecoder::new(packed), limit_bytes).or_else(|refused| {
            if refused.status == hyper::StatusCode::PAYLOAD_TOO_LARGE {
                return Err(refused);
            }
            read_all(flate2::read::DeflateDecoder::new(packed), limit_bytes)
        }),
        "zstd" => match zstd::stream::read::Decoder::new(packed) {
            Ok(decoder) => read_all(decoder, limit_bytes),
            Err(_) => Err(GatewayError::bad_request("the body cannot be decompressed")),
        },
        other => {
            let shown: String = other.chars().take(40).collect();
            Err(GatewayError::unsupported(format!(
                "content-encoding `{shown}` is not supported; gzip, deflate and zstd are"
            )))
        }
    }
}

/// Reads to the end, but at most to the limit: a few bytes may decompress to very many.
fn read_all(reader: impl Read, limit_bytes: usize) -> Result<Vec<u8>, GatewayError> {
    let mut body = Vec::new();
    let most = u64::try_from(limit_bytes).unwrap_or(u64::MAX).saturating_add(1);
    reader
        .take(most)
        .read_to_end(&mut body)
        .map_err(|_| GatewayError::bad_request("the body cannot be decompressed"))?;
    if body.len() > limit_bytes {
        return Err(GatewayError::too_large(limit_bytes));
    }
    Ok(body)
}

#[cfg(test)]
#[path = "request_body_tests.rs"]
mod tests;
