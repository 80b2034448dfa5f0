//! Sends the answer of a managed call to the client.
//!
//! Pieces are sent as they arrive, in whole events. The end waits until the answer is in the record. A stream that breaks
//! off ends with an error event of its wire format.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use hyper::header::CONTENT_LENGTH;
use hyper::{Response, StatusCode};
use throughline_engine::{AnswerPiece, CallOutcome, SessionError};
use throughline_provider::{Chunk, HoldLimits, Refusal};
use throughline_store::SessionId;
use throughline_transcript::{RawJson, WireFormat};
use throughline_wire::{Delta, Streaming};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::DropGuard;

use crate::error::GatewayError;
use crate::http::inbound::put_headers;
use crate::http::response_body::ResponseBody;
use crate::proxy::end_buffer::EndBuffer;
use crate::proxy::whole_events::WholeEvents;
use crate::telemetry::event::{AnswerEnd, GatewayEvent, ServedRequest};
use crate::telemetry::request_context::in_request_context;
use crate::tenant::Tenant;

/// The result of a managed call.
pub(crate) type CallResult = Result<CallOutcome, SessionError>;

/// The data for the event that reports the end of a response.
pub(crate) struct ServedLog {
    pub(crate) gateway: Arc<Tenant>,
    pub(crate) began: Instant,
    pub(crate) wire: WireFormat,
    pub(crate) model: String,
    pub(crate) session: SessionId,
    /// The upstream, if it stores the answer for this tenant.
    pub(crate) objects_at: Option<String>,
}

impl ServedLog {
    /// Records the owner of an answer that the provider stores, before the client learns its id.
    async fn record_object_owner(&self, chunk: &Chunk) {
        let Some(place) = &self.objects_at else { return };
        let started = chunk.deltas.iter().filter_map(|delta| match delta {
            Delta::Started { id, .. } => id.clone(),
            _ => None,
        });
        let mut ids: Vec<String> = started.collect();
        if chunk.raw.starts_with(b"{") {
            let id = std::str::from_utf8(&chunk.raw).ok().and_then(|json| RawJson(json).get("id")?.as_text());
            ids.extend(id.map(|id| id.into_owned()));
        }
        self.gateway.note_created(place, ids).await;
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn tell(self, status: StatusCode, head_ms: u64, end: AnswerEnd) {
        let whole_ms = self.elapsed_ms();
        let Self { gateway, wire, model, session, .. } = self;
        let (status, session) = (status.as_u16(), Some(session));
        gateway.tell(GatewayEvent::Served(ServedRequest {
            wire,
            model,
            session,
            status,
            head_ms,
            whole_ms,
            end,
        }));
    }
}

/// The answer of a managed call on its way to the client.
pub(crate) struct ResponseStream {
    pub(crate) log: ServedLog,
    pub(crate) streaming: Streaming,
    pub(crate) waiting: mpsc::Receiver<AnswerPiece>,
    /// Completes when the answer has been recorded.
    pub(crate) recorded: oneshot::Receiver<()>,
    pub(crate) end: oneshot::Receiver<CallResult>,
    /// Cancels the call if the client disconnects.
    pub(crate) guard: DropGuard,
}

impl ResponseStream {
    /// Returns the head of the response, with a streamed body.
    pub(crate) async fn respond(mut self) -> Response<ResponseBody> {
        let Some(AnswerPiece::Begun { status, headers }) = self.waiting.recv().await else {
            return self.refuse().await;
        };
        let (sender, body) = ResponseBody::pieces();
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
        put_headers(&mut response, &headers);
        if self.streaming == Streaming::Streamed {
            // Events may be added or left out, which changes the length.
            response.headers_mut().remove(CONTENT_LENGTH);
        }
        let (status, head_ms) = (response.status(), self.log.elapsed_ms());
        let length =
            response.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        tokio::spawn(in_request_context(async move {
            let (log, end) = self.forward(sender, length).await;
            log.tell(status, head_ms, end);
        }));
        response
    }

    /// Responds to a call that returned no answer.
    async fn refuse(self) -> Response<ResponseBody> {
        let response = refused(&self.log.gateway, self.log.wire, self.end.await);
        let head_ms = self.log.elapsed_ms();
        self.log.tell(response.status(), head_ms, AnswerEnd::Whole);
        response
    }

