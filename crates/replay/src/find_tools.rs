//! The prompt before the messages with deferred tools: the definitions in each call, and the calls that load those used by the recorded
//! answer.

use std::collections::BTreeSet;

use throughline_engine::{DeferredTools, Envelope, ManagedSession, SessionError, ToolSchema};
use throughline_tokens::{Economy, ToolDeferral};
use throughline_transcript::{Message, SharedText, WireFormat, compact_json_string, decode_message};
use throughline_wire::{Answer, AnswerDraft, AnswerPart, Request, RequestParts, ToolCall};

/// The part before the messages.
pub(crate) struct ToolPrompt {
    /// As the client sends it, with our tools.
    request: Option<Request>,
    as_sent: Envelope,
    own: Vec<String>,
    deferred: Option<DeferredTools>,
}

impl ToolPrompt {
    pub(crate) fn new(
        wire_format: WireFormat,
        parts: &RequestParts<'_>,
        own: &[ToolSchema],
        economy: Economy,
    ) -> Result<Self, SessionError> {
        let mut request = Request::build(wire_format, parts, Vec::new())?;
        let names = own.iter().map(|schema| schema.name.clone()).collect();
        let tools = request.tools().and_then(|tools| Some(tools.0.trim_end().strip_suffix(']')?.to_owned()));
        let ours = ToolSchema::list_json(wire_format, own);
        let acts = economy.tool_results || economy.tools != ToolDeferral::Off;
        if let (Some(tools), Some(ours), true) = (tools, ours.strip_prefix('['), acts && !own.is_empty()) {
            request.set_member("tools", &format!("{tools},{ours}"))?;
        }
        // A chat request built from parts has its system prompt before its messages, in the envelope.
        let changes = economy.tools != ToolDeferral::Off && wire_format != WireFormat::Chat;
        let as_sent = match wire_format {
            WireFormat::Chat => Envelope::build(wire_format, parts)?,
            _ => Envelope::of_request(request.clone()),
        };
        Ok(Self { request: changes.then_some(request), as_sent, own: names, deferred: None })
    }

    /// Returns the envelope of the next call.
    pub(crate) fn envelope(&mut self, session: &mut ManagedSession) -> Result<Envelope, SessionError> {
        let Some(request) = &self.request else { return Ok(self.as_sent.clone()) };
        let mut request = request.clone();
        self.deferred = session.defer_tools(&mut request, &self.own)?;
        Ok(Envelope::of_request(request))
    }

    /// Returns the call that loads the tools which an answer uses and the prompt does not have, and its result.
    pub(crate) fn needed_for(
        &self,
        answer: &[Message],
        number: usize,
        session: &mut ManagedSession,
    ) -> Option<(Vec<Message>, Vec<Message>)> {
        let deferred = self.deferred.as_ref()?;
        let called = answer.iter().flat_map(|message| message.calls().map(move |call| (message, call)));
        let called: BTreeSet<String> =
            called.map(|(message, (_, name, _))| message.str(name).into_owned()).collect();
        let is_loaded = |name: &String| {
            let reference = format!("\"tool_name\":{}", compact_json_string(name));
            session.messages().iter().any(|message| message.json().contains(&reference))
        };
        let missing: Vec<String> =
            called.into_iter().filter(|name| deferred.has(name) && !is_loaded(name)).collect();
        if missing.is_empty() {
            return None;
        }
        let wire_format = session.wire_format();
        let id = format!("find_{number}");
        let names: Vec<String> = missing.iter().map(|name| compact_json_string(name)).collect();
        let call = ToolCall {
            id: id.clone(),
            name: DeferredTools::FIND.to_owned(),
            arguments: format!("{{\"names\":[{}]}}", names.join(",")),
        };
        let draft = AnswerDraft::of_parts(vec![AnswerPart::ToolCall(call)]);
        let asked = Answer::decode(wire_format, draft.to_response(wire_format).as_bytes()).ok()?.messages;
        let result = deferred.result_json(wire_format, &id, &missing);
        session.bring_back(missing);
        Some((asked, vec![decode_message(SharedText::new(result))?]))
    }
}
