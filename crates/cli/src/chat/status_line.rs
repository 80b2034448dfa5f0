//! The lines at the start of a conversation, and the line under each answer.

use owo_colors::OwoColorize as _;
use throughline_agent::Agent;
use throughline_engine::Pressure;
use throughline_store::UsageTotal;
use throughline_tokens::Usage;

use super::setup::{ChatSetup, ConnectedModel};
use crate::error::path_words;
use crate::model_client::key_words;
use crate::ui::figures::{cost_words, rounded};
use crate::ui::gauge::Gauge;
use crate::ui::text::{columns, counted, labelled, percent, thousands};

/// The cells of the gauge in the status line.
const GAUGE_CELLS: usize = 12;

/// The usage of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UsageTally {
    pub(super) calls: u64,
    pub(super) usage: Usage,
    pub(super) cost_micro_usd: u64,
    pub(super) unpriced: u64,
}

/// Formats the lines at the start of a chat: model, window, threshold, folder, session.
pub(super) fn start(setup: &ChatSetup, connected: &ConnectedModel, agent: &Agent, width: usize) -> String {
    let at = &connected.at;
    let limits = &agent.session().model().limits;
    let provider = at.endpoint.as_ref().map(|endpoint| {
        let held_on = agent.session().wire_format();
        let over = if held_on == at.wire { String::new() } else { format!(" for one on the {held_on} wire") };
        format!("{} on the {} wire{over}, {}", endpoint.kind, at.wire, key_words(&endpoint.key_source))
    });
    let threshold = if limits.threshold_tokens == limits.threshold_configured_tokens {
        format!("at {} tokens", thousands(limits.threshold_tokens))
    } else if limits.threshold_tokens > limits.threshold_configured_tokens {
        format!(
            "at {} tokens ({} are configured; the system prompt and tools take {} of them)",
            thousands(limits.threshold_tokens),
            thousands(limits.threshold_configured_tokens),
            thousands(limits.fixed_tokens)
        )
    } else {
        format!(
            "at {} tokens ({} are configured, which leaves no space for answers)",
            thousands(limits.threshold_tokens),
            thousands(limits.threshold_configured_tokens)
        )
    };
    let threshold = if setup.settings.compression.enabled {
        threshold
    } else {
        "only on /compress (compression.enabled is off)".to_owned()
    };
    let mut rows = vec![
        ("model", format!("{} ({})", at.model, provider.unwrap_or_default())),
        ("window", format!("{} tokens, {}", thousands(at.window.tokens), at.window.source)),
        ("compacts", threshold),
        ("engine", agent.session().engine_name().to_owned()),
        ("cache", at.cache.to_string()),
        ("folder", path_words(&setup.folder)),
        ("session", agent.session().id().to_string()),
    ];
    if setup.asking() == throughline_agent::ApprovalMode::Never {
        rows.push(("asks", "never: everything is done without asking (--yolo)".to_owned()));
    }
    let mut out = String::new();
    for (label, text) in rows {
        out.push_str(&labelled(&label.dimmed().to_string(), 9, &text, width));
    }
    out
}

/// Formats the line after an answer: the fill of the window, the cost, and the share read from the cache.
pub(super) fn status(pressure: Pressure, tally: &UsageTally, width: usize) -> String {
    let Pressure { tokens, threshold_tokens, window_tokens } = pressure;
    let gauge = Gauge { tokens, window_tokens, threshold_tokens };
    let mut parts = vec![
        format!("{} of {}", rounded(tokens), rounded(window_tokens)),
        format!("compacts at {}", rounded(threshold_tokens)),
    ];
    if tally.calls > tally.unpriced {
        parts.push(cost_words(tally.cost_micro_usd, tally.calls, tally.unpriced));
    }
    let prompt = tally.usage.prompt();
    if tally.usage.cache_read > 0 {
        parts.push(format!("cache {}", percent(tally.usage.cache_read, prompt)));
    }
    // The figures matter more than the gauge, and the first ones most.
    while parts.len() > 1 && columns(&parts.join(" · ")) + GAUGE_CELLS + 1 > width {
        parts.pop();
    }
    format!("{} {}", gauge.bar(GAUGE_CELLS), parts.join(" · ").dimmed())
}

/// The note after several compactions, shown once.
pub(super) fn fading(compactions: u64) -> String {
    let times = if compactions == 2 { "twice".to_owned() } else { format!("{compactions} times") };
    format!(
        "this conversation has been compacted {times}: the model sees fewer details of its beginning. Nothing is lost: \
the model can recall everything, /search finds it, /undo reverts a compaction, and /new starts a new conversation"
    )
}

/// Formats the totals of a conversation on one line.
pub(super) fn figures(total: &UsageTotal, compactions: u64) -> String {
    let UsageTotal { usage, calls, .. } = total;
    let mark = if total.estimated > 0 { "~" } else { "" };
    let cached = match usage.cache_read {
        0 => String::new(),
        read => format!(" ({} from the cache)", percent(read, usage.prompt())),
    };
    format!(
        "this conversation: {}, {mark}{} tokens in{cached}, {mark}{} out, {}, {}",
        counted(*calls, "call", "calls"),
        rounded(usage.prompt()),
        rounded(usage.output),
        match total.calls == total.unpriced {
            true => "cost not known".to_owned(),
            false => cost_words(total.cost_micro_usd, total.calls, total.unpriced),
        },
        counted(compactions, "compaction", "compactions")
    )
}

#[cfg(test)]
#[path = "status_line_tests.rs"]
mod tests;
