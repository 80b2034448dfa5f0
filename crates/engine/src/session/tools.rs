//! Tool definitions by need: which ones are in the prompt of the next call, and how deferred ones are loaded.
//!
//! The decision is stored as the list that was sent, which is in the record, so that another process continues with the same bytes. It is
//! made again when the prefix is rewritten anyway: in the first call, after the provider's cache has expired, and when the client changed
//! its tools.
//!
//! Not for: the arithmetic (`decide::tools`) and the form of lists (`prompt::tool_list`).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use throughline_tokens::{ContentProfile, TextProfile, ToolDeferral};
use throughline_transcript::{Message, Role, WireFormat};
use throughline_wire::{Request, RequestError};

use super::ManagedSession;
use crate::decide::tools::{PromptFigures, ToolFigures};
use crate::prompt::tool_list::{FIND_TOOLS, ListedTool, ToolList, found};

/// Tools that are deferred in the last request.
#[derive(Clone, Debug)]
pub struct DeferredTools {
    left: Vec<ListedTool>,
    deferral: ToolDeferral,
}

impl DeferredTools {
    /// The name of the tool that loads deferred tools.
    pub const FIND: &str = FIND_TOOLS;

    /// Returns the tools that a call of [`Self::FIND`] with these arguments loads; empty if none matches.
    #[must_use]
    pub fn found(&self, arguments: &Value) -> Vec<String> {
        found(&self.left, arguments)
    }

    /// Returns the text of the result of such a call.
    #[must_use]
    pub fn text(&self, found: &[String]) -> String {
        if found.is_empty() {
            return "No tool fits. Say what is needed in other words, or name a tool of the catalogue."
                .to_owned();
        }
        format!("These tools can be called now: {}", found.join(", "))
    }

    /// Returns the content of the result: references by which the provider loads the definitions, if it supports that.
    #[must_use]
    pub fn content(&self, found: &[String]) -> Value {
        if self.deferral != ToolDeferral::ByReference || found.is_empty() {
            return Value::from(self.text(found));
        }
        found.iter().map(|name| json!({ "type": "tool_reference", "tool_name": name })).collect()
    }

    /// Returns the message with the result of such a call.
    #[must_use]
    pub fn result_json(&self, wire_format: WireFormat, call_id: &str, found: &[String]) -> String {
        let content = self.content(found);
        let value = match wire_format {
            WireFormat::Anthropic => json!({
                "role": "user",
                "content": [{ "type": "tool_result", "tool_use_id": call_id, "content": content }],
            }),
            WireFormat::Chat => {
                json!({ "role": "tool", "tool_call_id": call_id, "content": content })
            }
            WireFormat::Responses => {
                json!({ "type": "function_call_output", "call_id": call_id, "output": content })
            }
        };
        value.to_string()
    }

    /// Returns how deferred tools are loaded.
    #[must_use]
    pub fn deferral(&self) -> ToolDeferral {
        self.deferral
    }

    /// Whether a tool is deferred.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.left.iter().any(|tool| tool.name == name)
    }
}

impl ManagedSession {
    /// Removes the definitions from the next request that are not worth their cost; `own` are our tools in it, which stay. `None` if the
    /// list does not change.
    pub fn defer_tools(
        &mut self,
        request: &mut Request,
        own: &[String],
    ) -> Result<Option<DeferredTools>, RequestError> {
        let deferral = self.setup.target.policy.economy.tools;
        if deferral == ToolDeferral::Off || !self.can_decide_in_money() {
            return Ok(None);
        }
        let Some(list) = self.tool_list(request, own) else { return Ok(None) };
        let left = match self.left_before(&list, deferral) {
            Some(left) if !self.is_cache_cold() => left,
            // An unchanged list stays unchanged while the provider has it cached.
            None if self.is_prefix_warm(request) => return Ok(None),
            _ => self.leaving(request, &list, deferral),
        };
        self.economy.brought_back.clear();
        if left.is_empty() {
            return Ok(None);
        }
        request.set_member("tools", &list.without(&left, deferral))?;
        Ok(Some(DeferredTools { left: list.only(&left), deferral }))
    }

