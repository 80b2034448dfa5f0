//! Converts a reply to a status, headers and pieces of a body.

use bytes::Bytes;
use throughline_provider::{MarkComplaint, PricedPrompt};
use throughline_tokens::{Catalogue, TextProfile, TokenModel};
use throughline_transcript::WireFormat;
use throughline_wire::{
    AnswerDraft, AnswerPart, ErrorBody, ReportedUsage, Request, StreamUsage, Streaming, WireEvent,
};

use super::recorded::RecordedRequest;
use super::reply::{Content, Fault, Form, Pace, Reply};
use super::{Shared, locked};

/// An action on the connection, in order.
#[derive(Debug)]
pub(super) enum Act {
    Send(Bytes),
    Pause(std::time::Duration),
    Fault(Fault),
}

/// A rendered reply.
#[derive(Debug)]
pub(super) struct Played {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    /// The faults before the status.
    pub(super) before: Vec<Fault>,
    pub(super) acts: Vec<Act>,
    /// The length of the body; `None` for a stream.
    pub(super) length: Option<u64>,
    /// The prompt that is added to the cache once the answer begins.
    pub(super) prompt: Option<PricedPrompt>,
}

impl Shared {
    /// Renders the reply to a recorded request.
    pub(super) fn play(&self, request: &RecordedRequest) -> Played {
        let page = self.pages.iter().find(|(path, _)| *path == request.path).map(|(_, reply)| reply.clone());
        if let Some(reply) = page.or_else(|| self.about_models(request)) {
            return rendered(&reply, WireFormat::Chat, None, None);
        }
        if request.path.ends_with("/messages/count_tokens") {
            return self.count(request);
        }
        let Some(wire_format) = request.wire_format() else {
            let is_probe = request.method == "HEAD" || request.path == "/";
            let reply =
                if is_probe { Reply::empty(200) } else { Reply::error(404, "not_found_error", "not found") };
            return rendered(&reply, WireFormat::Chat, None, None);
        };
        let Ok(envelope) = Request::decode(wire_format, &request.body) else {
            let reply = locked(&self.scripts).next(request);
            return rendered(&reply, wire_format, None, None);
        };
        match self.price(&envelope) {
            Err(complaint) => {
                let reply = Reply::error(400, "invalid_request_error", &complaint.to_string());
                rendered(&reply, wire_format, Some(&envelope), None)
            }
            Ok((size, prompt)) => {
                let model = envelope.model().unwrap_or_default();
                let refusal = self.refusal_of_size(wire_format, &model, size, envelope.output_cap_tokens());
                let reply = refusal.unwrap_or_else(|| locked(&self.scripts).next(request));
                let mut reply = named(reply, &envelope, request.order);
                if let Some(prompt) = &prompt {
                    report(&mut reply, prompt, &model, wire_format);
                }
                rendered(&reply, wire_format, Some(&envelope), prompt)
            }
        }
    }

    /// The size of a prompt, and its price with the cache, if there is one.
    fn price(&self, request: &Request) -> Result<(u64, Option<PricedPrompt>), MarkComplaint> {
        match locked(&self.cache).as_mut() {
            Some(cache) => {
                let prompt = cache.ask(request, self.clock.now_ms())?;
                Ok((prompt.tokens(), Some(prompt)))
            }
            None => Ok((locked(&self.counter).ask(request, self.clock.now_ms())?.tokens(), None)),
        }
    }

    /// Answers a request for a token count.
    fn count(&self, request: &RecordedRequest) -> Played {
        let counted = Request::decode(WireFormat::Anthropic, &request.body)
            .ok()
            .and_then(|request| self.price(&request).ok());
        let reply = match counted {
            Some((tokens, _)) => Reply::json(200, format!("{{\"input_tokens\":{tokens}}}")),
            None => Reply::error(400, "invalid_request_error", "messages: field required"),
        };
        rendered(&reply, WireFormat::Anthropic, None, None)
    }
}

/// Sets the requested model and an id in a reply.
fn named(mut reply: Reply, request: &Request, order: usize) -> Reply {
    if let Content::Answer(draft) = &mut reply.content {
        draft.id = format!("answer_{order}");
        if let Some(model) = request.model() {
            draft.model = model.into_owned();
        }
    }
    reply
}

/// Adds usage to an answer that reports it.
fn report(reply: &mut Reply, prompt: &PricedPrompt, model: &str, wire_format: WireFormat) {
    if let Content::Answer(draft) = &mut reply.content
        && draft.usage.is_some()
    {
        let mut reported: ReportedUsage = prompt.reported;
        (reported.usage.output, reported.usage.reasoning) = output_tokens(draft, model, wire_format);
        draft.usage = Some(reported);
    }
}

