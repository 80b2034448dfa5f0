//! Tests that the ledger has all facts of the messages, with positions and authors, however it was gathered.

use throughline_testkit::{ConversationOptions, big_transcript, conversation_from_seed};
use throughline_transcript::{WireFormat, decode_message_text, unescape};

use super::*;
use crate::anchors::AnchorKind;
use crate::facts::SeenBy;

fn ledger(json: &[&str]) -> Ledger {
    let messages: Vec<Message> =
        json.iter().map(|text| decode_message_text((*text).to_owned()).unwrap()).collect();
    Ledger::of(&messages, &Groups::of(&messages), None)
}

fn decoded(document: &str) -> Vec<Message> {
    let values: Vec<Box<serde_json::value::RawValue>> = serde_json::from_str(document).unwrap();
    values.into_iter().map(|value| decode_message_text(value.get().to_owned()).unwrap()).collect()
}

const SESSION: [&str; 4] = [
    r#"{"role":"user","content":"Fix src/pool.rs, the limit is 4096."}"#,
    r#"{"role":"assistant","content":"I look at src/pool.rs.","tool_calls":[{"id":"a","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"src/pool.rs\"}"}},{"id":"b","type":"function","function":{"name":"terminal","arguments":"{\"command\":\"git log -1\"}"}}]}"#,
    r#"{"role":"tool","tool_call_id":"b","content":"commit 9f3c2ab17\nSee src/pool.rs"}"#,
    r#"{"role":"tool","tool_call_id":"a","content":"fn drain_pool() {}"}"#,
];

#[test]
fn an_anchor_knows_where_it_stood_and_who_used_it() {
    let ledger = ledger(&SESSION);
    let path = ledger.anchor("src/pool.rs").unwrap();
    assert_eq!((path.kind, path.first, path.last), (AnchorKind::Path, 0, 2));
    assert_eq!((path.messages, path.written), (3, 2));
    for who in [SeenBy::HUMAN, SeenBy::ASSISTANT, SeenBy::CALL, SeenBy::RESULT] {
        assert!(path.seen_by.has(who), "{who:?}");
    }
    let number = ledger.anchor("4096").unwrap();
    assert!(number.seen_by.has(SeenBy::HUMAN) && !number.seen_by.has(SeenBy::RESULT));
    assert!(ledger.anchor("9f3c2ab17").is_some_and(|hash| hash.kind == AnchorKind::Hash));
    assert!(ledger.anchor("src/pool.go").is_none());
}

#[test]
fn a_result_finds_its_call_in_any_order() {
    let ledger = ledger(&SESSION);
    assert_eq!(ledger.acts().len(), 2);
    assert_eq!(ledger.answered_by(2, 0).unwrap().target, "git log -1");
    assert_eq!(ledger.answered_by(3, 0).unwrap().target, "src/pool.rs");
    assert!(ledger.answered_by(0, 0).is_none() && ledger.answered_by(3, 1).is_none());
    assert_eq!(ledger.acts_between(1, 2).len(), 2);
    assert_eq!(ledger.acts_between(2, 4).len(), 0);
    // The call that showed an anchor explains it: the file that was read, not the command that named it.
    let home = ledger.anchor("drain_pool").and_then(|info| info.home).and_then(|id| ledger.act(id)).unwrap();
    assert_eq!(home.tool, "read_file");
}

#[test]
fn line_breaks_in_an_envelope_do_not_stick_to_names() {
    let ledger = ledger(&[
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"terminal","arguments":"{\"command\":\"ls\\nsrc/one.rs\"}"}}]}"#,
        r#"{"role":"tool","tool_call_id":"a","content":"{\"output\": \"src/two.rs\\nsrc/three.rs\\tvalue_4\", \"exit_code\": 0}"}"#,
    ]);
    for anchor in ["src/one.rs", "src/two.rs", "src/three.rs", "value_4"] {
        assert!(ledger.anchor(anchor).is_some(), "{anchor}");
    }
    for glued in ["nsrc/three.rs", "tvalue_4", "nsrc/one.rs"] {
        assert!(ledger.anchor(glued).is_none(), "{glued}");
    }
}

