//! Settings files of other programs: trees that remember where each value stands, and edits that change nothing else.
//!
//! An edit is one replacement in the text. It is only taken if the file then says what was asked for, and the same as before
//! everywhere else; a file that is written in a way for which this fails is not edited at all.

mod json;
mod toml;
mod tree;
mod yaml;

use serde_json::{Map, Value};

use tree::SettingNode;

pub(crate) use tree::{EditRefusal, TextEdit};

/// How a settings file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileFormat {
    /// JSON, with comments and trailing commas where the program allows them.
    Json,
    Toml,
    Yaml,
}

impl FileFormat {
    /// What a file says; an empty file says nothing.
    pub(crate) fn data(self, text: &str) -> Result<Value, EditRefusal> {
        Ok(self.parse(text)?.map_or_else(|| Value::Object(Map::new()), |root| root.data()))
    }

    /// What a file says at a path.
    pub(crate) fn value(self, text: &str, path: &[String]) -> Result<Option<Value>, EditRefusal> {
        Ok(self.parse(text)?.and_then(|root| root.at(path).map(SettingNode::data)))
    }

    /// A value as `data` and `value` give it.
    pub(crate) fn as_data(self, value: &Value) -> Value {
        match self {
            Self::Json | Self::Toml => value.clone(),
            Self::Yaml => yaml::as_data(value),
        }
    }

    /// Whether the section that holds a value holds nothing else.
    pub(crate) fn is_only_entry(self, text: &str, path: &[String]) -> Result<bool, EditRefusal> {
        let root = self.parse(text)?;
        let parents = path.split_last().map_or(path, |(_, parents)| parents);
        Ok(root.and_then(|root| Some(root.at(parents)?.entries().len())) == Some(1))
    }

    /// The text without a passage, if the file then lacks the value at a path and nothing else.
    pub(crate) fn without(self, text: &str, passage: &str, path: &[String]) -> Option<String> {
        let (before, after) = text.split_once(passage).filter(|(_, after)| !after.contains(passage))?;
        let mut wanted = self.data(text).ok()?;
        take(&mut wanted, path)?;
        let rest = [before, after].concat();
        (self.data(&rest).ok()? == wanted).then_some(rest)
    }

    /// The text of the value at a path.
    pub(crate) fn raw(self, text: &str, path: &[String]) -> Result<Option<String>, EditRefusal> {
        let root = self.parse(text)?;
        Ok(root.and_then(|root| Some(text.get(root.at(path)?.span.clone())?.to_owned())))
    }

    /// How many names of a path are there.
    pub(crate) fn depth(self, text: &str, path: &[String]) -> Result<usize, EditRefusal> {
        let root = self.parse(text)?;
        Ok(root.map_or(0, |root| {
            (0..=path.len()).rev().find(|depth| root.at(&path[..*depth]).is_some()).unwrap_or(0)
        }))
    }

    /// Writes a value at a path, with the sections that lead there.
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
        // A value that is replaced keeps its place; one that is new does not touch a comment.
        self.first_that(text, splices, &wanted)
            .filter(|splice| is_there || splice.range.is_empty())
            .ok_or(EditRefusal::Unusual)
    }

    /// Puts a text in the place of a value.
    pub(crate) fn set_raw(self, text: &str, path: &[String], raw: &str) -> Result<TextEdit, EditRefusal> {
        let root = self.parse(text)?.ok_or(EditRefusal::Unusual)?;
        let node = root.at(path).ok_or(EditRefusal::Unusual)?;
        let splice = TextEdit { range: node.span.clone(), text: raw.to_owned() };
        let after = splice.apply(text).ok_or(EditRefusal::Unusual)?;
        let (mut before, mut after) = (root.data(), self.data(&after)?);
        // Whatever the value is now, everything else is as it was.
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

    /// The first replacement after which the file says this.
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

/// Puts a value at a path; `None` where something else than a map is on the way.
fn put(data: &mut Value, path: &[String], value: &Value) -> Option<()> {
    let Some((name, rest)) = path.split_first() else {
        *data = value.clone();
        return Some(());
    };
    put(data.as_object_mut()?.entry(name.clone()).or_insert_with(|| Value::Object(Map::new())), rest, value)
}

/// Takes a value out.
fn take(data: &mut Value, path: &[String]) -> Option<Value> {
    let (name, rest) = path.split_first()?;
    let map = data.as_object_mut()?;
    if rest.is_empty() { map.remove(name) } else { take(map.get_mut(name)?, rest) }
}
