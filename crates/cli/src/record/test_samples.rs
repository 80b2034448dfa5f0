//! Small excerpts of a record, written out for tests of the output.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::json;
use throughline_store::{
    Conversation, EndReason, Link, LinkKind, MessageRun, Millis, Origin, Owner, Session, SessionCounters,
    SessionId, StoredMessage, Summary, SummaryId, UsageTotal,
};
use throughline_tokens::Usage;
use throughline_transcript::{ContentHash, SharedText, WireFormat, decode_message};

use crate::args::time::Now;

pub(crate) fn ms(time: &str) -> Millis {
    time.parse::<Timestamp>().unwrap().as_millisecond()
}

/// Noon of 15 November 2026, in UTC.
pub(crate) fn noon() -> Now {
    Now { ms: ms("2026-11-15T12:00:00Z"), zone: TimeZone::UTC }
}

pub(crate) fn id(text: &str) -> SessionId {
    SessionId::from_text(text)
}

/// A session that began at this time, with an id made from it.
pub(crate) fn session(ordinal: u64, started: &str) -> Session {
    let digits: String = started.chars().filter(char::is_ascii_digit).collect();
    Session {
        id: id(&format!("{}_{}_{ordinal:06x}", &digits[..8], &digits[8..14])),
        owner: Owner::default(),
        ordinal,
        chain: ordinal,
        base: ordinal,
        link: None,
        first_seq: 0,
        next_seq: 0,
        started_ms: ms(started),
        active_ms: ms(started),
        ended_ms: None,
        end_reason: None,
        model: Some("claude-opus-4-6".to_owned()),
        title: None,
        origin: Origin {
            program: "claude-code".to_owned(),
            key: None,
            project: Some("/home/ada/parser".to_owned()),
        },
        wire_format: WireFormat::Anthropic,
        counters: SessionCounters::default(),
    }
}

/// Links a session to another.
pub(crate) fn hung(mut session: Session, parent: &Session, kind: LinkKind, leaves_at: u64) -> Session {
    session.link = Some(Link { parent: parent.id.clone(), kind, leaves_at });
    session.first_seq = leaves_at;
    if kind == LinkKind::Continuation {
        session.chain = parent.chain;
    }
    session
}

/// Ends a session.
pub(crate) fn ended(mut session: Session, reason: &str) -> Session {
    session.ended_ms = Some(session.active_ms);
    session.end_reason = Some(EndReason::named(reason));
    session
}

pub(crate) fn conversation(tip: Session, title: Option<&str>, totals: SessionCounters) -> Conversation {
    Conversation {
        root: tip.id.clone(),
        started_ms: tip.started_ms,
        title: title.map(str::to_owned),
        sessions: 1,
        compactions: 0,
        totals,
        tip,
    }
}

pub(crate) fn said(session: &Session, seq: u64, at: &str, message: serde_json::Value) -> StoredMessage {
    let json = message.to_string();
    let decoded = decode_message(SharedText::new(json.clone())).unwrap();
    StoredMessage {
        id: seq + 1,
        session: session.id.clone(),
        seq,
        role: decoded.role(),
        at_ms: ms(at),
        tokens: json.len() as u64 / 4,
        hash: ContentHash::of(&json),
        machine_written: false,
        tools: Vec::new(),
        json: SharedText::new(json),
    }
}

pub(crate) fn summary(number: u64, session: &Session, source: &Session) -> Summary {
    Summary {
        id: SummaryId(number),
        session: session.id.clone(),
        created_ms: session.started_ms,
        author: "rules".to_owned(),
        document: "## Goal\n- to arrive".to_owned(),
        sources: vec![MessageRun { session: source.id.clone(), first_seq: 1, end_seq: 3 }],
        supersedes: None,
        facts: json!({}),
        figures: json!({
            "messages": { "before": 812, "after": 41 },
            "tokens": { "before": 104_220, "after": 22_310 },
        }),
    }
}

pub(crate) fn total(group: &str, calls: u64, usage: Usage, cost: u64, uncached: u64) -> UsageTotal {
    UsageTotal {
        group: group.to_owned(),
        calls,
        usage,
        cost_micro_usd: cost,
        uncached_micro_usd: uncached,
        sessions: 1,
        ..UsageTotal::default()
    }
}

/// Output without colours.
pub(crate) fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

/// The width of the widest line in columns.
pub(crate) fn widest(text: &str) -> usize {
    plain(text).lines().map(crate::ui::text::columns).max().unwrap_or(0)
}
