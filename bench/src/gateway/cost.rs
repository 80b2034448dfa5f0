//! What recorded sessions cost through the gateway, against the same requests sent directly to a model without a window.
//! The client is the recorded one, or one that never compacts its conversation; it marks its prompts as well as can be, and
//! both ways are priced by the published rules of prompt caches. Summaries the gateway asks for are part of its bill.
//! Tokens are estimates, prices are list prices. Calls that were never answered are left out: no provider would take them.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use throughline_compaction::Section;
use throughline_provider::{CacheMarks, CacheStyle, CacheTtl, MarkLayout, PrefixCache};
use throughline_replay::{RecordedCall, Talk};
use throughline_testkit::{RecordedRequest, Reply, Script, ScriptedUpstream, ServedModel, UpstreamOptions};
use throughline_tokens::{PricedCall, Usage, cost};
use throughline_transcript::{Dialect, Message, Part, RawJson, SharedText, decode_message};
use throughline_wire::{AnswerDraft, AnswerPart, ReportedUsage, Request, ToolCall};

use super::client::Client;
use super::proxy::Proxy;
use crate::recorded::sessions;

const MODEL: &str = "claude-opus-4-5";
const WINDOW_TOKENS: u64 = 200_000;
/// What stands for system prompt and tools.
const SYSTEM_WORDS: usize = 8_000;
/// What every answer and every summary is taken to cost in output.
const ANSWER_TOKENS: u64 = 300;
const SUMMARY_TOKENS: u64 = 2_000;
/// By what requests for a summary are known.
const OF_SUMMARIES: &str = "How the notes are written:";

/// Who holds the conversation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Habit {
    /// The recorded client, with its own compactions.
    AsRecorded,
    /// One that sends everything every time.
    NeverCompacts,
}

/// A recorded conversation as it is held again.
struct Replayed<'a> {
    talk: &'a Talk,
    habit: Habit,
    /// Calls that have a result.
    answered: HashSet<String>,
}

/// Prices prompts as a provider would.
struct Till {
    cache: PrefixCache,
    now_ms: i64,
    micro_usd: u64,
    /// What summaries cost, and how many there were.
    summaries: (u64, u64),
    /// What is answered next.
    next: Vec<AnswerPart>,
}

impl Till {
    fn new() -> Self {
        let cache = PrefixCache::new(CacheStyle::Marks);
        Self { cache, now_ms: 0, micro_usd: 0, summaries: (0, 0), next: Vec::new() }
    }

    /// Books a request; what a provider would report for it.
    fn take(&mut self, body: &[u8], output: u64) -> Result<ReportedUsage, String> {
        let request = Request::decode(Dialect::Anthropic, body).map_err(told)?;
        let prompt = self.cache.ask(&request, self.now_ms).map_err(told)?;
        self.cache.answer_began(&prompt, self.now_ms);
        let usage = Usage { output, ..prompt.reported.usage };
        let call = PricedCall {
            model: MODEL,
            provider: "anthropic",
            at_ms: self.now_ms,
            usage,
            cache_write_1h: prompt.reported.cache_write_1h,
        };
        self.micro_usd += cost(&call).micro_usd.ok_or("the model has no price")?;
        Ok(ReportedUsage { usage, ..prompt.reported })
    }

    fn answer(&mut self, request: &RecordedRequest) -> Reply {
        let is_summary = request.text().contains(OF_SUMMARIES);
        let output = if is_summary { SUMMARY_TOKENS } else { ANSWER_TOKENS };
        let before = self.micro_usd;
        let reported = match self.take(&request.body, output) {
            Ok(reported) => reported,
            Err(error) => return Reply::error(400, "invalid_request_error", &error),
        };
        let parts = if is_summary { vec![AnswerPart::Text(notes())] } else { self.next.clone() };
        if is_summary {
            self.summaries = (self.summaries.0 + self.micro_usd - before, self.summaries.1 + 1);
        }
        let model = MODEL.to_owned();
        Reply::exactly(AnswerDraft { usage: Some(reported), model, ..AnswerDraft::of_parts(parts) })
    }
}

