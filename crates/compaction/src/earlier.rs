//! Earlier compactions of a conversation: their summaries, parsed, and the number of messages since.

use throughline_transcript::Message;

use crate::document::SummaryDocument;
use crate::plan::Earlier;
use crate::preface::{find_summary, is_acknowledgement, is_bridge};
use crate::sections::Section;

/// The combined summaries of earlier compactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierSummary {
    /// Their sections.
    pub document: SummaryDocument,
    /// The number of messages they cover.
    pub messages: usize,
    /// The number of messages kept after the last of them when it was made, if it states that.
    pub kept: Option<usize>,
}

/// Heads are rarely longer than this, with any settings.
const USUAL_HEAD_MESSAGES: usize = 64;

/// Finds the summaries of earlier compactions, only where a compaction puts them: right after a head.
pub(crate) fn find_earlier(
    messages: &[Message],
    protect_first_n: usize,
) -> (Earlier, Option<EarlierSummary>) {
    let instructions = messages.iter().take_while(|m| m.role().is_instructions()).count();
    let reach = instructions + protect_first_n.max(USUAL_HEAD_MESSAGES) + 2;
    let mut earlier = Earlier::default();
    let mut documents = Vec::new();
    let mut stands_for = 0;
    let mut kept = None;
    for (index, message) in messages.iter().enumerate().take(reach) {
        if let Some(found) = find_summary(message) {
            let before = index.checked_sub(1).filter(|before| messages.get(*before).is_some_and(is_bridge));
            earlier.acknowledgements.extend(before);
            earlier.summaries.push(index);
            stands_for += found.messages;
            kept = found.kept;
            let mut document = SummaryDocument::parse(&found.body);
            if let Some(carried) = found.carried {
                document.add(Section::CriticalContext, carried);
            }
            documents.push(document);
        } else if earlier.summaries.contains(&index.wrapping_sub(1)) && is_acknowledgement(message) {
            earlier.acknowledgements.push(index);
        }
    }
    if documents.is_empty() {
        return (earlier, None);
    }
    let merged = SummaryDocument::merge(documents, u64::MAX, &|_| 0);
    (earlier, Some(EarlierSummary { document: merged, messages: stands_for, kept }))
}

/// Whether the list is unchanged since the last compaction. Below the threshold there is then nothing to do, even if forced: each further
/// compaction would only remove messages that were kept on purpose.
pub(crate) fn nothing_said_since(
    messages: &[Message],
    earlier: &Earlier,
    summary: Option<&EarlierSummary>,
) -> bool {
    let since = messages.len().saturating_sub(earlier.end());
    summary.and_then(|summary| summary.kept).is_some_and(|kept| since <= kept)
}
