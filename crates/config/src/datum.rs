//! Parsed values: a small set of plain types, and secrets that do not print themselves.

use std::fmt;
use std::time::Duration;

/// Text that must not be shown: a key or a password.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text itself, for sending it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Shows the last four characters of a long secret: enough to distinguish two keys, too little to use one.
impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LONG_ENOUGH_TO_HINT: usize = 16;
        let length = self.0.chars().count();
        if length == 0 {
            return f.write_str("\"\"");
        }
        f.write_str("****")?;
        if length >= LONG_ENOUGH_TO_HINT {
            self.0
                .chars()
                .skip(length - 4)
                .try_for_each(|character| write!(f, "{}", character.escape_debug()))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({self})")
    }
}

/// A value of a setting.
#[derive(Debug, Clone, PartialEq)]
pub enum Datum {
    /// No value, and none is needed.
    Absent,
    /// On or off.
    Switch(bool),
    /// A whole number.
    Whole(u64),
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// A secret text.
    Secret(Secret),
}

/// The form printed by `config show`: secrets masked, including passwords in addresses.
impl fmt::Display for Datum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("(not set)"),
            Self::Switch(on) => write!(f, "{on}"),
            Self::Whole(number) => write!(f, "{number}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) if text.is_empty() => f.write_str("\"\""),
            Self::Text(text) => f.write_str(&without_password(text)),
            Self::Secret(secret) => write!(f, "{secret}"),
        }
    }
}

/// URL schemes of stores of records and large texts.
const STORE_SCHEMES: [&str; 5] = ["postgres", "postgresql", "s3", "gs", "az"];
/// Parts of the names of secret options.
const SECRET_OPTIONS: [&str; 12] = [
    "password",
    "passphrase",
    "secret",
    "token",
    "credential",
    "access_key",
    "accesskey",
    "account_key",
    "accountkey",
    "api_key",
    "apikey",
    "signature",
];

/// Masks credentials in an address: the password in `https://user:password@host`, everything before the `@` in that of a bucket, and
/// options such as `?password=...`, in the address of a database also without `?`.
pub(crate) fn without_password(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return without_loose_password(text) };
    let scheme_name = scheme.trim().to_ascii_lowercase();
    let is_database = scheme_name.starts_with("postgres");
    let is_store = is_database || STORE_SCHEMES.contains(&scheme_name.as_str());
    // In the address of a database or bucket the password is removed before parsing, because it may contain any character.
    let authority_end = match rest.rfind('@').filter(|_| is_store) {
        Some(at) => rest.get(at..).and_then(|host| host.find(['/', '?'])).map_or(rest.len(), |end| at + end),
        None => rest.find(['/', '?', '#']).unwrap_or(rest.len()),
    };
    let (authority, path) = rest.split_at(authority_end);
    let path = without_secret_options(path);
    match authority.rsplit_once('@') {
        // For a database, a user without a password is only a name.
        Some((user, _)) if is_database && !user.contains(':') => {
            format!("{scheme}://{authority}{path}")
        }
        // A bucket has no users: anything there may be a key.
        Some((_, host)) if is_store && !is_database => format!("{scheme}://****@{host}{path}"),
        Some((user, host)) => {
            let user = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}:****@{host}{path}")
        }
        None => format!("{scheme}://{authority}{path}"),
    }
}

/// The same for a text that is not an address, but may be meant as one: `me:password@host`, `host=db password=...`.
fn without_loose_password(text: &str) -> String {
    if !text.contains(char::is_whitespace) {
        if let Some((before, host)) = text.rsplit_once('@')
            && let Some((user, _)) = before.split_once(':')
        {
            return format!("{user}:****@{}", without_secret_options(host));
        }
        return without_secret_options(text);
    }
    if !text.split_whitespace().any(|word| masked_option(word).is_some()) {
        return text.to_owned();
    }
    let words = text.split_whitespace().map(|word| masked_option(word).unwrap_or_else(|| word.to_owned()));
    words.collect::<Vec<_>>().join(" ")
}

fn without_secret_options(path: &str) -> String {
    let Some((path, query)) = path.split_once('?') else {
        return masked_option(path).unwrap_or_else(|| path.to_owned());
    };
    let options = query.split('&').map(|option| masked_option(option).unwrap_or_else(|| option.to_owned()));
    format!("{path}?{}", options.collect::<Vec<_>>().join("&"))
}

/// Returns `name=****` if the value may be secret: by its name, or because it is an address with a user.
fn masked_option(option: &str) -> Option<String> {
    let (name, value) = option.split_once('=')?;
    let plain = name.to_ascii_lowercase().replace('-', "_");
    let is_switch = plain == "skip_signature";
    let is_secret =
        plain == "sig" || plain == "sas" || SECRET_OPTIONS.iter().any(|part| plain.contains(part));
    let has_user = value.contains('@') || value.contains("%40");
    ((is_secret && !is_switch) || has_user).then(|| format!("{name}=****"))
}

/// A Rust type that a setting is converted to.
pub(crate) trait FromDatum: Sized {
    /// Returns `None` for a value of another kind.
    fn from_datum(datum: &Datum) -> Option<Self>;
}

impl FromDatum for bool {
    fn from_datum(datum: &Datum) -> Option<Self> {
        match datum {
            Datum::Switch(on) => Some(*on),
            _ => None,
        }
    }
}

impl FromDatum for u64 {
    fn from_datum(datum: &Datum) -> Option<Self> {
        match datum {
            Datum::Whole(number) => Some(*number),
            _ => None,
        }
    }
}

impl FromDatum for usize {
    fn from_datum(datum: &Datum) -> Option<Self> {
        u64::from_datum(datum).and_then(|number| Self::try_from(number).ok())
    }
}

impl FromDatum for f64 {
    fn from_datum(datum: &Datum) -> Option<Self> {
        match datum {
            Datum::Number(number) => Some(*number),
            _ => None,
        }
    }
}

impl FromDatum for Duration {
    fn from_datum(datum: &Datum) -> Option<Self> {
        f64::from_datum(datum).and_then(|seconds| Self::try_from_secs_f64(seconds).ok())
    }
}

impl FromDatum for String {
    fn from_datum(datum: &Datum) -> Option<Self> {
        match datum {
            Datum::Text(text) => Some(text.clone()),
            Datum::Absent => Some(Self::new()),
            _ => None,
        }
    }
}

impl FromDatum for Secret {
    fn from_datum(datum: &Datum) -> Option<Self> {
        match datum {
            Datum::Secret(secret) => Some(secret.clone()),
            Datum::Absent => Some(Self::default()),
            _ => None,
        }
    }
}

impl<T: FromDatum> FromDatum for Option<T> {
    fn from_datum(datum: &Datum) -> Option<Self> {
        match datum {
            Datum::Absent => Some(None),
            datum => T::from_datum(datum).map(Some),
        }
    }
}
