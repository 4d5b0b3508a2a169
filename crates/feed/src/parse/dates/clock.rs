//! Times of day in numbers: `15:04:05.5`, `15h04`, and `15.04` once the date is known.
//!
//! Ranges are not checked here: an hour 25 is rejected when the date is assembled.

use super::cursor::DateCursor;
use super::cursor::Number;

/// A time of day as written. `minute` and `second` may be out of range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Time {
    /// The hour, 0 to 24; 1 to 12 if the text says AM or PM.
    pub(super) hour: u32,
    /// The minute.
    pub(super) minute: u32,
    /// The second; 60 is a leap second.
    pub(super) second: u32,
    /// The fraction of the second in nanoseconds, truncated after nine digits.
    pub(super) nanos: u32,
}

/// Reads a time of day. `dated` means that the date is already known, so numbers separated by dots
/// cannot be one.
pub(super) fn read(cursor: &mut DateCursor<'_>, dated: bool) -> Option<Time> {
    let mut ahead = *cursor;
    let hour = ahead.digits().filter(|hour| hour.len <= 2)?;
    let time = colons(&mut ahead, hour)
        .or_else(|| hours_mark(&mut ahead, hour))
        .or_else(|| if dated { dots(&mut ahead, hour) } else { None })?;
    *cursor = ahead;
    Some(time)
}

/// Reads a time without separators: `HH`, `HHMM` or `HHMMSS`, the last with a fraction.
pub(super) fn compact(cursor: &mut DateCursor<'_>, number: Number) -> Option<Time> {
    let Number { value, len } = number;
    match len {
        1 | 2 => Some(Time { hour: value, ..Time::default() }),
        4 => Some(Time { hour: value / 100, minute: value % 100, ..Time::default() }),
        6 => Some(Time {
            hour: value / 10_000,
            minute: value / 100 % 100,
            second: value % 100,
            nanos: fraction(cursor),
        }),
        _ => None,
    }
}

/// Reads `:04`, `:04:05`, `:4:5`, `:04:05,5`, and `: 04`, which RFC 822 allows.
fn colons(cursor: &mut DateCursor<'_>, hour: Number) -> Option<Time> {
    let minute = after_colon(cursor)?;
    let Some(second) = after_colon(cursor) else {
        return Some(Time { hour: hour.value, minute, ..Time::default() });
    };
    Some(Time { hour: hour.value, minute, second, nanos: fraction(cursor) })
}

fn after_colon(cursor: &mut DateCursor<'_>) -> Option<u32> {
    let mut ahead = *cursor;
    ahead.spaces();
    if !ahead.eat(b':') {
        return None;
    }
    ahead.spaces();
    let number = ahead.digits()?;
    *cursor = ahead;
    Some(if number.len <= 2 { number.value } else { u32::MAX })
}

/// Reads `15h04`, `15 h 04`, `15h` or `15h04m05s`.
fn hours_mark(cursor: &mut DateCursor<'_>, hour: Number) -> Option<Time> {
    let mut ahead = *cursor;
    ahead.spaces();
    if !ahead.eat(b'h') || ahead.at_letter() {
        return None;
    }
    let mut time = Time { hour: hour.value, ..Time::default() };
    *cursor = ahead;
    ahead.spaces();
    let Some(minute) = ahead.digits().filter(|minute| minute.len <= 2) else { return Some(time) };
    time.minute = minute.value;
    *cursor = ahead;
    if ahead.eat(b'm')
        && let Some(second) = ahead.digits()
        && ahead.eat(b's')
    {
        time.second = second.value;
        *cursor = ahead;
    }
    Some(time)
}

/// Reads `.04` and `.04.05`, as written in Finland, Denmark and Italy.
fn dots(cursor: &mut DateCursor<'_>, hour: Number) -> Option<Time> {
    let mut ahead = *cursor;
    let mut part = || {
        let mut further = ahead;
        let digits = further.eat(b'.').then(|| further.take_digits(2))??;
        let ends = !further.at_digit();
        ends.then(|| {
            ahead = further;
            digits.value
        })
    };
    let minute = part()?;
    let second = part().unwrap_or_default();
    *cursor = ahead;
    Some(Time { hour: hour.value, minute, second, nanos: 0 })
}

/// Reads `.5` or `,5`, of any length, in nanoseconds. Further digits are truncated.
fn fraction(cursor: &mut DateCursor<'_>) -> u32 {
    let mut ahead = *cursor;
    if !(ahead.eat(b'.') || ahead.eat(b',')) || !ahead.at_digit() {
        return 0;
    }
    let mut nanos = 0;
    let mut unit = 100_000_000;
    while let Some(digit) = ahead.take_digits(1) {
        nanos += digit.value * unit;
        unit /= 10;
    }
    *cursor = ahead;
    nanos
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_however_they_are_written() {
        #[rustfmt::skip]
        let cases = [
            ("15:04:05",            (15, 4, 5, 0),             "",     "the usual"),
            ("15:04 GMT",           (15, 4, 0, 0),             " GMT", "no seconds"),
            ("5:4:3",               (5, 4, 3, 0),              "",     "no leading zeros"),
            ("15:04:05.5Z",         (15, 4, 5, 500_000_000),   "Z",    "one digit"),
            ("15:04:05,123456",     (15, 4, 5, 123_456_000),   "",     "a comma, ISO 8601"),
            ("15:04:05.1234567899", (15, 4, 5, 123_456_789),   "",     "finer than a nanosecond"),
            ("15 : 04 : 05",        (15, 4, 5, 0),             "",     "spaces, RFC 822"),
            ("15h04",               (15, 4, 0, 0),             "",     "French"),
            ("15 h 04",             (15, 4, 0, 0),             "",     "French, spaced"),
            ("15h",                 (15, 0, 0, 0),             "",     "French, on the hour"),
            ("15h04m05s",           (15, 4, 5, 0),             "",     "with units"),
            ("15.04",               (15, 4, 0, 0),             "",     "Nordic"),
            ("15.04.05",            (15, 4, 5, 0),             "",     "Italian"),
            ("15:004",              (15, u32::MAX, 0, 0),      "",     "refused later"),
        ];
        for (text, (hour, minute, second, nanos), rest, reason) in cases {
            let mut cursor = DateCursor::new(text);
            let want = Some(Time { hour, minute, second, nanos });
            assert_eq!(read(&mut cursor, true), want, "{reason}: {text}");
            assert_eq!(cursor.rest(), rest, "{reason}: {text}");
        }
    }

    #[test]
    fn other_figures_are_no_time() {
        for text in ["", "15", "2004:05", "15:", "15 hr", "15.4", "15.041"] {
            assert_eq!(read(&mut DateCursor::new(text), true), None, "{text}");
        }
        assert_eq!(read(&mut DateCursor::new("15.04"), false), None, "may be a date");
    }
}
