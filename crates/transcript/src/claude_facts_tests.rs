//! Tests of the facts read from lines of a Claude Code log.

use crate::{DecodeOptions, LogFacts, NewView, Role, SubAgent, Transcript, decode};

fn read(lines: &[&str]) -> Transcript {
    decode(lines.join("\n").into_bytes(), &DecodeOptions::default()).unwrap()
}

fn facts(lines: &[&str]) -> LogFacts {
    read(lines).log_facts().unwrap()
}

const PROMPT: &str = r#"{"type":"user","uuid":"u1","sessionId":"s1","cwd":"/srv/a\"b","gitBranch":"main","timestamp":"2026-02-07T00:00:01.500Z","message":{"role":"user","content":"fix it"}}"#;
const THINKING: &str = r#"{"type":"assistant","uuid":"a1","parentUuid":"u1","sessionId":"s1","cwd":"/srv/other","gitBranch":"fix","timestamp":"2026-02-07T00:00:02Z","requestId":"req_1","message":{"id":"msg_1","model":"claude-opus-4-6","role":"assistant","stop_reason":null,"content":[{"type":"thinking","thinking":"hm","signature":"s"}],"usage":{"input_tokens":3,"output_tokens":1}}}"#;
const CALL: &str = r#"{"type":"assistant","uuid":"a2","parentUuid":"a1","sessionId":"s1","timestamp":"2026-02-07T00:00:03Z","requestId":"req_1","message":{"id":"msg_1","model":"claude-opus-4-6","role":"assistant","stop_reason":"tool_use","content":[{"type":"tool_use","id":"t1","name":"Read","input":{}}],"usage":{"input_tokens":3,"output_tokens":40}}}"#;
const RESULT: &str = r#"{"type":"user","uuid":"u2","parentUuid":"a2","sessionId":"s1","timestamp":"2026-02-07T00:00:04Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"text"}]}}"#;

#[test]
fn a_session_its_place_and_its_messages() {
    let facts = facts(&[PROMPT, THINKING, CALL, RESULT]);
    assert_eq!(facts.session.as_deref(), Some("s1"));
    assert_eq!(facts.folder.as_deref(), Some("/srv/a\"b"), "the folder it began in");
    assert_eq!(facts.git_branch.as_deref(), Some("fix"), "the branch it was on last");
    assert_eq!(facts.started_ms, Some(1_770_422_401_500));
    assert_eq!((facts.agent, facts.copied_from, facts.title), (None, None, None));
    let told: Vec<_> = facts.messages.iter().map(|m| (m.id.as_deref(), m.at_ms, m.line)).collect();
    assert_eq!(
        told,
        [
            (Some("u1"), Some(1_770_422_401_500), 1),
            (Some("a1"), Some(1_770_422_402_000), 2),
            (Some("u2"), Some(1_770_422_404_000), 4),
        ]
    );
}

