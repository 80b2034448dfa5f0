//! Compares estimates with the provider's counts in recorded sessions: the error for a step, and for the next whole prompt.
//!
//! Weights look too good on the sessions they were fitted to, so every session is also estimated with weights fitted to all the others.

#[path = "estimate/fit.rs"]
pub(crate) mod fit;
#[path = "estimate/steps.rs"]
pub(crate) mod steps;

use std::fmt::Write;
use std::path::Path;

use throughline_tokens::{Calibrator, Family, TokenModel};

use self::fit::{Sample, fit_weights};
use self::steps::{FIT, Session, Step, claude_priors, model_of, read_sessions};

/// The smallest step, in characters. The log does not show most of what smaller steps add.
const LEAST_CHARS: u64 = 2_000;
/// The number of calls after which a calibration counts as settled.
const SETTLING_CALLS: usize = 10;

/// Estimates a step.
type Estimate<'a> = dyn Fn(&Step) -> f64 + 'a;

/// The relative errors of one estimator.
#[derive(Default)]
struct Errors(Vec<f64>);

impl Errors {
    fn push(&mut self, estimated: f64, measured: f64) {
        self.0.push((estimated - measured) / measured.max(1.0));
    }

    /// The error that this share of the steps does not exceed, in percent.
    fn percentile(&self, share: f64) -> f64 {
        let mut sizes: Vec<f64> = self.0.iter().map(|error| error.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let at = ((sizes.len() as f64 * share) as usize).min(sizes.len().saturating_sub(1));
        100.0 * sizes.get(at).copied().unwrap_or_default()
    }

    /// The median error in percent: positive if estimates are too high.
    fn bias(&self) -> f64 {
        let mut errors = self.0.clone();
        errors.sort_by(f64::total_cmp);
        100.0 * errors.get(errors.len() / 2).copied().unwrap_or_default()
    }
}

/// The errors for steps and for whole prompts.
#[derive(Default)]
struct Row {
    step: Errors,
    prompt: Errors,
}

impl Row {
    fn note(&mut self, step: &Step, estimated: f64) {
        self.step.push(estimated, step.measured() as f64);
        self.prompt.push(step.prompt_before as f64 + estimated, step.prompt_after as f64);
    }
}

fn is_large(step: &Step) -> bool {
    step.added.text.chars() >= LEAST_CHARS
}

/// Estimates every large step of every session in the same way.
fn uncalibrated(sessions: &[Session], estimate: &Estimate<'_>) -> Row {
    let mut row = Row::default();
    for step in sessions.iter().flat_map(|session| &session.steps).filter(|step| is_large(step)) {
        row.note(step, estimate(step));
    }
    row
}

/// Estimates with a factor that each session learns from its own earlier steps.
fn calibrated(sessions: &[Session], model_for: &dyn Fn(usize) -> TokenModel) -> Row {
    let mut row = Row::default();
    for (at, session) in sessions.iter().enumerate() {
        let model = model_for(at);
        let mut calibrator = Calibrator::new();
        for (calls, step) in session.steps.iter().enumerate() {
            let estimated = model.estimate_content(&step.added);
            if calls >= SETTLING_CALLS && is_large(step) {
                row.note(step, estimated as f64 * calibrator.factor());
            }
            calibrator.observe(estimated, step.measured());
        }
    }
    row
}

/// Weights fitted to all sessions but one.
fn fitted_without(sessions: &[Session], left_out: usize) -> TokenModel {
    let others = sessions.iter().enumerate().filter(|(at, _)| *at != left_out);
    let samples: Vec<Sample> = others.flat_map(|(_, session)| &session.steps).map(Step::sample).collect();
    model_of(&fit_weights(&samples, &claude_priors(), FIT))
}

/// Formats the table for a folder of recorded sessions.
pub(crate) fn run(folder: &Path) -> Result<String, String> {
    let sessions = read_sessions(folder)?;
    let shipped = TokenModel::of(Family::Claude);
    let folds: Vec<TokenModel> = (0..sessions.len()).map(|at| fitted_without(&sessions, at)).collect();
    let mut unseen = Row::default();
    for (session, model) in sessions.iter().zip(&folds) {
        for step in session.steps.iter().filter(|step| is_large(step)) {
            unseen.note(step, model.estimate_content(&step.added) as f64);
        }
    }
    let rows = [
        ("four characters a token", uncalibrated(&sessions, &|step| step.added.text.chars() as f64 / 4.0)),
        ("o200k, exact", uncalibrated(&sessions, &|step| step.o200k_tokens as f64)),
        (
            "ours, shipped weights",
            uncalibrated(&sessions, &|step| shipped.estimate_content(&step.added) as f64),
        ),
        ("ours, weights fitted without the session", unseen),
        ("shipped, calibrated, after 10 calls", calibrated(&sessions, &|_| shipped.clone())),
        ("without the session, calibrated, after 10", calibrated(&sessions, &|at| folds[at].clone())),
    ];
    let steps: usize = sessions.iter().map(|session| session.steps.len()).sum();
    let left_out: usize = sessions.iter().map(|session| session.left_out).sum();
    let mut models: Vec<&str> =
        sessions.iter().flat_map(|s| &s.steps).map(|step| step.model.as_str()).collect();
    models.sort_unstable();
    models.dedup();
    let mut out = format!(
        "{} sessions, {steps} steps ({left_out} left out: a compaction, or a prompt that shrank); models {}\n\n",
        sessions.len(),
        models.join(", ")
    );
    let _ = writeln!(out, "{:<42} {:>6} {:>22} {:>8} {:>18}", "", "steps", "a step", "", "the next prompt");
    let _ = writeln!(
        out,
        "{:<42} {:>6} {:>9} {:>6} {:>5} {:>8} {:>9} {:>8}",
        "estimate", "", "median", "p90", "bias", "", "median", "p95"
    );
    for (name, row) in &rows {
        let _ = writeln!(
            out,
            "{name:<42} {:>6} {:>8.1}% {:>5.0}% {:>+4.0}% {:>8} {:>8.2}% {:>7.2}%",
            row.step.0.len(),
            row.step.percentile(0.5),
            row.step.percentile(0.9),
            row.step.bias(),
            "",
            row.prompt.percentile(0.5),
            row.prompt.percentile(0.95)
        );
    }
    out.push_str(
        "\nSteps that add 2,000 characters or more. What remains: reminders the client adds to a request and full\n\
         thinking are not in the logs, and tool results are trimmed by the client after they were logged.\n",
    );
    Ok(out)
}
