//! A recorded conversation as a list of calls: the new messages of each, its answer, its time.
//!
//! Not for: the cost of a call; a log's own figures are only for comparison.

use std::ops::Range;

use throughline_tokens::{ContentProfile, TokenModel, UsageReading};
use throughline_transcript::{
    LogFacts, Message, NewView, Preamble, Role, Source, SubAgent, Transcript, WireFormat,
};

/// The assumed interval of calls in a transcript without times.
const USUAL_STEP_MS: i64 = 20_000;
/// The assumed start of a transcript without times: the first of January 2026.
const BEGINNING_MS: i64 = 1_767_225_600_000;

/// A recorded call.
#[derive(Clone, Debug)]
pub struct RecordedCall {
    /// The range of its new messages.
    pub incoming: Range<usize>,
    /// The messages of the answer.
    pub answer: Range<usize>,
    /// The time at which the answer started.
    pub at_ms: i64,
    /// The usage the provider reported.
    pub usage: Option<UsageReading>,
}

/// A call as the log counts it.
#[derive(Clone, Debug)]
pub struct LoggedCall {
    /// The model that answered, if known.
    pub model: Option<String>,
    /// Time in milliseconds since 1970.
    pub at_ms: i64,
    /// The reported usage.
    pub usage: UsageReading,
}

/// A compaction of the recorded client.
#[derive(Clone, Debug)]
pub struct RecordedCompaction {
    /// The number of messages before it.
    pub message: usize,
    /// Time in milliseconds since 1970.
    pub at_ms: i64,
    /// The view that replaced the history, if it is not in the messages.
    pub view: Vec<Message>,
    /// Whether the message at that position is the client's summary, which neither user nor model wrote.
    pub summary_follows: bool,
}

/// A recorded conversation.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The wire format of its messages.
    pub wire_format: WireFormat,
    /// The kind of document.
    pub source: Source,
    /// The model of the conversation, if known.
    pub model: Option<String>,
    /// All messages.
    pub messages: Vec<Message>,
    /// The calls, in order.
    pub calls: Vec<RecordedCall>,
    /// The client's own compactions, in order.
    pub compactions: Vec<RecordedCompaction>,
    /// Every call with counts in the log, including those whose answer is not in the messages.
    pub logged: Vec<LoggedCall>,
    /// System prompt and tools, if the document has them.
    pub preamble: Preamble,
}

impl Recording {
    /// Returns the conversation of a transcript.
    #[must_use]
    pub fn of(transcript: &Transcript) -> Self {
        let facts = transcript.log_facts().unwrap_or_default();
        let messages = transcript.messages.clone();
        let times = times(&facts, messages.len());
        let compactions = compactions(&facts, &times);
        let calls = calls(&messages, &facts, &times, &compactions);
        let logged = logged(&facts, &times);
        Self {
            wire_format: transcript.wire_format,
            source: transcript.source,
            model: transcript.preamble.model.clone(),
            messages,
            calls,
            compactions,
            logged,
            preamble: transcript.preamble.clone(),
        }
    }

    /// Returns the conversation of a transcript and those of its sub-agents, which have windows of their own.
    #[must_use]
    pub fn all_of(transcript: &Transcript) -> Vec<(Option<String>, Self)> {
        let own = (!transcript.messages.is_empty()).then(|| (None, Self::of(transcript)));
        let agents = transcript.sub_agents();
        let agents =
            agents.iter().map(|SubAgent { id, transcript, .. }| (Some(id.clone()), Self::of(transcript)));
        own.into_iter().chain(agents).collect()
    }

    /// Returns where the view of the recorded client started for a call, and what replaced the history.
    #[must_use]
    pub fn view_of(&self, call: &RecordedCall) -> (usize, &[Message]) {
        let last = self.compactions.iter().rfind(|compaction| compaction.message <= call.answer.start);
        last.map_or((0, &[]), |compaction| (compaction.message, compaction.view.as_slice()))
    }

