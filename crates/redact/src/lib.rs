//! Secrets in text: found and masked by code.
//!
//! What goes into a summary and what comes out of it passes through a [`Redactor`]. It knows the formats of some two
//! hundred vendors, private key blocks, tokens in headers, cookies and URLs, and values beside names that announce a
//! secret; what has no format is judged by how random it looks. It leaves alone what only resembles one: numbers and
//! settings (`MAX_TOKENS=100`), lookups (`os.getenv("API_KEY")`), placeholders, types, hashes, identifiers.
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

pub use masked::Finding;
pub use redactor::{Redaction, Redactor};
