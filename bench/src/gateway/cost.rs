//! The cost of recorded sessions through the gateway, compared with the same requests sent directly to a model without a window limit.
//! The client is either the recorded one, which sometimes asks for a summary and continues from it, or one that never does. It sets cache
//! marks as well as possible, and both ways are priced by the published rules of prompt caches. The gateway's requests for summaries are
//! part of its bill. The end of a conversation is not known in advance, so the bill after each of its calls is reported as well. Tokens
//! are estimates, prices are list prices. Unanswered calls are left out: no provider would accept them.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use throughline_compaction::Section;
use throughline_provider::{CacheMarks, CacheStyle, CacheTtl, MarkLayout, PrefixCache};
use throughline_replay::{ClientPrompt, RecordedCall, Recording};
use throughline_testkit::{RecordedRequest, Reply, Script, ScriptedUpstream, ServedModel, UpstreamOptions};
use throughline_tokens::{PricedCall, TokenModel, Usage};
use throughline_transcript::{
    Message, Part, RawJson, Role, SharedText, WireFormat, decode_message, text_message,
};
use throughline_wire::{AnswerDraft, AnswerPart, ReportedUsage, Request, ToolCall};

use super::client::Client;
use super::proxy::Proxy;
use crate::anchor::stands_in;
use crate::recorded::sessions;

pub(super) const MODEL: &str = "claude-opus-4-5";
pub(super) const WINDOW_TOKENS: u64 = 200_000;
/// The size of the replacement for system prompt and tools, in words.
const SYSTEM_WORDS: usize = 8_000;
/// The recorded client's request for a summary.
const CLIENT_ASKS: &str =
    "Summarise the conversation so far, so that the work can go on from the summary alone.";
/// The assumed output of every answer and every summary.
const ANSWER_TOKENS: u64 = 300;
const SUMMARY_TOKENS: u64 = 2_000;
/// The pause before the next request, which the gateway may use for background work; a user or a tool takes seconds. Only after requests
/// of at least this size, for which there may be such work.
pub(super) const PAUSE: Duration = Duration::from_millis(80);
pub(super) const PAUSE_FROM_BYTES: usize = 200_000;
/// The most a session may cost, in thousandths of its direct cost.
const MOST_PERMILLE: u64 = 1_030;
/// The text by which requests for a summary are recognised.
const OF_SUMMARIES: &str = "Rules for the notes:";

/// The behaviour of the client.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Habit {
    /// The recorded client, with its own compactions.
    AsRecorded,
    /// A client that sends everything every time.
    NeverCompacts,
}

/// The author of the gateway's summaries.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Authors {
    /// The default author.
    AsShipped,
    /// The conversation's own model, at the client's expense.
    OwnModel,
}

/// A recorded conversation that is replayed.
pub(super) struct Replayed<'a> {
    talk: &'a Recording,
    habit: Habit,
    /// The ids of calls with a result.
    answered: HashSet<String>,
    /// The request without its messages.
    frame: serde_json::Value,
}

/// A request of the client.
pub(super) struct Asked<'a> {
    pub(super) at_ms: i64,
    /// The messages before the conversation's own, such as a summary.
    view: &'a [Message],
    /// The range of the conversation's own messages.
    said: Range<usize>,
    /// The call with its recorded answer; `None` for a request for a summary.
    pub(super) answered_by: Option<&'a RecordedCall>,
}

impl Asked<'_> {
    pub(super) fn output_tokens(&self) -> u64 {
        if self.answered_by.is_some() { ANSWER_TOKENS } else { SUMMARY_TOKENS }
    }
}

/// Prices prompts as a provider would.
pub(super) struct Till {
    cache: PrefixCache,
    pub(super) now_ms: i64,
    pub(super) micro_usd: u64,
    /// The bill after each call of the client.
    after_calls: Vec<u64>,
    /// The cost of summaries, and their number.
    summaries: (u64, u64),
    /// The number of messages in the last call that reached the provider.
    messages: usize,
    /// The next answer, and the tokens of its output.
    pub(super) next: (Vec<AnswerPart>, u64),
    /// Strings that the next answer uses.
    pub(super) needed: Vec<String>,
    /// The number of these strings that were in the prompts, over all calls.
    pub(super) present: u64,
    /// The number of calls of tools that were not in the prompt.
    pub(super) absent_tools: u64,
}

impl Till {
    pub(super) fn new() -> Self {
        let cache = PrefixCache::new(CacheStyle::Marks);
        Self {
            cache,
            now_ms: 0,
            micro_usd: 0,
            after_calls: Vec::new(),
            summaries: (0, 0),
            messages: 0,
            next: (Vec::new(), 0),
            needed: Vec::new(),
            present: 0,
            absent_tools: 0,
        }
    }

