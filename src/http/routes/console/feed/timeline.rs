//! The timeline of a feed: a line for each kind of what happened, on one axis. It is drawn by the server; a table
//! behind it says the same in words.

use chrono::{DateTime, TimeDelta, Utc};
use maud::{Markup, html};

use super::moments::{Lane, Moment};
use crate::http::kit::html::parts::{Tone, grouped, relative_time, rough_span};
use crate::http::routes::console::visit::Visit;
use feedgate_core::redaction;

/// The length of the axis, unless nothing happened in it.
const AXIS: TimeDelta = TimeDelta::hours(24);
/// The number of parts of the axis, each of which has one mark in a line.
const PARTS: usize = 48;
/// The width and height of a part, in units of the view box.
const WIDTH: usize = 10;
const HEIGHT: usize = 20;
/// The most rows of the table.
const ROWS: usize = 60;
/// The maximum length of a text in the table, in characters.
const TEXT_CHARS: usize = 200;

/// A part of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Part {
    all: u64,
    bad: u64,
    /// How many changed nothing.
    neutral: u64,
}

/// Returns the timeline of what happened, newest first.
pub(super) fn timeline(visit: &Visit, moments: &[Moment], now: DateTime<Utc>) -> Markup {
    let begins = beginning(moments, now);
    html! {
        h2 { "Timeline" }
        @if moments.is_empty() {
            p.soft { "Nothing has happened yet. The first fetch will appear here." }
        } @else {
            div.lanes {
                @for lane in Lane::ALL { (line(lane, &parts(lane, moments, begins, now), now - begins)) }
                span {}
                (axis(now - begins))
            }
            details {
                summary { "As a table" }
                p.soft {
                    "Fetches that changed nothing are those of this node since it started, at most ten."
                }
                (table(visit, moments, now))
            }
        }
    }
}

/// Returns where the axis begins: a day ago, or with the oldest moment if nothing happened since.
fn beginning(moments: &[Moment], now: DateTime<Utc>) -> DateTime<Utc> {
    let day = now - AXIS;
    match (moments.first(), moments.last()) {
        (Some(newest), Some(oldest)) if newest.at < day => oldest.at,
        _ => day,
    }
}

/// Returns the parts of a line.
fn parts(
    lane: Lane,
    moments: &[Moment],
    begins: DateTime<Utc>,
    now: DateTime<Utc>,
) -> [Part; PARTS] {
    let mut parts = [Part::default(); PARTS];
    let whole = (now - begins).num_milliseconds().max(1);
    for moment in moments.iter().filter(|moment| moment.lane == lane && moment.at >= begins) {
        let since = (moment.at - begins).num_milliseconds().clamp(0, whole);
        let part = (since as usize * PARTS / whole as usize).min(PARTS - 1);
        let part = &mut parts[part];
        part.all = part.all.saturating_add(moment.count);
        match moment.tone {
            Tone::Bad => part.bad = part.bad.saturating_add(moment.count),
            Tone::Neutral => part.neutral = part.neutral.saturating_add(moment.count),
            Tone::Good | Tone::Warning => {}
        }
    }
    parts
}

fn line(lane: Lane, parts: &[Part; PARTS], axis: TimeDelta) -> Markup {
    let sum = |of: fn(&Part) -> u64| parts.iter().map(of).fold(0, u64::saturating_add);
    let (all, bad) = (sum(|part| part.all), sum(|part| part.bad));
    let label = format!("{}: {}", lane.name(), counts(all, bad));
    html! {
        span { (lane.name()) " " small { (counts(all, bad)) } }
        svg.lane role="img" aria-label=(label) preserveAspectRatio="none"
            viewBox=(format!("0 0 {} {HEIGHT}", PARTS * WIDTH)) {
            @for (n, part) in parts.iter().enumerate().filter(|(_, part)| part.all > 0) {
                g {
                    title { (ago(axis, PARTS - n)) ": " (counts(part.all, part.bad)) }
                    @for (class, y, height) in blocks(part) {
                        rect class=(class) x=(n * WIDTH + 1) y=(y) width=(WIDTH - 2) height=(height) {}
                    }
                }
            }
        }
    }
}

