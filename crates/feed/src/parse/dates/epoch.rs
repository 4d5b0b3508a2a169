//! Dates as a count from 1970: seconds, milliseconds, microseconds or nanoseconds, distinguished by
//! the number of digits.
//!
//! Nine or ten digits are seconds (1973 to 2286). Twelve digits that begin with a year are
//! `YYYYMMDDHHMM` and are left to the other readers, as are eight, eleven and fourteen digits.

use chrono::DateTime;
use chrono::FixedOffset;
use chrono::Utc;

/// Parses a text that is a count from 1970. Seconds may have a fraction.
pub(super) fn read(text: &str) -> Option<DateTime<FixedOffset>> {
    if let Some(inside) = text.strip_prefix("/Date(").and_then(|text| text.strip_suffix(")/")) {
        return read_dot_net(inside);
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let count: i64 = whole.parse().ok()?;
    let instant: DateTime<Utc> = match whole.len() {
        9 | 10 => DateTime::from_timestamp(count, nanos(fraction))?,
        12 if whole.starts_with("19") || whole.starts_with("20") => return None,
        12 | 13 => DateTime::from_timestamp_millis(count)?,
        16 => DateTime::from_timestamp_micros(count)?,
        19 => DateTime::from_timestamp_nanos(count),
        _ => return None,
    };
    Some(instant.fixed_offset())
}

/// Parses the inside of a date that .NET writes in JSON: milliseconds, and perhaps the offset of a zone,
/// `-0500`.
fn read_dot_net(text: &str) -> Option<DateTime<FixedOffset>> {
    let sign = text.get(1..)?.find(['+', '-']).map(|at| at + 1);
    let (count, offset) = text.split_at(sign.unwrap_or(text.len()));
    let instant = DateTime::from_timestamp_millis(count.parse().ok()?)?;
    if offset.is_empty() {
        return Some(instant.fixed_offset());
    }
    let figures: i32 = offset.get(1..)?.parse().ok().filter(|_| offset.len() == 5)?;
    let seconds = (figures / 100 * 60 + figures % 100) * 60;
    let east = if offset.starts_with('-') { -seconds } else { seconds };
    Some(instant.with_timezone(&FixedOffset::east_opt(east)?))
}

/// Returns the digits after the decimal point in nanoseconds. Further digits are truncated.
fn nanos(fraction: &str) -> u32 {
    let digits = fraction.bytes().chain(std::iter::repeat(b'0')).take(9);
    digits.fold(0, |nanos, digit| nanos * 10 + u32::from(digit - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_is_told_by_the_number_of_digits() {
        #[rustfmt::skip]
        let cases = [
            ("1073315045",          Some("2004-01-05T15:04:05+00:00"),        "seconds"),
            ("999999999",           Some("2001-09-09T01:46:39+00:00"),        "seconds, nine digits"),
            ("1073315045.25",       Some("2004-01-05T15:04:05.250+00:00"),    "seconds with a fraction"),
            ("1073315045123",       Some("2004-01-05T15:04:05.123+00:00"),    "milliseconds"),
            ("946684800000",        Some("2000-01-01T00:00:00+00:00"),        "milliseconds, twelve digits"),
            ("1073315045123456",    Some("2004-01-05T15:04:05.123456+00:00"), "microseconds"),
            ("1073315045000000001", Some("2004-01-05T15:04:05.000000001+00:00"), "nanoseconds"),
            ("9999999999999999999", None,                                     "more than can be counted"),
            ("200401051504",        None,                                     "a compact date"),
            ("20040105",            None,                                     "a compact date"),
            ("2159.525972",         None,                                     "some other number"),
            ("-1073315045",         None,                                     "before 1970: nobody means that"),
            ("1073315045.",         None,                                     "no fraction"),
            ("/Date(1073315045123)/",      Some("2004-01-05T15:04:05.123+00:00"), ".NET"),
            ("/Date(1073315045123-0530)/", Some("2004-01-05T09:34:05.123-05:30"), ".NET with a zone"),
            ("/Date(-1000)/",              Some("1969-12-31T23:59:59+00:00"), ".NET before 1970"),
            ("/Date(1é+0)/",               None,                              "no number"),
            ("/Date(1+99999)/",            None,                              "no offset"),
            ("",                    None,                                     "nothing"),
        ];
        for (text, want, reason) in cases {
            let got = read(text).map(|instant| instant.to_rfc3339());
            assert_eq!(got.as_deref(), want, "{reason}: {text}");
        }
    }
}
