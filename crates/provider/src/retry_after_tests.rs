//! Tests of waits in texts and headers.

use std::time::Duration;

use super::{from_headers, from_words};

#[test]
fn waits_in_words() {
    for (words, millis) in [
        ("Please try again in 6m0s.", Some(360_000)),
        ("Please try again in 1.2s. Visit the site", Some(1_200)),
        ("try again in 20ms", Some(20)),
        ("Please retry in 41.5s.", Some(41_500)),
        ("Retry after 30 seconds", Some(30_000)),
        ("please wait 2 minutes and 5 seconds", Some(125_000)),
        ("try again in 1h2m3s", Some(3_723_000)),
        ("resets in 3 days", Some(259_200_000)),
        ("retry after 12345 limit", None),
        ("retry after 12345", None),
        ("try again in a while", None),
        ("try again in 999999999 days", None),
        ("", None),
    ] {
        assert_eq!(from_words(words), millis.map(Duration::from_millis), "{words}");
    }
}

#[test]
fn waits_in_headers() {
    assert_eq!(
        from_headers(&[("retry-after-ms", "1500"), ("retry-after", "9")]),
        Some(Duration::from_millis(1_500))
    );
    assert_eq!(from_headers(&[("RETRY-AFTER", " 9 ")]), Some(Duration::from_secs(9)));
    assert_eq!(from_headers(&[("retry-after", "0.5")]), Some(Duration::from_millis(500)));
    let date = "Sun, 15 Nov 2026 10:00:30 GMT";
    assert_eq!(from_headers(&[("retry-after", date)]), None, "without the answer's own date");
    let past = [("retry-after", date), ("date", "Sun, 15 Nov 2026 10:01:00 GMT")];
    assert_eq!(from_headers(&past), Some(Duration::ZERO));
    for bad in ["-1", "NaN", "inf", "soon", ""] {
        assert_eq!(from_headers(&[("retry-after", bad)]), None, "{bad}");
    }
}
