//! The output of `sessions tree`.

use super::*;
use crate::record::test_samples::{ended, hung, id, noon, plain, session, widest};

/// A root that was compacted twice, with a branch that was also compacted, and two sub-agents.
fn family() -> Vec<Session> {
    let mut root = ended(session(1, "2026-11-10T09:00:00Z"), "compression");
    root.title = Some("Port the parser".to_owned());
    root.counters.messages = 812;
    root.counters.message_tokens = 104_220;
    let second =
        ended(hung(session(2, "2026-11-11T09:00:00Z"), &root, LinkKind::Continuation, 812), "compression");
    let helper = ended(hung(session(3, "2026-11-10T10:00:00Z"), &root, LinkKind::SubAgent, 30), "done");
    let branch = ended(hung(session(4, "2026-11-12T09:00:00Z"), &root, LinkKind::Branch, 200), "compression");
    let mut branch_on = hung(session(5, "2026-11-12T10:00:00Z"), &branch, LinkKind::Continuation, 300);
    branch_on.title = Some("Another way".to_owned());
    let third = hung(session(6, "2026-11-13T09:00:00Z"), &second, LinkKind::Continuation, 900);
    let side = hung(session(7, "2026-11-13T10:00:00Z"), &third, LinkKind::SideCall, 901);
    vec![root, second, helper, branch, branch_on, third, side]
}

#[test]
fn continuations_stand_on_one_trunk_and_the_rest_beside_it() {
    let family = family();
    insta::assert_snapshot!(plain(&render(&family, &family[5].id, &noon(), 80)));
}

#[test]
fn the_title_is_that_of_the_conversation_and_not_of_a_call_that_came_first() {
    let mut main = session(2, "2026-11-10T09:00:01Z");
    main.title = Some("Port the parser".to_owned());
    let mut title_call = hung(session(1, "2026-11-10T09:00:00Z"), &main, LinkKind::SideCall, 0);
    title_call.title = Some("Write a title for this".to_owned());
    let asked = main.id.clone();
    let page = plain(&render(&[title_call, main], &asked, &noon(), 100));
    assert_eq!(page.lines().next(), Some("Port the parser"), "{page}");
}

#[test]
fn a_long_chain_does_not_wander_to_the_right() {
    let mut chain = vec![session(1, "2026-11-10T09:00:00Z")];
    for ordinal in 2..60 {
        let next = hung(
            session(ordinal, "2026-11-11T09:00:00Z"),
            &chain[chain.len() - 1],
            LinkKind::Continuation,
            1,
        );
        chain.push(next);
    }
    let page = render(&chain, &chain[0].id, &noon(), 80);
    assert!(widest(&page) < 80);
    assert_eq!(plain(&page).lines().filter(|line| line.starts_with('○')).count(), 58);
}

#[test]
fn children_of_a_deleted_session_are_drawn_with_a_note() {
    let gone = session(1, "2026-11-10T09:00:00Z");
    let left = hung(session(2, "2026-11-11T09:00:00Z"), &gone, LinkKind::Branch, 12);
    let page = plain(&render(std::slice::from_ref(&left), &left.id, &noon(), 80));
    assert!(page.contains("20261110_090000_000001 is gone"), "{page}");
}

#[test]
fn links_in_a_circle_are_drawn_once_each() {
    let mut one = session(1, "2026-11-10T09:00:00Z");
    let two = hung(session(2, "2026-11-11T09:00:00Z"), &one, LinkKind::Continuation, 1);
    one = hung(one, &two, LinkKind::Continuation, 1);
    let page = plain(&render(&[one, two], &id("other"), &noon(), 80));
    assert_eq!(page.lines().filter(|line| line.contains("continuation")).count(), 2, "{page}");
}
