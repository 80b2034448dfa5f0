//! Earlier compactions of a conversation: their summaries, parsed, and the number of messages since.

use throughline_transcript::Message;

use crate::document::SummaryDocument;
use crate::plan::Earlier;
use crate::preface::{SummaryFrame, is_bridge};
use crate::sections::Section;

/// What the summaries of earlier compactions say, as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierSummary {
    /// Their sections.
    pub document: SummaryDocument,
    /// How many messages they cover.
    pub messages: usize,
    /// How many messages after the last of them were kept when it was made, if it says so.
    pub kept: Option<usize>,
}

/// Heads are rarely longer than this, with any settings.
const USUAL_HEAD_MESSAGES: usize = 64;

/// Finds summaries an earlier compaction left, only where a compaction puts them: right after a head.
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
        if let Some(found) = SummaryFrame::find(message) {
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
        } else if earlier.summaries.contains(&index.wrapping_sub(1))
            && SummaryFrame::is_acknowledgement(message)
        {
            earlier.acknowledgements.push(index);
        }
    }
    if documents.is_empty() {
        return (earlier, None);
    }
    let merged = SummaryDocument::merge(documents, u64::MAX, &|_| 0);
    (earlier, Some(EarlierSummary { document: merged, messages: stands_for, kept }))
}

/// Whether the list is what the last compaction left. Below the threshold there is then nothing to be done, even when
/// forced: each further compaction would only eat into what was kept on purpose.
pub(crate) fn nothing_said_since(
    messages: &[Message],
    earlier: &Earlier,
    summary: Option<&EarlierSummary>,
) -> bool {
    let since = messages.len().saturating_sub(earlier.end());
    summary.and_then(|summary| summary.kept).is_some_and(|kept| since <= kept)
}
