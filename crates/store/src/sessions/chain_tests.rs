//! Tests of positions, lines, tips and undo targets, on chains drawn by hand.

use throughline_transcript::WireFormat;

use super::*;
use crate::ids::Owner;
use crate::sessions::session::{EndReason, Origin};

/// A member of a chain with ten messages, whose view starts from that of `base`.
fn member(ordinal: u64, chain: u64, base: u64) -> Session {
    Session {
        id: SessionId::from_text(format!("s{ordinal}")),
        owner: Owner::default(),
        ordinal,
        chain,
        base,
        link: None,
        first_seq: (ordinal - chain) * 10,
        next_seq: (ordinal - chain) * 10 + 10,
        started_ms: 100 + ordinal as i64,
        active_ms: 200 + ordinal as i64,
        ended_ms: None,
        end_reason: None,
        model: None,
        title: None,
        origin: Origin::default(),
        wire_format: WireFormat::Chat,
        counters: SessionCounters { messages: 10, message_tokens: 100, ..SessionCounters::default() },
    }
}

fn link(parent: &str, kind: LinkKind, leaves_at: u64) -> Link {
    Link { parent: SessionId::from_text(parent), kind, leaves_at }
}

/// A chain whose members have these bases, as in `[1, 2, 3, 2]`: two compactions, the last undone.
fn chain(bases: &[u64]) -> Vec<Session> {
    bases.iter().zip(1..).map(|(&base, ordinal)| member(ordinal, 1, base)).collect()
}

#[test]
fn undo_and_redo_go_to_the_views_they_should() {
    // (bases of the chain, undo target, redo target), all as ordinals.
    let cases: [(&[u64], Option<u64>, Option<u64>); 12] = [
        (&[1], None, None),
        (&[1, 2], Some(1), None),
        (&[1, 2, 3], Some(2), None),
        (&[1, 2, 1], None, Some(2)),
        (&[1, 2, 3, 2], Some(1), Some(3)),
        (&[1, 2, 3, 2, 1], None, Some(2)),
        (&[1, 2, 3, 2, 1, 2], Some(1), Some(3)),
        (&[1, 2, 3, 2, 1, 2, 3], Some(2), None),
        // A compaction after an undo: undo selects what it was made from, redo the newest one.
        (&[1, 2, 1, 4], Some(1), None),
        (&[1, 2, 1, 4, 1], None, Some(4)),
        // A conversation that was only resumed (its view is its parent's) has no compaction to undo.
        (&[1, 1], None, None),
        (&[1, 1, 3], Some(1), None),
    ];
    for (bases, undo, redo) in cases {
        let chain = chain(bases);
        let to = |selection| selected(&chain, selection).ok().map(|at| chain[at].ordinal);
        assert_eq!(to(Selection::Undo), undo, "undo of {bases:?}");
        assert_eq!(to(Selection::Redo), redo, "redo of {bases:?}");
    }
    assert!(matches!(selected(&[], Selection::Undo), Err(StoreError::NothingToSelect { .. })));
}

#[test]
fn a_continuation_goes_on_where_its_parent_stopped() {
    let parent = member(1, 1, 1);
    let place = place_on(&link("s1", LinkKind::Continuation, 3), &parent, &parent).unwrap();
    assert_eq!((place.chain, place.first_seq), (Some(1), 10));
    assert_eq!(place.link.unwrap().leaves_at, 10, "a continuation leaves its parent at its end");
}

