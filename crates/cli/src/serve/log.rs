//! What whoever runs the gateway sees: a line for every request, and what was done about the context.

use std::sync::Arc;

use serde_json::{Value, json};
use throughline_config::LogForm;
use throughline_engine::EngineEvent;
use throughline_gateway::{AnswerEnd, GatewayEvent, GatewayEvents, Served, current_request};

use crate::context::Context;
use crate::text::{on_one_line, thousands};

/// Writes events to the terminal.
pub(super) struct Log {
    context: Arc<Context>,
    form: LogForm,
}

impl Log {
    pub(super) fn new(context: &Arc<Context>, form: LogForm) -> Self {
        Self { context: Arc::clone(context), form }
    }

    /// Something that no request is about.
    pub(super) fn note(&self, text: &str) {
        match self.form {
            LogForm::Json => self.write(json!({ "event": "note", "text": text }), "info"),
            LogForm::Text => self.context.note(text),
        }
    }

    /// Something whoever runs the gateway should know.
    pub(super) fn warn(&self, text: &str) {
        match self.form {
            LogForm::Json => self.write(json!({ "event": "warning", "text": text }), "warning"),
            LogForm::Text => self.context.warn(text),
        }
    }

    /// An object on one line, with when it was, how bad it is, and what request it is about.
    fn write(&self, mut value: Value, level: &str) {
        if let Value::Object(members) = &mut value {
            members.insert("at_ms".to_owned(), json!(self.context.now().ms));
            members.insert("level".to_owned(), json!(level));
            members.insert("request".to_owned(), json!(current_request()));
        }
        self.context.tell(&format!("{value}\n"));
    }
}

impl GatewayEvents for Log {
    fn tell(&self, event: GatewayEvent) {
        match self.form {
            LogForm::Json => self.write(event.to_json(), level(&event)),
            LogForm::Text => {
                let Some(line) = line(&event) else { return };
                // What happens beside any request, such as a summary that is ready, has no name to be found by.
                let request = current_request().map(|id| format!("  request {id}")).unwrap_or_default();
                self.context.note(&on_one_line(&format!("{line}{request}")));
            }
        }
    }
}

fn level(event: &GatewayEvent) -> &'static str {
    match event {
        GatewayEvent::Warning(_) => "warning",
        GatewayEvent::Served(served) if served.end == AnswerEnd::BrokenOff => "warning",
        _ => "info",
    }
}

fn line(event: &GatewayEvent) -> Option<String> {
    Some(match event {
        GatewayEvent::Served(Served { wire, model, session, status, head_ms, whole_ms, end }) => {
            let session = session.as_ref().map_or("unmanaged", |session| session.as_str());
            let end = match end {
                AnswerEnd::Whole => "",
                AnswerEnd::BrokenOff => ", broken off",
                AnswerEnd::Abandoned => ", the client hung up",
            };
            format!("{session}  {wire}  {model}  {status}  {head_ms}/{whole_ms} ms{end}")
        }
        GatewayEvent::Refused { form, status, message } => format!("refused  {form}  {status}  {message}"),
        GatewayEvent::Opened { session, link: None } => format!("{session}  new conversation"),
        GatewayEvent::Opened { session, link: Some((parent, kind)) } => {
            format!("{session}  {} of {parent}", kind.replace('_', " "))
        }
        GatewayEvent::Recalled { session, tools } => {
            format!("{session}  the model looked something up: {}", tools.join(", "))
        }
        GatewayEvent::Warning(words) => format!("warning: {words}"),
        GatewayEvent::Engine { conversation, event } => {
            format!("{conversation}  {}", engine_words(event)?)
        }
    })
}

/// What an engine's event says to people; `None` for what happens all the time.
fn engine_words(event: &EngineEvent) -> Option<String> {
    Some(match event {
        EngineEvent::Pressure { .. }
        | EngineEvent::PreparationStarted
        | EngineEvent::CompactionStarted { .. } => {
            return None;
        }
        EngineEvent::CompactionCompleted { report, new, .. } => format!(
            "compacted {} -> {} messages, {} -> {} tokens; goes on as {new}",
            report.messages.before,
            report.messages.after,
            thousands(report.tokens.before),
            thousands(report.tokens.after),
        ),
        EngineEvent::CompactionNoOp { detail, .. }
        | EngineEvent::CompactionAborted { detail, .. }
        | EngineEvent::CompactionBlocked { detail, .. } => format!("not compacted: {detail}"),
        EngineEvent::CompactionLocked { holder, .. } => format!("not compacted: open elsewhere ({holder})"),
        EngineEvent::PreparationReady { messages } => format!("a summary of {messages} messages is ready"),
        EngineEvent::PreparationFailed { detail } => format!("a summary could not be prepared: {detail}"),
        EngineEvent::WindowLearnt { model, window_tokens, was_tokens } => {
            format!(
                "{model} has a window of {} tokens, not {}",
                thousands(*window_tokens),
                thousands(*was_tokens)
            )
        }
        EngineEvent::CapLowered { tokens, .. } => {
            format!("the output cap was lowered to {} tokens for one call", thousands(*tokens))
        }
        EngineEvent::FallbackUsed { model, instead_of, trouble } => {
            format!("{model} was asked instead of {instead_of}: {trouble}")
        }
        EngineEvent::Retrying { after, trouble } => format!("asked again ({after}) after: {trouble}"),
        EngineEvent::OutputSetAside { chars, .. } => {
            format!("a tool result of {} characters was set aside", thousands(*chars))
        }
        EngineEvent::Notice { text } => text.clone(),
    })
}
