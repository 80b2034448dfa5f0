//! Identifiers: sessions, owners, artifacts.

use std::fmt;

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Milliseconds since 1970, passed in by the caller. Shown to users; never used for ordering.
pub type Millis = i64;

/// The name of a session: date, time (UTC) and random hexadecimal digits, such as `20261115_093000_a1b2c3`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct SessionId(String);

/// The opener of a session, which determines the number of random digits in its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdLength {
    /// A user's own commands: six digits.
    Local,
    /// The gateway, which opens many sessions per second: eight digits.
    Gateway,
}

impl SessionId {
    /// A new id from a time and random bits.
    ///
    /// ```
    /// use throughline_store::{IdLength, SessionId};
    ///
    /// let id = SessionId::new(1_794_744_000_000, 0xa1b2c3, IdLength::Local);
    /// assert_eq!(id.as_str(), "20261115_120000_a1b2c3");
    /// ```
    #[must_use]
    pub fn new(at: Millis, random: u32, length: IdLength) -> Self {
        let time = Timestamp::from_millisecond(at).unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(TimeZone::UTC);
        let stamp = time.strftime("%Y%m%d_%H%M%S");
        Self(match length {
            IdLength::Local => format!("{stamp}_{:06x}", random & 0x00ff_ffff),
            IdLength::Gateway => format!("{stamp}_{random:08x}"),
        })
    }

    /// Creates an id from recorded or typed text, unchecked.
    #[must_use]
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The owner of a session. Every query is made for an owner and sees only that owner's data.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Owner(String);

impl Owner {
    /// The owner of everything on a machine with one user.
    pub const LOCAL: &'static str = "local";

    /// Creates an owner by name.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Owner {
    fn default() -> Self {
        Self(Self::LOCAL.to_owned())
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
