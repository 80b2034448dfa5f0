//! `/context`: what fills the window, and how many tokens are left before the next compaction.

use std::cmp::Ordering;
use std::fmt::Write as _;

use owo_colors::OwoColorize as _;
use throughline_agent::Agent;
use throughline_engine::{EngineLimits, Pressure};
use throughline_tokens::TokenModel;
use throughline_transcript::{Groups, Transcript, compact_json_string};

use crate::context_breakdown::{ContextBreakdown, MeasureTokens as _};
use crate::token_counter::TokenCounter;
use crate::ui::figures::bar;
use crate::ui::gauge::{Gauge, gauge_lines};
use crate::ui::text::{percent, shorten, thousands};

/// The number of largest messages that are listed.
const LARGEST: usize = 5;
const BAR_CELLS: usize = 20;
/// The widest label of a row, in columns.
const NAME_COLUMNS: usize = 22;

/// Formats the page.
pub(super) fn render(agent: &Agent, width: usize) -> String {
    let session = agent.session();
    let pressure = session.pressure();
    let gauge = Gauge {
        tokens: pressure.tokens,
        window_tokens: pressure.window_tokens,
        threshold_tokens: pressure.threshold_tokens,
    };
    let prompt = agent.system_prompt();
    let counter = counter(agent);
    let (files, notes) =
        (counter.text(&section(prompt, "project-file")), counter.text(&section(prompt, "memory")));
    let system = counter.system(&compact_json_string(prompt));
    let tools = agent.tools_json().map_or(0, |json| counter.tools(json));
    let transcript = Transcript::from_messages(session.wire_format(), session.messages().to_vec());
    let groups = Groups::of(&transcript.messages);
    let breakdown = ContextBreakdown::of(&transcript, &groups, &counter, LARGEST);
    let mut rows = vec![
        ("system prompt".to_owned(), system.saturating_sub(files).saturating_sub(notes)),
        ("project files".to_owned(), files),
        ("memory".to_owned(), notes),
        ("tools".to_owned(), tools),
    ];
    rows.extend(breakdown.kinds.iter().map(|(kind, tally)| (kind.words().to_owned(), tally.tokens)));
    rows.retain(|(_, tokens)| *tokens > 0);
    let most = rows.iter().map(|(_, tokens)| *tokens).max().unwrap_or(0);
    let mut out = gauge_lines(&[("context", gauge)], width.clamp(40, 120));
    let _ = writeln!(out, "{}", distance_words(pressure, session.model().hard_limit_tokens()));
    if let Some(words) = threshold_words(&session.model().limits) {
        let _ = writeln!(out, "{words}");
    }
    let _ = writeln!(out, "context engine: {}", session.engine_name());
    let fixed = system.saturating_add(tools);
    let _ = writeln!(
        out,
        "{} tokens ({}) of system prompt and tools are sent with every call",
        thousands(fixed),
        percent(fixed, pressure.window_tokens)
    );
    for (name, tokens) in &rows {
        let cells = bar(*tokens, most, BAR_CELLS);
        let _ = writeln!(
            out,
            "  {name:<NAME_COLUMNS$}{:>10}  {:>6}  {}",
            thousands(*tokens),
            percent(*tokens, pressure.tokens),
            cells.cyan()
        );
    }
    if !breakdown.largest.is_empty() {
        let _ = writeln!(out, "largest messages");
        for large in &breakdown.largest {
            let what = if large.tools.is_empty() { large.role.to_owned() } else { large.tools.join(", ") };
            let line = format!("  {:>10}  {what}: {}", thousands(large.tokens), large.glimpse);
            let _ = writeln!(out, "{}", shorten(&line, width));
        }
    }
    let estimated = if session.last_prompt_tokens().is_some() {
        "The total is measured: what the provider counted last and an estimate of what came since; its parts are estimated."
    } else {
        "All figures are estimated: there is no usable count of this view by the provider."
    };
    let _ = writeln!(out, "{}", estimated.dimmed());
    out
}

/// Returns a counter scaled to the unit of the total, as `inspect` and `usage` do.
fn counter(agent: &Agent) -> TokenCounter {
    let session = agent.session();
    let model = TokenModel::for_model(&session.model().model, session.wire_format());
    let counter = TokenCounter::estimating(model);
    let fixed = counter.system(&compact_json_string(agent.system_prompt()))
        + agent.tools_json().map_or(0, |json| counter.tools(json));
    let messages: u64 = session.messages().iter().map(|message| counter.message(message)).sum();
    counter.corrected(session.pressure().tokens, fixed.saturating_add(messages))
}

/// Explains the threshold in force, if it differs from the configured one.
fn threshold_words(limits: &EngineLimits) -> Option<String> {
    let (configured, in_force) = (limits.threshold_configured_tokens, limits.threshold_tokens);
    let why = match in_force.cmp(&configured) {
        Ordering::Equal => return None,
        Ordering::Greater => {
            format!("system prompt and tools take {}", thousands(limits.fixed_tokens))
        }
        Ordering::Less => {
            format!("the answer may take {}", thousands(limits.reserved_output_tokens))
        }
    };
    let (configured, in_force) = (thousands(configured), thousands(in_force));
    Some(format!("the threshold is {in_force} tokens where {configured} are configured: {why}"))
}

fn distance_words(pressure: Pressure, hard_limit_tokens: u64) -> String {
    match pressure.threshold_tokens.checked_sub(pressure.tokens) {
        Some(room) => format!("{} tokens until the next compaction", thousands(room)),
        None => format!(
            "the older part is compacted as soon as that pays for itself, at {} tokens at the latest",
            thousands(hard_limit_tokens)
        ),
    }
}

/// Returns all parts of the prompt between these tags.
fn section(prompt: &str, tag: &str) -> String {
    let (open, close) = (format!("<{tag} "), format!("</{tag}>"));
    let mut found = String::new();
    let mut rest = prompt;
    while let Some((_, from)) = rest.split_once(&open) {
        let (inside, after) = from.split_once(&close).unwrap_or((from, ""));
        found.push_str(inside);
        rest = after;
    }
    found
}
