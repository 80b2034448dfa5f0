//! Determines which results the model has to read again, because it needs the parts that were not shown.
//!
//! A long result is shown as its beginning and its end. When the model later writes something that occurred only in the part that was not
//! shown (a name, a path, a line of code), it must have read it: the call is made again right before that answer, once for each result, and
//! brings as much as results may have, around what is needed.
//!
//! Not for: storing results as artifacts, which the managed call does and is only observed here.

use std::collections::HashSet;

use throughline_compaction::{AnchorKind, scan_anchors};
use throughline_engine::{FittedResult, ResultFitter, Shortening, ToolOutputPolicy};
use throughline_store::CallNames;
use throughline_tokens::ToolBudgets;
use throughline_transcript::{
    Arguments, Message, Part, RawJson, SharedText, WireFormat, decode_message, tool_result_stub,
};
use throughline_wire::{Answer, AnswerDraft, AnswerPart, ToolCall};

/// The tool that reads a part of a shortened result, ...
pub(crate) const RECALL_TOOL: &str = "recall_artifact";
/// ... and the approximate size of that part: the 200 lines that the instructions suggest.
const READ_CHARS: usize = 10_000;
/// The minimum length of a line that counts as known when an answer repeats it.
const LEAST_LINE_CHARS: usize = 16;

/// A result that was stored as an artifact.
struct StoredResult {
    call: ResultCall,
    text: String,
}

/// The call of a result.
#[derive(Clone)]
struct ResultCall {
    id: String,
    name: String,
    arguments: String,
}

/// A repeated call with its result.
pub(crate) struct RepeatedRead {
    name: String,
    arguments: String,
    text: String,
}

/// The text that the model has seen, and the text that was hidden from it.
pub(crate) struct ResultVisibility<'a> {
    budgets: ToolBudgets,
    shortening: Shortening,
    policy: &'a ToolOutputPolicy,
    names: CallNames,
    calls: Vec<ResultCall>,
    asides: Vec<StoredResult>,
    seen_anchors: HashSet<String>,
    seen_text: String,
}

impl<'a> ResultVisibility<'a> {
    pub(crate) fn new(budgets: ToolBudgets, policy: &'a ToolOutputPolicy, shortening: Shortening) -> Self {
        Self {
            shortening,
            budgets,
            policy,
            names: CallNames::default(),
            calls: Vec::new(),
            asides: Vec::new(),
            seen_anchors: HashSet::new(),
            seen_text: String::new(),
        }
    }

    /// Adds messages that are sent to the model.
    pub(crate) fn shown(&mut self, messages: &[Message]) {
        let own: Vec<&Message> = messages.iter().collect();
        let fitted = ResultFitter::new(&self.budgets, self.policy)
            .shortening(self.shortening)
            .fit(&own, &mut self.names)
            .unwrap_or_default();
        let mut fitted = fitted.into_iter();
        for message in messages {
            let FittedResult { json, set_aside } = fitted.next().unwrap_or_default();
            let shown = json.and_then(|json| decode_message(SharedText::new(json)));
            self.see_message(shown.as_ref().unwrap_or(message));
            let aside: HashSet<String> = set_aside.into_iter().map(|aside| aside.text).collect();
            for part in message.parts() {
                let Part::ToolResult { call_id, content, .. } = part else { continue };
                let text = message.result_text(content);
                let id = message.str(*call_id);
                if aside.contains(&*text)
                    && let Some(call) = self.calls.iter().rfind(|call| call.id == id).cloned()
                {
                    self.asides.push(StoredResult { call, text: text.into_owned() });
                }
            }
        }
    }

    fn see_message(&mut self, message: &Message) {
        for part in message.parts() {
            match part {
                Part::ToolResult { content, .. } => self.see(&message.result_text(content)),
                Part::Text(text) => self.see(&message.str(*text)),
                _ => {}
            }
        }
    }

    fn see(&mut self, text: &str) {
        scan_anchors(text, |anchor, kind| {
            if is_telling(kind) && !self.seen_anchors.contains(anchor) {
                self.seen_anchors.insert(anchor.to_owned());
            }
        });
        self.seen_text.push_str(text);
        self.seen_text.push('\n');
    }

    /// Returns results that must be read again before the model can answer like this.
    pub(crate) fn needed_for(&mut self, answer: &[Message]) -> Vec<RepeatedRead> {
        let most_chars = usize::try_from(self.budgets.result_chars.effective).unwrap_or(usize::MAX);
        let most_chars = match self.shortening {
            Shortening::On => most_chars.min(READ_CHARS),
            Shortening::Off => most_chars,
        };
        let mut again = Vec::new();
        for said in answer.iter().map(words_of) {
            while let Some((index, place)) = self.first_needed(&said) {
                let StoredResult { call: ResultCall { name, arguments, .. }, text } =
                    self.asides.remove(index);
                let text = passage(&text, place, most_chars);
                self.see(&text);
                let name = match self.shortening {
                    Shortening::On => RECALL_TOOL.to_owned(),
                    Shortening::Off => name,
                };
                again.push(RepeatedRead { name, arguments, text });
            }
        }
        again
    }

