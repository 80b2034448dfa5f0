//! Finds what a provider would refuse in a list of messages, with the positions.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use crate::group::Groups;
use crate::message::{Message, Part, Role};
use crate::write::WireFormat;

/// The rule that is broken.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ViolationKind {
    /// A result names a call that does not precede it.
    ResultWithoutCall,
    /// A result precedes its call.
    ResultBeforeCall,
    /// A call has no result although the conversation continued.
    CallWithoutResult,
    /// The wire format requires results right after their call, and something is between.
    ResultNotAdjacent,
    /// Two open calls share an id.
    DuplicateCallId,
    /// The first message after the instructions is not a user's.
    LeadingRole,
    /// Reasoning at the end of an answer with nothing after it.
    DanglingReasoning,
    /// A role that the wire format does not have.
    UnknownRole,
    /// A message without any content.
    EmptyMessage,
}

/// A broken rule and its position.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Violation {
    /// The rule.
    pub kind: ViolationKind,
    /// The index of the message.
    pub message: usize,
    /// A sentence for the user.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "message {}: {}", self.message, self.detail)
    }
}

/// Returns every violation of the wire format's rules, in order of position. Calls of the very last answer may be open, because their
/// results follow.
#[must_use]
pub fn violations(wire_format: WireFormat, messages: &[Message], groups: &Groups) -> Vec<Violation> {
    let mut found = Vec::new();
    check_pairs(messages, groups, &call_ids(messages), &mut found);
    check_adjacency(wire_format, messages, groups, &mut found);
    check_leading_role(messages, &mut found);
    check_roles(wire_format, messages, &mut found);
    check_content(wire_format, messages, &mut found);
    check_reasoning(wire_format, messages, &mut found);
    found.sort_by_key(|violation| violation.message);
    found
}

fn push(found: &mut Vec<Violation>, kind: ViolationKind, message: usize, detail: String) {
    found.push(Violation { kind, message, detail });
}

fn call_ids(messages: &[Message]) -> HashSet<Cow<'_, str>> {
    messages.iter().flat_map(|m| m.calls().map(|(id, _, _)| id.text(m.json()))).collect()
}

fn check_pairs(
    messages: &[Message],
    groups: &Groups,
    all_calls: &HashSet<Cow<'_, str>>,
    found: &mut Vec<Violation>,
) {
    let last_step = groups.as_slice().last().map_or(0, |group| group.start);
    for &(index, id) in groups.orphans() {
        let id = id.text(messages[index].json());
        let (kind, what) = if all_calls.contains(&id) {
            (ViolationKind::ResultBeforeCall, "stands before its call or answers it twice")
        } else {
            (ViolationKind::ResultWithoutCall, "answers a call that no message makes")
        };
        push(found, kind, index, format!("the result for {id:?} {what}"));
    }
    for &(index, id) in groups.clashing_calls() {
        let id = id.text(messages[index].json());
        push(found, ViolationKind::DuplicateCallId, index, format!("two open calls share the id {id:?}"));
    }
    for index in 0..messages.len().min(last_step) {
        let unanswered = groups.unanswered_calls(index);
        if unanswered > 0 {
            let detail = format!("tool calls of it that have no result: {unanswered}");
            push(found, ViolationKind::CallWithoutResult, index, detail);
        }
    }
}

/// Each wire format has its own roles; the Responses format also has items without a role.
fn check_roles(wire_format: WireFormat, messages: &[Message], found: &mut Vec<Violation>) {
    for (index, message) in messages.iter().enumerate() {
        let known = match (wire_format, message.role()) {
            (WireFormat::Responses, _) if !message.form.has_role() => true,
            _ if !message.form.has_role() => false,
            (_, Role::Other) | (WireFormat::Responses, Role::Tool) => false,
            (WireFormat::Anthropic, Role::Tool | Role::Developer) => false,
            _ => true,
        };
        if !known {
            let detail = if message.form.has_role() {
                "a role this wire does not know"
            } else {
                "no role, which this wire demands"
            };
            push(found, ViolationKind::UnknownRole, index, detail.into());
        }
    }
}

/// Empty messages are refused, except from the assistant; Anthropic accepts that one only at the very end, and no empty text block
/// anywhere.
fn check_content(wire_format: WireFormat, messages: &[Message], found: &mut Vec<Violation>) {
    for (index, message) in messages.iter().enumerate() {
        let at_end = index + 1 == messages.len();
        let may_be_empty =
            message.role() == Role::Assistant && (wire_format != WireFormat::Anthropic || at_end);
        if may_be_empty {
            continue;
        }
        let is_empty_text = |part: &Part| matches!(part, Part::Text(text) if text.span.is_empty());
        if message.parts().is_empty() {
            push(found, ViolationKind::EmptyMessage, index, "no content".into());
        } else if wire_format == WireFormat::Anthropic && message.parts().iter().any(is_empty_text) {
            push(found, ViolationKind::EmptyMessage, index, "an empty text block".into());
        }
    }
}

/// Chat requires tool messages right after their assistant message; Anthropic requires all results in the next message.
fn check_adjacency(
    wire_format: WireFormat,
    messages: &[Message],
    groups: &Groups,
    found: &mut Vec<Violation>,
) {
    if wire_format == WireFormat::Responses {
        return;
    }
    for group in groups.as_slice() {
        if !messages.get(group.start).is_some_and(Message::has_calls) {
            continue;
        }
        let furthest = if wire_format == WireFormat::Anthropic { group.start + 2 } else { group.end };
        for (index, message) in messages.iter().enumerate().take(group.end).skip(group.start + 1) {
            if !message.has_results() || index >= furthest {
                let detail = format!("stands between the calls of message {} and their results", group.start);
                push(found, ViolationKind::ResultNotAdjacent, index, detail);
            }
        }
        if wire_format == WireFormat::Anthropic && group.end > group.start + 1 {
            let second = &messages[group.start + 1];
            let results_first = second
                .parts()
                .iter()
                .skip_while(|part| matches!(part, Part::ToolResult { .. }))
                .all(|part| !matches!(part, Part::ToolResult { .. }));
            if !results_first {
                let detail = "tool results must stand before other content".to_owned();
                push(found, ViolationKind::ResultNotAdjacent, group.start + 1, detail);
            }
        }
    }
}

fn check_leading_role(messages: &[Message], found: &mut Vec<Violation>) {
    let first = messages.iter().position(|m| !m.role().is_instructions());
    if let Some(first) = first.filter(|&at| messages[at].role() != Role::User) {
        let detail = format!("the conversation opens with {}, not with user", messages[first].role().name());
        push(found, ViolationKind::LeadingRole, first, detail);
    }
}

/// In the Responses format a reasoning item must be followed by what it led to.
fn check_reasoning(wire_format: WireFormat, messages: &[Message], found: &mut Vec<Violation>) {
    if wire_format != WireFormat::Responses {
        return;
    }
    for (index, message) in messages.iter().enumerate() {
        let is_reasoning = matches!(message.parts(), [Part::Reasoning { .. }]);
        let followed = messages.get(index + 1).is_none_or(|next| next.role() == Role::Assistant);
        if is_reasoning && !followed {
            let detail = "reasoning is parted from what followed it".to_owned();
            push(found, ViolationKind::DanglingReasoning, index, detail);
        }
    }
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
