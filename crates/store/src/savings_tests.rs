//! Tests with a conversation of four calls, compacted after the second, with all figures computed by hand.

use throughline_tokens::{Catalogue, Usage};
use throughline_transcript::{Role, WireFormat, decode_message_text, text_message};

use super::Savings;
use crate::call::{CallFilter, NewCall};
use crate::ids::{Owner, SessionId};
use crate::memory::MemoryStore;
use crate::message::{NewMessage, StoredRendition};
use crate::sessions::session::{EndReason, NewSession, Origin};
use crate::store::Store;
use crate::views::item::NewViewItem;
use crate::views::summary::{Continuation, MessageRun, NewSummary};

const MODEL: &str = "claude-sonnet-4-5";
const MINUTE: i64 = 60_000;

fn id(text: &str) -> SessionId {
    SessionId::from_text(text)
}

fn message(tokens: u64, shown: Option<u64>) -> NewMessage {
    let message = decode_message_text(text_message(WireFormat::Anthropic, Role::User, "words")).unwrap();
    let rendition = shown.map(|tokens| StoredRendition {
        kinds: vec!["artifact".to_owned()],
        json: message.json().to_owned(),
        tokens,
    });
    NewMessage { message, tokens, at_ms: 0, tools: Vec::new(), rendition }
}

fn call(at_ms: i64, usage: Usage, sent_to_seq: u64) -> NewCall {
    let catalogue = Catalogue::shipped();
    let priced = throughline_tokens::PricedCall {
        model: MODEL,
        provider: "anthropic",
        at_ms,
        usage,
        cache_write_1h: 0,
    };
    NewCall {
        model: MODEL.to_owned(),
        provider: "anthropic".to_owned(),
        task: "chat".to_owned(),
        usage,
        at_ms,
        sent_to_seq: Some(sent_to_seq),
        cost_micro_usd: catalogue.cost(&priced).micro_usd,
        ..NewCall::default()
    }
}

fn open(store: &MemoryStore) {
    let new = NewSession {
        id: id("one"),
        owner: Owner::default(),
        link: None,
        started_ms: 1,
        model: None,
        title: None,
        origin: Origin { program: "claude-code".to_owned(), key: None, project: None },
        wire_format: WireFormat::Anthropic,
    };
    store.open_session(new, None).unwrap();
}

/// Tokens read and written; no answer, to keep the figures simple.
fn usage(cache_read: u64, cache_write: u64) -> Usage {
    Usage { cache_read, cache_write, ..Usage::default() }
}

fn savings(store: &MemoryStore) -> Savings {
    savings_of(store, "one")
}

/// Returns the savings of this session's conversation.
fn savings_of(store: &MemoryStore, session: &str) -> Savings {
    let filter = CallFilter { chain_of: Some(id(session)), ..CallFilter::default() };
    Savings::of(store, &Owner::default(), &filter, &Catalogue::shipped()).unwrap()
}

#[test]
fn calls_before_a_compaction_save_nothing() {
    let (store, owner) = (MemoryStore::new(), Owner::default());
    open(&store);
    store.append(&owner, &id("one"), vec![message(10_000, None), message(10_000, None)]).unwrap();
    let calls = vec![call(MINUTE, usage(0, 15_000), 1), call(2 * MINUTE, usage(15_000, 10_000), 2)];
    store.record_calls(&owner, &id("one"), calls).unwrap();
    let total = savings(&store).total;
    assert_eq!((total.calls, total.estimated, total.saved_micro_usd()), (2, 0, 0));
    assert_eq!(total.paid_micro_usd, total.direct_micro_usd);
}

