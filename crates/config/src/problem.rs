//! The origins of values, and their problems: errors, which stop, and warnings, which do not.
//!
//! Every message names the place (file and line, variable or flag), the key, the value found and the allowed values.

use std::fmt;
use std::sync::Arc;

use crate::kind::Mismatch;
use crate::yaml::{MAX_FILE_BYTES, Reason, YamlRefusal};

/// The origin of a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ValueOrigin {
    /// The default, from the built-in file.
    Default,
    /// A file.
    File {
        /// The file's name in messages.
        name: Arc<str>,
        /// Line from 1; `None` if the whole file is concerned.
        line: Option<usize>,
    },
    /// An environment variable.
    Env {
        /// Name of the variable.
        name: String,
    },
    /// The command line.
    Flag {
        /// The flag without its value, which may be secret.
        name: String,
    },
}

impl ValueOrigin {
    /// One word for the kind of place: `default`, `file`, `env` or `flag`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::File { .. } => "file",
            Self::Env { .. } => "env",
            Self::Flag { .. } => "flag",
        }
    }
}

impl fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { name, line: Some(line) } => write!(f, "{name}:{line}"),
            Self::File { name, line: None } => write!(f, "{name}"),
            Self::Env { name } | Self::Flag { name } => f.write_str(name),
        }
    }
}

/// An error with its origin.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}{kind}", origin.as_ref().map(|origin| format!("{origin}: ")).unwrap_or_default())]
pub struct ConfigError {
    /// The origin; `None` if the key or value was passed in directly.
    pub origin: Option<ValueOrigin>,
    /// The error.
    pub kind: ConfigErrorKind,
}

/// The kind of an error.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigErrorKind {
    /// A value is of the wrong type or out of range.
    #[error("{key} is {shown}, but must be {allowed}{}", hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default())]
    BadValue {
        /// Full key.
        key: String,
        /// The value, shortened, and not shown at all if secret.
        shown: String,
        /// The allowed values.
        allowed: String,
        /// The value that was probably meant.
        hint: Option<String>,
    },
    /// No setting has this key.
    #[error("there is no setting {key}{}", did_you_mean(nearest))]
    UnknownKey {
        /// The key as given.
        key: String,
        /// The most similar key there is.
        nearest: Option<String>,
    },
    /// The key names a group of settings where a single one is needed.
    #[error("{key} is a group of settings; name one of them, such as {}", some(members))]
    NotOneSetting {
        /// The key as given.
        key: String,
        /// Possible keys.
        members: Vec<String>,
    },
    /// A key occurs twice in the same section.
    #[error("{key} is set twice; the first is on line {first_line}")]
    Duplicate {
        /// Full key.
        key: String,
        /// Line of the first.
        first_line: usize,
    },
    /// The text is not YAML.
    #[error("not valid YAML at column {column}: {message}")]
    Syntax {
        /// Character on the line, from 1.
        column: usize,
        /// The parser's message.
        message: String,
    },
    /// A tab where YAML requires spaces.
    #[error("a tab stands where YAML allows only spaces; indent with spaces")]
    Tab,
    /// The text is not UTF-8.
    #[error("not valid UTF-8: byte 0x{byte:02x} at column {column}")]
    NotUtf8 {
        /// Character on the line, from 1.
        column: usize,
        /// The first invalid byte.
        byte: u8,
    },
    /// The text is UTF-16.
    #[error("the file is UTF-16; save it as UTF-8")]
    Utf16,
    /// The file is larger than any settings file.
    #[error("the file is too large: settings may have at most {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// The outermost value is not a list of keys.
    #[error("the file holds {found}, but must hold sections such as 'compression:'")]
    NotAMapping {
        /// What was found.
        found: String,
    },
    /// More than one YAML document.
    #[error("a second document starts here; settings are one document, so remove the '---'")]
    SecondDocument,
    /// A key that is a list, a mapping or a block of text.
    #[error("a key must be a single word or text in quotes")]
    KeyIsNotText,
    /// A `<<` key.
    #[error("'<<' merges are not supported; write the keys out")]
    MergeKey,
    /// A `!tag`.
    #[error("the tag {tag} is not supported; remove it")]
    ForeignTag {
        /// The tag as written.
        tag: String,
    },
    /// Aliases that expand to too many values.
    #[error("the aliases in this file expand to more than {limit} values; write them out")]
    TooManyValues {
        /// The limit.
        limit: usize,
    },
    /// A `--set` without an equals sign.
    #[error("expected KEY=VALUE, as in --set compression.threshold=0.6")]
    NotAnAssignment,
    /// The text cannot be changed without affecting something else.
    #[error("{key} cannot be changed: {reason}; edit the file by hand")]
    CannotEdit {
        /// Full key.
        key: String,
        /// Why it cannot be done.
        reason: String,
    },
    /// The built-in file lacks a value: a defect of the program, which its tests prevent.
    #[error("{key} has no default")]
    NoDefault {
        /// Full key.
        key: String,
    },
}

