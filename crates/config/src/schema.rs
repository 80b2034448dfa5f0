//! How settings are declared: one line a key, from which struct, shape and reading follow.
//!
//! `section!` turns a list of `name: Type = rule` into a struct and its [`Section`] implementation. The rule
//! carries the type it yields, so a field and its check cannot disagree. To add a key: declare it in
//! `settings.rs` and describe it in `default.yaml`; a test names whatever was forgotten.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::datum::{Datum, FromDatum, Secret};
use crate::kind::{Form, Kind};

/// What stands behind a key.
#[derive(Debug, Clone)]
pub(crate) enum Shape {
    /// A single value.
    Leaf(Kind),
    /// Named members.
    Section(Vec<Member>),
    /// Any names, each with these members, which are all leaves.
    Entries(Vec<Member>),
}

/// A key within a section.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
}

/// Values by their full key.
pub(crate) type Values = BTreeMap<String, Datum>;

/// A struct of settings.
pub(crate) trait Section: Sized {
    /// Its keys, in the order they are shown.
    fn members() -> Vec<Member>;
    /// The struct from resolved values; an error is the key that has none of its kind.
    fn build(path: &str, values: &Values) -> Result<Self, String>;
}

/// A word out of a fixed few.
pub(crate) trait Choice: FromDatum {
    const WORDS: &'static [&'static str];
}

/// What a field may be, and how it is read.
pub(crate) struct Rule<T> {
    pub(crate) shape: Shape,
    pub(crate) build: fn(&str, &Values) -> Result<T, String>,
}

/// The path of a member.
pub(crate) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn leaf<T: FromDatum>(form: Form) -> Rule<T> {
    Rule { shape: Shape::Leaf(Kind { form, optional: false }), build: build_leaf }
}

fn build_leaf<T: FromDatum>(path: &str, values: &Values) -> Result<T, String> {
    T::from_datum(values.get(path).unwrap_or(&Datum::Absent)).ok_or_else(|| path.to_owned())
}

pub(crate) fn switch() -> Rule<bool> {
    leaf(Form::Switch)
}

/// A number of tokens.
pub(crate) fn tokens() -> Rule<u64> {
    leaf(Form::Whole { min: 1, max: 100_000_000 })
}

/// A number of messages or characters.
pub(crate) fn count(min: u64, max: u64) -> Rule<usize> {
    leaf(Form::Whole { min, max })
}

pub(crate) fn number(min: f64, max: f64) -> Rule<f64> {
    leaf(Form::Number { min, max })
}

pub(crate) fn seconds(min: f64, max: f64) -> Rule<Duration> {
    leaf(Form::Seconds { min, max })
}

pub(crate) fn text() -> Rule<String> {
    leaf(Form::Text)
}

pub(crate) fn name() -> Rule<String> {
    leaf(Form::Name)
}

pub(crate) fn address() -> Rule<String> {
    leaf(Form::Address)
}

pub(crate) fn variable() -> Rule<String> {
    leaf(Form::Variable)
}

pub(crate) fn secret() -> Rule<Secret> {
    leaf(Form::Secret)
}

pub(crate) fn choice<T: Choice>() -> Rule<T> {
    leaf(Form::Choice(T::WORDS))
}

/// The same, or null.
pub(crate) fn optional<T: FromDatum>(rule: Rule<T>) -> Rule<Option<T>> {
    let shape = match rule.shape {
        Shape::Leaf(kind) => Shape::Leaf(Kind { optional: true, ..kind }),
        other => other,
    };
    Rule { shape, build: build_leaf }
}

/// A section within a section.
pub(crate) fn nested<S: Section>() -> Rule<S> {
    Rule { shape: Shape::Section(S::members()), build: S::build }
}

/// Any number of named entries of the same members. They start out empty, so every member must do without a
/// value: an optional one, or text.
pub(crate) fn entries<S: Section>() -> Rule<BTreeMap<String, S>> {
    Rule { shape: Shape::Entries(S::members()), build: build_entries }
}

fn build_entries<S: Section>(path: &str, values: &Values) -> Result<BTreeMap<String, S>, String> {
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

/// The name in `prefix` + name + `.member`. Names may hold dots; members never do.
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

        impl $crate::schema::Section for $name {
            fn members() -> Vec<$crate::schema::Member> {
                vec![$( {
                    let rule: $crate::schema::Rule<$type> = $rule;
                    $crate::schema::Member { name: stringify!($field), shape: rule.shape }
                } ),*]
            }

            fn build(path: &str, values: &$crate::schema::Values) -> Result<Self, String> {
                Ok(Self { $( $field: {
                    let rule: $crate::schema::Rule<$type> = $rule;
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
            /// The word it is written as.
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

        impl $crate::schema::Choice for $name {
            const WORDS: &'static [&'static str] = &[$( $word ),*];
        }
    };
}

pub(crate) use {choices, section};
