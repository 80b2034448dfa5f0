//! A recorded session as the commands for transcripts see it: its view as messages, with the preamble that was last
//! sent before them.

use throughline_store::{
    Guard, GuardScope, LoadedView, Millis, Owner, Session, SessionId, Shown, Store, StoreError,
    StoredPreamble, last_preamble,
};
use throughline_transcript::{Message, Preamble, SharedText, Source, Transcript};

use crate::args::WindowArgs;
use crate::config_cmd::load_settings;
use crate::context::{Context, InForce};
use crate::failure::Failure;
use crate::record::{Record, refused};
use crate::situation::{Counting, Situation};

/// A transcript of these messages, with everything known of the session that limits depend on.
pub(crate) fn transcript_of(
    session: &Session,
    messages: Vec<Message>,
    sent: Option<&StoredPreamble>,
) -> Transcript {
    let mut transcript = Transcript::from_messages(session.dialect, messages);
    if session.origin.program == "codex" {
        transcript.source = Source::CodexLog;
    }
    let shared = |text: &Option<String>| text.clone().map(SharedText::new);
    transcript.preamble = Preamble {
        system: sent.and_then(|sent| shared(&sent.system)),
        tools: sent.and_then(|sent| shared(&sent.tools)),
        model: session.model.clone(),
        max_output_tokens: None,
    };
    transcript
}

/// What stood before the messages when the conversation was last sent, where that is known.
fn sent_before(record: &Record<'_>, session: &Session) -> Result<Option<StoredPreamble>, Failure> {
    last_preamble(&record.store, &record.owner, session).map_err(refused)
}

/// What a session would send now, in tokens.
pub(crate) struct InUse {
    pub(crate) messages: u64,
    pub(crate) message_tokens: u64,
    /// System prompt and tools, where a call recorded them.
    pub(crate) fixed_tokens: Option<u64>,
}

impl InUse {
    pub(crate) fn tokens(&self) -> u64 {
        self.message_tokens.saturating_add(self.fixed_tokens.unwrap_or(0))
    }
}

/// What a conversation's model and window were when it was last held are kept under this name.
const HELD_WITH: &str = "held_with";

/// Keeps what a conversation is held with, for commands that look at it later and ask no endpoint.
pub(crate) fn keep_held_with(
    store: &dyn Store,
    owner: &Owner,
    session: &SessionId,
    in_force: &InForce,
    at_ms: Millis,
) -> Result<(), StoreError> {
    let value = serde_json::json!({
        "model": in_force.model,
        "window_tokens": in_force.window_tokens,
        "window_origin": in_force.window_origin,
        "output_cap_tokens": in_force.output_cap_tokens,
    });
    let guard = Guard { name: HELD_WITH.to_owned(), value, set_ms: at_ms, expires_ms: None };
    store.set_guard(&GuardScope::Chain(owner.clone(), session.clone()), HELD_WITH, Some(&guard))
}

/// What a conversation was last held with. A window that is configured now counts for more.
fn held_with(context: &Context, record: &Record<'_>, session: &Session) -> Result<Option<InForce>, Failure> {
    if context.in_force.is_some() {
        return Ok(context.in_force.clone());
    }
    let scope = GuardScope::Chain(record.owner.clone(), session.id.clone());
    let Some(guard) = record.store.guard(&scope, HELD_WITH, record.now.ms).map_err(refused)? else {
        return Ok(None);
    };
    if load_settings(context, &[])?.settings.model.context_length.is_some() {
        return Ok(None);
    }
    let text = |name: &str| guard.value.get(name).and_then(|value| value.as_str()).map(str::to_owned);
    let number = |name: &str| guard.value.get(name).and_then(serde_json::Value::as_u64);
    let in_force = || {
        Some(InForce {
            model: text("model")?,
            window_tokens: number("window_tokens")?,
            window_origin: text("window_origin")?,
            output_cap_tokens: number("output_cap_tokens"),
        })
    };
    Ok(in_force())
}

/// The world with what a conversation was last held with.
pub(crate) fn context_of(
    context: &Context,
    record: &Record<'_>,
    session: &Session,
) -> Result<Context, Failure> {
    Ok(context.held_with(held_with(context, record, session)?))
}

/// How full the window of a session is, and what it has to fit into.
pub(crate) fn in_use(
    context: &Context,
    record: &Record<'_>,
    session: &Session,
    window: &WindowArgs,
) -> Result<(InUse, Situation), Failure> {
    let sent = sent_before(record, session)?;
    let transcript = transcript_of(session, Vec::new(), sent.as_ref());
    let context = &context_of(context, record, session)?;
    let situation = Situation::of(context, window, &[], &transcript, Counting::Estimate)?;
    let shown = record.store.view(&record.owner, &session.id, None).map_err(refused)?;
    let in_use = InUse {
        messages: shown.len() as u64,
        message_tokens: shown.iter().map(Shown::tokens).sum(),
        fixed_tokens: sent.map(|_| situation.meter.preamble(&transcript.preamble)),
    };
    Ok((in_use, situation))
}

/// The view of a session as a transcript that can be compacted.
pub(crate) fn load_view(record: &Record<'_>, session: &Session) -> Result<(LoadedView, Transcript), Failure> {
    let view = LoadedView::load(&record.store, &record.owner, &session.id).map_err(refused)?;
    let sent = sent_before(record, session)?;
    let transcript = transcript_of(session, view.messages().to_vec(), sent.as_ref());
    Ok((view, transcript))
}
