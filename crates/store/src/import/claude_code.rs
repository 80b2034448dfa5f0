//! Claude Code: a session log is a conversation, and so is each of its sub-agents, in the same file or one of its own.

use throughline_transcript::{LogCall, LogFacts, NewView, Transcript};

use crate::ids::Millis;
use crate::sessions::session::LinkKind;

use super::conversation::{
    ForeignCall, ForeignCompaction, ForeignConversation, ForeignMessage, ForeignParent, ParentPosition,
};

/// The program under which these sessions are recorded.
pub(super) const PROGRAM: &str = "claude-code";

/// Returns the conversations of a log: the session's own, if it has one, then those of its sub-agents.
pub(super) fn conversations(
    transcript: &Transcript,
    fallback_key: &str,
    fallback_ms: Millis,
) -> Vec<ForeignConversation> {
    let Some(facts) = transcript.log_facts() else { return Vec::new() };
    let session = facts.session.clone().unwrap_or_else(|| fallback_key.to_owned());
    let is_whole_session = !transcript.messages.is_empty();
    let mut found = Vec::new();
    if is_whole_session {
        found.push(conversation(transcript, facts, session.clone(), None, fallback_ms));
    }
    for agent in transcript.sub_agents() {
        let Some(facts) = agent.transcript.log_facts() else { continue };
        let key = format!("{session}/agent-{}", agent.id);
        // In a file of its own, a sub-agent does not state after which message it was started.
        let place = match (is_whole_session, facts.started_ms) {
            (true, _) => ParentPosition::Messages(agent.after_messages),
            (false, started_ms) => ParentPosition::Time(started_ms.unwrap_or(fallback_ms)),
        };
        let attached = ForeignParent { key: session.clone(), kind: LinkKind::SubAgent, place };
        found.push(conversation(&agent.transcript, facts, key, Some(attached), fallback_ms));
    }
    found
}

fn conversation(
    transcript: &Transcript,
    facts: LogFacts,
    key: String,
    attached_to: Option<ForeignParent>,
    fallback_ms: Millis,
) -> ForeignConversation {
    let started_ms = facts.started_ms.unwrap_or(fallback_ms);
    let mut last_ms = started_ms;
    let mut at_ms = |told: Option<Millis>| {
        last_ms = told.unwrap_or(last_ms);
        last_ms
    };
    let times = facts.messages.iter().map(|message| message.at_ms).chain(std::iter::repeat(None));
    let messages: Vec<ForeignMessage> = transcript
        .messages
        .iter()
        .zip(times)
        .map(|(message, told)| ForeignMessage::new(message.clone(), at_ms(told)))
        .collect();
    let compactions = facts
        .compactions
        .iter()
        .filter(|compaction| compaction.view == NewView::NextMessage)
        .map(|compaction| {
            let said_ms = messages.get(compaction.message).map_or(started_ms, |said| said.at_ms);
            let at_ms = compaction.at_ms.unwrap_or(said_ms);
            ForeignCompaction { at: compaction.message, at_ms, view: Vec::new() }
        })
        .collect();
    let calls = facts.calls.iter().filter_map(|call| foreign_call(call, &messages, started_ms)).collect();
    ForeignConversation {
        program: PROGRAM,
        key,
        attached_to,
        copied_from: facts.copied_from,
        project: facts.folder,
        title: facts.title,
        model: transcript.preamble.model.clone(),
        wire_format: transcript.wire_format,
        started_ms,
        messages,
        compactions,
        calls,
        preamble: None,
        end: None,
    }
}

fn foreign_call(call: &LogCall, messages: &[ForeignMessage], started_ms: Millis) -> Option<ForeignCall> {
    let mut found = ForeignCall::from_log(call)?;
    let answer = call.message.and_then(|message| messages.get(message));
    found.model = call.model.clone().unwrap_or_default();
    found.provider = "anthropic".to_owned();
    found.at_ms = call.at_ms.or(answer.map(|said| said.at_ms)).unwrap_or(started_ms);
    found.booked_at = call.message;
    found.answer = call.message;
    Some(found)
}

#[cfg(test)]
#[path = "claude_code_tests.rs"]
mod tests;
