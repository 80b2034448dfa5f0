//! Assembly: head, summary, the last human message where it was folded over, tail; and repair of what was broken before.

use std::collections::HashMap;

use rustc_hash::FxHashSet;
use throughline_transcript::{
    Dialect, Groups, Message, Part, RawJson, Role, Span, text_message, tool_result_stub,
};

use crate::plan::Plan;
use crate::preface::{ACKNOWLEDGEMENT, SYSTEM_NOTE};
use crate::rendition::{Rendition, RenditionKind, with_note};
use crate::view::{Synthetic, ViewItem};

/// What a stub result says.
pub const STUB_RESULT: &str = "[No result was recorded for this call]";

/// What assembly had to mend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Repairs {
    /// Results without a call that were left out.
    pub orphan_results: usize,
    /// Calls without a result that were given one.
    pub stub_results: usize,
}

/// Puts the view together.
#[must_use]
pub fn assemble(
    dialect: Dialect,
    messages: &[Message],
    groups: &Groups,
    plan: &Plan,
    renditions: &HashMap<usize, Rendition>,
    summary_text: &str,
) -> (Vec<ViewItem>, Repairs) {
    let mut items = Vec::with_capacity(plan.head.len() + plan.tail.len() + 4);
    let first_system =
        plan.head.clone().find(|&at| messages.get(at).is_some_and(|m| m.role().is_instructions()));
    for index in plan.head.clone() {
        let noted = if Some(index) == first_system { with_note_on(messages, index) } else { None };
        items.push(match noted.or_else(|| renditions.get(&index).cloned()) {
            Some(rendition) => ViewItem::Rendition { message: index, rendition },
            None => ViewItem::Verbatim(index),
        });
    }
    items.push(ViewItem::Summary(text_message(dialect, plan.summary_role, summary_text)));
    if plan.acknowledge {
        let json = text_message(dialect, Role::Assistant, ACKNOWLEDGEMENT);
        items.push(ViewItem::Synthetic(Synthetic::Acknowledgement, json));
    }
    items.extend(plan.pinned.clone().into_iter().flatten().map(ViewItem::Verbatim));
    items.extend(plan.tail.clone().map(ViewItem::Verbatim));
    if is_whole(groups, plan) {
        return (items, Repairs::default());
    }
    repair(dialect, messages, groups, items)
}

fn with_note_on(messages: &[Message], index: usize) -> Option<Rendition> {
    messages.get(index).and_then(|message| with_note(message, SYSTEM_NOTE))
}

/// Whether every pair in the kept messages was intact before: then it still is, and nothing is to be mended.
fn is_whole(groups: &Groups, plan: &Plan) -> bool {
    let kept = plan.head.clone().chain(plan.pinned.clone().into_iter().flatten()).chain(plan.tail.clone());
    let last_start = groups.as_slice().last().map_or(0, |group| group.start);
    kept.into_iter()
        .all(|at| groups.orphan_results(at) == 0 && (groups.unanswered_calls(at) == 0 || at >= last_start))
}

/// Leaves out results that no call asked for and adds results to calls that never got one. Calls of the very last group
/// are still waiting and stay open.
fn repair(
    dialect: Dialect,
    messages: &[Message],
    groups: &Groups,
    items: Vec<ViewItem>,
) -> (Vec<ViewItem>, Repairs) {
    let last_start = groups.as_slice().last().map_or(0, |group| group.start);
    let mut repairs = Repairs::default();
    let mut open: Vec<String> = Vec::new();
    let mut out: Vec<ViewItem> = Vec::with_capacity(items.len());
    for item in items {
        let Some(index) = item.message() else {
            close_open(dialect, &mut open, &mut out, &mut repairs);
            out.push(item);
            continue;
        };
        let Some(message) = messages.get(index) else { continue };
        if !message.has_results() {
            let continues_answer = dialect == Dialect::Responses && message.role() == Role::Assistant;
            if !continues_answer {
                close_open(dialect, &mut open, &mut out, &mut repairs);
            }
            if index < last_start {
                open.extend(message.calls().map(|(id, _, _)| message.str(id).into_owned()));
            } else {
                // The last group may still wait for its results: it stays as it is.
                out.extend((index..messages.len()).map(ViewItem::Verbatim));
                return (out, repairs);
            }
            out.push(item);
            continue;
        }
        let mut known: FxHashSet<usize> = FxHashSet::default();
        for (position, part) in message.parts().iter().enumerate() {
            if let Part::ToolResult { call_id, .. } = part {
                let id = message.str(*call_id);
                if let Some(at) = open.iter().position(|waiting| *waiting == id) {
                    open.remove(at);
                    known.insert(position);
                }
            }
        }
        let orphans = message.answered().count() - known.len();
        repairs.orphan_results += orphans;
        let stubs = if dialect == Dialect::Anthropic { std::mem::take(&mut open) } else { Vec::new() };
        repairs.stub_results += stubs.len();
        if orphans == 0 && stubs.is_empty() {
            out.push(item);
        } else if let Some(json) = rewrite_results(dialect, message, &known, &stubs) {
            let rendition = Rendition { kinds: vec![RenditionKind::Pruned], json };
            out.push(ViewItem::Rendition { message: index, rendition });
        }
    }
    close_open(dialect, &mut open, &mut out, &mut repairs);
    (out, repairs)
}

/// Gives every call that is still open a stub result.
fn close_open(dialect: Dialect, open: &mut Vec<String>, out: &mut Vec<ViewItem>, repairs: &mut Repairs) {
    if open.is_empty() {
        return;
    }
    repairs.stub_results += open.len();
    let stubs = open.drain(..).map(|id| tool_result_stub(dialect, &id, STUB_RESULT));
    match dialect {
        Dialect::Anthropic => {
            let blocks = stubs.collect::<Vec<_>>().join(",");
            let json = format!("{{\"role\":\"user\",\"content\":[{blocks}]}}");
            out.push(ViewItem::Synthetic(Synthetic::StubResult, json));
        }
        _ => out.extend(stubs.map(|json| ViewItem::Synthetic(Synthetic::StubResult, json))),
    }
}

/// A result message with only its known results and with stubs added; `None` when nothing is left of it.
fn rewrite_results(
    dialect: Dialect,
    message: &Message,
    known: &FxHashSet<usize>,
    stubs: &[String],
) -> Option<String> {
    if dialect != Dialect::Anthropic {
        return (!known.is_empty()).then(|| message.json().to_owned());
    }
    let span: Span = message.content_span()?;
    let mut blocks: Vec<String> = Vec::new();
    blocks.extend(stubs.iter().map(|id| tool_result_stub(dialect, id, STUB_RESULT)));
    for (position, block) in RawJson(message.raw(span)).elements().enumerate() {
        let is_result = matches!(message.parts().get(position), Some(Part::ToolResult { .. }));
        if !is_result || known.contains(&position) {
            blocks.push(block.0.to_owned());
        }
    }
    if blocks.is_empty() {
        return None;
    }
    // Results come first on this wire.
    blocks.sort_by_key(|block| {
        RawJson(block).get("type").and_then(RawJson::as_text).as_deref() != Some("tool_result")
    });
    let json = message.json();
    let before = json.get(..span.start as usize)?;
    let after = json.get(span.end as usize..)?;
    Some(format!("{before}[{}]{after}", blocks.join(",")))
}

#[cfg(test)]
#[path = "assemble_tests.rs"]
mod tests;
