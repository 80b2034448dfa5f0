//! Changes a settings file as text: one value is written or removed, everything else is unchanged byte for byte.
//!
//! A change is a list of candidate edits, best place first. Each is tried and the result parsed again: only one that gives the new value
//! and leaves every other value and every comment unchanged is returned. So an unusual style of YAML cannot make an edit do harm; at worst
//! it is refused.

use std::sync::Arc;

use crate::datum::Datum;
use crate::keys::{self, Found};
use crate::kind::{Raw, ValueForm, ValueKind};
use crate::placement::{self, Change, Obstacle};
use crate::problem::{
    ConfigError, ConfigErrorKind, ConfigErrors, ValueOrigin, Warning, WarningKind, show_key,
};
use crate::render;
use crate::schema::join;
use crate::yaml::{self, Data, Document, NodeId, Style, YamlNode};

/// A settings file being changed.
#[derive(Debug, Clone)]
pub struct Editor {
    name: Arc<str>,
    text: String,
    document: Document,
}

/// The outcome of a change.
#[derive(Debug, Clone, PartialEq)]
pub struct Edit {
    /// The whole file after it.
    pub text: String,
    /// The key that was changed, by its present name.
    pub key: String,
    /// Whether the text changed.
    pub is_changed: bool,
    /// Warnings, such as an old name.
    pub warnings: Vec<Warning>,
}

/// The required result of a change.
enum Goal<'a> {
    Value(&'a Datum, ValueKind),
    Gone,
}

impl Editor {
    /// Starts from the bytes of a file, which must be YAML; empty for a file that does not exist yet. Values may be invalid, because an
    /// editor is used to correct them.
    pub fn new(name: impl Into<String>, bytes: &[u8]) -> Result<Self, ConfigErrors> {
        let name: Arc<str> = name.into().into();
        let refused = |refusals: Vec<yaml::YamlRefusal>| ConfigErrors {
            errors: refusals.into_iter().map(|refusal| ConfigError::refusal(&name, refusal)).collect(),
            warnings: Vec::new(),
        };
        let text = yaml::decode(bytes).map_err(|refusal| refused(vec![refusal]))?.to_owned();
        let document = yaml::parse(&text).map_err(refused)?;
        if let Some(root) = document.root()
            && !root.is_null()
            && !matches!(root.data, Data::Mapping { .. })
        {
            let origin = ValueOrigin::File { name: Arc::clone(&name), line: Some(root.line) };
            let kind = ConfigErrorKind::NotAMapping { found: root.describe().to_owned() };
            return Err(ConfigError::new(origin, kind).into());
        }
        Ok(Self { name, text, document })
    }

    /// Writes a value, checked first, and creates the sections it needs.
    pub fn set(&self, key: &str, value: &str) -> Result<Edit, ConfigErrors> {
        let (key, warnings) = self.present_name(key);
        let (path, kind) = match keys::find(&key) {
            Some(Found::Value { path, kind }) => (path, kind),
            Some(Found::Entries { members, .. }) => {
                let members = members.iter().map(|member| join(&join(&key, "NAME"), member.name)).collect();
                return Err(bare(ConfigErrorKind::NotOneSetting { key, members }));
            }
            Some(Found::Entry { members, .. }) => {
                let members = members.iter().map(|member| join(&key, member.name)).collect();
                return Err(bare(ConfigErrorKind::NotOneSetting { key: show_key(&key), members }));
            }
            Some(Found::Section { keys }) => {
                return Err(bare(ConfigErrorKind::NotOneSetting { key, members: keys }));
            }
            None => return Err(bare(keys::unknown(&key))),
        };
        let datum = check(&key, kind, value)?;
        let path = self.section_as_value(&key).unwrap_or(path);
        let rendered = |previous: Option<Style>| render::scalar(&datum, value, previous);
        let changes = placement::locate(&self.document, &path)
            .and_then(|place| placement::write(&self.text, &self.document, &place, &path, &rendered))
            .map_err(|obstacle| self.cannot_edit(&key, obstacle))?;
        let text = self.first_good(&path, changes, &Goal::Value(&datum, kind), &key)?;
        Ok(Edit { is_changed: text != self.text, text, key, warnings })
    }

    /// Removes a value, an entry of a table or a whole table, under all its names. Comments stay.
    pub fn unset(&self, key: &str) -> Result<Edit, ConfigErrors> {
        let (key, warnings) = self.present_name(key);
        let path = match keys::find(&key) {
            Some(Found::Value { path, .. } | Found::Entries { path, .. } | Found::Entry { path, .. }) => path,
            Some(Found::Section { keys }) => {
                return Err(bare(ConfigErrorKind::NotOneSetting { key, members: keys }));
            }
            None => return Err(bare(keys::unknown(&key))),
        };
        let mut editor = self.clone();
        let as_value = self.section_as_value(&key);
        for path in std::iter::once(path.clone()).chain(keys::old_paths(&path)).chain(as_value) {
            let place = match placement::locate(&editor.document, &path) {
                Ok(place) if place.rest == 0 => place,
                // Not there.
                Ok(_) | Err(Obstacle::NoSection { .. }) => continue,
                Err(obstacle) => return Err(self.cannot_edit(&key, obstacle)),
            };
            let changes = placement::remove(&editor.text, &editor.document, &place);
            let text = editor.first_good(&path, changes, &Goal::Gone, &key)?;
            editor = Self::new(&*self.name, text.as_bytes())?;
        }
        Ok(Edit { is_changed: editor.text != self.text, text: editor.text, key, warnings })
    }

