//! Writes settings into a file of another program, and removes them again even if the program changed the file since.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::setup::document::{EditRefusal, FileFormat};

/// A value to be written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SettingEdit {
    pub(crate) path: Vec<String>,
    pub(crate) value: Value,
}

/// A value that was written, with what is needed to take it out again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WrittenSetting {
    pub(crate) path: Vec<String>,
    value: Value,
    /// How many names of the path were there before.
    depth: usize,
    /// The text of the value that was there before.
    before: Option<String>,
    /// The text that was written.
    inserted: String,
}

/// A file after settings were taken out of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Removal {
    pub(crate) text: String,
    /// Values that somebody changed since; they stay.
    pub(crate) changed: Vec<Vec<String>>,
}

/// Values that are there already and would be replaced by others.
pub(crate) fn replaced(
    format: FileFormat,
    text: &str,
    edits: &[SettingEdit],
) -> Result<Vec<(Vec<String>, String)>, EditRefusal> {
    let mut found = Vec::new();
    for edit in edits {
        let there = format.value(text, &edit.path)?;
        if there.is_some_and(|there| there != format.as_data(&edit.value)) {
            found.push((edit.path.clone(), format.raw(text, &edit.path)?.unwrap_or_default()));
        }
    }
    Ok(found)
}

/// Writes settings. Those that are there already stay as they are and are nobody's to take out.
pub(crate) fn apply(
    format: FileFormat,
    text: &str,
    edits: &[SettingEdit],
) -> Result<(String, Vec<WrittenSetting>), EditRefusal> {
    let (mut text, mut written) = (text.to_owned(), Vec::new());
    for edit in edits {
        if format.value(&text, &edit.path)? == Some(format.as_data(&edit.value)) {
            continue;
        }
        let splice = format.set(&text, &edit.path, &edit.value)?;
        let depth = format.depth(&text, &edit.path)?;
        let before = if depth == edit.path.len() { format.raw(&text, &edit.path)? } else { None };
        let after = splice.apply(&text).ok_or(EditRefusal::Unusual)?;
        written.push(WrittenSetting {
            path: edit.path.clone(),
            value: edit.value.clone(),
            depth,
            before,
            inserted: splice.text,
        });
        text = after;
    }
    Ok((text, written))
}

/// Takes settings out again, the last first.
pub(crate) fn undo(
    format: FileFormat,
    text: &str,
    written: &[WrittenSetting],
) -> Result<Removal, EditRefusal> {
    let mut undone = Removal { text: text.to_owned(), changed: Vec::new() };
    for setting in written.iter().rev() {
        let text = &undone.text;
        match format.value(text, &setting.path)? {
            // Somebody removed it.
            None => continue,
            Some(value) if value != format.as_data(&setting.value) => {
                undone.changed.push(setting.path.clone());
                continue;
            }
            Some(_) => {}
        }
        let after = match &setting.before {
            Some(raw) => format.set_raw(text, &setting.path, raw)?.apply(text),
            None => {
                let path = emptied(format, text, setting)?;
                match format.without(text, &setting.inserted, path) {
                    Some(after) => Some(after),
                    // The program has written the file anew.
                    None => format.remove(text, path)?.apply(text),
                }
            }
        };
        undone.text = after.ok_or(EditRefusal::Unusual)?;
    }
    Ok(undone)
}

/// What goes with a value: the sections that were written for it, if nothing else is in them now.
fn emptied<'a>(
    format: FileFormat,
    text: &str,
    setting: &'a WrittenSetting,
) -> Result<&'a [String], EditRefusal> {
    let mut path = setting.path.as_slice();
    while path.len() > setting.depth + 1 && format.is_only_entry(text, path)? {
        path = &path[..path.len() - 1];
    }
    Ok(path)
}

#[cfg(test)]
#[path = "steps_tests.rs"]
mod tests;
