//! How long a provider asks clients to wait: from headers, figures in the body, or words such as `try again in 1m2.5s`.
//!
//! Not for: how long a call waits in the end, which the caller limits.

use std::time::Duration;

use crate::error_body::duration;

/// Returns a header of a response by its name, ignoring case.
pub(crate) fn header<'a>(headers: &[(&'a str, &'a str)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

/// Reads the headers of a response. A date is compared with the response's own `Date`, so no clock is needed.
pub(crate) fn from_headers(headers: &[(&str, &str)]) -> Option<Duration> {
    let millis = header(headers, "retry-after-ms").and_then(|value| value.parse::<f64>().ok());
    millis.and_then(|millis| duration(millis / 1e3)).or_else(|| {
        let value = header(headers, "retry-after")?;
        match value.parse::<f64>() {
            Ok(seconds) => duration(seconds),
            Err(_) => until(value, header(headers, "date")?),
        }
    })
}

/// Reads the headers that state when an exhausted budget is refilled; budgets with something left are ignored.
pub(crate) fn from_budgets(headers: &[(&str, &str)]) -> Option<Duration> {
    let exhausted = ["requests", "tokens"]
        .into_iter()
        .filter(|budget| header(headers, &format!("x-ratelimit-remaining-{budget}")) == Some("0"));
    exhausted.filter_map(|budget| span(header(headers, &format!("x-ratelimit-reset-{budget}"))?)).max()
}

fn until(date: &str, now: &str) -> Option<Duration> {
    let at = |text: &str| jiff::fmt::rfc2822::parse(text).ok().map(|zoned| zoned.timestamp().as_second());
    let wait = at(date)?.checked_sub(at(now)?)?;
    duration(wait.max(0) as f64)
}

/// Reads the text of an error.
pub(crate) fn from_words(words: &str) -> Option<Duration> {
    const LEADS: [&str; 8] = [
        "try again in ",
        "retry in ",
        "retry after ",
        "try again after ",
        "reset in ",
        "resets in ",
        "please wait ",
        "available in ",
    ];
    let lower = words.to_lowercase();
    LEADS.iter().find_map(|lead| {
        let at = lower.find(lead)? + lead.len();
        span(lower.get(at..)?.trim_start_matches(|c: char| c.is_whitespace() || c == '~'))
    })
}

/// Parses `1h2m3.5s`, `20ms`, `41.5s`, `30 seconds`, `2 minutes` at the beginning of a text. A number without a unit is ambiguous and not
/// accepted.
fn span(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = None;
    // Days, hours, minutes, seconds, milliseconds: at most one step per unit.
    for _ in 0..5 {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let Ok(number) = number.parse::<f64>() else { break };
        let after = after.trim_start_matches(' ');
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, next) = after.split_at(letters);
        let seconds = match unit {
            "ms" | "millisecond" | "milliseconds" => number / 1e3,
            "s" | "sec" | "secs" | "second" | "seconds" => number,
            "m" | "min" | "mins" | "minute" | "minutes" => number * 60.0,
            "h" | "hr" | "hrs" | "hour" | "hours" => number * 3_600.0,
            "d" | "day" | "days" => number * 86_400.0,
            _ => break,
        };
        total = Some(total.unwrap_or(0.0) + seconds);
        rest = next.trim_start_matches([' ', ',']);
        rest = rest.strip_prefix("and ").unwrap_or(rest);
    }
    total.and_then(duration)
}

#[cfg(test)]
#[path = "retry_after_tests.rs"]
mod tests;
