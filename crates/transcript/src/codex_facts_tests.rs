//! Tests of the facts read from lines of a Codex rollout.

use crate::{DecodeOptions, LogFacts, NewView, Transcript, decode};

fn read(lines: &[&str]) -> Transcript {
    decode(lines.join("\n").into_bytes(), &DecodeOptions::default()).unwrap()
}

fn facts(lines: &[&str]) -> LogFacts {
    read(lines).log_facts().unwrap()
}

const HEAD: &str = r#"{"timestamp":"2026-03-04T10:00:01Z","type":"session_meta","payload":{"id":"sess","timestamp":"2026-03-04T10:00:00.250Z","cwd":"/srv/app","model_provider":"openai","git":{"branch":"main","commit_hash":"abc"},"base_instructions":{"text":"be brief"}}}"#;
const TURN: &str = r#"{"timestamp":"2026-03-04T10:00:02Z","type":"turn_context","payload":{"cwd":"/srv/app","model":"gpt-5.2-codex"}}"#;
const ASK: &str = r#"{"timestamp":"2026-03-04T10:00:03Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"fix it"}]}}"#;
const ANSWER: &str = r#"{"timestamp":"2026-03-04T10:00:04Z","type":"response_item","payload":{"id":"item_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}}"#;

fn count(total: u64, last: u64) -> String {
    format!(
        r#"{{"timestamp":"2026-03-04T10:00:05Z","type":"event_msg","payload":{{"type":"token_count","info":{{"total_token_usage":{{"input_tokens":{total},"total_tokens":{total}}},"last_token_usage":{{"input_tokens":{last},"cached_input_tokens":1,"output_tokens":2,"reasoning_output_tokens":0,"total_tokens":{last}}}}},"rate_limits":{{"primary":{last}}}}}}}"#
    )
}

#[test]
fn a_session_its_place_and_its_items() {
    let facts = facts(&[HEAD, TURN, ASK, ANSWER]);
    assert_eq!(facts.session.as_deref(), Some("sess"));
    assert_eq!(facts.folder.as_deref(), Some("/srv/app"));
    assert_eq!(facts.git_branch.as_deref(), Some("main"));
    assert_eq!(facts.provider.as_deref(), Some("openai"));
    assert_eq!(facts.started_ms, Some(1_772_618_400_250));
    let told: Vec<_> = facts.messages.iter().map(|m| (m.id.as_deref(), m.at_ms, m.line)).collect();
    assert_eq!(told, [(None, Some(1_772_618_403_000), 3), (Some("item_1"), Some(1_772_618_404_000), 4)]);
}

#[test]
fn a_call_is_one_whose_total_moved() {
    let (first, repeated, second) = (count(100, 100), count(100, 100), count(250, 150));
    let facts = facts(&[HEAD, TURN, ASK, ANSWER, &first, &repeated, ASK, ANSWER, &second]);
    let told: Vec<_> = facts.calls.iter().map(|c| (c.key.as_str(), c.model.as_deref(), c.message)).collect();
    assert_eq!(
        told,
        [("total-100", Some("gpt-5.2-codex"), Some(1)), ("total-250", Some("gpt-5.2-codex"), Some(3))]
    );
    assert!(facts.calls[1].usage.as_str().starts_with(r#"{"input_tokens":150,"#));
    assert_eq!(facts.calls[0].at_ms, Some(1_772_618_405_000));
}

#[test]
fn notes_without_figures_are_no_calls() {
    let empty = r#"{"type":"event_msg","payload":{"type":"token_count","info":null}}"#;
    let odd = r#"{"type":"event_msg","payload":{"type":"token_count","info":{"last_token_usage":7}}}"#;
    let untotalled = r#"{"type":"event_msg","payload":{"type":"token_count","info":{"last_token_usage":{"input_tokens":3}}}}"#;
    let facts = facts(&[HEAD, ASK, empty, odd, untotalled]);
    assert_eq!(facts.calls.iter().map(|call| call.key.as_str()).collect::<Vec<_>>(), ["line-5"]);
}

#[test]
fn a_compaction_and_what_it_left_in_view() {
    let compacted = r#"{"timestamp":"2026-03-04T11:00:00Z","type":"compacted","payload":{"message":"so far","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"fix it"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"so far"}]}]}}"#;
    let transcript = read(&[HEAD, ASK, ANSWER, compacted, ASK]);
    assert_eq!(transcript.messages.len(), 3);
    let facts = transcript.log_facts().unwrap();
    let [compaction] = facts.compactions.as_slice() else { panic!("{:?}", facts.compactions) };
    assert_eq!((compaction.message, compaction.at_ms), (2, Some(1_772_622_000_000)));
    let NewView::Messages { messages, summary } = &compaction.view else { panic!("items") };
    assert_eq!(messages.iter().map(|m| m.text().into_owned()).collect::<Vec<_>>(), ["fix it", "so far"]);
    assert_eq!(summary.as_deref(), Some("so far"));
}

#[test]
fn an_older_compaction_leaves_its_summary_alone() {
    let compacted = r#"{"type":"compacted","payload":{"message":"so far"}}"#;
    let facts = facts(&[HEAD, ASK, compacted]);
    let NewView::Messages { messages, .. } = &facts.compactions[0].view else { panic!("items") };
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].text(), "so far");
    assert!(messages[0].is_machine_written());
}

#[test]
fn forks_sub_agents_and_names() {
    let fork = r#"{"type":"session_meta","payload":{"id":"new","forked_from_id":"sess"}}"#;
    let named = r#"{"type":"event_msg","payload":{"type":"thread_name_updated","thread_name":"The fix"}}"#;
    let told = facts(&[fork, HEAD, ASK, named]);
    assert_eq!(told.session.as_deref(), Some("new"), "the first head is the session's own");
    assert_eq!(told.copied_from.as_deref(), Some("sess"));
    assert_eq!(told.title.as_deref(), Some("The fix"));
    let child = r#"{"type":"session_meta","payload":{"id":"c","source":{"subagent":{"thread_spawn":{"parent_thread_id":"sess","depth":1}}}}}"#;
    assert_eq!(facts(&[child, ASK]).parent_session.as_deref(), Some("sess"));
    let plain = r#"{"type":"session_meta","payload":{"id":"c","source":"cli"}}"#;
    assert_eq!(facts(&[plain, ASK]).parent_session, None);
}

#[test]
fn an_old_log_begins_with_its_head() {
    let head = r#"{"id":"old","timestamp":"2025-05-01T00:00:00Z","instructions":"x","git":{"branch":"dev"}}"#;
    let item = r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}"#;
    let facts = facts(&[head, item]);
    assert_eq!(facts.session.as_deref(), Some("old"));
    assert_eq!(facts.git_branch.as_deref(), Some("dev"));
    assert_eq!(facts.started_ms, Some(1_746_057_600_000));
    assert_eq!((facts.messages.len(), facts.messages[0].line), (1, 2));
}
