//! The interactive loop of a conversation at a terminal.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use owo_colors::OwoColorize as _;
use throughline_agent::{Agent, Answer, AnswerFuture, Approver, Question};
use throughline_engine::{CompactionResult, SessionError};
use throughline_models::ModelSpec;
use throughline_store::{CallFilter, Dependants, SessionFilter, UsageOverview};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use super::approval_prompt::{answer_of, not_an_answer, question_words};
use super::args::ChatArgs;
use super::commands::{self, AfterCommand};
use super::editor::{EditorEvent, LineEditor, PROMPT, ask_line};
use super::error::failure_of;
use super::first_run;
use super::interrupts::Interrupts;
use super::keyboard::Keyboard;
use super::named_model::ModelChoice;
use super::screen::{Audience, Screen};
use super::setup::{ChatSetup, ConnectedModel, Frontend};
use super::slash::{self, ParsedLine};
use super::status_line;
use crate::app::{ActiveSession, App, report_failure};
use crate::error::CliError;
use crate::model_client::model_problem;
use crate::model_client::{boxed, client};
use crate::record::OpenRecord;
use crate::ui::text::{counted, printable, wrap};

/// The number of sessions offered as completions.
const SESSIONS_OFFERED: usize = 50;
/// The shortest wait before a compaction, even if the cache has expired: the user may be about to type.
const LEAST_IDLE: Duration = Duration::from_secs(2);
/// The number of compactions from which a note warns that details fade; shown once per conversation.
const FADES_FROM: u64 = 2;

const ONCE_MORE: &str = "press Ctrl-C again, Ctrl-D or type /quit to leave; the conversation is recorded";

/// An open conversation.
pub(super) struct OpenSession {
    pub(super) agent: Agent,
    pub(super) connected: ConnectedModel,
    pub(super) wish: ModelSpec,
    /// A description of the resumed conversation; `None` for a new one.
    pub(super) resumed: Option<String>,
}

/// Starts a conversation, or resumes one.
pub(super) async fn open(
    setup: &ChatSetup,
    wish: ModelSpec,
    naming: ModelChoice,
    resume: Option<&str>,
    frontend: Frontend,
) -> Result<OpenSession, CliError> {
    let known = match resume {
        Some(reference) => {
            let record = OpenRecord::open_to_read(&setup.app, reference)?;
            let tip = record.tip(reference)?;
            let name = record.name_of(&tip)?;
            Some((tip, name))
        }
        None => None,
    };
    let wire = known.as_ref().map(|(tip, _)| tip.wire_format);
    let wish = first_run::complete(setup, wish, naming).await?;
    let connected = setup.connect(&wish, wire).await?;
    if let Some(unused) = &connected.at.unused_window {
        setup.app.note(unused);
    }
    match known {
        None => {
            let new = setup.new_session(&connected);
            let agent_setup = setup.agent_setup(&connected, &wish, &new.id, frontend).await?;
            let prompt = setup.prompt(&agent_setup.tools);
            let agent = Agent::begin(agent_setup, new, &prompt).await.map_err(failure_of)?;
            Ok(OpenSession { agent, connected, wish, resumed: None })
        }
        Some((tip, name)) => {
            let agent_setup = setup.agent_setup(&connected, &wish, &tip.id, frontend).await?;
            let prompt = setup.prompt(&agent_setup.tools);
            let agent = Agent::resume(agent_setup, &tip.id, &prompt).await.map_err(failure_of)?;
            let words = format!(
                "{} with {} so far, {} in view",
                name.as_deref().map_or_else(|| "a conversation".to_owned(), printable),
                counted(tip.next_seq, "message", "messages"),
                agent.session().messages().len()
            );
            Ok(OpenSession { agent, connected, wish, resumed: Some(words) })
        }
    }
}

/// The state of a conversation at a terminal.
pub(super) struct Repl {
    pub(super) setup: ChatSetup,
    pub(super) agent: Agent,
    pub(super) connected: ConnectedModel,
    pub(super) wish: ModelSpec,
    pub(super) screen: Arc<Screen>,
    pub(super) interrupts: Interrupts,
    frontend: Frontend,
    canceller: TurnCanceller,
    keyboard: Keyboard,
    /// Whether the note about fading details was shown.
    warned_of_fading: bool,
}

/// Cancels the current turn; shared with its approval prompts.
#[derive(Clone, Default)]
struct TurnCanceller(Arc<Mutex<CancellationToken>>);

impl TurnCanceller {
    fn renew(&self) -> CancellationToken {
        let token = CancellationToken::new();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = token.clone();
        token
    }

