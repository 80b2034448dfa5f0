//! The facts of a Claude Code log beyond its messages.
//!
//! An answer is spread over several lines with the same `message.id`, each with the usage so far: that is one call, and the last line has
//! its usage. A `summary` line gives the title of the conversation whose last message it refers to, which need not be the one of its file.
//! A file that a session was resumed or forked into starts with lines of the earlier session.

use std::collections::{HashMap, HashSet};

use crate::json::{Cursor, Span};
use crate::log_facts::{LogCall, LogCompaction, LogFacts, MessageFacts, NewView};
use crate::log_time::parse_rfc3339_millis;
use crate::log_trace::LogTrace;
use crate::members::RawJson;
use crate::shared_text::SharedText;

/// The facts of one line, as raw strings.
#[derive(Default)]
struct ClaudeLine<'a> {
    kind: &'a str,
    uuid: &'a str,
    timestamp: &'a str,
    session: &'a str,
    folder: &'a str,
    branch: &'a str,
    request: &'a str,
    forked_from: &'a str,
    leaf: &'a str,
    /// The value of the member with the title on lines that have one, including quotes.
    title: &'a str,
    sidechain: bool,
    compact_summary: bool,
    message_id: &'a str,
    model: &'a str,
    usage: Option<Span>,
    stopped: bool,
}

pub(crate) fn read(trace: &LogTrace) -> LogFacts {
    let lines: Vec<ClaudeLine<'_>> = trace.lines().iter().map(|(_, json)| read_line(json.as_str())).collect();
    let mut message_of: HashMap<usize, usize> = HashMap::new();
    for message in 0..trace.messages() {
        message_of.extend(trace.sources_of(message).iter().map(|&source| (source as usize, message)));
    }
    let is_ours = |index: usize, line: &ClaudeLine<'_>| match &trace.agent {
        Some(_) => message_of.contains_key(&index),
        None => !line.sidechain,
    };
    let own: Vec<(usize, &ClaudeLine<'_>)> =
        lines.iter().enumerate().filter(|(index, line)| is_ours(*index, line)).collect();

    let mut facts = LogFacts { agent: trace.agent.clone(), ..LogFacts::default() };
    facts.messages = (0..trace.messages()).map(|message| message_facts(trace, &lines, message)).collect();
    facts.started_ms = own.iter().find_map(|(_, line)| parse_rfc3339_millis(line.timestamp));
    facts.folder = own.iter().find_map(|(_, line)| text_of(line.folder));
    facts.git_branch = own.iter().rev().find_map(|(_, line)| text_of(line.branch));
    let all = || lines.iter();
    facts.session = own
        .iter()
        .rev()
        .find_map(|(_, line)| text_of(line.session))
        .or_else(|| all().rev().find_map(|line| text_of(line.session)));
    facts.copied_from = own
        .iter()
        .find_map(|(_, line)| text_of(line.forked_from))
        .or_else(|| own.iter().find_map(|(_, line)| text_of(line.session)))
        .filter(|other| facts.session.as_ref() != Some(other));
    if trace.agent.is_none() {
        facts.title = title_of(&lines);
    }
    facts.compactions = own
        .iter()
        .filter(|(_, line)| line.compact_summary)
        .filter_map(|(index, line)| {
            let message = *message_of.get(index)?;
            Some(LogCompaction {
                message,
                at_ms: parse_rfc3339_millis(line.timestamp),
                view: NewView::NextMessage,
            })
        })
        .collect();
    facts.calls = calls(trace, &own, &message_of);
    facts
}

