//! Whatever is said, however it is cut: nodes hold together, every message is covered once and reached in three steps, the
//! view fits and can be sent, and folding again changes nothing.

use proptest::prelude::*;
use throughline_engine::CompactionResult;
use throughline_lcm::LcmLimits;
use throughline_testkit::any_conversation;
use throughline_transcript::{Groups, Message};

use crate::support::Stage;

/// Says all of a conversation in several pieces, and folds after each.
async fn fold_in_pieces(
    dialect: throughline_transcript::Dialect,
    messages: &[Message],
    pieces: usize,
    limits: LcmLimits,
) {
    let mut stage = Stage::new(dialect, 6_000, limits);
    for piece in pieces_of(messages, pieces) {
        stage.append(piece);
        let before = stage.view_tokens();
        let result = stage.fold().await;
        if let CompactionResult::Aborted { detail, .. } = &result {
            panic!("{detail}");
        }
        stage.check();
        if matches!(result, CompactionResult::Completed(_)) {
            assert!(stage.view_tokens() < before);
            let view: Vec<String> = stage.shown().iter().map(|item| item.json().to_owned()).collect();
            let again = stage.fold().await;
            assert!(matches!(again, CompactionResult::NoOp { .. }), "folded again: {again:?}");
            let after: Vec<String> = stage.shown().iter().map(|item| item.json().to_owned()).collect();
            assert_eq!(view, after);
        }
    }
}

/// About so many pieces, none of which parts a call from its result.
fn pieces_of(messages: &[Message], pieces: usize) -> Vec<&[Message]> {
    let groups = Groups::of(messages);
    let size = messages.len().div_ceil(pieces).max(1);
    let mut cut = Vec::new();
    let mut from = 0;
    for group in groups.as_slice() {
        if group.end - from >= size || group.end == messages.len() {
            cut.push(&messages[from..group.end]);
            from = group.end;
        }
    }
    cut
}

fn run(work: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn nodes_hold_together_whatever_was_said(
        list in any_conversation(),
        pieces in 1usize..7,
        chunk_tokens in 50u64..900,
        fan_in in 2usize..6,
    ) {
        let limits = LcmLimits { chunk_tokens, fan_in, ..LcmLimits::default() };
        run(fold_in_pieces(list.dialect, &list.messages(), pieces, limits));
    }
}
