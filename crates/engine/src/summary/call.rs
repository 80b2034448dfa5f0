//! One call for a summary: sent with a time limit, parsed and booked.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use throughline_compaction::{Section, SummaryDocument, WrittenBy};
use throughline_provider::{HoldBack, OutgoingCall, Priority};
use throughline_store::{NewCall, SessionId};
use throughline_tokens::{ContentProfile, TokenModel, Usage};
use throughline_transcript::Message;
use throughline_wire::Answer;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::failure::RouteFailure;
use super::form::SummaryForm;
use super::host::SummaryHost;
use super::parse::{Notes, SummaryDefect, read_answer, read_section};
use super::route::SummaryRoute;
use crate::accounting::{CallRecord, CallUsage};
use crate::host::Host;
use crate::limits::target::ModelTarget;
use crate::upstream::{UpstreamAnswer, UpstreamFailureCause};

/// What calls for summaries are booked as.
const SUMMARY_TASK: &str = "compression";

/// Pieces of an answer that may wait to be looked at.
const PIECES_WAITING: usize = 64;
/// Beyond its silence, a model has so long for each token it may answer: even a slow one writes ten in a second.
const LONGEST_TOKEN: Duration = Duration::from_millis(100);

/// A call to be made.
pub(crate) struct SummaryCall<'a> {
    pub(crate) route: &'a SummaryRoute,
    pub(crate) form: SummaryForm,
    pub(crate) call: OutgoingCall,
    /// The prompt as it is estimated, for when the provider does not count it.
    pub(crate) prompt_tokens: u64,
    /// Tokens the answer may have.
    pub(crate) answer_tokens: u64,
    /// What else is asked of a summary.
    pub(crate) judge: &'a (dyn Fn(&SummaryDocument) -> Result<(), SummaryDefect> + Sync),
}

/// What a call is for.
pub(crate) struct CallPurpose {
    /// As it is booked.
    pub(crate) task: &'static str,
    /// As its failure is booked, before the reason.
    pub(crate) failed: String,
    /// The prompt as it is estimated, for when the provider does not count it.
    pub(crate) prompt_tokens: u64,
    /// Tokens the answer may have.
    pub(crate) answer_tokens: u64,
}

/// Where calls for one summary are made from.
pub(crate) struct SummaryCaller<'a> {
    pub(crate) summary_host: &'a SummaryHost,
    pub(crate) session: &'a SessionId,
    pub(crate) host: &'a dyn Host,
    /// Who waits for the summary.
    pub(crate) priority: Priority,
    /// What all calls took so far.
    pub(crate) tally: Mutex<CallTotals>,
}

/// What calls took.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallTotals {
    pub(crate) calls: u64,
    pub(crate) usage: Usage,
    /// `None` once one of them has no price.
    pub(crate) cost_micro_usd: Option<u64>,
}

impl CallTotals {
    fn add(&mut self, usage: Usage, cost_micro_usd: Option<u64>) {
        let before = if self.calls == 0 { Some(0) } else { self.cost_micro_usd };
        self.cost_micro_usd = before.zip(cost_micro_usd).map(|(before, now)| before.saturating_add(now));
        self.calls += 1;
        self.usage += usage;
    }

    pub(crate) fn written_by(&self, route: &SummaryRoute, form: SummaryForm) -> WrittenBy {
        WrittenBy {
            model: route.target.model.clone(),
            provider: route.target.provider.clone(),
            form: form.to_string(),
            calls: self.calls,
            usage: self.usage,
            cost_micro_usd: self.cost_micro_usd,
        }
    }
}

