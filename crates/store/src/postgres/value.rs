//! Values on their way to the server and back.
//!
//! Text columns cannot hold the character U+0000, which titles, names of tools and error texts of other programs may
//! contain. [`stored_text`] replaces it in a way that [`text`] undoes, so that what goes in comes out.

use std::error::Error;

use bytes::BytesMut;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use crate::ids::{Owner, SessionId};

use super::error::{PgError, PgResult};

/// A parameter of a statement.
#[derive(Clone, Debug)]
pub(super) enum SqlValue {
    Int(Option<i64>),
    Bool(bool),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
    Ints(Vec<Option<i64>>),
    Bools(Vec<bool>),
    Texts(Vec<Option<String>>),
    Blobs(Vec<Vec<u8>>),
    OptBlobs(Vec<Option<Vec<u8>>>),
}

impl SqlValue {
    /// The type, sent along so that the server need not be asked for it first.
    pub(super) fn kind(&self) -> Type {
        match self {
            Self::Int(_) => Type::INT8,
            Self::Bool(_) => Type::BOOL,
            Self::Text(_) => Type::TEXT,
            Self::Bytes(_) => Type::BYTEA,
            Self::Ints(_) => Type::INT8_ARRAY,
            Self::Bools(_) => Type::BOOL_ARRAY,
            Self::Texts(_) => Type::TEXT_ARRAY,
            Self::Blobs(_) | Self::OptBlobs(_) => Type::BYTEA_ARRAY,
        }
    }

    /// Several texts.
    pub(super) fn texts<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Self {
        Self::Texts(texts.into_iter().map(|text| Some(stored_text(text.as_ref()))).collect())
    }

    /// Several numbers.
    pub(super) fn ints(numbers: impl IntoIterator<Item = i64>) -> Self {
        Self::Ints(numbers.into_iter().map(Some).collect())
    }
}

impl ToSql for SqlValue {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Int(number) => number.to_sql(kind, out),
            Self::Bool(is) => is.to_sql(kind, out),
            Self::Text(text) => text.to_sql(kind, out),
            Self::Bytes(bytes) => bytes.to_sql(kind, out),
            Self::Ints(numbers) => numbers.to_sql(kind, out),
            Self::Bools(all) => all.to_sql(kind, out),
            Self::Texts(texts) => texts.to_sql(kind, out),
            Self::Blobs(blobs) => blobs.to_sql(kind, out),
            Self::OptBlobs(blobs) => blobs.to_sql(kind, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl From<i64> for SqlValue {
    fn from(number: i64) -> Self {
        Self::Int(Some(number))
    }
}

impl From<Option<i64>> for SqlValue {
    fn from(number: Option<i64>) -> Self {
        Self::Int(number)
    }
}

impl From<u64> for SqlValue {
    fn from(number: u64) -> Self {
        Self::Int(Some(crate::coding::int(number)))
    }
}

impl From<Option<u64>> for SqlValue {
    fn from(number: Option<u64>) -> Self {
        Self::Int(number.map(crate::coding::int))
    }
}

impl From<bool> for SqlValue {
    fn from(is: bool) -> Self {
        Self::Bool(is)
    }
}

impl From<&str> for SqlValue {
    fn from(text: &str) -> Self {
        Self::Text(Some(stored_text(text)))
    }
}

impl From<&String> for SqlValue {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl From<String> for SqlValue {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl From<Option<&str>> for SqlValue {
    fn from(text: Option<&str>) -> Self {
        Self::Text(text.map(stored_text))
    }
}

impl From<&Owner> for SqlValue {
    fn from(owner: &Owner) -> Self {
        owner.as_str().into()
    }
}

impl From<&SessionId> for SqlValue {
    fn from(id: &SessionId) -> Self {
        id.as_str().into()
    }
}

impl From<Vec<u8>> for SqlValue {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(Some(bytes))
    }
}

impl From<Option<Vec<u8>>> for SqlValue {
    fn from(bytes: Option<Vec<u8>>) -> Self {
        Self::Bytes(bytes)
    }
}

/// Parameters of a statement.
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::postgres::value::SqlValue::from($value)),*] };
}
pub(super) use values;

/// Stands before `0` for U+0000 and before `1` for itself. No character: texts hardly ever hold it.
const ESCAPE: char = '\u{fffe}';

/// A text as the server can store it.
pub(super) fn stored_text(text: &str) -> String {
    if !text.contains(['\0', ESCAPE]) {
        return text.to_owned();
    }
    let mut stored = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\0' => stored.extend([ESCAPE, '0']),
            ESCAPE => stored.extend([ESCAPE, '1']),
            other => stored.push(other),
        }
    }
    stored
}

/// The text that was stored so.
fn original_text(stored: String) -> String {
    if !stored.contains(ESCAPE) {
        return stored;
    }
    let mut text = String::with_capacity(stored.len());
    let mut characters = stored.chars();
    while let Some(character) = characters.next() {
        match character {
            ESCAPE => text.push(if characters.next() == Some('0') { '\0' } else { ESCAPE }),
            other => text.push(other),
        }
    }
    text
}

fn column<'r, T: FromSql<'r>>(row: &'r Row, at: usize) -> PgResult<T> {
    row.try_get(at).map_err(|error| PgError::unreadable(format!("column {at} of a row: {error}")))
}

/// A number.
pub(super) fn int(row: &Row, at: usize) -> PgResult<i64> {
    column(row, at)
}

/// A number, where there is one.
pub(super) fn opt_int(row: &Row, at: usize) -> PgResult<Option<i64>> {
    column(row, at)
}

/// A number that counts something.
pub(super) fn count(row: &Row, at: usize) -> PgResult<u64> {
    Ok(crate::coding::count(int(row, at)?))
}

/// The same, where there is one.
pub(super) fn opt_count(row: &Row, at: usize) -> PgResult<Option<u64>> {
    Ok(opt_int(row, at)?.map(crate::coding::count))
}

/// Yes or no.
pub(super) fn flag(row: &Row, at: usize) -> PgResult<bool> {
    column(row, at)
}

/// A text.
pub(super) fn text(row: &Row, at: usize) -> PgResult<String> {
    column(row, at).map(original_text)
}

/// A text, where there is one.
pub(super) fn opt_text(row: &Row, at: usize) -> PgResult<Option<String>> {
    Ok(column::<Option<String>>(row, at)?.map(original_text))
}

/// Bytes.
pub(super) fn bytes(row: &Row, at: usize) -> PgResult<&[u8]> {
    column(row, at)
}

/// Bytes, where there are any.
pub(super) fn opt_bytes(row: &Row, at: usize) -> PgResult<Option<&[u8]>> {
    column(row, at)
}

/// Several numbers.
pub(super) fn ints(row: &Row, at: usize) -> PgResult<Vec<i64>> {
    column(row, at)
}

/// A hash.
pub(super) fn hash(row: &Row, at: usize) -> PgResult<[u8; 32]> {
    let bytes = bytes(row, at)?;
    bytes.try_into().map_err(|_| PgError::unreadable(format!("a hash of {} bytes", bytes.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_texts_hold_no_nul_and_come_back() {
        for text in ["", "plain", "a\0b", "\0", "\u{fffe}", "\u{fffe}0", "\0\u{fffe}1\0", "\u{5c4b}\0"] {
            let stored = stored_text(text);
            assert!(!stored.contains('\0'), "{text:?}");
            assert_eq!(original_text(stored), text);
        }
    }
}
