//! Assembles a stream of Chat Completions.
//!
//! Servers differ: usage in a chunk of its own, in every chunk, or under another name; reasoning under three names, sometimes two at once;
//! ids and names of tool calls repeated, or calls without an index. A delta is merged into the message member by member, so that unknown
//! members are preserved.

use throughline_transcript::RawJson;

use crate::answer::{Answer, Stop};
use crate::delta::Delta;
use crate::error_body::ErrorBody;
use crate::json_tree::{JsonNode, TextTap, inside, slot, write_object};
use crate::json_value::{as_count, member, non_empty_text, pick, text_member};
use crate::parts::{detail_text, is_empty_message};
use crate::response::{is_extra, settle, to_message};
use crate::stream::chat_calls::Calls;
use crate::stream::outcome::Assembled;
use throughline_transcript::WireFormat;

/// The received part of a chat stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChatStream {
    id: Option<String>,
    model: Option<String>,
    usage: Option<String>,
    extras: Vec<(String, String)>,
    /// The choices by index; a request usually asks for one.
    choices: Vec<PartialChoice>,
    is_done: bool,
}

#[derive(Clone, Debug, Default)]
struct PartialChoice {
    index: u64,
    /// Members of the message, without its tool calls.
    members: Vec<(String, JsonNode)>,
    calls: Calls,
    /// Number of members before the tool calls, so that the calls keep their position.
    members_before_calls: Option<usize>,
    finish: Option<String>,
    text: TextTap,
    reasoning: TextTap,
    refusal: TextTap,
}

impl ChatStream {
    pub(crate) fn identity(&self) -> (Option<String>, Option<String>) {
        (self.id.clone(), self.model.clone())
    }

    pub(crate) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Handles the end marker.
    pub(crate) fn done(&mut self, deltas: &mut Vec<Delta>) {
        self.is_done = true;
        if let Some(choice) = self.choices.iter_mut().find(|choice| choice.index == 0) {
            choice.calls.end_all(deltas);
        }
    }

    pub(crate) fn take(&mut self, chunk: RawJson<'_>, deltas: &mut Vec<Delta>) -> Result<(), ErrorBody> {
        let members = ["id", "model", "usage", "x_groq", "choices", "error", "type", "object"];
        let [id, model, usage, groq, choices, error, kind, class] = pick(chunk, members);
        self.id = self.id.take().or_else(|| id.and_then(non_empty_text));
        self.model = self.model.take().or_else(|| model.and_then(non_empty_text));
        // One server reports usage under another name.
        if let Some(usage) = usage.or_else(|| groq.and_then(|own| member(own, "usage"))) {
            usage.0.clone_into(self.usage.get_or_insert_default());
        }
        // An event without choices is not part of the chat format; its members are not about the answer.
        for (name, value) in chunk.members().filter(|_| choices.is_some()) {
            if is_extra(WireFormat::Chat, &name) && value.0 != "null" {
                set(&mut self.extras, &name, value);
            }
        }
        let may_fail = error.is_some() || [kind, class].contains(&Some(RawJson("\"error\"")));
        let mut failure = if may_fail { ErrorBody::in_object(chunk, chunk.0) } else { None };
        for choice in choices.into_iter().flat_map(RawJson::elements) {
            let found = self.take_choice(choice, chunk, deltas);
            failure = failure.or(found);
        }
        failure.map_or(Ok(()), Err)
    }

    /// Reads a choice of a chunk. Routers use it to report a failure of the model behind them.
    fn take_choice(
        &mut self,
        choice: RawJson<'_>,
        chunk: RawJson<'_>,
        deltas: &mut Vec<Delta>,
    ) -> Option<ErrorBody> {
        let members = ["index", "delta", "message", "finish_reason", "error"];
        let [index, delta, message, finish, error] = pick(choice, members);
        let index = index.and_then(as_count).unwrap_or(0);
        let at = self.choices.iter().position(|own| own.index == index).unwrap_or_else(|| {
            self.choices.push(PartialChoice { index, ..PartialChoice::default() });
            self.choices.len() - 1
        });
        let own = self.choices.get_mut(at)?;
        let mut unshown = Vec::new();
        let deltas = if index == 0 { deltas } else { &mut unshown };
        // A server that does not stream the message sends it whole.
        if let Some(delta) = delta.or(message) {
            own.take(delta, deltas);
        }
        if let Some(reason) = finish.and_then(non_empty_text) {
            own.finish = Some(reason);
            own.calls.end_all(deltas);
        }
        error.and_then(|_| ErrorBody::in_object(choice, chunk.0))
    }

