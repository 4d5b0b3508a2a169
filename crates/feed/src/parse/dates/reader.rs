//! The reader: walks through a date from left to right and gives each token its meaning.
//!
//! The reader knows no complete formats. A word is a month or a zone, numbers with colons are a
//! time, and so on. The order hardly matters, so unlisted forms are read like the others.
//! Invariants:
//!
//! * Every step moves forward, so the walk is linear.
//! * Every token must have a meaning. Unknown words are allowed only before the date ("Posted", a
//!   weekday in any language) or after it ("Uhr", an unknown zone, which leaves UTC). Any other
//!   unknown token ends the walk without a result.

use super::clock;
use super::clock::Time;
use super::cursor::DateCursor;
use super::cursor::Number;
use super::names;
use super::numeric;
use super::parts::DateParts;
use super::parts::Half;
use super::parts::Surety;
use super::zones;

/// The offset of Korean dates without a zone, in seconds: only one country writes them.
const KOREA_S: i32 = 9 * 3600;

/// Reads the parts of the date in `text`. Non-ASCII text must be folded first.
pub(super) fn read(text: &str) -> Option<DateParts> {
    let mut reader =
        Reader { cursor: DateCursor::new(text), parts: DateParts::default(), last: Last::Other };
    if let Some(day) = numeric::read_without_century(&mut reader.cursor) {
        reader.parts.set_day(day);
    }
    while let Some(byte) = reader.cursor.byte() {
        match byte {
            b'0'..=b'9' => reader.number()?,
            b'+' | b'-' => reader.sign()?,
            b':' => reader.colon()?,
            b'(' | b'[' => reader.comment(),
            b' ' | b'\t' | b'\n' | b'\r' | b'\x0C' => reader.cursor.skip(),
            b',' | b';' | b'.' | b'/' | b'_' | b'|' | b'\'' | b'"' | b'`' | b'@' => {
                reader.cursor.skip();
            }
            _ if reader.cursor.at_letter() => reader.word()?,
            _ => return None,
        }
    }
    Some(reader.parts)
}

struct Reader<'a> {
    cursor: DateCursor<'a>,
    parts: DateParts,
    last: Last,
}

/// The kind of the last token, where the meaning of the next one depends on it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// A month, or a number of the date.
    DatePart,
    /// Any other token.
    Other,
}

