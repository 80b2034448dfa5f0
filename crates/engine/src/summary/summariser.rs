//! Summaries by models: tries the routes in order until one returns a summary.
//!
//! Models named in the settings are called standalone. The conversation's own model is called before or after them, or never, in the
//! cheaper form. A route that fails is skipped for a while, depending on the kind of failure. If no route is left, the caller postpones the
//! compaction or uses rules.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use throughline_compaction::{
    Account, Maker, RuleSummariser, SummariseError, Summariser, SummaryDocument, SummaryFuture,
    SummaryRequest, summarise_all,
};
use throughline_provider::{Priority, ProviderErrorKind};
use throughline_redact::Redactor;
use throughline_store::{Millis, SessionId};
use throughline_tokens::TokenModel;

use super::call::{CallTotals, SummaryCall, SummaryCaller};
use super::failure::{FailedRoute, RouteFailure, all_failed};
use super::form::{FormChoice, FormFacts, InlineObstacle, SummaryForm, choose_form};
use super::host::SummaryHost;
use super::inline::InlineCall;
use super::parse::Notes;
use super::prompt::SummaryBrief;
use super::quote_mark::QuoteMark;
use super::route::{RouteHealth, SummaryRoute};
use super::source::{ModelAnswerFuture, ModelQuestion, SummariserSource};
use super::standalone::{AttemptLog, StandaloneCall, carry_rules, is_shorter};
use super::transcript::RenderedTranscript;
use crate::context_engine::outcome::CompressRequest;
use crate::decide::trigger::Trigger;
use crate::host::Host;
use crate::prompt::cached_prompt::CachedPrompt;

/// How many smaller windows are tried after refusals.
const MOST_SMALLER_WINDOWS: u32 = 2;
/// If a refusal states no window, the next attempt assumes this percentage of the previous window.
const SMALLER_PERCENT: u64 = 60;

/// When to call the conversation's own model for a summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OwnModel {
    /// Before all others.
    First,
    /// After all others.
    #[default]
    Last,
    /// Before all others, with the credentials of the client's last call. Not called if there was no such call, or if it used a
    /// subscription login.
    ByClientKey,
    /// Never.
    Never,
}

/// The parts and settings of summaries by models.
#[derive(Clone)]
pub struct SummarySetup {
    /// Other models to call, in this order.
    pub routes: Vec<SummaryRoute>,
    /// When to call the conversation's own model.
    pub own_model: OwnModel,
    /// How long the conversation's own model may be silent.
    pub time_limit: Duration,
    /// Masks secrets in quoted text.
    pub redactor: Option<Redactor>,
    /// Time and random numbers.
    pub host: Arc<dyn Host>,
    /// The recent failures of routes, shared by all conversations.
    pub health: Arc<RouteHealth>,
}

/// The summarisers of one conversation that call models.
#[derive(Clone)]
pub struct ModelSummaries {
    setup: SummarySetup,
    summary_host: Arc<SummaryHost>,
}

impl ModelSummaries {
    /// Creates the summaries for a conversation without a call so far.
    #[must_use]
    pub fn new(setup: SummarySetup) -> Self {
        Self { setup, summary_host: Arc::default() }
    }

    pub(super) fn parts(&self) -> (&SummarySetup, &SummaryHost) {
        (&self.setup, &self.summary_host)
    }

    /// Returns the models to call, in order.
    pub(super) fn routes(&self) -> Vec<SummaryRoute> {
        let mut routes = self.setup.routes.clone();
        let place = match self.setup.own_model {
            OwnModel::First | OwnModel::ByClientKey => 0,
            OwnModel::Last => routes.len(),
            OwnModel::Never => return routes,
        };
        if let Some(target) = self.summary_host.target()
            && !routes.iter().any(|route| route.is(&target))
        {
            routes.insert(place, SummaryRoute { target, time_limit: self.setup.time_limit });
        }
        routes
    }
}