#[test]
fn a_compaction_saves_the_reading_and_costs_the_writing() {
    let (store, owner) = (MemoryStore::new(), Owner::default());
    open(&store);
    store.append(&owner, &id("one"), vec![message(40_000, None), message(40_000, None)]).unwrap();
    let calls = vec![call(MINUTE, usage(0, 45_000), 1), call(2 * MINUTE, usage(45_000, 40_000), 2)];
    store.record_calls(&owner, &id("one"), calls).unwrap();
    let summary = NewSummary {
        author: "rules".to_owned(),
        document: "notes".to_owned(),
        sources: vec![MessageRun { session: id("one"), first_seq: 0, end_seq: 2 }],
        supersedes: None,
        facts: serde_json::Value::Null,
        figures: serde_json::Value::Null,
    };
    let continuation = Continuation {
        lease: None,
        from: id("one"),
        id: id("two"),
        reason: EndReason::COMPRESSION,
        at_ms: 3 * MINUTE,
        made_at_seq: 2,
        summary: Some(summary),
        view: vec![NewViewItem::Summary {
            json: r#"{"role":"user","content":"notes"}"#.to_owned(),
            tokens: 5_000,
        }],
    };
    store.continue_session(&owner, continuation).unwrap();
    store.append(&owner, &id("two"), vec![message(1_000, None), message(1_000, None)]).unwrap();
    // 5,000 of the fixed part are read, 6,000 written; then 1,000 more.
    let calls = vec![call(3 * MINUTE, usage(5_000, 6_000), 3), call(4 * MINUTE, usage(11_000, 1_000), 4)];
    store.record_calls(&owner, &id("two"), calls).unwrap();
    let savings = savings(&store);
    let total = &savings.total;
    assert_eq!((total.calls, total.estimated, total.unpriced), (4, 2, 0));
    assert_eq!(total.tokens_left_out, 2 * 75_000);
    // At 3 dollars a million, reads at a tenth, writes at one and a quarter:
    // directly the third call reads 85,000 and writes 1,000, the fourth reads 86,000 and writes 1,000;
    let direct = (85_000 + 86_000) * 3 / 10 + 2 * 1_000 * 3 * 5 / 4;
    // as sent, they read 5,000 and 11,000 and wrote 6,000 and 1,000.
    let paid = (5_000 + 11_000) * 3 / 10 + 7_000 * 3 * 5 / 4;
    assert_eq!(total.saved_micro_usd(), direct - paid);
    assert_eq!(total.compaction_micro_usd, direct - paid);
    assert_eq!(savings.by_program[0].group, "claude-code");
    assert_eq!(savings.by_model[0].saved_micro_usd(), total.saved_micro_usd());
    assert_eq!(savings.by_access_token[0].saved_micro_usd(), total.saved_micro_usd());
    // Any session of the conversation identifies it.
    assert_eq!(savings_of(&store, "two"), savings);
}

#[test]
fn shortened_results_and_notes_are_levers_of_their_own() {
    let (store, owner) = (MemoryStore::new(), Owner::default());
    open(&store);
    store.append(&owner, &id("one"), vec![message(10_000, Some(2_000)), message(1_000, None)]).unwrap();
    let notes =
        NewCall { task: "compression".to_owned(), sent_to_seq: None, ..call(3 * MINUTE, usage(8_000, 0), 2) };
    let calls =
        vec![call(MINUTE, usage(0, 7_000), 1), call(2 * MINUTE, usage(7_000, 1_000), 2), notes.clone()];
    store.record_calls(&owner, &id("one"), calls).unwrap();
    let total = savings(&store).total;
    assert_eq!(total.notes_micro_usd, -i64::try_from(notes.cost_micro_usd.unwrap()).unwrap());
    // 8,000 more are written by the first call and read by the second.
    assert_eq!(total.tool_results_micro_usd, 8_000 * 3 * 5 / 4 + 8_000 * 3 / 10);
    assert_eq!(total.compaction_micro_usd, 0);
}

#[test]
fn access_tokens_have_sums_of_their_own() {
    let (store, owner) = (MemoryStore::new(), Owner::default());
    open(&store);
    store.append(&owner, &id("one"), vec![message(10_000, None), message(10_000, None)]).unwrap();
    let of = |token: &str, call: NewCall| NewCall { access_token: Some(token.to_owned()), ..call };
    let calls = vec![
        of("ann", call(MINUTE, usage(0, 15_000), 1)),
        of("bo", call(2 * MINUTE, usage(15_000, 10_000), 2)),
    ];
    let paid: Vec<u64> = calls.iter().map(|call| call.cost_micro_usd.unwrap()).collect();
    store.record_calls(&owner, &id("one"), calls).unwrap();
    let by_token = savings(&store).by_access_token;
    let groups: Vec<_> =
        by_token.iter().map(|one| (one.group.as_str(), one.calls, one.paid_micro_usd)).collect();
    assert_eq!(groups, [("ann", 1, paid[0]), ("bo", 1, paid[1])]);
}

#[test]
fn calls_without_a_price_are_counted_apart() {
    let (store, owner) = (MemoryStore::new(), Owner::default());
    open(&store);
    store.append(&owner, &id("one"), vec![message(10, None)]).unwrap();
    let unknown =
        NewCall { model: "no-such-model".to_owned(), cost_micro_usd: None, ..call(MINUTE, usage(0, 15), 1) };
    store.record_calls(&owner, &id("one"), vec![unknown]).unwrap();
    let total = savings(&store).total;
    assert_eq!((total.calls, total.unpriced, total.paid_micro_usd, total.direct_micro_usd), (1, 1, 0, 0));
}
