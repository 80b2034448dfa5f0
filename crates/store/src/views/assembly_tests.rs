//! Tests of views as pictures: `a0-4` is a run of session `a`, `a4-` an open one, `b7*` a rendition, `S1` a summary.

use throughline_transcript::WireFormat;

use super::*;
use crate::ids::Owner;
use crate::sessions::session::{Origin, SessionCounters};

fn session(id: &str, ordinal: u64, first_seq: u64, next_seq: u64) -> Session {
    Session {
        id: SessionId::from_text(id),
        owner: Owner::default(),
        ordinal,
        chain: 1,
        base: ordinal,
        link: None,
        first_seq,
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

fn rendition() -> StoredRendition {
    StoredRendition { kinds: vec!["pruned".to_owned()], json: "{}".to_owned(), tokens: 1 }
}

fn items(picture: &str) -> Vec<ViewItem> {
    picture
        .split_whitespace()
        .map(|word| {
            let session = SessionId::from_text(&word[..1]);
            if let Some(number) = word.strip_prefix('S') {
                let summary = SummaryId(number.parse().unwrap());
                return ViewItem::Summary { summary, json: String::new(), tokens: 1 };
            }
            if let Some(seq) = word[1..].strip_suffix('*') {
                return ViewItem::Rendition { session, seq: seq.parse().unwrap(), rendition: rendition() };
            }
            let (first, end) = word[1..].split_once('-').unwrap();
            ViewItem::Range { session, first_seq: first.parse().unwrap(), end_seq: end.parse().ok() }
        })
        .collect()
}

fn picture(items: &[ViewItem]) -> String {
    let words: Vec<String> = items
        .iter()
        .map(|item| match item {
            ViewItem::Range { session, first_seq, end_seq: Some(end) } => {
                format!("{session}{first_seq}-{end}")
            }
            ViewItem::Range { session, first_seq, end_seq: None } => format!("{session}{first_seq}-"),
            ViewItem::Rendition { session, seq, .. } => format!("{session}{seq}*"),
            ViewItem::Summary { summary, .. } => format!("S{}", summary.0),
            ViewItem::Synthetic { kind, .. } => kind.clone(),
        })
        .collect();
    words.join(" ")
}

#[test]
fn a_closed_view_ends_where_it_is_cut() {
    let own = SessionId::from_text("b");
    for (view, end, expected) in [
        ("a0-3 S1 b5-", 9, "a0-3 S1 b5-9"),
        ("a0-3 S1 b5-", 5, "a0-3 S1"),
        ("b0-4 b4* b5-", 9, "b0-4 b4* b5-9"),
        ("b0-4 b4* b5-", 5, "b0-4 b4*"),
        ("b0-4 b4* b5-", 4, "b0-4"),
        ("b0-4 b4* b5-", 2, "b0-2"),
        ("a0-9 a9* b10-", 0, "a0-9 a9*"),
    ] {
        assert_eq!(picture(&closed(items(view), &own, end)), expected, "{view} cut at {end}");
    }
}

#[test]
fn an_ended_session_is_told_closed_and_a_going_one_open() {
    let mut b = session("b", 2, 5, 8);
    assert_eq!(picture(&visible_items(items("a0-5 b5-"), &b)), "a0-5 b5-");
    b.ended_ms = Some(1);
    assert_eq!(picture(&visible_items(items("a0-5 b5-"), &b)), "a0-5 b5-8");
    b.next_seq = 5;
    assert_eq!(picture(&visible_items(items("a0-5 b5-"), &b)), "a0-5");
}

#[test]
fn own_items_leave_out_what_the_view_began_with() {
    let b = session("b", 2, 5, 12);
    for (from, expected) in
        [(5, "b5-8 b8* b9-12"), (7, "b7-8 b8* b9-12"), (8, "b8* b9-12"), (9, "b9-12"), (12, "")]
    {
        assert_eq!(picture(&own_items(items("a0-2 S1 a4* b5-8 b8* b9-"), &b, from)), expected, "from {from}");
    }
}

#[test]
fn a_view_grows_around_renditions() {
    let own = SessionId::from_text("a");
    let grow = |first, seqs: &[u64]| picture(&grown(&own, first, seqs.iter().map(|&seq| (seq, rendition()))));
    assert_eq!(grow(0, &[]), "a0-");
    assert_eq!(grow(0, &[0]), "a0* a1-");
    assert_eq!(grow(2, &[5, 6, 9]), "a2-5 a5* a6* a7-9 a9* a10-");
}

fn settle(
    view: &str,
    line: &[LinePart],
    made_of: Option<(&str, u64)>,
) -> std::result::Result<String, String> {
    let sessions = [session("a", 1, 0, 5), session("b", 2, 5, 12), session("c", 3, 12, 20)];
    let made_id = made_of.map(|(id, at)| (SessionId::from_text(id), at));
    settled::<StoreError>(items(view), line, made_id.as_ref().map(|(id, at)| (id, *at)), |id| {
        Ok(sessions.iter().find(|session| session.id == *id).cloned())
    })
    .map(|items| picture(&items))
    .map_err(|error| error.to_string())
}

#[test]
fn a_settled_view_shows_only_what_is_there() {
    let line = [LinePart { chain: 1, to_ordinal: 2, to_seq: None }];
    let missing = |session, seq| Err(format!("message {seq} of session {session} is not in the record"));
    for (view, expected) in [
        ("a0-2 S1 b6-9 b9*", Ok("a0-2 S1 b6-9 b9*".to_owned())),
        ("a0-2 a2-4 b5-5 b5-7 b7-9", Ok("a0-4 b5-9".to_owned())),
        ("a3-", Ok("a3-5".to_owned())),
        ("b6-", Ok("b6-10".to_owned())),
        ("a0-6", missing("a", 5)),
        ("b4-6", missing("b", 4)),
        ("b12*", missing("b", 12)),
        ("b4*", missing("b", 4)),
        ("c12-13", missing("c", 12)),
        ("z0-1", missing("z", 0)),
        ("a9-", missing("a", 9)),
    ] {
        assert_eq!(settle(view, &line, Some(("b", 10))), expected, "{view}");
    }
}

#[test]
fn a_branch_may_not_show_what_its_parent_said_later() {
    let line = [LinePart { chain: 1, to_ordinal: 2, to_seq: Some(8) }];
    assert_eq!(settle("a0- b5-", &line, None).unwrap(), "a0-5 b5-8");
    assert!(settle("b5-9", &line, None).is_err());
    assert!(settle("b8*", &line, None).is_err());
    assert!(settle("a0-1", &[], None).is_err(), "a session that hangs on nothing shows nothing");
}

#[test]
fn a_new_summary_takes_its_number() {
    let view = || vec![NewViewItem::Summary { json: "{}".to_owned(), tokens: 3 }];
    assert_eq!(picture(&with_summary(view(), Some(SummaryId(7))).unwrap()), "S7");
    assert!(matches!(with_summary(view(), None), Err(StoreError::ViewRefused { .. })));
}

#[test]
fn going_back_keeps_the_earlier_view_and_everything_said_since() {
    // b was compacted into c; c into d (remaining: the end of c); now back to the view of b.
    let members = [
        (session("b", 2, 5, 12), items("S1 a3-5 b5-8 b8* b9-")),
        (session("c", 3, 12, 20), items("S2 b10-12 c12-")),
        (session("d", 4, 20, 20), items("S3 c18-20 d20-")),
        (session("e", 5, 20, 22), items("S3 c18-20 d20-")),
    ];
    assert_eq!(picture(&restored_view(members)), "S1 a3-5 b5-8 b8* b9-12 c12-20");
    assert!(restored_view([]).is_empty());
}
