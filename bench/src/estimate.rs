//! How far token estimates are off, against the provider's own usage in recorded sessions.
//!
//! Prints three tables: the error of a step (what was added between two calls), the error of the next whole prompt (what
//! was last measured and the estimate of what was added), and the step error by model. To show that the shipped
//! weights do not merely remember these sessions, everything is also computed with weights fitted on all sessions but the
//! one they are tested on.

#[path = "estimate/steps.rs"]
mod steps;

use std::path::Path;

use throughline_tokens::{Calibrator, Family, Sample, TokenModel, fit_weights};

use self::steps::{FIT, Session, Step};

/// Only steps that add this much are judged: smaller ones are mostly what the log does not show.
const SMALLEST_STEP_CHARS: u64 = 2_000;
/// Calls a calibrator may learn from before it is judged.
const CALIBRATION_CALLS: u64 = 10;

/// The tables for a folder of recorded Claude Code sessions.
pub(crate) fn run(folder: &Path) -> Result<String, String> {
    let sessions = steps::read_sessions(folder)?;
    let shipped = TokenModel::of(Family::Claude);
    let unseen: Vec<TokenModel> =
        (0..sessions.len()).map(|left_out| fit_without(&sessions, left_out)).collect();

    let quarter = judge(&sessions, |_, step| step.added.text.chars().div_ceil(4));
    let counted = judge(&sessions, |_, step| step.o200k_tokens);
    let scaled = judge(&sessions, |_, step| (step.o200k_tokens as f64 * 1.18) as u64);
    let own = judge(&sessions, |_, step| shipped.estimate_content(&step.added));
    let own_calibrated = judge_calibrated(&sessions, |_| &shipped);
    let left_out = judge(&sessions, |session, step| unseen[session].estimate_content(&step.added));
    let left_out_calibrated = judge_calibrated(&sessions, |session| &unseen[session]);

    let all_steps: usize = sessions.iter().map(|session| session.steps.len()).sum();
    let not_judged: usize = sessions.iter().map(|session| session.left_out).sum();
    let mut table = format!(
        "{} sessions, {all_steps} steps ({not_judged} across a compaction or with a shrinking prompt left out), \
         {} of them add {SMALLEST_STEP_CHARS} characters or more.\n\n",
        sessions.len(),
        own.len(),
    );
    let rows = [
        ("four characters a token", &quarter),
        ("exact o200k", &counted),
        ("exact o200k x 1.18", &scaled),
        ("ours, before calibration", &own),
        ("ours, after ten calls", &own_calibrated),
        ("ours, session left out of the fit, before calibration", &left_out),
        ("ours, session left out of the fit, after ten calls", &left_out_calibrated),
    ];
    table += "| error of a step | median | p90 | bias (median) | steps |\n|---|---|---|---|---|\n";
    for (name, errors) in rows {
        let signed: Vec<f64> = errors.iter().map(|error| error.step).collect();
        table += &format!(
            "| {name} | {} | {} | {} | {} |\n",
            percent(quantile(absolute(&signed), 0.5)),
            percent(quantile(absolute(&signed), 0.9)),
            signed_percent(quantile(signed.clone(), 0.5)),
            signed.len(),
        );
    }
    table += "\n| error of the next whole prompt | median | p95 | largest |\n|---|---|---|---|\n";
    for (name, errors) in rows {
        let off = absolute(&errors.iter().map(|error| error.prompt).collect::<Vec<_>>());
        table += &format!(
            "| {name} | {} | {} | {} |\n",
            fine_percent(quantile(off.clone(), 0.5)),
            fine_percent(quantile(off.clone(), 0.95)),
            fine_percent(quantile(off, 1.0)),
        );
    }
    table += "\n| error of a step by model (median, session left out of the fit) | before calibration | after ten calls | steps |\n|---|---|---|---|\n";
    let mut models: Vec<&str> = left_out.iter().map(|error| error.model).collect();
    models.sort_unstable();
    models.dedup();
    for model in models {
        let of = |errors: &[StepError<'_>]| -> Vec<f64> {
            errors.iter().filter(|error| error.model == model).map(|error| error.step.abs()).collect()
        };
        let (before, after) = (of(&left_out), of(&left_out_calibrated));
        table += &format!(
            "| {model} | {} | {} | {} |\n",
            percent(quantile(before.clone(), 0.5)),
            percent(quantile(after, 0.5)),
            before.len(),
        );
    }
    table += "\nWhat remains is mostly not the tokenizer: thinking is in the logs as a summary only, and reminders that the \
              client adds to a request are not in them at all.\n";
    Ok(table)
}

/// Relative errors of one step.
struct StepError<'a> {
    model: &'a str,
    /// Of what was added.
    step: f64,
    /// Of the next whole prompt.
    prompt: f64,
}

impl<'a> StepError<'a> {
    fn new(step: &'a Step, estimated: u64) -> Self {
        let relative = |estimated: u64, measured: u64| (estimated as f64 - measured as f64) / measured as f64;
        Self {
            model: &step.model,
            step: relative(estimated, step.measured()),
            prompt: relative(step.prompt_before + estimated, step.prompt_after),
        }
    }
}

fn is_judged(step: &Step) -> bool {
    step.added.text.chars() >= SMALLEST_STEP_CHARS
}

fn judge(sessions: &[Session], estimate: impl Fn(usize, &Step) -> u64) -> Vec<StepError<'_>> {
    let mut errors = Vec::new();
    for (at, session) in sessions.iter().enumerate() {
        let judged = session.steps.iter().filter(|step| is_judged(step));
        errors.extend(judged.map(|step| StepError::new(step, estimate(at, step))));
    }
    errors
}

/// Every session starts knowing nothing and is judged once its calibrator has learnt from ten calls.
fn judge_calibrated<'a, 'm>(
    sessions: &'a [Session],
    model: impl Fn(usize) -> &'m TokenModel,
) -> Vec<StepError<'a>> {
    let mut errors = Vec::new();
    for (at, session) in sessions.iter().enumerate() {
        let model = model(at);
        let mut calibrator = Calibrator::new();
        for step in &session.steps {
            let estimated = model.estimate_content(&step.added);
            if calibrator.samples() >= CALIBRATION_CALLS && is_judged(step) {
                errors.push(StepError::new(step, calibrator.correct(estimated)));
            }
            calibrator.observe(estimated, step.measured());
        }
    }
    errors
}

/// Weights fitted on all sessions but one, from a prior that never saw a session: those of the OpenAI encodings, scaled.
fn fit_without(sessions: &[Session], left_out: usize) -> TokenModel {
    let samples: Vec<Sample> = sessions
        .iter()
        .enumerate()
        .filter(|(at, _)| *at != left_out)
        .flat_map(|(_, session)| session.steps.iter().map(Step::sample))
        .collect();
    let fitted = fit_weights(&samples, &steps::claude_priors(), FIT);
    steps::model_of(&fitted)
}

fn absolute(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value.abs()).collect()
}

fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = ((values.len() as f64 * share) as usize).min(values.len().saturating_sub(1));
    values.get(at).copied().unwrap_or(f64::NAN)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn signed_percent(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}

fn fine_percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}
