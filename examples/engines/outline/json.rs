//! JSON, as far as an engine needs it: values read from a line, and written into one.

use std::fmt;
use std::iter::Peekable;
use std::str::Chars;

#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    /// As it was written.
    Number(String),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

/// Deeper than any message; a list of lists of lists is no reason to run out of stack.
const MOST_DEPTH: usize = 200;

impl Json {
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = text.chars().peekable();
        let value = value(&mut rest, 0)?;
        skip_space(&mut rest);
        rest.next().is_none().then_some(value)
    }

    pub fn number(number: impl fmt::Display) -> Self {
        Self::Number(number.to_string())
    }

    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub fn object<const N: usize>(members: [(&str, Json); N]) -> Self {
        Self::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// The member of this name; nothing where there is none.
    pub fn get(&self, name: &str) -> &Json {
        match self {
            Self::Object(members) => {
                members.iter().find(|(own, _)| own == name).map_or(&Json::Null, |(_, value)| value)
            }
            _ => &Json::Null,
        }
    }

    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub fn as_count(&self) -> Option<usize> {
        if let Self::Number(number) = self { number.parse().ok() } else { None }
    }

    pub fn as_list(&self) -> &[Json] {
        if let Self::List(items) = self { items } else { &[] }
    }

    pub fn is_true(&self) -> bool {
        *self == Self::Bool(true)
    }
}

fn skip_space(rest: &mut Peekable<Chars<'_>>) {
    while rest.next_if(|next| next.is_ascii_whitespace()).is_some() {}
}

fn value(rest: &mut Peekable<Chars<'_>>, depth: usize) -> Option<Json> {
    if depth > MOST_DEPTH {
        return None;
    }
    skip_space(rest);
    match rest.peek()? {
        '{' => list(rest, '}', |rest| {
            skip_space(rest);
            let name = string(rest)?;
            skip_space(rest);
            rest.next_if_eq(&':')?;
            Some((name, value(rest, depth + 1)?))
        })
        .map(Json::Object),
        '[' => list(rest, ']', |rest| value(rest, depth + 1)).map(Json::List),
        '"' => string(rest).map(Json::Text),
        _ => {
            let mut word = String::new();
            while let Some(next) = rest.next_if(|next| next.is_ascii_alphanumeric() || "+-.".contains(*next))
            {
                word.push(next);
            }
            match word.as_str() {
                "null" => Some(Json::Null),
                "true" => Some(Json::Bool(true)),
                "false" => Some(Json::Bool(false)),
                _ => word.parse::<f64>().ok().map(|_| Json::Number(word)),
            }
        }
    }
}

fn list<T>(
    rest: &mut Peekable<Chars<'_>>,
    end: char,
    mut item: impl FnMut(&mut Peekable<Chars<'_>>) -> Option<T>,
) -> Option<Vec<T>> {
    rest.next();
    let mut items = Vec::new();
    skip_space(rest);
    while rest.next_if_eq(&end).is_none() {
        if !items.is_empty() {
            rest.next_if_eq(&',')?;
        }
        items.push(item(rest)?);
        skip_space(rest);
    }
    Some(items)
}

fn string(rest: &mut Peekable<Chars<'_>>) -> Option<String> {
    rest.next_if_eq(&'"')?;
    let mut text = String::new();
    loop {
        match rest.next()? {
            '"' => return Some(text),
            '\\' => match rest.next()? {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                'r' => text.push('\r'),
                'b' => text.push('\u{8}'),
                'f' => text.push('\u{c}'),
                'u' => {
                    let first = unit(rest)?;
                    let mut units = vec![first];
                    if (0xD800..0xDC00).contains(&first) && rest.next_if_eq(&'\\').is_some() {
                        rest.next_if_eq(&'u')?;
                        units.push(unit(rest)?);
                    }
                    text.push_str(&String::from_utf16_lossy(&units));
                }
                other => text.push(other),
            },
            other => text.push(other),
        }
    }
}

fn unit(rest: &mut Peekable<Chars<'_>>) -> Option<u16> {
    let digits: String = rest.by_ref().take(4).collect();
    u16::from_str_radix(&digits, 16).ok()
}

impl fmt::Display for Json {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => out.write_str("null"),
            Self::Bool(value) => write!(out, "{value}"),
            Self::Number(number) => out.write_str(number),
            Self::Text(text) => write_text(out, text),
            Self::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    write!(out, "{}{item}", if index == 0 { '[' } else { ',' })?;
                }
                out.write_str(if items.is_empty() { "[]" } else { "]" })
            }
            Self::Object(members) => {
                for (index, (name, value)) in members.iter().enumerate() {
                    out.write_str(if index == 0 { "{" } else { "," })?;
                    write_text(out, name)?;
                    write!(out, ":{value}")?;
                }
                out.write_str(if members.is_empty() { "{}" } else { "}" })
            }
        }
    }
}

fn write_text(out: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    out.write_str("\"")?;
    for character in text.chars() {
        match character {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            control if control < ' ' => write!(out, "\\u{:04x}", u32::from(control))?,
            other => write!(out, "{other}")?,
        }
    }
    out.write_str("\"")
}