impl SummariserSource for ModelSummaries {
    fn summariser_for(&self, request: &CompressRequest) -> Arc<dyn Summariser> {
        if self.setup.own_model == OwnModel::ByClientKey
            && self.setup.routes.is_empty()
            && !request.conversation.cached_prompt.as_ref().is_some_and(carries_key)
        {
            return Arc::new(RuleSummariser);
        }
        Arc::new(ModelSummariser {
            setup: self.setup.clone(),
            summary_host: Arc::clone(&self.summary_host),
            routes: self.routes(),
            session: request.conversation.session.clone(),
            cached_prompt: request.conversation.cached_prompt.clone(),
            memory: request.memory_context.clone(),
            rest: if request.trigger == Trigger::Manual { Rest::Ignored } else { Rest::Kept },
            priority: priority_of(request.trigger),
            account: Mutex::default(),
        })
    }

    fn summary_host(&self) -> Option<Arc<SummaryHost>> {
        Some(Arc::clone(&self.summary_host))
    }

    fn can_answer(&self) -> bool {
        !self.routes().is_empty()
    }

    fn answer<'a>(&'a self, question: &'a ModelQuestion<'a>) -> ModelAnswerFuture<'a> {
        Box::pin(self.ask(question))
    }
}

/// Whether routes that failed recently are skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    /// They are.
    Kept,
    /// They are not: the user requested the summary, and may have fixed the cause.
    Ignored,
}

/// Writes the summary of one compaction.
struct ModelSummariser {
    setup: SummarySetup,
    summary_host: Arc<SummaryHost>,
    routes: Vec<SummaryRoute>,
    session: SessionId,
    cached_prompt: Option<CachedPrompt>,
    memory: Option<String>,
    rest: Rest,
    priority: Priority,
    account: Mutex<Account>,
}

/// What is the same for every route.
struct SummaryWork<'a> {
    request: &'a SummaryRequest<'a>,
    rendered: RenderedTranscript,
    desk: SummaryCaller<'a>,
    today: String,
    failed: Vec<FailedRoute>,
}

/// A summary with the way it was made.
struct SummaryResult {
    document: SummaryDocument,
    form: SummaryForm,
    happened: AttemptLog,
}

