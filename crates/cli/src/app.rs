//! The environment of the program: home directory, variables, terminal, clock, random numbers. No other module reads them.
//!
//! Data goes to stdout and messages to stderr. A reader that closes the pipe (`| head`) is not an error.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use anstream::{AutoStream, ColorChoice};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use owo_colors::OwoColorize;
use throughline_engine::{LimitsInUse, PendingRequest};
use throughline_models::RecordedClient;
#[cfg(feature = "online")]
use throughline_provider::Slots;
use throughline_store::{IdLength, Millis, SessionId};

use crate::args::time::Now;
use crate::error::{CliError, Exit, io_words};
use crate::ui::text::wrap_styled;

/// The assumed width of an output that is not a terminal.
const DEFAULT_COLUMNS: usize = 80;
/// The smallest width for which output is laid out; a narrower terminal wraps by itself.
const MIN_COLUMNS: usize = 10;
/// The largest width: longer lines are hard to read.
const MAX_COLUMNS: usize = 120;

/// The extra indentation of continued lines.
const CONTINUED_INDENT: usize = 2;

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

/// Whether text contains our own cursor movements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CursorControl {
    Yes,
    No,
}

/// The environment of a command: folders, variables, terminal, clock.
#[derive(Clone, Debug)]
pub(crate) struct App {
    /// The folder of Throughline's own files.
    pub(crate) home: PathBuf,
    /// The user's home directory, with the files of other programs.
    pub(crate) user_home: Option<PathBuf>,
    /// The environment variables; values that are not text are left out.
    pub(crate) env: Vec<(String, String)>,
    /// Arguments of `--set`, in order.
    pub(crate) sets: Vec<String>,
    /// The session of the chat in which the command runs, if it does.
    pub(crate) active_session: Option<ActiveSession>,
    /// The program of the recorded session that the command works on, if there is one.
    pub(crate) recorded_client: Option<RecordedClient>,
    /// The width of the output in columns.
    pub(crate) width: usize,
    /// Whether stdout supports colours.
    pub(crate) colour_stdout: bool,
    /// Whether stderr supports colours.
    pub(crate) colour_stderr: bool,
    /// Whether stderr is a terminal on which progress lines can be redrawn.
    pub(crate) watched: bool,
    /// Whether the user can be asked.
    pub(crate) can_ask: bool,
    /// Whether the command runs in a chat, where hints name slash commands.
    pub(crate) in_chat: bool,
    /// The slots of model servers, shared by all requests of this process.
    #[cfg(feature = "online")]
    pub(crate) slots: Slots,
    clock: Clock,
    random: RandomSource,
}

/// The current session of a chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ActiveSession {
    pub(crate) limits: LimitsInUse,
    /// The size of its next request, if it is known.
    pub(crate) pending: Option<PendingRequest>,
}

/// The source of the time.
#[derive(Clone, Debug)]
enum Clock {
    System(TimeZone),
    /// A fixed time, for tests.
    Fixed(Now),
}

/// The source of random numbers.
#[derive(Clone, Debug)]
enum RandomSource {
    System,
    /// The same numbers every time, for tests.
    Seeded {
        seed: u64,
        drawn: Arc<AtomicU64>,
    },
}

impl App {
    /// Reads the environment and the terminal, once, at the start.
    pub(crate) fn from_env(sets: Vec<String>, colour: ColourChoice) -> Result<Self, CliError> {
        let env: Vec<(String, String)> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let user_home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
        let home = home_folder(lookup(&env, "THROUGHLINE_HOME"), user_home.clone())?;
        Ok(Self {
            home,
            user_home,
            sets,
            active_session: None,
            recorded_client: None,
            in_chat: false,
            #[cfg(feature = "online")]
            slots: Slots::default(),
            clock: clock(lookup(&env, "THROUGHLINE_NOW"))?,
            random: random(lookup(&env, "THROUGHLINE_SEED")),
            watched: io::stderr().is_terminal() && lookup(&env, "TERM") != Some("dumb"),
            can_ask: io::stdin().is_terminal() && io::stderr().is_terminal(),
            width: width(
                lookup(&env, "COLUMNS"),
                terminal_size::terminal_size().map(|(columns, _)| usize::from(columns.0)),
            ),
            colour_stdout: wants_colour(colour, &env, io::stdout().is_terminal()),
            colour_stderr: wants_colour(colour, &env, io::stderr().is_terminal()),
            env,
        })
    }

    /// Returns an environment without settings and terminal, with a fixed clock.
    #[cfg(test)]
    pub(crate) fn for_tests(home: PathBuf) -> Self {
        Self {
            home,
            user_home: None,
            env: Vec::new(),
            sets: Vec::new(),
            active_session: None,
            recorded_client: None,
            in_chat: false,
            #[cfg(feature = "online")]
            slots: Slots::default(),
            width: DEFAULT_COLUMNS,
            colour_stdout: false,
            colour_stderr: false,
            watched: false,
            can_ask: false,
            clock: Clock::Fixed(Now { ms: 0, zone: TimeZone::UTC }),
            random: random(Some("1")),
        }
    }

