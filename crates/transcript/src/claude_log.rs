//! Claude Code session logs: one event per line, converted to Anthropic messages.
//!
//! One assistant answer is spread over several lines with the same `message.id`, and the results of its parallel calls are on lines in
//! between; in the wire format that is one assistant message followed by one user message. Content blocks are copied unchanged. Progress
//! and bookkeeping are not messages; rows of sub-agents (`isSidechain`) are messages of conversations of their own ([`sub_agents`]).

use std::collections::{HashMap, HashSet};

use crate::blocks::decode_message;
use crate::human::is_injected;
use crate::json::{Cursor, Span};
use crate::log_facts::SubAgent;
use crate::log_trace::LogTrace;
use crate::members::RawJson;
use crate::message::{Message, Role};
use crate::shared_text::SharedText;
use crate::transcript::{Note, Preamble, Source, Transcript};
use crate::write::WireFormat;

/// One line, parsed.
#[derive(Default)]
struct ClaudeEvent<'a> {
    line: usize,
    kind: &'a str,
    uuid: &'a str,
    parent: &'a str,
    agent: &'a str,
    sidechain: bool,
    meta: bool,
    compact_summary: bool,
    api_error: bool,
    role: &'a str,
    message_id: &'a str,
    model: &'a str,
    content: &'a str,
}

/// A message under construction from several lines.
struct MessageDraft {
    role: Role,
    /// The events it comes from, in order; several if lines were joined.
    events: Vec<u32>,
    meta: bool,
    carries_results: bool,
}

pub(crate) fn decode(lines: &[(usize, SharedText)], since_compaction: bool) -> Transcript {
    let events = read_events(lines);
    let mut notes = Vec::new();
    let abandoned = abandoned_branches(&events);
    let from = if since_compaction { last_compaction(&events) } else { 0 };

    let mut assembly = Assembly::new(&events);
    let (mut side, mut left_out) = (0usize, 0usize);
    for (index, event) in events.iter().enumerate().skip(from) {
        if !assembly.is_new_speech(event) {
            continue;
        }
        if event.sidechain {
            side += 1;
            continue;
        }
        if abandoned.contains(event.uuid) {
            left_out += 1;
            continue;
        }
        if event.compact_summary && from == 0 {
            notes.push(Note { line: Some(event.line), text: Note::COMPACTION.into() });
        }
        assembly.add(index, event);
    }
    for (count, what) in [
        (side, Note::SUB_AGENTS),
        (assembly.errors, "error notices of the client that were never sent, left out"),
        (left_out, "messages on branches that were edited away, left out"),
    ] {
        if count > 0 {
            notes.push(Note { line: None, text: format!("{what}: {count}") });
        }
    }
    assembly.finish(LogTrace::new(lines), notes)
}

/// The conversations of sub-agents in a log.
pub(crate) fn sub_agents(trace: &LogTrace) -> Vec<SubAgent> {
    let events = read_events(trace.lines());
    let mut order: Vec<&str> = Vec::new();
    let mut groups: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut agent_of: HashMap<&str, &str> = HashMap::new();
    for (index, event) in events.iter().enumerate().filter(|(_, event)| event.sidechain) {
        // Older logs name no agent: a row belongs to the agent of the row it replies to.
        let agent = match (event.agent, agent_of.get(event.parent)) {
            ("", Some(agent)) => agent,
            ("", None) if event.uuid.is_empty() => "unnamed",
            ("", None) => event.uuid,
            (agent, _) => agent,
        };
        if !event.uuid.is_empty() {
            agent_of.insert(event.uuid, agent);
        }
        let group = groups.entry(agent).or_insert_with(|| {
            order.push(agent);
            Vec::new()
        });
        group.push(index);
    }
    let mut agents = Vec::new();
    for agent in order {
        let group = groups.remove(agent).unwrap_or_default();
        let first = group.first().copied().unwrap_or_default();
        let mut assembly = Assembly::new(&events);
        for index in group {
            if let Some(event) = events.get(index)
                && assembly.is_new_speech(event)
            {
                assembly.add(index, event);
            }
        }
        let transcript = assembly.finish(trace.of_agent(agent.to_owned()), Vec::new());
        if !transcript.messages.is_empty() {
            let said_before = |message: &usize| {
                trace.sources_of(*message).first().is_some_and(|source| (*source as usize) < first)
            };
            let after_messages = (0..trace.messages()).filter(said_before).count();
            agents.push(SubAgent { id: agent.to_owned(), after_messages, transcript });
        }
    }
    agents
}

