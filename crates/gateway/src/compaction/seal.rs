//! Encrypted data that a client keeps: the position in a conversation, and its summary.
//!
//! Only a gateway with the same key can open it, only for the owner it was made for, and only unchanged. If the record has
//! the conversation, the position is enough. If it does not (it was lost, or is on another machine), the conversation
//! continues with the summary.

use aes_gcm_siv::aead::{AeadInPlace as _, KeyInit as _};
use aes_gcm_siv::{Aes256GcmSiv, Nonce};
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::{Value, json};
use throughline_store::{Millis, Owner, SessionId};

/// The prefix of all sealed text, in every version.
pub(crate) const SEALED_BY_US: &str = "throughline";
/// The prefix of sealed text in the current version; the digit is the version of the content.
const MARK: &str = "throughline1.";
/// The most bytes of unpacked content.
const MOST_BYTES: usize = 16 * 1024 * 1024;
/// The length of a nonce in bytes.
const NONCE_LEN: usize = 12;
/// The associated data of cookies. Other content is sealed for an owner, and no owner's name contains NUL.
const FOR_LOGIN: &[u8] = b"\0login";
/// The zstd level. It is high because the client sends the text with every request.
const PACKING: i32 = 9;

/// The key of a gateway, and earlier keys, which only open. The holder of a key can read the sealed data that clients keep.
#[derive(Clone)]
pub struct SealKey {
    seals: [u8; Self::BYTES],
    opens: Vec<[u8; Self::BYTES]>,
}

impl std::fmt::Debug for SealKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealKey(..)")
    }
}

impl SealKey {
    /// The length of a key in bytes.
    pub const BYTES: usize = 32;

    /// Returns an existing key.
    #[must_use]
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self { seals: bytes, opens: vec![bytes] }
    }

    /// Parses a list of hexadecimal keys separated by commas. The first seals, all open. Errors do not quote any digit of a key.
    pub fn from_list(text: &str) -> Result<Self, String> {
        let mut keys = Vec::new();
        for (at, word) in text.split(',').map(str::trim).enumerate() {
            keys.push(
                from_hex::<{ Self::BYTES }>(word)
                    .ok_or_else(|| format!("key {} is not {} hexadecimal digits", at + 1, 2 * Self::BYTES))?,
            );
        }
        match keys.first() {
            Some(first) => Ok(Self { seals: *first, opens: keys }),
            None => Err("it contains no key".to_owned()),
        }
    }

    /// Adds the older key for opening.
    #[must_use]
    pub fn and_opens(mut self, older: &Self) -> Self {
        self.opens.extend(older.opens.iter().copied());
        self
    }

    /// Generates a key; `None` if the system's random source fails.
    #[must_use]
    pub fn generate() -> Option<Self> {
        let mut bytes = [0; Self::BYTES];
        SystemRandom::new().fill(&mut bytes).ok()?;
        Some(Self::from_bytes(bytes))
    }

    /// The bytes of the key, to be stored where no other user can read them.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.seals
    }

    /// Seals a position in an owner's conversation; `None` if encryption fails.
    pub(crate) fn seal(&self, owner: &Owner, sealed: &Sealed) -> Option<String> {
        let inside = json!({
            "conversation": sealed.conversation.as_str(),
            "messages": sealed.messages,
            "summary": sealed.summary,
        });
        let mut bytes = zstd::bulk::compress(inside.to_string().as_bytes(), PACKING).ok()?;
        // The nonce is a hash of the content: equal content gives equal text, and different content never shares a nonce.
        let hash = blake3::keyed_hash(&self.seals, &bytes);
        let nonce: [u8; NONCE_LEN] = hash.as_bytes().first_chunk().copied()?;
        let owner = owner.as_str().as_bytes();
        self.cipher()?.encrypt_in_place(Nonce::from_slice(&nonce), owner, &mut bytes).ok()?;
        let mut text = String::from(MARK);
        push_hex(&nonce, &mut text);
        text.push('.');
        base64::Engine::encode_string(&base64::engine::general_purpose::URL_SAFE_NO_PAD, &bytes, &mut text);
        Some(text)
    }

    /// Opens what [`seal`](Self::seal) sealed for this owner with one of the keys; `None` for anything else.
    pub(crate) fn open(&self, owner: &Owner, text: &str) -> Option<Sealed> {
        let (nonce, bytes) = text.strip_prefix(MARK)?.split_once('.')?;
        let nonce: [u8; NONCE_LEN] = from_hex(nonce)?;
        let engine = &base64::engine::general_purpose::URL_SAFE_NO_PAD;
        let sealed = base64::Engine::decode(engine, bytes).ok()?;
        let bytes = self.decrypted(&nonce, owner.as_str().as_bytes(), &sealed)?;
        let inside: Value = serde_json::from_slice(&zstd::bulk::decompress(&bytes, MOST_BYTES).ok()?).ok()?;
        Some(Sealed {
            conversation: SessionId::from_text(inside["conversation"].as_str()?),
            messages: usize::try_from(inside["messages"].as_u64()?).ok()?,
            summary: serde_json::from_value(inside["summary"].clone()).ok()?,
        })
    }

    /// Seals an access token for a cookie with an expiry time; `None` if encryption fails.
    pub(crate) fn seal_login(&self, secret: &str, expires_ms: Millis) -> Option<String> {
        let mut bytes = json!({ "token": secret, "expires_ms": expires_ms }).to_string().into_bytes();
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).ok()?;
        self.cipher()?.encrypt_in_place(Nonce::from_slice(&nonce), FOR_LOGIN, &mut bytes).ok()?;
        bytes.splice(..0, nonce);
        Some(base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, &bytes))
    }

    /// Opens a cookie; returns the access token and the expiry time.
    pub(crate) fn open_login(&self, text: &str) -> Option<(String, Millis)> {
        let engine = &base64::engine::general_purpose::URL_SAFE_NO_PAD;
        let bytes = base64::Engine::decode(engine, text).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_LEN>()?;
        let inside: Value = serde_json::from_slice(&self.decrypted(nonce, FOR_LOGIN, sealed)?).ok()?;
        Some((inside["token"].as_str()?.to_owned(), inside["expires_ms"].as_i64()?))
    }

    fn cipher(&self) -> Option<Aes256GcmSiv> {
        Aes256GcmSiv::new_from_slice(&self.seals).ok()
    }

    /// Decrypts with the first key that fits.
    fn decrypted(&self, nonce: &[u8; NONCE_LEN], sealed_for: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        self.opens.iter().find_map(|key| {
            let mut bytes = sealed.to_vec();
            let cipher = Aes256GcmSiv::new_from_slice(key).ok()?;
            cipher.decrypt_in_place(Nonce::from_slice(nonce), sealed_for, &mut bytes).ok()?;
            Some(bytes)
        })
    }
}

/// The sealed content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sealed {
    /// The conversation.
    pub(crate) conversation: SessionId,
    /// The number of its messages that the item replaces.
    pub(crate) messages: usize,
    /// The messages of the view that replace them; may be empty.
    pub(crate) summary: Vec<String>,
}

fn push_hex(bytes: &[u8], text: &mut String) {
    use std::fmt::Write as _;
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
}

fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != 2 * N || !text.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
#[path = "seal_tests.rs"]
mod tests;
