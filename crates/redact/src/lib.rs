//! Finds and masks secrets in text.
//!
//! A [`Redactor`] masks both the input and the output of a summary. It recognises the formats of some two hundred vendors, private key
//! blocks, tokens in headers, cookies and URLs, and values next to names that indicate a secret; values without a format are judged by
//! their randomness. It does not mask values that only resemble secrets: numbers and settings (`MAX_TOKENS=100`), lookups
//! (`os.getenv("API_KEY")`), placeholders, types, hashes, identifiers.
//!
//! ```
//! use throughline_redact::Redactor;
//!
//! let redactor = Redactor::new();
//! assert_eq!(redactor.redact("DB_PASSWORD=hunter2 MAX_TOKENS=100"), "DB_PASSWORD=[redacted:password] MAX_TOKENS=100");
//! ```
//!
//! The limits:
//!
//! - A value that names itself (`changeme`, `your-api-key`, `password`, `<token>`, `xxxx`) is a placeholder and is not masked.
//! - A complete match of a format is masked even if it is a vendor's published example.
//! - A word counts as a password where only a value can be (`DB_PASSWORD=letmein`, between quotes, in a URL), not without quotes in the
//!   middle of a sentence or in code.
//! - A random string counts only next to a word for secrets; a hexadecimal one only as an assigned value. Commits, digests, UUIDs and the
//!   identifiers of messages and calls are facts a summary needs.
//!
//! Keywords are searched for in one pass over the text, and patterns run only at keywords. The work at each is bounded, so time is linear
//! in the length of the text.

mod assignment;
mod boundary;
mod facts;
mod header;
mod keywords;
mod mask;
mod masked;
mod name;
mod private_key;
mod randomness;
#[cfg(test)]
mod recall_tests;
mod redactor;
mod rules;
#[cfg(test)]
mod samples_tests;
mod scan;
mod url;
mod value;
mod vicinity;
mod words;

pub use redactor::Redactor;