#[test]
fn only_the_tip_is_continued() {
    let (mut parent, tip) = (member(1, 1, 1), member(2, 1, 2));
    parent.end_reason = Some(EndReason::COMPRESSION);
    match place_on(&link("s1", LinkKind::Continuation, 10), &parent, &tip) {
        Err(StoreError::SessionEnded { id, reason, successor }) => {
            assert_eq!((id.as_str(), reason.as_str()), ("s1", "compression"));
            assert_eq!(successor.unwrap().as_str(), "s2");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_branch_begins_where_it_leaves_and_only_inside_its_parent() {
    let parent = member(2, 1, 2);
    for (leaves_at, fits) in [(9, false), (10, true), (15, true), (20, true), (21, false)] {
        let place = place_on(&link("s2", LinkKind::Branch, leaves_at), &parent, &parent);
        match place {
            Ok(place) => {
                assert!(fits, "{leaves_at}");
                assert_eq!((place.chain, place.first_seq), (None, leaves_at));
            }
            Err(StoreError::UnknownMessage { seq, .. }) => assert!(!fits && seq == leaves_at, "{leaves_at}"),
            Err(other) => panic!("{other:?}"),
        }
    }
}

#[test]
fn sub_agents_begin_at_zero_and_share_nothing() {
    let parent = member(2, 1, 2);
    for kind in [LinkKind::SubAgent, LinkKind::SideCall] {
        let link = link("s2", kind, 17);
        let place = place_on(&link, &parent, &parent).unwrap();
        assert_eq!((place.chain, place.first_seq, place.link), (None, 0, Some(link.clone())));
        assert_eq!(LinePart::shared(&link, &parent), None);
    }
}

fn line_of(session: &Session, all: &[Session]) -> Vec<LinePart> {
    line::<StoreError>(
        LinePart::through(session),
        |ordinal| Ok(all.iter().find(|s| s.ordinal == ordinal).cloned()),
        |id| Ok(all.iter().find(|s| s.id == *id).cloned()),
    )
    .unwrap()
}

#[test]
fn the_line_of_a_branch_goes_through_its_parent_to_where_it_left() {
    // 1 - 2 - 3, and 4 branches off 2 at position 14, continued by 5.
    let mut all = vec![member(1, 1, 1), member(2, 1, 2), member(3, 1, 3), member(4, 4, 4), member(5, 4, 5)];
    all[3].link = Some(link("s2", LinkKind::Branch, 14));
    let line = line_of(&all[4], &all);
    assert_eq!(
        line,
        [
            LinePart { chain: 4, to_ordinal: 5, to_seq: None },
            LinePart { chain: 1, to_ordinal: 2, to_seq: Some(14) },
        ]
    );
    assert_eq!(line[1].end_in(&all[0]), Some(10));
    assert_eq!(line[1].end_in(&all[1]), Some(14));
    assert_eq!(line[1].end_in(&all[2]), None, "what was said after the branch left");
}

#[test]
fn a_line_ends_at_lost_parents_and_at_circles() {
    let mut all = vec![member(1, 1, 1), member(2, 2, 2)];
    all[0].link = Some(link("s2", LinkKind::Branch, 3));
    all[1].link = Some(link("s1", LinkKind::Branch, 3));
    assert_eq!(line_of(&all[0], &all).len(), 2);
    all[1].link = Some(link("gone", LinkKind::Branch, 3));
    assert_eq!(line_of(&all[1], &all), [LinePart { chain: 2, to_ordinal: 2, to_seq: None }]);
}

#[test]
fn a_conversation_adds_up_its_chain() {
    let mut chain = chain(&[1, 2, 3, 2]);
    chain[1].title = Some("older".to_owned());
    chain[2].title = Some("newer".to_owned());
    let conversation = conversation(chain).unwrap();
    assert_eq!((conversation.root.as_str(), conversation.tip.id.as_str()), ("s1", "s4"));
    assert_eq!((conversation.sessions, conversation.compactions), (4, 1));
    assert_eq!(conversation.title.as_deref(), Some("newer"));
    assert_eq!((conversation.totals.messages, conversation.totals.message_tokens), (40, 400));
    assert_eq!(conversation.started_ms, 101);
}

#[test]
fn compactions_that_were_undone_do_not_count() {
    let cases: [(&[u64], u64); 10] = [
        (&[], 0),
        (&[1], 0),
        (&[1, 1], 0),
        (&[1, 2], 1),
        (&[1, 2, 3], 2),
        (&[1, 2, 1], 0),
        (&[1, 2, 3, 2], 1),
        (&[1, 2, 3, 2, 3], 2),
        (&[1, 2, 1, 4], 1),
        (&[1, 2, 2, 4], 2),
    ];
    for (bases, count) in cases {
        assert_eq!(Session::compactions_in_view(&chain(bases)), count, "{bases:?}");
    }
    assert_eq!(Session::compactions_in_view(&chain(&[1, 2, 9])), 0, "what is lost ends the count");
}
