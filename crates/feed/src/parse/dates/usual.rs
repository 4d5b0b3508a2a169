//! The two forms of nearly all dates: those of RFC 3339 and of RFC 822 with four digits of the year.
//!
//! They are read by position, which takes a tenth of the time of the [`reader`](super::reader). All
//! others, including those with an unusual part, are left to it; both read these forms alike.

use chrono::{DateTime, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime, TimeZone};

const WEEKDAYS: [&[u8; 5]; 7] =
    [b"Mon, ", b"Tue, ", b"Wed, ", b"Thu, ", b"Fri, ", b"Sat, ", b"Sun, "];

const MONTHS: [&[u8; 5]; 12] = [
    b" Jan ", b" Feb ", b" Mar ", b" Apr ", b" May ", b" Jun ", b" Jul ", b" Aug ", b" Sep ",
    b" Oct ", b" Nov ", b" Dec ",
];

/// Reads a date in one of the two forms.
pub(super) fn read(text: &str) -> Option<DateTime<FixedOffset>> {
    let text = text.as_bytes();
    let (local, zone_s) = match text.first()? {
        b'0'..=b'9' => rfc3339(text),
        _ => rfc822(text),
    }?;
    FixedOffset::east_opt(zone_s)?.from_local_datetime(&local).single()
}

/// `2002-09-07T02:00:01+02:00` or `2002-09-07T00:00:01Z`.
fn rfc3339(text: &[u8]) -> Option<(NaiveDateTime, i32)> {
    let (date, rest) = text.split_first_chunk::<11>()?;
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2, b'T'] = *date else { return None };
    let day = day(&[y1, y2, y3, y4], number(&[m1, m2])?, number(&[d1, d2])?)?;
    let (time, zone) = time(rest)?;
    let zone_s = match *zone {
        [b'Z'] => 0,
        [sign, h1, h2, b':', m1, m2] => offset(sign, [h1, h2], [m1, m2])?,
        _ => return None,
    };
    Some((day.and_time(time), zone_s))
}

/// `Sat, 07 Sep 2002 00:00:01 GMT` or `Sat, 7 Sep 2002 02:00:01 +0200`.
fn rfc822(text: &[u8]) -> Option<(NaiveDateTime, i32)> {
    let (weekday, rest) = text.split_first_chunk::<5>()?;
    WEEKDAYS.contains(&weekday).then_some(())?;
    let digits = if *rest.get(1)? == b' ' { 1 } else { 2 };
    let (day_of_month, rest) = rest.split_at_checked(digits)?;
    let (name, rest) = rest.split_first_chunk::<5>()?;
    let month = MONTHS.iter().position(|held| *held == name)?;
    let (year, rest) = rest.split_first_chunk::<4>()?;
    let day = day(year, u32::try_from(month).ok()? + 1, number(day_of_month)?)?;
    let (time, zone) = time(rest.strip_prefix(b" ")?)?;
    let zone_s = match *zone {
        [b' ', b'G', b'M', b'T'] => 0,
        [b' ', sign, h1, h2, m1, m2] => offset(sign, [h1, h2], [m1, m2])?,
        _ => return None,
    };
    Some((day.and_time(time), zone_s))
}

fn day(year: &[u8; 4], month: u32, day: u32) -> Option<NaiveDate> {
    // In the first and the last year, the offset may lead out of the years that can be written.
    let year = i32::try_from(number(year)?).ok().filter(|year| (2..=9998).contains(year))?;
    NaiveDate::from_ymd_opt(year, month, day)
}

/// Reads `hh:mm:ss`. Returns the rest as well.
fn time(text: &[u8]) -> Option<(NaiveTime, &[u8])> {
    let (time, rest) = text.split_first_chunk::<8>()?;
    let [h1, h2, b':', m1, m2, b':', s1, s2] = *time else { return None };
    let (hour, minute, second) = (number(&[h1, h2])?, number(&[m1, m2])?, number(&[s1, s2])?);
    Some((NaiveTime::from_hms_opt(hour, minute, second)?, rest))
}

/// Reads an offset of at most half a day, in seconds.
fn offset(sign: u8, hours: [u8; 2], minutes: [u8; 2]) -> Option<i32> {
    let (hours, minutes) = (number(&hours)?, number(&minutes)?);
    let seconds = i32::try_from(hours * 3_600 + minutes * 60).ok()?;
    (hours <= 12 && minutes < 60).then_some(())?;
    match sign {
        b'+' => Some(seconds),
        b'-' => Some(-seconds),
        _ => None,
    }
}

/// Reads a number of at most four digits.
fn number(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |number, digit| {
        digit.is_ascii_digit().then(|| number * 10 + u32::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::reader;
    use super::*;

    proptest! {
        #[test]
        fn usual_dates_are_read_as_by_the_reader(
            seconds in -62_000_000_000_i64..253_000_000_000,
            zone_min in -779_i32..780,
            form in 0..5_usize,
        ) {
            let zone = FixedOffset::east_opt(zone_min * 60).unwrap();
            let date = DateTime::from_timestamp(seconds, 0).unwrap().with_timezone(&zone);
            let form = [
                "%Y-%m-%dT%H:%M:%S%:z",
                "%Y-%m-%dT%H:%M:%SZ",
                "%a, %d %b %Y %H:%M:%S %z",
                "%a, %-d %b %Y %H:%M:%S %z",
                "%a, %d %b %Y %H:%M:%S GMT",
            ][form];
            let text = date.format(form).to_string();
            let found = read(&text);
            prop_assert!(found.is_some(), "{}", text);
            prop_assert_eq!(found, reader::read(&text).and_then(|parts| parts.instant()), "{}", text);
        }
    }

    #[test]
    fn whatever_is_unusual_is_left_to_the_reader() {
        let texts = [
            "",
            "2002-09-07",
            "2002-09-07T24:00:00Z",
            "2002-09-07T00:00:60Z",
            "2002-06-31T00:00:01Z",
            "2002-09-07T00:00:01",
            "2002-09-07T00:00:01.5Z",
            "2002-09-07T00:00:01+14:00",
            "0001-01-01T00:00:00Z",
            "Sat, 07 Sep 02 00:00:01 GMT",
            "Sat, 07 Sep 2002 00:00:01 EST",
            "Sat, 07 Sep 2002 00:00:01",
            "Sam, 07 Sep 2002 00:00:01 GMT",
            "Sat, 07 Sep 2002 00:00 GMT",
            "Sat, 7",
        ];
        for text in texts {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