    fn stop(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).cancel();
    }
}

/// Asks for approvals at the terminal.
struct TerminalApprover {
    screen: Arc<Screen>,
    canceller: TurnCanceller,
    keyboard: Keyboard,
}

impl Approver for TerminalApprover {
    fn ask<'a>(&'a self, question: &'a Question) -> AnswerFuture<'a> {
        Box::pin(async move {
            self.screen.question(&question_words(question, self.screen.columns()));
            let for_session = question.for_session;
            let prompt = if for_session {
                self.screen.say(&format!("  [s] allows, until this ends: {}", question.session_words()));
                "allow? [y] this once, [s] for this session, [n] no: "
            } else {
                "allow? [y] this once, [n] no: "
            };
            // Lines typed before the question was visible do not answer it, and are not sent as a message either.
            self.keyboard.take_back_if(|line| answer_of(line, for_session).is_some());
            loop {
                let keyboard = self.keyboard.clone();
                let asking = tokio::task::spawn_blocking(move || {
                    let _reading = keyboard.reading();
                    let typed = ask_line(prompt);
                    keyboard.mark_pastes();
                    typed
                })
                .await;
                let Some(typed) = asking.ok().flatten() else {
                    self.canceller.stop();
                    return Answer::Deny;
                };
                match answer_of(&typed, for_session) {
                    Some(answer) => return answer,
                    None => self.screen.note(&not_an_answer(&typed, for_session)),
                }
            }
        })
    }
}

/// Runs the loop until the user leaves.
pub(super) fn run(setup: ChatSetup, args: &ChatArgs, runtime: &Runtime) -> Result<(), CliError> {
    let app = Arc::clone(&setup.app);
    let screen = Arc::new(Screen::new(&app, Audience::Person));
    let canceller = TurnCanceller::default();
    let interrupts = runtime.block_on(async { Interrupts::listen() });
    let queued_on = Arc::clone(&screen);
    let keyboard = Keyboard::new(interrupts.sender(), Arc::new(move |line: &str| queued_on.queued(line)));
    let (asks, stops, keys) = (Arc::clone(&screen), canceller.clone(), keyboard.clone());
    let approver = TerminalApprover { screen: asks, canceller: stops, keyboard: keys };
    let frontend = Frontend { approver: Arc::new(approver), events: Arc::<Screen>::clone(&screen) };
    let opened = runtime.block_on(boxed(open(
        &setup,
        setup.wish(args.model.as_deref()),
        ModelChoice::of(args, &setup),
        args.resume.as_deref(),
        frontend.clone(),
    )))?;
    let mut line = LineEditor::new(&app.home.join("history"), &setup.folder, app.colour_stdout)?;
    let OpenSession { agent, connected, wish, resumed } = opened;
    let warned_of_fading = agent.session().compactions() >= FADES_FROM;
    let mut repl = Repl {
        setup,
        agent,
        connected,
        wish,
        screen,
        interrupts,
        frontend,
        canceller,
        keyboard,
        warned_of_fading,
    };
    repl.greet(resumed.as_deref());
    runtime.spawn(report_problem(&repl.connected, &app, &repl.screen));
    // Also between two lines, so that typed keys do not appear within an answer.
    let quiet = repl.keyboard.quiet();
    let mut interrupts = 0;
    loop {
        line.offer_sessions(repl.session_names());
        // Ctrl-C between two lines, while nothing reads keys.
        if repl.interrupts.forget() {
            interrupts += 1;
            if interrupts > 1 {
                break;
            }
            repl.screen.note(ONCE_MORE);
        }
        let input = match repl.keyboard.next_queued() {
            Some(text) => {
                line.remember(&text);
                repl.screen.say(&format!("{PROMPT}{text}"));
                EditorEvent::Text(text)
            }
            None => wait_for_person(&mut repl, &mut line, runtime)?,
        };
        let text = match input {
            EditorEvent::Text(text) => text,
            EditorEvent::Cleared => {
                interrupts = 0;
                continue;
            }
            EditorEvent::Interrupted => {
                interrupts += 1;
                if interrupts > 1 {
                    break;
                }
                repl.screen.note(ONCE_MORE);
                continue;
            }
            EditorEvent::End => break,
        };
        interrupts = 0;
        let after = match slash::read(&text) {
            ParsedLine::Words("") => continue,
            ParsedLine::Words(words) => runtime.block_on(boxed(repl.turn(words))),
            ParsedLine::Command(name, arguments) => {
                runtime.block_on(boxed(commands::dispatch(&mut repl, name, arguments)))
            }
            ParsedLine::Unknown { name, nearest } => {
                repl.screen.note(&slash::unknown_words(name, nearest));
                Ok(AfterCommand::GoOn)
            }
        };
        match after {
            Ok(AfterCommand::GoOn) => {}
            Ok(AfterCommand::Leave) => break,
            Err(failure) => {
                repl.screen.rest();
                report_failure(&failure, Some(&app.within_chat()));
                repl.take_queue_back("it failed");
            }
        }
    }
    drop(quiet);
    repl.leave();
    Ok(())
}

