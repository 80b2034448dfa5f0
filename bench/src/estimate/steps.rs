//! Reads recorded Claude Code sessions as *steps*: the content added between two calls, and its tokens by the provider's count.
//!
//! A step lasts from one call to the next in the same session. Its measure is the difference of the two prompts (input, cache reads and
//! cache writes together). The added content is the answer of the first call, with its tool calls, and everything that arrives before the
//! second: tool results and the user's text. The log is not complete: it lacks reminders that the client adds to a request, and contains
//! thinking only as a summary.

use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;
use throughline_tokens::{ContentProfile, Encoding, Family, Feature, TokenModel, UsageReading};
use throughline_transcript::{Message, Part, decode_message_text};

use super::fit::{FitOptions, Prior, Sample};
use crate::recorded;

/// The content added between two calls.
pub(crate) struct Step {
    /// The model that counted the tokens.
    pub(crate) model: String,
    /// The prompt of the earlier call, in tokens.
    pub(crate) prompt_before: u64,
    /// The prompt of the later call, in tokens.
    pub(crate) prompt_after: u64,
    /// The added content, as far as the log shows it.
    pub(crate) added: ContentProfile,
    /// The tokens of its text in OpenAI's newer encoding, for comparison.
    pub(crate) o200k_tokens: u64,
}

/// The columns of a step beside the shapes of its text, with their priors: messages, tool calls, tool results.
const OVERHEAD_PRIORS: [Prior; 3] = [
    Prior { weight: 5.0, ceiling: 30.0 },
    Prior { weight: 60.0, ceiling: 150.0 },
    Prior { weight: 10.0, ceiling: 50.0 },
];
/// The ratio of Claude's tokens to the OpenAI encodings, before Claude's own usage is known: text of agents has 1.12 times the tokens of
/// o200k. Scripts that do not occur in the sessions are estimated from the older encoding, whose vocabulary is as small.
const CLAUDE_TO_O200K: f64 = 1.12;
const CLAUDE_TO_CL100K_BEYOND_ASCII: f64 = 1.1;

/// The options for fitting steps. The sessions are few and similar, so the prior is strong.
pub(crate) const FIT: FitOptions = FitOptions { prior_samples: 1e-3, tolerance: 0.03, rounds: 8 };

/// The priors of Claude's weights: one value for each shape, then the overheads.
pub(crate) fn claude_priors() -> Vec<Prior> {
    let (o200k, cl100k) = (TokenModel::of(Family::O200k), TokenModel::of(Family::Cl100k));
    let shape = |feature: &Feature| {
        let weight = if feature.is_beyond_ascii() {
            f64::from(cl100k.weight(*feature)) * CLAUDE_TO_CL100K_BEYOND_ASCII
        } else {
            f64::from(o200k.weight(*feature)) * CLAUDE_TO_O200K
        };
        Prior { weight, ceiling: feature.most_tokens() }
    };
    Feature::ALL.iter().map(shape).chain(OVERHEAD_PRIORS).collect()
}

/// The token model with fitted weights.
pub(crate) fn model_of(fitted: &[f64]) -> TokenModel {
    let prior = TokenModel::of(Family::Claude);
    let weights = std::array::from_fn(|at| fitted[at] as f32);
    let around = |at: usize| fitted[Feature::ALL.len() + at] as f32;
    let mut overhead = prior.overhead();
    (overhead.message, overhead.tool_call, overhead.tool_result) = (around(0), around(1), around(2));
    prior.with_weights(weights, overhead)
}

impl Step {
    /// The step as a sample. Small additions consist mostly of content that the log lacks, so they count less.
    pub(crate) fn sample(&self) -> Sample {
        const FULL_IMPORTANCE_TOKENS: f64 = 500.0;
        let tokens = self.measured() as f64;
        let text = self.added.text.counts().iter();
        let around = [self.added.messages, self.added.tool_calls, self.added.tool_results];
        Sample {
            columns: text.chain(&around).map(|count| f64::from(*count)).collect(),
            tokens,
            importance: (tokens / FULL_IMPORTANCE_TOKENS).min(1.0),
        }
    }

    /// The provider's count of the added content.
    pub(crate) fn measured(&self) -> u64 {
        self.prompt_after.saturating_sub(self.prompt_before)
    }
}

/// A recorded session.
pub(crate) struct Session {
    /// The steps in order, without those across a compaction and those in which the prompt shrank.
    pub(crate) steps: Vec<Step>,
    /// The number of omitted steps.
    pub(crate) left_out: usize,
}