impl ConfigError {
    pub(crate) fn new(origin: ValueOrigin, kind: ConfigErrorKind) -> Self {
        Self { origin: Some(origin), kind }
    }

    pub(crate) fn refusal(name: &Arc<str>, refusal: YamlRefusal) -> Self {
        let kind = match refusal.reason {
            Reason::TooLarge => ConfigErrorKind::TooLarge { limit: MAX_FILE_BYTES },
            Reason::NotUtf8 { column, byte } => ConfigErrorKind::NotUtf8 { column, byte },
            Reason::Utf16 => ConfigErrorKind::Utf16,
            Reason::Tab => ConfigErrorKind::Tab,
            Reason::Syntax { column, message } => ConfigErrorKind::Syntax { column, message },
            Reason::SecondDocument => ConfigErrorKind::SecondDocument,
            Reason::KeyIsNotText => ConfigErrorKind::KeyIsNotText,
            Reason::MergeKey => ConfigErrorKind::MergeKey,
            Reason::ForeignTag { tag } => ConfigErrorKind::ForeignTag { tag },
            Reason::Duplicate { key, first_line } => {
                ConfigErrorKind::Duplicate { key: show_key(&key), first_line }
            }
        };
        Self::new(ValueOrigin::File { name: Arc::clone(name), line: refusal.line }, kind)
    }
}

impl ConfigErrorKind {
    pub(crate) fn bad_value(key: &str, mismatch: Mismatch) -> Self {
        let Mismatch { shown, allowed, hint } = mismatch;
        Self::BadValue { key: show_key(key), shown, allowed, hint }
    }
}

/// All errors, and the warnings. Never empty.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}", lines(errors))]
pub struct ConfigErrors {
    /// The errors, in the order in which they were found.
    pub errors: Vec<ConfigError>,
    /// Warnings.
    pub warnings: Vec<Warning>,
}

impl From<ConfigError> for ConfigErrors {
    fn from(error: ConfigError) -> Self {
        Self { errors: vec![error], warnings: Vec::new() }
    }
}

fn lines(errors: &[ConfigError]) -> String {
    const MAX_SHOWN: usize = 50;
    let mut lines: Vec<String> = errors.iter().take(MAX_SHOWN).map(ToString::to_string).collect();
    if errors.len() > MAX_SHOWN {
        lines.push(format!("and {} more", errors.len() - MAX_SHOWN));
    }
    lines.join("\n")
}

/// A problem that does not stop anything.
#[derive(Debug, Clone, PartialEq)]
pub struct Warning {
    /// The file, variable or flag it comes from.
    pub origin: ValueOrigin,
    /// The problem.
    pub kind: WarningKind,
}