/// Checks in the background whether the model can be reached, and reports it if not. The prompt does not wait for it.
fn report_problem(
    connected: &ConnectedModel,
    app: &Arc<App>,
    screen: &Arc<Screen>,
) -> impl Future<Output = ()> + Send + 'static {
    let (endpoint, model) = (connected.at.endpoint.clone(), connected.at.model.clone());
    let (app, screen) = (Arc::clone(app), Arc::clone(screen));
    async move {
        let Some(endpoint) = endpoint else { return };
        // If no client can be created, the call of the model reports the reason.
        let Ok(client) = client(&app, &endpoint) else { return };
        if let Some(wrong) = model_problem(&model, &endpoint, &client).await {
            screen.aside(&wrong);
        }
    }
}

/// Waits for input, and runs idle work of the conversation meanwhile.
fn wait_for_person(
    repl: &mut Repl,
    line: &mut LineEditor,
    runtime: &Runtime,
) -> Result<EditorEvent, CliError> {
    let keyboard = repl.keyboard.clone();
    let before = keyboard.take();
    let screen = Arc::clone(&repl.screen);
    let _typing = screen.typing(line.printer());
    screen.say_later();
    let over = CancellationToken::new();
    std::thread::scope(|scope| {
        let resting = scope.spawn(|| runtime.block_on(boxed(repl.while_waiting(&over))));
        let input = {
            let _reading = keyboard.reading();
            let input = line.read(&before);
            keyboard.mark_pastes();
            input
        };
        over.cancel();
        // The task was cancelled; a panic in it has already been reported.
        let _ = resting.join();
        input
    })
}

impl Repl {
    /// Prints the lines at the start.
    fn greet(&self, resumed: Option<&str>) {
        let width = self.setup.app.columns_now().min(100);
        let mut out = status_line::start(&self.setup, &self.connected, &self.agent, width);
        if let Some(resumed) = resumed {
            out.push_str(&format!("{} {resumed}\n", "resumed".dimmed()));
        }
        let hint = wrap("/help lists commands; Alt-Enter or a trailing \\ starts a new line", width, 0);
        out.push_str(&format!("{}\n", hint.trim_end().dimmed()));
        self.screen.say(&out);
    }

    /// Runs a turn for a message of the user.
    async fn turn(&mut self, words: &str) -> Result<AfterCommand, CliError> {
        let cancel = self.canceller.renew();
        let mut leave = false;
        self.interrupts.forget();
        let done = {
            let turn = self.agent.turn(words, &cancel);
            tokio::pin!(turn);
            loop {
                tokio::select! {
                    biased;
                    count = self.interrupts.next() => {
                        if cancel.is_cancelled() || count > 1 {
                            leave = true;
                            break None;
                        }
                        cancel.cancel();
                        self.screen.stopping();
                    }
                    done = &mut turn => break Some(done),
                }
            }
        };
        self.screen.rest();
        if leave {
            return Ok(AfterCommand::Leave);
        }
        self.warn_of_fading();
        match done {
            Some(Err(SessionError::Cancelled)) => {
                self.screen.note("stopped; everything up to here is recorded");
                self.take_queue_back("you stopped it");
            }
            Some(Err(error)) => {
                let failure = failure_of(error);
                return Err(match self.agent.unanswered() {
                    Some(_) => {
                        failure.hint("your message is recorded: /retry sends it again without repeating it")
                    }
                    None => failure,
                });
            }
            Some(Ok(done)) if done.text.trim().is_empty() => {
                self.screen.note("the model returned an empty answer; try again or rephrase");
            }
            Some(Ok(_)) | None => {}
        }
        self.show_status();
        Ok(AfterCommand::GoOn)
    }

    /// Retries the last unanswered message.
    pub(super) async fn retry(&mut self) -> Result<AfterCommand, CliError> {
        let Some(words) = self.agent.unanswered() else {
            self.screen.note("nothing to retry: your last message was answered");
            return Ok(AfterCommand::GoOn);
        };
        self.turn(&words).await
    }