    /// Returns the tokens of system prompt and tools: of the recorded ones, or else the provider's count at the start of a window minus its
    /// messages. The smallest is used, because a resumed conversation starts with more than is recorded.
    #[must_use]
    pub fn fixed_tokens(&self, token_model: &TokenModel) -> u64 {
        let recorded = token_model.estimate_content(&ContentProfile::of_preamble(&self.preamble));
        if recorded > 0 {
            return recorded;
        }
        let mut firsts = Vec::new();
        let mut window = None;
        for call in &self.calls {
            let (start, view) = self.view_of(call);
            if window.replace(start) == Some(start) {
                continue;
            }
            let Some(usage) = &call.usage else { continue };
            let said = self.messages.get(start..call.answer.start).unwrap_or_default();
            let sizes =
                view.iter().chain(said).map(|m| token_model.estimate_content(&ContentProfile::of_message(m)));
            firsts.push(usage.usage.prompt().saturating_sub(sizes.sum()));
        }
        firsts.into_iter().min().unwrap_or(0)
    }
}

/// Returns the time of each message, never decreasing.
fn times(facts: &LogFacts, messages: usize) -> Vec<i64> {
    let recorded = |index: usize| facts.messages.get(index).and_then(|message| message.at_ms);
    let has_times = (0..messages).any(|index| recorded(index).is_some());
    let mut last = facts.started_ms.or_else(|| (0..messages).find_map(recorded)).unwrap_or(BEGINNING_MS);
    (0..messages)
        .map(|index| {
            let next = if has_times {
                recorded(index).unwrap_or(last)
            } else {
                last.saturating_add(USUAL_STEP_MS / 2)
            };
            last = last.max(next);
            last
        })
        .collect()
}

fn compactions(facts: &LogFacts, times: &[i64]) -> Vec<RecordedCompaction> {
    let found = facts.compactions.iter().map(|compaction| {
        let (view, summary_follows) = match &compaction.view {
            NewView::NextMessage => (Vec::new(), true),
            NewView::Messages { messages, .. } => (messages.clone(), false),
        };
        let said_ms = compaction.message.checked_sub(1).and_then(|last| times.get(last)).or(times.first());
        let at_ms = compaction.at_ms.or(said_ms.copied()).unwrap_or(BEGINNING_MS);
        RecordedCompaction { message: compaction.message, at_ms, view, summary_follows }
    });
    found.collect()
}

fn logged(facts: &LogFacts, times: &[i64]) -> Vec<LoggedCall> {
    let calls = facts.calls.iter().filter_map(|call| {
        let said_ms = call.message.and_then(|message| times.get(message)).or(times.first()).copied();
        Some(LoggedCall {
            model: call.model.clone(),
            at_ms: call.at_ms.or(said_ms).unwrap_or(BEGINNING_MS),
            usage: UsageReading::of_log(call)?,
        })
    });
    calls.collect()
}

/// Every run of the model's messages is one answer.
fn calls(
    messages: &[Message],
    facts: &LogFacts,
    times: &[i64],
    compactions: &[RecordedCompaction],
) -> Vec<RecordedCall> {
    let mut calls: Vec<RecordedCall> = Vec::new();
    let mut from = 0;
    let mut at = 0;
    while at < messages.len() {
        if !is_answer(messages, at) {
            at += 1;
            continue;
        }
        let end = (at..messages.len()).find(|next| !is_answer(messages, *next)).unwrap_or(messages.len());
        // A compaction of the client in between separates two answers.
        let parted = compactions
            .iter()
            .map(|compaction| compaction.message)
            .find(|place| (at + 1..end).contains(place));
        let end = parted.unwrap_or(end);
        let told =
            facts.calls.iter().find(|call| call.message.is_some_and(|message| (at..end).contains(&message)));
        let usage = told.and_then(UsageReading::of_log);
        let said_ms = times.get(at).copied().unwrap_or(BEGINNING_MS);
        let last_ms = calls.last().map_or(i64::MIN, |call| call.at_ms);
        let at_ms = told.and_then(|call| call.at_ms).unwrap_or(said_ms).max(last_ms);
        calls.push(RecordedCall { incoming: from..at, answer: at..end, at_ms, usage });
        (from, at) = (end, end);
    }
    calls
}

fn is_answer(messages: &[Message], at: usize) -> bool {
    messages.get(at).is_some_and(|message| message.role() == Role::Assistant)
}

#[cfg(test)]
#[path = "recording_tests.rs"]
mod tests;
