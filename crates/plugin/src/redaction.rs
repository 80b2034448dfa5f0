//! Secrets in what an engine of another process wrote: masked by code, as in our own summaries.
//!
//! Messages that are kept as they are are not its words and are left alone.

use std::borrow::Cow;

use serde_json::Value;
use throughline_engine::{CompactedView, CompressOutcome, NewItem};
use throughline_redact::Redactor;

/// The outcome without secrets; how many places were masked is among its warnings.
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
        // What is no JSON is refused later on.
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

/// Masks every text in a value; whether there was anything to mask.
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
        // Each of them, not only up to the first.
        Value::Array(items) => {
            items.iter_mut().filter_map(|item| mask_value(item, redactor).then_some(())).count() > 0
        }
        Value::Object(members) => {
            members.values_mut().filter_map(|item| mask_value(item, redactor).then_some(())).count() > 0
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
