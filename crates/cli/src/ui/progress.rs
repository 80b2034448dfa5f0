//! A progress line on stderr. Nothing is printed if stderr is not a terminal.

use std::time::{Duration, Instant};

use throughline_store::StoreProgress;

use crate::app::App;
use crate::ui::text::shorten;

/// Shown more often than this, a line only flickers.
const REDRAW_AFTER: Duration = Duration::from_millis(80);
/// Back to the start of the line, and the line emptied.
const CLEAR_LINE: &str = "\r\u{1b}[K";

/// The line.
pub(crate) struct ProgressLine<'a> {
    app: &'a App,
    drawn: Option<Instant>,
}

impl<'a> ProgressLine<'a> {
    pub(crate) fn new(app: &'a App) -> Self {
        Self { app, drawn: None }
    }

    /// Whether anything would be seen now; saves composing words that are not read.
    pub(crate) fn is_due(&self) -> bool {
        self.app.watched && self.drawn.is_none_or(|drawn| drawn.elapsed() >= REDRAW_AFTER)
    }

    /// Shows these words in place of the last ones, unless those were shown just now.
    pub(crate) fn show(&mut self, words: &str) {
        if self.is_due() {
            self.show_at_once(words);
        }
    }

    /// Shows words that stay for a while. A full line would make the terminal go to the next.
    fn show_at_once(&mut self, words: &str) {
        if self.app.watched {
            self.drawn = Some(Instant::now());
            let words = shorten(words, self.app.width.saturating_sub(1));
            self.app.tell_raw(&format!("{CLEAR_LINE}{words}"));
        }
    }

    /// Leaves the line empty.
    pub(crate) fn end(&mut self) {
        if self.drawn.take().is_some() {
            self.app.tell_raw(CLEAR_LINE);
        }
    }
}

/// How far a long piece of work is.
pub(crate) fn progress_words(progress: StoreProgress) -> String {
    let percent = progress.done.saturating_mul(100).checked_div(progress.total).unwrap_or(100);
    format!("{} {percent} %", progress.what)
}