    /// Returns the newest stored result with something that the model writes and has not seen, and its position.
    fn first_needed(&self, said: &str) -> Option<(usize, usize)> {
        if self.asides.is_empty() {
            return None;
        }
        let mut candidates: Vec<&str> = Vec::new();
        scan_anchors(said, |anchor, kind| {
            if is_telling(kind) && !self.seen_anchors.contains(anchor) {
                candidates.push(anchor);
            }
        });
        candidates
            .extend(said.lines().map(str::trim).filter(|line| line.chars().count() >= LEAST_LINE_CHARS));
        self.asides.iter().enumerate().rev().find_map(|(index, aside)| {
            let place = candidates.iter().find_map(|candidate| {
                let at = aside.text.find(candidate)?;
                (!self.seen_text.contains(candidate)).then_some(at)
            })?;
            Some((index, place))
        })
    }

    /// Adds an answer: its calls, and its text, which the model knows from then on.
    pub(crate) fn said(&mut self, answer: &[Message]) {
        for message in answer {
            for (id, name, arguments) in message.calls() {
                self.calls.push(ResultCall {
                    id: message.str(id).into_owned(),
                    name: message.str(name).into_owned(),
                    arguments: message.arguments_text(arguments).into_owned(),
                });
            }
            self.names.tools_of(message);
            self.see(&words_of(message));
        }
    }
}

/// Numbers and options occur everywhere and prove nothing.
fn is_telling(kind: AnchorKind) -> bool {
    match kind {
        AnchorKind::Path | AnchorKind::Url | AnchorKind::Hash | AnchorKind::Identifier => true,
        AnchorKind::Flag | AnchorKind::Number => false,
    }
}

/// Returns the text that a model wrote: content, readable reasoning, and the strings in its calls.
fn words_of(message: &Message) -> String {
    let mut words = String::new();
    for part in message.parts() {
        match part {
            Part::Text(text) | Part::Reasoning { text: Some(text), .. } => {
                words.push_str(&message.str(*text))
            }
            Part::ToolCall { arguments, .. } => push_strings(message, *arguments, &mut words),
            _ => {}
        }
        words.push('\n');
    }
    words
}

/// Appends the strings inside a call's arguments.
fn push_strings(message: &Message, arguments: Arguments, out: &mut String) {
    let text = message.arguments_text(arguments);
    let mut open = vec![RawJson(text.trim())];
    while let Some(value) = open.pop() {
        match value.0.as_bytes().first() {
            Some(b'{') => open.extend(value.members().map(|(_, member)| member)),
            Some(b'[') => open.extend(value.elements()),
            Some(b'"') => {
                out.push_str(&value.as_text().unwrap_or_default());
                out.push('\n');
            }
            _ => {}
        }
    }
}

/// Returns this many characters of a text around a position.
fn passage(text: &str, place: usize, chars: usize) -> String {
    let before = text.get(..text.floor_char_boundary(place)).unwrap_or_default().chars().count();
    let all = text.chars().count();
    let from = before.saturating_sub(chars / 2).min(all.saturating_sub(chars));
    text.chars().skip(from).take(chars).collect()
}

/// Returns messages of the model that repeat these calls, and the messages with their results.
pub(crate) fn read_again(
    wire_format: WireFormat,
    number: usize,
    again: &[RepeatedRead],
) -> Option<(Vec<Message>, Vec<Message>)> {
    let id = |index: usize| format!("again_{number}_{index}");
    let call = |(index, again): (usize, &RepeatedRead)| {
        let (name, arguments) = (again.name.clone(), again.arguments.clone());
        AnswerPart::ToolCall(ToolCall { id: id(index), name, arguments })
    };
    let draft = AnswerDraft::of_parts(again.iter().enumerate().map(call).collect());
    let asked = Answer::decode(wire_format, draft.to_response(wire_format).as_bytes()).ok()?.messages;
    let results =
        again.iter().enumerate().map(|(index, again)| tool_result_stub(wire_format, &id(index), &again.text));
    let results: Vec<String> = results.collect();
    let results = match wire_format {
        WireFormat::Anthropic => vec![format!("{{\"role\":\"user\",\"content\":[{}]}}", results.join(","))],
        WireFormat::Chat | WireFormat::Responses => results,
    };
    let results = results.into_iter().filter_map(|json| decode_message(SharedText::new(json))).collect();
    Some((asked, results))
}

#[cfg(test)]
#[path = "reread_tests.rs"]
mod tests;
