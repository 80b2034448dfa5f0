//! What the model is shown: ranges, renditions, summaries, messages of ours, and how they grow.

use throughline_store::{
    Continuation, EndReason, NewMessage, NewViewItem, Store, StoreError, StoredRendition, ViewItem,
    ViewMessage,
};

use crate::contract::support::*;

fn items(store: &dyn Store, name: &str) -> Vec<ViewItem> {
    store.view_items(&owner(), &id(name)).unwrap()
}

/// A continuation that is shown exactly these items.
fn showing(from: &str, to: &str, made_at_seq: u64, view: Vec<ViewItem>) -> Continuation {
    Continuation {
        lease: None,
        from: id(from),
        id: id(to),
        reason: EndReason::COMPRESSION,
        at_ms: 5_000,
        made_at_seq,
        summary: None,
        view: view.into_iter().map(NewViewItem::Kept).collect(),
    }
}

fn rendered(session: &str, seq: u64, shown: &str) -> ViewItem {
    ViewItem::Rendition { session: id(session), seq, rendition: rendition(shown) }
}

fn a_new_session_shows_nothing_and_then_what_is_said(store: &dyn Store) {
    open(store, "one");
    assert_eq!(items(store, "one"), [open_range("one", 0)]);
    assert!(view(store, "one").is_empty());
    say(store, "one", &["a", "b"]);
    assert_eq!(items(store, "one"), [open_range("one", 0)]);
    assert_eq!(shown(store, "one"), ["a", "b"]);
}

fn what_is_shown_verbatim_is_the_message_itself(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a", "b"]);
    let said = store.messages(&owner(), &id("one")).unwrap();
    let expected: Vec<ViewMessage> = said.into_iter().map(ViewMessage::Verbatim).collect();
    assert_eq!(view(store, "one"), expected);
}

fn a_message_in_other_words_parts_the_run(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a"]);
    let batch = vec![said("b"), said_shown_as("long c", "c"), said_shown_as("long d", "d"), said("e")];
    store.append(&owner(), &id("one"), batch).unwrap();
    say(store, "one", &["f"]);
    let expected =
        [range("one", 0, 2), rendered("one", 2, "c"), rendered("one", 3, "d"), open_range("one", 4)];
    assert_eq!(items(store, "one"), expected);
    assert_eq!(shown(store, "one"), ["a", "b", "c", "d", "e", "f"]);
    assert_eq!(messages(store, "one"), ["a", "b", "long c", "long d", "e", "f"]);
    let view = view(store, "one");
    assert_eq!(view.iter().map(ViewMessage::tokens).collect::<Vec<_>>(), [10, 10, 3, 3, 10, 10]);
    assert_eq!(words(view[2].message().unwrap().json.as_str()), "long c");
}

fn a_rendition_as_the_first_word_leaves_no_empty_run(store: &dyn Store) {
    open(store, "one");
    store.append(&owner(), &id("one"), vec![said_shown_as("long a", "a")]).unwrap();
    assert_eq!(items(store, "one"), [rendered("one", 0, "a"), open_range("one", 1)]);
    store.append(&owner(), &id("one"), vec![said_shown_as("long b", "b")]).unwrap();
    assert_eq!(items(store, "one"), [rendered("one", 0, "a"), rendered("one", 1, "b"), open_range("one", 2)]);
    assert_eq!(shown(store, "one"), ["a", "b"]);
}

fn a_rendition_is_kept_as_it_was_sent(store: &dyn Store) {
    open(store, "one");
    let kept = StoredRendition {
        kinds: vec!["trimmed".into(), "artifact".into()],
        json: "{ \"role\" : \"user\", \"content\":\"\\u00e9 x\" }".into(),
        tokens: 123,
    };
    let new = NewMessage { rendition: Some(kept.clone()), ..said("long") };
    store.append(&owner(), &id("one"), vec![new]).unwrap();
    match &view(store, "one")[0] {
        ViewMessage::Rendition(message, rendition) => {
            assert_eq!(*rendition, kept);
            assert_eq!(words(message.json.as_str()), "long");
        }
        other => panic!("{other:?}"),
    }
}

fn a_place_in_a_session_names_one_request(store: &dyn Store) {
    open(store, "one");
    let batch = vec![said("a"), said_shown_as("long b", "b"), said("c"), said("d")];
    store.append(&owner(), &id("one"), batch).unwrap();
    let expected: [&[&str]; 6] =
        [&[], &["a"], &["a", "b"], &["a", "b", "c"], &["a", "b", "c", "d"], &["a", "b", "c", "d"]];
    for (to_seq, expected) in expected.iter().enumerate() {
        assert_eq!(shown_to(store, "one", Some(to_seq as u64)), *expected, "up to {to_seq}");
    }
}

fn a_place_in_a_continuation_keeps_what_it_began_with(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a", "b"]);
    compact(store, "one", "two", "S");
    say(store, "two", &["c", "d"]);
    assert_eq!(shown_to(store, "two", Some(0)), ["S", "b"]);
    assert_eq!(shown_to(store, "two", Some(2)), ["S", "b"]);
    assert_eq!(shown_to(store, "two", Some(3)), ["S", "b", "c"]);
    assert_eq!(shown_to(store, "two", None), ["S", "b", "c", "d"]);
}

fn the_view_of_an_ended_session_stays_as_it_was(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a", "b"]);
    let before = view(store, "one");
    compact(store, "one", "two", "S");
    say(store, "two", &["c"]);
    assert_eq!(view(store, "one"), before);
    assert_eq!(items(store, "one"), [range("one", 0, 2)]);
}

