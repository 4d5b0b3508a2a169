//! Dates, in every form found in feeds.
//!
//! Two ways are tried: [`numeric`], for ISO 8601 and everything that is numbers only,
//! and [`worded`], for RFC 822 and whatever else names its months. Both hand what they
//! find to [`assemble`], so that 24:00, leap seconds and two-digit years mean the same
//! everywhere. What has no zone is taken for UTC.

mod months;
mod numeric;
mod worded;
mod zones;

use chrono::{DateTime, Days, FixedOffset, NaiveDate, NaiveTime, TimeDelta, TimeZone};

/// Two-digit years from here on belong to the last century (RFC 5322 `#section-4.3`).
const LAST_CENTURY_FROM: i32 = 50;

/// No date is longer, in bytes.
const LONGEST: usize = 128;

/// Reads a date.
pub(super) fn parse(text: &str) -> Option<DateTime<FixedOffset>> {
    let text = text.trim().trim_matches(['"', '\'', '\u{feff}']).trim();
    if text.is_empty() || text.len() > LONGEST {
        return None;
    }
    numeric::parse(text).or_else(|| worded::parse(text))
}

/// A time of day, as found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Clock {
    hour: u32,
    minute: u32,
    second: u32,
    nanos: u32,
}

/// Makes one date of its parts. `offset_s` is east of UTC.
fn assemble(date: NaiveDate, clock: Clock, offset_s: i32) -> Option<DateTime<FixedOffset>> {
    let Clock { hour, minute, second, nanos } = clock;
    if hour > 24 || minute > 59 || second > 61 {
        return None;
    }
    // "24:00" is the end of the day, which is the beginning of the next one.
    let (date, hour) =
        if hour == 24 { (date.checked_add_days(Days::new(1))?, 0) } else { (date, hour) };
    let leap = i64::from(second.saturating_sub(59));
    let time = NaiveTime::from_hms_nano_opt(hour, minute, second.min(59), nanos)?;
    let local = date.and_time(time).checked_add_signed(TimeDelta::seconds(leap))?;
    FixedOffset::east_opt(offset_s)?.from_local_datetime(&local).single()
}

/// The year that two digits mean; others mean themselves.
fn full_year(year: i32, digits: usize) -> i32 {
    match digits {
        1 | 2 if year < LAST_CENTURY_FROM => 2000 + year,
        1 | 2 => 1900 + year,
        // A year 2000 problem that was written as 1900 + 104 = "104".
        3 if (100..150).contains(&year) => 1900 + year,
        _ => year,
    }
}