/// The estimated tokens of an answer, and the reasoning tokens among them.
fn output_tokens(draft: &AnswerDraft, model: &str, wire_format: WireFormat) -> (u64, u64) {
    let token_model = TokenModel::of(Catalogue::shipped_facts(model).family_on(wire_format));
    let size = |text: &str| token_model.estimate(&TextProfile::of(text));
    let (mut all, mut reasoning) = (0, 0);
    for part in &draft.parts {
        all += match part {
            AnswerPart::Text(text) | AnswerPart::Refusal(text) => size(text),
            AnswerPart::ToolCall(call) => size(&call.name) + size(&call.arguments),
            AnswerPart::Other { json, .. } => size(json),
            AnswerPart::Reasoning { text, .. } => {
                let tokens = size(text);
                reasoning += tokens;
                tokens
            }
        };
    }
    (all, reasoning)
}

/// Renders a reply as status, headers and pieces.
fn rendered(
    reply: &Reply,
    wire_format: WireFormat,
    request: Option<&Request>,
    prompt: Option<PricedPrompt>,
) -> Played {
    let is_streamed = match reply.form {
        Form::Streamed => true,
        Form::Whole => false,
        Form::AsAsked => request.is_some_and(|request| request.streaming() == Streaming::Streamed),
    };
    let (status, kind, pieces, length) = match &reply.content {
        Content::Answer(draft) | Content::Exact(draft) if is_streamed => {
            let mut shape = reply.shape;
            if wire_format == WireFormat::Chat
                && request.is_some_and(|request| !request.asks_for_stream_usage())
            {
                shape.usage = StreamUsage::Omitted;
            }
            let events = draft.to_stream(wire_format, &shape);
            let pieces: Vec<Bytes> = events.iter().map(WireEvent::to_bytes).map(Bytes::from).collect();
            (200, "text/event-stream; charset=utf-8", pieces, None)
        }
        Content::Answer(draft) | Content::Exact(draft) => {
            whole(200, "application/json", draft.to_response(wire_format))
        }
        Content::Error(status, error) => whole(*status, "application/json", error.to_json(wire_format)),
        Content::Raw { status, kind, body } => whole(*status, kind, body.clone()),
    };
    let began = (200..300).contains(&status);
    let mut headers = vec![("content-type".to_owned(), kind.to_owned())];
    headers.retain(|(name, _)| !reply.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name)));
    headers.extend(reply.headers.iter().cloned());
    let (before, acts) = acts(reply, wire_format, pieces);
    Played { status, headers, before, acts, length, prompt: prompt.filter(|_| began) }
}

fn whole(status: u16, kind: &str, body: impl Into<Bytes>) -> (u16, &str, Vec<Bytes>, Option<u64>) {
    let mut body: Bytes = body.into();
    let length = body.len() as u64;
    let second = body.split_off(body.len() / 2);
    (status, kind, vec![body, second], Some(length))
}

/// The faults before the status, and the actions after it.
fn acts(reply: &Reply, wire_format: WireFormat, pieces: Vec<Bytes>) -> (Vec<Fault>, Vec<Act>) {
    let mut faults = reply.faults.iter().peekable();
    let mut before = Vec::new();
    while let Some((_, fault)) = faults.next_if(|(after, _)| *after == 0) {
        before.push(fault.clone());
    }
    let mut acts = Vec::new();
    for (index, piece) in pieces.into_iter().enumerate() {
        match reply.pace {
            Pace::Pieces => acts.push(Act::Send(piece)),
            Pace::Drip { bytes, pause } => {
                for drop in piece.chunks(bytes.max(1)) {
                    acts.push(Act::Send(Bytes::copy_from_slice(drop)));
                    acts.push(Act::Pause(pause));
                }
            }
        }
        while let Some((_, fault)) = faults.next_if(|(after, _)| *after == index + 1) {
            acts.push(act_of(fault, wire_format, index + 1));
        }
    }
    acts.extend(faults.map(|(after, fault)| act_of(fault, wire_format, *after)));
    (before, acts)
}

fn act_of(fault: &Fault, wire_format: WireFormat, events_before: usize) -> Act {
    match fault {
        Fault::Garbage(bytes) => Act::Send(Bytes::copy_from_slice(bytes)),
        Fault::ErrorEvent(error) => Act::Send(error_event(wire_format, error, events_before)),
        other => Act::Fault(other.clone()),
    }
}

fn error_event(wire_format: WireFormat, error: &ErrorBody, events_before: usize) -> Bytes {
    Bytes::from(error.to_event(wire_format, events_before as u64).to_bytes())
}
