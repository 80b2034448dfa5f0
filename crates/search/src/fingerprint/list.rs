//! The fingerprints of one block that may still grow: their count, then each in three bytes, sorted, so that one is
//! found by bisection.

/// The list of a block, read where it lies.
pub struct FingerprintList<'a> {
    fingerprints: &'a [[u8; 3]],
}

fn number([low, middle, high]: [u8; 3]) -> u32 {
    u32::from_le_bytes([low, middle, high, 0])
}

impl<'a> FingerprintList<'a> {
    /// The list of a block as it is kept.
    pub fn encode(fingerprints: &[u32]) -> Vec<u8> {
        let count = fingerprints.len() as u32;
        let mut out = Vec::with_capacity(3 * (fingerprints.len() + 1));
        for number in std::iter::once(&count).chain(fingerprints) {
            let [low, middle, high, _] = number.to_le_bytes();
            out.extend([low, middle, high]);
        }
        out
    }

    /// `None` if these bytes are no list.
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let (numbers, odd) = bytes.as_chunks::<3>();
        let (count, fingerprints) = numbers.split_first()?;
        (odd.is_empty() && number(*count) as usize == fingerprints.len()).then_some(Self { fingerprints })
    }

    /// Whether a fingerprint is in it.
    pub fn holds(&self, fingerprint: u32) -> bool {
        self.fingerprints.binary_search_by_key(&fingerprint, |bytes| number(*bytes)).is_ok()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.fingerprints.iter().map(|bytes| number(*bytes))
    }
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