/// Assembles messages from events, in order.
struct Assembly<'e, 'a> {
    events: &'e [ClaudeEvent<'a>],
    drafts: Vec<MessageDraft>,
    by_message_id: HashMap<&'a str, usize>,
    seen_uuids: HashSet<&'a str>,
    model: Option<&'a str>,
    errors: usize,
}

impl<'e, 'a> Assembly<'e, 'a> {
    fn new(events: &'e [ClaudeEvent<'a>]) -> Self {
        Self {
            events,
            drafts: Vec::new(),
            by_message_id: HashMap::new(),
            seen_uuids: HashSet::new(),
            model: None,
            errors: 0,
        }
    }

    /// Whether an event has a new message: a resumed session repeats lines.
    fn is_new_speech(&mut self, event: &ClaudeEvent<'a>) -> bool {
        let speaks = matches!(event.kind, "user" | "assistant") && !event.content.is_empty();
        speaks && (event.uuid.is_empty() || self.seen_uuids.insert(event.uuid))
    }

    fn add(&mut self, index: usize, event: &ClaudeEvent<'a>) {
        if event.api_error || event.model == "<synthetic>" {
            self.errors += 1;
            return;
        }
        if !event.model.is_empty() {
            self.model = Some(event.model);
        }
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        let role = if event.role == "assistant" { Role::Assistant } else { Role::User };
        if role == Role::Assistant && !event.message_id.is_empty() {
            let known = self.by_message_id.get(event.message_id);
            if let Some(draft) = known.and_then(|&at| self.drafts.get_mut(at)) {
                draft.events.push(index);
                return;
            }
            self.by_message_id.insert(event.message_id, self.drafts.len());
        }
        let carries_results = role == Role::User && has_result_block(event.content);
        let meta = event.meta || event.compact_summary;
        let draft = MessageDraft { role, events: vec![index], meta, carries_results };
        if !carries_results {
            self.drafts.push(draft);
            return;
        }
        // Results of parallel calls belong in the user message right after their assistant message, whatever the client logged in between.
        let answer = self.drafts.iter().rposition(|draft| draft.role == Role::Assistant);
        let place = answer.map_or(self.drafts.len(), |at| at + 1);
        let since = self.drafts.get_mut(place..);
        match since.and_then(|since| since.iter_mut().find(|draft| draft.carries_results)) {
            Some(earlier) => earlier.events.push(index),
            None => self.drafts.insert(place, draft),
        }
    }

    fn finish(self, mut trace: LogTrace, notes: Vec<Note>) -> Transcript {
        let mut messages = Vec::with_capacity(self.drafts.len());
        for draft in &self.drafts {
            if let Some(message) = message_of(draft, self.events) {
                trace.push(&draft.events);
                messages.push(message);
            }
        }
        let preamble = Preamble { model: self.model.map(str::to_owned), ..Preamble::default() };
        Transcript {
            wire_format: WireFormat::Anthropic,
            source: Source::ClaudeCodeLog,
            messages,
            preamble,
            notes,
            layout: None,
            log: Some(trace),
        }
    }
}

fn read_events(lines: &[(usize, SharedText)]) -> Vec<ClaudeEvent<'_>> {
    lines.iter().map(|(number, line)| read_event(*number, line.as_str())).collect()
}

fn has_result_block(content: &str) -> bool {
    let mut cursor = Cursor::new(content);
    if !cursor.enter_array() {
        return false;
    }
    while cursor.next_element() {
        if cursor.enter_object() {
            while let Some(key) = cursor.next_key() {
                if key == b"type" && cursor.string_or_skip().is_some_and(|s| s.raw(content) == "tool_result")
                {
                    return true;
                } else if key != b"type" {
                    cursor.skip_value();
                }
            }
        } else {
            cursor.skip_value();
        }
    }
    false
}

