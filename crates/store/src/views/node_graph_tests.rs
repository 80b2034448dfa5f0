//! Tests of the rules for nodes.

use super::*;
use crate::ids::SessionId;
use crate::views::node::Child;

fn link(level: Option<u32>, between: (u64, u64), parts: &[u64]) -> NodeLink {
    let children = parts.iter().map(|id| Child { id: SummaryId(*id), first_seq: 0, end_seq: 0 }).collect();
    let top = parts.iter().map(|id| SummaryId(*id)).collect();
    let session = SessionId::from_text("s");
    NodeLink {
        owner: "local".to_owned(),
        sources: vec![MessageRun { session, first_seq: between.0, end_seq: between.1 }],
        node: level.map(|level| SummaryNode { level, children, ..SummaryNode::default() }),
        top: if level.is_none() { top } else { Vec::new() },
    }
}

fn problems(links: &[(u64, NodeLink)]) -> Vec<String> {
    let links = links.iter().map(|(id, link)| (SummaryId(*id), link.clone())).collect();
    node_problems(&links).into_iter().map(|(id, words)| format!("{id} {words}")).collect()
}

#[test]
fn each_rule_is_shown_by_the_node_that_breaks_it() {
    let sound = [
        (1, link(Some(0), (0, 4), &[])),
        (2, link(Some(0), (4, 6), &[])),
        (3, link(Some(1), (0, 6), &[1, 2])),
        (4, link(None, (6, 8), &[])),
        (5, link(None, (0, 8), &[3, 4])),
    ];
    assert_eq!(problems(&sound), Vec::<String>::new());
    let with = |at: usize, changed: NodeLink| {
        let mut links = sound.clone();
        links[at].1 = changed;
        problems(&links)
    };
    assert_eq!(with(2, link(Some(1), (0, 6), &[])), ["n3 took up nothing"]);
    assert_eq!(with(0, link(Some(0), (0, 4), &[9])), ["n1 is a leaf and took something up"]);
    assert_eq!(with(2, link(Some(3), (0, 6), &[1, 2])), ["n3 stands on level 3"]);
    assert_eq!(with(2, link(Some(1), (0, 6), &[1])), ["n3 covers other messages than the nodes it names"]);
    assert_eq!(with(4, link(None, (0, 8), &[3, 4, 2])), ["n5 has a message in two of the nodes it names"]);
    assert_eq!(
        with(1, link(Some(1), (4, 6), &[1])).last().unwrap(),
        "n3 took up n2, which stands on no lower level"
    );
    let other = NodeLink { owner: "other".to_owned(), ..link(Some(0), (4, 6), &[]) };
    assert_eq!(with(1, other), ["n3 names n2, which belongs to another owner"]);
}