    /// Returns a copy with the current width of the terminal.
    pub(crate) fn resized(&self) -> Self {
        Self { width: self.columns_now().clamp(MIN_COLUMNS, MAX_COLUMNS), ..self.clone() }
    }

    /// Returns a copy for a command that runs in a chat.
    pub(crate) fn within_chat(&self) -> Self {
        Self { in_chat: true, ..self.clone() }
    }

    /// Replaces the command names in a hint: in a chat by slash commands.
    pub(crate) fn hint_words<'a>(&self, hint: &'a str) -> Cow<'a, str> {
        if self.in_chat { Cow::Owned(chat_words(hint)) } else { Cow::Borrowed(hint) }
    }

    /// Returns a copy for a command about this session.
    pub(crate) fn with_session(&self, active_session: Option<ActiveSession>) -> Self {
        Self { active_session, ..self.clone() }
    }

    /// The path of the user's settings file, whether it exists or not.
    pub(crate) fn config_path(&self) -> PathBuf {
        self.home.join("config.yaml")
    }

    /// The path of the record's file, whether it exists or not.
    pub(crate) fn record_path(&self) -> PathBuf {
        self.home.join("record.db")
    }

    /// The current time and the time zone.
    pub(crate) fn now(&self) -> Now {
        match &self.clock {
            Clock::Fixed(now) => now.clone(),
            Clock::System(zone) => {
                #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
                let now = SystemTime::now();
                let elapsed = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                Now { ms: Millis::try_from(elapsed.as_millis()).unwrap_or(Millis::MAX), zone: zone.clone() }
            }
        }
    }

    /// Returns random bits for ids. Not for secrets.
    pub(crate) fn random_bits(&self) -> u64 {
        match &self.random {
            // Hash tables are seeded by the operating system, which is random enough for ids.
            RandomSource::System => RandomState::new().build_hasher().finish(),
            RandomSource::Seeded { seed, drawn } => {
                let number = drawn.fetch_add(1, Ordering::Relaxed).wrapping_add(*seed).wrapping_add(1);
                number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            }
        }
    }

    /// The current width of the terminal, which may have been resized.
    pub(crate) fn columns_now(&self) -> usize {
        let terminal = terminal_size::terminal_size().map(|(columns, _)| usize::from(columns.0));
        terminal.filter(|columns| *columns > 0).unwrap_or(self.width)
    }

    /// Returns a new id for a session that began at this time.
    pub(crate) fn new_session_id(&self, at_ms: Millis) -> SessionId {
        SessionId::new(at_ms, (self.random_bits() >> 32) as u32, IdLength::Local)
    }

    /// The value of an environment variable.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        lookup(&self.env, name)
    }

    /// Finds a program in PATH, or at the given path.
    pub(crate) fn find_program(&self, name: &OsStr) -> Option<PathBuf> {
        let given = Path::new(name);
        if given.components().count() > 1 {
            return is_program(given).then(|| given.to_owned());
        }
        std::env::split_paths(self.variable("PATH")?)
            .map(|folder| folder.join(given))
            .find(|path| is_program(path))
    }

    /// Prints a question and reads a line from the terminal.
    pub(crate) fn ask(&self, question: &str) -> Option<String> {
        self.tell(question);
        let mut line = String::new();
        let read = io::stdin().read_line(&mut line).ok()?;
        (read > 0).then(|| line.trim().to_owned())
    }

    /// Writes text for people to stdout. Removes colours if they are off, and wraps lines between words.
    pub(crate) fn print(&self, text: &str) -> Result<(), CliError> {
        let text = fitting(text, io::stdout().is_terminal());
        let mut stream = AutoStream::new(io::stdout().lock(), choice(self.colour_stdout));
        unless_reader_left(stream.write_all(text.as_bytes()).and_then(|()| stream.flush()))
    }

    /// Writes a part of a text to stdout, with cursor movements if `moves` allows them.
    pub(crate) fn print_piece(&self, text: &str, moves: CursorControl) -> Result<(), CliError> {
        if moves == CursorControl::Yes {
            return self.print_bytes(text.as_bytes());
        }
        let mut stream = AutoStream::new(io::stdout().lock(), choice(self.colour_stdout));
        unless_reader_left(stream.write_all(text.as_bytes()).and_then(|()| stream.flush()))
    }

    /// Writes data to stdout unchanged.
    pub(crate) fn print_bytes(&self, bytes: &[u8]) -> Result<(), CliError> {
        let mut stream = io::stdout().lock();
        unless_reader_left(stream.write_all(bytes).and_then(|()| stream.flush()))
    }

    /// Writes a message to stderr without a label. A failed write is ignored.
    pub(crate) fn tell(&self, text: &str) {
        write_stderr(self.colour_stderr, text);
    }

    /// Writes text with cursor movements to stderr. Only for a terminal.
    pub(crate) fn tell_raw(&self, text: &str) {
        let mut stream = io::stderr().lock();
        let _ = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
    }

    /// Writes a warning to stderr: a problem that does not stop the command.
    pub(crate) fn warn(&self, text: &str) {
        let text = self.hint_words(text);
        self.tell(&format!("{}: {text}\n", "warning".yellow().bold()));
    }

    /// Writes a note to stderr, for example how an input was interpreted.
    pub(crate) fn note(&self, text: &str) {
        let text = self.hint_words(text);
        self.tell(&format!("{}: {text}\n", "note".cyan().bold()));
    }
}

