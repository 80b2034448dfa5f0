//! The output of a conversation.
//!
//! At a terminal, everything goes to one stream in order, with a status line at the bottom while something runs. For
//! scripts, only the answer goes to stdout. Not for: decisions.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use owo_colors::OwoColorize as _;
use rustyline::ExternalPrinter;
use throughline_agent::{AgentEvent, AgentEvents, AnswerReport, ToolDone, ToolEnd, WordsSetAside};
use throughline_compaction::Quality;
use throughline_engine::{CompressReport, EngineEvent, Trigger};
use throughline_wire::StopReason;

use super::highlight::diff_line;
use super::markdown::{Markdown, MarkdownStyle};
use super::status_line::UsageTally;
use crate::app::{App, CursorControl};
use crate::ui::figures::{dollars, rounded};
use crate::ui::text::{counted, labelled, on_one_line, printable, shorten, streamed, thousands};

/// The most lines of a diff that are shown.
const DIFFERENCE_LINES: usize = 40;
/// The number of last lines of a command's output that are shown: its end is the most informative.
const OUTPUT_LINES: usize = 8;

const PREPARING: &str = "preparing a summary of the older part in the background, for when the window fills";
const PUT_OFF: &str = "the background summary is postponed, so that the server is free for you";
const WHILE_IDLE: &str = "idle, and the provider's cache is cold: compacting the older part now";

/// Who reads the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    /// A person at a terminal.
    Person,
    /// A script that reads the answer from stdout; progress goes to stderr.
    Script,
    /// A program that reads one JSON object at the end.
    Program,
}

/// Shows the events of a conversation.
pub(super) struct Screen {
    app: Arc<App>,
    audience: Audience,
    /// Whether an answer may move the cursor while it streams.
    moves: CursorControl,
    state: Mutex<ScreenState>,
    /// The printer that writes above the input line, while the user types.
    above: Mutex<Option<Printer>>,
}

/// Writes above the input line.
pub(super) type Printer = Box<dyn ExternalPrinter + Send>;

/// While this exists, output is written above the input line.
pub(super) struct TypingGuard<'a>(&'a Screen);

impl Drop for TypingGuard<'_> {
    fn drop(&mut self) {
        *self.0.above() = None;
    }
}

struct ScreenState {
    markdown: Markdown,
    /// Whether reasoning is being shown, which ends with its own line break.
    reasoning: bool,
    /// Whether the redrawn status line is on the screen.
    passing: bool,
    /// Whether the user has just been shown the effect of a tool.
    asked: bool,
    /// Whether the screen has reported that a summary is ready for this view.
    told_ready: bool,
    /// Notes that wait for the end of the current output.
    later: Vec<String>,
    /// Lines queued during a line of the answer, shown after it.
    queued: Vec<String>,
    /// The status line that is redrawn, as last shown.
    passing_text: String,
    tally: UsageTally,
}

impl Screen {
    pub(super) fn new(app: &Arc<App>, audience: Audience) -> Self {
        let styled = audience == Audience::Person && app.colour_stdout;
        let looks = if styled { MarkdownStyle::Styled } else { MarkdownStyle::Plain };
        // If the cursor cannot be moved, the terminal wraps lines.
        let moves =
            if audience == Audience::Person && app.watched { CursorControl::Yes } else { CursorControl::No };
        Self {
            app: Arc::clone(app),
            audience,
            moves,
            state: Mutex::new(ScreenState {
                markdown: Markdown::new(looks, moves),
                reasoning: false,
                passing: false,
                asked: false,
                told_ready: false,
                later: Vec::new(),
                queued: Vec::new(),
                passing_text: String::new(),
                tally: UsageTally::default(),
            }),
            above: Mutex::new(None),
        }
    }