fn every_kind_of_item_is_kept_in_a_continuation(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a", "b", "c", "d"]);
    compact(store, "one", "two", "S1");
    let summary = store.summaries(&owner(), &id("two")).unwrap()[0].id;
    let synthetic =
        ViewItem::Synthetic { kind: "acknowledgement".into(), json: words_json("noted"), tokens: 4 };
    let kept = ViewItem::Summary { summary, json: words_json("S1 again"), tokens: 6 };
    let view_items = vec![kept.clone(), synthetic.clone(), rendered("one", 1, "b short"), range("one", 2, 4)];
    store.continue_session(&owner(), showing("two", "three", 4, view_items)).unwrap();
    say(store, "three", &["e"]);
    let expected =
        [kept, synthetic, rendered("one", 1, "b short"), range("one", 2, 4), open_range("three", 4)];
    assert_eq!(items(store, "three"), expected);
    assert_eq!(shown(store, "three"), ["S1 again", "noted", "b short", "c", "d", "e"]);
    let tokens: Vec<u64> = view(store, "three").iter().map(ViewMessage::tokens).collect();
    assert_eq!(tokens, [6, 4, 3, 10, 10, 10]);
}

fn runs_may_be_shown_in_any_order_and_in_part(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a", "b", "c", "d", "e"]);
    let view_items = vec![range("one", 3, 4), range("one", 0, 1), range("one", 4, 5)];
    store.continue_session(&owner(), showing("one", "two", 5, view_items)).unwrap();
    assert_eq!(shown(store, "two"), ["d", "a", "e"]);
}

fn what_came_while_the_view_was_made_is_shown_after_it(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a", "b"]);
    let prepared = folding(store, "one", "two", "S");
    store.append(&owner(), &id("one"), vec![said("late"), said_shown_as("long later", "later")]).unwrap();
    let opened = store.continue_session(&owner(), prepared).unwrap();
    assert_eq!(shown(store, "two"), ["S", "b", "late", "later"]);
    assert_eq!((opened.first_seq, opened.next_seq), (4, 4));
    say(store, "two", &["c"]);
    assert_eq!(shown(store, "two"), ["S", "b", "late", "later", "c"]);
}

fn a_view_of_messages_that_are_not_there_is_refused_and_changes_nothing(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a", "b"]);
    open(store, "other");
    say(store, "other", &["x", "y", "z"]);
    let refused = [
        vec![range("one", 0, 3)],
        vec![range("one", 5, 6)],
        vec![rendered("one", 2, "b")],
        vec![range("nobody", 0, 1)],
        vec![range("other", 0, 1)],
        vec![rendered("other", 0, "x")],
    ];
    for view_items in refused {
        let error =
            store.continue_session(&owner(), showing("one", "two", 2, view_items.clone())).unwrap_err();
        assert!(matches!(error, StoreError::UnknownMessage { .. }), "{view_items:?}: {error:?}");
    }
    for made_at_seq in [3, u64::MAX] {
        let error =
            store.continue_session(&owner(), showing("one", "two", made_at_seq, Vec::new())).unwrap_err();
        assert!(matches!(error, StoreError::UnknownMessage { .. }), "made at {made_at_seq}: {error:?}");
    }
    assert_eq!(chain(store, "one"), ["one"]);
    assert_eq!(session(store, "one").ended_ms, None);
    assert_eq!(unknown(store.session(&owner(), &id("two"))), "two");
    say(store, "one", &["c"]);
    assert_eq!(shown(store, "one"), ["a", "b", "c"]);
}

fn a_summary_that_is_not_there_is_refused(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a"]);
    let mut without = folding(store, "one", "two", "S");
    without.summary = None;
    let error = store.continue_session(&owner(), without).unwrap_err();
    assert!(matches!(error, StoreError::ViewRefused { .. }), "{error:?}");
    let unknown_summary =
        ViewItem::Summary { summary: throughline_store::SummaryId(999), json: words_json("S"), tokens: 1 };
    let error =
        store.continue_session(&owner(), showing("one", "two", 1, vec![unknown_summary])).unwrap_err();
    assert!(matches!(error, StoreError::UnknownSummary { id: 999 }), "{error:?}");
    assert_eq!(session(store, "one").ended_ms, None);
}

fn an_importer_may_give_the_view_a_session_starts_with(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a", "b", "c"]);
    end(store, "one", EndReason::COMPRESSION);
    let synthetic = ViewItem::Synthetic { kind: "summary".into(), json: words_json("theirs"), tokens: 4 };
    let new = linked("two", throughline_store::LinkKind::Continuation, "one", 3);
    let opened = store.open_session(new, Some(vec![synthetic.clone(), range("one", 2, 3)])).unwrap();
    assert_eq!((opened.first_seq, opened.chain), (3, session(store, "one").chain));
    say(store, "two", &["d"]);
    assert_eq!(items(store, "two"), [synthetic, range("one", 2, 3), open_range("two", 3)]);
    assert_eq!(shown(store, "two"), ["theirs", "c", "d"]);
    assert_eq!(transcript(store, "two"), ["a", "b", "c", "d"]);
}

on_every_backend!(
    a_new_session_shows_nothing_and_then_what_is_said,
    what_is_shown_verbatim_is_the_message_itself,
    a_message_in_other_words_parts_the_run,
    a_rendition_as_the_first_word_leaves_no_empty_run,
    a_rendition_is_kept_as_it_was_sent,
    a_place_in_a_session_names_one_request,
    a_place_in_a_continuation_keeps_what_it_began_with,
    the_view_of_an_ended_session_stays_as_it_was,
    every_kind_of_item_is_kept_in_a_continuation,
    runs_may_be_shown_in_any_order_and_in_part,
    what_came_while_the_view_was_made_is_shown_after_it,
    a_view_of_messages_that_are_not_there_is_refused_and_changes_nothing,
    a_summary_that_is_not_there_is_refused,
    an_importer_may_give_the_view_a_session_starts_with,
);
