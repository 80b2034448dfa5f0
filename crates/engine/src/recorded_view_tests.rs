//! Tests of converting a compaction to a continuation.

use std::ops::Range;

use throughline_compaction::{Earlier, Rendition, RenditionKind, Section, SummaryDocument};
use throughline_store::{Origin, SessionCounters, StoredMessage, SummaryId};
use throughline_transcript::{ContentHash, Role, WireFormat};

use super::*;

fn id(name: &str) -> SessionId {
    SessionId::from_text(name)
}

fn session(next_seq: u64) -> Session {
    Session {
        id: id("second"),
        owner: Owner::default(),
        ordinal: 2,
        chain: 1,
        base: 2,
        link: None,
        first_seq: 6,
        next_seq,
        started_ms: 0,
        active_ms: 0,
        ended_ms: None,
        end_reason: None,
        model: None,
        title: None,
        origin: Origin::default(),
        wire_format: WireFormat::Chat,
        counters: SessionCounters::default(),
    }
}

fn said(session: &str, seq: u64) -> StoredMessage {
    let json = format!(r#"{{"role":"user","content":"message {seq}"}}"#);
    StoredMessage {
        id: seq + 1,
        session: id(session),
        seq,
        role: Role::User,
        at_ms: 0,
        tokens: 10,
        hash: ContentHash::of(&json),
        machine_written: false,
        tools: Vec::new(),
        json: SharedText::new(json),
    }
}

fn earlier_summary() -> Summary {
    Summary {
        id: SummaryId(7),
        session: id("second"),
        created_ms: 0,
        author: "rules".to_owned(),
        document: String::new(),
        sources: vec![MessageRun { session: id("first"), first_seq: 1, end_seq: 4 }],
        supersedes: None,
        facts: json!({}),
        figures: json!({}),
    }
}

/// A view after a first compaction of six messages and four further messages: head 0, the summary of 1 to 3, a pruned 4, 5 of the first
/// session, 6 to 9 of the second.
fn view() -> LoadedView {
    let pruned = StoredRendition {
        kinds: vec!["pruned".to_owned()],
        json: r#"{"role":"user","content":"m4"}"#.to_owned(),
        tokens: 3,
    };
    let mut shown = vec![
        ViewMessage::Verbatim(said("first", 0)),
        ViewMessage::Summary {
            summary: SummaryId(7),
            json: r#"{"role":"assistant","content":"the summary"}"#.to_owned(),
            tokens: 50,
        },
        ViewMessage::Rendition(said("first", 4), pruned),
        ViewMessage::Verbatim(said("first", 5)),
    ];
    shown.extend((6..10).map(|seq| ViewMessage::Verbatim(said("second", seq))));
    LoadedView::new(session(10), shown, vec![earlier_summary()]).unwrap()
}

fn attempt(items: Vec<MadeItem>, middle: Range<usize>, pinned: Option<Range<usize>>) -> Attempt {
    let mut document = SummaryDocument::default();
    document.add(Section::Goal, "to arrive".to_owned());
    let report = Report { summariser: Some("built-in rules".to_owned()), ..Report::default() };
    Attempt {
        outcome: Outcome::Completed(Completion { quality: Quality::Rules, reason: String::new() }),
        report,
        items,
        summary: Some(document),
        answer: None,
        plan: Some(Plan {
            head: 0..middle.start,
            tail: middle.end..8,
            middle,
            pinned,
            earlier: Earlier { summaries: vec![1], acknowledgements: Vec::new() },
            summary_role: Role::Assistant,
            acknowledge: false,
        }),
    }
}

fn commit(attempt: &Attempt) -> Option<Continuation> {
    let count = |message: &Message| message.json().len() as u64;
    let successor = id("third");
    view().continuation(
        attempt,
        &CommitAs { id: &successor, at_ms: 99, trigger: "command", count_message: &count },
    )
}

fn range(session: &str, first_seq: u64, end_seq: u64) -> NewViewItem {
    NewViewItem::Kept(ViewItem::Range { session: id(session), first_seq, end_seq: Some(end_seq) })
}

#[test]
fn runs_of_untouched_messages_are_ranges_by_session() {
    let items = vec![
        MadeItem::Verbatim(0),
        MadeItem::Summary(r#"{"role":"user","content":"s"}"#.to_owned()),
        MadeItem::Verbatim(3),
        MadeItem::Verbatim(4),
        MadeItem::Verbatim(5),
        MadeItem::Verbatim(7),
    ];
    let made = commit(&attempt(items, 1..3, None)).unwrap();
    assert_eq!(
        made.view,
        [
            range("first", 0, 1),
            NewViewItem::Summary { json: r#"{"role":"user","content":"s"}"#.to_owned(), tokens: 29 },
            range("first", 5, 6),
            range("second", 6, 8),
            range("second", 9, 10),
        ]
    );
    assert_eq!((made.from, made.id), (id("second"), id("third")));
    assert_eq!((made.made_at_seq, made.at_ms), (10, 99));
    assert_eq!(made.reason, EndReason::COMPRESSION);
}

#[test]
fn a_summary_stands_for_what_it_folds_and_what_the_one_it_takes_up_stood_for() {
    let made = commit(&attempt(Vec::new(), 1..6, None)).unwrap().summary.unwrap();
    assert_eq!(made.supersedes, Some(SummaryId(7)));
    assert_eq!(
        made.sources,
        [
            MessageRun { session: id("first"), first_seq: 1, end_seq: 6 },
            MessageRun { session: id("second"), first_seq: 6, end_seq: 8 },
        ]
    );
    assert_eq!(made.author, "rules");
    assert!(made.document.contains("to arrive"));
    assert_eq!(made.figures["trigger"], "command");
}

#[test]
fn a_model_is_named_as_the_author() {
    let mut by_model = attempt(Vec::new(), 1..6, None);
    by_model.outcome = Outcome::Completed(Completion { quality: Quality::Model, reason: String::new() });
    by_model.report.summariser = Some("some-model".to_owned());
    assert_eq!(commit(&by_model).unwrap().summary.unwrap().author, "some-model");
}

#[test]
fn a_pinned_message_is_shown_and_not_a_source() {
    let made = commit(&attempt(Vec::new(), 1..7, Some(5..6))).unwrap().summary.unwrap();
    assert_eq!(
        made.sources,
        [
            MessageRun { session: id("first"), first_seq: 1, end_seq: 6 },
            MessageRun { session: id("second"), first_seq: 6, end_seq: 7 },
            MessageRun { session: id("second"), first_seq: 8, end_seq: 9 },
        ]
    );
}

#[test]
fn what_was_in_other_words_keeps_that_mark() {
    let trimmed = |message| MadeItem::Rendition {
        message,
        rendition: Rendition {
            kinds: vec![RenditionKind::Trimmed, RenditionKind::Pruned],
            json: r#"{"role":"user","content":"x"}"#.to_owned(),
        },
    };
    let items = vec![trimmed(0), MadeItem::Verbatim(2), trimmed(2), MadeItem::Verbatim(1)];
    let made = commit(&attempt(items, 1..2, None)).unwrap();
    let kinds: Vec<Vec<String>> = made
        .view
        .iter()
        .filter_map(|item| match item {
            NewViewItem::Kept(ViewItem::Rendition { rendition, .. }) => Some(rendition.kinds.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(kinds, [vec!["trimmed", "pruned"], vec!["pruned"], vec!["pruned", "trimmed"]]);
    assert!(
        matches!(
            &made.view[3],
            NewViewItem::Kept(ViewItem::Summary { summary: SummaryId(7), tokens: 50, .. })
        ),
        "a summary that is kept stays the one it was"
    );
}

#[test]
fn messages_of_ours_are_synthetic_with_their_purpose() {
    let items = vec![MadeItem::Synthetic(
        Synthetic::Acknowledgement,
        r#"{"role":"assistant","content":"ok"}"#.to_owned(),
    )];
    let made = commit(&attempt(items, 1..2, None)).unwrap();
    assert!(
        matches!(&made.view[..], [NewViewItem::Kept(ViewItem::Synthetic { kind, tokens: 35, .. })] if kind == "acknowledgement")
    );
}

#[test]
fn an_attempt_that_left_everything_as_it_was_commits_nothing() {
    let mut nothing = attempt(Vec::new(), 1..2, None);
    nothing.outcome =
        Outcome::NoOp { reason: throughline_compaction::NoOpReason::BelowThreshold, detail: String::new() };
    assert!(commit(&nothing).is_none());
}

#[test]
fn names_are_those_that_reports_use() {
    use RenditionKind::{ImageLabel, Mended, Noted, Pruned, Trimmed};
    for kind in [Pruned, Trimmed, ImageLabel, Noted, Mended] {
        assert_eq!(json!(kind), change_name(kind));
    }
    for kind in [Synthetic::Acknowledgement, Synthetic::StubResult] {
        assert_eq!(json!(kind), synthetic_name(kind));
    }
}

#[test]
fn bytes_that_are_no_message_are_refused() {
    let broken = ViewMessage::Synthetic { kind: "stub_result".to_owned(), json: "[]".to_owned(), tokens: 1 };
    assert!(LoadedView::new(session(10), vec![broken], Vec::new()).is_err());
}
