//! The input line: history, completion of commands, files and sessions, multi-line input, paste.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use owo_colors::OwoColorize as _;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{
    Cmd, ColorMode, CompletionType, Config, EditMode, Editor, Helper, KeyCode, KeyEvent, Modifiers,
};

use super::screen::Printer;
use super::slash::COMMANDS;
use crate::error::{CliError, Exit};

/// The most lines in the history.
const HISTORY_LINES: usize = 2_000;
/// The most entries of a folder that are offered as completions.
const MAX_OFFERED: usize = 200;
pub(super) const PROMPT: &str = "› ";

/// The result of reading a line.
pub(super) enum EditorEvent {
    /// The user entered text.
    Text(String),
    /// The user pressed Ctrl-C on a line with text, which cleared it.
    Cleared,
    /// The user pressed Ctrl-C on an empty line.
    Interrupted,
    /// The input ended.
    End,
}

/// The input line.
pub(super) struct LineEditor {
    editor: Editor<ChatHelper, FileHistory>,
    history: PathBuf,
    colour: bool,
    /// Whether the user has typed since the prompt was shown.
    typed: Arc<AtomicBool>,
}

/// Completion and hints for the input line.
pub(super) struct ChatHelper {
    folder: PathBuf,
    sessions: Vec<String>,
    colour: bool,
    typed: Arc<AtomicBool>,
}

fn config(colour: bool) -> Result<Config, ReadlineError> {
    Ok(Config::builder()
        .max_history_size(HISTORY_LINES)?
        .history_ignore_dups(true)?
        .history_ignore_space(true)
        .completion_type(CompletionType::List)
        .edit_mode(EditMode::Emacs)
        .color_mode(if colour { ColorMode::Enabled } else { ColorMode::Disabled })
        .bracketed_paste(true)
        .build())
}

fn unusable(error: &ReadlineError) -> CliError {
    CliError::new(Exit::InputUnreadable, "cannot read from this terminal").because(error.to_string())
}

impl LineEditor {
    /// Creates an input line with the history in a file and completion of files in `folder`.
    pub(super) fn new(history: &Path, folder: &Path, colour: bool) -> Result<Self, CliError> {
        let config = config(colour).map_err(|error| unusable(&error))?;
        let mut editor: Editor<ChatHelper, FileHistory> =
            Editor::with_config(config).map_err(|error| unusable(&error))?;
        let typed = Arc::new(AtomicBool::new(false));
        editor.set_helper(Some(ChatHelper {
            folder: folder.to_owned(),
            sessions: Vec::new(),
            colour,
            typed: Arc::clone(&typed),
        }));
        editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), Cmd::Newline);
        // A missing or unreadable history is not an error.
        let _ = editor.load_history(history);
        Ok(Self { editor, history: history.to_owned(), colour, typed })
    }

    /// Sets the sessions that are offered as completions.
    pub(super) fn offer_sessions(&mut self, sessions: Vec<String>) {
        if let Some(helper) = self.editor.helper_mut() {
            helper.sessions = sessions;
        }
    }

    /// Returns a printer that writes above the line while the user types, if the terminal supports it.
    pub(super) fn printer(&mut self) -> Option<Printer> {
        let printer = self.editor.create_external_printer().ok()?;
        Some(Box::new(printer))
    }

    /// Reads a line that initially contains `before`.
    pub(super) fn read(&mut self, before: &str) -> Result<EditorEvent, CliError> {
        self.typed.store(!before.is_empty(), Ordering::Relaxed);
        let styled = if self.colour { PROMPT.cyan().bold().to_string() } else { PROMPT.to_owned() };
        match self.editor.readline_with_initial(&(PROMPT.to_owned(), styled), (before, "")) {
            Ok(text) => {
                let text = joined(&text);
                self.remember(&text);
                Ok(EditorEvent::Text(text))
            }
            Err(ReadlineError::Interrupted) if self.typed.load(Ordering::Relaxed) => Ok(EditorEvent::Cleared),
            Err(ReadlineError::Interrupted) => Ok(EditorEvent::Interrupted),
            Err(ReadlineError::Eof) => Ok(EditorEvent::End),
            Err(error) => Err(unusable(&error)),
        }
    }
}

