//! Stores the beginning and end of an output that may be too large for memory, and its total size.

use std::collections::VecDeque;

/// The beginning and the end of an output, and its size.
#[derive(Debug)]
pub(super) struct OutputEnds {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_bytes: usize,
    tail_bytes: usize,
    left_out: u64,
}

impl OutputEnds {
    pub(super) fn new(bytes: usize) -> Self {
        let head_bytes = bytes / 3;
        Self {
            head: Vec::new(),
            tail: VecDeque::new(),
            head_bytes,
            tail_bytes: bytes - head_bytes,
            left_out: 0,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let room = self.head_bytes.saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(self.tail_bytes);
        self.tail.drain(..over);
        self.left_out += over as u64;
    }

    /// The stored part. If it is not the whole output, the size is stated in the middle, where text is missing, and at the end, which the
    /// model always sees.
    pub(super) fn text(&self) -> String {
        let mut bytes = self.head.clone();
        if self.left_out > 0 {
            bytes.extend_from_slice(format!("\n[{} bytes left out]\n", self.left_out).as_bytes());
        }
        bytes.extend(self.tail.iter().copied());
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        if self.left_out > 0 {
            let (first, last) = (self.head.len() as u64, self.tail.len() as u64);
            text.push_str(&format!(
                "[the output had {} bytes, too many to be kept: these are its first {first} and its last {last}]\n",
                first + last + self.left_out
            ));
        }
        text
    }
}
