//! One conversation in, a smaller one out, by rules and without a model.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use throughline_compaction::{
    Budgets, Conversation, Ledger, Options, Outcome, PayCheck, PruneRules, Report, RuleSummariser,
    SummaryFrame,
};
use throughline_redact::Redactor;
use throughline_tokens::{
    Catalogue, ContentProfile, LimitError, LimitPolicy, Limits, TextProfile, TokenModel,
};
use throughline_transcript::{DecodeError, DecodeOptions, Groups, Message, Preamble, Transcript};

/// Why a conversation was not compacted. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum CompactorError {
    /// The input holds no conversation: it is not JSON, or no list of messages, request body or session log.
    #[error("the input cannot be read as a conversation: {0}")]
    Unreadable(#[from] DecodeError),
    /// The window leaves no room for a head, a summary and a tail, or the system prompt and tools fill it.
    #[error("the window cannot be used: {0}")]
    Window(#[from] LimitError),
    /// The result would have broken a rule that providers enforce.
    #[error("the conversation was not compacted: {0}")]
    Aborted(String),
}

/// Settings of a [`Compactor`]. Everything has a default: the model that a request body names, the window the catalogue has
/// for it, compaction from half of the window on, secrets masked.
///
/// ```
/// use throughline::{Compactor, CompactorError};
///
/// let compactor = Compactor::builder().model("claude-opus-4-8").focus("the failing test").build()?;
/// # let _ = compactor;
/// assert!(matches!(Compactor::builder().window_tokens(100).build(), Err(CompactorError::Window(_))));
/// # Ok::<(), throughline::CompactorError>(())
/// ```
#[derive(Clone, Debug)]
pub struct CompactorBuilder {
    model: String,
    window_tokens: Option<u64>,
    threshold_ratio: Option<f64>,
    protect_last_n: Option<usize>,
    force: bool,
    focus: Option<String>,
    redact: bool,
}

impl CompactorBuilder {
    /// The model, by which tokens are estimated and, without a window of its own, the window is looked up.
    #[must_use]
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.model = name.into();
        self
    }

    /// The model's window.
    #[must_use]
    pub fn window_tokens(mut self, tokens: u64) -> Self {
        self.window_tokens = Some(tokens);
        self
    }

    /// The share of the window from which on a conversation is compacted; 0.5 by default.
    #[must_use]
    pub fn threshold_ratio(mut self, ratio: f64) -> Self {
        self.threshold_ratio = Some(ratio);
        self
    }

    /// The newest messages that stay as they are, as far as they fit; 20 by default.
    #[must_use]
    pub fn protect_last(mut self, messages: usize) -> Self {
        self.protect_last_n = Some(messages);
        self
    }

    /// Compacts below the threshold too.
    #[must_use]
    pub fn force(mut self) -> Self {
        self.force = true;
        self
    }

    /// What most of the notes shall be about.
    #[must_use]
    pub fn focus(mut self, topic: impl Into<String>) -> Self {
        self.focus = Some(topic.into());
        self
    }

    /// Whether secrets are masked in the notes; they are by default. Messages that stay are never changed.
    #[must_use]
    pub fn redact_secrets(mut self, redact: bool) -> Self {
        self.redact = redact;
        self
    }

    /// Every limit for a model and a cap on its output.
    fn policy(&self, model: &str, output_cap_tokens: Option<u64>) -> LimitPolicy {
        let window_tokens =
            self.window_tokens.unwrap_or_else(|| Catalogue::shipped_facts(model).window_tokens);
        let usual = LimitPolicy::for_window(window_tokens);
        LimitPolicy {
            threshold_ratio: self.threshold_ratio.unwrap_or(usual.threshold_ratio),
            protect_last_n: self.protect_last_n.unwrap_or(usual.protect_last_n),
            reserved_output_tokens: output_cap_tokens.unwrap_or(usual.reserved_output_tokens),
            ..usual
        }
    }

    /// The compactor.
    ///
    /// # Errors
    ///
    /// [`CompactorError::Window`] when the window is too small for anything.
    pub fn build(self) -> Result<Compactor, CompactorError> {
        Limits::compute(&self.policy(&self.model, None))?;
        Ok(Compactor { redactor: self.redact.then(Redactor::new), settings: self })
    }
}

/// Compacts conversations by rules: no model, no network, no runtime. One compactor serves any number of conversations.
#[derive(Clone, Debug)]
pub struct Compactor {
    settings: CompactorBuilder,
    redactor: Option<Redactor>,
}

/// What a [`Compactor`] returns.
#[derive(Clone, Debug)]
pub struct Compacted {
    /// The messages to send from now on, each as JSON: those that stay byte for byte, and the summary.
    pub messages: Vec<String>,
    /// The system prompt with a note about the summary, where the input has one outside its messages.
    pub system: Option<String>,
    /// The notes, as Markdown; `None` when nothing was compacted.
    pub summary: Option<String>,
    /// Whether it was compacted, or why not.
    pub outcome: Outcome,
    /// Tokens and messages before and after, the plan, checked facts.
    pub report: Report,
}