/// A summary with all its sections.
fn notes() -> String {
    let line = "- what was done and found here, in as many words as it takes\n".repeat(12);
    Section::ALL.iter().map(|section| format!("## {}\n{line}", section.heading())).collect()
}

/// Measures all sessions of a folder.
pub(crate) fn run(program: &Path, folder: &Path) -> Result<String, String> {
    let sessions = sessions(folder)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(told)?;
    runtime.block_on(async {
        let till = Arc::new(Mutex::new(Till::new()));
        let of_upstream = Arc::clone(&till);
        let script = Script::answering(move |request| locked(&of_upstream).answer(request));
        let options = UpstreamOptions {
            models: vec![ServedModel::with_window(MODEL, WINDOW_TOKENS)],
            ..UpstreamOptions::default()
        };
        let upstream = ScriptedUpstream::start_with(options, script).await.map_err(told)?;
        let address = upstream.url().trim_start_matches("http://").parse().map_err(told)?;
        let gateway = Proxy::throughline(program, address).await?;
        let mut out = String::new();
        for (habit, name) in [
            (Habit::AsRecorded, "the recorded client, with its own compactions"),
            (Habit::NeverCompacts, "a client that never compacts"),
        ] {
            let _ = writeln!(
                out,
                "{name}\n\n{:<28} {:>6} {:>11} {:>11} {:>8} {:>16}",
                "session", "calls", "direct $", "gateway $", "share", "for summaries $"
            );
            let (mut all, mut dearer) = ((0, 0, 0), (0, 0));
            for recorded in &sessions {
                let talk = Talk::of(&recorded.transcript);
                if talk.dialect != Dialect::Anthropic || talk.calls.is_empty() {
                    continue;
                }
                let replayed = Replayed::new(&talk, habit);
                let directly = replayed.direct()?;
                *locked(&till) = Till::new();
                let mut client = Client::connect_at(gateway.address(), "/v1/messages").await.map_err(told)?;
                let asked = replayed.through(&till, &mut client).await;
                asked.map_err(|error| format!("{}: {error}", recorded.name))?;
                let (through, summaries) = {
                    let till = locked(&till);
                    (till.micro_usd, till.summaries)
                };
                all = (all.0 + directly, all.1 + through, all.2 + summaries.0);
                dearer.0 += usize::from(through - summaries.0 > directly);
                dearer.1 += usize::from(through > directly);
                let _ = writeln!(
                    out,
                    "{:<28} {:>6} {:>11.4} {:>11.4} {:>7.1}% {:>11.4} ({})",
                    recorded.name,
                    talk.calls.len(),
                    dollars(directly),
                    dollars(through),
                    share(through, directly),
                    dollars(summaries.0),
                    summaries.1
                );
            }
            let verdict = if dearer.0 == 0 { "holds" } else { "MISSED" };
            let _ = writeln!(
                out,
                "all: {:.4} directly, {:.4} through the gateway ({:.1} %), {:.4} of it for summaries\n\
                 sessions that cost more with summaries by rules, which cost nothing: {}, {verdict}; with a model that is \
                 paid for them: {}\n",
                dollars(all.0),
                dollars(all.1),
                share(all.1, all.0),
                dollars(all.2),
                dearer.0,
                dearer.1
            );
        }
        Ok(out)
    })
}

impl<'a> Replayed<'a> {
    fn new(talk: &'a Talk, habit: Habit) -> Self {
        let answered = talk.messages.iter();
        let answered =
            answered.flat_map(|message| message.answered().map(|id| id.text(message.json()).into_owned()));
        Self { talk, habit, answered: answered.collect() }
    }

    /// The bill of the client alone.
    fn direct(&self) -> Result<u64, String> {
        let mut till = Till::new();
        let mut said = Said::default();
        for call in &self.talk.calls {
            till.now_ms = call.at_ms;
            till.take(&self.body(call, &said)?, ANSWER_TOKENS)?;
            said.answered(call, &self.as_answered(call));
        }
        Ok(till.micro_usd)
    }

