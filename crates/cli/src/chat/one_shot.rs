//! One question and one answer: for scripts and pipes.

use std::sync::Arc;

use serde_json::json;
use throughline_agent::{Agent, Answer, AnswerFuture, ApprovalMode, Approver, DenyAll, Question};
use throughline_engine::SessionError;
use throughline_wire::StopReason;
use tokio_util::sync::CancellationToken;

use super::approval_prompt::{answer_of, not_an_answer, question_words};
use super::args::ChatArgs;
use super::error::failure_of;
use super::interrupts::Interrupts;
use super::named_model::{self, ModelChoice};
use super::repl;
use super::screen::{Audience, Screen};
use super::setup::{ChatSetup, Frontend};
use crate::app::App;
use crate::error::{CliError, Exit};
use crate::ui::output::print_json;

/// Asks for approvals on stderr, because stdout is for the answer.
struct StderrApprover(Arc<App>);

impl Approver for StderrApprover {
    fn ask<'a>(&'a self, question: &'a Question) -> AnswerFuture<'a> {
        Box::pin(async move {
            let app = Arc::clone(&self.0);
            let words =
                format!("{}allow? [y] this once, [n] no: ", question_words(question, app.columns_now()));
            let typed = tokio::task::spawn_blocking(move || ask(&app, words)).await.ok().flatten();
            typed.unwrap_or(Answer::Deny)
        })
    }
}

/// Asks until there is a valid answer; `None` at the end of the input.
fn ask(app: &App, mut words: String) -> Option<Answer> {
    loop {
        let typed = app.ask(&words)?;
        match answer_of(&typed, ONLY_ONCE) {
            Some(answer) => return Some(answer),
            None => words = format!("{}\nallow? [y] this once, [n] no: ", not_an_answer(&typed, ONLY_ONCE)),
        }
    }
}

/// Answers apply once: a one-shot run has no later turns.
const ONLY_ONCE: bool = false;

/// The stop reason in the JSON output.
fn stop_name(stop: StopReason) -> &'static str {
    match stop {
        StopReason::EndOfTurn | StopReason::StopSequence => "end_of_turn",
        StopReason::OutputLimit => "output_limit",
        StopReason::WindowLimit => "window_limit",
        StopReason::Refused => "refused",
        StopReason::ToolCalls => "tool_calls",
        StopReason::Paused => "paused",
        StopReason::Compacted => "compacted",
        StopReason::Cancelled => "cancelled",
        StopReason::Other | StopReason::Unstated => "unstated",
    }
}

/// Asks the question and prints the answer.
pub(super) async fn run(setup: &ChatSetup, args: &ChatArgs, question: &str) -> Result<(), CliError> {
    let audience = if args.json { Audience::Program } else { Audience::Script };
    let screen = Arc::new(Screen::new(&setup.app, audience));
    let approver: Arc<dyn Approver> = match setup.asking() {
        ApprovalMode::Always => Arc::new(StderrApprover(Arc::clone(&setup.app))),
        ApprovalMode::Never | ApprovalMode::Nobody => Arc::new(DenyAll),
    };
    let frontend = Frontend { approver, events: Arc::<Screen>::clone(&screen) };
    let (wish, naming) = (setup.wish(args.model.as_deref()), ModelChoice::of(args, setup));
    let opened = repl::open(setup, wish, naming, args.resume.as_deref(), frontend).await?;
    if naming != ModelChoice::Model
        && let Some(endpoint) = &opened.connected.at.endpoint
        && let Some(warning) = named_model::warning(setup, &opened.connected.at.model, endpoint).await
    {
        setup.app.warn(&warning);
    }
    let mut agent: Agent = opened.agent;
    let cancel = CancellationToken::new();
    let mut interrupts = Interrupts::listen();
    let done = {
        let turn = agent.turn(question, &cancel);
        tokio::pin!(turn);
        loop {
            tokio::select! {
                done = &mut turn => break done,
                _ = interrupts.next() => {
                    if cancel.is_cancelled() {
                        return Err(failure_of(SessionError::Cancelled));
                    }
                    cancel.cancel();
                }
            }
        }
    };
    screen.rest();
    let done = done.map_err(|error| {
        let failure = failure_of(error);
        let id = agent.session().id();
        match agent.unanswered() {
            Some(_) => failure.hint(format!(
                "the question is recorded: repeat it with --resume {id} to retry without recording it twice"
            )),
            None => failure,
        }
    })?;
    if args.json {
        let usage = done.usage;
        print_json(
            &setup.app,
            &json!({
                "session": agent.session().id().as_str(),
                "model": opened.connected.at.model,
                "text": done.text,
                "stop": stop_name(done.stop),
                "calls": done.calls,
                "tools": done.tools,
                "usage": {
                    "input": usage.input,
                    "cache_read": usage.cache_read,
                    "cache_write": usage.cache_write,
                    "output": usage.output,
                },
                "cost_micro_usd": (done.unpriced == 0).then_some(done.cost_micro_usd),
                "context": {
                    "tokens": agent.session().pressure().tokens,
                    "threshold_tokens": agent.session().pressure().threshold_tokens,
                    "window_tokens": agent.session().pressure().window_tokens,
                    "window_origin": agent.session().limits_in_use().window_origin,
                    "is_measured": agent.session().last_prompt_tokens().is_some(),
                },
            }),
        )?;
    }
    if done.text.trim().is_empty() {
        return Err(CliError::new(Exit::Unanswered, "the model returned an empty answer"));
    }
    Ok(())
}
