//! `throughline config`: shows the settings and where each comes from, and changes them.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueHint};
use serde_json::json;
use throughline_config::{
    ConfigError, ConfigErrors, Datum, Edit, Editor, Loaded, Loader, SettingValue, Settings, ValueOrigin,
    Warning,
};

use crate::app::App;
use crate::error::{CliError, Exit, io_words, path_words};
use crate::files::write_atomic;
use crate::home;
use crate::settings::{bad_settings, load, load_settings, loader, read_bounded, read_config, say_warnings};
use crate::ui::text::{columns, counted, on_one_line};

/// The widest column of values; longer values do not move the next column.
const MAX_VALUE_COLUMNS: usize = 32;

/// Show and change settings
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  throughline config show --changed
  throughline config get compression.threshold
  throughline config set compression.threshold 0.6
  throughline config set auxiliary.compression.api_key '${MY_KEY}'
  throughline config unset compression.threshold
  throughline config check ~/.hermes/config.yaml
  throughline config defaults | less

If a setting is given in several places, the last of these counts: the default, config.yaml,
a variable such as THROUGHLINE_COMPRESSION__THRESHOLD, --set. `set` and `unset` change config.yaml and
keep everything else in it, comments included.")]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// List every setting with its value and where it came from
    Show {
        /// Only settings that differ from their default
        #[arg(long)]
        changed: bool,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print one setting, or those of a section
    Get {
        /// The setting, such as compression.threshold, or a section, such as compression
        #[arg(value_name = "KEY")]
        key: String,
        /// Print it as JSON, with its origin and what it is for
        #[arg(long)]
        json: bool,
    },
    /// Write a setting into config.yaml
    Set {
        /// The setting, such as compression.threshold
        #[arg(value_name = "KEY")]
        key: String,
        /// Its value
        #[arg(value_name = "VALUE", allow_hyphen_values = true)]
        value: String,
    },
    /// Remove a setting from config.yaml, which restores its default
    Unset {
        /// The setting, such as compression.threshold
        #[arg(value_name = "KEY")]
        key: String,
    },
    /// Check the settings in effect, or those in a file
    Check {
        /// The file; without it, config.yaml, the environment and --set are checked
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: Option<PathBuf>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print where config.yaml is, or would be
    Path {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print the default settings, with a comment on each
    Defaults,
}

/// Carries out a `config` command.
pub(crate) fn run(args: ConfigArgs, app: &App) -> Result<(), CliError> {
    let CommandOutput { data, notes } = output(args.command, app)?;
    app.print(&data)?;
    notes.iter().for_each(|note| app.note(note));
    Ok(())
}

/// The output of a command: data for stdout, notes for stderr.
#[derive(Debug, Default, PartialEq, Eq)]
struct CommandOutput {
    data: String,
    notes: Vec<String>,
}

fn output(command: ConfigCommand, app: &App) -> Result<CommandOutput, CliError> {
    let data = |data: String| Ok(CommandOutput { data, notes: Vec::new() });
    match command {
        ConfigCommand::Show { changed, json } => {
            let loaded = load_settings(app, &[])?;
            let is_shown = |value: &&SettingValue| !changed || value.origin != ValueOrigin::Default;
            let values: Vec<&SettingValue> = loaded.values.iter().filter(is_shown).collect();
            if json {
                return data(pretty(&json!({
                    "file": app.config_path().display().to_string(),
                    "settings": values.iter().map(|value| value_json(value)).collect::<Vec<_>>(),
                    "warnings": Warning::lines(&loaded.warnings),
                })));
            }
            let notes = if values.is_empty() {
                vec!["every setting is at its default".to_owned()]
            } else {
                Vec::new()
            };
            Ok(CommandOutput { data: table(&values), notes })
        }
        ConfigCommand::Get { key, json } => get(&load_settings(app, &[])?, &key, json),
        ConfigCommand::Set { key, value } => change(app, |editor| editor.set(&key, &value)),
        ConfigCommand::Unset { key } => change(app, |editor| editor.unset(&key)),
        ConfigCommand::Check { file, json } => check(app, file.as_deref(), json),
        ConfigCommand::Path { json } => {
            let path = app.config_path();
            if json {
                let path_text = path.display().to_string();
                return data(pretty(&json!({ "path": path_text, "exists": path.exists() })));
            }
            let notes = if path.exists() {
                Vec::new()
            } else {
                vec!["the file does not exist yet; `throughline config set` creates it".to_owned()]
            };
            Ok(CommandOutput { data: format!("{}\n", path.display()), notes })
        }
        ConfigCommand::Defaults => data(Settings::default_file().to_owned()),
    }
}

/// Formats a setting or a section, with the origin of each value.
pub(crate) fn with_origins(app: &App, key: &str) -> Result<String, CliError> {
    let loaded = load_settings(app, &[])?;
    Ok(table(&loaded.select(key).map_err(|errors| bad_settings(&errors))?))
}

fn get(loaded: &Loaded, key: &str, json: bool) -> Result<CommandOutput, CliError> {
    let values = loaded.select(key).map_err(|errors| bad_settings(&errors))?;
    let data = match values.as_slice() {
        [value] if value.key == key && json => pretty(&value_json(value)),
        // For scripts: the bare value, or an empty line if there is none.
        [value] if value.key == key => match &value.datum {
            Datum::Absent => "\n".to_owned(),
            Datum::Text(text) if text.is_empty() => "\n".to_owned(),
            datum => format!("{datum}\n"),
        },
        values if json => pretty(&values.iter().map(|value| value_json(value)).collect::<Vec<_>>().into()),
        values => table(values),
    };
    Ok(CommandOutput { data, notes: Vec::new() })
}

/// Changes config.yaml and reports the effect.
fn change(
    app: &App,
    edit: impl Fn(&Editor) -> Result<Edit, ConfigErrors>,
) -> Result<CommandOutput, CliError> {
    let path = app.config_path();
    let name = path_words(&path);
    let before = read_config(&path)?.unwrap_or_default();
    let edit = Editor::new(&name, &before)
        .and_then(|editor| edit(&editor))
        .map_err(|errors| bad_settings(&errors))?;
    say_warnings(app, &edit.warnings);
    let done = if edit.is_changed {
        home::make_private(app)?;
        write_atomic(&path, edit.text.as_bytes())?;
        format!("changed {name}")
    } else {
        format!("nothing to change in {name}")
    };
    let effect = match load(app, &[]) {
        Ok(loaded) => effect(&loaded, &edit.key),
        Err(_) => "other settings are wrong; `throughline config check` says which".to_owned(),
    };
    Ok(CommandOutput { data: String::new(), notes: vec![format!("{done}; {effect}")] })
}

/// Describes the value of a key after a change, and its origin.
fn effect(loaded: &Loaded, key: &str) -> String {
    match loaded.values.iter().find(|value| value.key == key) {
        None | Some(SettingValue { datum: Datum::Absent, .. }) => format!("{key} is not set"),
        Some(SettingValue { datum, origin: ValueOrigin::Default, .. }) => {
            format!("{key} is {datum}, the default")
        }
        Some(SettingValue { datum, origin: ValueOrigin::File { line: Some(line), .. }, .. }) => {
            format!("{key} is {datum} (line {line})")
        }
        Some(SettingValue { datum, origin, .. }) => format!("{key} is {datum}, because {origin} comes first"),
    }
}

/// Without a file, checks the settings in effect. With one, checks that file alone; the environment only supplies the variables that the
/// file names.
fn check(app: &App, file: Option<&Path>, json: bool) -> Result<CommandOutput, CliError> {
    let (name, outcome) = match file {
        None => (path_words(&app.config_path()), loader(app, &[])?.load()),
        Some(path) => {
            let name = path_words(path);
            let bytes = read_bounded(path).map_err(|error| {
                CliError::new(Exit::InputUnreadable, format!("cannot read {name}")).because(io_words(&error))
            })?;
            let foreign =
                app.env.iter().filter(|(variable, _)| !variable.starts_with("THROUGHLINE_")).cloned();
            (name.clone(), Loader::new().file(name, bytes).env(foreign).load())
        }
    };
    match outcome {
        Ok(loaded) => {
            if !json {
                say_warnings(app, &loaded.warnings);
            }
            let counts = SettingCounts::of(&loaded);
            if json {
                let data = checked(&name, counts, &[], &loaded.warnings);
                return Ok(CommandOutput { data, notes: Vec::new() });
            }
            Ok(CommandOutput { data: format!("{name}: fine, {}\n", counts.words()), notes: Vec::new() })
        }
        Err(errors) => {
            if json {
                app.print_bytes(
                    checked(&name, SettingCounts::default(), &errors.errors, &errors.warnings).as_bytes(),
                )?;
            } else {
                say_warnings(app, &errors.warnings);
            }
            Err(bad_settings(&errors))
        }
    }
}

/// The number of settings that were set, and of those that differ from their default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SettingCounts {
    set: u64,
    changed: u64,
}

impl SettingCounts {
    fn of(loaded: &Loaded) -> Self {
        // The defaults involve no input, so loading them cannot fail.
        let defaults = Loader::new().load().map(|defaults| defaults.values).unwrap_or_default();
        let is_default = |value: &SettingValue| {
            defaults.iter().any(|default| default.key == value.key && default.datum == value.datum)
        };
        let set = loaded.values.iter().filter(|value| value.origin != ValueOrigin::Default);
        set.fold(Self::default(), |counts, value| Self {
            set: counts.set + 1,
            changed: counts.changed + u64::from(!is_default(value)),
        })
    }

    fn words(self) -> String {
        let differ = if self.changed == 1 { "differs" } else { "differ" };
        match self.set {
            set if set == self.changed => {
                format!("{} {differ} from the default", counted(set, "setting", "settings"))
            }
            set => format!(
                "{} set, {} of them {differ} from the default",
                counted(set, "setting is", "settings are"),
                self.changed
            ),
        }
    }
}

/// The result of a check as JSON.
fn checked(file: &str, counts: SettingCounts, errors: &[ConfigError], warnings: &[Warning]) -> String {
    pretty(&json!({
        "file": file,
        "ok": errors.is_empty(),
        "set": counts.set,
        "changed": counts.changed,
        "errors": errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "warnings": Warning::lines(warnings),
    }))
}

/// Formats key, value and origin in columns.
fn table(values: &[&SettingValue]) -> String {
    let rows: Vec<(String, String, String)> = values
        .iter()
        .map(|value| {
            (on_one_line(&value.key), on_one_line(&value.datum.to_string()), value.origin.to_string())
        })
        .collect();
    let key_columns = rows.iter().map(|(key, _, _)| columns(key)).max().unwrap_or(0);
    let value_columns =
        rows.iter().map(|(_, value, _)| columns(value).min(MAX_VALUE_COLUMNS)).max().unwrap_or(0);
    rows.iter()
        .map(|(key, value, origin)| {
            let key_gap = " ".repeat(key_columns - columns(key) + 2);
            let value_gap = " ".repeat(value_columns.saturating_sub(columns(value)) + 2);
            format!("{key}{key_gap}{value}{value_gap}{}\n", on_one_line(origin))
        })
        .collect()
}

/// A setting as JSON.
pub(crate) fn value_json(value: &SettingValue) -> serde_json::Value {
    let datum = match &value.datum {
        Datum::Absent => serde_json::Value::Null,
        Datum::Switch(on) => (*on).into(),
        Datum::Whole(number) => (*number).into(),
        Datum::Number(number) => (*number).into(),
        // `Display` masks passwords in addresses, but shows an empty text as two quotes.
        Datum::Text(text) if text.is_empty() => "".into(),
        Datum::Secret(secret) if secret.is_empty() => "".into(),
        datum => datum.to_string().into(),
    };
    let (place, line) = match &value.origin {
        ValueOrigin::Default => (None, None),
        ValueOrigin::File { name, line } => (Some(name.to_string()), *line),
        ValueOrigin::Env { name } | ValueOrigin::Flag { name } => (Some(name.clone()), None),
    };
    json!({
        "key": value.key,
        "value": datum,
        "origin": { "kind": value.origin.word(), "name": place, "line": line },
        "variable": value.env_name(),
        "about": value.description(),
    })
}

fn pretty(value: &serde_json::Value) -> String {
    format!("{value:#}\n")
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
