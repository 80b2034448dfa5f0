//! Assembles the tool calls of a chat message from deltas.
//!
//! A delta names its call by index. Some servers omit the index or use the same one for every call: then a new id starts a new call. Ids,
//! types and names may be repeated in every delta; only arguments are appended.

use throughline_transcript::{RawJson, unescape};

use crate::answer::{AnswerPart, ToolCall};
use crate::delta::Delta;
use crate::json_tree::{JsonNode, TextTap, inside, slot};
use crate::json_value::{as_count, is_json_object, member, non_empty_text};

/// All tool calls of a message, in the order in which they started.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    calls: Vec<PartialCall>,
}

#[derive(Clone, Debug, Default)]
struct PartialCall {
    index: Option<u64>,
    /// Members of the call, apart from its index.
    members: Vec<(String, JsonNode)>,
    /// Members of its `function` (or `custom`) member, which has the name and the arguments.
    function: Vec<(String, JsonNode)>,
    function_member: FunctionMember,
    is_shown: bool,
    is_ended: bool,
    tap: TextTap,
}

/// The member of a call that has its name and arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FunctionMember {
    #[default]
    Function,
    Custom,
}

impl FunctionMember {
    fn name(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::Custom => "custom",
        }
    }

    fn arguments(self) -> &'static str {
        match self {
            Self::Function => "arguments",
            Self::Custom => "input",
        }
    }
}

impl Calls {
    /// Reads an element of a delta's `tool_calls`.
    pub(crate) fn take(&mut self, delta: RawJson<'_>, deltas: &mut Vec<Delta>) {
        let at = self.place_of(delta);
        if at == self.calls.len() {
            self.end_all(deltas);
            let index = delta.get("index").and_then(as_count);
            self.calls.push(PartialCall { index, ..PartialCall::default() });
        }
        if let Some(call) = self.calls.get_mut(at) {
            call.take(at, delta, deltas);
        }
    }

    /// Returns the index of the call that a delta belongs to; one past the last for a new call.
    fn place_of(&self, delta: RawJson<'_>) -> usize {
        let id = delta.get("id").and_then(non_empty_text);
        let index = delta.get("index").and_then(as_count);
        let is_same = |call: &PartialCall| match (&id, call.id()) {
            (Some(new), Some(own)) => *new == own,
            _ => true,
        };
        let of_index = self.calls.iter().rposition(|call| index.is_some() && call.index == index);
        let candidate = match (index, &id) {
            (Some(_), _) => of_index,
            (None, Some(id)) => self.calls.iter().position(|call| call.id().as_ref() == Some(id)),
            (None, None) => self.calls.len().checked_sub(1),
        };
        let candidate = candidate.filter(|at| self.calls.get(*at).is_some_and(is_same));
        candidate.unwrap_or(self.calls.len())
    }

    /// Ends all calls.
    pub(crate) fn end_all(&mut self, deltas: &mut Vec<Delta>) {
        for (number, call) in self.calls.iter_mut().enumerate() {
            call.show(number, deltas);
            if !call.is_ended {
                call.is_ended = true;
                deltas.push(Delta::ToolCallEnd { call: number });
            }
        }
    }

    /// Removes the last call if the stream broke off inside it. Arguments that form an object are complete.
    pub(crate) fn take_unfinished(&mut self) -> Vec<AnswerPart> {
        let is_cut = |call: &PartialCall| !call.is_ended && !is_json_object(&call.arguments());
        let last = self.calls.pop_if(|call| is_cut(call));
        last.into_iter().map(|call| AnswerPart::ToolCall(call.to_tool_call())).collect()
    }

    /// Returns the value of `tool_calls`; `None` if there are none.
    pub(crate) fn to_json(&self) -> Option<String> {
        if self.calls.is_empty() {
            return None;
        }
        let list = self.calls.iter().map(PartialCall::to_node).collect();
        Some(JsonNode::List(list).to_json())
    }
}