    /// Books a request and returns the usage that a provider would report.
    pub(super) fn take(&mut self, body: &[u8], output: u64) -> Result<ReportedUsage, String> {
        let request = Request::decode(WireFormat::Anthropic, body).map_err(told)?;
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
        self.micro_usd += call.list_cost().micro_usd.ok_or("the model has no price")?;
        Ok(ReportedUsage { usage, ..prompt.reported })
    }

    pub(super) fn answer(&mut self, request: &RecordedRequest) -> Reply {
        let is_summary = request.text().contains(OF_SUMMARIES);
        let output = if is_summary { SUMMARY_TOKENS } else { self.next.1 };
        if !is_summary && let Ok(decoded) = Request::decode(WireFormat::Anthropic, &request.body) {
            self.messages = decoded.messages().len();
            self.look_at(&request.text(), &decoded);
        }
        let before = self.micro_usd;
        let reported = match self.take(&request.body, output) {
            Ok(reported) => reported,
            Err(error) => return Reply::error(400, "invalid_request_error", &error),
        };
        let parts = if is_summary { vec![AnswerPart::Text(notes())] } else { self.next.0.clone() };
        if is_summary {
            self.summaries = (self.summaries.0 + self.micro_usd - before, self.summaries.1 + 1);
        }
        let model = MODEL.to_owned();
        Reply::exactly(AnswerDraft { usage: Some(reported), model, ..AnswerDraft::of_parts(parts) })
    }
}

impl Till {
    /// Counts the strings of the next answer that its prompt contains.
    fn look_at(&mut self, text: &str, request: &Request) {
        let needed = std::mem::take(&mut self.needed);
        let present = needed.iter().filter(|anchor| stands_in(text, anchor)).count();
        self.present = self.present.saturating_add(u64::try_from(present).unwrap_or(u64::MAX));
        let tools = request.tools().map(|list| {
            let names = list.elements().filter_map(|tool| tool.get("name").and_then(RawJson::as_text));
            names.map(std::borrow::Cow::into_owned).collect::<HashSet<String>>()
        });
        let Some(tools) = tools else { return };
        let called = self
            .next
            .0
            .iter()
            .filter(|part| matches!(part, AnswerPart::ToolCall(call) if !tools.contains(&call.name)));
        self.absent_tools =
            self.absent_tools.saturating_add(u64::try_from(called.count()).unwrap_or(u64::MAX));
    }
}

/// A summary with all its sections.
fn notes() -> String {
    let line = "- what was done and found here, in as many words as it takes\n".repeat(12);
    Section::ALL.iter().map(|section| format!("## {}\n{line}", section.heading())).collect()
}

/// The cost of one conversation over both ways.
struct Bill {
    /// The bill after each of its calls: directly, through the gateway.
    after_calls: Vec<(u64, u64)>,
    directly: u64,
    through: u64,
    summaries: (u64, u64),
    /// Whether the gateway compacted it.
    compacted: bool,
}

/// The bills of all conversations.
#[derive(Default)]
struct Total {
    directly: u64,
    through: u64,
    summaries: u64,
    dearer: usize,
    /// The number of sessions that the gateway compacted, and of those with notes by a model.
    compacted: usize,
    with_notes: usize,
    /// The cost of the most expensive session, in thousandths of its direct cost.
    dearest_permille: u64,
    /// The number of calls after which more had been paid than directly, the number of all calls, and the largest excess, in thousandths.
    dearer_endings: usize,
    endings: usize,
    worst_permille: u64,
}

impl Total {
    fn add(&mut self, bill: &Bill) {
        self.directly += bill.directly;
        self.through += bill.through;
        self.summaries += bill.summaries.0;
        self.dearer += usize::from(bill.through > bill.directly);
        self.compacted += usize::from(bill.compacted);
        self.with_notes += usize::from(bill.compacted && bill.summaries.1 > 0);
        self.dearest_permille = self.dearest_permille.max(bill.through * 1_000 / bill.directly.max(1));
        self.endings += bill.after_calls.len();
        for (directly, through) in bill.after_calls.iter().filter(|(directly, through)| through > directly) {
            self.dearer_endings += 1;
            self.worst_permille = self.worst_permille.max((through - directly) * 1_000 / directly.max(&1));
        }
    }

