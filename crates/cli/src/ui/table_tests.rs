//! Tables.

use super::*;

fn plain(table: &TextTable, width: usize, indent: usize) -> String {
    anstream::adapter::strip_str(&table.render(width, indent)).to_string()
}

#[test]
fn columns_line_up_and_the_last_one_is_shortened() {
    let mut table = TextTable::new(&[("tool", Side::Left), ("tokens", Side::Right), ("glimpse", Side::Left)]);
    table.row(["terminal".to_owned(), "12".to_owned(), "cargo test --workspace".to_owned()]);
    table.row(["読む".to_owned(), "3,456".to_owned(), "x".to_owned()]);
    assert_eq!(
        plain(&table, 34, 2),
        "  tool      tokens  glimpse\n  terminal      12  cargo test --…\n  読む       3,456  x\n"
    );
}

#[test]
fn a_table_that_is_too_wide_becomes_a_block_of_lines_for_each_row() {
    let mut table = TextTable::new(&[("number", Side::Right), ("", Side::Left), ("words", Side::Left)]);
    assert!(table.is_empty());
    table.row(["1".to_owned(), "x".to_owned(), "a long line of words".to_owned()]);
    table.row(["23".to_owned(), String::new(), "more".to_owned()]);
    assert!(!table.is_empty());
    assert_eq!(plain(&table, 15, 1), " 1\n   x\n   words: a lo…\n 23\n   words: more\n");
    let wrapping = TextTable { overflow: Overflow::Wrap, ..table };
    assert_eq!(plain(&wrapping, 15, 0), "1\n  x\n  words: a long\n  line of words\n23\n  words: more\n");
}

#[test]
fn bars_take_the_room_that_is_left_and_none_where_that_is_too_little() {
    let table = |width: usize| {
        let mut table = TextTable::new(&[("model", Side::Left), ("calls", Side::Right)]);
        table.row(["gpt".to_owned(), "12".to_owned()]);
        table.row(["claude".to_owned(), "6".to_owned()]);
        table.bars(&[12, 6], width, 1, 10);
        plain(&table, width, 1)
    };
    assert_eq!(table(23), " model   calls\n gpt        12  ███████\n claude      6  ███▌\n");
    assert_eq!(table(80), " model   calls\n gpt        12  ██████████\n claude      6  █████\n");
    assert_eq!(table(17), " model   calls\n gpt        12\n claude      6\n");
}

#[test]
fn no_line_is_wider_than_the_table_may_be() {
    let texts = ["", "a", "some words that go on", "ひらがなのことば", "averyveryverylongsingleword"];
    for width in 10..100 {
        for (indent, wraps) in [(0, false), (2, true), (2, false)] {
            let mut table = TextTable::new(&[
                ("name", Side::Left),
                ("calls", Side::Right),
                ("cost", Side::Right),
                ("why", Side::Left),
            ]);
            if wraps {
                table = table.wrapping();
            }
            for at in 0..texts.len() {
                table.row((0..4).map(|column| texts[(at + column * 2) % texts.len()].to_owned()));
            }
            table.bars(&[1, 2, 3, 4, 5], width, indent, 40);
            for line in plain(&table, width, indent).lines() {
                assert!(columns(line) <= width, "{width}: {line:?}");
            }
        }
    }
}

#[test]
fn a_heading_over_numbers_stays_in_its_column() {
    let mut table = TextTable::new(&[("n", Side::Right), ("words", Side::Left)]);
    table.row(["1,000".to_owned(), "w".to_owned()]);
    assert_eq!(plain(&table, 80, 1), "     n  words\n 1,000  w\n");
}

#[test]
fn a_wrapping_table_shows_long_cells_whole() {
    let mut table = TextTable::new(&[("limit", Side::Left), ("why", Side::Left)]).wrapping();
    table.row(["tail".to_owned(), "raised to the least that is allowed".to_owned()]);
    table.row(["head".to_owned(), "short".to_owned()]);
    assert_eq!(
        plain(&table, 27, 1),
        " limit  why\n tail   raised to the least\n        that is allowed\n head   short\n"
    );
}
