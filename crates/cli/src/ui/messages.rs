//! Prints one message: its text, calls and results, without terminal control characters.

use std::collections::HashMap;
use std::fmt::Write as _;

use owo_colors::OwoColorize;
use throughline_transcript::{Arguments, Message, Part, RawJson, Role};

use crate::ui::text::{columns, counted, glimpse, on_one_line, printable, shorten, thousands, wrap};

/// The indentation of bodies, so that no line of a message can be mistaken for output of the program.
const INDENT: usize = 2;
/// The number of lines of tool output, or of an argument, that are shown in excerpts.
const LINES_OF_RESULT: usize = 8;
const LINES_OF_REASONING: usize = 4;

/// How much of long output is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextAmount {
    /// All text; of tool output, arguments and reasoning only the beginning.
    Beginning,
    /// Everything.
    Everything,
}

/// Formats messages one after another; results are labelled with their tools.
pub(crate) struct MessageWriter {
    amount: TextAmount,
    width: usize,
    tools: HashMap<String, String>,
}

impl MessageWriter {
    pub(crate) fn new(amount: TextAmount, width: usize) -> Self {
        Self { amount, width, tools: HashMap::new() }
    }

    /// Formats the heading of a message: a rule of the full width, with words in it.
    pub(crate) fn heading(&self, role: Role, words: &[String]) -> String {
        let mut plain = String::from("──");
        for word in words {
            let _ = write!(plain, " {word} ──");
        }
        let plain = shorten(&plain, self.width);
        let rule = "─".repeat(self.width.saturating_sub(columns(&plain)));
        let line = format!("{plain}{rule}");
        match role {
            Role::User => line.green().bold().to_string(),
            Role::Assistant => line.cyan().bold().to_string(),
            _ => line.dimmed().to_string(),
        }
    }

    /// Formats the message itself, as indented lines.
    pub(crate) fn body(&mut self, message: &Message) -> String {
        let mut out = String::new();
        for part in message.parts() {
            self.part(&mut out, message, part);
        }
        if out.is_empty() {
            out.push_str(&format!("{:INDENT$}{}\n", "", "(empty)".dimmed()));
        }
        out
    }

    fn part(&mut self, out: &mut String, message: &Message, part: &Part) {
        match part {
            Part::Text(text) => {
                let text = printable(&message.str(*text));
                let text = text.trim_matches('\n');
                for line in wrap(text, self.width.saturating_sub(INDENT), 0).lines() {
                    push_line(out, INDENT, line);
                }
            }
            Part::Reasoning { text: Some(text), .. } => {
                push_line(out, INDENT, &"(reasoning)".dimmed().to_string());
                self.excerpt(out, &message.str(*text), LINES_OF_REASONING);
            }
            Part::Reasoning { text: None, .. } => {
                push_line(out, INDENT, &"(reasoning that cannot be read)".dimmed().to_string());
            }
            Part::ToolCall { id, name, arguments, .. } => {
                let name = on_one_line(&message.str(*name));
                self.tools.insert(message.str(*id).into_owned(), name.clone());
                push_line(out, INDENT, &format!("-> {}", name.yellow()));
                self.arguments(out, message, *arguments);
            }
            Part::ToolResult { call_id, is_error, content, .. } => {
                let tool = self.tools.get(message.str(*call_id).as_ref());
                let tool = tool.map_or("(unknown call)", String::as_str);
                let failed = if *is_error == Some(true) { ", failed" } else { "" };
                push_line(out, INDENT, &format!("<- {}{}", tool.yellow(), failed.red()));
                for piece in content {
                    match piece {
                        Part::Text(text) => self.excerpt(out, &message.str(*text), LINES_OF_RESULT),
                        other => self.part(out, message, other),
                    }
                }
            }
            Part::Image { .. } => push_line(out, INDENT, "[image]"),
            Part::Opaque { kind, .. } => {
                let kind = kind
                    .map_or_else(|| "something unknown".to_owned(), |kind| on_one_line(&message.str(kind)));
                push_line(out, INDENT, &format!("[{}]", shorten(&kind, self.width / 2)));
            }
        }
    }

    /// Formats arguments: one per line if they are an object, otherwise unchanged.
    fn arguments(&self, out: &mut String, message: &Message, arguments: Arguments) {
        let json = message.arguments_text(arguments);
        let members: Vec<(String, String)> = RawJson(json.trim())
            .members()
            .map(|(key, value)| {
                let value = value.as_text().map_or_else(|| value.0.to_owned(), |text| text.to_string());
                (on_one_line(&key), value)
            })
            .collect();
        let room = self.width.saturating_sub(INDENT + 3);
        if members.is_empty() {
            if !matches!(json.trim(), "" | "{}") {
                self.excerpt(out, &json, LINES_OF_RESULT);
            }
            return;
        }
        for (key, value) in members {
            let lead = format!("{key}: ");
            let is_short = !value.trim_end().contains('\n') && columns(&value) + columns(&lead) <= room;
            if is_short || self.amount == TextAmount::Beginning {
                let value = glimpse(&value, room.saturating_sub(columns(&lead)).max(8));
                push_line(out, INDENT + 3, &format!("{}{value}", lead.dimmed()));
            } else {
                push_line(out, INDENT + 3, &lead.trim_end().dimmed().to_string());
                self.excerpt(out, &value, usize::MAX);
            }
        }
    }

    /// Writes text line by line; in excerpts only its beginning, with the number of omitted lines.
    fn excerpt(&self, out: &mut String, text: &str, lines: usize) {
        let text = printable(text);
        let text = text.trim_matches('\n');
        let all = text.lines().count();
        let limit = match self.amount {
            TextAmount::Beginning => lines,
            TextAmount::Everything => usize::MAX,
        };
        // One more line takes no more space than the note about its omission.
        let shown = if all <= limit.saturating_add(1) { all } else { limit };
        let room = self.width.saturating_sub(INDENT + 3);
        for line in text.lines().take(shown) {
            let line =
                if self.amount == TextAmount::Beginning { shorten(line, room) } else { line.to_owned() };
            push_line(out, INDENT + 3, &line.dimmed().to_string());
        }
        if shown < all {
            let more = counted((all - shown) as u64, "more line", "more lines");
            let words = format!("({more}, {} characters in all)", thousands(text.chars().count() as u64));
            push_line(out, INDENT + 3, &words);
        }
    }
}

fn push_line(out: &mut String, indent: usize, line: &str) {
    if line.trim().is_empty() {
        out.push('\n');
    } else {
        let _ = writeln!(out, "{:indent$}{line}", "");
    }
}

#[cfg(test)]
#[path = "messages_tests.rs"]
mod tests;
