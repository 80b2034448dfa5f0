//! Tests of sizes computed from a measured prompt and the changes since.

use throughline_tokens::Calibrator;

use super::Estimator;
use crate::context_engine::status::SizeBasis;

#[test]
fn without_a_measured_prompt_everything_is_estimated() {
    let pending = Estimator::default().pending(2_000, 8_000, 12);
    assert_eq!((pending.total_tokens, pending.basis), (10_000, SizeBasis::Estimated));
    assert_eq!((pending.fixed_tokens, pending.message_tokens, pending.messages), (2_000, 8_000, 12));
}

#[test]
fn a_measured_prompt_is_the_base_and_only_the_rest_is_estimated() {
    let mut estimator = Estimator::default();
    estimator.measured(15_000, 10_000);
    let factor = estimator.calibrator().factor();
    let pending = estimator.pending(2_000, 9_000, 13);
    let added = (1_000.0 * factor).round() as u64;
    assert_eq!(pending.total_tokens, 15_000 + added);
    let basis = SizeBasis::Measured { last_prompt_tokens: 15_000, added_tokens: added };
    assert_eq!(pending.basis, basis);
    // Without changes: exactly the measured size. With fewer tools: less.
    assert_eq!(estimator.pending(2_000, 8_000, 12).total_tokens, 15_000);
    assert!(estimator.pending(1_000, 8_000, 12).total_tokens < 15_000);
}

#[test]
fn each_prompt_teaches_what_its_additions_weigh() {
    let mut estimator = Estimator::default();
    let (mut measured, mut estimated) = (10_000, 10_000);
    estimator.measured(measured, estimated);
    for _ in 0..20 {
        (measured, estimated) = (measured + 3_000, estimated + 2_000);
        assert_eq!(estimator.measured(measured, estimated), Some((2_000, 3_000)));
    }
    let factor = estimator.calibrator().factor();
    assert!((1.4..1.6).contains(&factor), "{factor}");
    // After a compaction, the corrected estimate is used alone.
    estimator.forget_prompt();
    let pending = estimator.pending(2_000, 8_000, 5);
    assert_eq!(pending.basis, SizeBasis::Estimated);
    assert!((14_000..16_000).contains(&pending.total_tokens), "{pending:?}");
}

#[test]
fn a_prompt_that_shrank_teaches_nothing() {
    let mut estimator = Estimator::new(Calibrator::new());
    estimator.measured(10_000, 10_000);
    assert_eq!(estimator.measured(9_000, 9_000), None);
    assert_eq!(estimator.last_prompt_tokens(), Some(9_000));
}

#[test]
fn count_far_below_the_estimate_is_not_taken_for_the_prompt() {
    let mut estimator = Estimator::default();
    // A server that counts only what its cache did not hold: everything is estimated, or from the last usable count.
    assert_eq!(estimator.measured(40, 10_000), None);
    assert_eq!(estimator.pending(2_000, 8_000, 12).basis, SizeBasis::Estimated);
    estimator.measured(10_000, 10_000);
    assert_eq!(estimator.measured(40, 11_000), None);
    let basis = SizeBasis::Measured { last_prompt_tokens: 10_000, added_tokens: 1_000 };
    assert_eq!(estimator.pending(2_000, 9_000, 13).basis, basis);
    estimator.resume(0, 11_000);
    assert_eq!(estimator.last_prompt_tokens(), None);
    // Short prompts are mostly overhead, and their counts are used.
    estimator.measured(12, 400);
    assert_eq!(estimator.last_prompt_tokens(), Some(12));
}
