//! Offsets from UTC: in numbers, as an abbreviation, or as a region.
//!
//! Ambiguous abbreviations have the meaning that is most frequent in feeds: `CST` and `AST` are
//! American, `BST` is British Summer Time, `IST` is Indian, `GST` is Gulf. Military letters are
//! read as RFC 822 printed them (`A` is one hour *behind* UTC), because programs that still write
//! them follow that RFC; only capitals are read so. Regions with daylight saving time are not
//! resolved, because that would take a database.

use super::cursor::DateCursor;

const MINUTE_S: i32 = 60;
const HOUR_S: i32 = 60 * MINUTE_S;

/// Abbreviations of zones and their offset from UTC, in minutes.
#[rustfmt::skip]
const NAMES: [(&str, i32); 112] = [
    ("GMT", 0), ("UTC", 0), ("UT", 0), ("Z", 0), ("UCT", 0), ("WET", 0), ("ZULU", 0),
    // North America, also without the letter for standard or daylight saving time.
    ("EST", -300), ("EDT", -240), ("ET", -300), ("CST", -360), ("CDT", -300), ("CT", -360),
    ("MST", -420), ("MDT", -360), ("MT", -420), ("PST", -480), ("PDT", -420), ("PT", -480),
    ("AST", -240), ("ADT", -180), ("AT", -240), ("NST", -210), ("NDT", -150),
    ("AKST", -540), ("AKDT", -480), ("HST", -600), ("HAST", -600), ("HADT", -540), ("SST", -660),
    // South America.
    ("BRT", -180), ("BRST", -120), ("ART", -180), ("CLT", -240), ("CLST", -180), ("COT", -300),
    ("PET", -300), ("VET", -240), ("UYT", -180), ("ECT", -300), ("BOT", -240), ("PYT", -240),
    ("GFT", -180), ("GYT", -240),
    // Europe.
    ("CET", 60), ("CEST", 120), ("MET", 60), ("MEST", 120), ("MEZ", 60), ("MESZ", 120),
    ("WEST", 60), ("BST", 60), ("EET", 120), ("EEST", 180), ("MSK", 180), ("MSD", 240),
    ("TRT", 180), ("SAMT", 240),
    // Africa.
    ("WAT", 60), ("CAT", 120), ("SAST", 120), ("EAT", 180), ("MUT", 240),
    // Asia.
    ("IDT", 180), ("IRST", 210), ("IRDT", 270), ("GST", 240), ("AZT", 240), ("GET", 240),
    ("AFT", 270), ("PKT", 300), ("UZT", 300), ("YEKT", 300), ("IST", 330), ("NPT", 345),
    ("BDT", 360), ("BTT", 360), ("OMST", 360), ("ALMT", 360), ("MMT", 390), ("ICT", 420),
    ("WIB", 420), ("NOVT", 420), ("KRAT", 420), ("HOVT", 420), ("WITA", 480), ("HKT", 480),
    ("SGT", 480), ("MYT", 480), ("PHT", 480), ("IRKT", 480), ("ULAT", 480), ("AWST", 480),
    ("JST", 540), ("KST", 540), ("WIT", 540), ("YAKT", 540), ("VLAT", 600), ("MAGT", 660),
    ("PETT", 720),
    // Oceania.
    ("ACST", 570), ("ACDT", 630), ("AEST", 600), ("AEDT", 660), ("CHST", 600), ("LHST", 630),
    ("NCT", 660), ("NZST", 720), ("NZDT", 780), ("FJT", 720), ("TOT", 780), ("WST", 780),
];

/// Regions that have had one offset, without daylight saving time, for as long as there have been
/// feeds; in hours from UTC.
#[rustfmt::skip]
const REGIONS: [(&str, i32); 12] = [
    ("Etc/UTC", 0), ("Etc/GMT", 0), ("Etc/UCT", 0), ("Etc/Zulu", 0), ("Etc/Universal", 0),
    ("Asia/Tokyo", 9), ("Asia/Seoul", 9), ("Asia/Shanghai", 8), ("Asia/Hong_Kong", 8),
    ("Asia/Singapore", 8), ("Asia/Bangkok", 7), ("Africa/Johannesburg", 2),
];

/// Returns the offset of the zone called `name`, in seconds from UTC.
pub(super) fn named(name: &str) -> Option<i32> {
    let table = || NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    military(name).or_else(|| table().map(|(_, minutes)| minutes * MINUTE_S))
}

/// Returns the offset of the region `name`, in seconds from UTC. `Etc/GMT+5` is five hours *behind*
/// UTC, as POSIX defines it; `Etc/GMT+05:00` is not a POSIX name and means ahead of UTC.
pub(super) fn region(name: &str) -> Option<i32> {
    if let Some((_, hours)) = REGIONS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
        return Some(hours * HOUR_S);
    }
    let (start, sign_and_hours) = name.split_at_checked(7)?;
    let posix = start.eq_ignore_ascii_case("Etc/GMT") && sign_and_hours.len() <= 3;
    let mut cursor = DateCursor::new(sign_and_hours);
    let ahead = offset(&mut cursor)?;
    let whole = cursor.rest().is_empty() && start.eq_ignore_ascii_case("Etc/GMT");
    whole.then_some(if posix { -ahead } else { ahead })
}