fn message_of(draft: &MessageDraft, events: &[ClaudeEvent<'_>]) -> Option<Message> {
    let contents = || draft.events.iter().filter_map(|&index| Some(events.get(index as usize)?.content));
    let size: usize = contents().map(|content| content.len() + 1).sum();
    let mut json = String::with_capacity(size + 40);
    json.push_str("{\"role\":\"");
    json.push_str(draft.role.name());
    json.push_str("\",\"content\":");
    if draft.events.len() == 1 {
        json.extend(contents());
    } else {
        json.push('[');
        // In the wire format, results precede everything else in their message.
        let mut blocks = contents().flat_map(blocks_of).collect::<Vec<_>>();
        if draft.carries_results {
            blocks.sort_by_cached_key(|block| !has_result_block(&format!("[{block}]")));
        }
        json.push_str(&blocks.join(","));
        json.push(']');
    }
    json.push('}');
    let mut message = decode_message(SharedText::new(json))?;
    message.machine_written = draft.meta;
    Some(message)
}

/// The blocks of a content value; a plain string becomes a text block.
fn blocks_of(content: &str) -> Vec<String> {
    let mut cursor = Cursor::new(content);
    let mut blocks = Vec::new();
    if cursor.enter_array() {
        while cursor.next_element() {
            blocks.push(cursor.skip_value().of(content).to_owned());
        }
    } else {
        blocks.push(format!("{{\"type\":\"text\",\"text\":{}}}", content.trim()));
    }
    blocks
}

/// Returns the ids of messages on branches that the user edited away: of several human messages under one parent, the last one is current.
fn abandoned_branches<'a>(events: &[ClaudeEvent<'a>]) -> HashSet<&'a str> {
    let mut newest_prompt: HashMap<&str, &str> = HashMap::new();
    for event in events.iter().filter(|e| is_prompt(e) && !e.parent.is_empty()) {
        newest_prompt.insert(event.parent, event.uuid);
    }
    let mut abandoned = HashSet::new();
    for event in events {
        let superseded =
            is_prompt(event) && newest_prompt.get(event.parent).is_some_and(|newest| *newest != event.uuid);
        if !event.uuid.is_empty() && (superseded || abandoned.contains(event.parent)) {
            abandoned.insert(event.uuid);
        }
    }
    abandoned
}

/// Whether a person typed the message, judged by the line alone.
fn is_prompt(event: &ClaudeEvent<'_>) -> bool {
    if event.kind != "user" || event.meta || event.sidechain || event.compact_summary || event.uuid.is_empty()
    {
        return false;
    }
    let content = RawJson(event.content);
    match content.as_text() {
        Some(text) => !is_injected(&text),
        None => !has_result_block(event.content) && content.elements().any(is_persons_block),
    }
}

/// Whether a block is one that a person adds to a prompt: text, or an image.
fn is_persons_block(block: RawJson<'_>) -> bool {
    match block.get("type").and_then(RawJson::as_text).as_deref() {
        Some("text") => block.get("text").and_then(RawJson::as_text).is_some_and(|text| !is_injected(&text)),
        Some("image") => true,
        _ => false,
    }
}

fn last_compaction(events: &[ClaudeEvent<'_>]) -> usize {
    events.iter().rposition(|e| e.compact_summary && !e.sidechain).unwrap_or(0)
}

fn read_event(line: usize, json: &str) -> ClaudeEvent<'_> {
    let mut event = ClaudeEvent { line, ..ClaudeEvent::default() };
    let mut cursor = Cursor::new(json);
    cursor.enter_object();
    while let Some(key) = cursor.next_key() {
        match key {
            b"type" => event.kind = cursor.raw_string(json),
            b"uuid" => event.uuid = cursor.raw_string(json),
            b"parentUuid" => event.parent = cursor.raw_string(json),
            b"agentId" => event.agent = cursor.raw_string(json),
            b"isSidechain" => event.sidechain = cursor.is_true(json),
            b"isMeta" => event.meta = cursor.is_true(json),
            b"isCompactSummary" => event.compact_summary = cursor.is_true(json),
            b"isApiErrorMessage" => event.api_error = cursor.is_true(json),
            b"message" => read_inner_message(&mut cursor, json, &mut event),
            _ => {
                cursor.skip_value();
            }
        }
    }
    event
}

fn read_inner_message<'a>(cursor: &mut Cursor<'a>, json: &'a str, event: &mut ClaudeEvent<'a>) {
    if !cursor.enter_object() {
        cursor.skip_value();
        return;
    }
    while let Some(key) = cursor.next_key() {
        match key {
            b"role" => event.role = cursor.raw_string(json),
            b"id" => event.message_id = cursor.raw_string(json),
            b"model" => event.model = cursor.raw_string(json),
            b"content" => {
                let span: Span = cursor.skip_value();
                event.content = span.of(json);
            }
            _ => {
                cursor.skip_value();
            }
        }
    }
}

#[cfg(test)]
#[path = "claude_log_tests.rs"]
mod tests;
