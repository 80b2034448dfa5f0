//! Tests of how a view shows nodes.

use throughline_compaction::find_summary;
use throughline_store::{MessageRun, SessionId, SummaryId, SummaryNode};
use throughline_transcript::{Role, WireFormat, decode_message_text, text_message};

use super::*;

fn node(id: u64, first_seq: u64, end_seq: u64, words: &str) -> NodeText {
    let mut document = SummaryDocument::default();
    document.add(Section::Goal, words);
    document.add(Section::ActiveTask, format!("the task of {words}"));
    document.add_action(format!("did {words}"));
    let head = NodeHead {
        id: SummaryId(id),
        session: SessionId::from_text("s"),
        created_ms: 0,
        author: "rules".to_owned(),
        sources: vec![MessageRun { session: SessionId::from_text("s"), first_seq, end_seq }],
        node: SummaryNode {
            messages: end_seq - first_seq,
            source_tokens: 900,
            first_ms: Some(0),
            last_ms: Some(3_600_000),
            expand_for: "src/a.rs".to_owned(),
            ..SummaryNode::default()
        },
    };
    NodeText { head, document }
}

#[test]
fn the_view_names_its_nodes_and_tells_the_newest_moment_once() {
    let notes = notes(&[node(4, 0, 9, "building"), node(7, 9, 12, "testing")]);
    assert_eq!(
        notes,
        "[n4] messages 0 to 8, 1970-01-01 00:00 to 01:00 (9 messages, 900 tokens). Expand for: src/a.rs.\n\
         ## Goal\n- building\n## Completed Actions\n1. did building\n\n\
         [n7] messages 9 to 11, 1970-01-01 00:00 to 01:00 (3 messages, 900 tokens). Expand for: src/a.rs.\n\
         ## Goal\n- testing\n## Completed Actions\n1. did testing\n\n\
         [now] Where work stood when the last of these was compacted.\n## Active Task\n- the task of testing"
    );
}

#[test]
fn nodes_before_a_new_node_keep_their_bytes() {
    let nodes = [node(4, 0, 9, "building"), node(7, 9, 12, "testing"), node(9, 12, 14, "shipping")];
    let before = message_text(&notes(&nodes[..2]), 12, 5);
    let after = message_text(&notes(&nodes), 14, 3);
    let shared = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
    assert!(before[..shared].contains("1. did testing\n\n["), "{}", &before[..shared]);
}

#[test]
fn the_message_is_known_again_by_every_engine() {
    let text = message_text(&notes(&[node(4, 0, 9, "building")]), 9, 5);
    let message = decode_message_text(text_message(WireFormat::Chat, Role::User, &text)).unwrap();
    let found = find_summary(&message).unwrap();
    assert_eq!((found.messages, found.kept), (9, Some(5)));
    let document = SummaryDocument::parse(&found.body);
    assert_eq!(document.entries(Section::Goal)[0].text, "building");
}
