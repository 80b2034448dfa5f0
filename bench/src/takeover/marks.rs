//! Shows notes beside the marks of their session, each mark with whether the notes meet it.

use std::fmt::Write;

use super::Candidate;
use super::score::{NotesForm, Text, false_statements, has, said};
use super::text::fold;
use super::truth::Truth;

/// Formats our notes, then the marks.
pub(super) fn beside(truth: &Truth, marks: &str, candidates: &[Candidate]) -> Result<String, String> {
    let mut out = String::new();
    for candidate in candidates.iter().filter(|c| c.column.starts_with("ours") || c.column == "merged") {
        let _ = writeln!(out, "================ {}\n{}", candidate.column, candidate.notes);
        let _ = writeln!(out, "\n================ {}: met (+) and not met (-)", candidate.column);
        let (notes, view) = (fold(&candidate.notes), fold(&candidate.view));
        let mut put = |is_met: bool, kind: &str, words: &str| {
            let _ = writeln!(out, "{} {kind}: {words}", if is_met { '+' } else { '-' });
        };
        for probe in &truth.probes {
            let place = if has(&notes, &probe.keys) {
                "probe"
            } else if has(&view, &probe.keys) {
                "probe (in the view)"
            } else {
                "probe"
            };
            put(has(&notes, &probe.keys), place, &probe.ask);
        }
        for request in &truth.requests {
            put(said(&notes, &request.quote, 0.75), &format!("request, {}", request.fate), &request.quote);
        }
        for rule in &truth.constraints {
            put(notes.contains(&fold(&rule.quote)), "constraint", &rule.quote);
        }
        for decision in &truth.decisions {
            put(has(&notes, &decision.keys), "decision", &format!("{:?}", decision.keys));
        }
        for item in &truth.todo {
            put(said(&notes, &item.subject, 0.75), &format!("item, {}", item.state), &item.subject);
        }
        for blocker in &truth.blockers {
            let kind = if blocker.open { "blocker" } else { "blocker, solved" };
            put(said(&notes, &blocker.quote, 0.6), kind, &blocker.quote);
        }
        let text = Text::of(&candidate.notes, &candidate.view, NotesForm::Sections);
        for statement in false_statements(truth, &text)? {
            put(false, "false statement", statement);
        }
    }
    let _ = writeln!(out, "\n================ marks\n{marks}\n");
    Ok(out)
}