impl Reader<'_> {
    fn number(&mut self) -> Option<()> {
        self.last = Last::Other;
        if let Some(time) = clock::read(&mut self.cursor, self.parts.has_day()) {
            return self.parts.set_time(time);
        }
        if self.parts.has_no_day()
            && let Some(day) = numeric::read(&mut self.cursor)
        {
            self.parts.set_day(day);
            return Some(());
        }
        let number = self.cursor.digits()?;
        match self.unit() {
            Some(unit) => self.number_with_unit(number, unit),
            None => self.plain_number(number),
        }
    }

    /// Reads a number whose meaning depends on its position only.
    fn plain_number(&mut self, number: Number) -> Option<()> {
        let Number { value, len } = number;
        let parts = &mut self.parts;
        if parts.has_day() && parts.time.is_none() {
            parts.time = Some(clock::compact(&mut self.cursor, number)?);
            return Some(());
        }
        let dated = parts.has_day();
        let zone_fits = parts.time.is_some() && (dated || value == 0);
        if zone_fits && (len == 4 || (len == 2 && value == 0)) {
            parts.set_zone(Surety::Figures, zones::unsigned(value)?);
            return Some(());
        }
        if dated {
            return None;
        }
        self.last = Last::DatePart;
        match (len, parts.year, parts.month, parts.day) {
            (4, None, _, _) => parts.year = Some(value),
            (1 | 2, _, _, None) => parts.day = Some(value),
            // "2004. 1. 5.": the number that was read as the day is the month.
            (1 | 2, Some(_), None, Some(day)) => {
                (parts.month, parts.day) = (Some(day), Some(value));
            }
            (1 | 2, None, None, Some(_)) => parts.month = Some(value),
            (2 | 3, None, Some(_), Some(_)) => parts.year = Some(numeric::full_year(value)),
            _ => return None,
        }
        Some(())
    }

    /// Reads the Chinese, Japanese or Korean unit after a number.
    fn unit(&mut self) -> Option<Unit> {
        let mut ahead = self.cursor;
        ahead.spaces();
        let (name, unit) = UNITS.iter().find(|(name, _)| ahead.eat_str(name))?;
        if "년월일시분초".contains(name) {
            self.parts.set_zone(Surety::Language, KOREA_S);
        }
        self.cursor = ahead;
        Some(*unit)
    }

    fn number_with_unit(&mut self, number: Number, unit: Unit) -> Option<()> {
        let Number { value, len } = number;
        let parts = &mut self.parts;
        match unit {
            Unit::Year => {
                parts.year = Some(if len < 4 { numeric::full_year(value) } else { value })
            }
            Unit::Month => parts.month = Some(value),
            Unit::Day => parts.day = Some(value),
            Unit::Hour => return parts.set_time(Time { hour: value, ..Time::default() }),
            Unit::Minute => parts.time.as_mut()?.minute = value,
            Unit::Second => parts.time.as_mut()?.second = value,
        }
        Some(())
    }

    /// Reads a sign. A sign begins an offset once the time or the day is known; before that it only
    /// separates the parts of the date, as in `05-Jan-2004`.
    fn sign(&mut self) -> Option<()> {
        let spaced = self.cursor.before().is_none_or(|byte| byte.is_ascii_whitespace());
        let within_date = !spaced && self.last == Last::DatePart && !self.parts.has_day();
        let timed = self.parts.time.is_some();
        if within_date || !(timed || self.parts.has_day()) {
            self.cursor.skip();
            return Some(());
        }
        let mut ahead = self.cursor;
        if ahead.rest().starts_with("--") {
            ahead.skip();
        }
        if let Some(ahead_s) = offset(&mut ahead, timed) {
            self.cursor = ahead;
            self.parts.set_zone(Surety::Figures, ahead_s);
            let glued = ahead.word();
            return (glued.is_empty() || zones::named(glued).is_some()).then_some(());
        }
        // A dash between day and time has spaces around it (" - "); without them it would be a
        // range.
        let dash = self.cursor.byte() == Some(b'-');
        self.cursor.skip();
        (dash && (spaced || !self.cursor.at_digit())).then_some(())
    }

    /// Reads a single colon: after "Posted", between a day and its time (`05/Jan/2004:15:04:05`),
    /// or before an offset (`15:04:05:-0500`).
    fn colon(&mut self) -> Option<()> {
        self.cursor.skip();
        let before_time = self.parts.has_day() && self.parts.time.is_none();
        let before_offset = self.parts.time.is_some()
            && self.cursor.byte().is_some_and(|byte| matches!(byte, b'+' | b'-'));
        (self.parts.is_empty() || before_time || before_offset).then_some(())
    }

    /// Reads a comment. A comment counts only if it names a zone and no other zone is given.
    fn comment(&mut self) {
        let comment = self.cursor.comment().trim();
        if let Some(ahead_s) = zones::named(comment).or_else(|| zones::region(comment)) {
            self.parts.set_zone(Surety::Comment, ahead_s);
        }
    }

    fn word(&mut self) -> Option<()> {
        let after_digit = self.cursor.before().is_some_and(|byte| byte.is_ascii_digit());
        let start = self.cursor;
        let word = self.cursor.word();
        let known_so_far = self.parts.has_day() || self.parts.time.is_some();
        if let Some(half) = self.half_of_day(word) {
            self.parts.half = Some(half);
            return Some(());
        }
        if known_so_far && word.is_ascii() && is_region(&self.cursor) {
            self.cursor = start;
            if let Some(ahead_s) = zones::region(self.cursor.region()) {
                self.parts.set_zone(Surety::Name, ahead_s);
            }
            return Some(());
        }
        let month = if self.parts.has_day() { None } else { names::month(word) };
        if let Some(month) = month {
            return self.month(month);
        }
        self.last = Last::Other;
        if known_so_far && let Some(ahead_s) = zones::named(word) {
            if self.may_be_zone(word) {
                self.parts.set_zone(Surety::Name, ahead_s);
            }
            return Some(());
        }
        let passes = names::is_weekday(word) || names::is_filler(word);
        let junk = self.parts.time.is_some() && after_digit && !is_clock_word(word);
        let outside = self.parts.is_empty() || (self.parts.has_day() && !junk);
        let separator = word.eq_ignore_ascii_case("t") && self.parts.time.is_none();
        (passes || outside || separator || (known_so_far && is_clock_word(word))).then_some(())
    }

    fn month(&mut self, month: u32) -> Option<()> {
        let first = self.parts.is_empty();
        if self.parts.month.is_some() && !self.parts.month_may_be_weekday {
            return None;
        }
        self.parts.month = Some(month);
        self.parts.month_may_be_weekday = first;
        self.last = Last::DatePart;
        Some(())
    }

    /// Returns whether a short word may be a zone. One and two letters are zones only after a time:
    /// the `T` of ISO 8601 and the "at" of "5 January 2004 at 15:04" come before it.
    fn may_be_zone(&self, word: &str) -> bool {
        word.len() > 2 || word.eq_ignore_ascii_case("z") || self.parts.time.is_some()
    }

    /// Reads "PM", "p.m.", "오후" and the like, where `word` has been read already.
    fn half_of_day(&mut self, word: &str) -> Option<Half> {
        if let Some((_, half)) = HALVES.iter().find(|(name, _)| word.eq_ignore_ascii_case(name)) {
            if matches!(word, "오전" | "오후") {
                self.parts.set_zone(Surety::Language, KOREA_S);
            }
            return Some(*half);
        }
        let half = match word {
            "a" | "A" => Half::Morning,
            "p" | "P" => Half::Afternoon,
            _ => return None,
        };
        let mut ahead = self.cursor;
        let dotted = ahead.eat(b'.');
        ahead.spaces();
        let whole = dotted && ahead.word().eq_ignore_ascii_case("m");
        whole.then(|| {
            self.cursor = ahead;
            half
        })
    }
}

