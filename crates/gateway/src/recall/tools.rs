//! Adds the definitions of the recall tools to a request.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;

use throughline_engine::{DeferredTools, ToolAnswer, ToolRequest, ToolSchema};
use throughline_store::Owner;
use throughline_transcript::{Message, RawJson, WireFormat};
use throughline_wire::{Request, RequestError};

/// An answer on its way.
pub type RecallFuture<'a> = Pin<Box<dyn Future<Output = ToolAnswer> + Send + 'a>>;

/// Tools with which a model looks up compacted messages and shortened results.
pub trait RecallTools: Send + Sync {
    /// What they are called with. Always the same bytes: they are part of every prompt.
    fn schemas(&self) -> &[ToolSchema];

    /// Runs a tool for an owner. The answer always says what was found, or what is wrong with the arguments.
    fn call<'a>(&'a self, owner: &'a Owner, call: &'a ToolRequest) -> RecallFuture<'a>;
}

/// To which requests the tools are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecallOffer {
    /// No request is given the tools.
    Nobody,
    /// Conversations whose requests bring tools of their own, and those the gateway keeps itself.
    Agents,
}

/// Recall as it is configured.
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
    /// Tools that are offered to some; a model may use them in so many rounds before it answers, and read so many tokens.
    #[must_use]
    pub fn new(tools: Arc<dyn RecallTools>, offer: RecallOffer, rounds: usize, tokens: u64) -> Self {
        let own = tools.schemas().iter().map(|schema| schema.name.clone());
        let names = RecallNames(own.chain([DeferredTools::FIND.to_owned()]).collect());
        Self { tools, names, offer, rounds, tokens, reading: String::new() }
    }

    /// With words for the model on how it reads what was left out of a result; `{artifact}` in them is its name.
    #[must_use]
    pub fn with_reading(self, reading: impl Into<String>) -> Self {
        Self { reading: reading.into(), ..self }
    }

    /// The same for a request whose client may have a tool that is called like the one that brings tools back.
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

    /// The tools alone, as a wire wants them.
    pub(crate) fn tools_json(&self, wire: WireFormat) -> String {
        ToolSchema::list_json(wire, self.tools.schemas())
    }
}

/// What the tools are called.
#[derive(Clone, Debug)]
pub(crate) struct RecallNames(Arc<[String]>);

impl RecallNames {
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|own| own == name)
    }

    pub(crate) fn all(&self) -> &[String] {
        &self.0
    }

    /// No names.
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

    /// Whether a request has a tool of one of these names already, which then is its client's.
    pub(crate) fn is_taken(&self, request: &Request) -> bool {
        let Some(tools) = request.tools() else { return false };
        tools.elements().filter_map(name_of).any(|name| self.has(&name))
    }
}

fn name_of(tool: RawJson<'_>) -> Option<String> {
    let name = tool.get("name").or_else(|| tool.get("function")?.get("name"))?;
    Some(name.as_text()?.into_owned())
}

/// Puts the tools behind those of a request, if they are offered and for it: it brings tools of its own, none by the same name, and
/// wants one answer; or its conversation has calls of them already, which providers do not take without the tools. Says
/// whether it did.
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
