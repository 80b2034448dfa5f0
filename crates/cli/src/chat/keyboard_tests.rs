//! What keys become.

use super::*;

#[test]
fn lines_stay_and_keys_that_are_no_text_go() {
    assert_eq!(readable(b"later words\n"), "later words");
    assert_eq!(readable(b"one\r\ntwo\rthree\n\n"), "one\ntwo\nthree");
    assert_eq!(readable(b"\x1b[A\x1b[Bup\x07\n"), "up");
    assert_eq!(readable(b"\x1b[200~pasted\x1b[201~\r"), "pasted");
    assert_eq!(readable(b""), "");
}

#[test]
fn every_ctrl_c_counts_and_is_no_text() {
    let (sender, mut interrupts) = tokio::sync::mpsc::unbounded_channel();
    let keyboard = Keyboard::new(sender);
    keyboard.take_in(b"one\x03\x03two");
    assert_eq!(readable(&keyboard.typed()), "onetwo");
    assert_eq!(interrupts.try_recv(), Ok(2), "together, so that nothing comes between them");
}

#[test]
fn keys_that_take_back_take_back() {
    assert_eq!(readable(b"teh\x7f\x7fhe\n"), "the");
    assert_eq!(readable("gr\u{fc}\u{7f}\u{fc}n".as_bytes()), "gr\u{fc}n");
    assert_eq!(readable(b"one two  \x17three"), "one three");
    assert_eq!(readable(b"first\nwrong\x15right"), "first\nright");
    assert_eq!(readable(b"\x7f\x7fa"), "a");
}
