//! The exchange with the model: it is called again with the results of its recall calls until it answers without such calls.

use throughline_engine::{
    CacheMarking, CallInput, CallOutcome, DeferredTools, Envelope, IncomingMessage, ManagedSession,
    PieceSender, RecordTiming, RequestExtras, SessionError, WaitPolicy,
};
use throughline_tokens::ToolDeferral;
use throughline_transcript::WireFormat;
use throughline_wire::{Request, StopReason, Streaming, ToolCall};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::lookup::message_key::MessageKey;
use crate::recall::RecallConfig;
use crate::recall::client_view::Projection;
use crate::recall::splice::Splice;
use crate::recall::splice::event::AfterRound;
use crate::recall::tool_runner::{Allowance, ToolRunner, messages};
use crate::telemetry::event::GatewayEvent;
use crate::tenant::Tenant;

/// The capacity of the channel between a call and the splice, in pieces of the answer.
const PIECES_WAITING: usize = 32;
/// How often recall calls are refused, once the budget of a turn is used up, before the turn ends without an answer.
const REFUSED_ROUNDS: usize = 2;

/// How answers are sent to the client.
pub(crate) enum RoundDelivery {
    /// As one answer in the client's wire format.
    Spliced,
    /// Piece by piece, regardless of rounds: for callers that only read the text.
    AsTheyCome,
}

/// The parameters of a call with recall rounds.
pub(crate) struct RecallLoop<'a> {
    pub(crate) recall: &'a RecallConfig,
    pub(crate) gateway: &'a Tenant,
    pub(crate) passing: RoundDelivery,
    /// The deferred tools, if there are any.
    pub(crate) tools: Option<ToolRounds>,
}

/// A request with deferred tools, for rounds in which some are loaded.
pub(crate) struct ToolRounds {
    /// The request with all tools.
    pub(crate) request: Request,
    /// The deferred tools.
    pub(crate) deferred: DeferredTools,
}

/// The parameters that are the same in every round.
struct RoundTemplate {
    envelope: Envelope,
    task: String,
    extras: RequestExtras,
    waiting: WaitPolicy,
    recorded: RecordTiming,
    marking: CacheMarking,
    cancel: CancellationToken,
}

impl RoundTemplate {
    fn input(&self, messages: Vec<IncomingMessage>, pieces: Option<PieceSender>) -> CallInput {
        CallInput {
            pieces,
            task: self.task.clone(),
            extras: self.extras.clone(),
            waiting: self.waiting,
            recorded: self.recorded,
            marking: self.marking,
            cancel: self.cancel.clone(),
            ..CallInput::new(self.envelope.clone(), messages)
        }
    }
}

