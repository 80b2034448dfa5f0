//! `throughline compress`: compacts a transcript, or shows the plan without doing it.
//!
//! The report goes to stdout, warnings to stderr. Untouched messages keep their bytes.

mod args;
mod view;

pub(crate) use args::CompressArgs;

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use throughline_compaction::{
    Attempt, Budgets, Correction, Ledger, Outcome, PruneRules, Stretch, SummaryFrame,
};
use throughline_engine::{
    CommitAs, CompressRequest, Compressor, CompressorSetup, ContextEngine as _, Headroom, RecordedState,
    Snapshot, Trigger,
};
use throughline_redact::Redactor;
use throughline_store::{Continuation, Session, SessionId, Store as _, StoreError};
use throughline_transcript::{Groups, Message, RawJson, Source, Transcript, Violation};

use crate::app::App;
use crate::context_breakdown::MeasureTokens as _;
use crate::error::{CliError, Exit};
use crate::files::{STANDARD_STREAM, write_atomic};
use crate::input::{Original, TranscriptInput, load_input, recorded_input};
use crate::limits::{CountMethod, TranscriptLimits};
use crate::record::session_context::{context_of, load_view};
use crate::record::{OpenRecord, refused};
use crate::ui::text::{counted, printable, thousands};

/// The most broken rules that are listed; the rest is counted.
const MAX_VIOLATIONS_TOLD: usize = 10;

/// An attempt with the inputs of its report.
pub(crate) struct Compaction<'a> {
    pub(crate) input: &'a TranscriptInput,
    pub(crate) situation: &'a TranscriptLimits,
    pub(crate) ledger: &'a Ledger,
    pub(crate) attempt: Attempt,
    /// The committed session, if a recorded session was compacted.
    pub(crate) committed: Option<Committed>,
}

/// Runs the command.
pub(crate) fn run(args: &CompressArgs, context: &App) -> Result<(), CliError> {
    if args.json && args.out.as_deref().is_some_and(|path| path == Path::new(STANDARD_STREAM)) {
        return Err(CliError::new(Exit::Usage, "--json and --out - both want standard output")
            .because("one of them would be lost")
            .hint("the JSON holds the messages already; or give --out a file"));
    }
    match &args.transcript.session {
        Some(reference) => run_on_record(args, context, reference),
        None => {
            let original = if args.out.is_some() { Original::Keep } else { Original::Drop };
            let input = load_input(context, &args.transcript, original)?;
            work(args, context, &input, &[], |_| Ok(None))
        }
    }
}

/// Compacts the view of a recorded session and commits a continuation, with the conversation locked.
fn run_on_record(args: &CompressArgs, context: &App, reference: &str) -> Result<(), CliError> {
    let record = OpenRecord::open_to_change(context, reference)?;
    let named = record.tip(reference)?;
    if args.preview {
        // A preview changes nothing and takes no lock.
        let (_, transcript) = load_view(&record, &named)?;
        let context = &context_of(context, &record, &named)?;
        let corrections = corrections_of(&record, &named)?;
        return work(args, context, &recorded_input(&named, transcript), &corrections, |_| Ok(None));
    }
    record.locked(&named, "compress", |lease| {
        // The session may have changed before the lock was taken.
        let session = record.tip(named.id.as_str())?;
        let (view, transcript) = load_view(&record, &session)?;
        let context = &context_of(context, &record, &session)?;
        let input = recorded_input(&session, transcript);
        let corrections = corrections_of(&record, &session)?;
        work(args, context, &input, &corrections, |compaction| {
            let counter = compaction.situation.counter.estimating_only();
            let count_message = |message: &Message| counter.message(message);
            let commit = |id: &SessionId| {
                let commit_as =
                    CommitAs { id, at_ms: record.now.ms, trigger: "command", count_message: &count_message };
                view.continuation(&compaction.attempt, &commit_as)
            };
            if commit(&session.id).is_none() {
                return Ok(None);
            }
            let successor = record.with_new_id(|id| match commit(&id) {
                Some(continuation) => {
                    let continuation = Continuation { lease: Some(lease.clone()), ..continuation };
                    record.store.continue_session(&record.owner, continuation)
                }
                None => Err(StoreError::NothingToSelect { what: "there is nothing to commit" }),
            })?;
            Ok(Some(Committed { from: session.id.clone(), to: successor.id }))
        })
    })
}

