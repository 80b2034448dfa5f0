//! The log of the gateway: one line for each request, one for each change of a context, and a summary at the end. In text form, a line
//! begins with the time and a level: `info`, or `warning` for problems that the operator should look at.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use owo_colors::OwoColorize;
use serde_json::{Value, json};
use throughline_compaction::Quality;
use throughline_config::LogForm;
use throughline_engine::EngineEvent;
use throughline_gateway::{AnswerEnd, GatewayEvent, GatewayEvents, ServedRequest};
use throughline_store::SessionId;

use crate::app::App;
use crate::ui::text::{counted, on_one_line, thousands};

/// The most conversations whose opening waits for the line of their first request.
const MOST_OPENED: usize = 10_000;

/// Writes events to the terminal.
pub(super) struct ServeLog {
    app: Arc<App>,
    form: LogForm,
    /// How each conversation was opened, until the line of its first request is written, which includes it.
    opened: Mutex<HashMap<SessionId, String>>,
    totals: Mutex<ServeTotals>,
}

/// The totals since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ServeTotals {
    answered: u64,
    /// Answered requests that ended with an error of the upstream or of the gateway.
    failed: u64,
    broken_off: u64,
    hung_up: u64,
    refused: u64,
    conversations: u64,
    compactions: u64,
    warnings: u64,
}

impl ServeTotals {
    fn count(&mut self, event: &GatewayEvent) {
        match event {
            GatewayEvent::Served(served) => {
                self.answered += 1;
                self.failed += u64::from(served.status >= 400);
                self.broken_off += u64::from(served.end == AnswerEnd::BrokenOff);
                self.hung_up += u64::from(served.end == AnswerEnd::Abandoned);
            }
            GatewayEvent::Refused { .. } => self.refused += 1,
            GatewayEvent::Opened { link: None, .. } => self.conversations += 1,
            GatewayEvent::Attached { .. } => self.conversations = self.conversations.saturating_sub(1),
            GatewayEvent::Engine { event: EngineEvent::CompactionCompleted { .. }, .. } => {
                self.compactions += 1
            }
            _ => {}
        }
        self.warnings += u64::from(level(event) == Level::Warning);
    }

    fn words(&self) -> String {
        let counted = |count: u64, one: &str, many: &str| match count {
            0 => None,
            1 => Some(format!("1 {one}")),
            count => Some(format!("{} {many}", thousands(count))),
        };
        let more = [
            counted(self.failed, "with an error", "with errors"),
            counted(self.broken_off, "broken off", "broken off"),
            counted(self.hung_up, "whose client hung up", "whose clients hung up"),
        ];
        let more: Vec<String> = more.into_iter().flatten().collect();
        let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join(", ")) };
        let parts = [
            Some(
                counted(self.answered, "request answered", "requests answered")
                    .unwrap_or_else(|| "no requests answered".to_owned())
                    + &more,
            ),
            counted(self.refused, "refused", "refused"),
            counted(self.conversations, "new conversation", "new conversations"),
            counted(self.compactions, "compaction", "compactions"),
            counted(self.warnings, "warning", "warnings"),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

impl ServeTotals {
    /// The last line, which tells whether everything was recorded. An unrecorded request is a warning.
    fn ending(&self) -> &'static str {
        match self.warnings {
            0 => "stopped; everything that was answered is recorded",
            _ => "stopped; everything that was answered is recorded, except where a warning says otherwise",
        }
    }
}

/// The severity of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Info,
    Warning,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
        }
    }
}

impl ServeLog {
    pub(super) fn new(app: &Arc<App>, form: LogForm) -> Self {
        Self { app: Arc::clone(app), form, opened: Mutex::default(), totals: Mutex::default() }
    }

    /// Logs a note that belongs to no request.
    pub(super) fn note(&self, text: &str) {
        match self.form {
            LogForm::Json => self.write(json!({ "event": "note", "text": text }), Level::Info),
            LogForm::Text => self.line(Level::Info, text),
        }
    }

    /// A warning to the operator.
    pub(super) fn warn(&self, text: &str) {
        match self.form {
            LogForm::Json => self.write(json!({ "event": "warning", "text": text }), Level::Warning),
            LogForm::Text => self.line(Level::Warning, text),
        }
    }

    /// The totals since the start, on one line.
    pub(super) fn summary(&self) -> String {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner).words()
    }

    /// The last line.
    pub(super) fn ending(&self) -> &'static str {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner).ending()
    }

    /// Writes an object on one line, with time, severity and request id.
    fn write(&self, mut value: Value, level: Level) {
        if let Value::Object(members) = &mut value {
            members.insert("at_ms".to_owned(), json!(self.app.now().ms));
            members.insert("level".to_owned(), json!(level.name()));
            members.insert("request".to_owned(), json!(ServedRequest::current_id()));
        }
        self.app.tell(&format!("{value}\n"));
    }

    /// Writes a line of text.
    fn line(&self, level: Level, text: &str) {
        let now = self.app.now();
        let name = match level {
            Level::Info => level.name().cyan().to_string(),
            Level::Warning => level.name().yellow().bold().to_string(),
        };
        self.app.tell(&format!("{} {name}: {}\n", now.time_of_day(now.ms), on_one_line(text)));
    }

    /// Returns how the conversation of a request was opened, if this request opened it.
    fn take_opened(&self, session: Option<&SessionId>) -> Option<String> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).remove(session?)
    }
}

