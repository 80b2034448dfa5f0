//! The list of the clues of one block, while it may still grow: sorted, each in three bytes after how many there are, so
//! that one is found by halving.

/// The list of a block as it is kept.
pub(crate) fn encode_list(clues: &[u32]) -> Vec<u8> {
    let count = clues.len() as u32;
    let mut out = Vec::with_capacity(3 * (clues.len() + 1));
    for number in std::iter::once(&count).chain(clues) {
        let [low, middle, high, _] = number.to_le_bytes();
        out.extend([low, middle, high]);
    }
    out
}

/// The list of a block, read where it lies.
pub(crate) struct FingerprintList<'a> {
    clues: &'a [[u8; 3]],
}

fn number([low, middle, high]: [u8; 3]) -> u32 {
    u32::from_le_bytes([low, middle, high, 0])
}

impl<'a> FingerprintList<'a> {
    /// `None` if these bytes are no list.
    pub(crate) fn new(bytes: &'a [u8]) -> Option<Self> {
        let (numbers, odd) = bytes.as_chunks::<3>();
        let (count, clues) = numbers.split_first()?;
        (odd.is_empty() && number(*count) as usize == clues.len()).then_some(Self { clues })
    }

    /// Whether a clue is in it.
    pub(crate) fn holds(&self, clue: u32) -> bool {
        self.clues.binary_search_by_key(&clue, |bytes| number(*bytes)).is_ok()
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        self.clues.iter().map(|bytes| number(*bytes))
    }
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