/// The entries that the user removed from the state of a recorded conversation.
fn corrections_of(record: &OpenRecord<'_>, session: &Session) -> Result<Vec<Correction>, CliError> {
    let now_ms = record.now.ms;
    RecordedState::corrections(&record.store, &record.owner, &session.id, now_ms).map_err(refused)
}

/// A compaction that was committed to the record.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Committed {
    pub(crate) from: SessionId,
    pub(crate) to: SessionId,
}

/// Makes the attempt, commits it with `commit`, and prints the report.
fn work(
    args: &CompressArgs,
    context: &App,
    input: &TranscriptInput,
    corrections: &[Correction],
    commit: impl FnOnce(&Compaction<'_>) -> Result<Option<Committed>, CliError>,
) -> Result<(), CliError> {
    let keep = args.keep.map(|count| ("--keep", "compression.protect_last_n", count.to_string()));
    let situation = TranscriptLimits::of(
        context,
        &args.window,
        keep.as_slice(),
        &input.transcript,
        CountMethod::Estimate,
    )?;
    situation.print_notes(context);
    let messages = &input.transcript.messages;
    let groups = Groups::of(messages);
    tell_violations(context, &input.transcript, &groups);
    let redactor = situation.settings.security.redact_secrets.then(Redactor::new);
    let count_message = |message: &Message| situation.counter.message(message);
    let (ledger, sizes) = Ledger::gather(messages, &groups, redactor.as_ref(), &count_message);
    // Rounding differences of single messages are added to the fixed part, so that the total is the one that other commands show.
    let message_tokens = sizes.iter().sum::<u64>();
    let fixed_tokens = match situation.size.filter(|size| size.messages == messages.len()) {
        Some(size) => size.total_tokens.saturating_sub(message_tokens),
        None => situation.counter.preamble(&input.transcript.preamble),
    };
    let ledger = Arc::new(ledger);
    let request = request(args, input, sizes, fixed_tokens);
    let attempt = attempt(&situation, request, Arc::clone(&ledger), corrections, redactor, context.now().ms)?;
    let mut compaction =
        Compaction { input, situation: &situation, ledger: &ledger, attempt, committed: None };
    for warning in &compaction.attempt.report.warnings {
        context.warn(&printable(warning));
    }
    if !args.preview {
        compaction.committed = commit(&compaction)?;
    }
    compaction.deliver(args, context)
}

/// The compaction that the command line requests.
fn request(
    args: &CompressArgs,
    input: &TranscriptInput,
    sizes: Vec<u64>,
    fixed_tokens: u64,
) -> CompressRequest {
    let transcript = &input.transcript;
    // Sizes and limits have the same unit here, so nothing is scaled.
    let prompt_tokens = sizes.iter().sum::<u64>().saturating_add(fixed_tokens);
    CompressRequest {
        conversation: Snapshot {
            session: SessionId::from_text("compress"),
            wire_format: transcript.wire_format,
            messages: Arc::new(transcript.messages.clone()),
            sizes: Arc::new(sizes),
            fixed_tokens,
            prompt_tokens,
            cached_prompt: None,
        },
        trigger: Trigger::Manual,
        room: Headroom::Left,
        focus: args.focus.clone(),
        force: args.force,
        target_tokens: None,
        keep_messages: args.keep_exactly,
        memory_context: None,
    }
}

/// Makes the attempt with the built-in engine, by rules and offline. Refuses a window that cannot even hold the parts that must stay.
fn attempt(
    situation: &TranscriptLimits,
    request: CompressRequest,
    ledger: Arc<Ledger>,
    corrections: &[Correction],
    redactor: Option<Redactor>,
    now_ms: i64,
) -> Result<Attempt, CliError> {
    let compression = &situation.settings.compression;
    let prune = PruneRules {
        result_min_chars: compression.prune_min_chars,
        argument_max_chars: compression.argument_max_chars,
    };
    let (token_model, correction) = situation.counter.estimator();
    let compressor = Compressor::new(CompressorSetup { prune, redactor, ..CompressorSetup::by_rules() })
        .with_estimator(token_model, correction)
        .with_facts(&request.conversation, ledger);
    let model = situation.model_in_force(now_ms);
    let attempted = pollster::block_on(async {
        compressor.update_model(&model).await?;
        compressor.set_corrections(corrections).await?;
        compressor.attempt_by_rules(&request).await
    });
    let mut attempt = attempted.map_err(|error| {
        CliError::new(Exit::Internal, "the transcript was not compacted").because(error.to_string())
    })?;
    let fixed_tokens = request.conversation.fixed_tokens;
    if attempt.plan.is_some() {
        let head = attempt.report.plan.head;
        MustStay { fixed_tokens, head, tail: None }.check(&situation.budgets)?;
    }
    attempt.report.plan.limits = situation.limits();
    if matches!(attempt.outcome, Outcome::Aborted { .. }) {
        // Often the cause is that no space is left for a summary.
        let plan = &attempt.report.plan;
        let must_stay = MustStay { fixed_tokens, head: plan.head, tail: Some(plan.tail) };
        must_stay.check(&situation.budgets)?;
    }
    if attempt.report.tokens.after > situation.window.value {
        let warning = format!(
            "{} tokens do not fit the window of {}",
            thousands(attempt.report.tokens.after),
            thousands(situation.window.value)
        );
        attempt.report.warnings.push(warning);
    }
    Ok(attempt)
}

/// The parts of a transcript that no compaction makes smaller.
struct MustStay {
    fixed_tokens: u64,
    head: Stretch,
    tail: Option<Stretch>,
}

impl MustStay {
    /// Refuses a window that cannot hold these parts.
    fn check(&self, budgets: &Budgets) -> Result<(), CliError> {
        let stretches = [Some(self.head), self.tail];
        let tokens = stretches
            .iter()
            .flatten()
            .map(|stretch| stretch.tokens)
            .sum::<u64>()
            .saturating_add(self.fixed_tokens);
        if tokens < budgets.window_tokens {
            return Ok(());
        }
        let window = counted(budgets.window_tokens, "token", "tokens");
        let words = |what: &str, stretch: &Stretch| {
            let count = counted(stretch.messages as u64, "message", "messages");
            format!(", the {what} of {count} {}", thousands(stretch.tokens))
        };
        let tail = self.tail.as_ref().map(|tail| words("tail", tail)).unwrap_or_default();
        let cause = format!(
            "{} tokens must stay: system prompt and tools {}{}{tail}",
            thousands(tokens),
            thousands(self.fixed_tokens),
            words("head", &self.head),
        );
        Err(CliError::new(Exit::BadInput, format!("a window of {window} is too small for this transcript"))
            .because(cause)
            .hint("give a larger --context-length, or protect fewer messages with compression.protect_first_n\nand compression.protect_last_n"))
    }
}

fn tell_violations(context: &App, transcript: &Transcript, groups: &Groups) {
    let found = Violation::find(transcript.wire_format, &transcript.messages, groups);
    for violation in found.iter().take(MAX_VIOLATIONS_TOLD) {
        context.warn(&printable(&violation.to_string()));
    }
    if let Some(more) = found.len().checked_sub(MAX_VIOLATIONS_TOLD).filter(|more| *more > 0) {
        let more = counted(more as u64, "more broken rule", "more broken rules");
        context.warn(&format!("{more}; `throughline inspect` lists them"));
    }
}

impl Compaction<'_> {
    /// Prints the report and writes the output.
    fn deliver(&self, args: &CompressArgs, context: &App) -> Result<(), CliError> {
        let to_stdout = args.out.as_deref() == Some(Path::new(STANDARD_STREAM));
        if args.preview {
            return if args.json {
                context.print_bytes(&self.json(Parts::WithoutMessages)?)
            } else {
                context.print(&view::plan(self, context.width, context.in_chat))
            };
        }
        if let Outcome::Aborted { detail, .. } = &self.attempt.outcome {
            if args.json {
                context.print_bytes(&self.json(Parts::All)?)?;
            }
            return Err(CliError::new(Exit::BadInput, format!("{} was not compacted", self.input.name))
                .because(printable(detail))
                .hint("nothing was changed or written"));
        }
        // The output is written first: a report about output that could not be written would mislead.
        if let Some(path) = &args.out {
            let document = self.document();
            if to_stdout { context.print_bytes(&document)? } else { write_atomic(path, &document)? }
        }
        if to_stdout {
            // Stdout has the transcript, so the report goes to stderr.
            context.tell(&view::report(self, None, args.extent(), context.width));
            return Ok(());
        }
        if args.json {
            return context.print_bytes(&self.json(Parts::All)?);
        }
        context.print(&view::report(self, args.out.as_deref(), args.extent(), context.width))
    }

    fn messages(&self) -> impl Iterator<Item = &str> {
        self.attempt.items.iter().map(|item| item.json(&self.input.transcript.messages))
    }

    /// The compacted transcript in the form of the input; the unchanged input if nothing was done.
    fn document(&self) -> Cow<'_, [u8]> {
        let transcript = &self.input.transcript;
        if !self.attempt.outcome.is_completed() {
            if let Some(original) = &self.input.original {
                return Cow::Borrowed(original);
            }
            let mut out = Vec::new();
            transcript.write_unchanged(&mut out);
            return Cow::Owned(out);
        }
        let mut out = Vec::new();
        transcript.write_document(self.messages(), &mut out);
        match self.noted_system().filter(|_| transcript.source == Source::Body) {
            Some(system) => Cow::Owned(with_system(out, &system)),
            None => Cow::Owned(out),
        }
    }

    /// The system prompt with the note about compaction appended, if it is separate from the messages and does not have the note yet.
    fn noted_system(&self) -> Option<String> {
        let system = self.input.transcript.preamble.system.as_ref()?;
        if !self.attempt.outcome.is_completed() {
            return None;
        }
        SummaryFrame::append_note(system.as_str(), SummaryFrame::SYSTEM_NOTE)
    }

    /// The result as one JSON object; messages keep their bytes.
    fn json(&self, parts: Parts) -> Result<Vec<u8>, CliError> {
        let mut out = Vec::new();
        let member = |out: &mut Vec<u8>, opening: &str, value: &dyn ErasedJson| -> Result<(), CliError> {
            out.extend_from_slice(opening.as_bytes());
            value.write(out)
        };
        member(&mut out, "{\"outcome\":", &self.attempt.outcome)?;
        member(&mut out, ",\"report\":", &self.attempt.report)?;
        member(&mut out, ",\"window\":", &self.situation.window_json())?;
        member(&mut out, ",\"counting\":", &self.situation.counter.json())?;
        if let Some(committed) = &self.committed {
            member(&mut out, ",\"committed\":", committed)?;
        }
        if let Some(summary) = &self.attempt.summary {
            member(&mut out, ",\"summary\":", &summary.to_markdown())?;
        }
        if parts == Parts::All {
            if let Some(system) = self.noted_system() {
                out.extend_from_slice(b",\"system\":");
                out.extend_from_slice(system.as_bytes());
            }
            out.extend_from_slice(b",\"messages\":");
            Transcript::write_list(self.messages(), &mut out);
        }
        out.extend_from_slice(b"}\n");
        Ok(out)
    }
}

