//! What keys become.

use super::*;

#[test]
fn lines_stay_and_keys_that_are_no_text_go() {
    assert_eq!(readable(b"later words\n"), "later words");
    assert_eq!(readable(b"one\r\ntwo\rthree\n\n"), "one\ntwo\nthree");
    assert_eq!(readable(b"\x1b[A\x1b[Bup\x07\n"), "up");
    assert_eq!(readable(b""), "");
}