impl Compactor {
    /// A compactor with the defaults, to be changed and [built](CompactorBuilder::build).
    #[must_use]
    pub fn builder() -> CompactorBuilder {
        CompactorBuilder {
            model: String::new(),
            window_tokens: None,
            threshold_ratio: None,
            protect_last_n: None,
            force: false,
            focus: None,
            redact: true,
        }
    }

    /// Compacts a conversation: a JSON list of messages or a whole request body, of Chat Completions, Responses or Anthropic
    /// Messages, or the session log of Claude Code or Codex. Below the threshold the messages come back unchanged.
    ///
    /// ```
    /// use throughline::Compactor;
    ///
    /// let turn = |n: usize| format!(
    ///     r#"{{"role":"user","content":"Step {n}"}},{{"role":"assistant","content":"{}"}}"#,
    ///     "All of it is in src/main.rs now. ".repeat(40));
    /// let list = format!("[{}]", (0..40).map(turn).collect::<Vec<_>>().join(","));
    /// let compacted = Compactor::builder().window_tokens(16_384).build()?.compact(&list)?;
    /// assert!(compacted.report.tokens.after < compacted.report.tokens.before / 2);
    /// assert!(compacted.summary.is_some());
    /// # Ok::<(), throughline::CompactorError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// See [`CompactorError`].
    pub fn compact(&self, conversation: impl AsRef<[u8]>) -> Result<Compacted, CompactorError> {
        let transcript = Transcript::decode(conversation.as_ref().to_vec(), &DecodeOptions::default())?;
        let (settings, preamble) = (&self.settings, &transcript.preamble);
        let named = preamble.model.as_deref().unwrap_or_default();
        let model = if settings.model.is_empty() { named } else { &settings.model };
        let estimator = TokenModel::of(Catalogue::shipped_facts(model).family_on(transcript.wire_format));
        let messages = &transcript.messages;
        let groups = Groups::of(messages);
        let count_text = |text: &str| estimator.estimate(&TextProfile::of(text));
        let count_message =
            |message: &Message| estimator.estimate_content(&ContentProfile::of_message(message));
        let (ledger, sizes) = Ledger::gather(messages, &groups, self.redactor.as_ref(), &count_message);
        let fixed_tokens = fixed_tokens(&estimator, preamble);
        let budgets = Budgets::from(&Limits::beside(
            &settings.policy(model, preamble.max_output_tokens),
            fixed_tokens,
        )?);
        let started = Instant::now();
        let options = Options {
            force: settings.force,
            focus: settings.focus.as_deref(),
            budgets: &budgets,
            prune: PruneRules::default(),
            redactor: self.redactor.as_ref(),
            corrections: &[],
            recall: None,
            pay: PayCheck::Skip,
            cut_at: None,
            tells_pinned: false,
            shown_tokens: &|tokens| tokens,
            count_tokens: &count_text,
            count_message: &count_message,
            clock_us: &|| u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
        };
        let conversation = Conversation {
            wire_format: transcript.wire_format,
            messages,
            groups: &groups,
            sizes: &sizes,
            ledger: Some(&ledger),
            fixed_tokens,
        };
        let attempt = at_once(conversation.compact(&options, &RuleSummariser))?;
        if let Outcome::Aborted { detail, .. } = &attempt.outcome {
            return Err(CompactorError::Aborted(detail.clone()));
        }
        let system = transcript.preamble.system.as_ref().map(|system| system.as_str());
        let noted = |system: &str| {
            SummaryFrame::append_note(system, SummaryFrame::SYSTEM_NOTE).unwrap_or_else(|| system.to_owned())
        };
        Ok(Compacted {
            messages: attempt.items.iter().map(|item| item.json(messages).to_owned()).collect(),
            system: if attempt.outcome.is_completed() {
                system.map(noted)
            } else {
                system.map(str::to_owned)
            },
            summary: attempt.summary.as_ref().map(|summary| summary.to_markdown()),
            outcome: attempt.outcome,
            report: attempt.report,
        })
    }
}

/// The result of a future that waits for nothing: rules call no model.
fn at_once<T>(future: impl Future<Output = T>) -> Result<T, CompactorError> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => Ok(result),
        Poll::Pending => Err(CompactorError::Aborted("the rules did not finish".to_owned())),
    }
}

/// Tokens of what stands before the messages.
fn fixed_tokens(estimator: &TokenModel, preamble: &Preamble) -> u64 {
    let system = preamble.system.as_ref().map(|system| ContentProfile::of_system(system.as_str()));
    let tools = preamble.tools.as_ref().map(|tools| ContentProfile::of_tools(tools.as_str()));
    system.into_iter().chain(tools).map(|profile| estimator.estimate_content(&profile)).sum()
}
