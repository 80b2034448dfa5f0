//! The changes that `setup` will make to the files of a client: computed and shown first, then applied together.

use std::path::{Path, PathBuf};

use crate::app::App;
use crate::error::{CliError, Exit, io_words, path_words};
use crate::files::write_atomic;
use crate::setup::document::{EditRefusal, FileFormat};
use crate::setup::receipt::{Receipt, WrittenFile, format_word};
use crate::setup::steps::{self, SettingEdit};
use crate::ui::text::on_one_line;

/// The number of unchanged lines shown around a change.
const DIFF_CONTEXT: usize = 2;

/// The intended content of a file.
pub(crate) struct FilePlan {
    path: PathBuf,
    wanted: WantedContent,
}

enum WantedContent {
    Settings(FileFormat, Vec<SettingEdit>),
    Whole(String),
}

impl FilePlan {
    pub(crate) fn settings(path: PathBuf, format: FileFormat, edits: Vec<SettingEdit>) -> Self {
        Self { path, wanted: WantedContent::Settings(format, edits) }
    }

    /// A file that is entirely ours.
    pub(crate) fn whole(path: PathBuf, text: String) -> Self {
        Self { path, wanted: WantedContent::Whole(text) }
    }
}

/// A file with its current and its new text.
struct FileChange {
    path: PathBuf,
    now: Option<String>,
    then: Option<String>,
}

/// The changes to the files of one client, and the receipt that is stored afterwards.
pub(crate) struct SetupPlan {
    name: String,
    changes: Vec<FileChange>,
    receipt: Option<Receipt>,
    /// Existing values of others that are replaced: file, path and text.
    replaced: Vec<(PathBuf, Vec<String>, String)>,
}

fn read(path: &Path) -> Result<Option<String>, CliError> {
    match std::fs::read(path) {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| {
            CliError::new(Exit::BadInput, format!("{} is not text in UTF-8", path_words(path)))
                .because("nothing was changed")
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CliError::new(Exit::InputUnreadable, format!("cannot read {}", path_words(path)))
            .because(io_words(&error))),
    }
}

fn refused(path: &Path, refusal: &EditRefusal) -> CliError {
    let failure = match refusal {
        EditRefusal::Invalid(why) => {
            CliError::new(Exit::BadInput, format!("{} is invalid", path_words(path)))
                .because(on_one_line(why))
                .hint("correct it, then run this again")
        }
        EditRefusal::Unusual => {
            CliError::new(Exit::BadInput, format!("{} cannot be edited", path_words(path)))
                .because(
                    "it is written in a way in which a setting cannot be changed without touching others",
                )
                .hint("`throughline serve --show CLIENT` says what to write by hand")
        }
    };
    failure.because("nothing was changed")
}

/// Removes from a file what an earlier `setup` wrote; the text is `None` if the file is removed.
fn without(file: &WrittenFile, now: Option<&str>) -> Result<(Option<String>, Vec<Vec<String>>), CliError> {
    let Some(now) = now else { return Ok((None, Vec::new())) };
    if now == file.after {
        return Ok((file.before.clone(), Vec::new()));
    }
    // A file of ours that was changed since is left alone.
    let Some(format) = file.format() else { return Ok((Some(now.to_owned()), Vec::new())) };
    let undone = steps::undo(format, now, &file.settings).map_err(|refusal| refused(&file.path, &refusal))?;
    let is_empty = file.before.is_none()
        && format
            .data(&undone.text)
            .is_ok_and(|data| data.as_object().is_some_and(serde_json::Map::is_empty))
        && undone.text.trim().trim_matches(['{', '}']).trim().is_empty();
    Ok((Some(undone.text).filter(|_| !is_empty), undone.changed))
}

impl SetupPlan {
    /// Computes the changes after which the files have the intended content.
    pub(crate) fn of(name: &str, files: Vec<FilePlan>, app: &App) -> Result<Self, CliError> {
        let earlier = Receipt::load(name, app)?;
        let (mut changes, mut written, mut replaced) = (Vec::new(), Vec::new(), Vec::new());
        for file in files {
            let now = read(&file.path)?;
            let before =
                match earlier.iter().flat_map(|receipt| &receipt.files).find(|one| one.path == file.path) {
                    Some(earlier) => without(earlier, now.as_deref())?.0,
                    None => now.clone(),
                };
            let (after, format, settings) = match file.wanted {
                WantedContent::Whole(text) => {
                    if let Some(other) = before.as_ref().filter(|before| **before != text) {
                        replaced.push((file.path.clone(), Vec::new(), format!("{} bytes", other.len())));
                    }
                    (text, None, Vec::new())
                }
                WantedContent::Settings(format, edits) => {
                    let text = before.as_deref().unwrap_or_default();
                    let refusal = |refusal| refused(&file.path, &refusal);
                    for (path, raw) in steps::replaced(format, text, &edits).map_err(refusal)? {
                        replaced.push((file.path.clone(), path, raw));
                    }
                    let (after, settings) = steps::apply(format, text, &edits).map_err(refusal)?;
                    (after, Some(format_word(format)), settings)
                }
            };
            changes.push(FileChange { path: file.path.clone(), now, then: Some(after.clone()) });
            written.push(WrittenFile { path: file.path, format, settings, before, after });
        }
        Ok(Self { name: name.to_owned(), changes, receipt: Some(Receipt::new(name, written)), replaced })
    }