    fn to_words(&self) -> String {
        let verdict = if self.dearest_permille <= MOST_PERMILLE { "holds" } else { "MISSED" };
        format!(
            "all: {:.4} directly, {:.4} through the gateway ({:.1} %), {:.4} of it for summaries\n\
             sessions that cost more: {}; the dearest {:.1} %, {verdict}\n\
             sessions that were compacted: {}, for {} of them a model wrote notes\n\
             had they ended after any one of their calls: {} of {} endings would have cost more, the worst by {:.1} %\n\n",
            dollars(self.directly),
            dollars(self.through),
            share(self.through, self.directly),
            dollars(self.summaries),
            self.dearer,
            self.dearest_permille as f64 / 10.0,
            self.compacted,
            self.with_notes,
            self.dearer_endings,
            self.endings,
            self.worst_permille as f64 / 10.0,
        )
    }
}

/// Measures all sessions of a folder.
pub(crate) fn run(program: &Path, folder: &Path, authors: Authors) -> Result<String, String> {
    let sessions = sessions(folder)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(told)?;
    runtime.block_on(async {
        let till = Arc::new(Mutex::new(Till::new()));
        let of_upstream = Arc::clone(&till);
        let script = Script::answering_all(move |request| locked(&of_upstream).answer(request));
        let options = UpstreamOptions {
            models: vec![ServedModel::with_window(MODEL, WINDOW_TOKENS)],
            ..UpstreamOptions::default()
        };
        let upstream = ScriptedUpstream::start_with(options, script).await.map_err(told)?;
        let address = upstream.url().trim_start_matches("http://").parse().map_err(told)?;
        let config = match authors {
            Authors::AsShipped => "",
            Authors::OwnModel => "auxiliary: {compression: {provider: main}}\n",
        };
        let gateway = Proxy::throughline_with(program, address, config).await?;
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
            let mut total = Total::default();
            for recorded in &sessions {
                let talk = Recording::of(&recorded.transcript);
                if talk.wire_format != WireFormat::Anthropic || talk.calls.is_empty() {
                    continue;
                }
                let bill = Replayed::new(&talk, habit).over_both_ways(&till, &gateway).await;
                let bill = bill.map_err(|error| format!("{}: {error}", recorded.name))?;
                total.add(&bill);
                let _ = writeln!(
                    out,
                    "{:<28} {:>6} {:>11.4} {:>11.4} {:>7.1}% {:>11.4} ({})",
                    recorded.name,
                    talk.calls.len(),
                    dollars(bill.directly),
                    dollars(bill.through),
                    share(bill.through, bill.directly),
                    dollars(bill.summaries.0),
                    bill.summaries.1
                );
            }
            out.push_str(&total.to_words());
        }
        Ok(out)
    })
}

impl<'a> Replayed<'a> {
    pub(super) fn new(talk: &'a Recording, habit: Habit) -> Self {
        let answered = talk.messages.iter();
        let answered =
            answered.flat_map(|message| message.answered().map(|id| id.text(message.json()).into_owned()));
        let began = talk.calls.first().map(|call| call.at_ms).unwrap_or_default();
        let system = "keep to the rules of the house, ".repeat(SYSTEM_WORDS / 7);
        let frame = serde_json::json!({
            "model": MODEL, "max_tokens": 8_192, "system": [{"type": "text", "text": system}],
            "metadata": {"user_id": format!("session_{began}_{}", habit as u8)}, "messages": [],
        });
        Self { talk, habit, answered: answered.collect(), frame }
    }

    /// Uses the system prompt and the tools of a client.
    pub(super) fn with_prompt(mut self, client: &ClientPrompt, model: &TokenModel) -> Result<Self, String> {
        let (system, tools) = client.for_recording(self.talk, model);
        let text: serde_json::Value = serde_json::from_str(&system).map_err(told)?;
        self.frame["system"] = match text {
            serde_json::Value::String(text) => serde_json::json!([{"type": "text", "text": text}]),
            blocks => blocks,
        };
        self.frame["tools"] = serde_json::from_str(&tools).map_err(told)?;
        Ok(self)
    }

    async fn over_both_ways(&self, till: &Mutex<Till>, gateway: &Proxy) -> Result<Bill, String> {
        let alone = self.direct()?;
        *locked(till) = Till::new();
        let mut client = Client::connect_at(gateway.address(), "/v1/messages").await.map_err(told)?;
        let compacted = self.through(till, &mut client).await?;
        let till = locked(till);
        Ok(Bill {
            after_calls: alone.after_calls.into_iter().zip(till.after_calls.iter().copied()).collect(),
            directly: alone.micro_usd,
            through: till.micro_usd,
            summaries: till.summaries,
            compacted,
        })
    }

