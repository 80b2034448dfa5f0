//! The declaration of settings: one line per key, from which struct, schema and parsing follow.
//!
//! `section!` turns a list of `name: Type = rule` into a struct and its [`SchemaSection`] implementation. The rule has the type of its
//! value, so a field and its check cannot disagree. To add a key: declare it in `settings.rs` and describe it in `default.yaml`; a test
//! reports what is missing.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::datum::{Datum, FromDatum, Secret};
use crate::kind::{ValueForm, ValueKind};

/// The shape of a key's value.
#[derive(Debug, Clone)]
pub(crate) enum KeyShape {
    /// A single value.
    Leaf(ValueKind),
    /// Named members.
    Section(Vec<SchemaMember>),
    /// Any names, each with these members, which are all leaves.
    Entries(Vec<SchemaMember>),
}

/// A key within a section.
#[derive(Debug, Clone)]
pub(crate) struct SchemaMember {
    pub(crate) name: &'static str,
    pub(crate) shape: KeyShape,
}

/// Values by their full key.
pub(crate) type Values = BTreeMap<String, Datum>;

/// A struct of settings.
pub(crate) trait SchemaSection: Sized {
    /// Returns its keys, in display order.
    fn members() -> Vec<SchemaMember>;
    /// Builds the struct from resolved values; the error is the key without a valid value.
    fn build(path: &str, values: &Values) -> Result<Self, String>;
}

/// A fixed set of words.
pub(crate) trait AllowedWords: FromDatum {
    const WORDS: &'static [&'static str];
}

/// The kind of a field, and how it is parsed.
pub(crate) struct ValueRule<T> {
    pub(crate) shape: KeyShape,
    pub(crate) build: fn(&str, &Values) -> Result<T, String>,
}

/// The path of a member.
pub(crate) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn leaf<T: FromDatum>(form: ValueForm) -> ValueRule<T> {
    ValueRule { shape: KeyShape::Leaf(ValueKind { form, optional: false }), build: build_leaf }
}

fn build_leaf<T: FromDatum>(path: &str, values: &Values) -> Result<T, String> {
    T::from_datum(values.get(path).unwrap_or(&Datum::Absent)).ok_or_else(|| path.to_owned())
}

pub(crate) fn switch() -> ValueRule<bool> {
    leaf(ValueForm::Switch)
}

/// A number of tokens.
pub(crate) fn tokens() -> ValueRule<u64> {
    leaf(ValueForm::Whole { min: 1, max: 100_000_000 })
}

/// A number of days.
pub(crate) fn days() -> ValueRule<u64> {
    leaf(ValueForm::Whole { min: 1, max: 36_500 })
}

/// A number of messages or characters.
pub(crate) fn count(min: u64, max: u64) -> ValueRule<usize> {
    leaf(ValueForm::Whole { min, max })
}

pub(crate) fn number(min: f64, max: f64) -> ValueRule<f64> {
    leaf(ValueForm::Number { min, max })
}

pub(crate) fn seconds(min: f64, max: f64) -> ValueRule<Duration> {
    leaf(ValueForm::Seconds { min, max })
}

pub(crate) fn text() -> ValueRule<String> {
    leaf(ValueForm::Text)
}

pub(crate) fn name() -> ValueRule<String> {
    leaf(ValueForm::Name)
}

pub(crate) fn address() -> ValueRule<String> {
    leaf(ValueForm::Address)
}

/// The address of a database, whose password is not shown.
pub(crate) fn database() -> ValueRule<String> {
    leaf(ValueForm::Database)
}

pub(crate) fn variable() -> ValueRule<String> {
    leaf(ValueForm::Variable)
}

pub(crate) fn secret() -> ValueRule<Secret> {
    leaf(ValueForm::Secret)
}

pub(crate) fn choice<T: AllowedWords>() -> ValueRule<T> {
    leaf(ValueForm::Choice(T::WORDS))
}

/// The same, or null.
pub(crate) fn optional<T: FromDatum>(rule: ValueRule<T>) -> ValueRule<Option<T>> {
    let shape = match rule.shape {
        KeyShape::Leaf(kind) => KeyShape::Leaf(ValueKind { optional: true, ..kind }),
        other => other,
    };
    ValueRule { shape, build: build_leaf }
}

/// A section within a section.
pub(crate) fn nested<S: SchemaSection>() -> ValueRule<S> {
    ValueRule { shape: KeyShape::Section(S::members()), build: S::build }
}

/// Any number of named entries with the same members. They are initially empty, so every member must allow an absent value: an optional
/// one, or text.
pub(crate) fn entries<S: SchemaSection>() -> ValueRule<BTreeMap<String, S>> {
    ValueRule { shape: KeyShape::Entries(S::members()), build: build_entries }
}

fn build_entries<S: SchemaSection>(path: &str, values: &Values) -> Result<BTreeMap<String, S>, String> {
    let prefix = join(path, "");
    let mut built = BTreeMap::new();
    for key in values.range(prefix.clone()..).map(|(key, _)| key).take_while(|key| key.starts_with(&prefix)) {
        if let Some(name) = entry_name(key, &prefix)
            && !built.contains_key(name)
        {
            built.insert(name.to_owned(), S::build(&join(path, name), values)?);
        }
    }
    Ok(built)
}

/// Returns the name in `prefix` + name + `.member`. Names may contain dots; members never do.
pub(crate) fn entry_name<'a>(key: &'a str, prefix: &str) -> Option<&'a str> {
    key.strip_prefix(prefix)?.rsplit_once('.').map(|(name, _)| name)
}

/// Declares a struct of settings.
macro_rules! section {
    ($(#[$about:meta])* $name:ident { $( $(#[$field_about:meta])* $field:ident : $type:ty = $rule:expr ),* $(,)? }) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $( $(#[$field_about])* pub $field: $type, )*
        }

        impl $crate::schema::SchemaSection for $name {
            fn members() -> Vec<$crate::schema::SchemaMember> {
                vec![$( {
                    let rule: $crate::schema::ValueRule<$type> = $rule;
                    $crate::schema::SchemaMember { name: stringify!($field), shape: rule.shape }
                } ),*]
            }

            fn build(path: &str, values: &$crate::schema::Values) -> Result<Self, String> {
                Ok(Self { $( $field: {
                    let rule: $crate::schema::ValueRule<$type> = $rule;
                    (rule.build)(&$crate::schema::join(path, stringify!($field)), values)?
                } ),* })
            }
        }
    };
}

/// Declares an enum whose variants are written as words.
macro_rules! choices {
    ($(#[$about:meta])* $name:ident { $( $(#[$variant_about:meta])* $variant:ident = $word:literal ),* $(,)? }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $( $(#[$variant_about])* $variant, )*
        }

        impl $name {
            /// Returns the word for it.
            pub fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $word, )* }
            }
        }

        impl $crate::datum::FromDatum for $name {
            fn from_datum(datum: &$crate::datum::Datum) -> Option<Self> {
                match datum {
                    $( $crate::datum::Datum::Text(word) if word == $word => Some(Self::$variant), )*
                    _ => None,
                }
            }
        }

        impl $crate::schema::AllowedWords for $name {
            const WORDS: &'static [&'static str] = &[$( $word ),*];
        }
    };
}

pub(crate) use {choices, section};
