//! Which numbers count and which are facts.

use super::*;

#[test]
fn lists_lose_their_counting_numbers_and_nothing_else() {
    assert_eq!(without_number_runs("parse_line 402 403 404 405 8080 max_len"), "parse_line 8080 max_len");
    assert_eq!(without_number_runs("405 404 403 402"), "", "downwards too");
    assert_eq!(without_number_runs("8080 8081 8082"), "8080 8081 8082", "three may mean something");
    assert_eq!(without_number_runs("1.2.3 0402 0403 0404 0405"), "1.2.3 0402 0403 0404 0405");
    assert_eq!(without_number_runs(""), "");
}