impl ModelSummariser {
    fn account_mut(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn write(&self, request: &SummaryRequest<'_>) -> Result<SummaryDocument, SummariseError> {
        let redactor = self.setup.redactor.as_ref();
        let host = self.setup.host.as_ref();
        let mut work = SummaryWork {
            request,
            rendered: RenderedTranscript::of(request, redactor),
            desk: SummaryCaller {
                summary_host: &self.summary_host,
                session: &self.session,
                host,
                priority: self.priority,
                tally: Mutex::new(CallTotals::default()),
            },
            today: day_of(host.now_ms()),
            failed: Vec::new(),
        };
        for route in &self.routes {
            let key = route.key(SummaryForm::Standalone);
            let resting = self.setup.health.resting(&key, host.now_ms());
            if let Some(failure) = resting.filter(|_| self.rest == Rest::Kept) {
                work.failed.push(FailedRoute { route: route.to_string(), failure });
                continue;
            }
            match self.follow(route, &mut work).await {
                Ok(summarised) => {
                    self.setup.health.worked(&key);
                    self.settle(route, &summarised, &work);
                    return Ok(summarised.document);
                }
                Err(RouteFailure::Postponed) => {
                    // The server is needed for others: the next model would not help, and this one has not failed.
                    self.account_mut().postponed = true;
                    return Err(SummariseError::Transient(RouteFailure::Postponed.to_string()));
                }
                Err(failure) => {
                    self.setup.health.failed(key, &failure, host.now_ms());
                    work.failed.push(FailedRoute { route: route.to_string(), failure });
                }
            }
        }
        Err(self.masked(all_failed(&work.failed)))
    }

    /// Masks secrets in messages of providers and models that users see.
    fn masked(&self, error: SummariseError) -> SummariseError {
        let mask = |words: String| match &self.setup.redactor {
            Some(redactor) => redactor.redact(&words).into_owned(),
            None => words,
        };
        match error {
            SummariseError::Transient(words) => SummariseError::Transient(mask(words)),
            SummariseError::Permanent(words) => SummariseError::Permanent(mask(words)),
            SummariseError::Unusable(words) => SummariseError::Unusable(mask(words)),
            too_small @ SummariseError::WindowTooSmall { .. } => too_small,
        }
    }

    fn settle(&self, route: &SummaryRoute, summarised: &SummaryResult, work: &SummaryWork<'_>) {
        let mut account = self.account_mut();
        account.written_by = Some(work.desk.tally().written_by(route, summarised.form));
        for failed in &work.failed {
            let note = format!("the summary was not written by {failed}");
            let redactor = self.setup.redactor.as_ref();
            account.notes.push(redactor.map_or(note.clone(), |redactor| redactor.redact(&note).into_owned()));
        }
        let mut missing: Vec<&str> =
            summarised.happened.missing.iter().map(|section| section.heading()).collect();
        missing.dedup();
        if !missing.is_empty() {
            account.notes.push(format!(
                "{} left out of its summary: {}; taken to have nothing to say there",
                route.target.model,
                missing.join(", ")
            ));
        }
    }

    /// Calls one model, in the cheaper form if both are possible.
    async fn follow(
        &self,
        route: &SummaryRoute,
        work: &mut SummaryWork<'_>,
    ) -> Result<SummaryResult, RouteFailure> {
        let inline = self.inline(route, work);
        let choice = self.choose(route, work, inline.as_ref().map_err(|reason| *reason));
        if let (SummaryForm::Inline, Ok(inline)) = (choice.form, inline) {
            match self.ask_riding(route, inline, work).await {
                Ok(summarised) => {
                    self.setup.health.worked(&route.key(SummaryForm::Inline));
                    return Ok(summarised);
                }
                Err(failure) if !worth_asking_apart(&failure) => return Err(failure),
                Err(failure) => {
                    let key = route.key(SummaryForm::Inline);
                    self.setup.health.failed(key, &failure, self.setup.host.now_ms());
                    let route = format!("{route} ({})", SummaryForm::Inline);
                    work.failed.push(FailedRoute { route, failure });
                }
            }
        }
        self.ask_apart(route, work).await
    }

    fn choose(
        &self,
        route: &SummaryRoute,
        work: &SummaryWork<'_>,
        inline: Result<&InlineCall, InlineObstacle>,
    ) -> FormChoice {
        let standalone = self.standalone(route, work, self.window_of(route));
        let (standalone_tokens, standalone_calls) = standalone.size(work.request);
        choose_form(&FormFacts {
            model: &route.target.model,
            provider: &route.target.provider,
            at_ms: self.setup.host.now_ms(),
            answer_tokens: work.request.budget_tokens,
            inline: inline.map(|inline| (inline.cached_tokens, inline.new_tokens)),
            standalone_tokens,
            standalone_calls,
        })
    }

    fn window_of(&self, route: &SummaryRoute) -> u64 {
        let believed = route.target.policy.window_tokens;
        self.setup
            .health
            .learnt_window(&route.key(SummaryForm::Standalone))
            .map_or(believed, |learnt| learnt.min(believed))
    }

    /// Returns the inline call if this is the conversation's own model.
    fn inline(&self, route: &SummaryRoute, work: &SummaryWork<'_>) -> Result<InlineCall, InlineObstacle> {
        let main = self.summary_host.target();
        if !main.is_some_and(|main| route.is(&main)) {
            return Err(InlineObstacle::OtherModel);
        }
        let cached_prompt = self.cached_prompt.as_ref().ok_or(InlineObstacle::NotSent)?;
        if !route.is(cached_prompt.target()) {
            return Err(InlineObstacle::OtherModel);
        }
        let host = self.setup.host.as_ref();
        let resting = self.setup.health.resting(&route.key(SummaryForm::Inline), host.now_ms());
        if resting.is_some() && self.rest == Rest::Kept {
            return Err(InlineObstacle::FailedLately);
        }
        let earlier = work.request.earlier.map(SummaryDocument::to_markdown);
        let texts = [self.memory.as_deref(), work.request.focus, earlier.as_deref()];
        let mark = QuoteMark::draw(&|| host.random(), texts.into_iter().flatten());
        let brief = SummaryBrief {
            mark: &mark,
            budget_tokens: work.request.budget_tokens,
            today: &work.today,
            focus: work.request.focus,
            manner: work.request.manner,
            memory: self.memory.as_deref(),
            problem: None,
        };
        InlineCall::on(cached_prompt, work.request, &brief, self.window_of(route), host.now_ms())
    }

    async fn ask_riding(
        &self,
        route: &SummaryRoute,
        inline: InlineCall,
        work: &SummaryWork<'_>,
    ) -> Result<SummaryResult, RouteFailure> {
        let ask = SummaryCall {
            route,
            form: SummaryForm::Inline,
            prompt_tokens: inline.prompt_tokens(),
            answer_tokens: inline.answer_tokens,
            call: inline.call,
            judge: &|document| is_shorter(document, work.request, &work.request.span),
        };
        let Notes { mut document, missing } = work.desk.ask(ask).await?;
        if let Some(earlier) = work.request.earlier {
            carry_rules(&mut document, earlier);
        }
        let happened = AttemptLog { failure: None, missing };
        Ok(SummaryResult { document, form: SummaryForm::Inline, happened })
    }

    fn standalone<'a>(
        &'a self,
        route: &'a SummaryRoute,
        work: &'a SummaryWork<'_>,
        window_tokens: u64,
    ) -> StandaloneCall<'a> {
        StandaloneCall {
            route,
            desk: &work.desk,
            rendered: &work.rendered,
            redactor: self.setup.redactor.as_ref(),
            memory: self.memory.as_deref(),
            today: &work.today,
            window_tokens,
            token_model: TokenModel::for_model(&route.target.model, route.target.wire_format),
            extras: self.cached_prompt.as_ref().filter(|prompt| route.is(prompt.target())),
            whole: work.request.span.clone(),
            happened: Mutex::default(),
        }
    }

    /// Calls a model standalone, in smaller parts after a refusal that implies a smaller window.
    async fn ask_apart(
        &self,
        route: &SummaryRoute,
        work: &SummaryWork<'_>,
    ) -> Result<SummaryResult, RouteFailure> {
        let mut window_tokens = self.window_of(route);
        let mut left = MOST_SMALLER_WINDOWS;
        loop {
            let standalone = self.standalone(route, work, window_tokens);
            let summarised = summarise_all(&standalone, work.request.clone()).await;
            let happened = standalone.into_happened();
            let error = match summarised {
                Ok(document) => {
                    return Ok(SummaryResult { document, form: SummaryForm::Standalone, happened });
                }
                Err(error) => error,
            };
            let failure = happened.failure.unwrap_or_else(|| failure_of(error));
            match smaller_window(&failure, window_tokens) {
                Some(smaller) if left > 0 => {
                    left -= 1;
                    window_tokens = smaller;
                    self.setup.health.learn_window(route.key(SummaryForm::Standalone), smaller);
                }
                _ => return Err(failure),
            }
        }
    }
}

