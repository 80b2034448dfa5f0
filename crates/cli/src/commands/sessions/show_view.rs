//! The output of `sessions show` for people: the transcript with a mark at each compaction, or the items of the view that a
//! model is sent.

use std::fmt::Write as _;
use std::ops::Range;

use owo_colors::OwoColorize;
use throughline_compaction::NotesReport;
use throughline_store::{Session, StoredMessage, ViewChange, ViewMessage};
use throughline_transcript::{Message, Role, SharedText, decode_message};

use crate::args::time::Now;
use crate::record::title_words;
use crate::ui::messages::{MessageWriter, TextAmount};
use crate::ui::text::{columns, counted, on_one_line, shorten, thousands, wrap};

const INDENT: usize = 2;
/// The end reason of a session that was compacted.
const COMPRESSION: &str = "compression";

/// The page with the transcript.
pub(crate) struct HumanViewPage<'a> {
    pub(crate) session: &'a Session,
    /// Where the conversation continued with another view.
    pub(crate) changes: &'a [ViewChange],
    pub(crate) transcript: &'a [StoredMessage],
    /// The messages that are shown.
    pub(crate) range: Range<usize>,
    pub(crate) amount: TextAmount,
    pub(crate) now: &'a Now,
    pub(crate) width: usize,
}

/// The number of compactions of the newest view, as counted in the list of sessions, and the number of undone ones.
fn compactions(changes: &[ViewChange]) -> (u64, u64) {
    let made = changes.iter().filter(|change| change.is_compaction()).count() as u64;
    let in_view = changes.iter().fold(0_u64, |count, change| match change.kind.as_str() {
        COMPRESSION | "redo" => count + 1,
        "undo" => count.saturating_sub(1),
        _ => count,
    });
    (in_view, made.saturating_sub(in_view))
}

impl HumanViewPage<'_> {
    pub(crate) fn render(&self) -> String {
        let tokens = self.transcript.iter().map(|message| message.tokens).sum();
        let mut out = title(self.session, self.now, self.width);
        let (compactions, undone) = compactions(self.changes);
        let undone = if undone > 0 { format!(" ({} undone)", thousands(undone)) } else { String::new() };
        let figures = format!(
            "{}, {} tokens, {}{undone}",
            counted(self.transcript.len() as u64, "message", "messages"),
            thousands(tokens),
            counted(compactions, "compaction", "compactions")
        );
        let _ = writeln!(out, "{:INDENT$}{figures}", "");
        let shown = self.transcript.get(self.range.clone()).unwrap_or_default();
        let mut pending = self.changes.iter().peekable();
        if let ([first, .., last], true) = (shown, shown.len() < self.transcript.len()) {
            let _ = writeln!(out, "{:INDENT$}shown are #{} to #{}", "", first.seq, last.seq);
            if self.range.start > 0 {
                while pending.next_if(|change| change.at_seq < first.seq).is_some() {}
            }
        }
        let mut writer = MessageWriter::new(self.amount, self.width);
        for message in shown {
            while let Some(change) = pending.next_if(|change| change.at_seq <= message.seq) {
                out.push_str(&self.change(change));
            }
            let decoded = message.decode();
            let (role, speaker) = speaker(message.role, decoded.as_ref());
            let words = [
                format!("#{} {speaker}", message.seq),
                self.now.date_time(message.at_ms),
                counted(message.tokens, "token", "tokens"),
            ];
            push_message(&mut out, &mut writer, role, &words, decoded);
        }
        if self.range.end == self.transcript.len() {
            pending.for_each(|change| out.push_str(&self.change(change)));
        }
        out
    }

    /// The mark where another view began.
    fn change(&self, change: &ViewChange) -> String {
        let what = match change.kind.as_str() {
            COMPRESSION => "compacted".to_owned(),
            "undo" => "compaction undone".to_owned(),
            "redo" => "compaction redone".to_owned(),
            "branch" => "branched off".to_owned(),
            other => format!("new window ({})", on_one_line(other)),
        };
        let by = change.author.as_deref().map(author_words).unwrap_or_default();
        let words = format!("══ {what} {}{by} ", self.now.date_time(change.at_ms));
        let words = shorten(&words, self.width);
        let rule = "═".repeat(self.width.saturating_sub(columns(&words)));
        let mut out = format!("\n{}\n", format!("{words}{rule}").magenta().bold());
        if let (Some(messages), Some(tokens)) = (change.messages_before, change.tokens_before) {
            let after = match (change.messages_after, change.tokens_after) {
                (Some(messages), Some(tokens)) => {
                    format!(" -> {}, {} tokens", counted(messages, "message", "messages"), thousands(tokens))
                }
                _ => " before it".to_owned(),
            };
            let before =
                format!("{}, {} tokens", counted(messages, "message", "messages"), thousands(tokens));
            push_wrapped(&mut out, &format!("{before}{after}"), self.width);
        }
        let notes = change.notes.clone().and_then(|notes| serde_json::from_value::<NotesReport>(notes).ok());
        if let Some(notes) = notes {
            push_wrapped(&mut out, &notes.to_string(), self.width);
        }
        let from = change.from.as_ref().map(|from| format!("{from} -> ")).unwrap_or_default();
        push_wrapped(&mut out, &format!("{from}{}", change.to), self.width);
        out
    }
}

