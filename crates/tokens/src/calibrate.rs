//! Learns the error of estimates from real usage.
//!
//! Every answered call reports the tokens of its prompt. The difference to the previous prompt is the real size of what was added in
//! between; divided by its estimate, it gives a ratio. A [`Calibrator`] keeps a running mean of the logarithm of that ratio for one
//! provider and model, robust against steps that are unrelated to the tokenizer (hidden reminders, dropped reasoning, a changed system
//! prompt), and forgets slowly, so that it follows a model that changes without a change of name. Pure: no clock, no randomness, same
//! observations, same state.

use serde::{Deserialize, Serialize};

/// Additions with a smaller estimate are mostly overhead and rounding, and are not used.
const SMALLEST_ADDITION_TOKENS: u64 = 300;
/// An addition of this size has half the weight of a very large one.
const HALF_EVIDENCE_TOKENS: f64 = 1_500.0;
/// Larger or smaller ratios have another cause than the tokenizer.
const LARGEST_RATIO: f64 = 4.0;
/// The weight of the prior, in observations.
const PRIOR_EVIDENCE: f64 = 0.5;
/// The factor on the evidence with each new observation: about the last twenty count.
const MEMORY: f64 = 0.95;
/// The expected error of a prior that was never measured: one in three models is further off.
const PRIOR_DISPERSION: f64 = 0.3;
/// An observation further from the mean than this many times the usual distance counts as if it were at that distance.
const OUTLIER_DISTANCE: f64 = 0.7;

/// How much further the scatter reaches than the factor.
const SCATTER_REACH: f64 = 4.0;
/// The lower limit of the dispersion, so that a real change is not treated as an outlier forever.
const SMALLEST_DISPERSION: f64 = 0.02;

/// The error of estimates for one provider and model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Calibrator {
    /// Mean logarithm of measured / estimated.
    log_factor: f64,
    /// Evidence behind it, the prior's included.
    evidence: f64,
    /// Mean square distance of observations from the factor, in logarithms.
    variance: f64,
    /// Number of observations used.
    samples: u64,
}

impl Default for Calibrator {
    fn default() -> Self {
        Self {
            log_factor: 0.0,
            evidence: PRIOR_EVIDENCE,
            variance: PRIOR_DISPERSION * PRIOR_DISPERSION,
            samples: 0,
        }
    }
}

/// Whether an observation was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observation {
    /// It changed the factor.
    Learnt,
    /// It was too small.
    TooSmall,
    /// The prompt did not grow, so something was removed as well.
    NotAnAddition,
}

impl Calibrator {
    /// A calibrator without observations: factor 1.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Learns that something estimated at `estimated_added` tokens was counted as `measured_added`.
    pub fn observe(&mut self, estimated_added: u64, measured_added: u64) -> Observation {
        if measured_added == 0 {
            return Observation::NotAnAddition;
        }
        if estimated_added < SMALLEST_ADDITION_TOKENS {
            return Observation::TooSmall;
        }
        let (estimated, measured) = (estimated_added as f64, measured_added as f64);
        let ratio = (measured / estimated).clamp(LARGEST_RATIO.recip(), LARGEST_RATIO);
        let reach = OUTLIER_DISTANCE * self.variance.sqrt();
        let whole_distance = ratio.ln() - self.log_factor;
        let distance = whole_distance.clamp(-reach, reach);
        let weight = estimated / (estimated + HALF_EVIDENCE_TOKENS);
        self.evidence = self.evidence * MEMORY + weight;
        let share = weight / self.evidence;
        self.log_factor += share * distance;
        // The scatter uses more of an outlier than the factor does: a lasting change widens the reach until the factor follows it, a single
        // outlier does not.
        let seen = whole_distance.clamp(-SCATTER_REACH * reach, SCATTER_REACH * reach);
        self.variance += share * (seen * seen - self.variance);
        self.variance = self.variance.max(SMALLEST_DISPERSION * SMALLEST_DISPERSION);
        self.samples += 1;
        Observation::Learnt
    }

    /// Returns the factor for estimates. A mean within its own uncertainty of the prior is mostly noise and is drawn back to it; one
    /// outside is used unchanged.
    #[must_use]
    pub fn factor(&self) -> f64 {
        let signal = self.log_factor * self.log_factor;
        let noise = self.variance / self.evidence.max(f64::MIN_POSITIVE);
        let kept = if signal > 0.0 { signal / (signal + noise) } else { 0.0 };
        (self.log_factor * kept).exp()
    }

    /// Returns the usual distance of an observation from the factor, as a share of it.
    #[must_use]
    pub fn dispersion(&self) -> f64 {
        self.variance.sqrt()
    }

    /// Returns the number of observations used.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Returns an estimate multiplied by the factor.
    #[must_use]
    pub fn correct(&self, estimated: u64) -> u64 {
        if estimated == 0 { 0 } else { ((estimated as f64 * self.factor()).round() as u64).max(1) }
    }
}

#[cfg(test)]
#[path = "calibrate_tests.rs"]
mod tests;