impl GatewayEvents for ServeLog {
    fn tell(&self, event: GatewayEvent) {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner).count(&event);
        if self.form == LogForm::Json {
            return self.write(event.to_json(), level(&event));
        }
        let mut words = None;
        match &event {
            GatewayEvent::Opened { session, link } => {
                let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
                if opened.len() < MOST_OPENED {
                    opened.insert(session.clone(), opened_words(link.as_ref()));
                }
                return;
            }
            GatewayEvent::Attached { session, link } => {
                // If the first request has no line yet, that line will include the link.
                let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(words) = opened.get_mut(session) {
                    *words = opened_words(Some(link));
                    return;
                }
            }
            GatewayEvent::Served(served) => words = self.take_opened(served.session.as_ref()),
            _ => {}
        }
        let Some(mut line) = line(&event) else { return };
        if let Some(words) = words {
            line.push_str(&format!("  {words}"));
        }
        // Events outside of a request, such as a prepared summary, have no request id.
        if let Some(id) = ServedRequest::current_id() {
            line.push_str(&format!("  request {id}"));
        }
        self.line(level(&event), &line);
    }
}

fn opened_words(link: Option<&(SessionId, &'static str)>) -> String {
    match link {
        None => "new conversation".to_owned(),
        Some((parent, kind)) => format!("{} of {parent}", kind.replace('_', " ")),
    }
}

/// The severity of an event: a warning if something is lost, or does not work as configured.
fn level(event: &GatewayEvent) -> Level {
    let is_warning = match event {
        GatewayEvent::Warning(_) => true,
        GatewayEvent::Served(served) => served.end == AnswerEnd::BrokenOff || served.status >= 500,
        GatewayEvent::Refused { status, .. } => *status >= 500,
        GatewayEvent::Engine { event, .. } => match event {
            EngineEvent::CompactionCompleted { report, .. } => !report.warnings.is_empty(),
            EngineEvent::CompactionAborted { .. }
            | EngineEvent::PreparationFailed { .. }
            | EngineEvent::FallbackUsed { .. } => true,
            _ => false,
        },
        GatewayEvent::Opened { .. } | GatewayEvent::Attached { .. } | GatewayEvent::Recalled { .. } => false,
    };
    if is_warning { Level::Warning } else { Level::Info }
}

fn line(event: &GatewayEvent) -> Option<String> {
    Some(match event {
        GatewayEvent::Served(ServedRequest { wire, model, session, status, head_ms, whole_ms, end }) => {
            let session = session.as_ref().map_or("unmanaged", |session| session.as_str());
            let end = match end {
                AnswerEnd::Whole => "",
                AnswerEnd::BrokenOff => ", broken off",
                AnswerEnd::Abandoned => ", the client hung up",
            };
            format!("{session}  {wire}  {model}  {status}  {whole_ms} ms, first byte {head_ms} ms{end}")
        }
        GatewayEvent::Refused { form, method, path, status, message } => {
            format!("refused  {method} {path}  {form}  {status}  {message}")
        }
        GatewayEvent::Opened { session, link } => format!("{session}  {}", opened_words(link.as_ref())),
        GatewayEvent::Attached { session, link } => {
            format!("{session}  is a {}", opened_words(Some(link)))
        }
        GatewayEvent::Recalled { session, tools } => {
            format!("{session}  the model looked something up: {}", tools.join(", "))
        }
        GatewayEvent::Warning(words) => words.clone(),
        GatewayEvent::Engine { conversation, event } => {
            format!("{conversation}  {}", engine_words(event)?)
        }
    })
}

/// The text for an event of the engine; `None` for frequent events.
fn engine_words(event: &EngineEvent) -> Option<String> {
    Some(match event {
        EngineEvent::Pressure { .. }
        | EngineEvent::PreparationStarted
        | EngineEvent::CompactionStarted { .. } => {
            return None;
        }
        EngineEvent::CompactionCompleted { quality, report, new, .. } => {
            let by = match (&report.written_by, quality) {
                (Some(by), _) => format!("summary by {}", by.model),
                (None, Quality::Rules) => "summary by rules".to_owned(),
                (None, Quality::Model) => "summary by a model".to_owned(),
            };
            // The warnings include the reason why a model did not write the summary.
            let warnings: String = report.warnings.iter().map(|warning| format!("; {warning}")).collect();
            let money = report.money_words().map(|money| format!("; {money}")).unwrap_or_default();
            format!(
                "compacted {} -> {} messages, {} -> {} tokens{money}; {by}; goes on as {new}{warnings}",
                report.messages.before,
                report.messages.after,
                thousands(report.tokens.before),
                thousands(report.tokens.after),
            )
        }
        EngineEvent::CompactionNoOp { detail, .. }
        | EngineEvent::CompactionAborted { detail, .. }
        | EngineEvent::CompactionBlocked { detail, .. } => format!("not compacted: {detail}"),
        EngineEvent::CompactionLocked { holder, .. } => format!("not compacted: open elsewhere ({holder})"),
        EngineEvent::PreparationReady { messages } => {
            format!("a summary of {} is ready", counted(*messages as u64, "message", "messages"))
        }
        EngineEvent::PreparationPostponed => {
            "a summary in preparation was cancelled, because its server was needed for a request".to_owned()
        }
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
            format!("{model} was used instead of {instead_of}: {trouble}")
        }
        EngineEvent::Retrying { after, trouble } => format!("retried ({after}) after: {trouble}"),
        EngineEvent::OutputSetAside { chars, .. } => {
            format!("a tool result of {} characters was shortened", thousands(*chars))
        }
        EngineEvent::Notice { text } => text.clone(),
    })
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