/// Reads every session of a folder, in the order of names.
pub(crate) fn read_sessions(folder: &Path) -> Result<Vec<Session>, String> {
    recorded::files(folder)?.iter().map(|path| read_session(path)).collect()
}

fn read_session(path: &Path) -> Result<Session, String> {
    let bytes = recorded::read(path)?;
    let mut log = Log::default();
    // Lines that are not JSON are skipped, as by every reader of these logs.
    for line in String::from_utf8_lossy(&bytes).lines() {
        if let Ok(event) = serde_json::from_str::<Event<'_>>(line) {
            log.read(&event);
        }
    }
    Ok(Session { steps: log.steps, left_out: log.left_out })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    is_sidechain: bool,
    #[serde(default)]
    is_compact_summary: bool,
    subtype: Option<String>,
    #[serde(borrow)]
    message: Option<Inner<'a>>,
}

#[derive(Deserialize)]
struct Inner<'a> {
    id: Option<String>,
    model: Option<String>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

/// The state of a log's reader.
#[derive(Default)]
struct Log {
    steps: Vec<Step>,
    left_out: usize,
    call_id: Option<String>,
    prompt: Option<u64>,
    added: ContentProfile,
    o200k_tokens: u64,
    last_added_results: bool,
    compacted: bool,
}

impl Log {
    fn read(&mut self, event: &Event<'_>) {
        if event.is_sidechain {
            return;
        }
        self.compacted |= event.is_compact_summary || event.subtype.as_deref() == Some("compact_boundary");
        let Some(message) = &event.message else { return };
        let Some(content) = message.content else { return };
        match event.kind.as_str() {
            "assistant" if message.model.as_deref() != Some("<synthetic>") => {
                self.read_answer(message, content)
            }
            "user" => {
                let profile = self.profile("user", content);
                self.add(profile, profile.tool_results > 0);
            }
            _ => {}
        }
    }

    /// An answer is spread over several lines with the same id and the same usage.
    fn read_answer(&mut self, message: &Inner<'_>, content: &RawValue) {
        let continues = message.id.is_some() && message.id == self.call_id;
        if continues {
            let profile = self.profile("assistant", content);
            self.added += ContentProfile { messages: 0, ..profile };
            return;
        }
        let prompt = message
            .usage
            .map_or(0, |usage| UsageReading::parse(usage.get()).map_or(0, |reading| reading.usage.prompt()));
        if let Some(before) = self.prompt.replace(prompt) {
            if self.compacted || prompt <= before {
                self.left_out += 1;
            } else {
                let model = message.model.clone().unwrap_or_default();
                let (added, o200k_tokens) = (self.added, self.o200k_tokens);
                self.steps.push(Step {
                    model,
                    prompt_before: before,
                    prompt_after: prompt,
                    added,
                    o200k_tokens,
                });
            }
        }
        self.call_id.clone_from(&message.id);
        self.added = ContentProfile::default();
        self.o200k_tokens = 0;
        self.compacted = false;
        let profile = self.profile("assistant", content);
        self.add(profile, false);
    }

    /// Results of parallel calls are separate lines in the log, but one message in the request.
    fn add(&mut self, profile: ContentProfile, carries_results: bool) {
        let same_message = carries_results && self.last_added_results;
        self.added += ContentProfile { messages: u32::from(!same_message), ..profile };
        self.last_added_results = carries_results;
    }

    fn profile(&mut self, role: &str, content: &RawValue) -> ContentProfile {
        let json = format!("{{\"role\":\"{role}\",\"content\":{}}}", content.get());
        let Ok(message) = decode_message_text(json) else { return ContentProfile::default() };
        self.o200k_tokens += o200k_tokens(&message, message.parts());
        ContentProfile::of_message(&message)
    }
}

fn o200k_tokens(message: &Message, parts: &[Part]) -> u64 {
    let tokens = |part: &Part| match part {
        Part::Text(text) | Part::Reasoning { text: Some(text), .. } => {
            Encoding::O200k.count(&message.str(*text))
        }
        Part::ToolCall { name, arguments, .. } => {
            Encoding::O200k.count(&message.str(*name))
                + Encoding::O200k.count(&message.arguments_text(*arguments))
        }
        Part::ToolResult { content, .. } => o200k_tokens(message, content),
        _ => 0,
    };
    parts.iter().map(tokens).sum()
}
