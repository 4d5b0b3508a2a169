//! The parts of a date, and their assembly into an instant.
//!
//! Impossible dates are rejected here: the readers take numbers as they are, and
//! [`DateParts::instant`] returns `None` for a day, an hour or a year that does not exist. Three
//! forms beyond the calendar and the clock are accepted: 31 June becomes 1 July (written by
//! programs built on C's `mktime`), 24:00 becomes midnight of the next day (ISO 8601), and a leap
//! second becomes the second after it, which every reader can represent.

use chrono::DateTime;
use chrono::Datelike;
use chrono::Days;
use chrono::FixedOffset;
use chrono::NaiveDate;
use chrono::NaiveDateTime;
use chrono::TimeDelta;
use chrono::TimeZone;
use chrono::Weekday;

use super::clock::Time;
use super::numeric::Day;

/// The parts of a date found so far.
#[derive(Clone, Debug, Default)]
pub(super) struct DateParts {
    /// The year with all four digits.
    pub(super) year: Option<u32>,
    /// The month, 1 to 12 in a valid date.
    pub(super) month: Option<u32>,
    /// Whether `month` was the first word of the text. It may then be a weekday of the same name
    /// ("mar." is March and Tuesday), and is replaced by a second month.
    pub(super) month_may_be_weekday: bool,
    /// The day of the month.
    pub(super) day: Option<u32>,
    /// A day written in numbers only.
    pub(super) whole: Option<Day>,
    /// The time of day.
    pub(super) time: Option<Time>,
    /// AM or PM, if given.
    pub(super) half: Option<Half>,
    /// The offset from UTC in seconds, with the reliability of its source.
    pub(super) zone: Option<(Surety, i32)>,
}

/// Half of a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    /// Midnight to noon.
    Morning,
    /// Noon to midnight.
    Afternoon,
}

/// The source of an offset, in ascending order of reliability. An offset from a more reliable
/// source replaces one from a less reliable source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Surety {
    /// The language that the date is written in.
    Language,
    /// The name of a zone in a comment.
    Comment,
    /// The name of a zone.
    Name,
    /// An offset in numbers.
    Figures,
}

impl DateParts {
    /// Returns whether no part of a date has been found yet.
    pub(super) fn is_empty(&self) -> bool {
        self.has_no_day() && self.month.is_none() && self.time.is_none()
    }

    /// Returns whether neither year nor day is known, so that a date in numbers may follow.
    pub(super) fn has_no_day(&self) -> bool {
        self.year.is_none() && self.day.is_none() && self.whole.is_none()
    }

    /// Returns whether the day is known.
    pub(super) fn has_day(&self) -> bool {
        self.whole.is_some() || (self.year.is_some() && self.month.is_some() && self.day.is_some())
    }

    /// Sets a date in numbers. A month found before it was a weekday.
    pub(super) fn set_day(&mut self, day: Day) {
        if let Day::Calendar(year, month, day) = day {
            (self.year, self.month, self.day) = (Some(year), Some(month), Some(day));
        } else {
            self.whole = Some(day);
        }
    }

    /// Sets the time. Returns `None` if there is one already, except for midnight: programs that
    /// print a date column and a time column, each with both, write midnight before the time.
    pub(super) fn set_time(&mut self, time: Time) -> Option<()> {
        if self.time.is_some_and(|time| time != Time::default()) {
            return None;
        }
        self.time = Some(time);
        Some(())
    }

    /// Sets the offset, unless one from a more reliable source is known.
    pub(super) fn set_zone(&mut self, surety: Surety, ahead_s: i32) {
        if self.zone.is_none_or(|(known, _)| known < surety) {
            self.zone = Some((surety, ahead_s));
        }
    }

    /// Assembles the instant, with the offset given in the text, or UTC.
    ///
    /// The year is 1 to 9999, both in that offset and in UTC, so that RFC 3339 can represent it.
    pub(super) fn instant(&self) -> Option<DateTime<FixedOffset>> {
        let local = self.local()?;
        let zone = FixedOffset::east_opt(self.zone.map_or(0, |(_, ahead_s)| ahead_s))?;
        let instant = zone.from_local_datetime(&local).single()?;
        let sayable = |year| (1..=9999).contains(&year);
        (sayable(local.year()) && sayable(instant.naive_utc().year())).then_some(instant)
    }

    fn local(&self) -> Option<NaiveDateTime> {
        let day = self.calendar_day()?;
        let time = self.time.unwrap_or_default();
        if time.hour == 24 {
            let midnight = time == Time { hour: 24, ..Time::default() };
            return midnight.then(|| day.checked_add_days(Days::new(1)))??.and_hms_opt(0, 0, 0);
        }
        let hour = match self.half {
            Some(Half::Afternoon) if time.hour < 12 => time.hour + 12,
            Some(Half::Morning) if time.hour == 12 => 0,
            _ => time.hour,
        };
        if time.second == 60 {
            let before = day.and_hms_opt(hour, time.minute, 59)?;
            return before.checked_add_signed(TimeDelta::seconds(1));
        }
        day.and_hms_nano_opt(hour, time.minute, time.second, time.nanos)
    }

