//! Joins rounds into one answer that is not streamed.

use serde_json::Value;
use throughline_transcript::WireFormat;

use super::event::{AfterRound, add_to, number_at};
use super::responses::is_own_call;
use crate::recall::RecallNames;
use crate::recall::client_view::BETWEEN_ROUNDS;

pub(super) struct WholeSplice {
    wire: WireFormat,
    names: RecallNames,
    head: Option<(u16, Vec<(String, String)>)>,
    body: Vec<u8>,
    /// The blocks, texts or items of earlier rounds.
    earlier: Vec<Value>,
    tokens_before: u64,
}

/// The status, headers and body of an answer.
type WholeAnswer = (u16, Vec<(String, String)>, Vec<u8>);

impl WholeSplice {
    pub(super) fn new(wire: WireFormat, names: RecallNames) -> Self {
        Self { wire, names, head: None, body: Vec::new(), earlier: Vec::new(), tokens_before: 0 }
    }

    pub(super) fn begin(&mut self, status: u16, headers: Vec<(String, String)>) {
        self.head = Some((status, headers));
        self.body.clear();
    }

    pub(super) fn take(&mut self, raw: &[u8]) {
        self.body.extend_from_slice(raw);
    }

    /// Ends a round. Returns the client's answer after the last one.
    pub(super) fn end(&mut self, next: AfterRound) -> Option<WholeAnswer> {
        let body = std::mem::take(&mut self.body);
        let head = self.head.take();
        let Ok(mut answer) = serde_json::from_slice::<Value>(&body) else {
            return head
                .filter(|_| next == AfterRound::Nothing)
                .map(|(status, headers)| (status, headers, body));
        };
        let hides = self.hide(&mut answer);
        if next == AfterRound::Round {
            self.keep(&mut answer);
            return None;
        }
        let (status, headers) = head?;
        if !hides && self.earlier.is_empty() && self.tokens_before == 0 {
            return Some((status, headers, body));
        }
        self.put_together(&mut answer);
        let headers = headers.into_iter().filter(|(name, _)| name != "content-length").collect();
        Some((status, headers, answer.to_string().into_bytes()))
    }

    /// The JSON pointer to the blocks, items or calls of an answer.
    fn list(&self) -> &'static str {
        match self.wire {
            WireFormat::Anthropic => "/content",
            WireFormat::Responses => "/output",
            WireFormat::Chat => "/choices/0/message/tool_calls",
        }
    }

    fn tokens(&self) -> (&'static str, &'static str) {
        match self.wire {
            WireFormat::Chat => ("/usage/completion_tokens", "/usage/total_tokens"),
            WireFormat::Anthropic | WireFormat::Responses => ("/usage/output_tokens", "/usage/total_tokens"),
        }
    }

    /// Removes calls of recall tools. Returns whether there were any.
    fn hide(&self, answer: &mut Value) -> bool {
        let Some(list) = answer.pointer_mut(self.list()).and_then(Value::as_array_mut) else { return false };
        let before = list.len();
        list.retain(|item| !self.is_own(item));
        let (is_empty, hides) = (list.is_empty(), list.len() != before);
        if hides && is_empty && self.wire == WireFormat::Chat {
            let message = answer.pointer_mut("/choices/0/message").and_then(Value::as_object_mut);
            let _ = message.and_then(|message| message.shift_remove("tool_calls"));
        }
        hides
    }

    fn is_own(&self, item: &Value) -> bool {
        let name = match self.wire {
            WireFormat::Responses => return is_own_call(item, &self.names),
            WireFormat::Anthropic => {
                item.get("name").filter(|_| item.get("type").is_some_and(|kind| kind == "tool_use"))
            }
            WireFormat::Chat => item.pointer("/function/name"),
        };
        name.and_then(Value::as_str).is_some_and(|name| self.names.has(name))
    }

    /// Stores the content of a round that was not the last.
    fn keep(&mut self, answer: &mut Value) {
        self.tokens_before += number_at(answer, self.tokens().0);
        match self.wire {
            WireFormat::Chat => {
                let text = answer.pointer("/choices/0/message/content").and_then(Value::as_str);
                if let Some(text) = text.filter(|text| !text.is_empty()) {
                    self.earlier.push(Value::from(text));
                }
            }
            WireFormat::Anthropic | WireFormat::Responses => {
                let list = answer.pointer_mut(self.list()).and_then(Value::as_array_mut);
                self.earlier.extend(list.map(std::mem::take).unwrap_or_default());
            }
        }
    }

    /// Inserts the content of earlier rounds into the last answer.
    fn put_together(&mut self, answer: &mut Value) {
        let (output, all) = self.tokens();
        add_to(answer, output, self.tokens_before);
        if self.wire != WireFormat::Anthropic {
            add_to(answer, all, self.tokens_before);
        }
        let earlier = std::mem::take(&mut self.earlier);
        match self.wire {
            WireFormat::Anthropic | WireFormat::Responses => {
                if let Some(list) = answer.pointer_mut(self.list()).and_then(Value::as_array_mut) {
                    list.splice(0..0, earlier);
                }
            }
            WireFormat::Chat => {
                if let Some(content) = answer.pointer_mut("/choices/0/message/content") {
                    let own = content.as_str().filter(|text| !text.is_empty());
                    let texts: Vec<&str> = earlier.iter().filter_map(Value::as_str).chain(own).collect();
                    if !texts.is_empty() {
                        *content = Value::from(texts.join(BETWEEN_ROUNDS));
                    }
                }
            }
        }
        self.end_plainly(answer);
    }

    /// Corrects the stop reason if no call is left.
    fn end_plainly(&self, answer: &mut Value) {
        let (place, for_calls, plainly) = match self.wire {
            WireFormat::Anthropic => ("/stop_reason", "tool_use", "end_turn"),
            WireFormat::Chat => ("/choices/0/finish_reason", "tool_calls", "stop"),
            WireFormat::Responses => return,
        };
        let has_calls = match self.wire {
            WireFormat::Anthropic => answer
                .pointer("/content")
                .and_then(Value::as_array)
                .is_some_and(|blocks| blocks.iter().any(|block| block["type"] == "tool_use")),
            WireFormat::Chat | WireFormat::Responses => answer.pointer(self.list()).is_some(),
        };
        if let Some(reason) = answer.pointer_mut(place)
            && !has_calls
            && reason == for_calls
        {
            *reason = Value::from(plainly);
        }
    }
}
