//! Runs the tools of one answer, one after the other: approval, execution, storing the result. Every failure is returned
//! to the model as the result, so that it can correct itself.

use std::time::Duration;

use serde_json::Value;
use throughline_engine::CallOutcome;
use throughline_wire::{StopReason, ToolCall};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Agent;
use crate::approval::Judgement;
use crate::event::{AgentEvent, ToolDone, ToolEnd};
use crate::results::Finished;
use crate::tool::{Proposal, Tool, ToolError, ToolOutput};

const NOT_ALLOWED: &str =
    "The person did not allow this, and nothing was done. Find another way, or ask them what they want.";
const NOT_RUN: &str = "The person stopped the turn before this was run; nothing was done.";
const STOPPED: &str = "The person stopped this while it ran; what it had done until then is done.";
const CUT_OFF: &str = " The answer ended at its limit of output inside these arguments: write less at once, for example in several calls.";

/// The outcome of a call, for the model and for the user.
struct StepOutcome {
    title: String,
    end: ToolEnd,
    output: ToolOutput,
    took: Duration,
}

impl Agent {
    /// Runs the calls of an answer. Each result is stored before the next call runs.
    pub(super) async fn run_calls(
        &mut self,
        calls: &[ToolCall],
        answer: &CallOutcome,
        cancel: &CancellationToken,
    ) {
        self.setup.limit.share_among(calls.len());
        for call in calls {
            let outcome = if cancel.is_cancelled() {
                refused(call, ToolEnd::Stopped, NOT_RUN)
            } else {
                self.run_call(call, answer.answer.stop.reason, calls.len(), cancel).await
            };
            let StepOutcome { title, end, output, took } = outcome;
            self.finished.push(Finished {
                call_id: call.id.clone(),
                images: Finished::pictures(&output.images),
                failed: !matches!(end, ToolEnd::Done | ToolEnd::EndedBadly(_)),
                text: output.text,
            });
            self.keep_finished().await;
            self.tell_finished(call, title, end, took, output.shown);
        }
    }

    /// Runs a call that is not part of the conversation.
    pub(super) async fn run_beside(&mut self, call: &ToolCall, cancel: &CancellationToken) {
        let StepOutcome { title, end, output, took } =
            self.run_call(call, StopReason::ToolCalls, 1, cancel).await;
        self.tell_finished(call, title, end, took, output.shown);
    }

    fn tell_finished(
        &self,
        call: &ToolCall,
        title: String,
        end: ToolEnd,
        took: Duration,
        shown: Option<String>,
    ) {
        self.setup.events.tell(AgentEvent::ToolFinished(Box::new(ToolDone {
            tool: call.name.clone(),
            title,
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            end,
            shown,
        })));
    }

    async fn run_call(
        &mut self,
        call: &ToolCall,
        stop: StopReason,
        calls_in_step: usize,
        cancel: &CancellationToken,
    ) -> StepOutcome {
        let arguments = match arguments_of(call, stop) {
            Ok(arguments) => arguments,
            Err(words) => return refused(call, ToolEnd::Failed(words.clone()), &words),
        };
        if self.engine_tools.iter().any(|schema| schema.name == call.name) {
            return self.run_engine_tool(call, arguments, calls_in_step).await;
        }
        let tool = match self.setup.tools.find(&call.name) {
            Ok(tool) => std::sync::Arc::clone(tool),
            Err(error) => return failed(call, &error),
        };
        let proposal = match tool.propose(&arguments) {
            Ok(proposal) => proposal,
            Err(error) => return failed(call, &error),
        };
        let allowed = match self.approvals.judge(&proposal) {
            Judgement::Allowed => true,
            Judgement::Denied(why) => {
                let words = format!("This was not done: {why}.");
                return StepOutcome { title: proposal.title, ..refused(call, ToolEnd::Denied, &words) };
            }
            Judgement::Ask(question) => {
                let answer = tokio::select! {
                    biased;
                    () = cancel.cancelled() => None,
                    answer = self.setup.approver.ask(&question) => Some(answer),
                };
                let Some(answer) = answer else {
                    return StepOutcome { title: proposal.title, ..refused(call, ToolEnd::Stopped, NOT_RUN) };
                };
                self.approvals.answered(&question, answer)
            }
        };
        if !allowed {
            return StepOutcome { title: proposal.title, ..refused(call, ToolEnd::Denied, NOT_ALLOWED) };
        }
        self.setup
            .events
            .tell(AgentEvent::ToolStarted { tool: call.name.clone(), title: proposal.title.clone() });
        let began = Instant::now();
        let ran = run_as_proposed(tool.as_ref(), &arguments, &proposal, cancel).await;
        let outcome = match ran {
            Ok(output) => {
                let end = output.trouble.clone().map_or(ToolEnd::Done, ToolEnd::EndedBadly);
                StepOutcome { title: proposal.title, end, output, took: Duration::ZERO }
            }
            Err(ToolError::Stopped) => {
                StepOutcome { title: proposal.title, ..refused(call, ToolEnd::Stopped, STOPPED) }
            }
            Err(error) => StepOutcome { title: proposal.title, ..failed(call, &error) },
        };
        StepOutcome { took: began.elapsed(), ..outcome }
    }

    async fn run_engine_tool(&self, call: &ToolCall, arguments: Value, calls_in_step: usize) -> StepOutcome {
        let began = Instant::now();
        self.setup.events.tell(AgentEvent::ToolStarted { tool: call.name.clone(), title: call.name.clone() });
        let outcome = match self.session.handle_tool_call(&call.name, arguments, calls_in_step).await {
            Ok(answer) if !answer.is_error => StepOutcome {
                title: call.name.clone(),
                end: ToolEnd::Done,
                output: ToolOutput::text(answer.text),
                took: Duration::ZERO,
            },
            Ok(answer) => refused(call, ToolEnd::Failed(answer.text.clone()), &answer.text),
            Err(error) => refused(call, ToolEnd::Failed(error.to_string()), &error.to_string()),
        };
        StepOutcome { took: began.elapsed(), ..outcome }
    }
}

/// Runs a tool if its effects are still the approved ones: files and links may have changed while the user decided.
async fn run_as_proposed(
    tool: &dyn Tool,
    arguments: &Value,
    allowed: &Proposal,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    if tool.propose(arguments)? != *allowed {
        return Err(ToolError::Failed(
            "what this would do has changed since it was allowed, so it was not done; look again and repeat it"
                .to_owned(),
        ));
    }
    tool.run(arguments, cancel).await
}

/// Parses the arguments; an empty text counts as no arguments.
fn arguments_of(call: &ToolCall, stop: StopReason) -> Result<Value, String> {
    if call.arguments.trim().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    serde_json::from_str(&call.arguments).map_err(|error| {
        let cut_off = matches!(stop, StopReason::OutputLimit | StopReason::WindowLimit);
        let why = if cut_off { CUT_OFF } else { "" };
        format!("The arguments of `{}` are not valid JSON: {error}.{why}", call.name)
    })
}

fn failed(call: &ToolCall, error: &ToolError) -> StepOutcome {
    let words = error.to_string();
    refused(call, ToolEnd::Failed(words.clone()), &words)
}

fn refused(call: &ToolCall, end: ToolEnd, words: &str) -> StepOutcome {
    StepOutcome { title: call.name.clone(), end, output: ToolOutput::text(words), took: Duration::ZERO }
}
