//! Limits the memory for answers in progress: for one answer, and for all of them together.
//!
//! An answer is buffered in order to record and parse it. One that is larger than any model writes is still passed on, but no longer
//! buffered.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::call::Chunk;
use crate::provider_error::{ProviderError, ProviderErrorKind};
use throughline_wire::Delta;

/// Bytes of an event in a stream besides its text. They are not buffered; a long answer has a hundred thousand events.
const EVENT_BYTES: usize = 512;

/// The memory limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldLimits {
    /// For one answer. The longest answers of models, 128,000 tokens, are about half a megabyte of text; images have a few megabytes each.
    pub answer_bytes: usize,
    /// For all answers of a client together. Processing an answer briefly takes up to three times its bytes.
    pub all_bytes: usize,
}

impl HoldLimits {
    /// The error code if an answer exceeds a limit: it was passed on completely, but not buffered.
    pub const EXCEEDED: &str = "answer_not_held";
}

impl Default for HoldLimits {
    fn default() -> Self {
        Self { answer_bytes: 32 * 1024 * 1024, all_bytes: 128 * 1024 * 1024 }
    }
}

/// The budget shared by all answers of a client.
#[derive(Clone, Debug, Default)]
pub(crate) struct HoldBudget {
    limits: HoldLimits,
    held: Arc<AtomicUsize>,
}

impl HoldBudget {
    pub(crate) fn new(limits: HoldLimits) -> Self {
        Self { limits, held: Arc::default() }
    }
}

/// The memory reserved for one answer, released when dropped.
#[derive(Debug)]
pub(crate) struct HeldBytes {
    budget: HoldBudget,
    bytes: usize,
}

impl HeldBytes {
    pub(crate) fn new(budget: HoldBudget) -> Self {
        Self { budget, bytes: 0 }
    }

    /// Reserves memory for more bytes. Returns `false` if the limit of this answer or of all answers is exceeded; then
    /// everything is released.
    #[must_use]
    pub(crate) fn add(&mut self, bytes: usize) -> bool {
        let limits = self.budget.limits;
        let all = self.budget.held.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        self.bytes = self.bytes.saturating_add(bytes);
        let fits = self.bytes <= limits.answer_bytes && all <= limits.all_bytes;
        if !fits {
            self.release();
        }
        fits
    }

    fn release(&mut self) {
        self.budget.held.fetch_sub(std::mem::take(&mut self.bytes), Ordering::Relaxed);
    }

    /// The error of an answer that arrived whole but was too large to record.
    pub(crate) fn trouble(&self) -> ProviderError {
        let HoldLimits { answer_bytes, all_bytes } = self.budget.limits;
        ProviderError {
            code: Some(HoldLimits::EXCEEDED.to_owned()),
            words: format!(
                "the answer is larger than may be held ({answer_bytes} bytes, or {all_bytes} bytes for all answers at a time): \
                 it was passed on and is not recorded"
            ),
            should_retry: Some(false),
            ..ProviderError::of(ProviderErrorKind::Unknown)
        }
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.release();
    }
}

/// Returns how many bytes of a piece are buffered: its new text, and everything beyond the frame of an event.
pub(crate) fn bytes_held_of(chunk: &Chunk) -> usize {
    let words = chunk.deltas.iter().map(|delta| match delta {
        Delta::Text(text) | Delta::Reasoning(text) | Delta::Refusal(text) => text.len(),
        Delta::ToolCallArguments { fragment, .. } => fragment.len(),
        Delta::Started { .. } | Delta::ToolCallStart { .. } | Delta::ToolCallEnd { .. } => EVENT_BYTES,
    });
    let events = memchr::memmem::find_iter(&chunk.raw, b"data:").count().max(1);
    words.sum::<usize>() + chunk.raw.len().saturating_sub(events * EVENT_BYTES)
}