/// Reads `+01`, `+0100`, `+01:00`, `+1:00`, `-700` and the like, with the cursor on the sign.
/// Returns seconds from UTC. Seconds in the offset (`+01:00:00`) are dropped.
pub(super) fn offset(cursor: &mut DateCursor<'_>) -> Option<i32> {
    let mut ahead = *cursor;
    let sign = if ahead.eat(b'-') {
        -1
    } else if ahead.eat(b'+') {
        1
    } else {
        return None;
    };
    let number = ahead.digits()?;
    let (hours, minutes) = match number.len {
        1 | 2 if ahead.byte() == Some(b':') => {
            ahead.skip();
            let minutes = ahead.digits().filter(|minutes| minutes.len <= 2)?.value;
            if ahead.eat(b':') {
                ahead.take_digits(2)?;
            }
            (number.value, minutes)
        }
        1 | 2 => (number.value, 0),
        3 | 4 => (number.value / 100, number.value % 100),
        6 => (number.value / 10_000, number.value / 100 % 100),
        _ => return None,
    };
    let seconds = seconds(hours, minutes)?;
    *cursor = ahead;
    Some(sign * seconds)
}

/// Returns an offset that lost its sign: `0200`, where a form decoded `+` as a space.
pub(super) fn unsigned(value: u32) -> Option<i32> {
    seconds(value / 100, value % 100)
}

fn seconds(hours: u32, minutes: u32) -> Option<i32> {
    let possible = hours <= 23 && minutes <= 59;
    let seconds = possible.then(|| i32::try_from(hours * 60 + minutes).ok())??;
    Some(seconds * MINUTE_S)
}

fn military(name: &str) -> Option<i32> {
    let &[letter] = name.as_bytes() else { return None };
    let hours = match letter {
        b'A'..=b'I' => -i32::from(letter - b'A' + 1),
        b'K'..=b'M' => -i32::from(letter - b'A'),
        b'N'..=b'Y' => i32::from(letter - b'N' + 1),
        _ => return None,
    };
    Some(hours * HOUR_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_read_however_they_are_written() {
        #[rustfmt::skip]
        let cases = [
            ("+01",       Some(60),   "hours, ISO 8601"),
            ("+0100",     Some(60),   "RFC 2822"),
            ("-08:00",    Some(-480), "RFC 3339"),
            ("+5:30",     Some(330),  "one digit"),
            ("-700",      Some(-420), "three digits"),
            ("+00:0",     Some(0),    "one digit of minutes"),
            ("-0000",     Some(0),    "RFC 2822: UTC, and nothing said of where"),
            ("-07:00:00", Some(-420), "with seconds"),
            ("+010000",   Some(60),   "the same, compact"),
            ("+9999",     None,       "no such place"),
            ("+12345",    None,       "five digits"),
            ("+00:zz",    None,       "no minutes"),
            ("+",         None,       "nothing"),
            ("0100",      None,       "no sign"),
        ];
        for (text, minutes, reason) in cases {
            let want = minutes.map(|minutes: i32| minutes * MINUTE_S);
            assert_eq!(offset(&mut DateCursor::new(text)), want, "{reason}: {text}");
        }
    }

    #[test]
    fn names_are_read_as_feeds_mean_them() {
        #[rustfmt::skip]
        let cases = [
            ("gmt",  Some(0),    "any case"),
            ("CST",  Some(-360), "American, not Chinese"),
            ("BST",  Some(60),   "British summer"),
            ("IST",  Some(330),  "Indian"),
            ("ET",   Some(-300), "without saying whether it is summer"),
            ("A",    Some(-60),  "RFC 822: -1"),
            ("I",    Some(-540), "the letter before the gap"),
            ("J",    None,       "not a zone"),
            ("M",    Some(-720), "RFC 822: -12"),
            ("N",    Some(60),   "RFC 822: +1"),
            ("Y",    Some(720),  "RFC 822: +12"),
            ("z",    Some(0),    "ISO 8601, small"),
            ("h",    None,       "hours, not a zone"),
            ("zone", None,       "unknown"),
        ];
        for (name, minutes, reason) in cases {
            assert_eq!(named(name), minutes.map(|minutes| minutes * MINUTE_S), "{reason}: {name}");
        }
    }

    #[test]
    fn regions_without_summer_time_are_known() {
        #[rustfmt::skip]
        let cases = [
            ("Etc/GMT",          Some(0),  "UTC by another name"),
            ("etc/gmt",          Some(0),  "any case"),
            ("Etc/GMT+5",        Some(-5), "POSIX counts westward"),
            ("Etc/GMT-14",       Some(14), "POSIX counts westward"),
            ("Etc/GMT+0500",     Some(5),  "not POSIX: as RFC 2822"),
            ("Asia/Tokyo",       Some(9),  "no summer time"),
            ("America/New_York", None,     "takes a database"),
            ("Etc/GMTx",         None,     "no such zone"),
            ("Europe+1",         None,     "no such zone"),
        ];
        for (name, hours, reason) in cases {
            assert_eq!(region(name), hours.map(|hours| hours * HOUR_S), "{reason}: {name}");
        }
    }
}
