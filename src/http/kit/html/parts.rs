//! Parts of pages: times, numbers, states.

use chrono::{DateTime, SecondsFormat, Utc};
use maud::{Markup, html};

/// The colour of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// All is well.
    Good,
    /// Something needs attention, and may mend itself.
    Warning,
    /// Something failed.
    Bad,
    /// Neither good nor bad.
    Neutral,
}

impl Tone {
    fn as_str(self) -> &'static str {
        match self {
            Tone::Good => "good",
            Tone::Warning => "warning",
            Tone::Bad => "bad",
            Tone::Neutral => "neutral",
        }
    }
}

/// Returns a state, as a word with a colour.
pub(crate) fn badge(tone: Tone, word: &str) -> Markup {
    html! { span.badge.(tone.as_str()) { (word) } }
}

/// Returns an address in one line, with its host in bold. What does not fit is cut by the browser, and in the
/// title.
pub(crate) fn web_address(address: &str) -> Markup {
    let begin = address.find("://").map_or(0, |at| at + 3);
    let end = address[begin..].find(['/', '?', '#']).map_or(address.len(), |at| begin + at);
    let (scheme, host, path) = (&address[..begin], &address[begin..end], &address[end..]);
    html! {
       span.address title=(address) {
           @if !scheme.is_empty() { span.scheme { (scheme) } }
           b { (host) } (path)
       }
    }
}

/// Returns the way to a page: the pages above it, each with its name and its address.
pub(crate) fn crumbs<'n>(above: impl Iterator<Item = (&'n str, String)>) -> Markup {
    html! {
        nav.crumbs aria-label="Breadcrumbs" {
            @for (name, address) in above { a href=(address) { (name) } " / " }
        }
    }
}

/// Returns a text that people copy, for which the script of the console adds a button.
pub(crate) fn copyable(text: &str) -> Markup {
    html! { pre data-copy tabindex="0" { code { (text) } } }
}

/// Returns a time in UTC. Pages tell times in this way, or by their distance.
pub(crate) fn timestamp(at: DateTime<Utc>) -> Markup {
    let exact = at.to_rfc3339_opts(SecondsFormat::Secs, true);
    html! { time datetime=(exact) title=(exact) { (at.format("%Y-%m-%d %H:%M:%S")) " UTC" } }
}

/// Returns how far a time is from `now`, with the time itself as its title.
pub(crate) fn relative_time(at: DateTime<Utc>, now: DateTime<Utc>) -> Markup {
    let exact = at.to_rfc3339_opts(SecondsFormat::Secs, true);
    let distance = (now - at).num_seconds();
    let text = match distance {
        0..=1 => "now".to_owned(),
        2.. => format!("{} ago", rough_span(distance.unsigned_abs())),
        _ => format!("in {}", rough_span(distance.unsigned_abs())),
    };
    html! { time datetime=(exact) title=(exact) { (text) } }
}

/// Returns the time of something that happened, or did not yet.
pub(crate) fn optional_time(at: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Markup {
    match at {
        Some(at) => html! {
            @if (0..=1).contains(&(now - at).num_seconds()) { "just " }
            (relative_time(at, now))
        },
        None => html! { span.absent { "never" } },
    }
}

/// Returns the row of a table of `columns` without records: what is missing, and what to do next.
pub(crate) fn empty_row(columns: usize, missing: &str, next: Markup) -> Markup {
    html! { tr { td.empty colspan=(columns) { b { (missing) } " " (next) } } }
}

/// Returns a number with groups of digits: `1 234 567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            grouped.push('\u{a0}');
        }
        grouped.push(digit);
    }
    grouped
}

/// Returns a duration, rounded to two units, `3 d 4 h`, or to one from ten of the first on: `56 min`.
pub(crate) fn span(secs: u64) -> String {
    let first = largest_unit(secs);
    let exact = if secs >= 10 * UNITS[first].0 { first } else { first + 1 };
    let step = UNITS.get(exact).map_or(1, |(unit, _)| *unit);
    units((secs + step / 2) / step * step, 2)
}