/// Reports a failure on stderr. `app` is `None` if reading the environment failed.
pub(crate) fn report_failure(failure: &CliError, app: Option<&App>) {
    let render = || match app.filter(|app| app.in_chat) {
        Some(app) => failure.with_hints(|hint| app.hint_words(hint).into_owned()).render(),
        None => failure.render(),
    };
    write_stderr(app.is_some_and(|app| app.colour_stderr), &render());
}

/// Commands of the program with a counterpart in a chat. Longer ones come first.
const IN_CHAT: [(&str, &str); 5] = [
    ("`throughline sessions undo`", "/undo"),
    ("`throughline sessions --all`", "/sessions --all"),
    ("`throughline sessions`", "/sessions"),
    ("`throughline search`", "/search"),
    ("`throughline config show`", "/config"),
];

/// Adapts a hint for a chat: names slash commands if there are any, and says that other commands need a shell.
fn chat_words(hint: &str) -> String {
    let mut hint =
        IN_CHAT.iter().fold(hint.to_owned(), |hint, (command, slash)| hint.replace(command, slash));
    let mut from = 0;
    while let Some(at) = hint.get(from..).and_then(|rest| rest.find("`throughline ")).map(|at| at + from) {
        let Some(length) = hint.get(at + 1..).and_then(|rest| rest.find('`')) else { break };
        let end = at + 1 + length + 1;
        hint.insert_str(end, " in a shell");
        from = end;
    }
    hint
}

/// Wraps lines for a terminal; text for other outputs is unchanged.
fn fitting(text: &str, is_terminal: bool) -> Cow<'_, str> {
    let columns = terminal_size::terminal_size().map(|(columns, _)| usize::from(columns.0));
    match columns.filter(|columns| is_terminal && *columns > 0) {
        Some(columns) => Cow::Owned(wrap_styled(text, columns, CONTINUED_INDENT)),
        None => Cow::Borrowed(text),
    }
}

fn write_stderr(colour: bool, text: &str) {
    let text = fitting(text, io::stderr().is_terminal());
    let mut stream = AutoStream::new(io::stderr().lock(), choice(colour));
    let _ = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
}

fn choice(colour: bool) -> ColorChoice {
    if colour { ColorChoice::Always } else { ColorChoice::Never }
}

/// Ignores a closed pipe, as with `| head`.
fn unless_reader_left(result: io::Result<()>) -> Result<(), CliError> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CliError::new(Exit::OutputFailed, "cannot write to stdout").because(io_words(&error)))
        }
        _ => Ok(()),
    }
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

fn lookup<'a>(env: &'a [(String, String)], name: &str) -> Option<&'a str> {
    env.iter().find(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value.as_str())
}

fn home_folder(own: Option<&str>, user: Option<PathBuf>) -> Result<PathBuf, CliError> {
    match (own, user) {
        (Some(own), _) => Ok(PathBuf::from(own)),
        (None, Some(user)) => Ok(user.join(".throughline")),
        (None, None) => Err(CliError::new(Exit::BadConfig, "there is no home directory to keep settings in")
            .because("neither THROUGHLINE_HOME nor HOME is set")
            .hint("set THROUGHLINE_HOME to a folder")),
    }
}

fn clock(fixed: Option<&str>) -> Result<Clock, CliError> {
    let zone = TimeZone::try_system().unwrap_or(TimeZone::UTC);
    let Some(text) = fixed else { return Ok(Clock::System(zone)) };
    let time: Timestamp = text.parse().map_err(|error: jiff::Error| {
        CliError::new(Exit::BadConfig, "THROUGHLINE_NOW is not a time").because(error.to_string())
    })?;
    Ok(Clock::Fixed(Now { ms: time.as_millisecond(), zone }))
}

fn random(seed: Option<&str>) -> RandomSource {
    seed.and_then(|text| text.parse().ok())
        .map_or(RandomSource::System, |seed| RandomSource::Seeded { seed, drawn: Arc::default() })
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
#[path = "app_tests.rs"]
mod tests;
