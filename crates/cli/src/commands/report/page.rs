//! The HTML of a report. All recorded text is escaped: it can become neither markup nor a request.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;

use throughline_store::{StoredMessage, ViewChange};
use throughline_transcript::{Message, Part, Role};

use super::Report;
use super::chart::{LAYERS, context_chart};
use crate::ui::figures::{cost_words, dollars};
use crate::ui::text::{counted, thousands};

/// The length of tool output, in characters, from which it is collapsed.
const LONG_OUTPUT_CHARS: usize = 600;

const STYLE: &str = include_str!("report.css");

/// Renders the HTML file.
pub(super) fn render(report: &Report<'_>) -> String {
    let title = report.text(report.name.as_deref().unwrap_or("Conversation"));
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <meta name=\"referrer\" content=\"no-referrer\"><title>{title}</title>\n<style>\n{STYLE}</style></head>\n<body><main>\n"
    );
    let _ = writeln!(out, "<h1>{title}</h1>");
    facts(report, &mut out);
    if let Some(chart) = context_chart(&report.calls, &report.changes) {
        let legend: Vec<String> =
            LAYERS.iter().map(|(class, name)| format!("<li><i class=\"{class}\"></i>{name}</li>")).collect();
        let _ = writeln!(
            out,
            "<section><h2>Context over time</h2>\n<p>What each call sent, in tokens. Dashed lines are compactions.</p>\n{chart}\n<ul class=\"legend\">{}</ul></section>",
            legend.concat()
        );
    }
    compactions(report, &mut out);
    calls(report, &mut out);
    transcript(report, &mut out);
    let _ = writeln!(
        out,
        "<footer>Written by Throughline {} on {}.</footer></main></body></html>",
        env!("CARGO_PKG_VERSION"),
        escape(&report.now.date_time(report.now.ms))
    );
    out
}

impl Report<'_> {
    /// Prepares a recorded text for the file: masks secrets if asked to, and escapes it.
    fn text(&self, text: &str) -> String {
        let masked = match &self.redactor {
            Some(redactor) => redactor.redact(text),
            None => Cow::Borrowed(text),
        };
        escape(&masked)
    }
}

/// Escapes the special characters of HTML and removes invisible characters: terminal codes, and marks that reverse the text direction.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

fn facts(report: &Report<'_>, out: &mut String) {
    let conversation = &report.conversation;
    let (tip, totals) = (&conversation.tip, &conversation.totals);
    let usage = &totals.usage;
    let compactions = report.changes.iter().filter(|change| change.is_compaction()).count();
    let rows = [
        ("Session", tip.id.to_string()),
        ("Program", tip.origin.program.clone()),
        ("Project", tip.origin.project.clone().unwrap_or_default()),
        ("Model", tip.model.clone().unwrap_or_default()),
        ("Began", report.now.date_time(conversation.started_ms)),
        ("Last active", report.now.date_time(tip.active_ms)),
        ("Messages", thousands(report.messages.len() as u64)),
        ("Calls", thousands(totals.calls)),
        ("Compactions", thousands(compactions as u64)),
        ("Cost", cost_words(totals.cost_micro_usd, totals.calls, totals.unpriced_calls)),
        ("Read from the cache", thousands(usage.cache_read)),
        ("Written to the cache", thousands(usage.cache_write)),
        ("Uncached", thousands(usage.input)),
        ("Output", thousands(usage.output)),
    ];
    out.push_str("<dl>");
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        let _ = write!(out, "<dt>{name}</dt><dd>{}</dd>", report.text(value));
    }
    out.push_str("</dl>\n");
}

fn compactions(report: &Report<'_>, out: &mut String) {
    let changes: Vec<&ViewChange> = report.changes.iter().filter(|change| change.is_compaction()).collect();
    if changes.is_empty() {
        return;
    }
    out.push_str("<section><h2>Compactions</h2>\n");
    for change in changes {
        let figure = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), thousands);
        let _ = write!(
            out,
            "<details><summary>{} at message {}: {} tokens to {}, {} messages to {}, by {}</summary>",
            escape(&report.now.date_time(change.at_ms)),
            change.at_seq,
            figure(change.tokens_before),
            figure(change.tokens_after),
            figure(change.messages_before),
            figure(change.messages_after),
            report.text(change.author.as_deref().unwrap_or("an unknown author"))
        );
        match report.summaries.iter().find(|summary| summary.session == change.to) {
            Some(summary) => {
                let _ = writeln!(out, "<pre>{}</pre></details>", report.text(&summary.document));
            }
            None => out.push_str("<p>The record has no notes of it.</p></details>\n"),
        }
    }
    out.push_str("</section>\n");
}

