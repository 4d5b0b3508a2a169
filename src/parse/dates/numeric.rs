//! Dates of numbers only: ISO 8601 in all its forms, and seconds since 1970.

use chrono::{DateTime, FixedOffset, NaiveDate, Weekday};

use super::{Clock, assemble, day, full_year, zones};

/// Seconds since 1970 have this many digits from 2001 to 2286; before, they would look
/// like something else.
const EPOCH_DIGITS: [usize; 2] = [10, 13];

/// Reads a date that begins with a year in numbers.
pub(super) fn parse(text: &str) -> Option<DateTime<FixedOffset>> {
    if let Some(date) = epoch(text) {
        return Some(date);
    }
    let (date, rest) = date(text)?;
    let rest = rest.trim_start_matches(['T', 't', ' ', '_', ',']);
    if rest.is_empty() {
        return assemble(date, Clock::default(), 0);
    }
    let (clock, rest) = time(rest).unwrap_or((Clock::default(), rest));
    assemble(date, clock, zone(rest)?)
}

fn epoch(text: &str) -> Option<DateTime<FixedOffset>> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !EPOCH_DIGITS.contains(&whole.len()) || !digits(whole) || !digits(part) {
        return None;
    }
    let number: i64 = whole.parse().ok()?;
    let millis = if whole.len() == EPOCH_DIGITS[1] { number } else { number.checked_mul(1000)? };
    DateTime::from_timestamp_millis(millis).map(|date| date.fixed_offset())
}

/// The day at the beginning of a text, and what follows.
fn date(text: &str) -> Option<(NaiveDate, &str)> {
    let first = digits(text);
    let rest = &text[first.len()..];
    let number = |text: &str| text.parse::<u32>().ok();
    match first.len() {
        8 => {
            let date = day(first[..4].parse().ok()?, number(&first[4..6])?, number(&first[6..])?)?;
            Some((date, rest))
        }
        7 => {
            let date = NaiveDate::from_yo_opt(first[..4].parse().ok()?, number(&first[4..])?)?;
            Some((date, rest))
        }
        // "20031231101455", without anything between date and time.
        14 => Some((
            day(first[..4].parse().ok()?, number(&first[4..6])?, number(&first[6..8])?)?,
            &text[8..],
        )),
        4 => after_year(first.parse().ok()?, rest),
        2 => {
            let second = digits(rest.strip_prefix('-')?);
            let third = digits(rest.get(1 + second.len()..)?.strip_prefix('-')?);
            if second.len() != 2 || third.len() != 2 {
                return None;
            }
            let date = day(full_year(first.parse().ok()?, 2), number(second)?, number(third)?)?;
            Some((date, rest.get(6..)?))
        }
        _ => None,
    }
}

/// The day in a year of four digits: a month and a day, a week and a day, a day of the
/// year, or nothing.
fn after_year(year: i32, rest: &str) -> Option<(NaiveDate, &str)> {
    let plausible = (1000..3000).contains(&year);
    if rest.is_empty() {
        return plausible.then(|| day(year, 1, 1))?.map(|date| (date, rest));
    }
    let separated = rest.starts_with(['-', '/', '.']);
    let inside = if separated { &rest[1..] } else { rest };
    if let Some(week) = inside.strip_prefix(['W', 'w']) {
        return in_week(year, week);
    }
    if !separated {
        return None;
    }
    let first = digits(inside);
    let rest = &inside[first.len()..];
    match first.len() {
        3 => Some((NaiveDate::from_yo_opt(year, first.parse().ok()?)?, rest)),
        1 | 2 => {
            let month = first.parse().ok()?;
            let Some(inside) = rest.strip_prefix(['-', '/', '.']) else {
                return rest.is_empty().then(|| day(year, month, 1))?.map(|date| (date, rest));
            };
            let second = digits(inside);
            let date = day(year, month, second.parse().ok()?)?;
            (second.len() <= 2).then_some((date, &inside[second.len()..]))
        }
        _ => None,
    }
}

/// `53-5`, `535` or `53`: a week and a day in it, Monday is 1.
fn in_week(year: i32, text: &str) -> Option<(NaiveDate, &str)> {
    let all = digits(text);
    let week: u32 = all.get(..2)?.parse().ok()?;
    let (weekday, rest) = match (all.get(2..), text[all.len()..].strip_prefix('-')) {
        (Some(""), Some(rest)) => (digits(rest).get(..1)?.parse().ok()?, &rest[1..]),
        (Some(""), None) => (1, &text[2..]),
        (Some(weekday), _) => (weekday.parse().ok()?, &text[all.len()..]),
        (None, _) => return None,
    };
    let weekday = Weekday::try_from(u8::checked_sub(weekday, 1)?).ok()?;
    Some((NaiveDate::from_isoywd_opt(year, week, weekday)?, rest))
}

/// The time at the beginning of a text, and what follows.
pub(super) fn time(text: &str) -> Option<(Clock, &str)> {
    let first = digits(text);
    let mut clock = Clock::default();
    let mut rest = &text[first.len()..];
    match (first.len(), rest.strip_prefix(':')) {
        (1 | 2, Some(after)) => {
            clock.hour = first.parse().ok()?;
            let minute = digits(after);
            clock.minute = minute.parse().ok().filter(|_| minute.len() <= 2)?;
            rest = &after[minute.len()..];
            if let Some(after) = rest.strip_prefix(':') {
                let second = digits(after);
                clock.second = second.parse().ok().filter(|_| second.len() <= 2)?;
                rest = &after[second.len()..];
            }
        }
        (2 | 4 | 6, None) => {
            let pair = |at: usize| first.get(at..at + 2).map_or(Ok(0), str::parse);
            clock = Clock {
                hour: pair(0).ok()?,
                minute: pair(2).ok()?,
                second: pair(4).ok()?,
                nanos: 0,
            };
        }
        _ => return None,
    }
    if let Some(fraction) = rest.strip_prefix(['.', ',']).map(digits).filter(|f| !f.is_empty()) {
        let padded = format!("{fraction:0<9}");
        clock.nanos = padded.get(..9)?.parse().ok()?;
        rest = &rest[1 + fraction.len()..];
    }
    Some((clock, rest))
}

/// The offset that ends a date. `None` says that what is there is no zone.
fn zone(text: &str) -> Option<i32> {
    let text = text.trim();
    if text.is_empty() {
        return Some(0);
    }
    zones::offset(text).or_else(|| zones::named(text)).or_else(|| {
        // "GMT+01:00": the offset counts.
        let (name, _) = text.split_at_checked(3)?;
        zones::named(name)?;
        zones::offset(&text[3..])
    })
}

fn digits(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    &text[..end]
}
