//! Parts of the report.

use super::*;

#[test]
fn a_strip_is_to_scale_and_loses_nothing() {
    let plain = |parts: &[(u64, char)], scale, cells| {
        anstream::adapter::strip_str(&strip(parts, scale, cells)).to_string()
    };
    assert_eq!(plain(&[(10, 'h'), (70, 'm'), (20, 't')], 100, 10), "hmmmmmmmtt");
    assert_eq!(plain(&[(1, 'h'), (0, 's'), (99, 't')], 100, 10), "httttttttt");
}

#[test]
fn durations_are_in_units_people_read() {
    assert_eq!(duration(999), "999\u{a0}µs");
    assert_eq!(duration(1_250), "1.2\u{a0}ms");
    assert_eq!(duration(2_500_000), "2.50\u{a0}s");
}

#[test]
fn ranges_name_their_last_message() {
    let stretch = |start, end| Stretch { start, end, messages: end - start, tokens: 0 };
    assert_eq!(span_words(&stretch(3, 3)), "-");
    assert_eq!(span_words(&stretch(3, 4)), "3");
    assert_eq!(span_words(&stretch(3, 9)), "3-8");
}
