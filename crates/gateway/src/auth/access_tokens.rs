//! Access tokens: how they are stored and recognised, and what each permits.
//!
//! A token is 256 random bits, of which only a hash is stored. Every token belongs to an owner and gives access to the
//! conversations of that owner only. The holder of an operator's token may name another owner.
//!
//! Not for: files. The program around the gateway reads and writes the list.

use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use throughline_store::{Millis, Owner};

/// The prefix of every access token, which distinguishes it from a provider's key.
pub(crate) const TOKEN_PREFIX: &str = "tl_";
/// The version of the stored list.
const VERSION: u32 = 1;
/// The longest name of a token or an owner, in characters.
const MAX_NAME_CHARS: usize = 64;

/// Limits on the use of a token. `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TokenLimits {
    /// Requests per minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u32>,
    /// Concurrent requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrent: Option<u32>,
    /// The cost of the owner's calls per day (UTC), in millionths of a dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub micro_usd_per_day: Option<u64>,
    /// The cost of the owner's calls in thirty days, in millionths of a dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub micro_usd_per_month: Option<u64>,
    /// The size of a request body in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_bytes: Option<usize>,
}

impl TokenLimits {
    /// Returns the share of one of `gateways` gateways: of the limits on requests an equal part, at least one. Limits on money are
    /// compared with the recorded calls of the owner, which all gateways read, and are not divided.
    #[must_use]
    pub(crate) fn part_of_one(&self, gateways: u32) -> Self {
        let part = |limit: u32| (limit / gateways.max(1)).max(1);
        Self {
            requests_per_minute: self.requests_per_minute.map(part),
            concurrent: self.concurrent.map(part),
            ..*self
        }
    }

    /// Whether there is a limit on money, so that the cost of calls must be known.
    #[must_use]
    pub fn limits_spend(&self) -> bool {
        self.micro_usd_per_day.is_some() || self.micro_usd_per_month.is_some()
    }
}

/// The stored entry of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenEntry {
    /// The name of the token.
    pub name: String,
    /// The owner whose conversations the holder sees.
    pub owner: Owner,
    /// The BLAKE3 hash of the token, hexadecimal.
    pub hash: String,
    /// When the token was created.
    pub created_ms: Millis,
    /// The limits on its use.
    #[serde(default)]
    pub limits: TokenLimits,
    /// Whether the holder may read and change the state of the whole gateway (settings, tokens, the record), and read the data of every
    /// owner.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub operator: bool,
}

/// The list of all access tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessTokens {
    version: u32,
    tokens: Vec<TokenEntry>,
}

impl Default for AccessTokens {
    fn default() -> Self {
        Self { version: VERSION, tokens: Vec::new() }
    }
}

/// Why a list of tokens cannot be used, or a token cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The text is not a list of tokens.
    #[error("the file is not a list of access tokens: {0}")]
    Unreadable(String),
    /// A newer version of Throughline wrote the list.
    #[error("the file was written by a newer version of Throughline (format {0})")]
    Newer(u32),
    /// A token of this name already exists.
    #[error("there is already a token `{0}`")]
    Taken(String),
    /// The name contains other characters, or is too long.
    #[error("`{0}` cannot be a name: 1 to 64 letters, digits, dots, dashes and underscores can")]
    BadName(String),
}

impl AccessTokens {
    /// Parses a stored list.
    pub fn parse(text: &str) -> Result<Self, TokenError> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let unreadable = |error: serde_json::Error| TokenError::Unreadable(error.to_string());
        let Versioned { version } = serde_json::from_str(text).map_err(unreadable)?;
        if version > VERSION {
            return Err(TokenError::Newer(version));
        }
        serde_json::from_str(text).map_err(unreadable)
    }

    /// Returns the list in its stored form.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// The tokens in the order of their creation.
    #[must_use]
    pub fn entries(&self) -> &[TokenEntry] {
        &self.tokens
    }

    /// Creates a token from random bytes and returns its text. The list stores only the hash, so the text cannot be read again.
    pub fn add(
        &mut self,
        name: &str,
        owner: &str,
        random: &[u8; 32],
        created_ms: Millis,
        limits: TokenLimits,
    ) -> Result<String, TokenError> {
        for part in [name, owner] {
            if !is_name(part) {
                return Err(TokenError::BadName(part.chars().take(MAX_NAME_CHARS).collect()));
            }
        }
        if self.tokens.iter().any(|entry| entry.name == name) {
            return Err(TokenError::Taken(name.to_owned()));
        }
        let secret = Self::text_of(random);
        let hash = hash_of(&secret).to_hex().to_string();
        self.tokens.push(TokenEntry {
            name: name.to_owned(),
            owner: Owner::new(owner),
            hash,
            created_ms,
            limits,
            operator: false,
        });
        Ok(secret)
    }

    /// Turns a token into an operator's token. Returns `false` if there is none of this name.
    pub fn make_operator(&mut self, name: &str) -> bool {
        let entry = self.tokens.iter_mut().find(|entry| entry.name == name);
        entry.map(|entry| entry.operator = true).is_some()
    }

    /// Returns the text of a token with these random bytes.
    pub(crate) fn text_of(random: &[u8; 32]) -> String {
        let digits: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{TOKEN_PREFIX}{digits}")
    }

    /// Removes a token. Returns `false` if there is none of this name.
    pub fn revoke(&mut self, name: &str) -> bool {
        let before = self.tokens.len();
        self.tokens.retain(|entry| entry.name != name);
        self.tokens.len() < before
    }

    /// Whether a text can be the name of a token or an owner.
    pub(crate) fn is_name(text: &str) -> bool {
        is_name(text)
    }

    /// Finds the entry of a token. Takes the same time for every token, known or not.
    #[must_use]
    pub fn find(&self, secret: &str) -> Option<&TokenEntry> {
        let presented = hash_of(secret);
        let mut found = None;
        for entry in &self.tokens {
            // Hashes are compared in constant time.
            let is_it = blake3::Hash::from_hex(&entry.hash).is_ok_and(|kept| kept == presented);
            if is_it {
                found = Some(entry);
            }
        }
        found
    }

    /// Returns random bytes for a token; `None` if the system's random source fails.
    #[must_use]
    pub fn random_bytes() -> Option<[u8; 32]> {
        let mut bytes = [0; 32];
        SystemRandom::new().fill(&mut bytes).ok()?;
        Some(bytes)
    }
}

fn hash_of(secret: &str) -> blake3::Hash {
    blake3::hash(secret.as_bytes())
}

fn is_name(text: &str) -> bool {
    (1..=MAX_NAME_CHARS).contains(&text.chars().count())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
}

#[cfg(test)]
#[path = "access_tokens_tests.rs"]
mod tests;
