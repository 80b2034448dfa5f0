//! Inline summary requests: an instruction after the prompt that was last sent, byte for byte, so that the cache is read.

use std::time::Duration;

use throughline_compaction::{SummaryDocument, SummaryRequest, find_summary};
use throughline_provider::{CachePolicy, OutgoingCall};
use throughline_store::Millis;
use throughline_tokens::{TextProfile, TokenModel};
use throughline_transcript::{Message, Part, RawJson};
use throughline_wire::{Request, Streaming};

use super::answer_budget::answer_room;
use super::form::InlineObstacle;
use super::prompt::{HasNotes, SummaryBrief};
use super::standalone::cap_member;
use super::transcript::shortened;
use crate::prompt::cached_prompt::CachedPrompt;

/// The assumed cache lifetime of a provider that states none.
const USUAL_CACHE_TTL: Duration = Duration::from_secs(300);
/// The assumed size of the smallest cached prompt.
const USUAL_CACHE_MINIMUM: u64 = 1_024;
/// Percentage of the free window to use, because sizes are estimates.
const USED_ROOM_PERCENT: u64 = 95;
/// The minimum space for the answer, as a percentage of the budget.
const LEAST_ANSWER_PERCENT: u64 = 125;
/// Characters of a message that are quoted to identify it.
const POINTER_CHARS: usize = 100;

/// A call that appends an instruction to the conversation.
pub(crate) struct InlineCall {
    pub(crate) call: OutgoingCall,
    /// Number of cached tokens in the prompt.
    pub(crate) cached_tokens: u64,
    /// Number of uncached tokens.
    pub(crate) new_tokens: u64,
    /// The maximum tokens of the answer.
    pub(crate) answer_tokens: u64,
}

impl InlineCall {
    /// Returns the conversation as it was sent, followed by the request for notes; or why that is not possible.
    pub(crate) fn on(
        cached_prompt: &CachedPrompt,
        request: &SummaryRequest<'_>,
        brief: &SummaryBrief<'_>,
        window_tokens: u64,
        now_ms: Millis,
    ) -> Result<Self, InlineObstacle> {
        let target = cached_prompt.target();
        let cut = request.plan.middle.end;
        let kept = cached_prompt.messages().checked_sub(cut).ok_or(InlineObstacle::SentTooLittle)?;
        if cached_prompt.request().leans_on_provider_state() {
            return Err(InlineObstacle::ProviderState);
        }
        if is_constrained(cached_prompt.request()) {
            return Err(InlineObstacle::Constrained);
        }
        let instruction = instruction(request, brief, kept);
        let token_model = TokenModel::for_model(&target.model, target.wire_format);
        let instruction_tokens = token_model.estimate(&TextProfile::of(&instruction));
        let sent_tokens = cached_prompt.prompt_tokens().unwrap_or_else(|| request.sizes.iter().sum());
        let prompt_tokens = sent_tokens.saturating_add(instruction_tokens);
        // The conversation's thinking budget is added: a smaller one would change the cached prompt.
        let thinking_tokens = thinking_tokens(cached_prompt.request());
        let wanted = answer_room(brief.budget_tokens, &target.model, window_tokens);
        let wanted = wanted.saturating_add(thinking_tokens);
        let room = window_tokens.saturating_sub(prompt_tokens);
        let answer_tokens = wanted.min(room.saturating_mul(USED_ROOM_PERCENT) / 100);
        let words_tokens = answer_tokens.saturating_sub(thinking_tokens);
        if words_tokens.saturating_mul(100) < brief.budget_tokens.saturating_mul(LEAST_ANSWER_PERCENT) {
            return Err(InlineObstacle::NoRoom);
        }
        let body = cached_prompt.body(&instruction).map_err(|_| InlineObstacle::NotSent)?;
        let mut body = Request::decode(target.wire_format, &body).map_err(|_| InlineObstacle::NotSent)?;
        body.set_streaming(Streaming::Streamed);
        body.ask_for_stream_usage();
        // A model that does not stop by itself would write until its window is full.
        match cap_member(target) {
            _ if body.output_cap_tokens().is_some() => body.set_output_cap(answer_tokens),
            Some(name) => body.set_output_cap_as(name, answer_tokens),
            None => {}
        }
        let cached_tokens = cached_tokens(cached_prompt, sent_tokens, now_ms);
        let call = OutgoingCall {
            headers: cached_prompt.extras().headers.clone(),
            query: cached_prompt.extras().query.clone(),
            ..OutgoingCall::of(&body, body.encode(), Some(window_tokens))
        };
        Ok(Self { call, cached_tokens, new_tokens: prompt_tokens - cached_tokens, answer_tokens })
    }