    fn above(&self) -> MutexGuard<'_, Option<Printer>> {
        self.above.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts typing: until the returned value is dropped, output is written above the input line.
    pub(super) fn typing(&self, printer: Option<Printer>) -> TypingGuard<'_> {
        *self.above() = printer;
        TypingGuard(self)
    }

    /// Writes above the input line. Returns `false` if there is none.
    fn print_above(&self, text: &str) -> bool {
        let mut above = self.above();
        let Some(printer) = above.as_mut() else { return false };
        let plain = || anstream::adapter::strip_str(text).to_string();
        let text = if self.app.colour_stdout { text.to_owned() } else { plain() };
        printer.print(text).is_ok()
    }

    // Each value is replaced as a whole, so a panic elsewhere leaves them usable.
    fn state(&self) -> MutexGuard<'_, ScreenState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current width of the terminal.
    pub(super) fn columns(&self) -> usize {
        self.app.columns_now()
    }

    /// The usage of this run so far.
    pub(super) fn tally(&self) -> UsageTally {
        self.state().tally
    }

    /// Resets the usage for another conversation.
    pub(super) fn forget_tally(&self) {
        let mut state = self.state();
        state.tally = UsageTally::default();
        state.told_ready = false;
    }

    /// Ends the current line, if it is incomplete.
    pub(super) fn rest(&self) {
        let mut state = self.state();
        self.end_text(&mut state);
    }

    /// Prints a line of the program after the current output.
    pub(super) fn say(&self, text: &str) {
        let mut state = self.state();
        self.end_text(&mut state);
        self.line(text);
    }

    /// Prints a note of the program.
    pub(super) fn note(&self, text: &str) {
        self.say(&note(text, self.app.columns_now()));
    }

    /// Shows a result of background work: above the input line, or once the current output has ended.
    pub(super) fn aside(&self, text: &str) {
        let mut state = self.state();
        // If the user is typing, the note is printed above the line; otherwise it waits.
        if self.above().is_none() {
            state.later.push(text.to_owned());
            return;
        }
        drop(state);
        self.note(text);
    }

    /// Prints notes that arrived while something else was being written.
    pub(super) fn say_later(&self) {
        let later = std::mem::take(&mut self.state().later);
        later.iter().for_each(|text| self.note(text));
    }

    /// Shows a queued line: at once, or after the current line of the answer.
    pub(super) fn queued(&self, line: &str) {
        let mut state = self.state();
        state.queued.push(line.to_owned());
        if !state.markdown.is_open() && !state.reasoning {
            self.show_queued(&mut state);
        }
    }

    fn show_queued(&self, state: &mut ScreenState) {
        let queued = std::mem::take(&mut state.queued);
        if queued.is_empty() {
            return;
        }
        let was_passing = state.passing;
        self.clear_passing(state);
        for line in queued {
            let width = self.app.columns_now();
            let line = shorten(&on_one_line(&line), width.saturating_sub("· queued: ".len()).max(8));
            self.line(&note(&format!("queued: {line}"), width));
        }
        if was_passing {
            let text = std::mem::take(&mut state.passing_text);
            self.pass(state, &text);
        }
    }

    /// Shows that the current operation is being stopped.
    pub(super) fn stopping(&self) {
        let mut state = self.state();
        self.pass(&mut state, "stopping ... Ctrl-C again leaves");
    }

    /// Shows the approval question of a tool with its effects.
    pub(super) fn question(&self, text: &str) {
        self.say(text);
        self.state().asked = true;
    }

    /// Writes lines for people: to stdout at a terminal, to stderr if stdout is for the answer.
    fn line(&self, text: &str) {
        let text = if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") };
        match self.audience {
            Audience::Person if self.print_above(&text) => {}
            // If the terminal is closed, the failure cannot be reported.
            Audience::Person => drop(self.app.print(&text)),
            Audience::Script => self.app.tell(&text),
            Audience::Program => {}
        }
    }

    fn end_text(&self, state: &mut ScreenState) {
        self.clear_passing(state);
        if std::mem::take(&mut state.reasoning) {
            self.write("\n");
        }
        let out = state.markdown.finish(self.app.columns_now());
        if !out.is_empty() {
            self.write(&out);
        }
        self.show_queued(state);
    }

    /// Writes a part of the answer.
    fn write(&self, text: &str) {
        if self.audience != Audience::Program {
            drop(self.app.print_piece(text, self.moves));
        }
    }

    /// Shows the current operation in the status line, until something else is written.
    fn pass(&self, state: &mut ScreenState, text: &str) {
        if self.audience == Audience::Program || !self.app.watched {
            return;
        }
        self.end_text(state);
        state.passing_text = text.to_owned();
        let room = self.app.columns_now().saturating_sub(1);
        let text = shorten(&on_one_line(text), room);
        let text = if self.app.colour_stderr { text.dimmed().to_string() } else { text };
        self.app.tell_raw(&format!("\r\x1b[K{text}"));
        state.passing = true;
    }

    fn clear_passing(&self, state: &mut ScreenState) {
        if std::mem::take(&mut state.passing) {
            self.app.tell_raw("\r\x1b[K");
        }
    }

    fn tool_done(&self, done: &ToolDone, was_asked: bool) {
        let took = if done.took_ms >= 100 {
            format!("  {:.1} s", done.took_ms as f64 / 1_000.0)
        } else {
            String::new()
        };
        let title = shorten(&on_one_line(&done.title), self.app.columns_now().saturating_sub(16));
        let first = match &done.end {
            ToolEnd::Done => format!("{} {title}{}", "✓".green(), took.dimmed()),
            ToolEnd::EndedBadly(how) => {
                format!("{} {title}: {}{}", "✗".red(), on_one_line(how), took.dimmed())
            }
            ToolEnd::Failed(why) => {
                // A command reports how it ended on its last line, after its output.
                let mut lines = why.lines().filter(|line| !line.trim().is_empty());
                let why = if done.tool == "terminal" { lines.next_back() } else { lines.next() };
                let why = shorten(&on_one_line(why.unwrap_or_default()), 200);
                format!("{} {title}{}: {why}", "✗".red(), took.dimmed())
            }
            ToolEnd::Denied => format!("{} {title}: not allowed", "✗".yellow()),
            ToolEnd::Stopped => format!("{} {title}: stopped{}", "✗".yellow(), took.dimmed()),
        };
        let mut out = format!("{first}\n");
        // The question has already shown the changes, but not the output of a command.
        let shown = done.shown.as_ref().filter(|_| !was_asked || done.tool == "terminal");
        if let Some(shown) = shown {
            out.push_str(&beside(&done.tool, shown));
        }
        self.line(&out);
    }

    fn engine(&self, state: &mut ScreenState, event: &EngineEvent) {
        match event {
            EngineEvent::Pressure { .. } => {}
            EngineEvent::PreparationStarted => self.remark(state, PREPARING),
            EngineEvent::PreparationReady { messages } => {
                if !std::mem::replace(&mut state.told_ready, true) {
                    let messages = counted(*messages as u64, "message", "messages");
                    self.remark(state, &format!("a summary of {messages} is ready for when it is needed"));
                }
            }
            EngineEvent::CompactionStarted { trigger: Trigger::Idle } => self.remark(state, WHILE_IDLE),
            EngineEvent::CompactionStarted { .. } => self.pass(state, "compacting the older part ..."),
            other => {
                if matches!(other, EngineEvent::CompactionCompleted { .. }) {
                    state.told_ready = false;
                }
                if let Some(words) = engine_words(other) {
                    self.end_text(state);
                    self.line(&note(&words, self.app.columns_now()));
                }
            }
        }
    }

    /// Prints a note that only people need.
    fn remark(&self, state: &mut ScreenState, text: &str) {
        if self.audience == Audience::Person {
            self.end_text(state);
            self.line(&note(text, self.app.columns_now()));
        }
    }

    fn answered(&self, state: &mut ScreenState, answered: &AnswerReport) {
        let tally = &mut state.tally;
        tally.calls += 1;
        tally.usage += answered.usage;
        match answered.cost.micro_usd {
            Some(micro_usd) => tally.cost_micro_usd = tally.cost_micro_usd.saturating_add(micro_usd),
            None => tally.unpriced += 1,
        }
        self.end_text(state);
        let why = match answered.stop {
            StopReason::OutputLimit => {
                "the answer reached the output limit (`model.max_tokens`) and is cut off"
            }
            StopReason::WindowLimit => "the answer filled the window and is cut off",
            StopReason::Refused => "the model declined to answer",
            _ => return,
        };
        self.line(&note(why, self.app.columns_now()));
    }
}