impl LineEditor {
    /// Adds a text to the history.
    pub(super) fn remember(&mut self, text: &str) {
        if !text.trim().is_empty() {
            // A failed write of the history is ignored.
            let _ = self.editor.add_history_entry(text);
            let _ = self.editor.append_history(&self.history);
        }
    }
}

/// Removes the backslashes that continue a line.
fn joined(text: &str) -> String {
    text.replace("\\\n", "\n")
}

/// Reads a one-line answer to a question; `None` after Ctrl-C or at the end of the input.
pub(super) fn ask_line(prompt: &str) -> Option<String> {
    let config = config(false).ok()?;
    let mut editor: Editor<(), rustyline::history::MemHistory> =
        Editor::with_history(config, rustyline::history::MemHistory::new()).ok()?;
    editor.readline(prompt).ok()
}

impl Helper for ChatHelper {}

impl Hinter for ChatHelper {
    type Hint = String;

    fn hint(&self, line: &str, pos: usize, _context: &rustyline::Context<'_>) -> Option<String> {
        // The library calls this after every change of the line.
        if !line.is_empty() {
            self.typed.store(true, Ordering::Relaxed);
        }
        let name = line.strip_prefix('/').filter(|name| pos == line.len() && !name.contains(' '))?;
        let mut fitting = COMMANDS.iter().filter(|command| command.name.starts_with(name));
        let command = fitting.next().filter(|_| !name.is_empty())?;
        let rest = command.name.get(name.len()..)?;
        let arguments =
            if command.arguments.is_empty() { String::new() } else { format!(" {}", command.arguments) };
        fitting.next().is_none().then(|| format!("{rest}{arguments}"))
    }
}

impl Highlighter for ChatHelper {
    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        if self.colour { Cow::Owned(hint.dimmed().to_string()) } else { Cow::Borrowed(hint) }
    }
}

impl Validator for ChatHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let text = context.input();
        let fences = text.lines().filter(|line| line.trim_start().starts_with("```")).count();
        let goes_on = text.ends_with('\\') || !fences.is_multiple_of(2);
        Ok(if goes_on { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

impl Completer for ChatHelper {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _context: &rustyline::Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = line.get(..pos).unwrap_or(line);
        Ok(self.offers(before))
    }
}

impl ChatHelper {
    /// Returns completions for the end of a line: commands, sessions or files.
    fn offers(&self, before: &str) -> (usize, Vec<Pair>) {
        if let Some(name) = before.strip_prefix('/')
            && !name.contains([' ', '/'])
        {
            let names = COMMANDS.iter().map(|command| command.name).filter(|known| known.starts_with(name));
            let pairs =
                names.map(|known| Pair { display: format!("/{known}"), replacement: format!("/{known} ") });
            return (0, pairs.collect());
        }
        let start = before.rfind([' ', '\n', '"', '`', '@']).map_or(0, |at| at + 1);
        let word = before.get(start..).unwrap_or_default();
        if before.starts_with("/resume ") {
            let fitting = self.sessions.iter().filter(|id| id.starts_with(word));
            let pairs = fitting.map(|id| Pair { display: id.clone(), replacement: id.clone() });
            return (start, pairs.collect());
        }
        (start, self.files(word))
    }

    fn files(&self, word: &str) -> Vec<Pair> {
        let (folder, name) = word.rsplit_once('/').map_or(("", word), |(folder, name)| (folder, name));
        let at = match folder {
            "" if word.starts_with('/') => PathBuf::from("/"),
            folder => self.folder.join(folder),
        };
        let Ok(entries) = std::fs::read_dir(at) else { return Vec::new() };
        let mut names: Vec<String> = entries
            .filter_map(Result::ok)
            .filter_map(|entry| {
                let slash = if entry.file_type().ok()?.is_dir() { "/" } else { "" };
                Some(format!("{}{slash}", entry.file_name().into_string().ok()?))
            })
            .filter(|known| known.starts_with(name) && (!known.starts_with('.') || name.starts_with('.')))
            .take(MAX_OFFERED)
            .collect();
        names.sort();
        let prefix = word.get(..word.len() - name.len()).unwrap_or_default();
        names
            .into_iter()
            .map(|known| Pair { replacement: format!("{prefix}{known}"), display: known })
            .collect()
    }
}

#[cfg(test)]
#[path = "editor_tests.rs"]
mod tests;
