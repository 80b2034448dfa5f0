//! Recognises values that are not secrets: numbers, dates, versions, paths, addresses, labelled hashes, identifiers; and the one encoding
//! that is always a credential.

use crate::randomness::Profile;
use crate::words::{WORDS, is_one_of};

/// Numbers, dates, versions, paths, addresses, hashes with a label, identifiers of messages and calls.
pub(crate) fn is_plain_fact(value: &str) -> bool {
    let bytes = value.as_bytes();
    if WORDS.public_id_prefixes.iter().any(|prefix| value.starts_with(prefix)) {
        return true;
    }
    if value.contains("://") || is_path(value) || is_email(value) {
        return true;
    }
    // 12.5, 1_000, 10MB, 30s, 0x1F, 2024-05-01T10:00:00Z, 1.2.3-beta
    if bytes[0].is_ascii_digit() && is_measure(value) {
        return true;
    }
    is_version_like(value)
}

fn is_measure(value: &str) -> bool {
    let bytes = value.as_bytes();
    let is_date = bytes.len() >= 10
        && bytes[..4].iter().all(u8::is_ascii_digit)
        && bytes[4] == b'-'
        && bytes[5..7].iter().all(u8::is_ascii_digit)
        && bytes[7] == b'-';
    if is_date {
        return true;
    }
    if let Some(hex) = value.strip_prefix("0x").or_else(|| value.strip_prefix("0X")) {
        // A number or an address; a private key of 256 bits is longer.
        return hex.len() <= 44;
    }
    let digits = bytes.iter().take_while(|b| b.is_ascii_digit() || matches!(b, b'.' | b'_' | b',')).count();
    let unit = &value[digits..];
    if unit.is_empty() {
        // A long run of digits may be a password or a number; with a separator it is a number.
        return value.len() < 6 || value.bytes().any(|b| !b.is_ascii_digit());
    }
    is_one_of(unit, &WORDS.units)
}

pub(crate) fn is_version_like(value: &str) -> bool {
    let rest = value.strip_prefix(['v', 'V', '^', '~', '=']).unwrap_or(value);
    let mut parts = rest.splitn(3, '.');
    let (Some(major), Some(minor)) = (parts.next(), parts.next()) else {
        return false;
    };
    let numeric =
        |part: &str| !part.is_empty() && part.len() <= 5 && part.bytes().all(|b| b.is_ascii_digit());
    numeric(major) && (numeric(minor) || minor == "x")
}

fn is_path(value: &str) -> bool {
    if ["/", "./", "../", "~/", "\\\\", "C:\\", "D:\\", "file:"].iter().any(|start| value.starts_with(start))
    {
        return Profile::of(value).wordlike * 4 >= value.len() || value.matches('/').count() >= 3;
    }
    value
        .rsplit_once('.')
        .is_some_and(|(stem, extension)| !stem.is_empty() && is_one_of(extension, &WORDS.extensions))
        || (value.contains('/') && Profile::of(value).reads_like_words())
}

fn is_email(value: &str) -> bool {
    value.split_once('@').is_some_and(|(user, host)| {
        let plain = |part: &str| {
            part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'+'))
        };
        !user.is_empty()
            && plain(user)
            && plain(host)
            && host.rsplit_once('.').is_some_and(|(domain, tld)| {
                !domain.is_empty() && tld.len() >= 2 && tld.bytes().all(|b| b.is_ascii_lowercase())
            })
    })
}

/// `8-4-4-4-12` hexadecimal digits.
pub(crate) fn is_uuid(value: &str) -> bool {
    value.len() == 36
        && value.bytes().enumerate().all(|(index, byte)| match index {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Whether `value` is base64 for `user:password`.
pub(crate) fn decodes_to_user_and_password(value: &str) -> bool {
    let trimmed = value.trim_end_matches('=');
    if trimmed.len() < 6 || trimmed.len() > 512 || trimmed.len() % 4 == 1 {
        return false;
    }
    let (mut pending, mut bits) = (0u32, 0u32);
    let (mut position, mut colon) = (0usize, None);
    for byte in trimmed.bytes() {
        let sextet = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return false,
        };
        pending = (pending << 6) | u32::from(sextet);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            let decoded = (pending >> bits) & 0xff;
            if !(0x20..0x7f).contains(&decoded) {
                return false;
            }
            if decoded == u32::from(b':') && colon.is_none() {
                colon = Some(position);
            }
            position += 1;
        }
    }
    colon.is_some_and(|at| at + 1 < position)
}