    fn present_name(&self, key: &str) -> (String, Vec<Warning>) {
        let key = key.trim();
        match keys::renamed(key) {
            Some(new) => {
                let kind = WarningKind::OldName { old: key.to_owned(), new: new.clone() };
                let origin = ValueOrigin::File { name: Arc::clone(&self.name), line: None };
                (new, vec![Warning { origin, kind }])
            }
            None => (key.to_owned(), Vec::new()),
        }
    }

    /// Returns the path of a key that is written as the value of its section, as in `model: gpt-5`.
    fn section_as_value(&self, key: &str) -> Option<Vec<String>> {
        let (section, _) = key.split_once('.')?;
        let path = vec![section.to_owned()];
        let node = find_node(&self.document, &path)?;
        let is_value = matches!(node.data, Data::Scalar { .. }) && !node.is_null();
        (is_value && keys::section_as_value(section) == Some(key)).then_some(path)
    }

    /// Returns the first change that has exactly the required result.
    fn first_good(
        &self,
        path: &[String],
        changes: Vec<Change>,
        goal: &Goal<'_>,
        key: &str,
    ) -> Result<String, ConfigErrors> {
        let good = changes
            .iter()
            .filter_map(|change| change.apply(&self.text))
            .find(|text| yaml::parse(text).is_ok_and(|document| self.is_only_change(&document, path, goal)));
        good.ok_or_else(|| self.cannot_edit(key, Obstacle::Style))
    }

    fn is_only_change(&self, after: &Document, path: &[String], goal: &Goal<'_>) -> bool {
        let target = find_node(after, path);
        let is_reached = match goal {
            Goal::Gone => target.is_none(),
            Goal::Value(datum, kind) => {
                target.and_then(|node| read(node, *kind)).is_some_and(|found| found == **datum)
            }
        };
        let comments = |document: &Document| {
            let mut texts: Vec<String> =
                document.comments.iter().map(|comment| comment.text.clone()).collect();
            texts.sort();
            texts
        };
        is_reached
            && comments(&self.document) == comments(after)
            && others(&self.document, path) == others(after, path)
    }

    fn cannot_edit(&self, key: &str, obstacle: Obstacle) -> ConfigErrors {
        let (line, reason) = match obstacle {
            Obstacle::Alias { line } => (Some(line), "an alias stands there"),
            Obstacle::Anchor { line } => (Some(line), "an anchor makes it count elsewhere too"),
            Obstacle::NoSection { line } => (Some(line), "a single value stands where a section is needed"),
            Obstacle::Collection { line } => (Some(line), "a list or a section stands there"),
            Obstacle::Style => (None, "it is written in an unusual way"),
        };
        let kind = ConfigErrorKind::CannotEdit { key: show_key(key), reason: reason.to_owned() };
        ConfigError::new(ValueOrigin::File { name: Arc::clone(&self.name), line }, kind).into()
    }
}

fn bare(kind: ConfigErrorKind) -> ConfigErrors {
    ConfigError { origin: None, kind }.into()
}

/// The value of a variable is known only when the file is read, so text with a variable is checked as text.
fn checked_as(kind: ValueKind, text: &str) -> ValueKind {
    match kind.form {
        ValueForm::Name | ValueForm::Address | ValueForm::Database | ValueForm::Variable
            if text.contains("${") =>
        {
            ValueKind { form: ValueForm::Text, ..kind }
        }
        _ => kind,
    }
}

fn check(key: &str, kind: ValueKind, value: &str) -> Result<Datum, ConfigErrors> {
    checked_as(kind, value)
        .read(Raw::typed(value))
        .map_err(|mismatch| bare(ConfigErrorKind::bad_value(key, mismatch)))
}

fn read(node: &YamlNode, kind: ValueKind) -> Option<Datum> {
    let Data::Scalar { text, style } = &node.data else { return None };
    let raw = Raw { text, is_null: node.is_null(), is_quoted: *style != Style::Plain };
    checked_as(kind, text).read(raw).ok()
}

fn find_node<'a>(document: &'a Document, path: &[String]) -> Option<&'a YamlNode> {
    let mut node = document.root()?;
    for name in path {
        let Data::Mapping { entries, .. } = &node.data else { return None };
        let entry = entries.iter().find(|entry| entry.key == *name)?;
        node = document.node(entry.value)?;
    }
    Some(node)
}

/// Returns everything in a document except one path, as a list for comparison.
fn others(document: &Document, path: &[String]) -> Vec<(Vec<String>, String)> {
    let mut found = Vec::new();
    if let Some(root) = document.root() {
        list(document, root, &mut Vec::new(), path, &mut found);
    }
    found
}

fn list(
    document: &Document,
    node: &YamlNode,
    at: &mut Vec<String>,
    except: &[String],
    found: &mut Vec<(Vec<String>, String)>,
) {
    if at == except {
        return;
    }
    let mut child = |name: String, id: NodeId, at: &mut Vec<String>| {
        if let Some(node) = document.node(id) {
            at.push(name);
            list(document, node, at, except, found);
            at.pop();
        }
    };
    match &node.data {
        Data::Mapping { entries, .. } if !entries.is_empty() => {
            for entry in entries {
                child(entry.key.clone(), entry.value, at);
            }
        }
        Data::Sequence { items } if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                child(format!("[{index}]"), *item, at);
            }
        }
        // An empty section on the way to the key may be filled or emptied.
        _ if except.starts_with(at) => {}
        Data::Alias { name, .. } => found.push((at.clone(), name.clone())),
        Data::Scalar { text, style } => {
            let style = if *style == Style::Plain { "plain" } else { "text" };
            found.push((at.clone(), format!("{style} {text}")));
        }
        Data::Mapping { .. } => found.push((at.clone(), "{}".to_owned())),
        Data::Sequence { .. } => found.push((at.clone(), "[]".to_owned())),
    }
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;
