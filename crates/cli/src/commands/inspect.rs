//! `throughline inspect`: shows what fills the context, which rules it breaks, and how near the limit it is.

mod view;

use clap::Args;
use serde_json::json;
use throughline_transcript::{Groups, Violation, violations};

use crate::app::App;
use crate::args::{TranscriptArgs, WindowArgs};
use crate::context_breakdown::ContextBreakdown;
use crate::error::{CliError, Exit};
use crate::input::{Original, TranscriptInput, load_input};
use crate::limits::{CountMethod, TranscriptLimits};
use crate::record::OpenRecord;
use crate::record::session_context::context_of;

/// Show what fills the context: size by role, tool and kind, groups, largest items, broken rules
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  throughline inspect session.jsonl
  throughline inspect request.json --context-length 128k --top 20
  throughline inspect rollout.jsonl.gz --json | jq .tokens
  throughline inspect --session last
  cat messages.json | throughline inspect -")]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    transcript: TranscriptArgs,
    #[command(flatten)]
    window: WindowArgs,

    /// How many of the largest messages and tools to list
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(..=10_000))]
    top: u16,

    /// Count with the model's own tokenizer where it is known (OpenAI encodings) instead of estimating
    #[arg(long)]
    exact: bool,

    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

/// The data of the page.
pub(crate) struct Inspection<'a> {
    pub(crate) input: &'a TranscriptInput,
    pub(crate) situation: &'a TranscriptLimits,
    pub(crate) breakdown: ContextBreakdown,
    pub(crate) violations: Vec<Violation>,
    /// The most tools and messages that are listed.
    pub(crate) top: usize,
}

/// Runs the command.
pub(crate) fn run(args: &InspectArgs, app: &App) -> Result<(), CliError> {
    let counting = if args.exact { CountMethod::Exact } else { CountMethod::Estimate };
    let input = load_input(app, &args.transcript, Original::Drop)?;
    let app = &match &args.transcript.session {
        Some(reference) => {
            let record = OpenRecord::open_to_read(app, reference)?;
            context_of(app, &record, &record.tip(reference)?)?
        }
        None => app.clone(),
    };
    let situation = TranscriptLimits::of(app, &args.window, &[], &input.transcript, counting)?;
    situation.print_notes(app);
    let groups = Groups::of(&input.transcript.messages);
    let top = usize::from(args.top);
    let mut breakdown = ContextBreakdown::of(&input.transcript, &groups, &situation.counter, top);
    if let Some(size) = situation.size.filter(|size| size.messages == input.transcript.messages.len()) {
        breakdown.total_tokens = size.total_tokens;
    }
    let inspection = Inspection {
        breakdown,
        violations: violations(input.transcript.wire_format, &input.transcript.messages, &groups),
        input: &input,
        situation: &situation,
        top,
    };
    if args.json {
        let mut text = serde_json::to_string_pretty(&inspection.json()).map_err(|error| {
            CliError::new(Exit::Internal, "cannot write the report as JSON").because(error.to_string())
        })?;
        text.push('\n');
        return app.print_bytes(text.as_bytes());
    }
    app.print(&view::render(&inspection, app.width))
}

impl Inspection<'_> {
    /// The same data as JSON. Messages are numbered from zero.
    fn json(&self) -> serde_json::Value {
        let Self { input, situation, breakdown, violations, top } = self;
        let transcript = &input.transcript;
        let by_kind: serde_json::Map<String, serde_json::Value> = breakdown
            .kinds
            .iter()
            .map(|(kind, tally)| (json!(kind).as_str().unwrap_or_default().to_owned(), json!(tally)))
            .collect();
        let by_role: serde_json::Map<String, serde_json::Value> =
            breakdown.roles.iter().map(|(role, tally)| (role.name().to_owned(), json!(tally))).collect();
        json!({
            "file": input.name,
            "bytes": input.bytes,
            "source": transcript.source,
            "dialect": transcript.wire_format,
            "model": situation.model_json(),
            "messages": transcript.messages.len(),
            "characters": breakdown.total_characters,
            "tokens": breakdown.total_tokens,
            "counting": situation.counter.json(),
            "window": situation.window_json(),
            "limits": situation.limits_json(),
            "by_kind": by_kind,
            "by_role": by_role,
            "by_tool": breakdown.tools,
            "groups": breakdown.groups,
            "largest": breakdown.largest,
            "largest_listed": top,
            "violations": violations,
            "notes": transcript.notes,
        })
    }
}
