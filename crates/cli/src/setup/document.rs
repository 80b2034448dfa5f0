//! Settings files of other programs: parsed into trees with the position of each value, and edited without other changes.
//!
//! An edit replaces one part of the text. It is applied only if the file then has the intended value and is otherwise
//! unchanged. A file in a style for which this fails is not edited at all.

mod json;
mod toml;
mod tree;
mod yaml;

use serde_json::{Map, Value};

use tree::SettingNode;

pub(crate) use tree::{EditRefusal, TextEdit};

/// The format of a settings file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileFormat {
    /// JSON, with comments and trailing commas if the program allows them.
    Json,
    Toml,
    Yaml,
}

impl FileFormat {
    /// The data of a file; an empty object for an empty file.
    pub(crate) fn data(self, text: &str) -> Result<Value, EditRefusal> {
        Ok(self.parse(text)?.map_or_else(|| Value::Object(Map::new()), |root| root.data()))
    }

    /// The value at a path.
    pub(crate) fn value(self, text: &str, path: &[String]) -> Result<Option<Value>, EditRefusal> {
        Ok(self.parse(text)?.and_then(|root| root.at(path).map(SettingNode::data)))
    }

    /// Converts a value to the form of `data` and `value`.
    pub(crate) fn as_data(self, value: &Value) -> Value {
        match self {
            Self::Json | Self::Toml => value.clone(),
            Self::Yaml => yaml::as_data(value),
        }
    }

    /// Whether the value at a path is the only one in its section.
    pub(crate) fn is_only_entry(self, text: &str, path: &[String]) -> Result<bool, EditRefusal> {
        let root = self.parse(text)?;
        let parents = path.split_last().map_or(path, |(_, parents)| parents);
        Ok(root.and_then(|root| Some(root.at(parents)?.entries().len())) == Some(1))
    }

    /// Removes a passage from the text, if the file then lacks the value at a path and nothing else.
    pub(crate) fn without(self, text: &str, passage: &str, path: &[String]) -> Option<String> {
        let (before, after) = text.split_once(passage).filter(|(_, after)| !after.contains(passage))?;
        let mut wanted = self.data(text).ok()?;
        take(&mut wanted, path)?;
        let rest = [before, after].concat();
        (self.data(&rest).ok()? == wanted).then_some(rest)
    }

    /// The source text of the value at a path.
    pub(crate) fn raw(self, text: &str, path: &[String]) -> Result<Option<String>, EditRefusal> {
        let root = self.parse(text)?;
        Ok(root.and_then(|root| Some(text.get(root.at(path)?.span.clone())?.to_owned())))
    }

    /// The number of names of a path that exist.
    pub(crate) fn depth(self, text: &str, path: &[String]) -> Result<usize, EditRefusal> {
        let root = self.parse(text)?;
        Ok(root.map_or(0, |root| {
            (0..=path.len()).rev().find(|depth| root.at(&path[..*depth]).is_some()).unwrap_or(0)
        }))
    }

    /// Writes a value at a path, with the missing sections.
    pub(crate) fn set(self, text: &str, path: &[String], value: &Value) -> Result<TextEdit, EditRefusal> {
        let root = self.parse(text)?;
        let mut wanted = root.as_ref().map_or_else(|| Value::Object(Map::new()), SettingNode::data);
        let is_there = root.as_ref().and_then(|root| root.at(path)).is_some();
        put(&mut wanted, path, &self.as_data(value)).ok_or(EditRefusal::Unusual)?;
        let splices = match self {
            Self::Json => json::set(text, root.as_ref(), path, value),
            Self::Toml => toml::set(text, root.as_ref(), path, value),
            Self::Yaml => yaml::set(text, root.as_ref(), path, value),
        };
        // A replaced value keeps its place; a new one must not touch a comment.
        self.first_that(text, splices, &wanted)
            .filter(|splice| is_there || splice.range.is_empty())
            .ok_or(EditRefusal::Unusual)
    }

    /// Replaces a value by a source text.
    pub(crate) fn set_raw(self, text: &str, path: &[String], raw: &str) -> Result<TextEdit, EditRefusal> {
        let root = self.parse(text)?.ok_or(EditRefusal::Unusual)?;
        let node = root.at(path).ok_or(EditRefusal::Unusual)?;
        let splice = TextEdit { range: node.span.clone(), text: raw.to_owned() };
        let after = splice.apply(text).ok_or(EditRefusal::Unusual)?;
        let (mut before, mut after) = (root.data(), self.data(&after)?);
        // Everything except this value must be unchanged.
        (take(&mut before, path).is_some() && take(&mut after, path).is_some() && before == after)
            .then_some(splice)
            .ok_or(EditRefusal::Unusual)
    }

    /// Removes a value and its key.
    pub(crate) fn remove(self, text: &str, path: &[String]) -> Result<TextEdit, EditRefusal> {
        let root = self.parse(text)?.ok_or(EditRefusal::Unusual)?;
        let mut wanted = root.data();
        take(&mut wanted, path).ok_or(EditRefusal::Unusual)?;
        let splices = match self {
            Self::Json => json::remove(text, &root, path),
            Self::Toml => toml::remove(text, &root, path),
            Self::Yaml => yaml::remove(text, &root, path),
        };
        self.first_that(text, splices, &wanted).ok_or(EditRefusal::Unusual)
    }

    /// Returns the first edit after which the file has the wanted data.
    fn first_that(self, text: &str, splices: Vec<TextEdit>, wanted: &Value) -> Option<TextEdit> {
        splices.into_iter().find(|splice| {
            splice.apply(text).is_some_and(|after| self.data(&after).is_ok_and(|data| data == *wanted))
        })
    }

    fn parse(self, text: &str) -> Result<Option<SettingNode>, EditRefusal> {
        match self {
            Self::Json => json::parse(text),
            Self::Toml => toml::parse(text),
            Self::Yaml => yaml::parse(text),
        }
    }
}

/// Sets the value at a path; `None` if the path passes through a value that is not a map.
fn put(data: &mut Value, path: &[String], value: &Value) -> Option<()> {
    let Some((name, rest)) = path.split_first() else {
        *data = value.clone();
        return Some(());
    };
    put(data.as_object_mut()?.entry(name.clone()).or_insert_with(|| Value::Object(Map::new())), rest, value)
}

/// Removes the value at a path.
fn take(data: &mut Value, path: &[String]) -> Option<Value> {
    let (name, rest) = path.split_first()?;
    let map = data.as_object_mut()?;
    if rest.is_empty() { map.remove(name) } else { take(map.get_mut(name)?, rest) }
}
