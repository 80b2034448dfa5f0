//! `throughline inspect`: what fills the context, what is broken in it, and how near the limit it is.

mod view;

use serde_json::json;
use throughline_transcript::{Groups, Violation, violations};

use crate::app::Context;
use crate::args::InspectArgs;
use crate::context_breakdown::Census;
use crate::error::{Exit, Failure};
use crate::input::{Input, Original, load_input};
use crate::limits::{Counting, Situation};
use crate::record::Record;
use crate::record::session_context::context_of;

/// Everything `inspect` found out.
pub(crate) struct Inspection<'a> {
    pub(crate) input: &'a Input,
    pub(crate) situation: &'a Situation,
    pub(crate) census: Census,
    pub(crate) violations: Vec<Violation>,
    /// How many tools and messages to list.
    pub(crate) top: usize,
}

/// Carries out the command.
pub(crate) fn run(args: &InspectArgs, context: &Context) -> Result<(), Failure> {
    let counting = if args.exact { Counting::Exact } else { Counting::Estimate };
    let input = load_input(context, &args.transcript, Original::Drop)?;
    let context = &match &args.transcript.session {
        Some(reference) => {
            let record = Record::open_to_read(context, reference)?;
            context_of(context, &record, &record.tip(reference)?)?
        }
        None => context.clone(),
    };
    let situation = Situation::of(context, &args.window, &[], &input.transcript, counting)?;
    situation.tell_notes(context);
    let groups = Groups::of(&input.transcript.messages);
    let top = usize::from(args.top);
    let mut census = Census::of(&input.transcript, &groups, &situation.meter, top);
    if let Some(size) = situation.size.filter(|size| size.messages == input.transcript.messages.len()) {
        census.total_tokens = size.total_tokens;
    }
    let inspection = Inspection {
        census,
        violations: violations(input.transcript.wire_format, &input.transcript.messages, &groups),
        input: &input,
        situation: &situation,
        top,
    };
    if args.json {
        let mut text = serde_json::to_string_pretty(&inspection.json()).map_err(|error| {
            Failure::new(Exit::Internal, "cannot write the report as JSON").because(error.to_string())
        })?;
        text.push('\n');
        return context.print_bytes(text.as_bytes());
    }
    context.print(&view::render(&inspection, context.width))
}

impl Inspection<'_> {
    /// The same for machines. Messages are numbered from zero.
    fn json(&self) -> serde_json::Value {
        let Self { input, situation, census, violations, top } = self;
        let transcript = &input.transcript;
        let by_kind: serde_json::Map<String, serde_json::Value> = census
            .kinds
            .iter()
            .map(|(kind, tally)| (json!(kind).as_str().unwrap_or_default().to_owned(), json!(tally)))
            .collect();
        let by_role: serde_json::Map<String, serde_json::Value> =
            census.roles.iter().map(|(role, tally)| (role.name().to_owned(), json!(tally))).collect();
        json!({
            "file": input.name,
            "bytes": input.bytes,
            "source": transcript.source,
            "dialect": transcript.wire_format,
            "model": situation.model_json(),
            "messages": transcript.messages.len(),
            "characters": census.total_characters,
            "tokens": census.total_tokens,
            "counting": situation.meter.json(),
            "window": situation.window_json(),
            "limits": situation.limits_json(),
            "by_kind": by_kind,
            "by_role": by_role,
            "by_tool": census.tools,
            "groups": census.groups,
            "largest": census.largest,
            "largest_listed": top,
            "violations": violations,
            "notes": transcript.notes,
        })
    }
}
