//! Reuses the memory of request bodies. Allocating a large body for each call costs more than filling it, and a conversation
//! that waits for an answer needs none, so the memory of a sent body is used for the next one, in any conversation.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

/// About as many bodies as are written at the same time.
const MOST_SPARE: usize = 4;
/// Larger bodies are rare, so their memory is not kept.
const MOST_BYTES: usize = 16 * 1024 * 1024;

static SPARE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// Returns an empty buffer, with the memory of an earlier body if one is available.
pub(crate) fn spare_body() -> Vec<u8> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
}

/// Converts a written body to [`Bytes`] whose memory is reused after the last reference is dropped.
pub(crate) fn written_body(body: Vec<u8>) -> Bytes {
    Bytes::from_owner(SpareBody(body))
}

struct SpareBody(Vec<u8>);

impl AsRef<[u8]> for SpareBody {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for SpareBody {
    fn drop(&mut self) {
        let mut body = std::mem::take(&mut self.0);
        if body.capacity() > MOST_BYTES {
            return;
        }
        body.clear();
        let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < MOST_SPARE {
            spare.push(body);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_leaves_its_memory_when_the_last_one_lets_it_go() {
        let body = written_body(b"what was sent".to_vec());
        let kept = body.clone();
        drop(body);
        assert_eq!(kept, "what was sent");
        drop(kept);
        let next = spare_body();
        assert!(next.is_empty());
    }
}
