//! One call for a summary: sent with a time limit, parsed and recorded.

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

/// The task under which calls for summaries are recorded.
const SUMMARY_TASK: &str = "compression";

/// The capacity of the channel for pieces of an answer.
const PIECES_WAITING: usize = 64;
/// The time limit for each token of an answer, in addition to the limit on silence: even a slow model writes ten tokens per second.
const LONGEST_TOKEN: Duration = Duration::from_millis(100);

/// A call to make for a summary.
pub(crate) struct SummaryCall<'a> {
    pub(crate) route: &'a SummaryRoute,
    pub(crate) form: SummaryForm,
    pub(crate) call: OutgoingCall,
    /// The estimated size of the prompt, used if the provider does not count it.
    pub(crate) prompt_tokens: u64,
    /// The maximum tokens of the answer.
    pub(crate) answer_tokens: u64,
    /// A further check of the summary.
    pub(crate) judge: &'a (dyn Fn(&SummaryDocument) -> Result<(), SummaryDefect> + Sync),
}

/// The purpose of a call.
pub(crate) struct CallPurpose {
    /// The task under which it is recorded.
    pub(crate) task: &'static str,
    /// The text that precedes the reason in the record of a failure.
    pub(crate) failed: String,
    /// The estimated size of the prompt, used if the provider does not count it.
    pub(crate) prompt_tokens: u64,
    /// The maximum tokens of the answer.
    pub(crate) answer_tokens: u64,
}

/// Makes the calls for one summary.
pub(crate) struct SummaryCaller<'a> {
    pub(crate) summary_host: &'a SummaryHost,
    pub(crate) session: &'a SessionId,
    pub(crate) host: &'a dyn Host,
    /// The priority of the calls.
    pub(crate) priority: Priority,
    /// The totals of all calls so far.
    pub(crate) tally: Mutex<CallTotals>,
}

/// Totals of several calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallTotals {
    pub(crate) calls: u64,
    pub(crate) usage: Usage,
    /// The cost; `None` once the price of one call is unknown.
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

    /// Makes a call for a summary and parses the answer.
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

    /// Makes a call for one section and parses the answer.
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

    /// Makes a call, parses the answer, and records both.
    pub(crate) async fn send<T>(
        &self,
        route: &SummaryRoute,
        mut call: OutgoingCall,
        errand: &CallPurpose,
        read: impl FnOnce(&Answer) -> Result<T, RouteFailure>,
    ) -> Result<T, RouteFailure> {
        // Count any bytes as a sign of life while a model reads and reasons.
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

/// Waits for an answer as long as the model sends anything, up to the time limit of the whole. A failure comes with the part received so
/// far.
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
        // Time in a server's queue does not count as silence.
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
                        // Only a foreground request that needs its slot cancels it.
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
