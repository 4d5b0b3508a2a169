//! Dates written in numbers only: ISO 8601 with its short forms, and `1/5/2004`.
//!
//! Ambiguous orders are resolved as follows:
//!
//! * With a year of four digits first: year, month, day.
//! * With slashes and the year last, the month is first, as in the United States.
//! * With dashes or dots and the year last, the day is first.
//! * If the order is impossible (a month 13), day and month are swapped.
//! * Three numbers of two digits: `04-01-05` is ISO 8601, `01/05/04` is American, `05.01.04` begins
//!   with the day.
//! * Six digits are `YYMMDD`; to keep them unambiguous, ISO 8601 does not allow `YYYYMM`.
//!
//! Ranges are not checked here: 31 February is rejected when the date is assembled.

use super::cursor::DateCursor;
use super::cursor::Number;

/// A day as written. The parts may be out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Day {
    /// Year, month, day of the month.
    Calendar(u32, u32, u32),
    /// Year, day of the year.
    Ordinal(u32, u32),
    /// ISO 8601 year, week, and weekday, where 1 is Monday.
    Week(u32, u32, u32),
}

/// Reads a date in numbers, if there is one at the cursor.
pub(super) fn read(cursor: &mut DateCursor<'_>) -> Option<Day> {
    let mut ahead = *cursor;
    let first = ahead.digits()?;
    let Number { value, len } = first;
    let day = match len {
        1 | 2 => year_last(&mut ahead, first)?,
        4 => year_first(&mut ahead, value)?,
        5 => Day::Ordinal(full_year(value / 1000), value % 1000),
        6 => Day::Calendar(full_year(value / 10_000), value / 100 % 100, value % 100),
        7 => Day::Ordinal(value / 1000, value % 1000),
        8 => eight_digits(value),
        12 | 14 => {
            // The time follows without a separator and is left to the caller.
            ahead = *cursor;
            eight_digits(ahead.take_digits(8)?.value)
        }
        _ => return None,
    };
    *cursor = ahead;
    Some(day)
}

/// Reads `-0401` or `-04-01`: ISO 8601 year and month without the century.
pub(super) fn read_without_century(cursor: &mut DateCursor<'_>) -> Option<Day> {
    let mut ahead = *cursor;
    if !ahead.eat(b'-') {
        return None;
    }
    let year = ahead.take_digits(2)?.value;
    ahead.eat(b'-');
    let month = ahead.take_digits(2)?.value;
    let ends = ahead.rest().is_empty();
    ends.then(|| {
        *cursor = ahead;
        Day::Calendar(full_year(year), month, 1)
    })
}

/// Expands a year of two or three digits: 00 to 49 are in this century; 50 to 99, and the
/// three-digit years of programs that kept counting from 1900, are added to 1900 (RFC 2822, 4.3).
pub(super) fn full_year(short: u32) -> u32 {
    if short < 50 { 2000 + short } else { 1900 + short }
}

fn eight_digits(value: u32) -> Day {
    Day::Calendar(value / 10_000, value / 100 % 100, value % 100)
}

fn year_first(cursor: &mut DateCursor<'_>, year: u32) -> Option<Day> {
    let mut ahead = *cursor;
    let mark = ahead.byte().filter(|byte| b"-/.Ww".contains(byte))?;
    ahead.skip();
    if mark.eq_ignore_ascii_case(&b'W') || (mark == b'-' && ahead.eat(b'W')) {
        return week(cursor, ahead, year);
    }
    let second = ahead.digits()?;
    let mut further = ahead;
    let third = if further.eat(mark) { day_of_month(&mut further) } else { None };
    let day = match (second.len, third) {
        (1 | 2, Some(day)) => Day::Calendar(year, second.value, day),
        // Some of Google's feeds wrote `2004-001-05`.
        (3, Some(day)) if second.value <= 12 => Day::Calendar(year, second.value, day),
        (2, None) if mark != b'.' => Day::Calendar(year, second.value, 1),
        (3, None) if mark == b'-' => Day::Ordinal(year, second.value),
        (4, None) if mark == b'-' => Day::Calendar(year, second.value / 100, second.value % 100),
        _ => return None,
    };
    *cursor = if third.is_some() { further } else { ahead };
    Some(day)
}

/// Reads one or two digits, or two directly followed by a time: `2004-01-0515:04`.
fn day_of_month(cursor: &mut DateCursor<'_>) -> Option<u32> {
    let mut ahead = *cursor;
    match ahead.digits()?.len {
        1 | 2 => {}
        4 if ahead.byte() == Some(b':') => return Some(cursor.take_digits(2)?.value),
        _ => return None,
    }
    let day = cursor.digits()?;
    Some(day.value)
}

/// Reads `W02`, `W02-1` or `W021`; `ahead` stands after the `W`.
fn week<'a>(cursor: &mut DateCursor<'a>, mut ahead: DateCursor<'a>, year: u32) -> Option<Day> {
    let week = ahead.take_digits(2)?.value;
    let mut further = ahead;
    further.eat(b'-');
    let weekday = further.take_digits(1).filter(|_| !further.at_digit());
    *cursor = if weekday.is_some() { further } else { ahead };
    Some(Day::Week(year, week, weekday.map_or(1, |weekday| weekday.value)))
}