    /// Moves queued lines back into the input: they are not sent after an incomplete answer.
    pub(super) fn take_queue_back(&self, why: &str) {
        let lines = self.keyboard.take_back();
        if lines > 0 {
            let lines = counted(lines as u64, "queued line", "queued lines");
            self.screen.note(&format!("{lines} back in the input, not sent, because {why}"));
        }
    }

    /// Runs while the user is idle: reports a prepared summary when it is ready, and may compact the older part once the provider's cache
    /// has expired.
    async fn while_waiting(&mut self, over: &CancellationToken) {
        if self.agent.session().is_preparing() {
            tokio::select! {
                () = over.cancelled() => return,
                () = self.agent.until_prepared() => {}
            }
        }
        while let Some(wait) = self.agent.idle_in() {
            tokio::select! {
                () = over.cancelled() => return,
                () = tokio::time::sleep(wait.max(LEAST_IDLE)) => {}
            }
            match self.agent.while_idle(over).await {
                Some(CompactionResult::Completed(_)) => {
                    self.warn_of_fading();
                    self.show_status();
                }
                // Events have already shown the result.
                Some(_) => {}
                None if over.is_cancelled() => {
                    self.screen
                        .note("compaction cancelled because you continued; the conversation is unchanged");
                }
                None => {}
            }
        }
        over.cancelled().await;
    }

    /// Shows the note about fading details once, after the second compaction.
    pub(super) fn warn_of_fading(&mut self) {
        let compactions = self.agent.session().compactions();
        if !self.warned_of_fading && compactions >= FADES_FROM {
            self.warned_of_fading = true;
            self.screen.note(&status_line::fading(compactions));
        }
    }

    /// The model, window and size of this conversation, for commands about it.
    pub(super) fn active_session(&self) -> ActiveSession {
        let session = self.agent.session();
        ActiveSession { limits: session.limits_in_use(), pending: Some(session.size()) }
    }

    /// Shows the status line.
    pub(super) fn show_status(&self) {
        let width = self.setup.app.columns_now();
        self.screen.say(&status_line::status(self.agent.session().pressure(), &self.screen.tally(), width));
    }

    /// Returns a new token that cancels the next operation.
    pub(super) fn stopping(&self) -> CancellationToken {
        self.canceller.renew()
    }

    /// Resumes another conversation or starts a new one. Returns the previous one.
    pub(super) async fn change(&mut self, resume: Option<&str>) -> Result<Agent, CliError> {
        let opened =
            open(&self.setup, self.wish.clone(), ModelChoice::Configured, resume, self.frontend.clone())
                .await?;
        self.forget_if_empty();
        let OpenSession { agent, connected, wish, resumed } = opened;
        let old = std::mem::replace(&mut self.agent, agent);
        self.connected = connected;
        self.wish = wish;
        self.warned_of_fading = self.agent.session().compactions() >= FADES_FROM;
        self.screen.forget_tally();
        self.greet(resumed.as_deref());
        Ok(old)
    }

    /// The ids of recent conversations, the newest first.
    fn session_names(&self) -> Vec<String> {
        let filter = SessionFilter { limit: Some(SESSIONS_OFFERED), ..SessionFilter::default() };
        let listed = self.setup.store.conversations(&self.setup.owner, &filter).unwrap_or_default();
        listed.into_iter().map(|conversation| conversation.tip.id.to_string()).collect()
    }

    /// Deletes a conversation without messages.
    fn forget_if_empty(&self) {
        if self.agent.session().messages().is_empty() {
            let id = self.agent.session().id();
            // A failure is harmless: the conversation stays, empty.
            let _ = self.setup.store.delete(&self.setup.owner, id, Dependants::Refuse);
        }
    }

    /// The totals of this conversation on one line, computed like those of `usage`.
    fn figures(&self) -> Option<String> {
        let session = self.agent.session();
        let filter = CallFilter { chain_of: Some(session.id().clone()), since_ms: None, until_ms: None };
        let calls = UsageOverview::of(self.setup.store.as_ref(), &self.setup.owner, &filter).ok()?;
        (calls.total.calls > 0).then(|| status_line::figures(&calls.total, session.compactions()))
    }

    fn leave(self) {
        let id = self.agent.session().id().clone();
        if self.agent.session().messages().is_empty() {
            self.forget_if_empty();
            return;
        }
        // Totals that cannot be read are left out.
        if let Some(figures) = self.figures() {
            self.screen.note(&figures);
        }
        self.screen.note(&format!("throughline chat --resume {id} continues this conversation"));
    }
}
