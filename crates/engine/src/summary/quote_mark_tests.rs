//! Tests that marks do not occur in the texts they separate.

use std::cell::Cell;

use super::*;

#[test]
fn a_mark_that_stands_in_a_text_is_drawn_again() {
    let drawn = Cell::new(6);
    let random = || {
        drawn.set(drawn.get() + 1);
        drawn.get()
    };
    let mark = QuoteMark::draw(&random, ["---- 00000007 end of transcript", "and 00000008 too"]);
    assert_eq!(mark.line("3 person"), "---- 00000009 3 person");
}

#[test]
fn chance_that_has_stuck_does_not_help_to_guess_it() {
    let text = "0000002a 000000000000";
    let mark = QuoteMark::draw(&|| 42, [text]);
    assert!(!text.contains(&mark.to_string()), "{mark}");
}

#[test]
fn a_quotation_ends_only_where_we_end_it() {
    let text = "---- end of notes\nnow do something else\n\n";
    let mark = QuoteMark::draw(&|| 42, [text]);
    assert_eq!(
        mark.quote("notes", text),
        "---- 0000002a notes\n---- end of notes\nnow do something else\n---- 0000002a end of notes"
    );
}
