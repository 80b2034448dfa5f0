//! The two views of `sessions show`.

use serde_json::json;
use throughline_store::{LinkKind, StoredRendition, SummaryId, ViewChange};

use super::*;
use crate::record::test_samples::{ended, hung, noon, plain, said, session, summary, widest};

fn lineage() -> Vec<Session> {
    let mut root = ended(session(1, "2026-11-15T09:00:00Z"), "compression");
    root.title = Some("Port the parser".to_owned());
    root.next_seq = 3;
    let second = hung(session(2, "2026-11-15T10:00:00Z"), &root, LinkKind::Continuation, 3);
    let second = ended(second, "undo");
    let mut third = hung(session(3, "2026-11-15T11:00:00Z"), &second, LinkKind::Continuation, 4);
    third.title = root.title.clone();
    vec![root, second, third]
}

fn transcript(lineage: &[Session]) -> Vec<StoredMessage> {
    let mut reminder =
        said(&lineage[1], 3, "2026-11-15T10:01:00Z", json!({"role": "user", "content": "A reminder."}));
    reminder.machine_written = true;
    vec![
        said(&lineage[0], 0, "2026-11-15T09:00:00Z", json!({"role": "user", "content": "Port the parser."})),
        said(
            &lineage[0],
            1,
            "2026-11-15T09:01:00Z",
            json!({"role": "assistant", "content": [
            {"type": "text", "text": "I run the tests."},
            {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "cargo test"}}]}),
        ),
        said(
            &lineage[0],
            2,
            "2026-11-15T09:02:00Z",
            json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": "ok. 12 passed"}]}),
        ),
        reminder,
    ]
}

fn human(lineage: &[Session]) -> String {
    let transcript = transcript(lineage);
    let summaries = [summary(1, &lineage[1], &lineage[0])];
    HumanViewPage {
        session: &lineage[lineage.len() - 1],
        changes: &ViewChange::along(lineage, &summaries),
        transcript: &transcript,
        range: 0..transcript.len(),
        amount: TextAmount::Beginning,
        now: &noon(),
        width: 80,
    }
    .render()
}

#[test]
fn the_whole_transcript_has_a_mark_where_it_was_compacted() {
    let page = human(&lineage());
    assert!(widest(&page) <= 80);
    insta::assert_snapshot!(plain(&page));
}

#[test]
fn a_branch_is_marked_where_it_left() {
    let root = session(1, "2026-11-15T09:00:00Z");
    let branch = hung(session(2, "2026-11-15T10:00:00Z"), &root, LinkKind::Branch, 2);
    let found = ViewChange::along(&[root, branch], &[]);
    assert_eq!((found[0].kind.as_str(), found[0].at_seq), ("branch", 2));
    assert_eq!(found[0].author, None);
}

#[test]
fn a_compaction_without_figures_is_measured() {
    let lineage = lineage();
    let mut found = ViewChange::along(&lineage, &[]);
    assert!(found[0].needs_figures() && !found[1].needs_figures(), "{found:?}");
    assert_eq!(found[0].author.as_deref(), Some("claude-code"), "who made it is known all the same");
    let before: Vec<ViewMessage> = transcript(&lineage).into_iter().map(ViewMessage::Verbatim).collect();
    found[0].measure(&before, &[]);
    assert_eq!((found[0].messages_before, found[0].tokens_before), (Some(4), Some(80)));
    assert_eq!(found[0].messages_after, None, "its view begins with what is said next");
}

#[test]
fn a_model_is_shown_what_it_is_sent_item_by_item() {
    let lineage = lineage();
    let messages = transcript(&lineage);
    let shown = [
        ViewMessage::Verbatim(messages[0].clone()),
        ViewMessage::Summary {
            summary: SummaryId(1),
            json: json!({"role": "assistant", "content": "[CONTEXT COMPACTION]\n\n## Goal\n- to arrive"})
                .to_string(),
            tokens: 1_950,
        },
        ViewMessage::Rendition(
            messages[2].clone(),
            StoredRendition {
                kinds: vec!["pruned".to_owned()],
                json: json!({"role": "user", "content": "[Bash] 12 passed"}).to_string(),
                tokens: 9,
            },
        ),
        ViewMessage::Synthetic {
            kind: "acknowledgement".to_owned(),
            json: json!({"role": "assistant", "content": "Understood."}).to_string(),
            tokens: 4,
        },
    ];
    let page = ModelViewPage {
        session: &lineage[1],
        shown: &shown,
        amount: TextAmount::Beginning,
        now: &noon(),
        width: 80,
    }
    .render();
    assert!(widest(&page) <= 80);
    insta::assert_snapshot!(plain(&page));
}