fn year_last(cursor: &mut DateCursor<'_>, first: Number) -> Option<Day> {
    let mut ahead = *cursor;
    let mark = ahead.byte().filter(|byte| b"-/.".contains(byte))?;
    ahead.skip();
    let second = ahead.digits()?;
    if mark == b'-' && (first.len, second.len) == (2, 3) {
        *cursor = ahead;
        return Some(Day::Ordinal(full_year(first.value), second.value));
    }
    let third = ahead.eat(mark).then(|| ahead.digits())??;
    if second.len > 2 {
        return None;
    }
    let (a, b, c) = (first.value, second.value, third.value);
    let day = match (third.len, mark) {
        (4, b'/') => either_order(c, a, b),
        (4, _) => either_order(c, b, a),
        (2, b'-') if first.len == 2 && c <= 31 => Day::Calendar(full_year(a), b, c),
        (2, b'/') if a > 31 => Day::Calendar(full_year(a), b, c),
        (2, b'/') => either_order(full_year(c), a, b),
        (2, _) => either_order(full_year(c), b, a),
        _ => return None,
    };
    *cursor = ahead;
    Some(day)
}

/// Returns the month and day as given, or swapped if only that order is possible.
fn either_order(year: u32, month: u32, day: u32) -> Day {
    if month > 12 && day <= 12 {
        Day::Calendar(year, day, month)
    } else {
        Day::Calendar(year, month, day)
    }
}

#[cfg(test)]
mod tests {
    use super::Day::{Calendar, Ordinal, Week};
    use super::*;

    #[test]
    fn figures_are_read_as_the_choices_say() {
        #[rustfmt::skip]
        let cases = [
            ("2004-01-05",   Calendar(2004, 1, 5),   "",        "ISO 8601"),
            ("2004-1-5",     Calendar(2004, 1, 5),   "",        "without zeros"),
            ("2004/01/05",   Calendar(2004, 1, 5),   "",        "slashes"),
            ("2004.01.05",   Calendar(2004, 1, 5),   "",        "dots"),
            ("2004-001-05",  Calendar(2004, 1, 5),   "",        "a zero too many"),
            ("2004-0105",    Calendar(2004, 1, 5),   "",        "half compact"),
            ("20040105T15",  Calendar(2004, 1, 5),   "T15",     "compact"),
            ("200401051504", Calendar(2004, 1, 5),   "1504",    "compact with time"),
            ("2004-01-0515:04", Calendar(2004, 1, 5), "15:04",  "the T is missing"),
            ("2004-01",      Calendar(2004, 1, 1),   "",        "year and month"),
            ("2004-032",     Ordinal(2004, 32),      "",        "day of the year"),
            ("2004032",      Ordinal(2004, 32),      "",        "the same, compact"),
            ("04032",        Ordinal(2004, 32),      "",        "the same, short year"),
            ("04-032",       Ordinal(2004, 32),      "",        "the same, dashed"),
            ("2004-W02-3",   Week(2004, 2, 3),       "",        "week date"),
            ("2004W023",     Week(2004, 2, 3),       "",        "the same, compact"),
            ("2004-W02T15",  Week(2004, 2, 1),       "T15",     "a week begins on Monday"),
            ("040105",       Calendar(2004, 1, 5),   "",        "short year, compact"),
            ("04-01-05",     Calendar(2004, 1, 5),   "",        "short year in front"),
            ("31-12-99",     Calendar(1999, 12, 31), "",        "99 is no day"),
            ("1/5/2004",     Calendar(2004, 1, 5),   "",        "American"),
            ("13/5/2004",    Calendar(2004, 5, 13),  "",        "cannot be American"),
            ("01/05/04",     Calendar(2004, 1, 5),   "",        "American, short year"),
            ("99/01/05",     Calendar(1999, 1, 5),   "",        "99 is no month and no day"),
            ("05-01-2004",   Calendar(2004, 1, 5),   "",        "European"),
            ("01-13-2004",   Calendar(2004, 1, 13),  "",        "cannot be European"),
            ("5.1.2004",     Calendar(2004, 1, 5),   "",        "European"),
            ("05.01.04",     Calendar(2004, 1, 5),   "",        "European, short year"),
            ("2004-13-45",   Calendar(2004, 13, 45), "",        "refused later"),
        ];
        for (text, want, rest, reason) in cases {
            let mut cursor = DateCursor::new(text);
            assert_eq!(read(&mut cursor), Some(want), "{reason}: {text}");
            assert_eq!(cursor.rest(), rest, "{reason}: {text}");
        }
    }

    #[test]
    fn other_figures_are_no_date() {
        let cases = ["", "5", "2004", "123", "07-01T01", "2159.525972", "1.2", "2004-", "2004-Jan"];
        for text in cases {
            assert_eq!(read(&mut DateCursor::new(text)), None, "{text}");
        }
    }

    #[test]
    fn the_century_may_be_left_out() {
        for text in ["-0401", "-04-01"] {
            let want = Some(Calendar(2004, 1, 1));
            assert_eq!(read_without_century(&mut DateCursor::new(text)), want, "{text}");
        }
        for text in ["-04", "0401", "--04-01", "-04-01-05"] {
            assert_eq!(read_without_century(&mut DateCursor::new(text)), None, "{text}");
        }
    }
}
