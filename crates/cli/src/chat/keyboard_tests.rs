//! Conversion of keys to lines and text.

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
    let keyboard = Keyboard::new(sender, Arc::new(|_| {}));
    keyboard.take_in(b"one\x03\x03two");
    assert_eq!(readable(&keyboard.typed().bytes), "onetwo");
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

/// A keyboard without a reader, and the lines it queues.
fn keyboard() -> (Keyboard, Arc<Mutex<Vec<String>>>) {
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let lines = Arc::clone(&told);
    let (sender, _) = tokio::sync::mpsc::unbounded_channel();
    (Keyboard::new(sender, Arc::new(move |line| lines.lock().unwrap().push(line.to_owned()))), told)
}

fn queue(keyboard: &Keyboard) -> Vec<String> {
    keyboard.typed().queue.iter().cloned().collect()
}

#[test]
fn enter_queues_a_line_and_what_follows_is_not_glued_to_it() {
    let (keyboard, told) = keyboard();
    keyboard.take_in(b"msg 2\r/compress --preview\rand a half");
    assert_eq!(queue(&keyboard), ["msg 2", "/compress --preview"]);
    assert_eq!(*told.lock().unwrap(), ["msg 2", "/compress --preview"]);
    assert_eq!(readable(&keyboard.typed().bytes), "and a half");
    keyboard.take_in(b"\r\r  \r");
    assert_eq!(queue(&keyboard), ["msg 2", "/compress --preview", "and a half"], "empty lines are none");
}

#[test]
fn a_text_that_is_pasted_is_one_line_however_many_it_has() {
    let (keyboard, _) = keyboard();
    keyboard.take_in(b"see: \x1b[200~one\rtwo\r");
    keyboard.take_in(b"three\x1b[201~ end");
    assert_eq!(queue(&keyboard), Vec::<String>::new());
    keyboard.take_in(b"\rnext\r");
    assert_eq!(queue(&keyboard), ["see: one\ntwo\nthree end", "next"]);
}

#[test]
fn queued_lines_return_before_the_text_typed_last() {
    let (keyboard, _) = keyboard();
    keyboard.take_in(b"y\rgo on\rlast words");
    let answers = |line: &str| line == "y";
    assert_eq!(keyboard.take_back_if(answers), 1);
    assert_eq!(queue(&keyboard), ["go on"]);
    assert_eq!(keyboard.take_back(), 1);
    assert_eq!(keyboard.take(), "y\ngo on\nlast words");
    assert_eq!(keyboard.take(), "");
}

#[test]
fn a_queue_is_bounded() {
    let (keyboard, _) = keyboard();
    keyboard.take_in("line\r".repeat(MOST_QUEUED + 5).as_bytes());
    assert_eq!(queue(&keyboard).len(), MOST_QUEUED);
}