impl PartialCall {
    fn id(&self) -> Option<String> {
        let id = self.members.iter().find(|(name, _)| name == "id")?;
        non_empty_text(RawJson(&id.1.to_json()))
    }

    fn name(&self) -> String {
        let name = self.function.iter().find(|(name, _)| name == "name");
        name.and_then(|(_, value)| non_empty_text(RawJson(&value.to_json()))).unwrap_or_default()
    }

    fn arguments(&self) -> String {
        let wanted = self.function_member.arguments();
        match self.function.iter().find(|(name, _)| name == wanted) {
            Some((_, JsonNode::Text(text))) => unescape(text),
            Some((_, other)) => other.to_json(),
            None => String::new(),
        }
    }

    fn take(&mut self, number: usize, delta: RawJson<'_>, deltas: &mut Vec<Delta>) {
        if member(delta, "custom").is_some() {
            self.function_member = FunctionMember::Custom;
        }
        for (name, value) in delta.members() {
            match &*name {
                "index" | "function" | "custom" => {}
                // The first id is used: a server that changes ids in later deltas would break the pairing.
                "id" if self.id().is_some() => {}
                _ => slot(&mut self.members, &name).merge(&name, value),
            }
        }
        // Last, because the id may follow it.
        if let Some(function) = member(delta, self.function_member.name()) {
            self.take_function(number, function, deltas);
        }
        if !self.name().is_empty() && self.id().is_some() {
            self.show(number, deltas);
        }
    }

    fn take_function(&mut self, number: usize, delta: RawJson<'_>, deltas: &mut Vec<Delta>) {
        for (name, value) in delta.members() {
            if name == self.function_member.arguments() {
                continue;
            }
            if name == "name" && !self.name().is_empty() {
                continue;
            }
            slot(&mut self.function, &name).merge(&name, value);
        }
        if let Some(arguments) = member(delta, self.function_member.arguments()) {
            self.take_arguments(number, arguments, deltas);
        }
    }

    fn take_arguments(&mut self, number: usize, arguments: RawJson<'_>, deltas: &mut Vec<Delta>) {
        let as_text;
        let piece = match arguments.0.starts_with('"') {
            true => inside(arguments),
            // Arguments sent as an object: the format requires text.
            false => {
                as_text = throughline_transcript::compact_json_string(arguments.0);
                inside(RawJson(&as_text))
            }
        };
        let own = slot(&mut self.function, self.function_member.arguments());
        if own.text_mut().is_none() {
            *own = JsonNode::Text(String::new());
        }
        if let Some(text) = own.text_mut() {
            text.push_str(piece);
        }
        let fragment = self.tap.pass(piece);
        if !fragment.is_empty() {
            self.show(number, deltas);
            deltas.push(Delta::ToolCallArguments { call: number, fragment });
        }
    }

    /// Reports the call as a delta, once its id and name are known.
    fn show(&mut self, number: usize, deltas: &mut Vec<Delta>) {
        if !self.is_shown {
            self.is_shown = true;
            let id = self.id().unwrap_or_default();
            deltas.push(Delta::ToolCallStart { call: number, id, name: self.name() });
        }
    }

    fn to_tool_call(&self) -> ToolCall {
        ToolCall { id: self.id().unwrap_or_default(), name: self.name(), arguments: self.arguments() }
    }

    fn to_node(&self) -> JsonNode {
        let mut members = self.members.clone();
        let kind = slot(&mut members, "type");
        if kind.is_null() {
            *kind = JsonNode::Raw(throughline_transcript::compact_json_string(self.function_member.name()));
        }
        let mut function = self.function.clone();
        let arguments = slot(&mut function, self.function_member.arguments());
        if arguments.is_null() {
            *arguments = JsonNode::Text(String::new());
        }
        *slot(&mut members, self.function_member.name()) = JsonNode::Object(function);
        JsonNode::Object(members)
    }
}
