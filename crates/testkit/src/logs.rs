//! Generated lists as session logs: what the two clients would have written during that conversation.

use std::fmt::Write as _;

use throughline_transcript::{Message, RawJson, Role, WireFormat};

use crate::list::GeneratedList;
use crate::rng::Rng;

/// A Claude Code log of an Anthropic list: one line per block, results in the order of arrival, and the client's own lines in between.
/// Messages of other roles than user and assistant do not occur in such a log and are left out.
#[must_use]
pub fn claude_code_log(list: &GeneratedList, seed: u64) -> String {
    debug_assert_eq!(list.wire_format, WireFormat::Anthropic);
    let mut log = ClaudeLog { rng: Rng::new(seed), out: String::new(), lines: 0, last: None };
    log.out.push_str("{\"type\":\"summary\",\"summary\":\"An earlier talk\",\"leafUuid\":\"leaf-0\"}\n");
    for (index, message) in list.messages().iter().enumerate() {
        let content = message.content_span().map(|span| message.raw(span)).unwrap_or_default();
        let blocks: Vec<&str> = RawJson(content).elements().map(|block| block.0).collect();
        match message.role() {
            Role::Assistant if blocks.len() > 1 => {
                for block in &blocks {
                    log.event("assistant", index, &format!("[{block}]"));
                }
            }
            Role::Assistant => log.event("assistant", index, content),
            Role::User if message.has_results() && blocks.len() > 1 => log.results(index, message, &blocks),
            Role::User => log.event("user", index, content),
            _ => {}
        }
    }
    log.out
}

struct ClaudeLog {
    rng: Rng,
    out: String,
    lines: usize,
    last: Option<String>,
}

impl ClaudeLog {
    /// Writes one line for each result; the rest of the message goes with the last one.
    fn results(&mut self, index: usize, message: &Message, blocks: &[&str]) {
        let results = message.answered().count();
        for (at, block) in blocks.iter().enumerate().take(results) {
            if at + 1 == results {
                self.event("user", index, &format!("[{}]", blocks.get(at..).unwrap_or_default().join(",")));
            } else {
                self.event("user", index, &format!("[{block}]"));
            }
        }
    }

    fn event(&mut self, kind: &str, message: usize, content: &str) {
        self.noise();
        self.lines += 1;
        let uuid = format!("line-{}", self.lines);
        let parent = self.last.as_ref().map_or_else(|| "null".to_owned(), |last| format!("\"{last}\""));
        let id = if kind == "assistant" {
            format!("\"id\":\"msg_{message}\",\"model\":\"test-model\",")
        } else {
            String::new()
        };
        let line = format!(
            "{{\"parentUuid\":{parent},\"isSidechain\":false,\"sessionId\":\"s\",\"type\":\"{kind}\",\"message\":{{{id}\"role\":\"{kind}\",\"content\":{content}}},\"uuid\":\"{uuid}\"}}"
        );
        self.out.push_str(&line);
        self.out.push('\n');
        if self.rng.chance(3) {
            // A resumed session repeats lines.
            self.out.push_str(&line);
            self.out.push('\n');
        }
        self.last = Some(uuid);
    }

    fn noise(&mut self) {
        let parent = self.last.clone().unwrap_or_default();
        let line = match self.rng.below(24) {
            0 => "{\"type\":\"file-history-snapshot\",\"messageId\":\"m\",\"snapshot\":{}}".to_owned(),
            1 => format!(
                "{{\"type\":\"progress\",\"parentUuid\":\"{parent}\",\"isSidechain\":false,\"data\":{{\"type\":\"hook\"}}}}"
            ),
            2 => format!(
                "{{\"type\":\"user\",\"isSidechain\":true,\"uuid\":\"side-{}\",\"message\":{{\"role\":\"user\",\"content\":\"a sub-agent's task\"}}}}",
                self.lines
            ),
            3 => format!(
                "{{\"type\":\"system\",\"subtype\":\"turn_duration\",\"parentUuid\":\"{parent}\",\"content\":\"took 3 s\"}}"
            ),
            4 => format!(
                "{{\"type\":\"assistant\",\"isApiErrorMessage\":true,\"uuid\":\"error-{}\",\"message\":{{\"role\":\"assistant\",\"model\":\"<synthetic>\",\"content\":[{{\"type\":\"text\",\"text\":\"overloaded\"}}]}}}}",
                self.lines
            ),
            _ => return,
        };
        self.out.push_str(&line);
        self.out.push('\n');
    }
}

/// A Codex rollout log of a Responses list, with the client's own lines in between.
#[must_use]
pub fn codex_log(list: &GeneratedList, seed: u64) -> String {
    debug_assert_eq!(list.wire_format, WireFormat::Responses);
    let mut rng = Rng::new(seed);
    let mut out = String::from(
        "{\"timestamp\":\"2026-03-04T10:00:00Z\",\"type\":\"session_meta\",\"payload\":{\"id\":\"s\",\"instructions\":\"be brief\"}}\n",
    );
    for item in &list.json {
        match rng.below(20) {
            0 => out.push_str("{\"type\":\"event_msg\",\"payload\":{\"type\":\"token_count\",\"info\":null}}\n"),
            1 => out.push_str("{\"type\":\"turn_context\",\"payload\":{\"cwd\":\"/srv/app\",\"model\":\"test-model\"}}\n"),
            2 => out.push_str(
                "{\"type\":\"response_item\",\"payload\":{\"type\":\"ghost_snapshot\",\"ghost_commit\":{\"id\":\"1\"}}}\n",
            ),
            _ => {}
        }
        let _ = writeln!(out, "{{\"type\":\"response_item\",\"payload\":{item}}}");
    }
    out
}