/// Returns a duration in its largest unit: `3 d`.
pub(crate) fn rough_span(secs: u64) -> String {
    units(secs, 1)
}

/// The units of durations, in seconds. A year has 365 days.
const UNITS: [(u64, &str); 5] =
    [(365 * 86_400, "y"), (86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];

/// Returns the place of the largest unit of a duration in [`UNITS`]. Up to two years, days say more.
fn largest_unit(secs: u64) -> usize {
    let is_long = secs >= 2 * UNITS[0].0;
    let unit = UNITS.iter().position(|(unit, _)| secs >= *unit).unwrap_or(UNITS.len() - 1);
    if unit == 0 && !is_long { 1 } else { unit }
}

/// Returns a duration in `count` units at most, without those of which there is none.
fn units(secs: u64, count: usize) -> String {
    let mut left = secs;
    let parts = UNITS[largest_unit(secs)..].iter().take(count).map(|(unit, name)| {
        let many = left / unit;
        left %= unit;
        (many, format!("{many}\u{a0}{name}"))
    });
    let parts: Vec<(u64, String)> = parts.collect();
    let kept = parts.iter().enumerate().filter(|(n, (many, _))| *n == 0 || *many > 0);
    kept.map(|(_, (_, text))| text.as_str()).collect::<Vec<_>>().join(" ")
}

/// Returns `word` with its number, in the plural unless there is exactly one.
pub(crate) fn counted(count: u64, word: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{}\u{a0}{word}{ending}", grouped(count))
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        for (number, want) in [(0, "0"), (999, "999"), (1_000, "1 000"), (1_234_567, "1 234 567")] {
            assert_eq!(grouped(number).replace('\u{a0}', " "), want);
        }
        #[rustfmt::skip]
        let cases = [
            (0, "0 s"), (61, "1 min 1 s"), (300, "5 min"), (3_350, "56 min"), (3_599, "1 h"),
            (6_569, "1 h 49 min"), (7_199, "2 h"), (86_399, "1 d"), (90_000, "1 d 1 h"),
            (31_536_000, "365 d"), (70_000_000, "2 y 80 d"),
        ];
        for (secs, want) in cases {
            assert_eq!(span(secs).replace('\u{a0}', " "), want);
        }
        for (count, want) in [(0, "0 feeds"), (1, "1 feed"), (2_000, "2 000 feeds")] {
            assert_eq!(counted(count, "feed").replace('\u{a0}', " "), want);
        }
    }

    #[test]
    fn the_host_of_an_address_is_bold() {
        #[rustfmt::skip]
        let cases = [
            ("https://a.test:8/b?c=d", "<span class=\"scheme\">https://</span><b>a.test:8</b>/b?c=d"),
            ("http://a.test?b/c",      "<span class=\"scheme\">http://</span><b>a.test</b>?b/c"),
            ("a.test",                 "<b>a.test</b>"),
        ];
        for (address, want) in cases {
            let text = web_address(address).into_string();
            assert!(text.contains(&format!("title=\"{address}\">{want}<")), "{text}");
        }
    }

    #[test]
    fn times_are_told_by_their_distance() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
        #[rustfmt::skip]
        let cases = [
            (0, "now"), (-90, "1 min ago"), (3_700, "in 1 h"), (-200_000, "2 d ago"),
            (-8_825 * 86_400, "24 y ago"),
        ];
        for (secs, want) in cases {
            let visible = relative_time(now + TimeDelta::seconds(secs), now).into_string();
            assert!(
                visible.replace('\u{a0}', " ").ends_with(&format!(">{want}</time>")),
                "{visible}"
            );
        }
        let lately = optional_time(Some(now), now).into_string();
        assert!(lately.starts_with("just <time ") && lately.ends_with(">now</time>"), "{lately}");
    }
}
