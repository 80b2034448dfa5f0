//! Alters bytes like a fuzzer, but the same way on every machine: continuous integration runs it instead of a fuzzer.

use crate::rng::Rng;

/// Tokens that are difficult for parsers of conversations.
const TOKENS: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"\\",
    b",",
    b":",
    b"null",
    b"true",
    b"\\u",
    b"\\ud800",
    b"\\udc00\\ud800",
    b"\n",
    b"\r\n",
    b"\xff",
    b"\xc3\x28",
    b"\xef\xbb\xbf",
    b"\0",
    b"1e999",
    b"-0.0",
    b"\"role\":\"tool\",",
    b"\"content\":[",
    b"{\"type\":\"tool_result\"}",
    b"\"tool_calls\":[{\"function\":{\"function\":{}}}],",
    b"<system-reminder>",
    b"</system-reminder>",
    b"---\n",
    b"  - a: b\n",
    b"&x *x ",
    b"# ",
    b"## ",
    b"\t",
    b"\xf0\x9f\x91\xa9",
];

/// Returns a copy of `seed` with one to four changes.
#[must_use]
pub fn mutate(seed: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..rng.between(1, 4) {
        change(&mut bytes, rng);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let at = rng.below(bytes.len() + 1);
    let end = (at + rng.between(1, 24)).min(bytes.len());
    match rng.below(9) {
        0 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << rng.below(8);
            }
        }
        1 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = rng.below(256) as u8;
            }
        }
        2 => {
            bytes.drain(at..end);
        }
        3 => {
            let copied = bytes[at..end].to_vec();
            let to = rng.below(bytes.len() + 1);
            bytes.splice(to..to, copied);
        }
        4 => bytes.truncate(at),
        5 => {
            bytes.drain(..at);
        }
        6 => {
            // Very deep nesting overflows the stack of recursive parsers.
            let token = TOKENS[rng.below(4)];
            let deep = token.repeat(rng.between(2, 300));
            bytes.splice(at..at, deep);
        }
        _ => {
            let token = TOKENS[rng.below(TOKENS.len())];
            bytes.splice(at..at, token.iter().copied());
        }
    }
}