impl AgentEvents for Screen {
    fn tell(&self, event: AgentEvent) {
        let state = &mut *self.state();
        match event {
            AgentEvent::Asked { model } => self.pass(state, &format!("waiting for {model} ...")),
            AgentEvent::WordsSetAside(aside) => {
                self.end_text(state);
                self.line(&note(&set_aside_words(&aside), self.app.columns_now()));
            }
            AgentEvent::Text(text) => {
                self.clear_passing(state);
                if std::mem::take(&mut state.reasoning) {
                    self.write("\n\n");
                }
                // Queued lines are shown between two lines of the answer, not within one.
                let after_line =
                    if state.queued.is_empty() { None } else { text.find('\n').map(|at| at + 1) };
                let (first, rest) = text.split_at(after_line.unwrap_or(text.len()));
                let out = state.markdown.push(first, self.app.columns_now());
                self.write(&out);
                if !state.markdown.is_open() {
                    self.show_queued(state);
                }
                let out = state.markdown.push(rest, self.app.columns_now());
                self.write(&out);
            }
            AgentEvent::Reasoning(text) => {
                if self.audience == Audience::Person {
                    self.clear_passing(state);
                    if state.markdown.is_open() {
                        self.end_text(state);
                    }
                    state.reasoning = true;
                    let text = streamed(&text);
                    self.write(&if self.app.colour_stdout { text.dimmed().to_string() } else { text });
                }
            }
            AgentEvent::CallBegun { tool } => self.pass(state, &format!("{tool} ...")),
            AgentEvent::ToolStarted { title, .. } => self.pass(state, &format!("{title} ...")),
            AgentEvent::ToolFinished(done) => {
                self.end_text(state);
                let was_asked = std::mem::take(&mut state.asked);
                self.tool_done(&done, was_asked);
            }
            AgentEvent::Answered(answered) => self.answered(state, &answered),
            AgentEvent::Engine(event) => self.engine(state, &event),
        }
    }
}