/// What is drawn of a part: its class, its place and its height.
type Block = (&'static str, u64, u64);

/// Returns what is drawn of a part: below what failed, in proportion.
fn blocks(part: &Part) -> impl Iterator<Item = Block> {
    const TOP: u64 = 2;
    const WHOLE: u64 = HEIGHT as u64 - 2 * TOP;
    let Part { all, bad, neutral } = *part;
    let share = u128::from(bad) * u128::from(WHOLE) / u128::from(all.max(1));
    // What failed at least once can be seen, and what did not.
    let failed = match u64::try_from(share).unwrap_or(WHOLE) {
        _ if bad == 0 => 0,
        _ if bad >= all => WHOLE,
        share => share.clamp(WHOLE / 4, WHOLE - WHOLE / 4),
    };
    let rest = if all == bad.saturating_add(neutral) { "quiet" } else { "good" };
    let blocks = [(rest, TOP, WHOLE - failed), ("bad", TOP + WHOLE - failed, failed)];
    blocks.into_iter().filter(|(_, _, height)| *height > 0)
}

fn counts(all: u64, bad: u64) -> String {
    match bad {
        0 => grouped(all),
        bad => format!("{}, {} failed", grouped(all), grouped(bad)),
    }
}

/// Returns how long ago the part began that is so many parts before the end of the axis.
fn ago(axis: TimeDelta, parts: usize) -> String {
    let secs = axis.num_seconds().unsigned_abs() * parts as u64 / PARTS as u64;
    format!("{} ago", rough_span(secs))
}

fn axis(axis: TimeDelta) -> Markup {
    html! {
        p.ends.soft {
            @for quarter in 0..4 { small { (ago(axis, PARTS - quarter * PARTS / 4)) } }
            small { "now" }
        }
    }
}

fn table(visit: &Visit, moments: &[Moment], now: DateTime<Utc>) -> Markup {
    html! {
        table.records {
            thead { tr { @for name in ["Time", "What", "Details"] { th scope="col" { (name) } } } }
            tbody {
                @for moment in moments.iter().take(ROWS) {
                    tr.failed[moment.tone == Tone::Bad] {
                        td data-name="Time" { (relative_time(moment.at, now)) }
                        td data-name="What" { (moment.lane.name()) }
                        td data-name="Details" {
                            @let text = redaction::line(&moment.text, TEXT_CHARS);
                            @match &moment.page {
                                Some(page) => a href=(visit.address(page)) { (text) },
                                None => (text),
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(now: DateTime<Utc>, hours_ago: i64, tone: Tone) -> Moment {
        let (at, text) = (now - TimeDelta::hours(hours_ago), String::new());
        Moment { at, lane: Lane::Fetches, tone, count: 1, text, page: None }
    }

    fn classes(part: &Part) -> Vec<&'static str> {
        blocks(part).map(|(class, ..)| class).collect()
    }

    #[test]
    fn c05_moments_are_placed_on_an_axis_of_a_day_or_of_all_that_is_known() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
        let lately =
            [moment(now, 0, Tone::Good), moment(now, 12, Tone::Bad), moment(now, 90, Tone::Bad)];
        assert_eq!(beginning(&lately, now), now - AXIS);
        let placed = parts(Lane::Fetches, &lately, now - AXIS, now);
        let marked = placed.iter().enumerate().filter(|(_, part)| part.all > 0);
        let marked: Vec<_> = marked.map(|(n, part)| (n, classes(part))).collect();
        assert_eq!(marked, [(24, vec!["bad"]), (47, vec!["good"])]);
        assert_eq!(parts(Lane::Pings, &lately, now - AXIS, now), [Part::default(); PARTS]);
        let text = line(Lane::Fetches, &placed, AXIS).into_string().replace('\u{a0}', " ");
        assert!(text.contains("aria-label=\"Fetches: 2, 1 failed\""), "{text}");
        assert!(text.contains("<title>12 h ago: 1, 1 failed</title>"), "{text}");

        let old = [moment(now, 48, Tone::Neutral), moment(now, 96, Tone::Good)];
        assert_eq!(beginning(&old, now), now - TimeDelta::hours(96));
        let placed = parts(Lane::Fetches, &old, now - TimeDelta::hours(96), now);
        assert_eq!([0, 24].map(|n| classes(&placed[n])), [["good"], ["quiet"]]);
    }

    #[test]
    fn c05_what_failed_is_drawn_in_its_proportion() {
        #[rustfmt::skip]
        let cases: [(Part, &[Block]); 4] = [
            (Part { all: 2, bad: 1, neutral: 0 },   &[("good", 2, 8), ("bad", 10, 8)]),
            (Part { all: 2, bad: 1, neutral: 1 },   &[("quiet", 2, 8), ("bad", 10, 8)]),
            (Part { all: 900, bad: 1, neutral: 0 }, &[("good", 2, 12), ("bad", 14, 4)]),
            (Part { all: 3, bad: 3, neutral: 0 },   &[("bad", 2, 16)]),
        ];
        for (part, want) in cases {
            assert_eq!(blocks(&part).collect::<Vec<_>>(), want, "{part:?}");
        }
    }
}
