//! Adds the definitions of the recall tools to a request.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;

use throughline_engine::{DeferredTools, ToolAnswer, ToolRequest, ToolSchema};
use throughline_store::Owner;
use throughline_transcript::{Message, RawJson, WireFormat};
use throughline_wire::{Request, RequestError};

/// The future of a recall result.
pub type RecallFuture<'a> = Pin<Box<dyn Future<Output = ToolAnswer> + Send + 'a>>;

/// Tools with which a model looks up compacted messages and shortened results.
pub trait RecallTools: Send + Sync {
    /// The definitions of the tools. They must always have the same bytes, because they are part of every prompt.
    fn schemas(&self) -> &[ToolSchema];

    /// Runs a tool for an owner. The result always states what was found, or what is wrong with the arguments.
    fn call<'a>(&'a self, owner: &'a Owner, call: &'a ToolRequest) -> RecallFuture<'a>;
}

/// The requests to which the tools are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecallOffer {
    /// None.
    Nobody,
    /// Requests with tools of their own, and conversations whose history the gateway keeps itself.
    Agents,
}

/// The configuration of recall.
#[derive(Clone)]
pub struct RecallConfig {
    tools: Arc<dyn RecallTools>,
    names: RecallNames,
    offer: RecallOffer,
    rounds: usize,
    tokens: u64,
    reading: String,
}

impl RecallConfig {
    /// Creates the configuration. In one turn, a model may use the tools in `rounds` rounds and read `tokens` tokens of results.
    #[must_use]
    pub fn new(tools: Arc<dyn RecallTools>, offer: RecallOffer, rounds: usize, tokens: u64) -> Self {
        let own = tools.schemas().iter().map(|schema| schema.name.clone());
        let names = RecallNames(own.chain([DeferredTools::FIND.to_owned()]).collect());
        Self { tools, names, offer, rounds, tokens, reading: String::new() }
    }

    /// Sets the text that tells the model how to read the omitted part of a result; `{artifact}` in it is replaced by the artifact's
    /// name.
    #[must_use]
    pub fn with_reading(self, reading: impl Into<String>) -> Self {
        Self { reading: reading.into(), ..self }
    }

    /// Returns the configuration for a request. If the client has a tool named like the one that loads deferred tools, that name is left
    /// out.
    pub(crate) fn for_request(&self, request: &Request) -> Cow<'_, Self> {
        let has_own = request.tools().is_some_and(|tools| {
            tools.elements().filter_map(name_of).any(|name| name == DeferredTools::FIND)
        });
        if !has_own {
            return Cow::Borrowed(self);
        }
        let names = self.names.0.iter().filter(|name| *name != DeferredTools::FIND);
        Cow::Owned(Self { names: RecallNames(names.cloned().collect()), ..self.clone() })
    }

    pub(crate) fn reading(&self) -> &str {
        &self.reading
    }

    pub(crate) fn tools(&self) -> &dyn RecallTools {
        self.tools.as_ref()
    }

    pub(crate) fn names(&self) -> &RecallNames {
        &self.names
    }

    pub(crate) fn offer(&self) -> RecallOffer {
        self.offer
    }

    pub(crate) fn is_offered(&self) -> bool {
        self.offer != RecallOffer::Nobody
    }

    pub(crate) fn rounds(&self) -> usize {
        self.rounds
    }

    pub(crate) fn tokens(&self) -> u64 {
        self.tokens
    }

    /// The tools as a JSON list in a wire format.
    pub(crate) fn tools_json(&self, wire: WireFormat) -> String {
        ToolSchema::list_json(wire, self.tools.schemas())
    }
}

/// The names of the recall tools.
#[derive(Clone, Debug)]
pub(crate) struct RecallNames(Arc<[String]>);

impl RecallNames {
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|own| own == name)
    }

    pub(crate) fn all(&self) -> &[String] {
        &self.0
    }

    /// Returns an empty set of names.
    pub(crate) fn none() -> Self {
        Self(Arc::new([]))
    }

    /// Whether a message calls one of these tools.
    fn are_called_in(&self, message: &Message) -> bool {
        message.calls().any(|(_, name, _)| self.has(&message.str(name)))
    }

    #[cfg(test)]
    pub(crate) fn of(names: &[&str]) -> Self {
        Self(names.iter().map(|name| (*name).to_owned()).collect())
    }

    /// Whether a request already has a tool with one of these names, which then belongs to the client.
    pub(crate) fn is_taken(&self, request: &Request) -> bool {
        let Some(tools) = request.tools() else { return false };
        tools.elements().filter_map(name_of).any(|name| self.has(&name))
    }
}

fn name_of(tool: RawJson<'_>) -> Option<String> {
    let name = tool.get("name").or_else(|| tool.get("function")?.get("name"))?;
    Some(name.as_text()?.into_owned())
}

/// Appends the tools to those of a request, and returns whether it did. The request must have tools of its own with other names and ask
/// for one answer. A request without tools gets them only if its conversation already has calls of them, because providers refuse such
/// calls without the tools.
pub(crate) fn offered(
    recall: &RecallConfig,
    offer: RecallOffer,
    request: &mut Request,
    view: &[Message],
) -> Result<bool, RequestError> {
    let wants_several = request.member("n").is_some_and(|several| !matches!(several.0, "1" | "1.0" | "null"));
    if offer == RecallOffer::Nobody || wants_several || recall.names.is_taken(request) {
        return Ok(false);
    }
    let own = recall.tools_json(request.wire_format());
    let client_messages = request.tools().filter(|tools| tools.elements().next().is_some());
    let client_messages = client_messages.and_then(|tools| tools.0.trim_end().strip_suffix(']'));
    let all = match (client_messages, own.strip_prefix('[')) {
        (Some(client_messages), Some(own)) => format!("{},{own}", client_messages.trim_end()),
        _ if view.iter().any(|message| recall.names.are_called_in(message)) => own,
        _ => return Ok(false),
    };
    request.set_member("tools", &all)?;
    Ok(true)
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;
