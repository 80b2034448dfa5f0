//! Rice coding, for numbers that are usually small. A number is divided by a power of two; the quotient is written as
//! that many zeros and a one, the remainder as bits. The last byte is padded with zeros, which encode no number.

/// The power of two with which numbers of this mean take fewest bits.
pub(super) fn parameter(sum: usize, count: usize) -> u32 {
    // The mean times ln 2 is where half of the numbers are below it.
    (sum * 7 / 10 / count.max(1)).max(1).ilog2()
}

/// Writes numbers.
#[derive(Default)]
pub(super) struct RiceWriter {
    bytes: Vec<u8>,
    pending: u64,
    pending_bits: u32,
}

impl RiceWriter {
    /// After a literal byte.
    pub(super) fn new(first: u8) -> Self {
        Self { bytes: vec![first], ..Self::default() }
    }

    /// Writes a number.
    pub(super) fn write(&mut self, number: u32, parameter: u32) {
        let mut zeros = number >> parameter;
        while zeros > 24 {
            self.bits(0, 24);
            zeros -= 24;
        }
        self.bits(1 << zeros, zeros + 1);
        self.bits(u64::from(number & ((1 << parameter) - 1)), parameter);
    }

    fn bits(&mut self, bits: u64, count: u32) {
        self.pending |= bits << self.pending_bits;
        self.pending_bits += count;
        if self.pending_bits >= u32::BITS {
            self.bytes.extend_from_slice(&(self.pending as u32).to_le_bytes());
            self.pending >>= u32::BITS;
            self.pending_bits -= u32::BITS;
        }
    }

    /// Everything that was written.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let bytes = self.pending_bits.div_ceil(8) as usize;
        self.bytes.extend(self.pending.to_le_bytes().into_iter().take(bytes));
        self.bytes
    }
}

/// Reads numbers.
pub(super) struct RiceReader<'a> {
    bytes: &'a [u8],
    at_bit: usize,
}

impl<'a> RiceReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at_bit: 0 }
    }

    /// The next number; `None` after the last.
    pub(super) fn read(&mut self, parameter: u32) -> Option<usize> {
        let mut zeros = 0;
        loop {
            let window = self.window()?;
            if window != 0 {
                let here = window.trailing_zeros() as usize;
                zeros += here;
                self.at_bit += here + 1;
                break;
            }
            zeros += WINDOW_BITS;
            self.at_bit += WINDOW_BITS;
        }
        let rest = match parameter {
            0 => 0,
            _ => self.window()? as usize & ((1 << parameter) - 1),
        };
        self.at_bit += parameter as usize;
        Some(zeros << parameter | rest)
    }

    /// The next bits, with zeros after the last; `None` where there are none.
    fn window(&self) -> Option<u64> {
        let rest = self.bytes.get(self.at_bit / 8..).filter(|rest| !rest.is_empty())?;
        let whole = match rest.first_chunk::<8>() {
            Some(whole) => *whole,
            None => {
                let mut whole = [0; 8];
                whole.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
                whole
            }
        };
        Some((u64::from_le_bytes(whole) >> (self.at_bit % 8)) & ((1 << WINDOW_BITS) - 1))
    }
}

/// Bits that are there whatever bit of a byte they begin with.
const WINDOW_BITS: usize = 56;

#[cfg(test)]
#[path = "rice_tests.rs"]
mod tests;
