//! Tests of which tools are left out.

use super::*;

fn prompt(calls: u64, deferral: ToolDeferral) -> PromptFigures {
    let prices = CachePrices { write_permille: 1_250, read_permille: 100, output_permille: 5_000 };
    PromptFigures { prices, prompt_tokens: 15_000, calls, expected_calls: calls, candidates: 40, deferral }
}

fn tool(tokens: u64, unused_for: Option<u64>) -> ToolFigures {
    ToolFigures { tokens, line_tokens: 8, unused_for }
}

#[test]
fn unused_tools_leave_and_tools_in_use_stay() {
    for deferral in [ToolDeferral::ByReference, ToolDeferral::ByList] {
        let at_start = prompt(0, deferral);
        assert!(at_start.drops(&tool(2_000, None)), "{deferral:?}");
        let later = PromptFigures { expected_calls: 20, ..prompt(60, deferral) };
        assert!(later.drops(&tool(2_000, None)), "{deferral:?}: never used in sixty calls");
        assert!(!later.drops(&tool(300, Some(2))), "{deferral:?}: used two calls ago");
    }
    assert!(!prompt(60, ToolDeferral::ByList).drops(&tool(2_000, None)));
}

#[test]
fn tools_that_hardly_cost_anything_stay() {
    for deferral in [ToolDeferral::ByReference, ToolDeferral::ByList] {
        assert!(!prompt(0, deferral).drops(&tool(8, None)), "{deferral:?}");
    }
}

#[test]
fn more_stays_where_bringing_a_tool_back_writes_the_whole_prompt() {
    let leaves_from = |deferral| (1..5_000).find(|tokens| prompt(0, deferral).drops(&tool(*tokens, None)));
    let (by_reference, by_list) =
        (leaves_from(ToolDeferral::ByReference).unwrap(), leaves_from(ToolDeferral::ByList).unwrap());
    assert!(by_reference < by_list, "{by_reference} < {by_list}");
}

#[test]
fn nothing_leaves_where_it_is_off() {
    assert!(!prompt(0, ToolDeferral::Off).drops(&tool(100_000, None)));
}