    /// Computes the changes that remove everything `setup` wrote.
    pub(crate) fn back(receipt: &Receipt, app: &App) -> Result<Self, CliError> {
        let mut changes = Vec::new();
        for file in &receipt.files {
            let now = read(&file.path)?;
            let (then, changed) = without(file, now.as_deref())?;
            for path in changed {
                app.note(&format!(
                    "{} in {} was changed since and stays",
                    path.join("."),
                    path_words(&file.path)
                ));
            }
            changes.push(FileChange { path: file.path.clone(), now, then });
        }
        Ok(Self { name: receipt.name.clone(), changes, receipt: None, replaced: Vec::new() })
    }

    /// Whether all files already have the intended content.
    pub(crate) fn is_done(&self) -> bool {
        self.changes.iter().all(|change| change.now == change.then)
    }

    /// Asks before values of others are replaced.
    pub(crate) fn ask_about_replaced(&self, title: &str, app: &App) -> Result<(), CliError> {
        for (file, path, raw) in &self.replaced {
            let (name, raw) = (path.join("."), on_one_line(raw));
            let question = format!("{name} in {} is {raw}. Replace it? [y/N] ", path_words(file));
            if app.can_ask && matches!(app.ask(&question).as_deref(), Some("y" | "Y" | "yes")) {
                continue;
            }
            return Err(CliError::new(Exit::BadConfig, format!("{title} was not set up"))
                .because(format!("{name} in {} is {raw} already", path_words(file)))
                .hint("to send requests there through the gateway, name that server in `gateway.upstreams`")
                .hint("--replace replaces the value; --undo brings it back"));
        }
        Ok(())
    }

    /// Formats the changes as a diff.
    pub(crate) fn diff(&self) -> String {
        let mut out = String::new();
        for change in self.changes.iter().filter(|change| change.now != change.then) {
            let (now, then) =
                (change.now.as_deref().unwrap_or_default(), change.then.as_deref().unwrap_or_default());
            let name = path_words(&change.path);
            let (from, to) = (
                if change.now.is_some() { name.clone() } else { "/dev/null".to_owned() },
                if change.then.is_some() { name } else { "/dev/null".to_owned() },
            );
            let diff = similar::TextDiff::from_lines(now, then);
            out.push_str(&diff.unified_diff().context_radius(DIFF_CONTEXT).header(&from, &to).to_string());
        }
        out
    }

    /// Makes the changes. The receipt is stored first, so that nothing is written that cannot be removed. If a file cannot be written,
    /// the files written before are restored.
    pub(crate) fn carry_out(&self, app: &App) -> Result<(), CliError> {
        let earlier = Receipt::load(&self.name, app)?;
        for change in &self.changes {
            if read(&change.path)? != change.now {
                return Err(CliError::new(
                    Exit::Busy,
                    format!("{} has just been changed", path_words(&change.path)),
                )
                .because("nothing was changed")
                .hint("run this again"));
            }
        }
        if let Some(receipt) = &self.receipt {
            receipt.store(app)?;
        }
        for (index, change) in self.changes.iter().enumerate() {
            if let Err(failure) = write(&change.path, change.then.as_deref()) {
                for done in &self.changes[..index] {
                    write(&done.path, done.now.as_deref())?;
                }
                match &earlier {
                    Some(earlier) => earlier.store(app)?,
                    None => Receipt::remove(&self.name, app)?,
                }
                return Err(failure.because("nothing was changed"));
            }
        }
        match self.receipt {
            Some(_) => Ok(()),
            None => Receipt::remove(&self.name, app),
        }
    }
}

fn write(path: &Path, text: Option<&str>) -> Result<(), CliError> {
    let failed = |what: &str, path: &Path, error: &std::io::Error| {
        CliError::new(Exit::OutputFailed, format!("cannot {what} {}", path_words(path)))
            .because(io_words(error))
    };
    let Some(text) = text else {
        return match std::fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed("remove", path, &error)),
            _ => Ok(()),
        };
    };
    if std::fs::read(path).is_ok_and(|now| now == text.as_bytes()) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| failed("make the folder", folder, &error))?;
    }
    write_atomic(path, text.as_bytes())
}