fn message_facts(trace: &LogTrace, lines: &[ClaudeLine<'_>], message: usize) -> MessageFacts {
    let first = trace.sources_of(message).first().map_or(0, |&source| source as usize);
    let line = lines.get(first);
    MessageFacts {
        at_ms: line.and_then(|line| parse_rfc3339_millis(line.timestamp)),
        id: line.and_then(|line| text_of(line.uuid)),
        line: trace.lines().get(first).map_or(0, |(number, _)| *number),
    }
}

/// Returns the title: the user's, or else the client's, or else the newest summary of a message in this file.
fn title_of(lines: &[ClaudeLine<'_>]) -> Option<String> {
    let titled = |kind: &str| {
        lines.iter().rev().filter(move |line| line.kind == kind).find_map(|line| text_of_raw(line.title))
    };
    titled("custom-title").or_else(|| titled("ai-title")).or_else(|| {
        let uuids: HashSet<&str> =
            lines.iter().map(|line| line.uuid).filter(|uuid| !uuid.is_empty()).collect();
        let own = |line: &&ClaudeLine<'_>| line.kind == "summary" && uuids.contains(line.leaf);
        lines.iter().rev().filter(own).find_map(|line| text_of_raw(line.title))
    })
}

fn calls(
    trace: &LogTrace,
    own: &[(usize, &ClaudeLine<'_>)],
    message_of: &HashMap<usize, usize>,
) -> Vec<LogCall> {
    let mut calls: Vec<LogCall> = Vec::new();
    let mut by_key: HashMap<&str, usize> = HashMap::new();
    for (index, line) in own {
        let Some(usage) = line.usage.and_then(|span| slice(trace, *index, span)) else { continue };
        if line.kind != "assistant" || line.model == "<synthetic>" {
            continue;
        }
        let key = [line.message_id, line.request, line.uuid].into_iter().find(|key| !key.is_empty());
        let Some(key) = key else { continue };
        let message = message_of.get(index).copied();
        match by_key.get(key).and_then(|&at| calls.get_mut(at)) {
            Some(call) => {
                call.usage = usage;
                call.message = call.message.or(message);
                call.output_unfinished = !line.stopped;
            }
            None => {
                by_key.insert(key, calls.len());
                calls.push(LogCall {
                    key: key.to_owned(),
                    model: text_of(line.model),
                    usage,
                    at_ms: parse_rfc3339_millis(line.timestamp),
                    message,
                    output_unfinished: !line.stopped,
                });
            }
        }
    }
    calls
}

fn slice(trace: &LogTrace, index: usize, span: Span) -> Option<SharedText> {
    let (_, json) = trace.lines().get(index)?;
    Some(json.slice(span.start as usize..span.end as usize)).filter(|usage| usage.as_str().starts_with('{'))
}

/// The text of the inside of a JSON string, unless it is empty.
fn text_of(raw: &str) -> Option<String> {
    let text = if raw.contains('\\') { crate::json::unescape(raw) } else { raw.to_owned() };
    (!text.is_empty()).then_some(text)
}

/// The text of a JSON string, quotes included, without the white space around it.
fn text_of_raw(raw: &str) -> Option<String> {
    RawJson(raw).as_text().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn read_line(json: &str) -> ClaudeLine<'_> {
    let mut line = ClaudeLine::default();
    let mut cursor = Cursor::new(json);
    cursor.enter_object();
    while let Some(key) = cursor.next_key() {
        match key {
            b"type" => line.kind = cursor.raw_string(json),
            b"uuid" => line.uuid = cursor.raw_string(json),
            b"timestamp" => line.timestamp = cursor.raw_string(json),
            b"sessionId" => line.session = cursor.raw_string(json),
            b"cwd" => line.folder = cursor.raw_string(json),
            b"gitBranch" => line.branch = cursor.raw_string(json),
            b"requestId" => line.request = cursor.raw_string(json),
            b"leafUuid" => line.leaf = cursor.raw_string(json),
            b"isSidechain" => line.sidechain = cursor.is_true(json),
            b"isCompactSummary" => line.compact_summary = cursor.is_true(json),
            b"customTitle" | b"aiTitle" | b"summary" => line.title = cursor.skip_value().of(json),
            b"forkedFrom" => {
                let value = RawJson(cursor.skip_value().of(json));
                line.forked_from = value
                    .get("sessionId")
                    .map(|id| id.0.trim_matches('"'))
                    .filter(|id| *id != "null")
                    .unwrap_or_default();
            }
            b"message" => read_message(&mut cursor, json, &mut line),
            _ => {
                cursor.skip_value();
            }
        }
    }
    line
}

fn read_message<'a>(cursor: &mut Cursor<'a>, json: &'a str, line: &mut ClaudeLine<'a>) {
    if !cursor.enter_object() {
        cursor.skip_value();
        return;
    }
    while let Some(key) = cursor.next_key() {
        match key {
            b"id" => line.message_id = cursor.raw_string(json),
            b"model" => line.model = cursor.raw_string(json),
            b"usage" => line.usage = Some(cursor.skip_value()),
            b"stop_reason" => line.stopped = cursor.skip_value().of(json) != "null",
            _ => {
                cursor.skip_value();
            }
        }
    }
}

#[cfg(test)]
#[path = "claude_facts_tests.rs"]
mod tests;
