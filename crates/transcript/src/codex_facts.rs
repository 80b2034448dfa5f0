//! The facts of a Codex rollout beyond its items.
//!
//! The log records usage after each call, of the last call and as a running total. The same record is repeated when only rate limits
//! changed, so a record is a new call only if its total changed.

use crate::codex_log;
use crate::log_facts::{LogCall, LogCompaction, LogFacts, MessageFacts, NewView};
use crate::log_time::parse_rfc3339_millis;
use crate::log_trace::LogTrace;
use crate::members::RawJson;
use crate::shared_text::SharedText;

pub(crate) fn read(trace: &LogTrace) -> LogFacts {
    let mut facts = LogFacts {
        messages: (0..trace.messages()).map(|message| message_facts(trace, message)).collect(),
        ..LogFacts::default()
    };
    let mut reader = CodexFactsReader { trace, said: 0, model: None, total: None, met_head: false };
    for (index, (number, json)) in trace.lines().iter().enumerate() {
        reader.line(index, *number, json, &mut facts);
    }
    facts
}

struct CodexFactsReader<'a> {
    trace: &'a LogTrace,
    /// The number of messages before the current line.
    said: usize,
    model: Option<String>,
    /// The last recorded running total.
    total: Option<String>,
    met_head: bool,
}

impl CodexFactsReader<'_> {
    fn line(&mut self, index: usize, number: usize, json: &SharedText, facts: &mut LogFacts) {
        while self.said < self.trace.messages() && self.is_said_by(index) {
            self.said += 1;
        }
        let line = RawJson(json.as_str());
        let at_ms = time_of(line);
        facts.started_ms = facts.started_ms.or(at_ms);
        let kind = text(line, "type");
        let Some(payload) = line.get("payload") else {
            // Old logs start with a line that has the members of the head and no type.
            if kind.is_none() && !self.met_head && line.get("instructions").is_some() {
                self.head(line, facts);
            }
            return;
        };
        match kind.as_deref() {
            Some("session_meta") if !self.met_head => self.head(payload, facts),
            Some("turn_context") => {
                self.model = text(payload, "model").or(self.model.take());
                facts.folder = facts.folder.take().or_else(|| text(payload, "cwd"));
            }
            Some("compacted") => facts.compactions.extend(self.compaction(index, at_ms)),
            Some("event_msg") => match text(payload, "type").as_deref() {
                Some("token_count") => facts.calls.extend(self.call(number, json, payload, at_ms)),
                Some("thread_name_updated") => {
                    facts.title = text(payload, "thread_name").or(facts.title.take());
                }
                _ => {}
            },
            _ => {}
        }
    }

    /// Whether the next message is on this line or an earlier one.
    fn is_said_by(&self, index: usize) -> bool {
        self.trace.sources_of(self.said).first().is_some_and(|source| *source as usize <= index)
    }

    /// Reads a head. The first one is the session's own; a fork repeats that of its origin.
    fn head(&mut self, head: RawJson<'_>, facts: &mut LogFacts) {
        self.met_head = true;
        facts.session = text(head, "id");
        facts.folder = text(head, "cwd");
        facts.provider = text(head, "model_provider");
        facts.started_ms = time_of(head).or(facts.started_ms);
        facts.git_branch = head.get("git").and_then(|git| text(git, "branch"));
        facts.copied_from = text(head, "forked_from_id");
        let spawn =
            ["source", "subagent", "thread_spawn"].into_iter().try_fold(head, |value, name| value.get(name));
        facts.parent_session = spawn.and_then(|spawn| text(spawn, "parent_thread_id"));
    }

    fn compaction(&self, index: usize, at_ms: Option<i64>) -> Option<LogCompaction> {
        let (_, line) = self.trace.lines().get(index)?;
        let (summary, messages) = codex_log::compacted_view(line)?;
        Some(LogCompaction { message: self.said, at_ms, view: NewView::Messages { messages, summary } })
    }

    fn call(
        &mut self,
        number: usize,
        line: &SharedText,
        payload: RawJson<'_>,
        at_ms: Option<i64>,
    ) -> Option<LogCall> {
        let info = payload.get("info")?;
        let usage = info.get("last_token_usage").filter(|usage| usage.0.starts_with('{'))?;
        let total = info.get("total_token_usage").filter(|total| total.0.starts_with('{'));
        let key = match total {
            Some(total) => {
                if self.total.as_deref() == Some(total.0) {
                    return None;
                }
                self.total = Some(total.0.to_owned());
                let sum = total.get("total_tokens").map_or(total.0, |sum| sum.0);
                format!("total-{sum}")
            }
            None => format!("line-{number}"),
        };
        let start = usage.0.as_ptr() as usize - line.as_str().as_ptr() as usize;
        Some(LogCall {
            key,
            model: self.model.clone(),
            usage: line.slice(start..start + usage.0.len()),
            at_ms,
            message: self.said.checked_sub(1),
            output_unfinished: false,
        })
    }
}

fn message_facts(trace: &LogTrace, message: usize) -> MessageFacts {
    let Some((number, json)) =
        trace.sources_of(message).first().and_then(|&source| trace.lines().get(source as usize))
    else {
        return MessageFacts::default();
    };
    let line = RawJson(json.as_str());
    MessageFacts {
        at_ms: time_of(line),
        id: line.get("payload").and_then(|item| text(item, "id")),
        line: *number,
    }
}

fn time_of(value: RawJson<'_>) -> Option<i64> {
    parse_rfc3339_millis(&value.get("timestamp")?.as_text()?)
}

fn text(value: RawJson<'_>, name: &str) -> Option<String> {
    value.get(name)?.as_text().map(|text| text.into_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
#[path = "codex_facts_tests.rs"]
mod tests;