impl SummaryCaller<'_> {
    pub(crate) fn tally(&self) -> MutexGuard<'_, CallTotals> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a call for a summary and reads what comes back.
    pub(crate) async fn ask(&self, ask: SummaryCall<'_>) -> Result<Notes, RouteFailure> {
        let SummaryCall { route, form, call, prompt_tokens, answer_tokens, judge } = ask;
        let errand = CallPurpose {
            task: SUMMARY_TASK,
            failed: format!("no summary ({form})"),
            prompt_tokens,
            answer_tokens,
        };
        let read = |answer: &Answer| {
            read_answer(answer)
                .and_then(|notes| judge(&notes.document).map(|()| notes))
                .map_err(RouteFailure::Defect)
        };
        self.send(route, call, &errand, read).await
    }

    /// Makes a call for one section and reads what comes back.
    pub(crate) async fn ask_section(
        &self,
        ask: SummaryCall<'_>,
        section: Section,
    ) -> Result<SummaryDocument, RouteFailure> {
        let errand = CallPurpose {
            task: SUMMARY_TASK,
            failed: format!("no section {}", section.heading()),
            prompt_tokens: ask.prompt_tokens,
            answer_tokens: ask.answer_tokens,
        };
        let judge = ask.judge;
        let read = |answer: &Answer| {
            read_section(answer, section)
                .and_then(|document| judge(&document).map(|()| document))
                .map_err(RouteFailure::Defect)
        };
        self.send(ask.route, ask.call, &errand, read).await
    }

    /// Makes a call, reads what comes back, and books it.
    pub(crate) async fn send<T>(
        &self,
        route: &SummaryRoute,
        mut call: OutgoingCall,
        errand: &CallPurpose,
        read: impl FnOnce(&Answer) -> Result<T, RouteFailure>,
    ) -> Result<T, RouteFailure> {
        // Signs of life count while a model reads and thinks.
        call.hold_back = HoldBack::UntilBytes;
        call.priority = self.priority;
        let send_state = call.send_state.clone();
        let at_ms = self.host.now_ms();
        let began = Instant::now();
        let longest = errand.answer_tokens.min(u64::from(u32::MAX)) as u32;
        let whole = route.time_limit.saturating_add(LONGEST_TOKEN.saturating_mul(longest));
        let answered = answer_within(&route.target, call, route.time_limit, whole).await;
        let made = CallRecord {
            target: &route.target,
            task: errand.task,
            at_ms,
            latency_ms: millis(began.elapsed()),
        };
        let estimated = |answer: &Answer| Usage {
            input: errand.prompt_tokens,
            output: answer.messages.iter().map(|message| estimate(&route.target, message)).sum(),
            ..Usage::default()
        };
        let (booked, read) = match answered {
            Ok(received) => {
                let used = CallUsage::of(&received.answer, || estimated(&received.answer));
                (made.answered(&received, &used), read(&received.answer))
            }
            Err((failure, arrived)) => {
                let arrived = arrived.as_ref();
                let used = arrived.map(|answer| (answer, CallUsage::of_part(answer, || estimated(answer))));
                (made.failed("", used), Err(failure))
            }
        };
        // A request that was not sent costs nothing.
        if matches!(read, Err(RouteFailure::Postponed)) && send_state.is_queued() {
            return read;
        }
        let error = read.as_ref().err().map(|failure| format!("{}: {failure}", errand.failed));
        self.tally().add(booked.usage, booked.cost_micro_usd);
        self.summary_host.book(self.session, NewCall { error, ..booked }).await;
        read
    }
}

fn estimate(target: &ModelTarget, message: &Message) -> u64 {
    TokenModel::for_model(&target.model, target.wire_format)
        .estimate_content(&ContentProfile::of_message(message))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Waits for an answer as long as its author gives signs of life, and not for ever. With a failure comes what had
/// arrived.
async fn answer_within(
    target: &ModelTarget,
    call: OutgoingCall,
    silence: Duration,
    whole: Duration,
) -> Result<UpstreamAnswer, (RouteFailure, Option<Answer>)> {
    let (pieces, mut heard_of) = mpsc::channel(PIECES_WAITING);
    let cancel = CancellationToken::new();
    let send_state = call.send_state.clone();
    let mut answer = target.upstream.send(call, Some(&pieces), &cancel);
    let mut began = Instant::now();
    let mut heard = began;
    loop {
        // A server that works on other requests first is not silent.
        if let Some(sent_at) = send_state.sent_at() {
            began = began.max(sent_at);
            heard = heard.max(sent_at);
        }
        let deadline = (heard + silence).min(began + whole);
        tokio::select! {
            biased;
            answered = &mut answer => {
                return answered.map_err(|unanswered| {
                    let failure = match unanswered.cause {
                        UpstreamFailureCause::Trouble(trouble) => RouteFailure::Trouble(Box::new(trouble)),
                        // Nothing here cancels it: its slot was needed for a request with a waiting caller.
                        UpstreamFailureCause::Cancelled => RouteFailure::Postponed,
                    };
                    (failure, unanswered.received)
                });
            }
            Some(_) = heard_of.recv() => heard = Instant::now(),
            () = sleep_until(deadline) => {
                let now = Instant::now();
                if send_state.is_queued() {
                    (began, heard) = (now, now);
                    continue;
                }
                if send_state.sent_at().is_some_and(|sent_at| sent_at > heard) {
                    continue;
                }
                let waited = if deadline == began + whole { whole } else { silence };
                return Err((RouteFailure::TookTooLong { waited }, None));
            }
        }
    }
}
