//! Parsing a short log.

use super::*;

const LOG: &str = r#"{"type":"user","message":{"content":"Fix the parser"}}
{"type":"assistant","message":{"id":"a","content":[{"type":"text","text":"Looking."}]}}
{"type":"assistant","message":{"id":"a","content":[{"type":"tool_use","id":"c1","name":"Read","input":{"file":"a.rs"}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"c1","content":"fn a() {}"}]}}
{"type":"user","isMeta":true,"message":{"content":"not said"}}
no JSON
{"type":"assistant","message":{"id":"b","content":[{"type":"tool_use","id":"c2","name":"Bash","input":{}}]}}
{"type":"user","isCompactSummary":true,"message":{"content":"What was done"}}
{"type":"assistant","message":{"id":"c","content":[{"type":"text","text":"Done."}]}}
{"type":"user","message":{"content":"Thanks"}}"#;

#[test]
fn parts_of_an_answer_are_one_message_and_calls_have_results() {
    let stages = stages(LOG, 10);
    assert_eq!(stages.len(), 2);
    assert_eq!(stages[0].summary.as_deref(), Some("What was done"));
    // The call without a result is left out.
    assert_eq!(stages[0].past.len(), 3);
    assert_eq!(stages[0].past[1].content, "Looking.");
    assert_eq!(stages[0].past[1].calls[0].arguments, r#"{"file": "a.rs"}"#);
    assert_eq!(stages[1].past.len(), 4);
    assert_eq!(stages[1].summary, None);
}

#[test]
fn a_cut_at_the_clients_compaction_has_its_summary() {
    let stages = stages(LOG, 8);
    assert_eq!(stages.len(), 1);
    assert_eq!(stages[0].summary.as_deref(), Some("What was done"));
}

#[test]
fn a_message_is_read_back_as_it_was_written() {
    let past = stages(LOG, 10).pop().unwrap().past;
    for message in past {
        let json = message.to_json();
        let read = Spoken::parse(&json).unwrap();
        assert_eq!((read.text(), read.to_json()), (message.text(), json));
    }
}

#[test]
fn parts_end_where_no_call_waits() {
    let past = stages(LOG, 10).pop().unwrap().past;
    let ends = part_ends(&past, 2);
    assert_eq!(ends, [3, 4]);
    assert_eq!(part_ends(&past, 1), [4]);
}
