//! Tests of which words of a question are looked up.

use super::*;

fn words(shares: &[f64]) -> Vec<WordLookup> {
    shares
        .iter()
        .enumerate()
        .map(|(number, share)| WordLookup { number, forms: Vec::new(), share: *share })
        .collect()
}

fn looked_up(shares: &[f64]) -> Vec<usize> {
    let mut words = words(shares);
    let out = leave_out_common(&mut words, 100_000.0);
    assert_eq!(words.len() + out.len(), shares.len());
    words.into_iter().map(|word| word.number).collect()
}

#[test]
fn words_of_most_blocks_are_left_out() {
    assert_eq!(looked_up(&[0.0001, 0.6, 0.001, 0.3]), [0, 2]);
}

#[test]
fn words_that_are_all_common_are_looked_up() {
    assert_eq!(looked_up(&[0.5, 0.5, 0.5]), [0, 1, 2]);
    assert_eq!(looked_up(&[0.9]), [0]);
    assert_eq!(looked_up(&[]), [0; 0]);
}

#[test]
fn words_that_tell_little_beside_the_others_are_left_out() {
    assert_eq!(looked_up(&[0.0001, 0.2, 0.0001, 0.0001]), [0, 2, 3]);
    assert_eq!(looked_up(&[0.01, 0.02, 0.01]), [0, 1, 2]);
}

#[test]
fn rarest_words_of_a_long_question_are_looked_up() {
    let shares: Vec<f64> = (0..MAX_SAMPLED_WORDS).map(|at| if at % 2 == 0 { 0.2 } else { 0.001 }).collect();
    let rare: Vec<usize> = (0..MAX_SAMPLED_WORDS).filter(|at| at % 2 == 1).collect();
    assert!(looked_up(&shares).iter().all(|number| rare.contains(number)));
    assert!(looked_up(&shares).len() >= MAX_WORDS - 2);
}
