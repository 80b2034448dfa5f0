//! The subject of a node, determined by rules: its files, and what it can be expanded for.

use std::collections::BTreeMap;

use throughline_compaction::{Act, Ledger, ToolFamily, one_line};
use throughline_redact::Redactor;
use throughline_store::{NodeHead, SummaryNode};
use throughline_transcript::Message;

/// The maximum number of files named.
const MOST_FILES: usize = 24;
/// The maximum number of reasons to expand a node.
const MOST_REASONS: usize = 3;
/// The maximum length of a reason in characters.
const REASON_CHARS: usize = 48;

/// Returns the files of tool calls: those that were changed first, then by frequency.
fn files_of(acts: &[Act]) -> Vec<String> {
    let mut seen: BTreeMap<&str, (bool, usize)> = BTreeMap::new();
    for act in acts {
        for file in act.changed_files() {
            seen.entry(file).or_default().0 = true;
        }
        if matches!(act.family, ToolFamily::Read | ToolFamily::Write | ToolFamily::Edit)
            && !act.target.is_empty()
        {
            seen.entry(act.target.as_str()).or_default().1 += 1;
        }
    }
    let mut files: Vec<_> = seen.into_iter().collect();
    files.sort_by_key(|(_, (changed, times))| (!*changed, std::cmp::Reverse(*times)));
    files.into_iter().take(MOST_FILES).map(|(file, _)| file.to_owned()).collect()
}

/// Sets the subject of a leaf.
pub(crate) fn tell_leaf(
    node: &mut SummaryNode,
    messages: &[Message],
    ledger: &Ledger,
    redactor: Option<&Redactor>,
) {
    let acts = ledger.acts();
    let masked = |text: &str| redactor.map_or_else(|| text.to_owned(), |it| it.redact(text).into_owned());
    node.files = files_of(acts).iter().map(|file| masked(file)).collect();
    let mut reasons: Vec<String> =
        node.files.iter().take(2).map(|file| one_line(file, REASON_CHARS)).collect();
    let failed = |act: &&Act| act.outcome.as_ref().is_some_and(|outcome| outcome.failed());
    let commands = || acts.iter().filter(|act| act.family == ToolFamily::Run && !act.target.is_empty());
    let told =
        commands().find(failed).map(|act| format!("the failure of {}", one_line(&act.target, REASON_CHARS)));
    reasons.extend(told);
    reasons.extend(
        commands().next_back().map(|act| format!("what {} printed", one_line(&act.target, REASON_CHARS))),
    );
    let asked = messages.iter().find_map(Message::human_words).filter(|words| !words.trim().is_empty());
    reasons.extend(asked.map(|words| format!("what came of \"{}\"", one_line(&words, REASON_CHARS))));
    reasons.truncate(MOST_REASONS);
    node.expand_for = masked(&reasons.join("; "));
}

/// Sets the subject of a node that includes others.
pub(crate) fn tell_condensed(node: &mut SummaryNode, children: &[&NodeHead]) {
    for child in children {
        for file in &child.node.files {
            if node.files.len() < MOST_FILES && !node.files.contains(file) {
                node.files.push(file.clone());
            }
        }
    }
    let first = |child: &&NodeHead| child.node.expand_for.split("; ").next().map(str::to_owned);
    let mut reasons: Vec<String> =
        children.iter().filter_map(first).filter(|words| !words.is_empty()).collect();
    reasons.dedup();
    reasons.truncate(MOST_REASONS);
    node.expand_for = reasons.join("; ");
}
