//! The little of the tar format that a backup needs: plain files, written one after the other and read back. Any `tar`
//! unpacks what is written here.
//!
//! Not for: folders, links, owners, or archives of others.

use std::io::{self, Read, Write};

const BLOCK: usize = 512;
/// Sizes are written in octal digits up to here, in binary above.
const LARGEST_OCTAL_SIZE: u64 = 0o777_7777_7777;

/// Writes an archive. Files are the owner's alone.
pub(super) struct TarWriter<W: Write> {
    out: W,
    mtime_secs: u64,
}

/// A file that is read back.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TarEntry {
    pub(super) name: String,
    pub(super) size: u64,
}

impl<W: Write> TarWriter<W> {
    pub(super) fn new(out: W, mtime_secs: u64) -> Self {
        Self { out, mtime_secs }
    }

    /// Adds a file of exactly `size` bytes; more are left out, fewer are an error. Returns the hash of what was
    /// written. `on_bytes` hears how many bytes went out since it was last called.
    pub(super) fn file(
        &mut self,
        name: &str,
        size: u64,
        content: &mut dyn Read,
        on_bytes: &mut dyn FnMut(u64),
    ) -> io::Result<blake3::Hash> {
        self.out.write_all(&header(name, size, self.mtime_secs)?)?;
        let mut hasher = blake3::Hasher::new();
        let mut left = size;
        let mut buffer = vec![0; 1 << 16];
        while left > 0 {
            let wanted = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            content.read_exact(&mut buffer[..wanted])?;
            hasher.update(&buffer[..wanted]);
            self.out.write_all(&buffer[..wanted])?;
            left -= wanted as u64;
            on_bytes(wanted as u64);
        }
        self.out.write_all(&[0; BLOCK][..padding(size)])?;
        Ok(hasher.finalize())
    }

    /// Closes the archive.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.out.write_all(&[0; 2 * BLOCK])?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Reads an archive from its beginning to its end and hands every file to `each`, which need not read it all.
pub(super) fn read_tar(
    mut input: impl Read,
    mut each: impl FnMut(&TarEntry, &mut dyn Read) -> io::Result<()>,
) -> io::Result<()> {
    let mut block = [0; BLOCK];
    loop {
        input.read_exact(&mut block)?;
        if block == [0; BLOCK] {
            // An archive ends with two of them; with one it was cut off.
            input.read_exact(&mut block)?;
            return if block == [0; BLOCK] {
                Ok(())
            } else {
                Err(broken("the end of the archive is damaged"))
            };
        }
        let entry = parse(&block)?;
        let mut content = (&mut input).take(entry.size);
        each(&entry, &mut content)?;
        io::copy(&mut content, &mut io::sink())?;
        if content.limit() > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        input.read_exact(&mut block[..padding(entry.size)])?;
    }
}

fn broken(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Bytes between the end of a file and the next block.
fn padding(size: u64) -> usize {
    let over = (size % BLOCK as u64) as usize;
    if over == 0 { 0 } else { BLOCK - over }
}

fn header(name: &str, size: u64, mtime_secs: u64) -> io::Result<[u8; BLOCK]> {
    let mut block = [0; BLOCK];
    let too_long = || io::Error::new(io::ErrorKind::InvalidInput, "the name does not fit the archive");
    block[..100].get_mut(..name.len()).ok_or_else(too_long)?.copy_from_slice(name.as_bytes());
    put_octal(&mut block[100..108], 0o600);
    put_octal(&mut block[108..116], 0);
    put_octal(&mut block[116..124], 0);
    if size <= LARGEST_OCTAL_SIZE {
        put_octal(&mut block[124..136], size);
    } else {
        block[124] = 0x80;
        block[128..136].copy_from_slice(&size.to_be_bytes());
    }
    put_octal(&mut block[136..148], mtime_secs.min(LARGEST_OCTAL_SIZE));
    block[156] = b'0';
    block[257..265].copy_from_slice(b"ustar\x0000");
    let sum = checksum(&block);
    put_octal(&mut block[148..155], sum);
    block[155] = b' ';
    Ok(block)
}

fn parse(block: &[u8; BLOCK]) -> io::Result<TarEntry> {
    if octal(&block[148..156]) != Some(checksum(block)) {
        return Err(broken("a header of the archive is damaged"));
    }
    let size = if block[124] == 0x80 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&block[128..136]);
        u64::from_be_bytes(bytes)
    } else {
        octal(&block[124..136]).ok_or_else(|| broken("a size in the archive is damaged"))?
    };
    let name = block[..100].split(|byte| *byte == 0).next().unwrap_or_default();
    let name = String::from_utf8(name.to_vec()).map_err(|_| broken("a name in the archive is damaged"))?;
    Ok(TarEntry { name, size })
}

/// Octal digits that fill a field up to a closing zero byte.
fn put_octal(field: &mut [u8], mut value: u64) {
    let Some((_, digits)) = field.split_last_mut() else { return };
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (value & 7) as u8;
        value >>= 3;
    }
}

fn octal(field: &[u8]) -> Option<u64> {
    let digits = field.split(|byte| matches!(byte, 0 | b' ')).next()?;
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
}

/// The sum of a header's bytes with blanks in the place of the sum itself.
fn checksum(block: &[u8; BLOCK]) -> u64 {
    let sum = |bytes: &[u8]| bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
    sum(&block[..148]) + 8 * u64::from(b' ') + sum(&block[156..])
}

#[cfg(test)]
#[path = "tar_tests.rs"]
mod tests;
