//! The tokens of an image: by its area in the Anthropic format, by tiles in the OpenAI formats, or a fixed number if its size is unknown.
//!
//! The size is read from the first bytes of the file, which is base64 inside the JSON of a transcript.

use std::ops::AddAssign;

/// Tokens of an image of unknown size.
pub(crate) const UNKNOWN_IMAGE_TOKENS: u32 = 1_500;

/// How a wire format counts images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageRule {
    /// One token for 750 pixels, after scaling down to the largest size the model sees.
    Area,
    /// A base amount and one for each tile of 512 by 512 pixels, after scaling down.
    Tiles,
}

/// The tokens of images under each rule, so that the sum is valid for any wire format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImageTokens {
    /// Number of images.
    pub count: u32,
    by_area: u32,
    by_tiles: u32,
}

impl ImageTokens {
    /// Returns the tokens of one image; `size` is its width and height in pixels.
    #[must_use]
    pub fn one(size: Option<(u32, u32)>) -> Self {
        let known = size.filter(|(width, height)| *width > 0 && *height > 0);
        let (by_area, by_tiles) = known.map_or((UNKNOWN_IMAGE_TOKENS, UNKNOWN_IMAGE_TOKENS), |size| {
            (area_tokens(size), tile_tokens(size))
        });
        Self { count: 1, by_area, by_tiles }
    }

    /// Tokens under a rule.
    #[must_use]
    pub fn tokens(&self, rule: ImageRule) -> u32 {
        match rule {
            ImageRule::Area => self.by_area,
            ImageRule::Tiles => self.by_tiles,
        }
    }
}

impl AddAssign for ImageTokens {
    fn add_assign(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.by_area = self.by_area.saturating_add(other.by_area);
        self.by_tiles = self.by_tiles.saturating_add(other.by_tiles);
    }
}

/// Anthropic scales a picture down to 1,568 pixels on its longer side and about 1.15 million pixels in all.
fn area_tokens((width, height): (u32, u32)) -> u32 {
    const LONGEST_SIDE: f64 = 1_568.0;
    const MOST_PIXELS: f64 = 1_150_000.0;
    const PIXELS_A_TOKEN: f64 = 750.0;
    let (width, height) = (f64::from(width), f64::from(height));
    let by_side = (LONGEST_SIDE / width.max(height)).min(1.0);
    let by_area = (MOST_PIXELS / (width * height)).sqrt().min(1.0);
    let scale = by_side.min(by_area);
    ((width * scale * height * scale) / PIXELS_A_TOKEN).ceil().max(1.0) as u32
}

/// OpenAI fits a picture into 2,048 by 2,048, scales its shorter side down to 768, and counts tiles.
fn tile_tokens((width, height): (u32, u32)) -> u32 {
    const BOX: f64 = 2_048.0;
    const SHORT_SIDE: f64 = 768.0;
    const TILE: f64 = 512.0;
    const BASE: f64 = 85.0;
    const A_TILE: f64 = 170.0;
    let (width, height) = (f64::from(width), f64::from(height));
    let fit = (BOX / width.max(height)).min(1.0);
    let scale = fit.min(SHORT_SIDE / width.min(height));
    let tiles = (width * scale / TILE).ceil().max(1.0) * (height * scale / TILE).ceil().max(1.0);
    (BASE + A_TILE * tiles) as u32
}

/// Base64 characters decoded to find the size: most headers are at the very start, a camera's JPEG has its frame header after metadata of
/// up to 64 KiB.
const SNIFFED_CHARS: [usize; 2] = [1_024, 128 * 1_024];

/// Returns width and height of the PNG, JPEG, GIF or WebP image in this base64 text, as it occurs inside JSON.
#[must_use]
pub(crate) fn sniff_base64_image(base64: &[u8]) -> Option<(u32, u32)> {
    SNIFFED_CHARS.iter().find_map(|chars| sniff_image(&decode_base64(&base64[..base64.len().min(*chars)])))
}

/// Returns width and height of an image from its first bytes.
#[must_use]
pub(crate) fn sniff_image(bytes: &[u8]) -> Option<(u32, u32)> {
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        return Some((big_endian(bytes, 16, 4)?, big_endian(bytes, 20, 4)?));
    }
    if bytes.starts_with(b"GIF8") {
        return Some((little_endian(bytes, 6, 2)?, little_endian(bytes, 8, 2)?));
    }
    if bytes.starts_with(&[0xFF, 0xD8]) {
        return sniff_jpeg(bytes);
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return sniff_webp(bytes);
    }
    None
}

/// Finds the frame header of a JPEG.
fn sniff_jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        // Segments may be padded with any number of fill bytes.
        while *bytes.get(at)? == 0xFF && *bytes.get(at + 1)? == 0xFF {
            at += 1;
        }
        if *bytes.get(at)? != 0xFF {
            return None;
        }
        match *bytes.get(at + 1)? {
            0xC0..=0xC3 | 0xC5..=0xC7 | 0xC9..=0xCB | 0xCD..=0xCF => {
                return Some((big_endian(bytes, at + 7, 2)?, big_endian(bytes, at + 5, 2)?));
            }
            0xD9 | 0xDA => return None,
            0x01 | 0xD0..=0xD8 => at += 2,
            _ => at += 2 + (big_endian(bytes, at + 2, 2)?.max(2) as usize),
        }
    }
}

fn sniff_webp(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8X" => Some((little_endian(bytes, 24, 3)? + 1, little_endian(bytes, 27, 3)? + 1)),
        b"VP8L" => {
            let bits = little_endian(bytes, 21, 4)?;
            Some(((bits & 0x3FFF) + 1, ((bits >> 14) & 0x3FFF) + 1))
        }
        b"VP8 " => Some((little_endian(bytes, 26, 2)? & 0x3FFF, little_endian(bytes, 28, 2)? & 0x3FFF)),
        _ => None,
    }
}

fn big_endian(bytes: &[u8], at: usize, len: usize) -> Option<u32> {
    let digits = bytes.get(at..at.checked_add(len)?)?;
    Some(digits.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)))
}

fn little_endian(bytes: &[u8], at: usize, len: usize) -> Option<u32> {
    let digits = bytes.get(at..at.checked_add(len)?)?;
    Some(digits.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte)))
}

/// Decodes base64 (either alphabet) up to the first other character; line breaks, also escaped ones, are skipped.
fn decode_base64(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut held) = (0u32, 0u32);
    let mut characters = text.iter();
    while let Some(character) = characters.next() {
        let value = match character {
            b'A'..=b'Z' => character - b'A',
            b'a'..=b'z' => character - b'a' + 26,
            b'0'..=b'9' => character - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'\n' | b'\r' | b' ' => continue,
            b'\\' => match characters.next() {
                Some(b'/') => 63,
                Some(b'n' | b'r') => continue,
                _ => break,
            },
            _ => break,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    bytes
}
