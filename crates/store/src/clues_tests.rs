//! Tests of clues and of the two forms of blocks.

use proptest::prelude::*;

use super::*;

fn clues_of(text: &str) -> Vec<u32> {
    let mut set = ClueSet::default();
    set.add_text(text);
    set.take()
}

fn triples_of(text: &str) -> Vec<u32> {
    let mut folded = String::new();
    fold_text(text, &mut folded);
    let mut triples = Vec::new();
    each_triple(folded.trim(), |clue| triples.push(clue));
    triples
}

fn has_all(text: &str, wanted: &[u32]) -> bool {
    let clues = clues_of(text);
    wanted.iter().all(|clue| clues.binary_search(clue).is_ok())
}

fn looked_up(term: &str, as_prefix: bool) -> Vec<u32> {
    clues_to_look_up(&IndexTerm { term: term.to_owned(), as_prefix })
}

#[test]
fn three_characters_of_any_script_make_a_triple() {
    assert!(triples_of("ab").is_empty());
    assert_eq!(triples_of("abc").len(), 1);
    assert_eq!(triples_of("数据库连接").len(), 3);
    assert_ne!(triples_of("abc"), triples_of("acb"));
    assert_eq!(clues_of("  a b  "), clues_of("a b"), "white space around it does not count");
    assert_eq!(clues_of("the end the end the end"), clues_of("the end the"), "each is there once");
}

#[test]
fn words_are_looked_up_by_what_every_text_has_that_holds_them() {
    let text = "the maxRetryCount of max_retries, 数据库";
    for (term, as_prefix) in [
        ("the", false),
        ("retry", false),
        ("maxretrycount", false),
        ("maxretries", false),
        ("ma", true),
        ("maxr", true),
        ("maxretri", true),
        ("retr", true),
        ("数据", false),
        ("库", false),
        ("库", true),
        ("据", true),
    ] {
        let clues = looked_up(term, as_prefix);
        assert!(!clues.is_empty() && has_all(text, &clues), "{term} {as_prefix}");
    }
    for (term, as_prefix) in
        [("end", false), ("retri", false), ("据", false), ("en", true), ("retrie", false)]
    {
        assert!(!has_all(text, &looked_up(term, as_prefix)), "{term} {as_prefix}");
    }
    assert!(looked_up("m", true).is_empty(), "one letter begins too much to be known by it");
}

#[test]
fn long_substrings_are_looked_up_by_a_few_rare_triples() {
    let triples = rarest_triples("the next of these is the quetzalcoatl");
    assert_eq!(triples.len(), 8);
    assert!(triples_of("quetzalcoatl").iter().filter(|triple| triples.contains(triple)).count() >= 5);
    assert!(rarest_triples("ab").is_empty());
}

#[test]
fn a_set_can_be_filled_again() {
    let mut set = ClueSet::default();
    set.add_text("something");
    assert!(set.take().is_sorted());
    assert!(set.take().is_empty());
    [7, 262_143, 0].into_iter().for_each(|clue| set.add(clue));
    assert_eq!(set.take(), [0, 7, 262_143]);
}

#[test]
fn the_hash_is_part_of_the_format() {
    let mut clues = Vec::new();
    each_triple("the 数据库", |clue| clues.push(clue));
    insta::assert_snapshot!(format!("{clues:?}"));
}

#[test]
fn what_is_no_list_is_not_read_as_one() {
    let good = encode_list(&[1, 2, 70_000]);
    assert!(ClueList::new(&good).is_some());
    for bytes in [&good[..good.len() - 1], &good[..HEAD_BYTES - 1], &[], &[255; 40]] {
        assert!(ClueList::new(bytes).is_none(), "{bytes:?}");
    }
    let too_long: Vec<u8> = good.iter().copied().chain([0, 0]).collect();
    assert!(ClueList::new(&too_long).is_none());
}

#[test]
fn blocks_are_given_from_the_highest_down() {
    let mut blocks = BlockSet::none();
    assert!(blocks.is_empty());
    [0, 63, 64, 1023].into_iter().for_each(|block| blocks.add(block));
    assert_eq!(blocks.descending().collect::<Vec<_>>(), [1023, 64, 63, 0]);
    let mut few = BlockSet::none();
    few.add(64);
    blocks.keep(&few);
    assert_eq!(blocks, few);
    blocks.keep(&BlockSet::all());
    assert_eq!(blocks, few);
}

fn segments() -> impl Strategy<Value = (usize, Vec<Vec<u32>>)> {
    // Few clues in many blocks, and many in few: both kinds of entries.
    let clues = prop_oneof![0_u32..40, 0_u32..(1 << CLUE_BITS)];
    let block = prop::collection::btree_set(clues, 0..60).prop_map(|clues| clues.into_iter().collect());
    prop_oneof![
        (Just(128), prop::collection::vec(block.clone(), 0..=128)),
        (Just(1024), prop::collection::vec(block, 0..=300)),
    ]
}

proptest! {
    #[test]
    fn a_text_is_known_by_every_substring_of_it(text in "[a-cA-C \\n\u{e9}\u{df}数据库]{0,40}", from in 0_usize..40, count in 0_usize..40) {
        let substring: String = text.chars().skip(from).take(count).collect();
        prop_assert!(has_all(&text, &triples_of(&substring)));
    }

    #[test]
    fn a_list_holds_what_was_put_in_it(clues in prop::collection::btree_set(0_u32..(1 << CLUE_BITS), 0..300), other in 0_u32..(1 << CLUE_BITS)) {
        let sorted: Vec<u32> = clues.iter().copied().collect();
        let bytes = encode_list(&sorted);
        let list = ClueList::new(&bytes).unwrap();
        prop_assert_eq!(list.iter().collect::<Vec<_>>(), sorted);
        prop_assert!(clues.iter().all(|clue| list.holds(*clue)));
        prop_assert_eq!(list.holds(other), clues.contains(&other));
    }

    #[test]
    fn a_segment_that_was_turned_around_says_the_same((segment_blocks, blocks) in segments()) {
        let given: Vec<(usize, &[u32])> = blocks.iter().map(Vec::as_slice).enumerate().collect();
        let slices = slices(&given, segment_blocks);
        prop_assert_eq!(slices.len(), SLICES);
        let mut unfolded = vec![Vec::new(); blocks.len()];
        for (number, slice) in slices.iter().enumerate() {
            unfold_slice(number, slice, segment_blocks, |block, clue| unfolded[block].push(clue)).unwrap();
        }
        prop_assert_eq!(&unfolded, &blocks);
        for clue in (0..40).chain(blocks.iter().flatten().copied().take(50)) {
            let holders = holders_of(clue, &slices[slice_of(clue)], segment_blocks).unwrap();
            let mut expected: Vec<usize> = (0..blocks.len()).filter(|block| blocks[*block].contains(&clue)).collect();
            expected.reverse();
            prop_assert_eq!(holders.descending().collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn any_bytes_can_be_asked(bytes in prop::collection::vec(any::<u8>(), 0..300), clue in 0_u32..(1 << CLUE_BITS)) {
        let _ = holders_of(clue, &bytes, 1024);
        let _ = holders_of(clue, &bytes, 128);
        let _ = unfold_slice(0, &bytes, 128, |_, _| ());
        if let Some(list) = ClueList::new(&bytes) {
            let _ = list.holds(clue);
        }
    }
}