    /// The bill of the client without the gateway.
    fn direct(&self) -> Result<Till, String> {
        let mut till = Till::new();
        let mut said = Said::default();
        for request in self.requests() {
            till.now_ms = request.at_ms;
            till.take(&self.body(&request, &said)?, request.output_tokens())?;
            till.after_calls.push(till.micro_usd);
            said.answered(&request, self);
        }
        Ok(till)
    }

    /// Sends the same requests through the gateway; returns whether it compacted the conversation.
    async fn through(&self, till: &Mutex<Till>, client: &mut Client) -> Result<bool, String> {
        let mut said = Said::default();
        let mut compacted = false;
        for request in self.requests() {
            {
                let mut till = locked(till);
                till.now_ms = request.at_ms;
                till.next = (self.parts(request.answered_by), request.output_tokens());
            }
            let body = self.body(&request, &said)?;
            let asked = Request::decode(WireFormat::Anthropic, &body).map_err(told)?.messages().len();
            let body = String::from_utf8(body).map_err(told)?;
            let answer = client.ask(&body).await.map_err(told)?;
            let answer: serde_json::Value = serde_json::from_slice(&answer).map_err(told)?;
            if answer["content"].is_null() {
                return Err(answer.to_string());
            }
            {
                let mut till = locked(till);
                let so_far = till.micro_usd;
                till.after_calls.push(so_far);
                compacted |= till.messages < asked;
            }
            said.answered(&request, self);
            if body.len() >= PAUSE_FROM_BYTES {
                tokio::time::sleep(PAUSE).await;
            }
        }
        Ok(compacted)
    }

    /// All requests of the client in order: its calls, and a call for a summary before the first call that continues from it.
    pub(super) fn requests(&self) -> Vec<Asked<'a>> {
        let mut requests = Vec::new();
        let mut last_view: (usize, &[Message]) = (0, &[]);
        for call in &self.talk.calls {
            let (start, view) = match self.habit {
                Habit::AsRecorded => self.talk.view_of(call),
                Habit::NeverCompacts => (0, &[][..]),
            };
            if start != last_view.0 && !requests.is_empty() {
                let made = self.talk.compactions.iter().find(|made| made.message == start);
                let at_ms = made.map_or(call.at_ms, |made| made.at_ms);
                requests.push(Asked {
                    at_ms,
                    view: last_view.1,
                    said: last_view.0..start,
                    answered_by: None,
                });
            }
            let said = start..call.answer.start;
            requests.push(Asked { at_ms: call.at_ms, view, said, answered_by: Some(call) });
            last_view = (start, view);
        }
        requests
    }

    /// The body of a request.
    pub(super) fn body(&self, asked: &Asked<'_>, said: &Said) -> Result<Vec<u8>, String> {
        let recorded = self.talk.messages.get(asked.said.clone()).unwrap_or_default();
        let since =
            asked.said.clone().zip(recorded).filter_map(|(place, message)| match said.0.get(&place) {
                Some(own) => own.clone(),
                None => Some(message.json().to_owned()),
            });
        let instruction = match asked.answered_by {
            Some(_) => None,
            None => Some(text_message(WireFormat::Anthropic, Role::User, CLIENT_ASKS)),
        };
        let messages: Vec<Message> = asked
            .view
            .iter()
            .map(|message| message.json().to_owned())
            .chain(since)
            .chain(instruction)
            .filter_map(|json| decode_message(SharedText::new(json)))
            .collect();
        let mut request = Request::decode(WireFormat::Anthropic, self.frame.to_string()).map_err(told)?;
        let marks = CacheMarks { layout: MarkLayout::Anthropic, ttl: CacheTtl::FiveMinutes };
        Ok(marks.encode(&mut request, &messages, 0).0)
    }

    /// The recorded answer to a call, or a summary.
    pub(super) fn parts(&self, answered_by: Option<&RecordedCall>) -> Vec<AnswerPart> {
        let Some(call) = answered_by else {
            return vec![AnswerPart::Text(notes())];
        };
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

    /// The answer as it is stored in the client's history.
    fn as_answered(&self, call: &RecordedCall) -> String {
        let blocks = self.parts(Some(call)).into_iter().map(|part| match part {
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

/// The answers in the client's history that replace the recorded ones.
#[derive(Default)]
pub(super) struct Said(HashMap<usize, Option<String>>);

impl Said {
    pub(super) fn answered(&mut self, asked: &Asked<'_>, replayed: &Replayed<'_>) {
        if let Some(call) = asked.answered_by {
            self.0.extend(call.answer.clone().map(|message| (message, None)));
            self.0.insert(call.answer.start, Some(replayed.as_answered(call)));
        }
    }
}

pub(super) fn dollars(micro_usd: u64) -> f64 {
    micro_usd as f64 / 1e6
}

pub(super) fn share(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}
