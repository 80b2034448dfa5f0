//! Replaces old images by labels, when a request has too many bytes.
//!
//! An image is old if a person sent a newer one after it, or if it came from a tool before the last step.

use std::collections::HashMap;

use throughline_compaction::{
    BeforeAfter, Earlier, Ledger, Plan, PruneRules, Quality, Rendition, RenditionKind, prune,
};
use throughline_transcript::{Groups, Role};

use crate::compressor::adapter::change_name;
use crate::context_engine::outcome::{CompactedView, CompressReport, NewItem};
use crate::prompt::view::LiveView;

/// Returns the messages with labels in place of old images.
fn renditions(view: &LiveView) -> HashMap<usize, Rendition> {
    let messages = view.messages();
    if !messages.iter().any(|message| message.has_image()) {
        return HashMap::new();
    }
    let groups = Groups::of(messages);
    // The last group is the one that the model is about to answer.
    let end = groups.as_slice().last().map_or(0, |group| group.start);
    let plan = Plan {
        head: 0..end,
        middle: end..end,
        tail: end..messages.len(),
        pinned: None,
        earlier: Earlier::default(),
        summary_role: Role::User,
        acknowledge: false,
    };
    let everything_else_stays =
        PruneRules { result_min_chars: usize::MAX / 16, argument_max_chars: usize::MAX / 2 };
    let ledger = Ledger::of(messages, &groups, None);
    let (renditions, _) = prune(messages, &plan, &ledger, everything_else_stays);
    let has_image = |index: &usize| messages.get(*index).is_some_and(|message| message.has_image());
    renditions.into_iter().filter(|(index, _)| has_image(index)).collect()
}

/// Returns the bytes saved by replacing old images with labels.
pub(crate) fn old_image_bytes(view: &LiveView) -> u64 {
    let saved = |(index, rendition): (usize, Rendition)| {
        let before = view.messages().get(index).map_or(0, |message| message.json().len());
        before.saturating_sub(rendition.json.len()) as u64
    };
    renditions(view).into_iter().map(saved).sum()
}

/// Returns the view with labels in place of old images, and without a new summary.
pub(crate) fn without_old_images(view: &LiveView, prompt_tokens: u64) -> CompactedView {
    let mut renditions = renditions(view);
    let item = |item: usize| match renditions.remove(&item) {
        None => NewItem::Kept { item },
        Some(Rendition { kinds, json }) => NewItem::Rewritten {
            item,
            changes: kinds.into_iter().map(|kind: RenditionKind| change_name(kind).to_owned()).collect(),
            json,
        },
    };
    let messages = view.len() as u64;
    CompactedView {
        view: (0..view.len()).map(item).collect(),
        summary: None,
        quality: Quality::Rules,
        report: CompressReport {
            tokens: BeforeAfter { before: prompt_tokens, after: prompt_tokens },
            messages: BeforeAfter { before: messages, after: messages },
            ..CompressReport::default()
        },
    }
}