/// The unit of a number in a Chinese, Japanese or Korean date.
#[derive(Clone, Copy)]
enum Unit {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
}

#[rustfmt::skip]
const UNITS: [(&str, Unit); 16] = [
    ("년", Unit::Year),   ("年", Unit::Year),
    ("월", Unit::Month),  ("月", Unit::Month),
    ("일", Unit::Day),    ("日", Unit::Day),    ("号", Unit::Day),  ("號", Unit::Day),
    ("시", Unit::Hour),   ("時", Unit::Hour),   ("时", Unit::Hour), ("点", Unit::Hour),
    ("분", Unit::Minute), ("分", Unit::Minute),
    ("초", Unit::Second), ("秒", Unit::Second),
];

const HALVES: [(&str, Half); 10] = [
    ("am", Half::Morning),
    ("pm", Half::Afternoon),
    ("오전", Half::Morning),
    ("오후", Half::Afternoon),
    ("上午", Half::Morning),
    ("下午", Half::Afternoon),
    ("午前", Half::Morning),
    ("午後", Half::Afternoon),
    ("πμ", Half::Morning),
    ("μμ", Half::Afternoon),
];

/// Reads an offset. After a day without a time the offset must have minutes; without them it would
/// be a range.
fn offset(cursor: &mut DateCursor<'_>, timed: bool) -> Option<i32> {
    let mut ahead = *cursor;
    let read = zones::offset(&mut ahead);
    let text = cursor.rest().get(1..).unwrap_or_default();
    let with_minutes = text.len().saturating_sub(ahead.rest().len()) >= 4;
    if read.is_some() && (timed || with_minutes) {
        *cursor = ahead;
        return read;
    }
    None
}

/// Returns whether the word before the cursor begins the name of a region: a slash and a letter
/// follow.
fn is_region(cursor: &DateCursor<'_>) -> bool {
    cursor.byte() == Some(b'/') && cursor.byte_at(1).is_some_and(|byte| byte.is_ascii_alphabetic())
}

/// Returns whether `word` follows a time without changing it, such as "Uhr".
fn is_clock_word(word: &str) -> bool {
    ["h", "hs", "hrs", "uhr", "uur", "часов", "ч"]
        .iter()
        .any(|known| word.eq_ignore_ascii_case(known))
}
