//! Masks secrets in the output of an engine in another process, as in our own summaries.
//!
//! Unchanged messages are not its own text and are not masked.

use std::borrow::Cow;

use serde_json::Value;
use throughline_engine::{CompactedView, CompressOutcome, NewItem};
use throughline_redact::Redactor;

/// Returns the outcome without secrets; a warning states the number of masked places.
pub(crate) fn masked(outcome: CompressOutcome, redactor: &Redactor) -> CompressOutcome {
    let CompressOutcome::Completed(mut made) = outcome else { return outcome };
    let places = mask(&mut made, redactor);
    if places > 0 {
        let words = format!("secrets were masked in {places} texts that the engine wrote");
        made.report.warnings.push(words);
    }
    CompressOutcome::Completed(made)
}

fn mask(made: &mut CompactedView, redactor: &Redactor) -> usize {
    let mut places = 0;
    for item in &mut made.view {
        let json = match item {
            NewItem::Kept { .. } => continue,
            NewItem::Rewritten { json, .. } | NewItem::Summary { json } | NewItem::Synthetic { json, .. } => {
                json
            }
        };
        // Text that is not JSON is refused later.
        let Ok(mut message) = serde_json::from_str::<Value>(json) else { continue };
        if mask_value(&mut message, redactor) {
            *json = message.to_string();
            places += 1;
        }
    }
    if let Some(summary) = &mut made.summary {
        if let Cow::Owned(clean) = redactor.redact(&summary.document) {
            summary.document = clean;
            places += 1;
        }
        places += usize::from(mask_value(&mut summary.facts, redactor));
        places += usize::from(mask_value(&mut summary.figures, redactor));
    }
    places
}

/// Masks every text in a value; returns whether anything was masked.
fn mask_value(value: &mut Value, redactor: &Redactor) -> bool {
    match value {
        Value::String(text) => {
            let clean = match redactor.redact(text) {
                Cow::Owned(clean) if clean != *text => clean,
                _ => return false,
            };
            *text = clean;
            true
        }
        // All of them, without stopping at the first.
        Value::Array(items) => {
            items.iter_mut().filter_map(|item| mask_value(item, redactor).then_some(())).count() > 0
        }
        Value::Object(members) => {
            members.values_mut().filter_map(|item| mask_value(item, redactor).then_some(())).count() > 0
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