/// The kind of a warning.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum WarningKind {
    /// No setting has this key; it is ignored.
    UnknownKey {
        /// Full key, or the name of a variable.
        key: String,
        /// The most similar key, if one is similar.
        nearest: Option<String>,
    },
    /// Levels joined by a dot where YAML requires nesting; it is ignored.
    DottedKey {
        /// The section it belongs into.
        section: String,
        /// The key there.
        name: String,
    },
    /// The key has a new name; the value is used.
    OldName {
        /// The name used.
        old: String,
        /// The current name.
        new: String,
    },
    /// The same setting is given under its old and its current name; the old one is ignored.
    OldNameIgnored {
        /// The name used.
        old: String,
        /// The current name.
        new: String,
    },
    /// A setting of Hermes that has no meaning here; it is ignored.
    NotUsedHere {
        /// Full key.
        key: String,
    },
    /// A `${NAME}` whose variable is not set; it is read as empty.
    UndefinedVariable {
        /// Full key.
        key: String,
        /// Name of the variable.
        variable: String,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { origin, kind } = self;
        match kind {
            WarningKind::UnknownKey { key, nearest } => {
                write!(f, "{origin}: there is no setting {key}, so it is ignored{}", did_you_mean(nearest))
            }
            WarningKind::DottedKey { section, name } => {
                write!(
                    f,
                    "{origin}: {section}.{name} is ignored; write '{name}:' indented under '{section}:'"
                )
            }
            WarningKind::OldName { old, new } => {
                write!(f, "{origin}: {old} is read as {new}, its present name")
            }
            WarningKind::OldNameIgnored { old, new } => {
                write!(f, "{origin}: {old} is ignored, because {new}, its present name, is set too")
            }
            WarningKind::NotUsedHere { key } => {
                write!(
                    f,
                    "{origin}: {key} is a setting of Hermes that Throughline does not use, so it is ignored"
                )
            }
            WarningKind::UndefinedVariable { key, variable } => {
                write!(
                    f,
                    "{origin}: {key} refers to ${{{variable}}}, which is not set, so it is read as empty"
                )
            }
        }
    }
}

impl Warning {
    /// Formats warnings as lines. Unknown keys without a similar one, of which a file for another program may have dozens, share one line
    /// per file.
    pub fn lines(warnings: &[Warning]) -> Vec<String> {
        const MAX_NAMED: usize = 20;
        let mut lines = Vec::new();
        let mut foreign: Vec<(&Arc<str>, Vec<String>)> = Vec::new();
        for warning in warnings {
            match (&warning.origin, &warning.kind) {
                (
                    ValueOrigin::File { name, line: Some(line) },
                    WarningKind::UnknownKey { key, nearest: None } | WarningKind::NotUsedHere { key },
                ) => {
                    let item = format!("{key} (line {line})");
                    match foreign.iter_mut().find(|(file, _)| *file == name) {
                        Some((_, items)) => items.push(item),
                        None => foreign.push((name, vec![item])),
                    }
                }
                _ => lines.push(warning.to_string()),
            }
        }
        lines.extend(foreign.into_iter().map(|(file, mut items)| {
            if items.len() > MAX_NAMED {
                let more = items.len() - MAX_NAMED;
                items.truncate(MAX_NAMED);
                items.push(format!("and {more} more"));
            }
            format!("{file}: not used by Throughline: {}", items.join(", "))
        }));
        lines
    }
}

fn some(keys: &[String]) -> String {
    const MAX_NAMED: usize = 3;
    keys.iter().take(MAX_NAMED).map(String::as_str).collect::<Vec<_>>().join(" or ")
}

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|key| format!("; did you mean {key}?")).unwrap_or_default()
}

/// Formats a key for a message: on one line, of bounded length.
pub(crate) fn show_key(key: &str) -> String {
    const MAX_SHOWN_CHARS: usize = 120;
    if key.is_empty() {
        return "\"\"".to_owned();
    }
    let mut shown: String = key.chars().take(MAX_SHOWN_CHARS).flat_map(char::escape_debug).collect();
    if key.chars().nth(MAX_SHOWN_CHARS).is_some() {
        shown.push('…');
    }
    shown
}
