//! The world around the program: home directory, environment, terminal. The only place that looks at any of them.
//!
//! Data goes to stdout and messages to stderr. A reader that goes away (`| head`) is not an error.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use anstream::{AutoStream, ColorChoice};
use owo_colors::OwoColorize;

use crate::failure::{Exit, Failure, io_words};

/// Columns when there is no terminal to ask.
const DEFAULT_COLUMNS: usize = 80;
/// Tables need some room; a narrower terminal wraps on its own.
const MIN_COLUMNS: usize = 60;
/// Lines longer than this are hard to read, however wide the terminal is.
const MAX_COLUMNS: usize = 120;

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColourChoice {
    /// On a terminal, unless NO_COLOR is set or TERM is dumb.
    #[default]
    Auto,
    /// Even into a file or a pipe.
    Always,
    /// Nowhere.
    Never,
}

/// Everything a command may know about the world it runs in.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    /// Where Throughline keeps its own files.
    pub(crate) home: PathBuf,
    /// The environment; variables that are not text are left out.
    pub(crate) env: Vec<(String, String)>,
    /// Arguments of `--set`, in order.
    pub(crate) sets: Vec<String>,
    /// Columns to fill.
    pub(crate) width: usize,
    /// Whether stdout takes colours.
    pub(crate) colour_stdout: bool,
    /// Whether stderr takes colours.
    pub(crate) colour_stderr: bool,
}

impl Context {
    /// Looks around once, at the start.
    pub(crate) fn look_around(sets: Vec<String>, colour: ColourChoice) -> Result<Self, Failure> {
        let env: Vec<(String, String)> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let home = home_folder(lookup(&env, "THROUGHLINE_HOME"), std::env::home_dir())?;
        Ok(Self {
            home,
            sets,
            width: width(
                lookup(&env, "COLUMNS"),
                terminal_size::terminal_size().map(|(columns, _)| usize::from(columns.0)),
            ),
            colour_stdout: wants_colour(colour, &env, io::stdout().is_terminal()),
            colour_stderr: wants_colour(colour, &env, io::stderr().is_terminal()),
            env,
        })
    }

    /// The user's settings file, whether it is there or not.
    pub(crate) fn config_path(&self) -> PathBuf {
        self.home.join("config.yaml")
    }

    /// Writes text for people to stdout; colours are removed where they are not wanted.
    pub(crate) fn print(&self, text: &str) -> Result<(), Failure> {
        let mut stream = AutoStream::new(io::stdout().lock(), choice(self.colour_stdout));
        unless_reader_left(stream.write_all(text.as_bytes()).and_then(|()| stream.flush()))
    }

    /// Writes data to stdout exactly as it is.
    pub(crate) fn print_bytes(&self, bytes: &[u8]) -> Result<(), Failure> {
        let mut stream = io::stdout().lock();
        unless_reader_left(stream.write_all(bytes).and_then(|()| stream.flush()))
    }

    /// Writes a message for people to stderr, as it is. Nobody can be told when that fails.
    pub(crate) fn tell(&self, text: &str) {
        write_stderr(self.colour_stderr, text);
    }

    /// A warning on stderr: something the user should know that does not stop the work.
    pub(crate) fn warn(&self, text: &str) {
        self.tell(&format!("{}: {text}\n", "warning".yellow().bold()));
    }

    /// A note on stderr: how something was understood.
    pub(crate) fn note(&self, text: &str) {
        self.tell(&format!("{}: {text}\n", "note".cyan().bold()));
    }
}

/// A failure on stderr; works before there is a context, when looking around is what failed.
pub(crate) fn report_failure(failure: &Failure, context: Option<&Context>) {
    write_stderr(context.is_some_and(|context| context.colour_stderr), &failure.render());
}

fn write_stderr(colour: bool, text: &str) {
    let mut stream = AutoStream::new(io::stderr().lock(), choice(colour));
    let _ = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
}

fn choice(colour: bool) -> ColorChoice {
    if colour { ColorChoice::Always } else { ColorChoice::Never }
}

/// A reader that has seen enough closes the pipe; that is its right, not a failure.
fn unless_reader_left(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(Exit::OutputFailed, "cannot write to stdout").because(io_words(&error)))
        }
        _ => Ok(()),
    }
}

fn lookup<'a>(env: &'a [(String, String)], name: &str) -> Option<&'a str> {
    env.iter().find(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value.as_str())
}

fn home_folder(own: Option<&str>, user: Option<PathBuf>) -> Result<PathBuf, Failure> {
    match (own, user) {
        (Some(own), _) => Ok(PathBuf::from(own)),
        (None, Some(user)) => Ok(user.join(".throughline")),
        (None, None) => Err(Failure::new(Exit::BadConfig, "there is no home directory to keep settings in")
            .because("neither THROUGHLINE_HOME nor HOME is set")
            .hint("set THROUGHLINE_HOME to a folder")),
    }
}

fn width(columns: Option<&str>, terminal: Option<usize>) -> usize {
    let asked = columns.and_then(|text| text.parse().ok()).or(terminal);
    asked.unwrap_or(DEFAULT_COLUMNS).clamp(MIN_COLUMNS, MAX_COLUMNS)
}

fn wants_colour(colour: ColourChoice, env: &[(String, String)], is_terminal: bool) -> bool {
    match colour {
        ColourChoice::Always => true,
        ColourChoice::Never => false,
        ColourChoice::Auto => {
            is_terminal && lookup(env, "NO_COLOR").is_none() && lookup(env, "TERM") != Some("dumb")
        }
    }
}

#[cfg(test)]
#[path = "context_tests.rs"]
mod tests;
