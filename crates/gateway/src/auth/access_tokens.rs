//! Access tokens: how they are stored and recognised, and what each permits.
//!
//! A token is 256 random bits, of which only a hash is stored. Every token belongs to an owner and gives access to the
//! conversations of that owner only. The holder of an operator's token may name another owner.
//!
//! Not for: files. The program around the gateway reads and writes the list.

use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use throughline_store::{Millis, Owner};

/// Every access token begins with this, which distinguishes it from a provider's key.
pub(crate) const TOKEN_PREFIX: &str = "tl_";
/// The version of the list that is written.
const VERSION: u32 = 1;
/// The longest name of a token or an owner.
const MAX_NAME_CHARS: usize = 64;

/// How much the holder of a token may use. What is not set is not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TokenLimits {
    /// Requests in a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u32>,
    /// Requests at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrent: Option<u32>,
    /// What calls of its owner may cost in a day (UTC), in millionths of a dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub micro_usd_per_day: Option<u64>,
    /// What they may cost in thirty days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub micro_usd_per_month: Option<u64>,
    /// Bytes of a body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_bytes: Option<usize>,
}

impl TokenLimits {
    /// What one of so many gateways lets in of the limits on requests: an equal part, at least one. Limits on money are of the owner's
    /// recorded calls, which all gateways read, and are not divided.
    #[must_use]
    pub(crate) fn part_of_one(&self, gateways: u32) -> Self {
        let part = |limit: u32| (limit / gateways.max(1)).max(1);
        Self {
            requests_per_minute: self.requests_per_minute.map(part),
            concurrent: self.concurrent.map(part),
            ..*self
        }
    }

    /// Whether it matters what calls cost.
    #[must_use]
    pub fn limits_spend(&self) -> bool {
        self.micro_usd_per_day.is_some() || self.micro_usd_per_month.is_some()
    }
}

/// What is kept of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenEntry {
    /// What it is called.
    pub name: String,
    /// Whose conversations its holder sees.
    pub owner: Owner,
    /// The hash of the token.
    pub hash: String,
    /// When it was made.
    pub created_ms: Millis,
    /// How much its holder may use.
    #[serde(default)]
    pub limits: TokenLimits,
    /// Whether its holder may see and change what concerns the whole gateway: settings, tokens, the state of the record;
    /// and see the data of every owner.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub operator: bool,
}

/// All tokens.
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

/// Why a list of tokens cannot be used, or a token not be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It is no list of tokens.
    #[error("the file is not a list of access tokens: {0}")]
    Unreadable(String),
    /// A newer version wrote it.
    #[error("the file was written by a newer version of Throughline (format {0})")]
    Newer(u32),
    /// There is one of that name.
    #[error("there is a token `{0}` already")]
    Taken(String),
    /// A name that cannot be one.
    #[error("`{0}` cannot be a name: 1 to 64 letters, digits, dots, dashes and underscores can")]
    BadName(String),
}

impl AccessTokens {
    /// Reads a list as it was written.
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

    /// The list as it is kept.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// The tokens, in the order in which they were made.
    #[must_use]
    pub fn entries(&self) -> &[TokenEntry] {
        &self.tokens
    }

    /// Makes a token from random bytes and returns it; this is the only time it is seen.
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

    /// Makes a token an operator's; `false` when there is none of that name.
    pub fn make_operator(&mut self, name: &str) -> bool {
        let entry = self.tokens.iter_mut().find(|entry| entry.name == name);
        entry.map(|entry| entry.operator = true).is_some()
    }

    /// A token as text, from its random bytes.
    pub(crate) fn text_of(random: &[u8; 32]) -> String {
        let digits: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{TOKEN_PREFIX}{digits}")
    }

    /// Takes a token away; `false` when there is none of that name.
    pub fn revoke(&mut self, name: &str) -> bool {
        let before = self.tokens.len();
        self.tokens.retain(|entry| entry.name != name);
        self.tokens.len() < before
    }

    /// Whether a text can be the name of a token or an owner.
    pub(crate) fn is_name(text: &str) -> bool {
        is_name(text)
    }

    /// The entry of a token. Takes the same time whichever it is and whether it is any.
    #[must_use]
    pub fn find(&self, secret: &str) -> Option<&TokenEntry> {
        let presented = hash_of(secret);
        let mut found = None;
        for entry in &self.tokens {
            // Hashes compare in constant time.
            let is_it = blake3::Hash::from_hex(&entry.hash).is_ok_and(|kept| kept == presented);
            if is_it {
                found = Some(entry);
            }
        }
        found
    }

    /// Bytes for a token; `None` when the machine has no chance to give.
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
