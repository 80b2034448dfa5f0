//! The chart of the context over time: the tokens of each call, stacked by kind.

use std::fmt::Write as _;

use throughline_store::{CallContext, SentTokens, ViewChange};

/// The size of the drawing in SVG units; it is scaled to the page.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 240.0;
/// The most points; more cannot be distinguished, so calls between them are left out.
const MOST_POINTS: usize = 480;

/// The layers from bottom to top: the class and the label of each.
pub(super) const LAYERS: [(&str, &str); 6] = [
    ("system", "system prompt"),
    ("tools", "tools"),
    ("summary", "summary"),
    ("user", "user"),
    ("assistant", "assistant"),
    ("tool", "tool results"),
];

fn parts(sent: &SentTokens) -> [u64; 6] {
    [sent.system, sent.tools, sent.summary, sent.user, sent.assistant, sent.tool]
}

/// Draws the chart; `None` if no call recorded its sizes.
pub(super) fn context_chart(calls: &[CallContext], changes: &[ViewChange]) -> Option<String> {
    let sent: Vec<(i64, [u64; 6])> =
        calls.iter().filter_map(|call| Some((call.at_ms, parts(call.sent.as_ref()?)))).collect();
    let top = sent.iter().map(|(_, parts)| parts.iter().sum::<u64>()).max()?;
    let step = sent.len().div_ceil(MOST_POINTS).max(1);
    let shown: Vec<&(i64, [u64; 6])> = sent.iter().step_by(step).collect();
    let last = shown.len().saturating_sub(1).max(1) as f64;
    let x = |index: usize| index as f64 / last * WIDTH;
    let y = |tokens: u64| HEIGHT - tokens as f64 / top.max(1) as f64 * HEIGHT;
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"Tokens sent by each call, by kind\">"
    );
    for (layer, (class, _)) in LAYERS.iter().enumerate() {
        let sum = |parts: &[u64; 6], to: usize| parts.iter().take(to).sum::<u64>();
        let upper = shown.iter().enumerate().map(|(index, (_, parts))| (x(index), y(sum(parts, layer + 1))));
        let lower =
            shown.iter().enumerate().rev().map(|(index, (_, parts))| (x(index), y(sum(parts, layer))));
        let points: Vec<String> = upper.chain(lower).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = write!(out, "<polygon class=\"{class}\" points=\"{}\"/>", points.join(" "));
    }
    for change in changes.iter().filter(|change| change.is_compaction()) {
        let at = shown.partition_point(|(at_ms, _)| *at_ms < change.at_ms);
        let _ =
            write!(out, "<line class=\"mark\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"0\" y2=\"{HEIGHT}\"/>", x(at));
    }
    out.push_str("</svg>");
    Some(out)
}
