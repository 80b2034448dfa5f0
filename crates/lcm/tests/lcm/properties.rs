//! Whatever is said, however it is cut: nodes hold together, every message is covered once and reached in three steps, the
//! view fits and can be sent, and folding again changes nothing.

use proptest::prelude::*;
use throughline_engine::CompactionResult;
use throughline_lcm::LcmLimits;
use throughline_testkit::any_conversation;
use throughline_transcript::{Groups, Message};

use crate::support::Stage;

/// Says all of a conversation in several pieces, folds after each, and looks at everything. Gives how often it was compacted.
pub(crate) async fn fold_in_pieces(mut stage: Stage, messages: &[Message], pieces: usize) -> usize {
    let mut folded = 0;
    for piece in pieces_of(messages, pieces) {
        stage.append(piece);
        let before = stage.view_tokens();
        let result = stage.fold().await;
        if let CompactionResult::Aborted { detail, .. } = &result {
            panic!("{detail}");
        }
        stage.check();
        stage.check_fits();
        if matches!(result, CompactionResult::Completed(_)) {
            folded += 1;
            assert!(stage.view_tokens() < before);
            let view: Vec<String> = stage.shown().iter().map(|item| item.json().to_owned()).collect();
            let again = stage.fold().await;
            assert!(matches!(again, CompactionResult::NoOp { .. }), "compacted again: {again:?}");
            let after: Vec<String> = stage.shown().iter().map(|item| item.json().to_owned()).collect();
            assert_eq!(view, after);
        }
    }
    folded
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

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: throughline_testkit::cases(48), ..ProptestConfig::default() })]

    #[test]
    fn nodes_hold_together_whatever_was_said(
        list in any_conversation(),
        pieces in 1usize..7,
        chunk_tokens in 50u64..900,
        fan_in in 2usize..6,
        nodes_tokens in 800u64..3_000,
    ) {
        let limits =
            LcmLimits { chunk_tokens, fan_in, nodes_tokens: Some(nodes_tokens), ..LcmLimits::default() };
        run(fold_in_pieces(Stage::new(list.wire_format, 6_000, limits), &list.messages(), pieces));
    }
}
