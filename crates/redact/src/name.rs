//! Names that indicate a secret.
//!
//! A name is split into its words (`dbPassword`, `DB_PASSWORD`, `db.password`, `X-Api-Key`) and classified by its last significant word:
//! `password_min_length` ends in a length and `MAX_TOKENS` in a plural, so neither names a secret. A key needs a word for its kind:
//! `api_key` has one, `cache_key` and `primary_key` do not.

use crate::words::{WORDS, is_one_of};

/// The kind of secret that a name indicates. Passwords are chosen by people, the others are generated, so the required evidence differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SecretName {
    /// A password: may be short and made of words.
    Password,
    /// A password that may be several words.
    Passphrase,
    /// An API key, client secret, private or signing key: generated.
    Key,
    /// A token: generated, but the word has other meanings.
    Token,
    /// Credentials of some other form, as a whole.
    Credential,
    /// A name that counts only together with a vendor's name and format.
    OnlyNamed,
}

/// More words than any real name has.
const MAX_WORDS: usize = 16;

/// A name, split into words.
#[derive(Debug)]
pub(crate) struct NameWords<'a> {
    words: [&'a str; MAX_WORDS],
    count: usize,
}

impl<'a> NameWords<'a> {
    /// Splits `name` at separators and camel-case humps. Words keep their case; compare them ignoring case.
    pub(crate) fn split(name: &'a str) -> Self {
        let bytes = name.as_bytes();
        let mut split = Self { words: [""; MAX_WORDS], count: 0 };
        let mut start = 0;
        for index in 0..=bytes.len() {
            if index == bytes.len()
                || (index > start && breaks_before(bytes, index))
                || is_separator(bytes[index])
            {
                if index > start {
                    split.push(&name[start..index]);
                }
                start = if index < bytes.len() && is_separator(bytes[index]) { index + 1 } else { index };
            }
        }
        split
    }

    fn push(&mut self, word: &'a str) {
        if self.count == MAX_WORDS {
            self.words.rotate_left(1);
            self.count -= 1;
        }
        self.words[self.count] = word;
        self.count += 1;
    }

    /// The words in order.
    pub(crate) fn as_slice(&self) -> &[&'a str] {
        &self.words[..self.count]
    }

    /// Whether one of `wanted` (lower case) is among the words, or consists of two adjacent ones.
    pub(crate) fn contains_any(&self, wanted: &[&str]) -> bool {
        let words = self.as_slice();
        words.iter().any(|word| is_one_of(word, wanted))
            || words.windows(2).any(|pair| wanted.iter().any(|whole| is_joined(pair[0], pair[1], whole)))
    }
}

fn is_separator(byte: u8) -> bool {
    !byte.is_ascii_alphanumeric() && byte.is_ascii()
}

fn breaks_before(bytes: &[u8], index: usize) -> bool {
    let (last, byte) = (bytes[index - 1], bytes[index]);
    if last.is_ascii_alphabetic() && byte.is_ascii_digit()
        || last.is_ascii_digit() && byte.is_ascii_alphabetic()
    {
        return true;
    }
    byte.is_ascii_uppercase()
        && (last.is_ascii_lowercase()
            || (last.is_ascii_uppercase() && bytes.get(index + 1).is_some_and(u8::is_ascii_lowercase)))
}

/// Whether `first` and `second` together spell `whole`: `RapidAPI` is split, but its vendor's name is one word.
fn is_joined(first: &str, second: &str, whole: &str) -> bool {
    whole.len() == first.len() + second.len()
        && whole.is_char_boundary(first.len())
        && whole[..first.len()].eq_ignore_ascii_case(first)
        && whole[first.len()..].eq_ignore_ascii_case(second)
}

fn ends_with(word: &str, suffix: &str) -> bool {
    word.len() >= suffix.len()
        && word.is_char_boundary(word.len() - suffix.len())
        && word[word.len() - suffix.len()..].eq_ignore_ascii_case(suffix)
}

/// Whether `word` before `key` makes it a secret one.
pub(crate) fn is_key_qualifier(word: &str) -> bool {
    is_one_of(word, &WORDS.key_qualifiers)
}

/// Returns the kind of secret that `name` indicates, if any.
pub(crate) fn classify(words: &NameWords<'_>) -> Option<SecretName> {
    let mut words = words.as_slice();
    while let [front @ .., last] = words
        && !front.is_empty()
        && (is_one_of(last, &WORDS.transparent_tails) || last.bytes().all(|byte| byte.is_ascii_digit()))
    {
        words = front;
    }
    let (last, front) = words.split_last()?;
    if front.iter().any(|word| is_one_of(word, &WORDS.denials)) {
        return None;
    }
    classify_last(last, front)
}

fn classify_last(last: &str, front: &[&str]) -> Option<SecretName> {
    let before = front.last().copied().unwrap_or("");
    if ends_with(last, "passphrase") {
        return Some(SecretName::Passphrase);
    }
    for password in ["password", "passwd", "passwort", "kennwort", "passcode"] {
        if ends_with(last, password) {
            return Some(SecretName::Password);
        }
    }
    if is_one_of(
        last,
        &["pwd", "pw", "psw", "contrasena", "senha", "wachtwoord", "motdepasse", "parola", "sifre"],
    ) {
        return Some(SecretName::Password);
    }
    if ends_with(last, "pass") {
        // `pass` alone is a keyword, a verdict, a render pass; with an owner it is a password.
        let owner = if last.len() > 4 { &last[..last.len() - 4] } else { before };
        return is_one_of(owner, &WORDS.pass_owners).then_some(SecretName::Password);
    }
    if ends_with(last, "secret")
        || is_one_of(last, &["apikey", "secretkey", "privatekey", "accesskey", "authkey"])
    {
        return Some(SecretName::Key);
    }
    for key in [
        "apikey",
        "secretkey",
        "privatekey",
        "accountkey",
        "accesskey",
        "masterkey",
        "encryptionkey",
        "signingkey",
    ] {
        if ends_with(last, key) {
            return Some(SecretName::Key);
        }
    }
    if is_one_of(last, &["key"]) {
        let qualified = is_one_of(before, &WORDS.key_qualifiers);
        return Some(if qualified { SecretName::Key } else { SecretName::OnlyNamed });
    }
    if ends_with(last, "token") {
        return (!is_one_of(before, &WORDS.other_tokens)).then_some(SecretName::Token);
    }
    if is_one_of(last, &["pat", "jwt", "bearer"]) {
        return Some(if front.is_empty() { SecretName::OnlyNamed } else { SecretName::Token });
    }
    if is_one_of(last, &["credential", "credentials", "creds", "auth"]) {
        return Some(SecretName::Credential);
    }
    None
}

#[cfg(test)]
#[path = "name_tests.rs"]
mod tests;
