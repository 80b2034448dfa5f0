//! Tests of which nodes are condensed, and that condensing ends.

use proptest::prelude::*;

use super::*;

fn room() -> NodeBudget {
    NodeBudget { all_tokens: 1_000, older_tokens: 400, condensed_tokens: 120, fan_in: 4 }
}

fn nodes(of: &[(u32, u64)]) -> Vec<NodeSize> {
    of.iter().map(|(level, tokens)| NodeSize { level: *level, tokens: *tokens }).collect()
}

#[test]
fn which_nodes_are_condensed() {
    let next = |of: &[(u32, u64)], fresh| room().next(&nodes(of), fresh);
    assert_eq!(next(&[(0, 250), (0, 250), (0, 250), (0, 250)], 4), None, "they fit");
    let two_generations = [(0, 230), (0, 230), (0, 230), (0, 230), (0, 200), (0, 200)];
    assert_eq!(next(&two_generations, 2), Some(0..4));
    assert_eq!(next(&[(1, 400), (0, 300), (0, 300), (0, 300)], 2), Some(0..2), "the last two are fresh");
    assert_eq!(next(&[(1, 300), (1, 300), (0, 300), (0, 300)], 1), Some(0..2), "no two leaves are old");
    assert_eq!(next(&[(2, 300), (2, 300), (2, 300), (2, 300)], 0), Some(0..4), "told as one");
    assert_eq!(next(&[(1, 1_100), (0, 300)], 1), Some(0..1), "one alone is told more briefly");
    assert_eq!(next(&[(0, 2_000)], 1), Some(0..1));
    assert_eq!(next(&[(1, 1), (0, 1_100)], 1), Some(0..2), "nothing else is left");
}

#[test]
fn what_is_new_gets_what_the_older_leave() {
    let room_for = |of: &[(u32, u64)]| room().for_new(&nodes(of));
    assert_eq!(room_for(&[]), 1_000);
    assert_eq!(room_for(&[(0, 250), (0, 250), (0, 250), (0, 250)]), 880, "they become one of 120");
    assert_eq!(room_for(&[(1, 100)]), 900);
    assert_eq!(room_for(&[(2, 9_000)]), 880);
}

#[test]
fn leaves_share_the_room_by_what_they_have_to_say() {
    let wish = |needs_tokens, wants_tokens| LeafNeed { needs_tokens, wants_tokens };
    let (little, much) = (wish(100, 200), wish(300, 1_000));
    let asked = |room_tokens| {
        let mut shares = BudgetShares::new(room_tokens);
        shares.ask(little);
        shares.ask(much);
        shares
    };
    let of = |room_tokens| (asked(room_tokens).of(little), asked(room_tokens).of(much));
    assert_eq!(of(200), (50, 150), "what they need does not fit: each gets its part");
    assert_eq!(of(800), (150, 650), "what they need, and of the rest by what they want beside it");
    assert_eq!(of(2_400), (400, 2_000), "more than they want");
    let mut shares = asked(800);
    shares.take(little, 60);
    assert_eq!(shares.of(much), 740, "what one did not use the next gets");
    let mut shares = asked(800);
    shares.give(500);
    assert_eq!((shares.of(little), shares.of(much)), (75, 225));
    let mut shares = asked(400);
    shares.expect(1_000, 4_000);
    assert_eq!(shares.of(little), 25, "as much again three times is still to come");
}

proptest! {
    #[test]
    fn condensing_always_ends_within_the_room_and_then_changes_nothing(
        of in prop::collection::vec((0u32..=SummaryNode::TOP_LEVEL, 1u64..2_000), 0..40),
        fresh in 0usize..8,
        all_tokens in 700u64..20_000,
        fan_in in 2usize..6,
    ) {
        let room = NodeBudget { all_tokens, older_tokens: all_tokens / 2, condensed_tokens: all_tokens / 10, fan_in };
        let mut left = nodes(&of);
        let mut steps = 0;
        while let Some(step) = room.next(&left, fresh) {
            prop_assert!(step.start < step.end && step.end <= left.len());
            prop_assert!(step.len() <= fan_in, "{step:?}");
            let level = level_above(left[step.clone()].iter().map(|node| node.level));
            let tokens = total(&left[step.clone()]).min(room.of_condensed());
            left.splice(step, [NodeSize { level, tokens }]);
            steps += 1;
            prop_assert!(steps <= of.len() + 3, "it does not end: {left:?}");
        }
        prop_assert!(total(&left) <= all_tokens, "{left:?}");
        prop_assert!(left.iter().all(|node| node.level <= SummaryNode::TOP_LEVEL));
    }
}