/// The page with the view that a model would be sent.
pub(crate) struct ModelViewPage<'a> {
    pub(crate) session: &'a Session,
    pub(crate) shown: &'a [ViewMessage],
    pub(crate) amount: TextAmount,
    pub(crate) now: &'a Now,
    pub(crate) width: usize,
}

impl ModelViewPage<'_> {
    pub(crate) fn render(&self) -> String {
        let tokens = self.shown.iter().map(ViewMessage::tokens).sum();
        let mut out = title(self.session, self.now, self.width);
        let figures = format!(
            "what a model is sent: {}, {} tokens, without system prompt and tools",
            counted(self.shown.len() as u64, "message", "messages"),
            thousands(tokens)
        );
        push_wrapped(&mut out, &figures, self.width);
        let mut writer = MessageWriter::new(self.amount, self.width);
        for (index, item) in self.shown.iter().enumerate() {
            let message = decode_message(SharedText::new(item.json().to_owned()));
            let role = message.as_ref().map_or(Role::Other, Message::role);
            let (role, speaker) = speaker(role, message.as_ref());
            let mut words = vec![format!("{} {speaker}", index + 1)];
            words.extend(item_words(item));
            words.push(counted(item.tokens(), "token", "tokens"));
            push_message(&mut out, &mut writer, role, &words, message);
        }
        out
    }
}

/// Describes the kind of an item of the view.
fn item_words(item: &ViewMessage) -> Vec<String> {
    match item {
        ViewMessage::Verbatim(message) => vec![format!("#{}", message.seq)],
        ViewMessage::Rendition(message, rendition) => {
            let kinds: Vec<String> = rendition.kinds.iter().map(|kind| on_one_line(kind)).collect();
            vec![format!("#{}", message.seq), format!("in other words: {}", kinds.join(", "))]
        }
        ViewMessage::Summary { summary, .. } => vec![format!("summary {}", summary.0)],
        ViewMessage::Synthetic { kind, .. } => vec![format!("added: {}", on_one_line(kind))],
    }
}

fn push_message(
    out: &mut String,
    writer: &mut MessageWriter,
    role: Role,
    words: &[String],
    message: Option<Message>,
) {
    let _ = write!(out, "\n{}\n", writer.heading(role, words));
    match message {
        Some(message) => out.push_str(&writer.body(&message)),
        None => {
            let _ =
                writeln!(out, "{:INDENT$}(the recorded bytes are no message; see `throughline doctor`)", "");
        }
    }
}

/// The title, and the kind of session.
fn title(session: &Session, now: &Now, width: usize) -> String {
    let mut out = String::new();
    let name = title_words(session.title.as_deref());
    let _ = writeln!(out, "{}", wrap(&name, width, INDENT).trim_end().bold());
    let mut words = vec![session.id.to_string(), on_one_line(&session.origin.program)];
    words.extend(session.model.as_deref().map(on_one_line));
    words.extend(session.origin.project.as_deref().map(on_one_line));
    push_wrapped(&mut out, &words.join(", "), width);
    let end = match (&session.end_reason, session.ended_ms) {
        (Some(reason), Some(at)) => {
            format!("ended {} ({})", now.date_time(at), on_one_line(reason.as_str()))
        }
        _ => format!("last active {}", now.ago(session.active_ms)),
    };
    push_wrapped(&mut out, &format!("began {}, {end}", now.date_time(session.started_ms)), width);
    out
}

fn push_wrapped(out: &mut String, words: &str, width: usize) {
    for line in wrap(words, width.saturating_sub(INDENT), 0).lines() {
        let _ = writeln!(out, "{:INDENT$}{line}", "");
    }
}

/// The speaker of a message, whatever its role on the wire: tool results and injected text are not the user's.
fn speaker(role: Role, message: Option<&Message>) -> (Role, &'static str) {
    match message {
        Some(message) if role == Role::User && !message.is_human() => {
            (Role::Tool, if message.has_results() { "tool results" } else { "user (by a program)" })
        }
        _ => (role, role.name()),
    }
}

fn author_words(author: &str) -> String {
    match author {
        "" => String::new(),
        "rules" => " by the built-in rules".to_owned(),
        other => format!(" by {}", on_one_line(other)),
    }
}

#[cfg(test)]
#[path = "show_view_tests.rs"]
mod tests;
