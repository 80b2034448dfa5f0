//! A turn: the user sends a message, and the agent works until an answer calls no tool.

use std::sync::Arc;

use throughline_engine::{CallInput, CallOutcome, IncomingMessage, SessionError};
use throughline_store::{ArtifactId, NewArtifact, StoredRendition};
use throughline_tokens::{ContentProfile, TextProfile, TokenModel, Usage};
use throughline_transcript::{Message, Role, SharedText, compact_json_string, decode_message, text_message};
use throughline_wire::{StopReason, ToolCall};
use tokio_util::sync::CancellationToken;

use super::{Agent, READ_SET_ASIDE, blocking};
use crate::event::{AgentEvent, AnswerReport, WordsSetAside};
use crate::long_message::{short_name, shortened};
use crate::results;

/// The most requests in one turn; more indicate an endless loop.
const MOST_STEPS: usize = 500;

/// The totals of a finished turn.
#[derive(Clone, Debug, Default)]
pub struct TurnDone {
    /// The text of the last answer.
    pub text: String,
    /// The number of answers.
    pub calls: u64,
    /// The number of tools that ran.
    pub tools: u64,
    /// The tokens of all answers.
    pub usage: Usage,
    /// Cost in millionths of a dollar, as far as prices are known.
    pub cost_micro_usd: u64,
    /// The number of answers without a known price.
    pub unpriced: u64,
    /// Why the last answer stopped.
    pub stop: StopReason,
}

impl TurnDone {
    fn add(&mut self, outcome: &CallOutcome) {
        self.calls += 1;
        self.usage += outcome.usage;
        match outcome.cost.micro_usd {
            Some(micro_usd) => self.cost_micro_usd = self.cost_micro_usd.saturating_add(micro_usd),
            None => self.unpriced += 1,
        }
        self.text = outcome.answer.text();
        self.stop = outcome.answer.stop.reason;
    }
}

impl Agent {
    /// Sends a message and runs tools until the model has answered. A [message without an answer](Self::unanswered) is not sent twice.
    /// `cancel` stops the turn at any time: messages, results and partial answers up to then stay, and the next turn continues from
    /// there.
    pub async fn turn(&mut self, said: &str, cancel: &CancellationToken) -> Result<TurnDone, SessionError> {
        self.stop_saving_memory();
        let wire_format = self.session.wire_format();
        let mut new = results::messages(wire_format, &self.finished);
        // An unanswered message is already part of the conversation.
        if self.unanswered().is_none_or(|words| words != said.trim()) {
            let rendition = self.shortened(said).await?;
            new.extend(
                message(&text_message(wire_format, Role::User, said))
                    .map(|message| IncomingMessage { message, rendition }),
            );
        }
        let mut done = TurnDone::default();
        for _ in 0..MOST_STEPS {
            let outcome = self.ask(new, cancel).await?;
            done.add(&outcome);
            let calls: Vec<ToolCall> = outcome.answer.tool_calls().cloned().collect();
            if calls.is_empty() && outcome.answer.stop.reason != StopReason::Paused {
                self.save_memory(cancel).await;
                return Ok(done);
            }
            done.tools += calls.len() as u64;
            self.run_calls(&calls, &outcome, cancel).await;
            if cancel.is_cancelled() {
                return Err(SessionError::Cancelled);
            }
            new = results::messages(wire_format, &self.finished);
        }
        Ok(done)
    }

    /// The user's last message, if it has no answer yet: the call failed or was stopped. Sending the same text again
    /// asks for the answer and does not repeat the message.
    #[must_use]
    pub fn unanswered(&self) -> Option<String> {
        let last = self.session.messages().last().filter(|last| last.is_human())?;
        last.human_words().map(|words| words.trim().to_owned()).filter(|words| !words.is_empty())
    }

