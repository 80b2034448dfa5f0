//! The beginning of a database file: the header, and the list of tables with their root pages.
//!
//! The pages of a record's schema are written when it is created and never change. Those of a new record are equal, so they can replace
//! pages that were overwritten. (If the old record was rebuilt by other tools, nothing useful is found through them, and the attempt does
//! no harm.)

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

/// Size of the header before the tables on the first page.
const HEADER_BYTES: usize = 100;
/// The type of a page that refers to other pages.
const INTERIOR: u8 = 0x05;
/// The type of a page with rows.
const LEAF: u8 = 0x0d;

/// The part of a database that is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileHeader {
    /// The file header.
    Header,
    /// The header and the pages with the list of tables and their root pages.
    Schema,
}

/// Replaces the beginning of a database with that of a new one.
pub(super) fn replace_beginning(copy: &Path, new: &Path, part: FileHeader) -> io::Result<()> {
    let fresh = fs::read(new)?;
    let broken = || io::Error::from(io::ErrorKind::InvalidData);
    let pages = Pages::new(&fresh).ok_or_else(broken)?;
    let mut file = fs::OpenOptions::new().write(true).open(copy)?;
    if part == FileHeader::Schema {
        for number in pages.of_schema() {
            file.seek(SeekFrom::Start((number as u64 - 1) * pages.bytes as u64))?;
            file.write_all(pages.page(number).ok_or_else(broken)?)?;
        }
    }
    // A schema that refers to pages beyond the end is refused as a whole; empty pages affect only their own tables.
    let length = file.metadata()?.len().max(fresh.len() as u64);
    file.set_len(length)?;
    let count = u32::try_from(length / pages.bytes as u64).unwrap_or(u32::MAX);
    let mut header = fresh.get(..HEADER_BYTES).ok_or_else(broken)?.to_vec();
    header[28..32].copy_from_slice(&count.to_be_bytes());
    // No list of free pages, because nothing will be written.
    header[32..40].fill(0);
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&header)
}

/// The pages of an intact database.
struct Pages<'a> {
    file: &'a [u8],
    bytes: usize,
}

impl<'a> Pages<'a> {
    fn new(file: &'a [u8]) -> Option<Self> {
        let bytes = match number(file, 16, 2)? {
            1 => 65_536,
            bytes => bytes,
        };
        (bytes >= 512).then_some(Self { file, bytes })
    }

    /// A page by its number, counted from one.
    fn page(&self, number: usize) -> Option<&'a [u8]> {
        let start = number.checked_sub(1)?.checked_mul(self.bytes)?;
        self.file.get(start..start + self.bytes)
    }

    /// Returns the pages of the schema table, which starts on the first page.
    fn of_schema(&self) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut to_visit = vec![1];
        while let Some(number) = to_visit.pop() {
            if self.page(number).is_some() && found.insert(number) {
                to_visit.extend(self.referred(number).unwrap_or_default());
            }
        }
        found
    }

    /// Returns the pages that a table page refers to: child pages, and overflow pages of long rows.
    fn referred(&self, page_number: usize) -> Option<Vec<usize>> {
        let page = self.page(page_number)?;
        let start = if page_number == 1 { HEADER_BYTES } else { 0 };
        let cells = number(page, start + 3, 2)?;
        let mut referred = Vec::new();
        match *page.get(start)? {
            INTERIOR => {
                referred.push(number(page, start + 8, 4)?);
                for cell in 0..cells {
                    let at = number(page, start + 12 + 2 * cell, 2)?;
                    referred.push(number(page, at, 4)?);
                }
            }
            LEAF => {
                for cell in 0..cells {
                    let at = number(page, start + 8 + 2 * cell, 2)?;
                    referred.extend(self.long_row(page, at)?);
                }
            }
            // An overflow page starts with the number of the next.
            _ => {}
        }
        Some(referred)
    }

    /// Returns the overflow pages of a row.
    fn long_row(&self, page: &[u8], at: usize) -> Option<Vec<usize>> {
        let (payload, after) = varint(page, at)?;
        let (_, after) = varint(page, after)?;
        let (payload, usable) = (usize::try_from(payload).ok()?, self.bytes);
        let mut pages = Vec::new();
        if payload <= usable - 35 {
            return Some(pages);
        }
        let least = (usable - 12) * 32 / 255 - 23;
        let most = least + (payload - least) % (usable - 4);
        let here = if most <= usable - 35 { most } else { least };
        let mut next = number(page, after + here, 4)?;
        while next != 0 && !pages.contains(&next) {
            pages.push(next);
            next = number(self.page(next)?, 0, 4)?;
        }
        Some(pages)
    }
}

/// Reads a big-endian number of a few bytes.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<usize> {
    bytes.get(at..at + length).map(|bytes| bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
}

/// Reads a variable-length number with seven bits per byte; returns it with its end.
fn varint(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut value = 0;
    for (length, byte) in bytes.get(at..)?.iter().take(8).enumerate() {
        value = value << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, at + length + 1));
        }
    }
    let last = bytes.get(at + 8)?;
    Some((value << 8 | u64::from(*last), at + 9))
}
