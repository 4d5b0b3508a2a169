//! Zones by offset and by name → seconds east of UTC.

/// Names and their offsets in minutes. Where a name is used for several zones, the one
/// RFC 822 gives, or the one with most feeds.
#[rustfmt::skip]
const NAMED: [(&str, i32); 54] = [
    ("z", 0), ("ut", 0), ("gmt", 0), ("utc", 0), ("uct", 0), ("zulu", 0), ("wet", 0), ("west", 60),
    ("bst", 60), ("ist", 330), ("cet", 60), ("cest", 120), ("met", 60), ("mest", 120), ("mez", 60),
    ("mesz", 120), ("eet", 120), ("eest", 180), ("msk", 180), ("msd", 240), ("sast", 120),
    ("jst", 540), ("kst", 540), ("hkt", 480), ("sgt", 480), ("awst", 480), ("acst", 570),
    ("aest", 600), ("aedt", 660), ("nzst", 720), ("nzdt", 780), ("brt", -180), ("art", -180),
    ("nst", -210), ("ndt", -150), ("ast", -240), ("adt", -180), ("at", -240),
    ("est", -300), ("edt", -240), ("et", -300), ("cst", -360), ("cdt", -300), ("ct", -360),
    ("mst", -420), ("mdt", -360), ("mt", -420), ("pst", -480), ("pdt", -420), ("pt", -480),
    ("akst", -540), ("akdt", -480), ("hst", -600), ("hast", -600),
];

/// The offset of a zone's name, in seconds.
pub(super) fn named(name: &str) -> Option<i32> {
    let found = NAMED.iter().find(|(held, _)| held.eq_ignore_ascii_case(name));
    found.map(|(_, minutes)| minutes * 60)
}

/// An offset at the beginning of `text` (`+0100`, `-08:00`, `+1`), in seconds.
pub(super) fn offset(text: &str) -> Option<i32> {
    let sign = match text.chars().next()? {
        '+' => 1,
        '-' | '\u{2212}' | '\u{2013}' => -1,
        _ => return None,
    };
    let digits = text.trim_start_matches(['+', '-', '\u{2212}', '\u{2013}']).trim_start();
    let (hours, minutes) = match digits.split_once(':') {
        Some((hours, minutes)) => (hours, leading(minutes)),
        None => {
            let digits = leading(digits);
            digits
                .split_at_checked(digits.len().saturating_sub(2))
                .filter(|_| digits.len() > 2)
                .unwrap_or((digits, "0"))
        }
    };
    let hours: i32 = hours.parse().ok()?;
    let minutes: i32 = if minutes.is_empty() { 0 } else { minutes.parse().ok()? };
    (hours <= 15 && minutes <= 59).then_some(sign * (hours * 3600 + minutes * 60))
}

fn leading(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    &text[..end]
}
