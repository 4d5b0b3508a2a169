//! Dates with words in them: RFC 822, asctime, and the same in other languages.
//!
//! The text is cut into numbers and words. A word is a month, a zone, a half of the
//! day, or of no interest (a weekday, "at", "of"); the numbers that are no time are day
//! and year, and without a month's name, month.

use chrono::{DateTime, FixedOffset};

use super::{Clock, assemble, day, full_year, months, numeric, zones};

/// Seconds east of UTC in Korea, where dates are written without zone.
const KOREA_S: i32 = 9 * 3600;

/// What was found so far.
#[derive(Debug, Default)]
struct Found {
    numbers: Vec<(u32, usize)>,
    month: Option<u32>,
    /// Whether the month stood before all numbers.
    leading: bool,
    clock: Option<Clock>,
    afternoon: Option<bool>,
    offset: Option<i32>,
    korean: bool,
    slashes: bool,
}

/// Reads a date with words in it, or with its parts in another order.
pub(super) fn parse(text: &str) -> Option<DateTime<FixedOffset>> {
    let mut found = Found::default();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        rest = if first.is_ascii_digit() {
            found.number(rest)?
        } else if first.is_alphabetic() {
            found.word(rest)
        } else if matches!(first, '+' | '-' | '\u{2212}')
            && found.clock.is_some()
            && found.offset.is_none_or(|offset| offset == 0)
        {
            found.sign(rest)
        } else {
            found.slashes |= first == '/';
            &rest[first.len_utf8()..]
        };
    }
    found.finish()
}

impl Found {
    fn number<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        if text[end..].starts_with(':') && self.clock.is_none() {
            let (clock, rest) = numeric::time(text)?;
            self.clock = Some(clock);
            return Some(rest);
        }
        if end > 4 || self.numbers.len() > 3 {
            return None;
        }
        self.numbers.push((text[..end].parse().ok()?, end));
        Some(&text[end..])
    }

    fn word<'t>(&mut self, text: &'t str) -> &'t str {
        let end = text.find(|c: char| !c.is_alphabetic()).unwrap_or(text.len());
        let word = &text[..end];
        match word {
            "오후" => (self.afternoon, self.korean) = (Some(true), true),
            "오전" => (self.afternoon, self.korean) = (Some(false), true),
            "년" | "월" | "일" => self.korean = true,
            _ if word.eq_ignore_ascii_case("pm") => self.afternoon = Some(true),
            _ if word.eq_ignore_ascii_case("am") => self.afternoon = Some(false),
            _ => self.name(word),
        }
        &text[end..]
    }

    fn name(&mut self, word: &str) {
        if self.clock.is_some() && self.offset.is_none() {
            self.offset = zones::named(word);
            if self.offset.is_some() {
                return;
            }
        }
        // "mar." begins a Tuesday in French: what looks like a month before any number is
        // replaced by what looks like one after it.
        let open = self.month.is_none() || (self.leading && !self.numbers.is_empty());
        if let Some(month) = months::month(word).filter(|_| open) {
            self.month = Some(month);
            self.leading = self.numbers.is_empty();
        }
    }

    fn sign<'t>(&mut self, text: &'t str) -> &'t str {
        let first = text.chars().next().map_or(1, char::len_utf8);
        match zones::offset(text) {
            Some(offset) => {
                self.offset = Some(offset);
                let rest = &text[first..];
                let end = rest.find(|c: char| !c.is_ascii_digit() && c != ':' && c != ' ');
                // An offset is followed by nothing but, in asctime, the year.
                let end = end
                    .unwrap_or(rest.len())
                    .min(rest.trim_start().find(' ').unwrap_or(rest.len()));
                &rest[end..]
            }
            None => &text[first..],
        }
    }

    fn finish(self) -> Option<DateTime<FixedOffset>> {
        let (year, month, day_of_month) = self.calendar()?;
        let date = day(year, month, day_of_month)?;
        let mut clock = self.clock.unwrap_or_default();
        match self.afternoon {
            Some(true) if clock.hour < 12 => clock.hour += 12,
            Some(false) if clock.hour == 12 => clock.hour = 0,
            _ => {}
        }
        let offset = self.offset.unwrap_or(if self.korean { KOREA_S } else { 0 });
        assemble(date, clock, offset)
    }

    /// Year, month and day out of the numbers.
    fn calendar(&self) -> Option<(i32, u32, u32)> {
        let is_year = |(number, digits): (u32, usize)| digits >= 3 || number > 31;
        let year = |(number, digits): (u32, usize)| {
            i32::try_from(number).ok().map(|number| full_year(number, digits))
        };
        match (self.month, self.numbers.as_slice()) {
            (Some(month), &[first]) if is_year(first) => Some((year(first)?, month, 1)),
            (Some(month), &[first, second, ..]) if is_year(first) => {
                Some((year(first)?, month, second.0))
            }
            (Some(month), &[first, second, ..]) => Some((year(second)?, month, first.0)),
            (None, &[first, second, third, ..]) if is_year(first) => {
                Some((year(first)?, second.0, third.0))
            }
            // "05/28/2004" is American, "28.05.2004" is not; what cannot be a month is a day.
            (None, &[first, second, third, ..]) => {
                let american = (self.slashes && first.0 <= 12) || second.0 > 12;
                let (month, day) = if american { (first.0, second.0) } else { (second.0, first.0) };
                Some((year(third)?, month, day))
            }
            _ => None,
        }
    }
}
