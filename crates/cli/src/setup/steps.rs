//! Writes settings into a file of another program, and removes them again even if the program changed the file since.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::setup::document::{EditRefusal, FileFormat};

/// A value to write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SettingEdit {
    pub(crate) path: Vec<String>,
    pub(crate) value: Value,
}

/// A written value, with the data that is needed to remove it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WrittenSetting {
    pub(crate) path: Vec<String>,
    value: Value,
    /// The number of names of the path that existed before.
    depth: usize,
    /// The source text of the previous value.
    before: Option<String>,
    /// The inserted source text.
    inserted: String,
}

/// A file after settings were removed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Removal {
    pub(crate) text: String,
    /// Values that were changed since they were written; they stay.
    pub(crate) changed: Vec<Vec<String>>,
}

/// Returns the existing values that would be replaced.
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

/// Writes settings. Existing equal values stay as they are, and are not removed later.
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

/// Removes settings, in reverse order.
pub(crate) fn undo(
    format: FileFormat,
    text: &str,
    written: &[WrittenSetting],
) -> Result<Removal, EditRefusal> {
    let mut undone = Removal { text: text.to_owned(), changed: Vec::new() };
    for setting in written.iter().rev() {
        let text = &undone.text;
        match format.value(text, &setting.path)? {
            // The value was already removed.
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
                    // The program has rewritten the file.
                    None => format.remove(text, path)?.apply(text),
                }
            }
        };
        undone.text = after.ok_or(EditRefusal::Unusual)?;
    }
    Ok(undone)
}

/// Returns the outermost section that was written for a value, if it contains nothing else now.
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