    /// Returns the size of the whole prompt.
    pub(crate) fn prompt_tokens(&self) -> u64 {
        self.cached_tokens.saturating_add(self.new_tokens)
    }
}

/// Returns the thinking budget of an Anthropic request.
fn thinking_tokens(request: &Request) -> u64 {
    let budget = request.member("thinking").and_then(|thinking| thinking.get("budget_tokens"));
    budget.and_then(|tokens| tokens.0.parse().ok()).unwrap_or(0)
}

/// Returns the message that is appended to the conversation.
fn instruction(request: &SummaryRequest<'_>, brief: &SummaryBrief<'_>, kept: usize) -> String {
    let first_kept = request.messages.get(request.plan.middle.end).map_or_else(String::new, pointer);
    let has_notes = notes_in_conversation(request);
    let asked = brief.riding_request(kept, &first_kept, has_notes);
    match request.earlier {
        // Notes that were prepared in the meantime are not in the conversation.
        Some(earlier) if has_notes == HasNotes::No => {
            format!("{}\n\n{asked}", brief.quoted_notes(&earlier.to_markdown()))
        }
        _ => asked,
    }
}

/// Returns how many tokens of the last prompt are probably still cached.
fn cached_tokens(cached_prompt: &CachedPrompt, sent_tokens: u64, now_ms: Millis) -> u64 {
    let target = cached_prompt.target();
    let ttl = match target.cache {
        CachePolicy::Marks { ttl, .. } => ttl.duration(),
        CachePolicy::Key | CachePolicy::Unmarked => USUAL_CACHE_TTL,
    };
    let elapsed_ms = u64::try_from(now_ms.saturating_sub(cached_prompt.sent_at_ms())).unwrap_or(0);
    let is_warm = u128::from(elapsed_ms) < ttl.as_millis();
    let minimum = target.cache_minimum_tokens.unwrap_or(USUAL_CACHE_MINIMUM);
    let caches = match target.cache {
        CachePolicy::Marks { .. } | CachePolicy::Key => true,
        // A model whose last call read from a cache has one.
        CachePolicy::Unmarked => cached_prompt.cache_read_tokens() > 0,
    };
    if is_warm && caches && sent_tokens >= minimum { sent_tokens } else { 0 }
}

/// Whether a request forces a tool call, an output format or a stop sequence.
fn is_constrained(request: &Request) -> bool {
    let is_set = |value: &RawJson<'_>| !matches!(value.0, "null" | "[]" | "{}" | "\"\"");
    let chosen = request.member("tool_choice").filter(is_set).is_some_and(|choice| {
        let kind = choice.as_text().or_else(|| choice.get("type").and_then(RawJson::as_text));
        !kind.is_some_and(|kind| matches!(kind.as_ref(), "auto" | "none"))
    });
    let format = request.member("response_format").or_else(|| request.member("text")?.get("format"));
    let formed = format.filter(is_set).is_some_and(|format| {
        let kind = format.get("type").and_then(RawJson::as_text);
        kind.is_none_or(|kind| kind != "text")
    });
    let stops =
        ["stop", "stop_sequences"].iter().any(|name| request.member(name).is_some_and(|v| is_set(&v)));
    let several = request.member("n").is_some_and(|n| !matches!(n.0, "1" | "null"));
    chosen || formed || stops || several
}

/// Whether the notes to update are the ones that the conversation shows.
fn notes_in_conversation(request: &SummaryRequest<'_>) -> HasNotes {
    let Some(earlier) = request.earlier else { return HasNotes::No };
    let shown = request.plan.earlier.summaries.iter().filter_map(|index| request.messages.get(*index));
    let is_earlier = |message: &Message| {
        find_summary(message).is_some_and(|found| SummaryDocument::parse(&found.body) == *earlier)
    };
    if shown.into_iter().any(is_earlier) { HasNotes::Yes } else { HasNotes::No }
}

/// Returns the beginning of a message, by which the model can identify it.
fn pointer(message: &Message) -> String {
    let quoted = |text: &str| {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        shortened(&line, POINTER_CHARS)
    };
    let text = message.text();
    if !text.trim().is_empty() {
        return format!("the one that begins \"{}\"", quoted(&text));
    }
    for part in message.parts() {
        match part {
            Part::ToolCall { name, .. } => {
                return format!("the one that calls {}", quoted(&message.str(*name)));
            }
            Part::ToolResult { content, .. } => {
                return format!("the result that begins \"{}\"", quoted(&message.result_text(content)));
            }
            _ => {}
        }
    }
    "there".to_owned()
}

#[cfg(test)]
#[path = "inline_tests.rs"]
mod tests;