fn calls(report: &Report<'_>, out: &mut String) {
    if report.calls.is_empty() {
        return;
    }
    let _ = write!(
        out,
        "<section><h2>Calls</h2>\n<details><summary>{}</summary><table><thead><tr><th>time</th><th>model</th>\
         <th>read</th><th>written</th><th>uncached</th><th>output</th><th>cost</th><th>cache miss or error</th></tr></thead><tbody>",
        counted(report.calls.len() as u64, "call", "calls")
    );
    for call in &report.calls {
        let cost = call.cost_micro_usd.map_or_else(|| "?".to_owned(), dollars);
        let note = call.error.as_deref().or(call.cache_miss.as_deref()).unwrap_or_default();
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{cost}</td><td>{}</td></tr>",
            escape(&report.now.date_time(call.at_ms)),
            report.text(&call.model),
            thousands(call.usage.cache_read),
            thousands(call.usage.cache_write),
            thousands(call.usage.input),
            thousands(call.usage.output),
            report.text(note)
        );
    }
    out.push_str("</tbody></table></details></section>\n");
}

fn transcript(report: &Report<'_>, out: &mut String) {
    out.push_str("<section><h2>Transcript</h2>\n");
    let mut changes = report.changes.iter().peekable();
    let mut tools: HashMap<String, String> = HashMap::new();
    for message in &report.messages {
        while let Some(change) = changes.next_if(|change| change.at_seq <= message.seq) {
            let _ = writeln!(out, "<p class=\"change\">{}</p>", escape(&change_words(change)));
        }
        one_message(report, message, &mut tools, out);
    }
    out.push_str("</section>\n");
}

fn change_words(change: &ViewChange) -> String {
    match change.kind.as_str() {
        "compression" => "compacted here".to_owned(),
        "undo" => "a compaction was undone here".to_owned(),
        "redo" => "a compaction was redone here".to_owned(),
        other => format!("another session goes on here ({other})"),
    }
}

fn one_message(
    report: &Report<'_>,
    stored: &StoredMessage,
    tools: &mut HashMap<String, String>,
    out: &mut String,
) {
    let Some(message) = stored.decode() else {
        let _ = writeln!(
            out,
            "<article class=\"damaged\"><p>Message {} cannot be read.</p></article>",
            stored.seq
        );
        return;
    };
    let class = match stored.role {
        Role::User if message.has_results() => "tool",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
        Role::System | Role::Developer => "system",
        _ => "user",
    };
    let _ = writeln!(
        out,
        "<article class=\"{class}\" id=\"m{seq}\"><h3><a href=\"#m{seq}\">{seq}</a> {role} <time>{time}</time> <small>{tokens} tokens</small></h3>",
        seq = stored.seq,
        role = escape(stored.role.name()),
        time = escape(&report.now.date_time(stored.at_ms)),
        tokens = thousands(stored.tokens)
    );
    for part in message.parts() {
        one_part(report, &message, part, tools, out);
    }
    out.push_str("</article>\n");
}

fn one_part(
    report: &Report<'_>,
    message: &Message,
    part: &Part,
    tools: &mut HashMap<String, String>,
    out: &mut String,
) {
    match part {
        Part::Text(text) => {
            let _ = writeln!(out, "<pre>{}</pre>", report.text(message.str(*text).trim_matches('\n')));
        }
        Part::Reasoning { text, .. } => {
            let words = text.map_or(Cow::Borrowed("It cannot be read."), |text| message.str(text));
            collapsed(out, "reasoning", &report.text(&words));
        }
        Part::ToolCall { id, name, arguments, .. } => {
            let name = message.str(*name).into_owned();
            collapsed(
                out,
                &format!("call of {}", report.text(&name)),
                &report.text(&message.arguments_text(*arguments)),
            );
            tools.insert(message.str(*id).into_owned(), name);
        }
        Part::ToolResult { call_id, is_error, content, .. } => {
            let tool = tools.get(message.str(*call_id).as_ref()).map_or("a tool", String::as_str);
            let failed = if *is_error == Some(true) { ", failed" } else { "" };
            let text = message.result_text(content);
            let words = format!("result of {}{failed}", report.text(tool));
            match text.chars().nth(LONG_OUTPUT_CHARS) {
                Some(_) => collapsed(out, &words, &report.text(&text)),
                None => {
                    let _ = writeln!(out, "<p class=\"label\">{words}</p><pre>{}</pre>", report.text(&text));
                }
            }
            for _ in content.iter().filter(|part| matches!(part, Part::Image { .. })) {
                out.push_str("<p class=\"label\">a picture</p>\n");
            }
        }
        Part::Image { .. } => out.push_str("<p class=\"label\">a picture</p>\n"),
        Part::Opaque { .. } => {
            out.push_str("<p class=\"label\">a part that Throughline carries as it is</p>\n")
        }
    }
}

fn collapsed(out: &mut String, words: &str, text: &str) {
    let _ = writeln!(out, "<details><summary>{words}</summary><pre>{text}</pre></details>");
}

#[cfg(test)]
mod tests {
    //! Recorded text can have no effect in the file.

    use super::*;

    #[test]
    fn recorded_text_stays_text() {
        let escaped = escape("<script>alert('\"&')</script>\u{1b}[31m\u{202e}txt\u{0}\n\tend");
        assert_eq!(
            escaped,
            "&lt;script&gt;alert(&#39;&quot;&amp;&#39;)&lt;/script&gt;\u{fffd}[31m\u{fffd}txt\u{fffd}\n\tend"
        );
    }
}
