//! Decodes the inside of a JSON string into the scanner's window.

use wide::u8x16;

use crate::lanes::HISTORY;
use crate::scan::Scanner;

/// Bytes processed in one step.
const STEP: usize = 16;

/// The character that an escape of two characters encodes; zero if there is no such escape.
const SIMPLE_ESCAPES: [u8; 256] = {
    let mut table = [0; 256];
    table[b'n' as usize] = b'\n';
    table[b't' as usize] = b'\t';
    table[b'r' as usize] = b'\r';
    table[b'b' as usize] = 0x08;
    table[b'f' as usize] = 0x0C;
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table[b'/' as usize] = b'/';
    table
};

impl Scanner {
    /// Reads the inside of a JSON string (without its quotes), unescaped.
    pub(crate) fn push_json(&mut self, mut raw: &[u8]) {
        while !raw.is_empty() {
            let (read, written) = copy_until_backslash(raw, &mut self.window[HISTORY + self.filled..]);
            self.advance(written);
            raw = raw.get(read..).unwrap_or_default();
            if raw.first() == Some(&b'\\') {
                raw = self.push_escape(raw);
            }
        }
    }

    /// Reads the escape at the start of `raw` and returns the rest.
    fn push_escape<'a>(&mut self, raw: &'a [u8]) -> &'a [u8] {
        let Some(kind) = raw.get(1) else {
            self.push(b"\\");
            return &[];
        };
        match SIMPLE_ESCAPES[usize::from(*kind)] {
            0 if *kind == b'u' => self.push_unicode(raw),
            0 => {
                self.push(b"\\");
                raw.get(1..).unwrap_or_default()
            }
            character => {
                self.push_byte(character);
                raw.get(2..).unwrap_or_default()
            }
        }
    }

    fn push_unicode<'a>(&mut self, raw: &'a [u8]) -> &'a [u8] {
        let (code, used) = match (code_unit(raw, 0), code_unit(raw, 6)) {
            (Some(high @ 0xD800..0xDC00), Some(low @ 0xDC00..0xE000)) => {
                (0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00), 12)
            }
            (Some(unit), _) => (unit, 6),
            (None, _) => (u32::from(char::REPLACEMENT_CHARACTER), 2),
        };
        let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        self.push(character.encode_utf8(&mut [0; 4]).as_bytes());
        raw.get(used..).unwrap_or_default()
    }
}

/// Copies plain bytes, and decoded escapes of two characters, until `room` is full, `raw` ends or a longer escape follows. Returns the
/// numbers of bytes read and written.
///
/// Escapes occur every few words in source code, so plain bytes are copied sixteen at a time; of those with a backslash, the bytes before
/// it are used.
fn copy_until_backslash(raw: &[u8], room: &mut [u8]) -> (usize, usize) {
    let (mut read, mut written) = (0, 0);
    loop {
        while let (Some(word), Some(space)) = (
            raw.get(read..).and_then(|rest| rest.first_chunk::<STEP>()),
            room.get_mut(written..).and_then(|rest| rest.first_chunk_mut::<STEP>()),
        ) {
            *space = *word;
            let backslashes = u8x16::new(*word).simd_eq(u8x16::splat(b'\\')).to_bitmask();
            let plain = backslashes.trailing_zeros() as usize;
            if backslashes == 0 {
                // Separate from the general case so that the next word can be read before this one is processed.
                read += STEP;
                written += STEP;
                continue;
            }
            read += plain;
            written += plain;
            let character = SIMPLE_ESCAPES[usize::from(raw.get(read + 1).copied().unwrap_or_default())];
            if character == 0 {
                return (read, written);
            }
            room[written] = character;
            read += 2;
            written += 1;
        }
        match (raw.get(read), room.get_mut(written)) {
            (Some(b'\\'), _) | (None, _) | (_, None) => return (read, written),
            (Some(byte), Some(space)) => *space = *byte,
        }
        read += 1;
        written += 1;
    }
}

/// The code unit of the `\uXXXX` that starts at `from`.
fn code_unit(raw: &[u8], from: usize) -> Option<u32> {
    let escape = raw.get(from..from + 6)?;
    let digits = escape.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |value, digit| Some(value << 4 | char::from(*digit).to_digit(16)?))
}
