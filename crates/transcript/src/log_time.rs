//! Times in logs (`2026-02-07T00:14:01.780Z`), in milliseconds since 1970.

/// Parses a time in RFC 3339: any number of digits after the second, `Z` or an offset. `None` for anything else.
#[must_use]
pub fn parse_rfc3339_millis(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let number = |from: usize, digits: usize| -> Option<i64> {
        let digits = bytes.get(from..from + digits)?;
        digits.iter().try_fold(0i64, |sum, b| b.is_ascii_digit().then(|| sum * 10 + i64::from(b - b'0')))
    };
    let separated = |at: usize, by: &[u8]| bytes.get(at).is_some_and(|b| by.contains(b));
    let is_shaped = separated(4, b"-")
        && separated(7, b"-")
        && separated(10, b"Tt ")
        && separated(13, b":")
        && separated(16, b":");
    if !is_shaped {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 2)?, number(8, 2)?);
    let (hour, minute, second) = (number(11, 2)?, number(14, 2)?, number(17, 2)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let fraction = text.get(19..)?;
    let (fraction, zone) = match fraction.strip_prefix('.') {
        Some(rest) => rest.split_at(rest.bytes().take_while(u8::is_ascii_digit).count()),
        None => ("", fraction),
    };
    let millis = fraction.bytes().chain(*b"000").take(3).fold(0, |sum, b| sum * 10 + i64::from(b - b'0'));
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    Some((seconds - offset_seconds(zone)?) * 1_000 + millis)
}

fn offset_seconds(zone: &str) -> Option<i64> {
    let sign = match zone.as_bytes().first() {
        Some(b'Z' | b'z') if zone.len() == 1 => return Some(0),
        Some(b'+') => 1,
        Some(b'-') => -1,
        _ => return None,
    };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let part = |text: &str| -> Option<i64> {
        (text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
    };
    Some(sign * (part(hours)? * 3_600 + part(minutes)? * 60))
}

/// Returns the days from 1970 to a Gregorian date. The year starts in March here, so that the leap day is its last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
#[path = "log_time_tests.rs"]
mod tests;