/// The contents of the JSON object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parts {
    All,
    WithoutMessages,
}

/// A value that can be serialised as JSON through a reference.
trait ErasedJson {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), CliError>;
}

impl<T: Serialize> ErasedJson for T {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), CliError> {
        serde_json::to_writer(out, self).map_err(|error| {
            CliError::new(Exit::Internal, "cannot write the report as JSON").because(error.to_string())
        })
    }
}

/// Replaces the system prompt of a request body; everything else keeps its bytes.
fn with_system(document: Vec<u8>, system: &str) -> Vec<u8> {
    let Ok(text) = String::from_utf8(document) else { return Vec::new() };
    let place = RawJson(&text)
        .members()
        .filter(|(key, _)| key == "system" || key == "instructions")
        .map(|(_, value)| place_in(&text, value.0))
        .last();
    match place {
        Some(place) => {
            let mut out = Vec::with_capacity(text.len() + system.len() - place.len());
            out.extend_from_slice(text.get(..place.start).unwrap_or_default().as_bytes());
            out.extend_from_slice(system.as_bytes());
            out.extend_from_slice(text.get(place.end..).unwrap_or_default().as_bytes());
            out
        }
        None => text.into_bytes(),
    }
}

/// The byte range of a slice within its text.
fn place_in(text: &str, piece: &str) -> std::ops::Range<usize> {
    let start = piece.as_ptr().addr().saturating_sub(text.as_ptr().addr());
    start..start + piece.len()
}

#[cfg(test)]
#[path = "compress_tests.rs"]
mod tests;
