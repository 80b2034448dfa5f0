//! Nodes: kept the moment they are made, found again, nobody else's, and no summaries of a conversation by themselves.

use throughline_store::{Child, MessageRun, NewNode, Store, StoreError, SummaryId, SummaryNode};

use crate::contract::support::*;

fn leaf(session: &str, first_seq: u64, end_seq: u64) -> NewNode {
    NewNode {
        author: "rules".into(),
        document: format!("## Goal\n{first_seq} to {end_seq}\n"),
        sources: vec![MessageRun { session: id(session), first_seq, end_seq }],
        facts: serde_json::json!({"kept": 1}),
        node: SummaryNode {
            messages: end_seq - first_seq,
            source_tokens: 9,
            tokens: 4,
            first_ms: Some(1),
            expand_for: "the words".into(),
            ..SummaryNode::default()
        },
    }
}

fn above(children: &[SummaryId], session: &str, first_seq: u64, end_seq: u64) -> NewNode {
    let children = children.iter().map(|id| Child { id: *id, first_seq, end_seq }).collect();
    let mut node = leaf(session, first_seq, end_seq);
    node.node = SummaryNode { level: 1, children, ..node.node };
    node
}

fn nodes_are_stored_and_listed(store: &dyn Store) {
    store.open_session(new_session("one"), None).unwrap();
    store.append(&owner(), &id("one"), (0..6).map(|at| said(&format!("word {at}"))).collect()).unwrap();
    let put = |node| store.put_node(&owner(), &id("one"), node, 77).unwrap();
    let (first, second) = (put(leaf("one", 0, 2)), put(leaf("one", 2, 4)));
    let both = put(above(&[first, second], "one", 0, 4));
    let heads = store.node_heads(&owner(), &[both, first]).unwrap();
    assert_eq!((heads[0].id, heads[1].id), (both, first));
    assert_eq!(heads[0].node.children.iter().map(|child| child.id).collect::<Vec<_>>(), [first, second]);
    assert_eq!((heads[1].node.level, heads[1].node.tokens, heads[1].created_ms), (0, 4, 77));
    assert!(heads[1].covers(&id("one"), 1) && !heads[1].covers(&id("one"), 2));
    assert_eq!(store.summary(&owner(), first).unwrap().document, "## Goal\n0 to 2\n");
    assert_eq!(store.summary(&owner(), both).unwrap().node().unwrap(), heads[0].node);
    // They are no summaries of the conversation until one names them.
    assert!(store.summaries(&owner(), &id("one")).unwrap().is_empty());
    compact(store, "one", "two", "all of it");
    let summary = store.summaries(&owner(), &id("two")).unwrap().remove(0);
    assert_eq!(store.node_heads(&owner(), &[summary.id]).unwrap()[0].node.messages, 5, "a summary is a leaf");
    let third = store.put_node(&owner(), &id("two"), leaf("one", 4, 5), 78).unwrap();
    let since = |after| -> Vec<SummaryId> {
        store.nodes_since(&owner(), &id("one"), after).unwrap().iter().map(|node| node.id).collect()
    };
    assert_eq!(since(SummaryId(0)), [first, second, both, third]);
    assert_eq!(since(summary.id), [third]);
    let ended = store.put_node(&owner(), &id("one"), leaf("one", 0, 1), 1);
    assert!(matches!(ended, Err(StoreError::SessionEnded { .. })), "{ended:?}");
}

fn a_run_is_read_by_its_places(store: &dyn Store) {
    store.open_session(new_session("one"), None).unwrap();
    store.append(&owner(), &id("one"), (0..6).map(|at| said(&format!("word {at}"))).collect()).unwrap();
    let read = |first_seq, end_seq| -> Vec<u64> {
        let run = MessageRun { session: id("one"), first_seq, end_seq };
        store.messages_of_run(&owner(), &run).unwrap().iter().map(|message| message.seq).collect()
    };
    assert_eq!(read(2, 4), [2, 3]);
    assert_eq!(read(4, 99), [4, 5]);
    assert_eq!(read(4, 4), [] as [u64; 0]);
}

fn nodes_of_somebody_else_are_unknown(store: &dyn Store) {
    store.open_session(new_session("one"), None).unwrap();
    store.append(&owner(), &id("one"), vec![said("mine")]).unwrap();
    let node = store.put_node(&owner(), &id("one"), leaf("one", 0, 1), 1).unwrap();
    let them = stranger();
    assert!(matches!(store.node_heads(&them, &[node]), Err(StoreError::UnknownSummary { .. })));
    assert_eq!(unknown(store.nodes_since(&them, &id("one"), SummaryId(0))), "one");
    assert_eq!(unknown(store.put_node(&them, &id("one"), leaf("one", 0, 1), 1)), "one");
    let run = MessageRun { session: id("one"), first_seq: 0, end_seq: 1 };
    assert_eq!(unknown(store.messages_of_run(&them, &run)), "one");
    let mut theirs = new_session("theirs");
    theirs.owner = stranger();
    store.open_session(theirs, None).unwrap();
    let stolen = store.put_node(&them, &id("theirs"), above(&[node], "theirs", 0, 1), 1);
    assert!(matches!(stolen, Err(StoreError::UnknownSummary { .. })), "{stolen:?}");
}

fn nodes_go_with_their_conversation(store: &dyn Store) {
    store.open_session(new_session("one"), None).unwrap();
    store.append(&owner(), &id("one"), vec![said("mine")]).unwrap();
    let node = store.put_node(&owner(), &id("one"), leaf("one", 0, 1), 1).unwrap();
    delete(store, "one", throughline_store::Dependants::Refuse).unwrap();
    assert!(matches!(store.summary(&owner(), node), Err(StoreError::UnknownSummary { .. })));
}

on_every_backend!(
    nodes_are_stored_and_listed,
    a_run_is_read_by_its_places,
    nodes_of_somebody_else_are_unknown,
    nodes_go_with_their_conversation,
);
