//! Tests of tables.

use super::*;

fn plain(table: &Table, width: usize, indent: usize) -> String {
    anstream::adapter::strip_str(&table.render(width, indent)).to_string()
}

#[test]
fn columns_line_up_and_the_last_one_is_shortened() {
    let mut table = Table::new(&[("tool", Side::Left), ("tokens", Side::Right), ("glimpse", Side::Left)]);
    table.row(["terminal".to_owned(), "12".to_owned(), "cargo test --workspace".to_owned()]);
    table.row(["読む".to_owned(), "3,456".to_owned(), "x".to_owned()]);
    assert_eq!(
        plain(&table, 34, 2),
        "  tool      tokens  glimpse\n  terminal      12  cargo test --…\n  読む       3,456  x\n"
    );
}

#[test]
fn a_table_that_is_too_narrow_still_shows_something_of_its_last_column() {
    let mut table = Table::new(&[("number", Side::Right), ("words", Side::Left)]);
    assert!(table.is_empty());
    table.row(["1".to_owned(), "a long line of words".to_owned()]);
    assert!(!table.is_empty());
    assert_eq!(plain(&table, 5, 0), "number  words\n     1  a long li…\n");
}

#[test]
fn a_heading_over_numbers_stays_in_its_column() {
    let mut table = Table::new(&[("n", Side::Right), ("words", Side::Left)]);
    table.row(["1,000".to_owned(), "w".to_owned()]);
    assert_eq!(plain(&table, 80, 1), "     n  words\n 1,000  w\n");
}

#[test]
fn a_wrapping_table_shows_long_cells_whole() {
    let mut table = Table::new(&[("limit", Side::Left), ("why", Side::Left)]).wrapping();
    table.row(["tail".to_owned(), "raised to the least that is allowed".to_owned()]);
    table.row(["head".to_owned(), "short".to_owned()]);
    assert_eq!(
        plain(&table, 27, 1),
        " limit  why\n tail   raised to the least\n        that is allowed\n head   short\n"
    );
}
