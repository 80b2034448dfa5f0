//! Times as people read and type them.

use super::*;

/// Sunday, 15 November 2026, 12:00 UTC, in a time zone two hours ahead.
fn now() -> Now {
    let zone = TimeZone::fixed(jiff::tz::offset(2));
    Now { ms: "2026-11-15T12:00:00Z".parse::<Timestamp>().unwrap().as_millisecond(), zone }
}

fn ms(text: &str) -> Millis {
    text.parse::<Timestamp>().unwrap().as_millisecond()
}

#[test]
fn recent_times_are_shown_as_an_age() {
    let now = now();
    for (then, words) in [
        ("2026-11-15T12:00:00Z", "just now"),
        ("2026-11-15T11:59:01Z", "just now"),
        ("2026-11-15T11:59:00Z", "1 min ago"),
        ("2026-11-15T11:00:01Z", "59 min ago"),
        ("2026-11-15T09:00:00Z", "3 h ago"),
        ("2026-11-14T12:00:00Z", "1 day ago"),
        ("2026-11-13T11:00:00Z", "2 days ago"),
        ("2026-11-01T12:00:01Z", "13 days ago"),
        ("2026-11-01T12:00:00Z", "2026-11-01"),
        ("2026-11-16T12:00:00Z", "2026-11-16"),
    ] {
        assert_eq!(now.ago(ms(then)), words, "{then}");
    }
}

#[test]
fn dates_are_local() {
    assert_eq!(now().date_time(ms("2026-11-15T23:30:00Z")), "2026-11-16 01:30");
    assert_eq!(now().date(ms("2026-11-15T23:30:00Z")), "2026-11-16");
    assert_eq!(now().time_of_day(ms("2026-11-15T23:30:05Z")), "01:30:05");
    assert_eq!(now().stamp(), "20261115_140000");
    assert_eq!(now().offset_minutes(), 120);
    assert_eq!(now().day_before(15).to_string(), "2026-10-31");
}

#[test]
fn times_that_no_calendar_knows_do_no_harm() {
    for extreme in [Millis::MIN, Millis::MAX] {
        assert!(!now().date_time(extreme).is_empty());
        assert!(!now().ago(extreme).is_empty());
    }
}

#[test]
fn times_are_read_as_people_type_them() {
    let now = now();
    let start = |typed: &str| parse_time(typed).unwrap().start(&now);
    assert_eq!(start("7d"), ms("2026-11-08T12:00:00Z"));
    assert_eq!(start("12h"), ms("2026-11-15T00:00:00Z"));
    assert_eq!(start("30min"), ms("2026-11-15T11:30:00Z"));
    assert_eq!(start("2 weeks"), ms("2026-11-01T12:00:00Z"));
    assert_eq!(start("1.5d"), ms("2026-11-14T00:00:00Z"));
    assert_eq!(start("today"), ms("2026-11-14T22:00:00Z"));
    assert_eq!(start("Yesterday"), ms("2026-11-13T22:00:00Z"));
    assert_eq!(start("2026-11-01"), ms("2026-10-31T22:00:00Z"));
    assert_eq!(start("2026-11-01T09:30"), ms("2026-11-01T07:30:00Z"));
    assert_eq!(start("2026-11-01 09:30"), ms("2026-11-01T07:30:00Z"));
    assert_eq!(start("2026-11-01T09:30:00Z"), ms("2026-11-01T09:30:00Z"));
    assert_eq!(start("2026-11-01T09:30:00+05:00"), ms("2026-11-01T04:30:00Z"));
}

#[test]
fn a_day_counts_to_its_end() {
    let now = now();
    let end = |typed: &str| parse_time(typed).unwrap().end(&now);
    assert_eq!(end("2026-11-01"), ms("2026-11-01T22:00:00Z"));
    assert_eq!(end("yesterday"), ms("2026-11-14T22:00:00Z"));
    assert_eq!(end("2026-11-01T09:30"), ms("2026-11-01T07:30:00Z"));
    assert_eq!(end("1h"), ms("2026-11-15T11:00:00Z"));
}

#[test]
fn text_that_is_not_a_time_is_refused() {
    for wrong in [
        "",
        "7",
        "d",
        "-7d",
        "7 moons",
        "2026-13-01",
        "2026-02-30",
        "15.11.2026",
        "tomorrow",
        "1e9d",
        "999999999999d",
        "nan d",
        "1.2.3d",
        "2026-11-1",
        "٧d",
        "7d 2h",
    ] {
        assert!(parse_time(wrong).is_err(), "{wrong} should be refused");
    }
}