    /// Sends pieces as they arrive, except for the end, which waits until the answer is recorded. A stream that breaks off ends with an
    /// error event of its wire format.
    async fn forward(self, sender: mpsc::Sender<Bytes>, length: Option<usize>) -> (ServedLog, AnswerEnd) {
        let Self { log, streaming, mut waiting, mut recorded, end, guard } = self;
        let (mut next_number, mut sent) = (0, 0);
        let mut whole = WholeEvents::default();
        // Whether the final event of the stream has arrived.
        let mut has_ended = false;
        let mut held = EndBuffer::new(log.wire, streaming);
        // Whether the client waits for the end of the answer, and whether this task waits for the record.
        let (mut waits_for_end, mut waits_for_record) = (true, true);
        loop {
            let piece = tokio::select! {
                biased;
                // If everything has been sent, a closed channel does not mean that the client disconnected.
                () = sender.closed(), if waits_for_end && length != Some(sent) => return (log, AnswerEnd::Abandoned),
                piece = waiting.recv() => piece,
                is_recorded = &mut recorded, if waits_for_record => {
                    waits_for_record = false;
                    if is_recorded.is_ok() {
                        // All pieces have been taken: they arrive before the answer is complete.
                        log.gateway.note_commit_wait(held.since());
                        let rest = held.release(whole.take_rest());
                        sent += rest.len();
                        waits_for_end = false;
                        let _ = sender.send(rest).await;
                    }
                    continue;
                }
            };
            match piece {
                None => break,
                Some(AnswerPiece::Begun { .. }) => {}
                Some(AnswerPiece::Chunk(chunk)) => {
                    log.record_object_owner(&chunk).await;
                    let raw = match streaming {
                        Streaming::Streamed => whole.take(chunk.raw),
                        Streaming::Whole => chunk.raw,
                    };
                    if log.wire == WireFormat::Responses {
                        next_number = number_after(&raw).unwrap_or(next_number);
                    }
                    has_ended |= streaming == Streaming::Streamed && ends_stream(log.wire, &raw);
                    let raw = held.take(raw);
                    sent += raw.len();
                    if !raw.is_empty() && sender.send(raw).await.is_err() {
                        return (log, AnswerEnd::Abandoned);
                    }
                }
            }
        }
        let ended = end.await;
        let _ = guard.disarm();
        let Ok(Err(error)) = ended else {
            let rest = held.release(whole.take_rest());
            if !rest.is_empty() {
                let _ = sender.send(rest).await;
            }
            return (log, AnswerEnd::Whole);
        };
        if has_ended || was_passed_on(&error) {
            // The client has the complete answer; the error is reported to the operator only.
            let _ = log.gateway.call_failed(&error);
            let rest = held.release(whole.take_rest());
            if !rest.is_empty() {
                let _ = sender.send(rest).await;
            }
            return (log, AnswerEnd::Whole);
        }
        if streaming == Streaming::Streamed {
            // The provider's own error may follow an event that looked final. It prevents the client from taking the answer for complete,
            // so nothing needs to be held back any longer.
            let held_back = held.release(Bytes::new());
            if !held_back.is_empty() {
                let _ = sender.send(held_back).await;
            }
            let refused = log.gateway.call_failed(&error);
            let event = refused.error_body().to_event(log.wire, next_number);
            let _ = sender.send(Bytes::from(event.to_bytes())).await;
        }
        (log, AnswerEnd::BrokenOff)
    }
}

/// Whether an answer was forwarded completely although it was too long to be parsed.
fn was_passed_on(error: &SessionError) -> bool {
    matches!(error, SessionError::Exhausted(gave_up) if gave_up.trouble.code.as_deref() == Some(HoldLimits::EXCEEDED))
}

/// Whether whole events of a stream include the final one. A model's text cannot look like it, because JSON strings contain no line
/// breaks.
fn ends_stream(wire: WireFormat, events: &[u8]) -> bool {
    let ends: &[&[u8]] = match wire {
        WireFormat::Chat => &[b"data: [DONE]", b"data:[DONE]"],
        WireFormat::Responses => {
            &[b"event: response.completed", b"event: response.incomplete", b"event: response.failed"]
        }
        WireFormat::Anthropic => &[b"event: message_stop"],
    };
    let mut lines = events.split(|byte| matches!(byte, b'\n' | b'\r'));
    lines.any(|line| ends.contains(&line.trim_ascii_end()))
}

/// The number after the last sequence number in a piece of a stream.
fn number_after(piece: &[u8]) -> Option<u64> {
    const NAME: &[u8] = b"\"sequence_number\":";
    let after = memchr::memmem::rfind(piece, NAME)? + NAME.len();
    let digits = piece.get(after..)?.trim_ascii_start();
    let end = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    let number: u64 = std::str::from_utf8(digits.get(..end)?).ok()?.parse().ok()?;
    number.checked_add(1)
}

/// The response to a call that returned no answer.
fn refused(
    gateway: &Tenant,
    wire: WireFormat,
    ended: Result<CallResult, oneshot::error::RecvError>,
) -> Response<ResponseBody> {
    let error = match ended {
        Ok(Err(error)) => error,
        Ok(Ok(_)) | Err(_) => return GatewayError::internal().respond(wire),
    };
    match &error {
        // No recovery was attempted: the client receives the provider's own error.
        SessionError::Exhausted(gave_up) if gave_up.tried.is_empty() && gave_up.refusal.is_some() => {
            let refusal = gave_up.refusal.as_deref();
            refusal.map_or_else(|| gateway.call_failed(&error).respond(wire), passed_on)
        }
        _ => gateway.call_failed(&error).respond(wire),
    }
}

/// Returns a provider's error response unchanged.
fn passed_on(refusal: &Refusal) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::whole(refusal.body.clone()));
    *response.status_mut() = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::BAD_GATEWAY);
    put_headers(&mut response, &refusal.headers);
    response
}