/// The note about a message that is larger than the window.
fn set_aside_words(aside: &WordsSetAside) -> String {
    format!(
        "your message does not fit the window of {} tokens: it has {} characters, about {} tokens. The model is shown how it \
         begins and ends ({} characters) and can read the rest in pieces; the record has all of it",
        thousands(aside.window_tokens),
        thousands(aside.chars),
        thousands(aside.tokens),
        thousands(aside.shown_chars)
    )
}

/// The lines below a finished tool: its changes, or the end of its output.
fn beside(tool: &str, shown: &str) -> String {
    let shown = printable(shown);
    let mut out = String::new();
    if tool == "terminal" {
        let lines: Vec<&str> = shown.lines().filter(|line| !line.trim().is_empty()).collect();
        let left_out = lines.len().saturating_sub(OUTPUT_LINES);
        if left_out > 0 {
            let lines = counted(left_out as u64, "line", "lines");
            let _ = writeln!(out, "  {}", format!("... {lines} before").dimmed());
        }
        for line in lines.iter().skip(left_out) {
            let _ = writeln!(out, "  {}", shorten(line, 200).dimmed());
        }
        return out;
    }
    let lines: Vec<&str> = shown.lines().collect();
    for line in lines.iter().take(DIFFERENCE_LINES) {
        let _ = writeln!(out, "  {}", diff_line(line));
    }
    if lines.len() > DIFFERENCE_LINES {
        let more = counted((lines.len() - DIFFERENCE_LINES) as u64, "more line", "more lines");
        let _ = writeln!(out, "  {}", format!("... {more}").dimmed());
    }
    out
}

