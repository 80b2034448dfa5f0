//! A progress line on stderr. Nothing is printed if stderr is not a terminal.

use std::time::{Duration, Instant};

use throughline_store::StoreProgress;

use crate::app::App;
use crate::ui::text::shorten;

/// The shortest interval between two redraws; more frequent ones flicker.
const REDRAW_AFTER: Duration = Duration::from_millis(80);
/// Moves to the start of the line and clears it.
const CLEAR_LINE: &str = "\r\u{1b}[K";

/// A progress line.
pub(crate) struct ProgressLine<'a> {
    app: &'a App,
    drawn: Option<Instant>,
}

impl<'a> ProgressLine<'a> {
    pub(crate) fn new(app: &'a App) -> Self {
        Self { app, drawn: None }
    }

    /// Whether a redraw is due; saves formatting text that is not shown.
    pub(crate) fn is_due(&self) -> bool {
        self.app.watched && self.drawn.is_none_or(|drawn| drawn.elapsed() >= REDRAW_AFTER)
    }

    /// Shows this text, unless the last redraw was just now.
    pub(crate) fn show(&mut self, words: &str) {
        if self.is_due() {
            self.show_at_once(words);
        }
    }

    /// Shows this text at once. It is cut to less than the full width, which would wrap.
    fn show_at_once(&mut self, words: &str) {
        if self.app.watched {
            self.drawn = Some(Instant::now());
            let words = shorten(words, self.app.width.saturating_sub(1));
            self.app.tell_raw(&format!("{CLEAR_LINE}{words}"));
        }
    }

    /// Clears the line.
    pub(crate) fn end(&mut self) {
        if self.drawn.take().is_some() {
            self.app.tell_raw(CLEAR_LINE);
        }
    }
}

/// Formats the progress of a long operation.
pub(crate) fn progress_words(progress: StoreProgress) -> String {
    let percent = progress.done.saturating_mul(100).checked_div(progress.total).unwrap_or(100);
    format!("{} {percent} %", progress.what)
}