/// A day, if there is one: days past the end of a month roll over into the next.
fn day(year: i32, month: u32, day: u32) -> Option<NaiveDate> {
    NaiveDate::from_ymd_opt(year, month, day).or_else(|| {
        let last = NaiveDate::from_ymd_opt(year, month, 28)?;
        (29..=31).contains(&day).then(|| last.checked_add_days(Days::new(u64::from(day) - 28)))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_found_in_feeds_is_read() {
        #[rustfmt::skip]
        let cases = [
            // RFC 822 and its abuses
            ("Sat, 07 Sep 2002 00:00:01 GMT",      "2002-09-07T00:00:01+00:00"),
            ("Sat, 7 Sep 2002 09:42:31 -0700",     "2002-09-07T09:42:31-07:00"),
            ("07 Sep 2002 09:42 EST",              "2002-09-07T09:42:00-05:00"),
            ("Thu, 01 Jan 04 19:48:21 GMT",        "2004-01-01T19:48:21+00:00"),
            ("Thu, 31 Dec 98 19:48:21 GMT",        "1998-12-31T19:48:21+00:00"),
            ("Thursday, 01 January 2004 19:48:21 UTC", "2004-01-01T19:48:21+00:00"),
            ("Thu,01 Jan 2004 19:48:21 +01:00",    "2004-01-01T19:48:21+01:00"),
            ("Thu, Jan 1 2004 19:48:21 GMT",       "2004-01-01T19:48:21+00:00"),
            ("Thu, 01 Jan 2004 00:00:00 GMT+1",    "2004-01-01T00:00:00+01:00"),
            ("Thu, 01 Jan 2004",                   "2004-01-01T00:00:00+00:00"),
            ("January 5, 2004 8:30 pm PST",        "2004-01-05T20:30:00-08:00"),
            ("Thu, 01 Jan 2004 24:00:00 GMT",      "2004-01-02T00:00:00+00:00"),
            ("Sat, 31 Dec 2016 23:59:60 GMT",      "2017-01-01T00:00:00+00:00"),
            ("Wed, 31 Jun 2004 00:00:00 GMT",      "2004-07-01T00:00:00+00:00"),
            ("Sat, 01-Jan-2004 10:00:00 GMT",      "2004-01-01T10:00:00+00:00"),
            ("Fri, 2006/09/15 08:19:53 EDT",       "2006-09-15T08:19:53-04:00"),
            ("Sept. 15, 2006",                     "2006-09-15T00:00:00+00:00"),
            ("1st of March 2010",                  "2010-03-01T00:00:00+00:00"),
            // W3CDTF, whole and partial
            ("2003-12-31T10:14:55Z",               "2003-12-31T10:14:55+00:00"),
            ("2003-12-31T10:14:55.25-08:00",       "2003-12-31T10:14:55.250-08:00"),
            ("2003-12-31 10:14:55",                "2003-12-31T10:14:55+00:00"),
            ("2003-12-31T10:14 +0200",             "2003-12-31T10:14:00+02:00"),
            ("2003-12-31T10:14:55 EST",            "2003-12-31T10:14:55-05:00"),
            ("20031231T101455Z",                   "2003-12-31T10:14:55+00:00"),
            ("20031231",                           "2003-12-31T00:00:00+00:00"),
            ("2003-12",                            "2003-12-01T00:00:00+00:00"),
            ("2003",                               "2003-01-01T00:00:00+00:00"),
            ("03-12-31",                           "2003-12-31T00:00:00+00:00"),
            ("2003-335",                           "2003-12-01T00:00:00+00:00"),
            ("2003335",                            "2003-12-01T00:00:00+00:00"),
            ("2004-W53-5",                         "2004-12-31T00:00:00+00:00"),
            ("2004W535T10:00Z",                    "2004-12-31T10:00:00+00:00"),
            ("2003-12-31T24:00:00Z",               "2004-01-01T00:00:00+00:00"),
            ("2003-12-31T10:14:55z",               "2003-12-31T10:14:55+00:00"),
            ("2004-07-08 23:56:58.0",              "2004-07-08T23:56:58+00:00"),
            // other orders and languages
            ("Sun Jan  4 16:29:06 PST 2004",       "2004-01-04T16:29:06-08:00"),
            ("Sun Jan  4 16:29:06 2004",           "2004-01-04T16:29:06+00:00"),
            ("2004년 05월 28일 01:31:15",           "2004-05-28T01:31:15+09:00"),
            ("2004-05-25 오후 11:23:17",            "2004-05-25T23:23:17+09:00"),
            ("2004年05月28日 01:31",                "2004-05-28T01:31:00+00:00"),
            ("Κυρ, 11 Ιούλ 2004 12:00:00 EST",     "2004-07-11T12:00:00-05:00"),
            ("2004-július-13T9:15-05:00",          "2004-07-13T09:15:00-05:00"),
            ("ons, 05 maj 2010 12:00:00 +0200",    "2010-05-05T12:00:00+02:00"),
            ("mar., 3 févr. 2009 10:00:00 CET",    "2009-02-03T10:00:00+01:00"),
            ("Mi, 10 Okt 2012 08:00:00 +0200",     "2012-10-10T08:00:00+02:00"),
            ("пт, 12 мая 2006 10:00:00 +0400",     "2006-05-12T10:00:00+04:00"),
            ("lun, 2 dic 2013 10:00:00 +0100",     "2013-12-02T10:00:00+01:00"),
            ("28.05.2004 10:30",                   "2004-05-28T10:30:00+00:00"),
            ("05/28/2004 10:30:00 AM",             "2004-05-28T10:30:00+00:00"),
            // numbers of seconds and milliseconds
            ("1099008000",                         "2004-10-29T00:00:00+00:00"),
            ("1099008000123",                      "2004-10-29T00:00:00.123+00:00"),
        ];
        for (text, want) in cases {
            let found = parse(text).map(|date| date.to_rfc3339());
            assert_eq!(found.as_deref(), Some(want), "{text}");
        }
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "yesterday",
            "soon",
            "99/99/9999",
            "Sat, 99 Foo 2002",
            "::",
            "--",
            "2004-13-45",
            "12",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