    /// Returns the tools deferred in the last request, for answering calls of [`DeferredTools::FIND`].
    #[must_use]
    pub fn deferred_tools(&self, request: &Request, own: &[String]) -> Option<DeferredTools> {
        let deferral = self.setup.target.policy.economy.tools;
        let list = self.tool_list(request, own)?;
        let sent = self.prompt.envelope.envelope()?.request().tools()?;
        let left = list.missing_in(sent.0)?;
        Some(DeferredTools { left: list.only(&left), deferral })
    }

    /// Adds these tools to the list of the next request.
    pub fn bring_back(&mut self, names: impl IntoIterator<Item = String>) {
        if self.setup.target.policy.economy.tools == ToolDeferral::ByList {
            self.economy.brought_back.extend(names);
        }
    }

    fn tool_list(&self, request: &Request, own: &[String]) -> Option<ToolList> {
        ToolList::of(request, &self.prompt.view.session().origin.program, own)
    }

    /// Returns the tools deferred in the last request, if it was made from the same tools, without those loaded since.
    fn left_before(&self, list: &ToolList, deferral: ToolDeferral) -> Option<BTreeSet<String>> {
        self.prompt.last_call_ms?;
        let sent = self.prompt.envelope.envelope()?.request().tools()?;
        let left = list.left_in(sent.0, deferral)?;
        let back = &self.economy.brought_back;
        Some(left.into_iter().filter(|name| !back.contains(name)).collect())
    }

    /// Whether the provider has a cached prompt that starts with these tools.
    fn is_prefix_warm(&self, request: &Request) -> bool {
        let sent = self.prompt.envelope.envelope().and_then(|envelope| envelope.request().tools());
        self.prompt.last_call_ms.is_some()
            && !self.is_cache_cold()
            && sent.is_some_and(|sent| request.tools().is_some_and(|tools| tools.0 == sent.0))
    }

    /// Returns which tools to defer in a prefix that is rewritten.
    fn leaving(&self, request: &Request, list: &ToolList, deferral: ToolDeferral) -> BTreeSet<String> {
        let view = &self.prompt.view;
        let (used, answers) = last_uses(view.messages());
        let size = |json: &str| view.estimate_profile(&ContentProfile::of_tools(&format!("[{json}]")));
        let candidates: Vec<(&ListedTool, u64)> =
            list.tools.iter().filter(|tool| tool.may_leave).map(|tool| (tool, size(&tool.json))).collect();
        let staying =
            list.tools.iter().filter(|tool| !tool.may_leave).map(|tool| size(&tool.json)).sum::<u64>();
        let messages = match view.sizes() {
            sizes if sizes.is_empty() => request.messages().iter().map(ContentProfile::of_message).sum(),
            _ => ContentProfile::default(),
        };
        let system = request.system().map(|system| ContentProfile::of_system(system.0)).unwrap_or_default();
        let rest = view.estimate_profile(&(messages + system)) + view.sizes().iter().sum::<u64>();
        let calls = self.economy.calls().max(answers);
        let prompt = PromptFigures {
            prices: self.budget.model.prices,
            prompt_tokens: staying.saturating_add(rest),
            calls,
            expected_calls: self.economy.expected_calls(calls),
            candidates: candidates.len() as u64,
            deferral,
        };
        let figures = |tool: &ListedTool, tokens: u64| ToolFigures {
            tokens,
            line_tokens: view.estimate_profile(&named(&tool.name)),
            unused_for: used.get(&tool.name).map(|at| answers.saturating_sub(*at)),
        };
        let leaving = candidates.iter().filter(|(tool, tokens)| prompt.drops(&figures(tool, *tokens)));
        leaving.map(|(tool, _)| tool.name.clone()).collect()
    }
}

/// Returns the content profile of a name.
fn named(name: &str) -> ContentProfile {
    ContentProfile { text: TextProfile::of(name), ..ContentProfile::default() }
}

/// Returns the number of the answer in which each tool was last called, and the number of answers.
fn last_uses(messages: &[Message]) -> (BTreeMap<String, u64>, u64) {
    let (mut used, mut answers, mut was_answer) = (BTreeMap::new(), 0, false);
    for message in messages {
        let is_answer = message.role() == Role::Assistant;
        answers += u64::from(is_answer && !was_answer);
        was_answer = is_answer;
        for (_, name, _) in message.calls() {
            used.insert(message.str(name).into_owned(), answers);
        }
    }
    (used, answers)
}