/// The prefix of the subscription tokens with which Anthropic's clients log in.
const SUBSCRIPTION_TOKEN: &str = "sk-ant-oat";
/// The header in which Codex names the subscription's account.
const SUBSCRIPTION_HEADER: &str = "chatgpt-account-id";

/// Whether the last call carried an API key, or no credentials because the upstream has its own.
fn carries_key(prompt: &CachedPrompt) -> bool {
    let headers = &prompt.extras().headers;
    let is_subscription = headers.iter().any(|(name, value)| {
        name.eq_ignore_ascii_case(SUBSCRIPTION_HEADER) || value.contains(SUBSCRIPTION_TOKEN)
    });
    !is_subscription && prompt.target().provider != "openai-codex"
}

/// Returns the priority of a summary: background while the conversation continues or is idle.
fn priority_of(trigger: Trigger) -> Priority {
    match trigger {
        Trigger::Ahead | Trigger::Idle => Priority::Background,
        Trigger::Preflight
        | Trigger::Settle
        | Trigger::Overflow
        | Trigger::Manual
        | Trigger::ModelSwitch
        | Trigger::Hygiene
        | Trigger::ColdCache => Priority::Foreground,
    }
}

/// Converts the failure of splitting without a call.
fn failure_of(error: SummariseError) -> RouteFailure {
    match error {
        SummariseError::WindowTooSmall { window_tokens, needed_tokens } => {
            RouteFailure::WindowTooSmall { window_tokens, needed_tokens }
        }
        other => RouteFailure::NotWritable(other.to_string()),
    }
}

