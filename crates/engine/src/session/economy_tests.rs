//! Tests of the figures read from a view for decisions by cost.

use throughline_transcript::{DecodeOptions, Message, decode};

use super::{answers, growth, rereads};

fn messages(json: &str) -> Vec<Message> {
    decode(json.as_bytes().to_vec(), &DecodeOptions::default()).unwrap().messages
}

const READS: &str = r#"[
    {"role":"user","content":"Fix the parser"},
    {"role":"assistant","content":[{"type":"tool_use","id":"a","name":"Read","input":{"file":"a.rs"}},
                                   {"type":"tool_use","id":"b","name":"Read","input":{"file":"b.rs"}}]},
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"one"},
                              {"type":"tool_result","tool_use_id":"b","content":"two"}]},
    {"role":"assistant","content":[{"type":"tool_use","id":"c","name":"Read","input":{"file":"a.rs"}}]},
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"one"}]}
]"#;

#[test]
fn a_call_in_the_same_words_counts_as_a_reread() {
    let found = rereads(&messages(READS), &[10, 20, 400, 20, 300]);
    assert_eq!((found.calls, found.tokens), (1, 300));
}

#[test]
fn growth_is_counted_from_the_first_answer_on() {
    let messages = messages(READS);
    let answers = answers(&messages);
    assert_eq!(answers, 2);
    assert_eq!(growth(&messages, &[9_000, 20, 400, 20, 300], answers), 370);
    assert_eq!(growth(&messages[..1], &[9_000], 0), 9_000);
}