    fn calendar_day(&self) -> Option<NaiveDate> {
        match self.whole {
            Some(Day::Ordinal(year, day)) => return NaiveDate::from_yo_opt(signed(year)?, day),
            Some(Day::Week(year, week, day)) => {
                let day = u8::try_from(day.checked_sub(1)?).ok()?;
                let day = Weekday::try_from(day).ok()?;
                return NaiveDate::from_isoywd_opt(signed(year)?, week, day);
            }
            Some(Day::Calendar(..)) | None => {}
        }
        let (month, day) = match (self.month, self.day) {
            (Some(month), day) => (month, day.unwrap_or(1)),
            (None, None) if self.time.is_none() => (1, 1),
            (None, _) => return None,
        };
        let first = NaiveDate::from_ymd_opt(signed(self.year?)?, month, 1)?;
        (1..=31).contains(&day).then(|| first.checked_add_days(Days::new(u64::from(day) - 1)))?
    }
}

fn signed(year: u32) -> Option<i32> {
    i32::try_from(year).ok().filter(|year| (1..=9999).contains(year))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(day: Day, hour: u32, minute: u32, second: u32) -> DateParts {
        let mut parts = DateParts {
            time: Some(Time { hour, minute, second, nanos: 0 }),
            ..DateParts::default()
        };
        parts.set_day(day);
        parts
    }

    #[test]
    fn what_the_calendar_and_the_clock_lack_is_refused_or_mended() {
        use Day::{Calendar, Ordinal, Week};
        #[rustfmt::skip]
        let cases = [
            (parts(Calendar(2004, 2, 29), 0, 0, 0),     Some("2004-02-29T00:00:00+00:00"), "a leap year"),
            (parts(Calendar(2003, 2, 29), 0, 0, 0),     Some("2003-03-01T00:00:00+00:00"), "not a leap year"),
            (parts(Calendar(2004, 1, 0), 0, 0, 0),      None,                              "day 0"),
            (parts(Calendar(2004, 13, 1), 0, 0, 0),     None,                              "month 13"),
            (parts(Calendar(0, 1, 1), 0, 0, 0),         None,                              "there is no year 0"),
            (parts(Calendar(2004, 12, 31), 24, 0, 0),   Some("2005-01-01T00:00:00+00:00"), "the end of the day"),
            (parts(Calendar(2004, 12, 31), 24, 0, 1),   None,                              "past the end of the day"),
            (parts(Calendar(2004, 12, 31), 25, 0, 0),   None,                              "hour 25"),
            (parts(Calendar(2004, 12, 31), 23, 60, 0),  None,                              "minute 60"),
            (parts(Calendar(2004, 12, 31), 23, 59, 61), None,                              "second 61"),
            (parts(Calendar(2005, 12, 31), 23, 59, 60), Some("2006-01-01T00:00:00+00:00"), "a leap second"),
            (parts(Calendar(9999, 12, 31), 24, 0, 0),   None,                              "year 10000"),
            (parts(Ordinal(2004, 366), 0, 0, 0),        Some("2004-12-31T00:00:00+00:00"), "the last day"),
            (parts(Ordinal(2003, 366), 0, 0, 0),        None,                              "a day too many"),
            (parts(Week(2004, 53, 7), 0, 0, 0),         Some("2005-01-02T00:00:00+00:00"), "in the next year"),
            (parts(Week(2003, 53, 1), 0, 0, 0),         None,                              "a week too many"),
            (parts(Week(2003, 1, 0), 0, 0, 0),          None,                              "weekdays begin at 1"),
            (parts(Week(2003, 1, 300), 0, 0, 0),        None,                              "weekdays end at 7"),
        ];
        for (parts, want, reason) in cases {
            let got = parts.instant().map(|instant| instant.to_rfc3339());
            assert_eq!(got.as_deref(), want, "{reason}: {parts:?}");
        }
    }

    #[test]
    fn an_instant_outside_the_years_of_rfc_3339_is_refused() {
        let mut last = parts(Day::Calendar(9999, 12, 31), 23, 59, 59);
        assert!(last.instant().is_some());
        last.set_zone(Surety::Figures, -3600);
        assert_eq!(last.instant(), None);
    }

    #[test]
    fn the_surer_zone_stays() {
        let mut parts = DateParts::default();
        for (surety, ahead_s, want) in [
            (Surety::Language, 1, 1),
            (Surety::Name, 2, 2),
            (Surety::Comment, 3, 2),
            (Surety::Figures, 4, 4),
            (Surety::Figures, 5, 4),
        ] {
            parts.set_zone(surety, ahead_s);
            assert_eq!(parts.zone.map(|(_, ahead_s)| ahead_s), Some(want));
        }
    }
}
