//! The output of `sessions list`.

use throughline_store::SessionCounters;

use super::*;
use crate::record::test_samples::{conversation, noon, plain, session, widest};

fn some() -> Vec<Conversation> {
    let mut first = conversation(
        session(1, "2026-11-15T09:00:00Z"),
        Some(
            "Port the parser to the new format. Never touch vendor/, and keep the old tests running all the while",
        ),
        SessionCounters {
            messages: 1204,
            message_tokens: 182_340,
            calls: 310,
            cost_micro_usd: 12_400_000,
            unpriced_calls: 2,
            ..SessionCounters::default()
        },
    );
    first.compactions = 2;
    let mut second = conversation(session(2, "2026-10-01T09:00:00Z"), None, SessionCounters::default());
    second.tip.model = None;
    let third = conversation(
        session(3, "2026-11-13T09:00:00Z"),
        Some("\u{1b}[31mred\u{1b}[0m\nand 日本語のタイトル"),
        SessionCounters {
            messages: 3,
            message_tokens: 99,
            calls: 2,
            unpriced_calls: 2,
            ..SessionCounters::default()
        },
    );
    vec![first, second, third]
}

#[test]
fn each_has_its_figures_and_its_title() {
    insta::assert_snapshot!(plain(&render(&some(), &noon(), 80)));
}

#[test]
fn lines_keep_to_the_width() {
    for width in [60, 80, 120] {
        assert!(widest(&render(&some(), &noon(), width)) <= width.max(77), "{width}");
    }
}

#[test]
fn a_title_cannot_drive_the_terminal() {
    let page = plain(&render(&some(), &noon(), 80));
    assert!(page.contains(r"\u{1b}[31mred"), "{page}");
}

#[test]
fn nothing_is_printed_for_nothing() {
    assert_eq!(render(&[], &noon(), 80), "");
}
