use proptest::prelude::*;

use super::*;

proptest! {
    /// However a stream is split, all of it is forwarded, and each time up to the end of an event.
    #[test]
    fn all_is_passed_on_in_whole_events(
        events in prop::collection::vec("(event: [a-z]{1,4}\n)?data: [a-z ]{0,12}(\n\n|\r\n\r\n|\r\r)", 0..12),
        tail in "[a-z]{0,5}",
        cuts in prop::collection::vec(1..9_usize, 1..200),
    ) {
        let stream = format!("{}{tail}", events.concat()).into_bytes();
        let (mut whole, mut passed, mut at) = (WholeEvents::default(), Vec::new(), 0);
        for cut in cuts.iter().cycle() {
            if at >= stream.len() {
                break;
            }
            let end = (at + cut).min(stream.len());
            let out = whole.take(Bytes::copy_from_slice(&stream[at..end]));
            prop_assert!(out.is_empty() || out.ends_with(b"\n\n") || out.ends_with(b"\n\r\n") || out.ends_with(b"\r\r"));
            passed.extend_from_slice(&out);
            at = end;
        }
        passed.extend_from_slice(&whole.take_rest());
        prop_assert_eq!(passed, stream);
    }
}

#[test]
fn what_ends_with_an_event_is_not_copied() {
    let bytes = Bytes::from_static(b"data: one\n\n");
    let passed = WholeEvents::default().take(bytes.clone());
    assert_eq!(passed.as_ptr(), bytes.as_ptr());
    assert_eq!(passed, bytes);
}

#[test]
fn what_is_too_long_for_an_event_is_passed_on_all_the_same() {
    let mut whole = WholeEvents::default();
    let long = Bytes::from(vec![b'x'; MOST_HELD_BYTES + 1]);
    assert_eq!(whole.take(long.clone()), long);
    assert!(whole.take(Bytes::from_static(b"y")).is_empty());
}
