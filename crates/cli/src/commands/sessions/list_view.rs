//! The list of conversations: two lines for each, with the figures above the title.

use owo_colors::OwoColorize;
use throughline_store::Conversation;

use crate::args::time::Now;
use crate::record::title_words;
use crate::ui::figures::{cost_words, rounded};
use crate::ui::table::{Side, TextTable};
use crate::ui::text::{columns, on_one_line, shorten, thousands};

const INDENT: usize = 2;
/// The widest model name, in columns.
const MAX_MODEL_COLUMNS: usize = 28;

/// Formats the list; empty without conversations.
pub(crate) fn render(conversations: &[Conversation], now: &Now, width: usize) -> String {
    if conversations.is_empty() {
        return String::new();
    }
    let mut table = TextTable::new(&[
        ("id", Side::Left),
        ("last active", Side::Left),
        ("messages", Side::Right),
        ("tokens", Side::Right),
        ("cost", Side::Right),
        ("compactions", Side::Right),
    ]);
    for conversation in conversations {
        let totals = &conversation.totals;
        table.row([
            conversation.tip.id.to_string(),
            now.ago(conversation.tip.active_ms),
            thousands(totals.messages),
            rounded(totals.message_tokens),
            cost_words(totals.cost_micro_usd, totals.calls, totals.unpriced_calls),
            thousands(conversation.compactions),
        ]);
    }
    let mut out = String::new();
    let rows = table.render(width, 0);
    let mut lines = rows.lines();
    out.extend(lines.next().map(|headings| format!("{headings}\n")));
    for (line, conversation) in lines.zip(conversations) {
        out.push_str(&format!("{}\n{}\n", line.bold(), title_line(conversation, width)));
    }
    out
}

/// The title, with the model at the right edge.
fn title_line(conversation: &Conversation, width: usize) -> String {
    let origin = &conversation.tip.origin.program;
    let model = conversation.tip.model.as_deref().unwrap_or(origin);
    let model = shorten(&on_one_line(model), MAX_MODEL_COLUMNS);
    let room = width.saturating_sub(INDENT + 2 + columns(&model));
    let title = shorten(&title_words(conversation.title.as_deref()), room);
    let space = room.saturating_sub(columns(&title)) + 2;
    let line = format!("{:INDENT$}{title}{:space$}{}", "", "", model.dimmed());
    line.trim_end().to_owned()
}

#[cfg(test)]
#[path = "list_view_tests.rs"]
mod tests;
