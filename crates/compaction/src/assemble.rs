//! Assembles a view: head, summary, the last human message if it is in the compacted part, tail.

use std::collections::HashMap;

use throughline_transcript::{Groups, Message, Role, WireFormat, text_message};

use crate::mend::{Repairs, mend};
use crate::plan::{Joint, Plan, joint};
use crate::preface::{ACKNOWLEDGEMENT, BRIDGE, SYSTEM_NOTE};
use crate::rendition::{Rendition, with_note};
use crate::view::{Synthetic, ViewItem};

/// Assembles the view. `summary_text` receives the number of messages after the summary.
#[must_use]
pub fn assemble(
    wire_format: WireFormat,
    messages: &[Message],
    groups: &Groups,
    plan: &Plan,
    renditions: &HashMap<usize, Rendition>,
    summary_text: impl FnOnce(usize) -> String,
) -> (Vec<ViewItem>, Repairs) {
    let mut repairs = Repairs::default();
    let is_prompt = |index: usize| index == 0 && messages.first().is_some_and(|m| m.role().is_instructions());
    let head = plan.head.clone().map(|index| {
        let noted = if is_prompt(index) { with_note_on(messages, index) } else { None };
        match noted.or_else(|| renditions.get(&index).cloned()) {
            Some(rendition) => ViewItem::Rendition { message: index, rendition },
            None => ViewItem::Verbatim(index),
        }
    });
    let mut items = mend(wire_format, messages, groups, head.collect(), &mut repairs);
    let kept = plan.pinned.clone().into_iter().flatten().chain(plan.tail.clone());
    let kept = mend(wire_format, messages, groups, kept.map(ViewItem::Verbatim).collect(), &mut repairs);
    let joint = joint_after_mending(wire_format, messages, plan, &items, &kept, repairs);
    let ends_head = items.last().and_then(ViewItem::message).and_then(|index| messages.get(index));
    if joint.summary_role == Role::User && ends_head.is_some_and(|last| last.role() == Role::User) {
        let json = text_message(wire_format, Role::Assistant, BRIDGE);
        items.push(ViewItem::Synthetic(Synthetic::Acknowledgement, json));
    }
    items.push(ViewItem::Summary(text_message(wire_format, joint.summary_role, &summary_text(kept.len()))));
    if joint.acknowledge {
        let json = text_message(wire_format, Role::Assistant, ACKNOWLEDGEMENT);
        items.push(ViewItem::Synthetic(Synthetic::Acknowledgement, json));
    }
    items.extend(kept);
    (items, repairs)
}

/// Returns the planned joint, or a new one if mending removed the messages it was planned for.
fn joint_after_mending(
    wire_format: WireFormat,
    messages: &[Message],
    plan: &Plan,
    head: &[ViewItem],
    kept: &[ViewItem],
    repairs: Repairs,
) -> Joint {
    let planned = Joint { summary_role: plan.summary_role, acknowledge: plan.acknowledge };
    if repairs == Repairs::default() {
        return planned;
    }
    let role = |item: &ViewItem| match item.message().and_then(|index| messages.get(index)) {
        Some(message) => message.role(),
        // Only stub results are neither from the record nor the summary here.
        None if wire_format == WireFormat::Anthropic => Role::User,
        None => Role::Tool,
    };
    let before = head.last().map(role).filter(|_| !head.iter().map(role).all(Role::is_instructions));
    let next = kept.first().map(role);
    joint(before, next).unwrap_or(Joint { acknowledge: next == Some(Role::User), ..planned })
}

fn with_note_on(messages: &[Message], index: usize) -> Option<Rendition> {
    messages.get(index).and_then(|message| with_note(message, SYSTEM_NOTE))
}

#[cfg(test)]
#[path = "assemble_tests.rs"]
mod tests;