/// Formats a note of the program for this width.
fn note(text: &str, width: usize) -> String {
    labelled(&"·".cyan().to_string(), 2, &printable(text), width)
}

/// Formats an event about the context; `None` if users need not know of it.
fn engine_words(event: &EngineEvent) -> Option<String> {
    Some(match event {
        EngineEvent::CompactionCompleted { quality, report, .. } => compacted_words(*quality, report),
        EngineEvent::CompactionNoOp { detail, .. } => format!("not compacted: {detail}"),
        EngineEvent::CompactionAborted { detail, .. } => {
            format!("compaction failed, the conversation is unchanged: {detail}")
        }
        EngineEvent::CompactionBlocked { detail, .. } => format!("compaction postponed: {detail}"),
        EngineEvent::CompactionLocked { holder, .. } => format!("{holder} is compacting this conversation"),
        EngineEvent::PreparationPostponed => PUT_OFF.to_owned(),
        EngineEvent::PreparationFailed { detail } => format!("the background summary failed: {detail}"),
        EngineEvent::OutputSetAside { tool, chars, shown_chars, .. } => format!(
            "the output of {} was set aside: {} of {} characters are shown to the model, which can read the rest",
            tool.as_deref().unwrap_or("a tool"),
            thousands(*shown_chars),
            thousands(*chars)
        ),
        EngineEvent::WindowLearnt { model, window_tokens, was_tokens } => format!(
            "{model} has a window of {} tokens, not {}; that is remembered",
            thousands(*window_tokens),
            thousands(*was_tokens)
        ),
        EngineEvent::CapLowered { tokens, .. } => {
            format!("the output limit was lowered to {} tokens for this call", thousands(*tokens))
        }
        EngineEvent::FallbackUsed { model, instead_of, trouble } => {
            format!("using {model} instead of {instead_of}: {trouble}")
        }
        EngineEvent::Retrying { after, trouble } => format!("{trouble}; {after}, trying again"),
        EngineEvent::Notice { text } => text.clone(),
        EngineEvent::Pressure { .. }
        | EngineEvent::PreparationStarted
        | EngineEvent::PreparationReady { .. }
        | EngineEvent::CompactionStarted { .. } => return None,
    })
}

/// Formats the figures of a compaction.
pub(super) fn compacted_words(quality: Quality, report: &CompressReport) -> String {
    let facts = if report.facts_important > 0 {
        let attached = match report.facts_attached {
            0 => String::new(),
            attached => format!(", {attached} re-attached"),
        };
        format!(", {} of {} facts kept{attached}", report.facts_kept, report.facts_important)
    } else {
        String::new()
    };
    let by = match (&report.written_by, quality) {
        (Some(by), _) => {
            let cost = by.cost_micro_usd.map(|cost| format!(" for {}", dollars(cost))).unwrap_or_default();
            format!("; summary by {}{cost}", by.model)
        }
        (None, Quality::Rules) => "; summary by rules".to_owned(),
        (None, Quality::Model) => String::new(),
    };
    let money = report.money_words().map(|money| format!(": {money}")).unwrap_or_default();
    let mut words = format!(
        "compacted {} -> {} messages, {} -> {} tokens{money}{facts}{by}",
        report.messages.before,
        report.messages.after,
        rounded(report.tokens.before),
        rounded(report.tokens.after)
    );
    for warning in &report.warnings {
        words.push_str("; ");
        words.push_str(warning);
    }
    words
}

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;
