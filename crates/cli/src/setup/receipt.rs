//! The receipt of `setup`, stored in the home directory: each file before and after, and each value.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::error::{CliError, Exit, io_words, path_words};
use crate::files::write_private;
use crate::home;
use crate::setup::document::FileFormat;
use crate::setup::steps::WrittenSetting;

/// The version of the format; newer receipts are refused.
const VERSION: u32 = 1;

/// The record of what was written for one client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Receipt {
    version: u32,
    pub(crate) name: String,
    pub(crate) files: Vec<WrittenFile>,
}

/// A written file. Its text before and after is stored in files beside the receipt, `0.before` and `0.after` for the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WrittenFile {
    pub(crate) path: PathBuf,
    /// `None` for a file that is entirely ours.
    pub(crate) format: Option<String>,
    pub(crate) settings: Vec<WrittenSetting>,
    /// The text before; `None` if there was no file.
    #[serde(skip)]
    pub(crate) before: Option<String>,
    #[serde(skip)]
    pub(crate) after: String,
}

impl WrittenFile {
    pub(crate) fn format(&self) -> Option<FileFormat> {
        match self.format.as_deref()? {
            "json" => Some(FileFormat::Json),
            "toml" => Some(FileFormat::Toml),
            _ => Some(FileFormat::Yaml),
        }
    }
}

/// The stored name of a format.
pub(crate) fn format_word(format: FileFormat) -> String {
    match format {
        FileFormat::Json => "json",
        FileFormat::Toml => "toml",
        FileFormat::Yaml => "yaml",
    }
    .to_owned()
}

fn folder(app: &App) -> PathBuf {
    app.home.join("setup")
}

/// The names of everything that is set up.
pub(crate) fn names(app: &App) -> Vec<String> {
    let entries = std::fs::read_dir(folder(app)).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter(|entry| entry.path().join("receipt.json").exists())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

impl Receipt {
    pub(crate) fn new(name: &str, files: Vec<WrittenFile>) -> Self {
        Self { version: VERSION, name: name.to_owned(), files }
    }

    /// Loads the receipt of a client; `None` if it is not set up.
    pub(crate) fn load(name: &str, app: &App) -> Result<Option<Self>, CliError> {
        let folder = folder(app).join(name);
        let path = folder.join("receipt.json");
        let damaged = |why: String| {
            CliError::new(Exit::InputUnreadable, format!("cannot read {}", path_words(&path)))
                .because(why)
                .hint("the files as they were before `setup` are beside it")
        };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(damaged(io_words(&error))),
        };
        let mut receipt: Self = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        if receipt.version > VERSION {
            return Err(damaged("a newer version of Throughline wrote it".to_owned()));
        }
        for (index, file) in receipt.files.iter_mut().enumerate() {
            file.before = optional(&folder.join(format!("{index}.before"))).map_err(&damaged)?;
            file.after =
                optional(&folder.join(format!("{index}.after"))).map_err(&damaged)?.unwrap_or_default();
        }
        Ok(Some(receipt))
    }

    /// Stores the receipt, after the texts.
    pub(crate) fn store(&self, app: &App) -> Result<(), CliError> {
        home::make_private(app)?;
        let folder = folder(app).join(&self.name);
        home::make_folder(&folder).map_err(|error| {
            CliError::new(Exit::OutputFailed, format!("cannot make the folder {}", path_words(&folder)))
                .because(io_words(&error))
        })?;
        for (index, file) in self.files.iter().enumerate() {
            let before = folder.join(format!("{index}.before"));
            match &file.before {
                Some(text) => write_private(&before, text.as_bytes())?,
                None => drop(std::fs::remove_file(&before)),
            }
            write_private(&folder.join(format!("{index}.after")), file.after.as_bytes())?;
        }
        let text = serde_json::to_string_pretty(self).map_err(|error| {
            CliError::new(Exit::Internal, "cannot write the receipt of `setup`").because(error.to_string())
        })?;
        write_private(&folder.join("receipt.json"), text.as_bytes())
    }

    /// Removes the receipt and its backups; the originals have been restored.
    pub(crate) fn remove(name: &str, app: &App) -> Result<(), CliError> {
        let folder = folder(app).join(name);
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(CliError::new(Exit::OutputFailed, format!("cannot remove {}", path_words(&folder)))
                    .because(io_words(&error)))
            }
            _ => Ok(()),
        }
    }
}

fn optional(path: &Path) -> Result<Option<String>, String> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_words(&error)),
    }
}