    /// Shortens a message that does not fit the window, and stores its full text where the model can read it in pieces. Compaction would
    /// not help: nothing before the message could be made smaller.
    async fn shortened(&self, said: &str) -> Result<Option<StoredRendition>, SessionError> {
        let pressure = self.session.pressure();
        let model = TokenModel::for_model(&self.session.model().model, self.session.wire_format());
        let system =
            model.estimate_content(&ContentProfile::of_system(&compact_json_string(&self.standing.prompt)));
        let tools = self
            .standing
            .tools
            .as_deref()
            .map_or(0, |json| model.estimate_content(&ContentProfile::of_tools(json)));
        let room_tokens = pressure.threshold_tokens.saturating_sub(system).saturating_sub(tools);
        // A token has at least one character, so messages of usual size end here. If there is no space at all, the message is not the
        // cause.
        let is_small = said.len() as u64 <= room_tokens || room_tokens == 0;
        if is_small || self.setup.tools.find("recall").is_err() {
            return Ok(None);
        }
        let tokens = model.estimate(&TextProfile::of(said));
        if tokens <= room_tokens {
            return Ok(None);
        }
        let artifact = ArtifactId::of(said.as_bytes());
        let how_to_read = READ_SET_ASIDE.replace("{artifact}", short_name(&artifact));
        let most = usize::try_from(room_tokens).unwrap_or(usize::MAX).min(self.setup.limit.chars());
        let shown = shortened(said, most, &artifact, &how_to_read);
        self.setup.events.tell(AgentEvent::WordsSetAside(WordsSetAside {
            chars: said.chars().count() as u64,
            tokens,
            shown_chars: most as u64,
            window_tokens: pressure.window_tokens,
        }));
        let (store, owner, id) = (
            Arc::clone(&self.setup.session.store),
            self.setup.session.owner.clone(),
            self.session.id().clone(),
        );
        let (text, at_ms) = (said.to_owned(), self.setup.session.host.now_ms());
        blocking(move || {
            let new = NewArtifact { session: &id, text: &text, label: "what was said", at_ms };
            store.put_artifact(&owner, new)
        })
        .await?;
        let json = text_message(self.session.wire_format(), Role::User, &shown);
        Ok(Some(StoredRendition { kinds: vec!["artifact".to_owned()], json, tokens: 0 }))
    }

    /// Makes one call and shows its answer while it streams.
    async fn ask(
        &mut self,
        messages: Vec<IncomingMessage>,
        cancel: &CancellationToken,
    ) -> Result<CallOutcome, SessionError> {
        let before = self.session.id().clone();
        let in_order = std::sync::Arc::clone(&self.in_order);
        let input = CallInput {
            pieces: Some(in_order.begin()),
            cancel: cancel.child_token(),
            after_compaction: self.next.as_ref().map(|(_, envelope)| envelope.clone()),
            ..CallInput::new(self.envelope.clone(), messages)
        };
        let model = self.session.model().model.clone();
        self.setup.events.tell(AgentEvent::Asked { model });
        let outcome = {
            let mut call = Box::pin(self.session.call(input));
            tokio::select! {
                biased;
                outcome = async { in_order.show_coming().await; std::future::pending().await } => outcome,
                outcome = &mut call => outcome,
            }
        };
        in_order.show_waiting();
        self.after_compaction(&before);
        self.forget_recorded().await;
        let outcome = outcome?;
        events_of(&outcome, |event| self.setup.events.tell(event));
        Ok(outcome)
    }

    /// Deletes stored results that are recorded by now.
    async fn forget_recorded(&mut self) {
        if self.finished.is_empty() {
            return;
        }
        let waiting = self.session.waiting_calls();
        self.finished.retain(|one| waiting.contains(&one.call_id));
        if self.finished.is_empty() {
            self.keep_finished().await;
        }
    }
}

fn message(json: &str) -> Option<Message> {
    decode_message(SharedText::new(json.to_owned()))
}

fn events_of(outcome: &CallOutcome, tell: impl Fn(AgentEvent)) {
    tell(AgentEvent::Answered(Box::new(AnswerReport {
        model: outcome.model.clone(),
        usage: outcome.usage,
        cost: outcome.cost,
        cache: outcome.cache.clone(),
        pressure: outcome.pressure,
        took_ms: outcome.latency_ms,
        stop: outcome.answer.stop.reason,
    })));
}