/// Returns the window to assume after a refusal for length.
fn smaller_window(failure: &RouteFailure, window_tokens: u64) -> Option<u64> {
    let RouteFailure::Trouble(trouble) = failure else { return None };
    let share = window_tokens.saturating_mul(SMALLER_PERCENT) / 100;
    match trouble.kind {
        ProviderErrorKind::PromptTooLong { window_tokens: stated, .. } => {
            Some(stated.filter(|stated| *stated < window_tokens).unwrap_or(share))
        }
        ProviderErrorKind::OverAllowance { allowed_tokens, .. } => {
            Some(allowed_tokens.filter(|allowed| *allowed < window_tokens).unwrap_or(share))
        }
        ProviderErrorKind::PayloadTooLarge { .. } => Some(share),
        _ => None,
    }
}

/// Whether a standalone request may succeed after an inline one failed: because the model misunderstood, or the request was too large. A
/// model that is down is down for both.
fn worth_asking_apart(failure: &RouteFailure) -> bool {
    match failure {
        RouteFailure::Defect(_) | RouteFailure::NotWritable(_) => true,
        RouteFailure::Trouble(trouble) => matches!(
            trouble.kind,
            ProviderErrorKind::PromptTooLong { .. }
                | ProviderErrorKind::OutputCapTooLarge { .. }
                | ProviderErrorKind::PayloadTooLarge { .. }
                | ProviderErrorKind::OverAllowance { .. }
                | ProviderErrorKind::ImageRefused { .. }
                | ProviderErrorKind::ContentPolicy
                | ProviderErrorKind::MalformedRequest { .. }
        ),
        RouteFailure::TookTooLong { .. }
        | RouteFailure::WindowTooSmall { .. }
        | RouteFailure::Resting { .. }
        | RouteFailure::Postponed => false,
    }
}

/// Returns the UTC date of a time.
fn day_of(now_ms: Millis) -> String {
    let moment = jiff::Timestamp::from_millisecond(now_ms).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    moment.strftime("%Y-%m-%d").to_string()
}

impl Summariser for ModelSummariser {
    fn name(&self) -> &str {
        self.routes.first().map_or("no model", |route| route.target.model.as_str())
    }

    fn maker(&self) -> Maker {
        Maker::Model
    }

    /// Each route splits by its own window.
    fn window_tokens(&self) -> Option<u64> {
        None
    }

    fn summarise<'a>(&'a self, request: SummaryRequest<'a>) -> SummaryFuture<'a> {
        Box::pin(async move { self.write(&request).await })
    }

    fn account(&self) -> Account {
        self.account_mut().clone()
    }
}

#[cfg(test)]
#[path = "summariser_tests.rs"]
mod tests;