#[test]
fn an_answer_over_several_lines_is_one_call_and_its_last_line_counts() {
    let facts = facts(&[PROMPT, THINKING, CALL, RESULT]);
    let [call] = facts.calls.as_slice() else { panic!("{:?}", facts.calls) };
    assert_eq!(call.key, "msg_1");
    assert_eq!(call.model.as_deref(), Some("claude-opus-4-6"));
    assert_eq!(call.usage.as_str(), r#"{"input_tokens":3,"output_tokens":40}"#);
    assert_eq!(call.at_ms, Some(1_770_422_402_000), "when the answer began");
    assert_eq!(call.message, Some(1));
    assert!(!call.output_unfinished);
}

#[test]
fn usage_noted_before_an_answer_stopped_is_unfinished() {
    let facts = facts(&[PROMPT, THINKING]);
    assert!(facts.calls[0].output_unfinished);
}

#[test]
fn calls_without_an_id_are_distinguished_by_request_and_line() {
    let line = |uuid: &str, request: &str| {
        format!(
            r#"{{"type":"assistant","uuid":"{uuid}","sessionId":"s",{request}"message":{{"role":"assistant","content":"x","usage":{{"output_tokens":1}}}}}}"#
        )
    };
    let lines = [line("a", r#""requestId":"r","#), line("b", r#""requestId":"r","#), line("c", "")];
    let facts = facts(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(facts.calls.iter().map(|call| call.key.as_str()).collect::<Vec<_>>(), ["r", "c"]);
}

#[test]
fn error_notices_and_broken_usage_are_no_calls() {
    let notice = r#"{"type":"assistant","uuid":"e","sessionId":"s","isApiErrorMessage":true,"message":{"id":"x","model":"<synthetic>","role":"assistant","content":"overloaded","usage":{"output_tokens":0}}}"#;
    let broken = r#"{"type":"assistant","uuid":"f","sessionId":"s","message":{"id":"y","model":"m","role":"assistant","content":"z","usage":null}}"#;
    assert_eq!(facts(&[PROMPT, notice, broken]).calls, []);
}

#[test]
fn calls_for_messages_that_were_edited_away_were_made_all_the_same() {
    let first = r#"{"type":"user","uuid":"p1","parentUuid":"root","sessionId":"s","message":{"role":"user","content":"do a"}}"#;
    let answer = r#"{"type":"assistant","uuid":"q1","parentUuid":"p1","sessionId":"s","message":{"id":"m1","model":"m","role":"assistant","content":"a done","usage":{"output_tokens":5}}}"#;
    let edited = r#"{"type":"user","uuid":"p2","parentUuid":"root","sessionId":"s","message":{"role":"user","content":"do b"}}"#;
    let facts = facts(&[first, answer, edited]);
    assert_eq!(facts.messages.len(), 1);
    assert_eq!((facts.calls[0].key.as_str(), facts.calls[0].message), ("m1", None));
}

#[test]
fn titles_in_order_of_who_gave_them() {
    let own = r#"{"type":"summary","summary":"Fixing it","leafUuid":"u1"}"#;
    let foreign = r#"{"type":"summary","summary":"Something else","leafUuid":"elsewhere"}"#;
    let made = r#"{"type":"ai-title","aiTitle":"The fix","sessionId":"s1"}"#;
    let given = r#"{"type":"custom-title","customTitle":" mine \u00e9 ","sessionId":"s1"}"#;
    let emptied = r#"{"type":"custom-title","customTitle":"","sessionId":"s1"}"#;
    let title = |lines: &[&str]| facts(lines).title;
    assert_eq!(title(&[foreign, PROMPT]), None, "a summary of another file's conversation");
    assert_eq!(title(&[foreign, own, PROMPT]).as_deref(), Some("Fixing it"));
    assert_eq!(title(&[made, own, PROMPT]).as_deref(), Some("The fix"));
    assert_eq!(title(&[given, made, PROMPT, emptied]).as_deref(), Some("mine é"));
}

#[test]
fn the_clients_own_compaction() {
    let summary = r#"{"type":"user","uuid":"c","parentUuid":"b","sessionId":"s1","isCompactSummary":true,"timestamp":"2026-02-07T01:00:00Z","message":{"role":"user","content":"so far"}}"#;
    let boundary = r#"{"type":"system","subtype":"compact_boundary","uuid":"b","sessionId":"s1","content":"Conversation compacted"}"#;
    let transcript = read(&[PROMPT, THINKING, boundary, summary]);
    let facts = transcript.log_facts().unwrap();
    let [compaction] = facts.compactions.as_slice() else { panic!("{:?}", facts.compactions) };
    assert_eq!((compaction.message, compaction.at_ms), (2, Some(1_770_426_000_000)));
    assert_eq!(compaction.view, NewView::NextMessage);
    assert_eq!(transcript.messages[2].text(), "so far");
}

#[test]
fn a_file_that_goes_on_from_another_session() {
    let copied = PROMPT.replace("\"s1\"", "\"s0\"");
    let lines = [copied.as_str(), THINKING];
    assert_eq!(facts(&lines).session.as_deref(), Some("s1"));
    assert_eq!(facts(&lines).copied_from.as_deref(), Some("s0"));
    let forked = PROMPT
        .replace("\"type\":\"user\"", r#""type":"user","forkedFrom":{"sessionId":"s9","messageUuid":"x"}"#);
    assert_eq!(facts(&[forked.as_str()]).copied_from.as_deref(), Some("s9"));
}

fn side(uuid: &str, parent: &str, agent: &str, role: &str, extra: &str) -> String {
    format!(
        r#"{{"type":"{role}","isSidechain":true,"uuid":"{uuid}","parentUuid":{parent},"sessionId":"s1",{agent}"timestamp":"2026-02-07T00:00:03Z","message":{{{extra}"role":"{role}","content":"{uuid} says"}}}}"#
    )
}

#[test]
fn conversations_of_sub_agents_stand_apart() {
    let usage = r#""id":"msg_9","model":"claude-haiku-4-5","usage":{"output_tokens":7},"#;
    let first = side("x1", "null", r#""agentId":"aa","#, "user", "");
    let second = side("y1", "null", r#""agentId":"bb","#, "user", "");
    let answer = side("x2", "\"x1\"", r#""agentId":"aa","#, "assistant", usage);
    let transcript = read(&[PROMPT, THINKING, &first, &second, &answer, CALL, RESULT]);
    assert_eq!(transcript.messages.len(), 3);
    assert_eq!(transcript.log_facts().unwrap().calls.len(), 1, "a call of an agent is not the session's");
    let agents = transcript.sub_agents();
    let [aa, bb] = agents.as_slice() else { panic!("{} agents", agents.len()) };
    assert_eq!((aa.id.as_str(), bb.id.as_str()), ("aa", "bb"));
    assert_eq!((aa.after_messages, aa.transcript.messages.len()), (2, 2));
    assert_eq!(aa.transcript.messages[1].role(), Role::Assistant);
    let facts = aa.transcript.log_facts().unwrap();
    assert_eq!((facts.session.as_deref(), facts.agent.as_deref()), (Some("s1"), Some("aa")));
    assert_eq!((facts.calls.len(), facts.calls[0].message), (1, Some(1)));
    assert_eq!(facts.messages.len(), 2);
    assert!(aa.transcript.sub_agents().is_empty());
}

#[test]
fn older_logs_name_no_agent_and_a_file_may_be_one_agents_alone() {
    let rows = [
        side("x1", "null", "", "user", ""),
        side("y1", "null", "", "user", ""),
        side("x2", "\"x1\"", "", "assistant", ""),
    ];
    let transcript = read(&rows.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(transcript.messages.is_empty());
    let told: Vec<(String, usize)> = transcript
        .sub_agents()
        .into_iter()
        .map(|SubAgent { id, transcript, .. }| (id, transcript.messages.len()))
        .collect();
    assert_eq!(told, [("x1".to_owned(), 2), ("y1".to_owned(), 1)]);
}

#[test]
fn other_documents_know_nothing_more() {
    let list = decode(br#"[{"role":"user","content":"hi"}]"#.to_vec(), &DecodeOptions::default()).unwrap();
    assert_eq!(list.log_facts(), None);
    assert!(list.sub_agents().is_empty());
}

#[test]
fn facts_stand_beside_the_messages_since_a_compaction_too() {
    let summary = r#"{"type":"user","uuid":"c","sessionId":"s1","isCompactSummary":true,"message":{"role":"user","content":"so far"}}"#;
    let options = DecodeOptions { since_compaction: true, ..DecodeOptions::default() };
    let text = [PROMPT, THINKING, summary].join("\n");
    let transcript = decode(text.into_bytes(), &options).unwrap();
    let facts = transcript.log_facts().unwrap();
    assert_eq!((transcript.messages.len(), facts.messages.len()), (1, 1));
    assert_eq!(facts.messages[0].id.as_deref(), Some("c"));
    assert_eq!((facts.compactions[0].message, facts.calls[0].message), (0, None));
}