impl RecallLoop<'_> {
    /// Calls the model until it answers without recall calls. Adds the keys of all its messages to `keys`.
    pub(crate) async fn call(
        mut self,
        session: &mut ManagedSession,
        input: CallInput,
        keys: &mut Vec<MessageKey>,
    ) -> Result<CallOutcome, SessionError> {
        // Only the end of a round shows whether it was the last, so `on_recorded` is not used.
        let CallInput {
            envelope,
            // A compaction does not change a client's tools, so there is no envelope for after one.
            after_compaction: _,
            messages: mut new,
            pieces,
            task,
            extras,
            waiting,
            recorded,
            marking,
            cancel,
            on_recorded: _,
        } = input;
        let mut kept = RoundTemplate { envelope, task, extras, waiting, recorded, marking, cancel };
        let (wire, streaming) = (session.wire_format(), kept.envelope.request().streaming());
        let mut back = RoundOutput::new(&self, wire, streaming, pieces);
        let mut projection = Projection::new(self.recall.names(), wire);
        let mut allowance = Allowance::of(self.recall);
        let mut refused = 0;
        loop {
            let outcome = back.round(session, &kept, std::mem::take(&mut new)).await?;
            keys.extend(projection.keys(&outcome.answer.messages));
            let calls = self.own_calls(&outcome);
            if calls.is_empty() || refused == REFUSED_ROUNDS {
                self.warn_if_unanswered(&outcome, &calls);
                back.end(AfterRound::Nothing).await;
                return Ok(outcome);
            }
            refused += usize::from(allowance.rounds == 0);
            let tools = calls.iter().map(|call| call.name.clone()).collect();
            self.gateway.tell(GatewayEvent::Recalled { session: session.id().clone(), tools });
            allowance.fit(session, outcome.pressure.tokens);
            let owner = &self.gateway.setup.owner;
            let deferred = self.tools.as_ref().map(|tools| &tools.deferred);
            let runner = ToolRunner { recall: self.recall, owner, session: session.id(), deferred };
            let answered = runner.answer(&calls, &mut allowance).await;
            let brought_back = answered.iter().flat_map(|one| one.found.iter().cloned()).collect();
            self.bring_back(brought_back, session, &mut kept)?;
            let found = messages(wire, &answered);
            keys.extend(projection.keys(&found));
            new = found.into_iter().map(IncomingMessage::from).collect();
            back.end(AfterRound::Round).await;
        }
    }

    /// Makes the named tools callable from the next round on.
    fn bring_back(
        &mut self,
        names: Vec<String>,
        session: &mut ManagedSession,
        kept: &mut RoundTemplate,
    ) -> Result<(), SessionError> {
        let Some(tools) = self.tools.as_mut().filter(|_| !names.is_empty()) else { return Ok(()) };
        if tools.deferred.deferral() == ToolDeferral::ByReference {
            return Ok(());
        }
        session.bring_back(names);
        let mut request = tools.request.clone();
        match session.defer_tools(&mut request, self.recall.names().all())? {
            Some(deferred) => tools.deferred = deferred,
            None => self.tools = None,
        }
        kept.envelope = Envelope::of_request(request);
        Ok(())
    }

    /// Warns if a model called only recall tools until the end and gave no answer.
    fn warn_if_unanswered(&self, outcome: &CallOutcome, left: &[ToolCall]) {
        if let Some(call) = left.first() {
            self.gateway.tell(GatewayEvent::Warning(format!(
                "{}: the model went on calling {} after it had no recall left, so its turn ended without an answer \
                 (`gateway.recall_rounds`)",
                outcome.session, call.name
            )));
        }
    }

    /// The calls of an answer, if all of them are of recall tools and it was not cut off in the middle of one.
    fn own_calls(&self, outcome: &CallOutcome) -> Vec<ToolCall> {
        let is_whole = !matches!(
            outcome.answer.stop.reason,
            StopReason::OutputLimit | StopReason::WindowLimit | StopReason::Refused | StopReason::Cancelled
        );
        let calls: Vec<ToolCall> = outcome.answer.tool_calls().cloned().collect();
        let all_own = calls.iter().all(|call| self.recall.names().has(&call.name));
        if is_whole && all_own { calls } else { Vec::new() }
    }
}

/// The output to the client.
enum RoundOutput {
    Nobody,
    AsTheyCome(PieceSender),
    Spliced(Splice),
}

impl RoundOutput {
    fn new(
        rounds: &RecallLoop<'_>,
        wire: WireFormat,
        streaming: Streaming,
        pieces: Option<PieceSender>,
    ) -> Self {
        match (pieces, &rounds.passing) {
            (None, _) => Self::Nobody,
            (Some(pieces), RoundDelivery::AsTheyCome) => Self::AsTheyCome(pieces),
            (Some(pieces), RoundDelivery::Spliced) => {
                Self::Spliced(Splice::new(wire, streaming, rounds.recall.names(), pieces))
            }
        }
    }

    async fn round(
        &mut self,
        session: &mut ManagedSession,
        kept: &RoundTemplate,
        new: Vec<IncomingMessage>,
    ) -> Result<CallOutcome, SessionError> {
        match self {
            Self::Nobody => session.call(kept.input(new, None)).await,
            Self::AsTheyCome(pieces) => session.call(kept.input(new, Some(pieces.clone()))).await,
            Self::Spliced(splice) => {
                let (sender, coming) = mpsc::channel(PIECES_WAITING);
                let call = Box::pin(session.call(kept.input(new, Some(sender))));
                let (outcome, ()) = tokio::join!(call, splice.pass(coming));
                outcome
            }
        }
    }

    async fn end(&mut self, next: AfterRound) {
        if let Self::Spliced(splice) = self {
            splice.end(next).await;
        }
    }
}
