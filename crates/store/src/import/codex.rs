//! Codex: a rollout log is a conversation.

use throughline_transcript::{LogCall, LogFacts, Message, NewView, Role, Transcript};

use crate::call::StoredPreamble;
use crate::ids::Millis;
use crate::sessions::session::LinkKind;

use super::conversation::{
    ForeignCall, ForeignCompaction, ForeignConversation, ForeignItem, ForeignMessage, ForeignParent,
    ParentPosition,
};

/// The program under which these sessions are recorded.
pub(super) const PROGRAM: &str = "codex";

/// Returns the conversation of a log.
pub(super) fn conversation(
    transcript: &Transcript,
    fallback_key: &str,
    fallback_ms: Millis,
) -> Option<ForeignConversation> {
    let facts = transcript.log_facts()?;
    let started_ms = facts.started_ms.unwrap_or(fallback_ms);
    let mut last_ms = started_ms;
    let mut messages = Vec::with_capacity(transcript.messages.len());
    for (index, message) in transcript.messages.iter().enumerate() {
        last_ms = facts.messages.get(index).and_then(|facts| facts.at_ms).unwrap_or(last_ms);
        messages.push(ForeignMessage::new(message.clone(), last_ms));
    }
    let compactions = compactions(&facts, &messages, started_ms);
    let calls =
        facts.calls.iter().filter_map(|call| foreign_call(call, &facts, &messages, started_ms)).collect();
    let LogFacts { session, parent_session, copied_from, folder, title, .. } = facts;
    Some(ForeignConversation {
        program: PROGRAM,
        key: session.unwrap_or_else(|| fallback_key.to_owned()),
        attached_to: parent_session.map(|key| ForeignParent {
            key,
            kind: LinkKind::SubAgent,
            place: ParentPosition::Time(started_ms),
        }),
        copied_from,
        project: folder,
        title,
        model: transcript.preamble.model.clone(),
        wire_format: transcript.wire_format,
        started_ms,
        messages,
        compactions,
        calls,
        preamble: transcript.preamble.system.as_ref().map(|system| StoredPreamble {
            system: Some(system.as_str().to_owned()),
            ..StoredPreamble::default()
        }),
        end: None,
    })
}

fn compactions(facts: &LogFacts, messages: &[ForeignMessage], started_ms: Millis) -> Vec<ForeignCompaction> {
    facts
        .compactions
        .iter()
        .map(|compaction| {
            let before = messages.get(..compaction.message).unwrap_or(messages);
            let at_ms = compaction.at_ms.or(before.last().map(|said| said.at_ms)).unwrap_or(started_ms);
            let view = match &compaction.view {
                NewView::NextMessage => Vec::new(),
                NewView::Messages { messages, summary } => items(messages, summary.as_deref(), before),
            };
            ForeignCompaction { at: compaction.message, at_ms, view }
        })
        .collect()
}

/// Returns the items of a view: earlier messages, in order, as references; the summary; and everything else.
fn items(shown: &[Message], summary: Option<&str>, before: &[ForeignMessage]) -> Vec<ForeignItem> {
    let mut from = 0;
    let mut has_summary = false;
    shown
        .iter()
        .map(|message| {
            let hash = message.content_hash();
            let rest = before.get(from..).unwrap_or_default();
            if let Some(offset) = rest.iter().position(|said| said.hash == hash) {
                from += offset + 1;
                return ForeignItem::ForeignMessage(from - 1);
            }
            let is_summary = summary.is_some_and(|summary| message.text().contains(summary.trim()));
            if is_summary && !has_summary {
                has_summary = true;
                let document = summary.unwrap_or_default().to_owned();
                return ForeignItem::Summary { shown: message.clone(), document };
            }
            ForeignItem::Synthetic(message.clone())
        })
        .collect()
}

fn foreign_call(
    call: &LogCall,
    facts: &LogFacts,
    messages: &[ForeignMessage],
    started_ms: Millis,
) -> Option<ForeignCall> {
    let mut found = ForeignCall::from_log(call)?;
    found.model = call.model.clone().unwrap_or_default();
    found.provider = facts.provider.clone().unwrap_or_else(|| "openai".to_owned());
    // The usage of an answer is logged after its last item; the call was sent before its first.
    found.answer = call.message.map(|last| {
        let is_answer =
            |index: &usize| messages.get(*index).is_some_and(|said| said.message.role() == Role::Assistant);
        (0..=last).rev().take_while(is_answer).last().unwrap_or(last)
    });
    found.booked_at = found.answer;
    let said_ms = found.answer.and_then(|message| messages.get(message)).map(|said| said.at_ms);
    found.at_ms = said_ms.or(call.at_ms).unwrap_or(started_ms);
    Some(found)
}

#[cfg(test)]
#[path = "codex_tests.rs"]
mod tests;
