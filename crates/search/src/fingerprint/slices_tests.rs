//! Tests of segments that are turned around.

use proptest::prelude::*;

use super::*;
use crate::fingerprint::FINGERPRINTS;

#[test]
fn blocks_are_given_from_the_highest_down() {
    let mut blocks = BlockSet::none();
    assert_eq!(blocks.len(), 0);
    [0, 63, 64, 1023].into_iter().for_each(|block| blocks.add(block));
    assert_eq!(blocks.descending().collect::<Vec<_>>(), [1023, 64, 63, 0]);
    assert_eq!(blocks.len(), 4);
    let mut few = BlockSet::none();
    few.add(64);
    blocks.keep(&few);
    assert_eq!(blocks, few);
    blocks.keep(&BlockSet::all());
    assert_eq!(blocks, few);
}

#[test]
fn every_fingerprint_has_its_slice() {
    for fingerprint in
        [0, 2_047, 2_048, FIRST_PAIR - 1, FIRST_PAIR, FIRST_PAIR + 255, FIRST_PAIR + 256, FINGERPRINTS - 1]
    {
        let slice = IndexSegment::slice_of(fingerprint);
        assert!(slice < IndexSegment::SLICES);
        assert_eq!(first_fingerprint(slice) + low_bits(fingerprint), fingerprint);
        assert_eq!(is_of_pairs(slice), fingerprint >= FIRST_PAIR);
    }
}

#[test]
fn the_form_of_slices_is_part_of_the_format() {
    let many: Vec<u32> = vec![3, 4, 7, FIRST_PAIR + 9];
    let few: Vec<u32> = vec![4, 900, FIRST_PAIR + 10];
    let blocks: Vec<(usize, &[u32])> = (0..128)
        .map(|block| (block, if block % 5 == 1 { few.as_slice() } else { many.as_slice() }))
        .collect();
    let written: Vec<(usize, Vec<u8>)> = IndexSegment::slices(&blocks, 128)
        .into_iter()
        .enumerate()
        .filter(|(_, slice)| !slice.is_empty())
        .collect();
    insta::assert_debug_snapshot!(
        written.iter().map(|(at, slice)| format!("{at}: {slice:?}")).collect::<Vec<_>>()
    );
}

fn segments() -> impl Strategy<Value = (usize, Vec<Vec<u32>>)> {
    // Few fingerprints in many blocks, and many in few, of both kinds: every form of entries.
    let fingerprints = prop_oneof![0_u32..40, 0..FINGERPRINTS, FIRST_PAIR..FIRST_PAIR + 40];
    let block = prop::collection::btree_set(fingerprints, 0..60)
        .prop_map(|fingerprints| fingerprints.into_iter().collect());
    prop_oneof![
        (Just(128), prop::collection::vec(block.clone(), 0..=128)),
        (Just(1024), prop::collection::vec(block, 0..=300)),
    ]
}

proptest! {
    #[test]
    fn a_segment_that_was_turned_around_says_the_same((segment_blocks, blocks) in segments()) {
        let given: Vec<(usize, &[u32])> = blocks.iter().map(Vec::as_slice).enumerate().collect();
        let slices = IndexSegment::slices(&given, segment_blocks);
        prop_assert_eq!(slices.len(), IndexSegment::SLICES);
        let mut unfolded = vec![Vec::new(); blocks.len()];
        for (number, slice) in slices.iter().enumerate().filter(|(_, slice)| !slice.is_empty()) {
            IndexSegment::unfold_slice(number, slice, segment_blocks, |block, fingerprint| unfolded[block].push(fingerprint)).unwrap();
        }
        prop_assert_eq!(&unfolded, &blocks);
        for fingerprint in (0..40).chain(FIRST_PAIR..FIRST_PAIR + 40).chain(blocks.iter().flatten().copied().take(50)) {
            let slice = &slices[IndexSegment::slice_of(fingerprint)];
            let mut expected: Vec<usize> = (0..blocks.len()).filter(|block| blocks[*block].contains(&fingerprint)).collect();
            expected.reverse();
            let holders = if slice.is_empty() { BlockSet::none() } else { BlockSet::holders_of(fingerprint, slice, segment_blocks).unwrap() };
            prop_assert_eq!(holders.descending().collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn any_bytes_can_be_asked(bytes in prop::collection::vec(any::<u8>(), 0..300), fingerprint in 0..FINGERPRINTS) {
        for segment_blocks in [128, 1024] {
            let _ = BlockSet::holders_of(fingerprint, &bytes, segment_blocks);
            let _ = IndexSegment::unfold_slice(IndexSegment::slice_of(fingerprint), &bytes, segment_blocks, |_, _| ());
        }
    }
}