#[test]
fn every_anchor_stands_in_the_messages_it_names() {
    for wire_format in WireFormat::ALL {
        for seed in 0..150 {
            let messages =
                conversation_from_seed(&ConversationOptions::new(wire_format).at_most_units(25), seed)
                    .messages();
            let ledger = Ledger::of(&messages, &Groups::of(&messages), None);
            // Text may be escaped twice: as an argument, and as a member of its message.
            let plain: Vec<String> = messages.iter().map(|m| unescape(&unescape(m.json()))).collect();
            let once: Vec<String> = messages.iter().map(|m| unescape(m.json())).collect();
            for (anchor, info) in ledger.anchors() {
                for at in [info.first as usize, info.last as usize] {
                    let there = [messages[at].json(), once[at].as_str(), plain[at].as_str()]
                        .iter()
                        .any(|text| text.contains(anchor));
                    assert!(there, "{wire_format}, seed {seed}: {anchor:?} is not in message {at}");
                }
                assert!(info.first <= info.last && info.messages >= 1 && info.count >= info.messages);
            }
        }
    }
}

/// Returns all contents of a ledger, in order.
fn told(ledger: &Ledger) -> Vec<String> {
    let anchors = ledger.anchors().map(|(text, info)| format!("{text} {info:?}"));
    let acts = ledger.acts().iter().map(|act| format!("{act:?}"));
    anchors.chain(acts).collect()
}

#[test]
fn gathered_at_once_by_two_threads_or_one_by_one_it_is_the_same() {
    for wire_format in WireFormat::ALL {
        // Long enough for two threads.
        let messages = decoded(&big_transcript(wire_format, 600_000, 300, 7));
        let groups = Groups::of(&messages);
        let (at_once, sizes) =
            Ledger::gather(&messages, &groups, None, &|message| message.json().len() as u64);
        let mut one_by_one = Ledger::new(None);
        for message in &messages {
            one_by_one.append(message);
        }
        assert_eq!(told(&at_once), told(&one_by_one), "{wire_format}");
        assert_eq!((at_once.messages(), one_by_one.messages()), (300, 300));
        let expected: Vec<u64> = messages.iter().map(|message| message.json().len() as u64).collect();
        assert_eq!(sizes, expected, "{wire_format}");
        for (at, message) in messages.iter().enumerate() {
            for part in 0..message.parts().len() {
                let target = |ledger: &Ledger| {
                    ledger.answered_by(at, part).map(|act| (act.message, act.target.clone()))
                };
                assert_eq!(target(&at_once), target(&one_by_one), "{wire_format}, message {at}");
            }
        }
    }
}

#[test]
fn secrets_stay_out_and_are_remembered() {
    let redactor = Redactor::new();
    let said = r#"{"role":"user","content":"password: \"tr0ub4dor&3-battery\" and src/pool.rs"}"#;
    let messages = [decode_message_text(said.to_owned()).unwrap()];
    let ledger = Ledger::of(&messages, &Groups::of(&messages), Some(&redactor));
    assert!(ledger.anchor("tr0ub4dor").is_none() && ledger.anchor("src/pool.rs").is_some());
    assert!(ledger.is_secret("tr0ub4dor") && !ledger.is_secret("src/pool.rs"));
}

#[test]
fn messages_with_secrets_are_known_from_both_threads() {
    let redactor = Redactor::new();
    let said = r#"{"role":"user","content":"password: \"tr0ub4dor&3-battery\""}"#;
    let secret = decode_message_text(said.to_owned()).unwrap();
    let mut messages = decoded(&big_transcript(WireFormat::Chat, 600_000, 300, 7));
    let clean = messages[5].clone();
    messages.insert(4, secret.clone());
    messages.push(secret);
    let last = u32::try_from(messages.len() - 1).unwrap();
    let ledger = Ledger::of(&messages, &Groups::of(&messages), Some(&redactor));
    for at in [4, last] {
        assert!(
            !ledger.facts().mask_part(at, messages[at as usize].text().as_ref()).contains("tr0ub4dor"),
            "{at}"
        );
    }
    let text = clean.text();
    assert_eq!(ledger.facts().mask_part(6, &text), text);
    assert_eq!(messages[6].json(), clean.json());
}
