//! A recorded session as input of the transcript commands: its view as messages, and its last preamble.

use throughline_engine::{LimitsInUse, LoadedView, PendingRequest, SizeBasis};
use throughline_models::RecordedClient;
use throughline_store::{Session, Store as _, StoredPreamble, ViewMessage};
use throughline_transcript::{Message, Preamble, SharedText, Source, Transcript};

use crate::app::{ActiveSession, App};
use crate::args::WindowArgs;
use crate::error::CliError;
use crate::limits::{CountMethod, TranscriptLimits};
use crate::record::{OpenRecord, refused};

/// The name of Claude Code in the record.
const CLAUDE_CODE: &str = "claude-code";

/// Builds a transcript from messages, with the facts about the session that limits depend on.
pub(crate) fn transcript_of(
    session: &Session,
    messages: Vec<Message>,
    sent: Option<&StoredPreamble>,
) -> Transcript {
    let mut transcript = Transcript::from_messages(session.wire_format, messages);
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

/// The preamble of the last call of the conversation, if it is recorded.
fn sent_before(record: &OpenRecord<'_>, session: &Session) -> Result<Option<StoredPreamble>, CliError> {
    StoredPreamble::last(&record.store, &record.owner, session).map_err(refused)
}

/// The size of a session's next request, in tokens.
pub(crate) struct ContextUse {
    pub(crate) messages: u64,
    pub(crate) message_tokens: u64,
    /// The system prompt and the tools, if a call recorded them.
    pub(crate) fixed_tokens: Option<u64>,
    /// The total with its basis, for conversations that were held through Throughline.
    pub(crate) size: Option<PendingRequest>,
}

impl ContextUse {
    /// The total, as shown in the status line of a conversation.
    pub(crate) fn tokens(&self) -> u64 {
        self.size.map_or(self.estimated_tokens(), |size| size.total_tokens)
    }

    /// Scales the estimate of a part to the total, which a provider may have counted.
    pub(crate) fn part(&self, estimated: u64) -> u64 {
        let wide = u128::from(estimated) * u128::from(self.tokens());
        let whole = u128::from(self.estimated_tokens().max(1));
        u64::try_from((wide + whole / 2) / whole).unwrap_or(u64::MAX)
    }

    fn estimated_tokens(&self) -> u64 {
        let parts = || self.message_tokens.saturating_add(self.fixed_tokens.unwrap_or(0));
        self.size.map_or_else(parts, |size| size.message_tokens.saturating_add(size.fixed_tokens))
    }

    /// The basis of the total.
    pub(crate) fn basis(&self) -> SizeBasis {
        self.size.map_or(SizeBasis::Estimated, |size| size.basis)
    }
}

/// The model, window and size of the last call of a conversation.
fn with_session(
    app: &App,
    record: &OpenRecord<'_>,
    session: &Session,
) -> Result<Option<ActiveSession>, CliError> {
    if app.active_session.is_some() {
        return Ok(app.active_session.clone());
    }
    let limits =
        LimitsInUse::load(&record.store, &record.owner, &session.id, record.now.ms).map_err(refused)?;
    let Some(limits) = limits else { return Ok(None) };
    let size = PendingRequest::of_record(&record.store, &record.owner, session, &limits, record.now.ms)
        .map_err(refused)?;
    Ok(Some(ActiveSession { limits, pending: Some(size) }))
}

/// The environment with the model, window and size of a conversation.
pub(crate) fn context_of(app: &App, record: &OpenRecord<'_>, session: &Session) -> Result<App, CliError> {
    let held = with_session(app, record, session)?;
    let recorded_client = if held.is_none() { recorded_client(record, session)? } else { None };
    let mut found = app.with_session(held);
    found.recorded_client = recorded_client;
    Ok(found)
}

/// The client of an imported Claude Code log, with the largest prompt that the log counted.
fn recorded_client(record: &OpenRecord<'_>, session: &Session) -> Result<Option<RecordedClient>, CliError> {
    if session.origin.program != CLAUDE_CODE {
        return Ok(None);
    }
    let chain = record.store.chain(&record.owner, &session.id).map_err(refused)?;
    let mut largest_prompt_tokens = 0;
    for part in &chain {
        let calls = record.store.calls(&record.owner, &part.id).map_err(refused)?;
        let prompts = calls.iter().map(|call| call.call.usage.prompt());
        largest_prompt_tokens = prompts.max().unwrap_or(0).max(largest_prompt_tokens);
    }
    Ok(Some(RecordedClient::ClaudeCode { largest_prompt_tokens }))
}

/// The size of a session's view, and its limits.
pub(crate) fn in_use(
    app: &App,
    record: &OpenRecord<'_>,
    session: &Session,
    window: &WindowArgs,
) -> Result<(ContextUse, TranscriptLimits), CliError> {
    let sent = sent_before(record, session)?;
    let transcript = transcript_of(session, Vec::new(), sent.as_ref());
    let app = &context_of(app, record, session)?;
    let situation = TranscriptLimits::of(app, window, &[], &transcript, CountMethod::Estimate)?;
    let shown = record.store.view(&record.owner, &session.id, None).map_err(refused)?;
    let in_use = ContextUse {
        messages: shown.len() as u64,
        message_tokens: shown.iter().map(ViewMessage::tokens).sum(),
        fixed_tokens: sent.map(|_| situation.counter.estimating_only().preamble(&transcript.preamble)),
        size: situation.size,
    };
    Ok((in_use, situation))
}

/// Loads the view of a session as a transcript that can be compacted.
pub(crate) fn load_view(
    record: &OpenRecord<'_>,
    session: &Session,
) -> Result<(LoadedView, Transcript), CliError> {
    let view = LoadedView::load(&record.store, &record.owner, &session.id).map_err(refused)?;
    let sent = sent_before(record, session)?;
    let transcript = transcript_of(session, view.messages().to_vec(), sent.as_ref());
    Ok((view, transcript))
}
