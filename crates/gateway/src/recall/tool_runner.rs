//! Runs recall tools within the budget of a turn, and returns the results as messages of each wire format.

use serde_json::{Map, Value, json};
use throughline_engine::{DeferredTools, ManagedSession, ToolAnswer, ToolRequest};
use throughline_store::{Owner, SessionId};
use throughline_tokens::{TextProfile, TokenModel};
use throughline_transcript::{Message, SharedText, WireFormat, decode_message};
use throughline_wire::ToolCall;

use crate::recall::RecallConfig;

/// The percentage of the free window that recall results may fill: sizes are estimates, and the model's text needs space too.
const SHARE_OF_ROOM_PERCENT: u64 = 75;
/// The divisor for the rest of a window whose prompt already takes the space of the answer: recall may fill a quarter of it. Like the
/// hard limit, this leaves most of it to the answer.
const SHARE_OF_ANSWER: u64 = 4;

/// The rounds and tokens that are left in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Allowance {
    pub(super) rounds: usize,
    pub(super) tokens: u64,
}

impl Allowance {
    pub(super) fn of(recall: &RecallConfig) -> Self {
        Self { rounds: recall.rounds(), tokens: recall.tokens() }
    }

    /// Limits the tokens to what fits beside a prompt of this size: results become part of the next prompt, and only a later compaction
    /// can remove them.
    pub(super) fn fit(&mut self, session: &ManagedSession, prompt_tokens: u64) {
        let model = session.model();
        let limit_tokens = model.prompt_room_tokens().max(model.hard_limit_tokens());
        let room = recall_room(model.window_tokens, limit_tokens, prompt_tokens);
        self.tokens = self.tokens.min(room.saturating_mul(SHARE_OF_ROOM_PERCENT) / 100);
    }
}

/// The tokens for results beside a prompt, up to the largest prompt. A view whose compaction is postponed until it pays may be larger
/// than that; then results may fill a part of the rest of the window.
fn recall_room(window_tokens: u64, limit_tokens: u64, prompt_tokens: u64) -> u64 {
    let left = window_tokens.saturating_sub(prompt_tokens);
    limit_tokens.saturating_sub(prompt_tokens).max(left / SHARE_OF_ANSWER)
}

/// Runs the recall calls of an answer.
#[derive(Clone, Copy)]
pub(super) struct ToolRunner<'a> {
    pub(super) recall: &'a RecallConfig,
    pub(super) owner: &'a Owner,
    pub(super) session: &'a SessionId,
    /// The tools that the model can load.
    pub(super) deferred: Option<&'a DeferredTools>,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecallReply {
    pub(super) call_id: String,
    pub(super) answer: ToolAnswer,
    /// The deferred tools that it loads.
    pub(super) found: Vec<String>,
    /// Content that refers to these tools, for providers that load them by reference.
    content: Option<Value>,
}

impl RecallReply {
    fn of(call: &ToolCall, answer: ToolAnswer) -> Self {
        Self { call_id: call.id.clone(), answer, found: Vec::new(), content: None }
    }
}

impl ToolRunner<'_> {
    /// Answers calls in order, within the allowance.
    pub(super) async fn answer(&self, calls: &[ToolCall], allowance: &mut Allowance) -> Vec<RecallReply> {
        let mut all = Vec::with_capacity(calls.len());
        for call in calls {
            all.push(match call.name == DeferredTools::FIND {
                true => self.find(call, allowance),
                false => RecallReply::of(call, self.answer_one(call, allowance).await),
            });
        }
        allowance.rounds = allowance.rounds.saturating_sub(1);
        all
    }

    /// Answers a call that loads deferred tools.
    fn find(&self, call: &ToolCall, allowance: &Allowance) -> RecallReply {
        let Some(deferred) = self.deferred.filter(|_| allowance.rounds > 0) else {
            let text = match allowance.rounds {
                0 => format!(
                    "{} cannot be used again in this turn: answer with the information you have",
                    call.name
                ),
                _ => "all tools can already be called".to_owned(),
            };
            return RecallReply::of(call, failed(text));
        };
        let arguments = serde_json::from_str(&call.arguments).unwrap_or(Value::Null);
        let found = deferred.found(&arguments);
        let (text, content) = (deferred.text(&found), deferred.content(&found));
        let answered = RecallReply::of(call, ToolAnswer { text, is_error: false });
        RecallReply { found, content: Some(content), ..answered }
    }

    async fn answer_one(&self, call: &ToolCall, allowance: &mut Allowance) -> ToolAnswer {
        if allowance.rounds == 0 {
            return failed(format!(
                "{} cannot be used again in this turn: answer with the information you have",
                call.name
            ));
        }
        let arguments = match call.arguments.trim() {
            "" => Ok(Value::Object(Map::new())),
            text => serde_json::from_str(text),
        };
        let arguments = match arguments {
            Ok(arguments) => arguments,
            Err(error) => return failed(format!("the arguments are not valid JSON: {error}")),
        };
        let request = ToolRequest {
            session: self.session.clone(),
            name: call.name.clone(),
            arguments,
            max_chars: None,
        };
        let answer = self.recall.tools().call(self.owner, &request).await;
        let tokens = TokenModel::for_model("", WireFormat::Chat).estimate(&TextProfile::of(&answer.text));
        if tokens > allowance.tokens {
            let left = allowance.tokens;
            return failed(format!(
                "this would be about {tokens} tokens, and {left} are left for recall in this turn: ask for less"
            ));
        }
        allowance.tokens -= tokens;
        answer
    }
}

fn failed(text: String) -> ToolAnswer {
    ToolAnswer { text, is_error: true }
}

/// Returns the results as messages of a wire format, in order.
pub(super) fn messages(wire: WireFormat, answered: &[RecallReply]) -> Vec<Message> {
    let values = match wire {
        WireFormat::Anthropic if answered.is_empty() => Vec::new(),
        WireFormat::Anthropic => vec![json!({ "role": "user", "content": blocks(answered) })],
        WireFormat::Chat => answered
            .iter()
            .map(|one| json!({ "role": "tool", "tool_call_id": one.call_id, "content": plain_words(one) }))
            .collect(),
        WireFormat::Responses => answered
            .iter()
            .map(|one| json!({ "type": "function_call_output", "call_id": one.call_id, "output": plain_words(one) }))
            .collect(),
    };
    values.iter().filter_map(|value| decode_message(SharedText::new(value.to_string()))).collect()
}

/// Returns the results as blocks of an Anthropic message.
pub(super) fn blocks(answered: &[RecallReply]) -> Vec<Value> {
    let block = |one: &RecallReply| {
        let content = one.content.clone().unwrap_or_else(|| Value::from(one.answer.text.as_str()));
        let mut block = json!({ "type": "tool_result", "tool_use_id": one.call_id, "content": content });
        if one.answer.is_error {
            block["is_error"] = Value::Bool(true);
        }
        block
    };
    answered.iter().map(block).collect()
}

/// The text of a result, with a prefix for errors, for wire formats without an error flag.
fn plain_words(one: &RecallReply) -> String {
    let ToolAnswer { text, is_error } = &one.answer;
    if *is_error { format!("Error: {text}") } else { text.clone() }
}

#[cfg(test)]
#[path = "tool_runner_tests.rs"]
mod tests;
