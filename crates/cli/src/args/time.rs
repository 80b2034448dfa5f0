//! Times as people read and type them: `3 h ago`, `2026-11-15 09:30`, `7d`, `yesterday`.
//!
//! Nothing here reads the clock: the current time and the time zone are passed in.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use throughline_store::Millis;

const MINUTE_MS: Millis = 60_000;
const HOUR_MS: Millis = 60 * MINUTE_MS;
const DAY_MS: Millis = 24 * HOUR_MS;
/// The age in days from which a date is shown instead of a number of days.
const MAX_DAYS_AGO: Millis = 14;
/// The longest accepted duration, about three hundred years.
const MAX_BACK_DAYS: f64 = 110_000.0;

/// The current time with the time zone in which times are shown.
#[derive(Clone, Debug)]
pub(crate) struct Now {
    pub(crate) ms: Millis,
    pub(crate) zone: TimeZone,
}

impl Now {
    /// The age of a time in words; a date if it is long ago or in the future.
    pub(crate) fn ago(&self, then: Millis) -> String {
        let elapsed = self.ms.saturating_sub(then);
        match elapsed {
            ..0 => self.date(then),
            0..MINUTE_MS => "just now".to_owned(),
            MINUTE_MS..HOUR_MS => format!("{} min ago", elapsed / MINUTE_MS),
            HOUR_MS..DAY_MS => format!("{} h ago", elapsed / HOUR_MS),
            _ if elapsed < 2 * DAY_MS => "1 day ago".to_owned(),
            _ if elapsed < MAX_DAYS_AGO * DAY_MS => format!("{} days ago", elapsed / DAY_MS),
            _ => self.date(then),
        }
    }

    /// The local date.
    pub(crate) fn date(&self, then: Millis) -> String {
        self.local(then).strftime("%Y-%m-%d").to_string()
    }

    /// The local date with the time of day.
    pub(crate) fn date_time(&self, then: Millis) -> String {
        self.local(then).strftime("%Y-%m-%d %H:%M").to_string()
    }

    /// The current time in a form for file names.
    pub(crate) fn stamp(&self) -> String {
        self.local(self.ms).strftime("%Y%m%d_%H%M%S").to_string()
    }

    /// The local time of day with seconds.
    pub(crate) fn time_of_day(&self, then: Millis) -> String {
        self.local(then).strftime("%H:%M:%S").to_string()
    }

    /// The offset of the local time zone from UTC in minutes.
    pub(crate) fn offset_minutes(&self) -> i32 {
        self.zone.to_offset(timestamp(self.ms)).seconds() / 60
    }

    /// The local date `days` days before today.
    pub(crate) fn day_before(&self, days: u32) -> Date {
        self.today().saturating_sub(i64::from(days).days())
    }

    /// The first millisecond of a local day.
    pub(crate) fn start_of(&self, day: Date) -> Millis {
        self.moment(day.to_datetime(Time::midnight()))
    }

    fn today(&self) -> Date {
        self.local(self.ms).date()
    }

    fn local(&self, then: Millis) -> jiff::Zoned {
        timestamp(then).to_zoned(self.zone.clone())
    }

    fn moment(&self, local: DateTime) -> Millis {
        // A time that the clocks skip is shifted; of a time that occurs twice, the first counts.
        self.zone.to_timestamp(local).map_or(Millis::MAX, Timestamp::as_millisecond)
    }
}

fn timestamp(ms: Millis) -> Timestamp {
    Timestamp::from_millisecond(ms).unwrap_or(if ms < 0 { Timestamp::MIN } else { Timestamp::MAX })
}

/// A time as the user typed it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TimeArg {
    /// A duration before now.
    Ago {
        /// Milliseconds.
        ms: Millis,
    },
    /// The local day this many days before today.
    DaysBefore(u32),
    /// A local day.
    Day(Date),
    /// A local time of a day.
    Local(DateTime),
    /// A time in UTC, independent of the time zone.
    Exact(Timestamp),
}

impl TimeArg {
    /// The first millisecond of the time.
    pub(crate) fn start(self, now: &Now) -> Millis {
        match self {
            Self::Ago { ms } => now.ms.saturating_sub(ms),
            Self::DaysBefore(days) => now.start_of(now.day_before(days)),
            Self::Day(day) => now.start_of(day),
            Self::Local(time) => now.moment(time),
            Self::Exact(time) => time.as_millisecond(),
        }
    }

    /// The first millisecond after the time; for a day, after its end.
    pub(crate) fn end(self, now: &Now) -> Millis {
        match self {
            Self::DaysBefore(days) => now.start_of(now.day_before(days).saturating_add(1.day())),
            Self::Day(day) => now.start_of(day.saturating_add(1.day())),
            other => other.start(now),
        }
    }
}

/// Parses `7d`, `12h`, `30min`, `2w`, `today`, `yesterday`, a date, a date with a time, or an exact time.
pub(crate) fn parse_time(typed: &str) -> Result<TimeArg, String> {
    let text = typed.trim();
    let lower = text.to_ascii_lowercase();
    match lower.as_str() {
        "today" => return Ok(TimeArg::DaysBefore(0)),
        "yesterday" => return Ok(TimeArg::DaysBefore(1)),
        _ => {}
    }
    if let Some(ms) = duration_ms(&lower) {
        return Ok(TimeArg::Ago { ms });
    }
    // Dates are tried first, because the parser for date and time would accept them as midnight.
    let looks_like_date = text.len() == "2026-11-15".len();
    if looks_like_date && let Ok(day) = text.parse::<Date>() {
        return Ok(TimeArg::Day(day));
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(TimeArg::Exact(time));
    }
    if !looks_like_date && let Ok(time) = text.parse::<DateTime>() {
        return Ok(TimeArg::Local(time));
    }
    Err("expected a time such as 7d, 12h, 30min, 2w, today, yesterday, 2026-11-15 or 2026-11-15T09:30"
        .to_owned())
}

/// Parses a number with a unit.
pub(crate) fn duration_ms(text: &str) -> Option<Millis> {
    let digits_end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at_checked(digits_end)?;
    let unit_ms = match unit.trim() {
        "s" | "sec" | "second" | "seconds" => 1000,
        "m" | "min" | "minute" | "minutes" => MINUTE_MS,
        "h" | "hour" | "hours" => HOUR_MS,
        "d" | "day" | "days" => DAY_MS,
        "w" | "week" | "weeks" => 7 * DAY_MS,
        "y" | "year" | "years" => 365 * DAY_MS,
        _ => return None,
    };
    let ms = number.parse::<f64>().ok()? * unit_ms as f64;
    (ms <= MAX_BACK_DAYS * DAY_MS as f64).then_some(ms as Millis)
}

#[cfg(test)]
#[path = "time_tests.rs"]
mod tests;
