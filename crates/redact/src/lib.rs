//! Secrets in text: found and masked by code.
//!
//! What goes into a summary and what comes out of it passes through a [`Redactor`]. It knows the formats of some two
//! hundred vendors, private key blocks, tokens in headers, cookies and URLs, and values beside names that announce a
//! secret; what has no format is judged by how random it looks. It leaves alone what only resembles one: numbers and
//! settings (`MAX_TOKENS=100`), lookups (`os.getenv("API_KEY")`), placeholders, types, hashes, identifiers.
//!
//! ```
//! use throughline_redact::Redactor;
//!
//! let redactor = Redactor::new();
//! assert_eq!(redactor.redact("DB_PASSWORD=hunter2 MAX_TOKENS=100"), "DB_PASSWORD=[redacted:password] MAX_TOKENS=100");
//! ```
//!
//! Where it draws the line:
//!
//! - A value that names itself (`changeme`, `your-api-key`, `password`, `<token>`, `xxxx`) is a placeholder and stays.
//! - A format that fits to the last character is masked even when it is a vendor's published example.
//! - A word as a password counts where only a value can stand (`DB_PASSWORD=letmein`, between quotes, in a URL), not
//!   without quotes in the middle of a sentence or in code.
//! - A random string counts only beside a word for secrets; a hexadecimal one only as an assigned value. Commits,
//!   digests, UUIDs and the identifiers of messages and calls are facts a summary needs.
//!
//! Keywords are searched for in one pass over the text, and patterns run only where a keyword stands. The work at each
//! is bounded, so time is linear in the length of the text, whatever it holds.

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
