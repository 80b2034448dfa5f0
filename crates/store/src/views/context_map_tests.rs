//! Tests of the tokens sent by calls: their sums, and the adjustment to the provider's count.

use throughline_transcript::{Role, SharedText, WireFormat, decode_message, text_message};

use super::*;
use crate::call::NewCall;
use crate::ids::IdLength;
use crate::memory::MemoryStore;
use crate::message::NewMessage;
use crate::sessions::session::EndReason;
use crate::sessions::session::{NewSession, Origin};
use crate::views::item::{NewViewItem, ViewItem};
use crate::views::summary::{Continuation, NewSummary};

fn head(seq: u64, speaker: Role, tokens: u64) -> MessageHead {
    MessageHead { seq, speaker, tokens, at_ms: 0 }
}

fn message(role: Role, words: &str, tokens: u64) -> NewMessage {
    let json = text_message(WireFormat::Chat, role, words);
    let message = decode_message(SharedText::new(json)).unwrap();
    NewMessage { message, tokens, at_ms: 1, tools: Vec::new(), rendition: None }
}

#[test]
fn sums_stop_before_the_place_that_was_sent_to() {
    let base = SentTokens { summary: 100, ..SentTokens::default() };
    let own = vec![head(4, Role::User, 10), head(5, Role::Assistant, 20), head(6, Role::Tool, 30)];
    let sums = WindowSums::of(&Window { base, own });
    assert_eq!(sums.up_to(4), base);
    assert_eq!(sums.up_to(6), SentTokens { user: 10, assistant: 20, ..base });
    assert_eq!(sums.up_to(99), SentTokens { user: 10, assistant: 20, tool: 30, ..base });
}

#[test]
fn parts_add_up_to_what_the_provider_counted() {
    let sent = SentTokens { summary: 100, user: 200, assistant: 300, tool: 400, ..SentTokens::default() };
    let preamble = PreambleBytes { system: 1_000, tools: 3_000 };
    let more = sent.within(1_400, preamble);
    assert_eq!((more.system, more.tools, more.messages()), (100, 300, 1_000));
    let fewer = sent.within(500, preamble);
    assert_eq!((fewer.system, fewer.tools, fewer.messages()), (0, 0, 500));
    assert_eq!(sent.within(1_001, PreambleBytes::default()).system, 1);
    assert_eq!(SentTokens::default().within(u64::MAX, preamble).tools, u64::MAX / 4 * 3 + 2);
}

#[test]
fn a_call_after_a_compaction_sends_the_summary_and_what_came_since() {
    let (store, owner) = (MemoryStore::new(), Owner::default());
    let (first, second) = (SessionId::new(1, 1, IdLength::Local), SessionId::new(2, 2, IdLength::Local));
    let origin = Origin { program: "test".to_owned(), key: None, project: None };
    let new = NewSession {
        id: first.clone(),
        owner: owner.clone(),
        link: None,
        started_ms: 1,
        model: None,
        title: None,
        origin,
        wire_format: WireFormat::Chat,
    };
    store.open_session(new, None).unwrap();
    let said = vec![
        message(Role::User, "one", 40),
        message(Role::Assistant, "two", 60),
        message(Role::User, "three", 7),
    ];
    store.append(&owner, &first, said).unwrap();
    let usage = Usage { input: 200, ..Usage::default() };
    let call = |to_seq| NewCall { usage, sent_to_seq: Some(to_seq), ..NewCall::default() };
    store.record_calls(&owner, &first, vec![call(1)]).unwrap();
    let summary = NewSummary {
        author: "rules".to_owned(),
        document: "notes".to_owned(),
        sources: Vec::new(),
        supersedes: None,
        facts: serde_json::Value::Null,
        figures: serde_json::Value::Null,
    };
    let json = text_message(WireFormat::Chat, Role::User, "notes");
    let continuation = Continuation {
        lease: None,
        from: first.clone(),
        id: second.clone(),
        reason: EndReason::COMPRESSION,
        at_ms: 2,
        made_at_seq: 3,
        summary: Some(summary),
        view: vec![
            NewViewItem::Summary { json, tokens: 11 },
            NewViewItem::Kept(ViewItem::Range { session: first.clone(), first_seq: 2, end_seq: Some(3) }),
        ],
    };
    let tip = store.continue_session(&owner, continuation).unwrap();
    store.append(&owner, &second, vec![message(Role::Assistant, "four", 5)]).unwrap();
    store.record_calls(&owner, &second, vec![call(4), NewCall::default()]).unwrap();
    let calls = CallContext::of_chain(&store, &owner, &tip).unwrap();
    let sent: Vec<Option<SentTokens>> = calls.iter().map(|call| call.sent).collect();
    let expected = [
        Some(SentTokens { user: 40, system: 160, ..SentTokens::default() }),
        Some(SentTokens { summary: 11, user: 7, assistant: 5, system: 177, ..SentTokens::default() }),
        None,
    ];
    assert_eq!(sent, expected);
    let tip = store.session(&owner, &second).unwrap();
    let part = tip.transcript_part(&store, &owner, 1..4).unwrap();
    assert_eq!(part.iter().map(|message| message.seq).collect::<Vec<_>>(), [1, 2, 3]);
}