    /// The same calls through the gateway.
    async fn through(&self, till: &Mutex<Till>, client: &mut Client) -> Result<(), String> {
        let mut said = Said::default();
        for call in &self.talk.calls {
            {
                let mut till = locked(till);
                till.now_ms = call.at_ms;
                till.next = self.parts(call);
            }
            let body = String::from_utf8(self.body(call, &said)?).map_err(told)?;
            let answer = client.ask(&body).await.map_err(told)?;
            let answer: serde_json::Value = serde_json::from_slice(&answer).map_err(told)?;
            if answer["content"].is_null() {
                return Err(answer.to_string());
            }
            said.answered(call, &self.as_answered(call));
        }
        Ok(())
    }

    /// A request as the client makes it.
    fn body(&self, call: &RecordedCall, said: &Said) -> Result<Vec<u8>, String> {
        let (start, view) = match self.habit {
            Habit::AsRecorded => self.talk.view_of(call),
            Habit::NeverCompacts => (0, &[][..]),
        };
        let recorded = (start..).zip(self.talk.messages.get(start..call.answer.start).unwrap_or_default());
        let since = recorded.filter_map(|(place, message)| match said.0.get(&place) {
            Some(own) => own.clone(),
            None => Some(message.json().to_owned()),
        });
        let messages: Vec<Message> = view
            .iter()
            .map(|message| message.json().to_owned())
            .chain(since)
            .filter_map(|json| decode_message(SharedText::new(json)))
            .collect();
        let system = "keep to the rules of the house, ".repeat(SYSTEM_WORDS / 7);
        let frame = serde_json::json!({
            "model": MODEL, "max_tokens": 8_192, "system": [{"type": "text", "text": system}],
            "metadata": {"user_id": format!("session_{}", self.name())}, "messages": [],
        });
        let mut request = Request::decode(Dialect::Anthropic, frame.to_string()).map_err(told)?;
        let marks = CacheMarks { layout: MarkLayout::Anthropic, ttl: CacheTtl::FiveMinutes };
        Ok(marks.encode(&mut request, &messages, 0).0)
    }

    /// What tells one conversation from another.
    fn name(&self) -> String {
        let began = self.talk.calls.first().map(|call| call.at_ms).unwrap_or_default();
        format!("{began}_{}", self.habit as u8)
    }

    /// The recorded answer to a call.
    fn parts(&self, call: &RecordedCall) -> Vec<AnswerPart> {
        let mut parts = Vec::new();
        for message in self.talk.messages.get(call.answer.clone()).unwrap_or_default() {
            let json = message.json();
            for part in message.parts() {
                match part {
                    Part::Text(text) => parts.push(AnswerPart::Text(message.str(*text).into_owned())),
                    Part::ToolCall { id, name, block, .. } if self.answered.contains(&*id.text(json)) => {
                        let input = RawJson(message.raw(*block)).get("input").map_or("{}", |input| input.0);
                        parts.push(AnswerPart::ToolCall(ToolCall {
                            id: id.text(json).into_owned(),
                            name: name.text(json).into_owned(),
                            arguments: input.to_owned(),
                        }));
                    }
                    _ => {}
                }
            }
        }
        if parts.is_empty() {
            parts.push(AnswerPart::Text("Done.".to_owned()));
        }
        parts
    }

    /// The answer as it goes back into the client's history.
    fn as_answered(&self, call: &RecordedCall) -> String {
        let blocks = self.parts(call).into_iter().map(|part| match part {
            AnswerPart::ToolCall(call) => serde_json::json!({
                "type": "tool_use", "id": call.id, "name": call.name,
                "input": serde_json::from_str::<serde_json::Value>(&call.arguments).unwrap_or_default(),
            }),
            AnswerPart::Text(text) => serde_json::json!({ "type": "text", "text": text }),
            _ => serde_json::Value::Null,
        });
        serde_json::json!({ "role": "assistant", "content": blocks.collect::<Vec<_>>() }).to_string()
    }
}

/// What the client keeps of answers in place of what was recorded.
#[derive(Default)]
struct Said(HashMap<usize, Option<String>>);

impl Said {
    fn answered(&mut self, call: &RecordedCall, json: &str) {
        self.0.extend(call.answer.clone().map(|message| (message, None)));
        self.0.insert(call.answer.start, Some(json.to_owned()));
    }
}

fn dollars(micro_usd: u64) -> f64 {
    micro_usd as f64 / 1e6
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}
