//! Fits weights to measured counts: this produced the priors, and lets a benchmark test them on unseen sessions.
//!
//! Least squares on relative errors with non-negative weights and a prior, re-weighted so that outliers (steps whose log does not show
//! everything that was sent) have little effect. Deterministic; some sixty columns need no matrix library.

/// A measured text.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// The number of occurrences of each shape.
    pub(crate) columns: Vec<f64>,
    /// The provider's count.
    pub(crate) tokens: f64,
    /// The weight of the sample.
    pub(crate) importance: f64,
}

/// The prior of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prior {
    /// The weight without samples.
    pub(crate) weight: f64,
    /// The largest weight.
    pub(crate) ceiling: f64,
}

/// The options of a fit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FitOptions {
    /// The strength of the prior, in samples that consist of the shape only.
    pub(crate) prior_samples: f64,
    /// The relative error up to which a sample counts fully; beyond it, it counts less with growing error.
    pub(crate) tolerance: f64,
    /// The number of re-weighting rounds.
    pub(crate) rounds: usize,
}

impl Default for FitOptions {
    fn default() -> Self {
        Self { prior_samples: 1e-6, tolerance: 0.02, rounds: 8 }
    }
}

/// Returns the weights, one per column, that best explain the samples: none below zero, none above its ceiling. `priors` has one value
/// per column; a column that occurs in no sample keeps its prior.
pub(crate) fn fit_weights(samples: &[Sample], priors: &[Prior], options: FitOptions) -> Vec<f64> {
    let mut weights: Vec<f64> = priors.iter().map(|prior| prior.weight).collect();
    let mut trust = vec![1.0; samples.len()];
    for _ in 0..options.rounds {
        let system = System::build(samples, &trust, priors, options.prior_samples);
        weights = system.solve(&weights, priors);
        for (sample, trust) in samples.iter().zip(&mut trust) {
            let off = relative_error(sample, &weights).abs();
            *trust = (options.tolerance / off.max(options.tolerance)).sqrt();
        }
    }
    weights
}

/// The relative error: (estimate - measured) / measured.
pub(crate) fn relative_error(sample: &Sample, weights: &[f64]) -> f64 {
    let estimate: f64 = sample.columns.iter().zip(weights).map(|(count, weight)| count * weight).sum();
    (estimate - sample.tokens) / sample.tokens.max(1.0)
}

/// The normal equations, with columns scaled to length one.
struct System {
    size: usize,
    gram: Vec<f64>,
    right: Vec<f64>,
    scale: Vec<f64>,
}

impl System {
    fn build(samples: &[Sample], trust: &[f64], priors: &[Prior], prior_samples: f64) -> Self {
        let size = priors.len();
        let mut gram = vec![0.0; size * size];
        let mut right = vec![0.0; size];
        for (sample, trust) in samples.iter().zip(trust) {
            let factor = sample.importance * trust / sample.tokens.max(1.0);
            let square = factor * factor;
            for (row, count) in sample.columns.iter().enumerate().filter(|(_, count)| **count != 0.0) {
                right[row] += square * count * sample.tokens;
                for (sum, other) in gram[row * size..(row + 1) * size].iter_mut().zip(&sample.columns) {
                    *sum += square * count * other;
                }
            }
        }
        for (at, prior) in priors.iter().enumerate() {
            gram[at * size + at] += prior_samples;
            right[at] += prior_samples * prior.weight;
        }
        let scale: Vec<f64> = (0..size).map(|at| gram[at * size + at].sqrt().max(1e-12)).collect();
        for row in 0..size {
            for column in 0..size {
                gram[row * size + column] /= scale[row] * scale[column];
            }
            right[row] /= scale[row];
        }
        Self { size, gram, right, scale }
    }

    /// Coordinate descent, which keeps every weight within its bounds.
    fn solve(&self, start: &[f64], priors: &[Prior]) -> Vec<f64> {
        const SWEEPS: usize = 4000;
        const SETTLED: f64 = 1e-10;
        let mut scaled: Vec<f64> =
            start.iter().zip(&self.scale).map(|(weight, scale)| weight * scale).collect();
        for _ in 0..SWEEPS {
            let mut largest_step = 0.0_f64;
            for at in 0..self.size {
                let row = &self.gram[at * self.size..(at + 1) * self.size];
                let gradient = row.iter().zip(&scaled).map(|(g, x)| g * x).sum::<f64>() - self.right[at];
                let ceiling = priors[at].ceiling * self.scale[at];
                let next = (scaled[at] - gradient / row[at].max(1e-12)).clamp(0.0, ceiling.max(0.0));
                largest_step = largest_step.max((next - scaled[at]).abs());
                scaled[at] = next;
            }
            if largest_step < SETTLED {
                break;
            }
        }
        scaled.iter().zip(&self.scale).map(|(weight, scale)| weight / scale).collect()
    }
}