    pub(crate) fn finish(self) -> Assembled {
        let mut answer = Answer {
            id: self.id,
            model: self.model,
            usage_json: self.usage,
            extras: self.extras,
            ..Answer::empty(WireFormat::Chat)
        };
        let (mut is_complete, mut unfinished) = (self.is_done, Vec::new());
        let mut choices = self.choices;
        choices.sort_by_key(|choice| choice.index);
        for mut choice in choices {
            let is_whole = self.is_done || choice.finish.is_some();
            if choice.index != 0 {
                answer.other_choices.extend(choice.message().and_then(to_message));
                continue;
            }
            is_complete |= is_whole;
            if !is_whole {
                unfinished = choice.calls.take_unfinished();
            }
            answer.messages.extend(choice.message().and_then(to_message));
            answer.stop = Stop::of_word(choice.finish);
        }
        Assembled { answer: settle(answer), unfinished, is_complete }
    }
}

impl PartialChoice {
    fn take(&mut self, delta: RawJson<'_>, deltas: &mut Vec<Delta>) {
        let mut tells_reasoning = None;
        // Only if there are details does it matter whether plain reasoning repeats them.
        let mut tells_reasoning = || {
            *tells_reasoning.get_or_insert_with(|| {
                pick(delta, ["reasoning_content", "reasoning"])
                    .into_iter()
                    .flatten()
                    .any(|text| text.0 != "\"\"")
            })
        };
        for (name, value) in delta.members() {
            match &*name {
                "tool_calls" => {
                    if value.0.starts_with('[') {
                        self.members_before_calls.get_or_insert(self.members.len());
                        value.elements().for_each(|call| self.calls.take(call, deltas));
                    }
                    continue;
                }
                "content" => self.show_content(value, deltas),
                "refusal" if value.0.starts_with('"') => {
                    push_text(&mut self.refusal, value, Delta::Refusal, deltas);
                }
                "reasoning_content" | "reasoning" if value.0.starts_with('"') => {
                    push_text(&mut self.reasoning, value, Delta::Reasoning, deltas);
                }
                "reasoning_details" if !tells_reasoning() => {
                    for text in value.elements().filter_map(detail_text) {
                        push_text(&mut self.reasoning, text, Delta::Reasoning, deltas);
                    }
                }
                _ => {}
            }
            slot(&mut self.members, &name).merge(&name, value);
        }
    }

    /// Reports content, which is text or, with some servers, a list of parts.
    fn show_content(&mut self, content: RawJson<'_>, deltas: &mut Vec<Delta>) {
        if content.0.starts_with('"') {
            return push_text(&mut self.text, content, Delta::Text, deltas);
        }
        for part in content.elements() {
            match text_member(part, "type").as_deref() {
                Some("text") => {
                    if let Some(text) = member(part, "text") {
                        push_text(&mut self.text, text, Delta::Text, deltas);
                    }
                }
                Some("thinking") => {
                    let inner = part.get("thinking").into_iter().flat_map(RawJson::elements);
                    for text in inner.filter_map(|inner| member(inner, "text")) {
                        push_text(&mut self.reasoning, text, Delta::Reasoning, deltas);
                    }
                }
                _ => {}
            }
        }
    }

    /// Returns the message as a whole response would contain it; `None` if it is empty.
    fn message(&self) -> Option<String> {
        let named = |wanted: &str| self.members.iter().find(|(name, _)| name == wanted);
        let role = named("role").map_or_else(|| "\"assistant\"".to_owned(), |(_, role)| role.to_json());
        let content = named("content").map_or_else(|| "null".to_owned(), |(_, content)| content.to_json());
        let mut members =
            vec![("role".to_owned(), JsonNode::Raw(role)), ("content".to_owned(), JsonNode::Raw(content))];
        let calls = self.calls.to_json();
        let mut calls = calls.map(|json| ("tool_calls".to_owned(), JsonNode::Raw(json)));
        for (at, (name, value)) in self.members.iter().enumerate() {
            if self.members_before_calls == Some(at) {
                members.extend(calls.take());
            }
            if !matches!(name.as_str(), "role" | "content") && !value.is_null() {
                members.push((name.clone(), value.clone()));
            }
        }
        members.extend(calls);
        let mut out = String::new();
        write_object(&members, &mut out);
        (!is_empty_message(RawJson(&out))).then_some(out)
    }
}

/// Reports the characters of a string as a delta.
pub(crate) fn push_text(
    tap: &mut TextTap,
    string: RawJson<'_>,
    to_delta: fn(String) -> Delta,
    deltas: &mut Vec<Delta>,
) {
    let text = tap.pass(inside(string));
    if !text.is_empty() {
        deltas.push(to_delta(text));
    }
}

/// Stores the latest value of a name.
pub(crate) fn set(extras: &mut Vec<(String, String)>, name: &str, value: RawJson<'_>) {
    match extras.iter_mut().find(|(own, _)| own == name) {
        Some((_, own)) if own == value.0 => {}
        Some((_, own)) => value.0.clone_into(own),
        None => extras.push((name.to_owned(), value.0.to_owned())),
    }
}

#[cfg(test)]
#[path = "chat_tests.rs"]
mod tests;
