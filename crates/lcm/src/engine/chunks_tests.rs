//! Tests of where chunks are split.

#![expect(clippy::single_range_in_vec_init, reason = "stretches are given as a list, however many there are")]

use throughline_transcript::{Role, WireFormat, decode_message_text, text_message};

use super::*;

fn groups(count: usize) -> Groups {
    let messages: Vec<_> = (0..count)
        .map(|at| {
            let role = if at % 2 == 0 { Role::User } else { Role::Assistant };
            decode_message_text(text_message(WireFormat::Chat, role, "words")).unwrap()
        })
        .collect();
    Groups::of(&messages)
}

#[test]
fn chunks_are_filled_from_the_oldest_on() {
    let (groups, sizes) = (groups(8), [4, 4, 4, 4, 4, 4, 4, 4]);
    let cut =
        |stretches: &[Range<usize>], taken: &[CoveredRange]| chunks(stretches, taken, &groups, &sizes, 10);
    assert_eq!(cut(&[0..7], &[]), [0..2, 2..4, 4..6, 6..7]);
    // Longer: the earlier chunks are unchanged.
    assert_eq!(cut(&[0..8], &[]), [0..2, 2..4, 4..6, 6..8]);
    // A range in between that stays in view separates chunks.
    assert_eq!(cut(&[0..3, 4..8], &[]), [0..2, 2..3, 4..6, 6..8]);
    // A range covered by a leaf is a chunk, and no other chunk overlaps it.
    assert_eq!(cut(&[0..8], &[1..4]), [0..1, 1..4, 4..6, 6..8]);
    assert_eq!(cut(&[0..3], &[1..4]), [0..1, 1..3], "one that reaches beyond is of no use");
    assert_eq!(cut(&[], &[]), [] as [Range<usize>; 0]);
}

#[test]
fn a_message_larger_than_a_chunk_is_one_by_itself() {
    let (groups, sizes) = (groups(3), [1, 99, 1]);
    assert_eq!(chunks(&[0..3], &[], &groups, &sizes, 10), [0..1, 1..2, 2..3]);
}
