//! The statistics as a page: the totals, and the feeds with the most subscribers. It needs no
//! script, and what others wrote is only text in it.

use chrono::{DateTime, SecondsFormat, Utc};
use maud::{Markup, html};

use super::TITLE_CHARS;
use super::totals::{PROTOCOLS, StatsTotals, WINDOW_DAYS};
use crate::http::kit::html::{HtmlPage, Interaction, Width};
use feedgate_core::ports::WatchedResource;
use feedgate_core::redaction;

/// Returns the page.
pub(super) fn page(totals: &StatsTotals) -> HtmlPage<'static> {
    let at = totals.at.to_rfc3339_opts(SecondsFormat::Secs, true);
    HtmlPage {
        title: "Statistics",
        width: Width::Table,
        interaction: Interaction::None,
        content: html! {
            p {
                "Counted at " time datetime=(at) { (at) } ", at most once a minute. Times are in \
                 UTC. See also " a href="stats.json" { "these statistics as JSON" } ", the "
                a href="feeds.opml" { "list of feeds" } ", their "
                a href="subscriptions.json" { "subscriptions" } " and the "
                a href="viewLog" { "event log" } "."
            }
            (totals_table(totals))
            (feeds(&totals.top))
        },
    }
}

fn totals_table(totals: &StatsTotals) -> Markup {
    let mut rows = vec![
        ("Feeds with subscribers".to_owned(), grouped(totals.watched)),
        (format!("… changed in the last {WINDOW_DAYS} days"), grouped(totals.changed)),
        ("… failing".to_owned(), grouped(totals.gauges.failing)),
        ("Subscriptions".to_owned(), grouped(totals.subscriptions())),
    ];
    let by_protocol = PROTOCOLS.iter().zip(totals.by_protocol);
    rows.extend(by_protocol.map(|(name, many)| (format!("… by {name}"), grouped(many))));
    let others = [
        ("… of accounts", grouped(totals.subscriptions() - totals.open)),
        ("… whose last delivery failed", grouped(totals.failing)),
        ("Hosts of subscribers", grouped(totals.subscriber_hosts)),
        ("Pings in the last hour", grouped(totals.pings.0)),
        ("Pings in total", grouped(totals.pings.1)),
        ("Deliveries by this node", grouped(totals.deliveries.0)),
        ("… that failed", grouped(totals.deliveries.1)),
        ("Uptime of this node", span(totals.uptime_s())),
    ];
    rows.extend(others.map(|(name, number)| (name.to_owned(), number)));
    html! {
        table {
            caption { "Totals" }
            tbody id="numbers" {
                @for (name, number) in rows { tr { th scope="row" { (name) } td { (number) } } }
            }
        }
    }
}

fn feeds(top: &[WatchedResource]) -> Markup {
    html! {
        table.records {
            caption { "Feeds with the most subscribers" }
            thead {
                tr { @for name in ["Feed", "Subscribers", "Last changed"] {
                    th scope="col" { (name) }
                } }
            }
            tbody id="feeds" {
                @for watched in top { (feed(watched)) }
                @if top.is_empty() { tr { td colspan="3" { "No feeds are listed yet." } } }
            }
        }
    }
}

fn feed(watched: &WatchedResource) -> Markup {
    let title = redaction::line(&watched.title, TITLE_CHARS);
    let text = if title.is_empty() { &watched.topic } else { &title };
    html! {
        tr {
            td data-name="Feed" { a href=(watched.topic) rel="nofollow" { (text) } }
            td data-name="Subscribers" { (grouped(watched.subscribers.into())) }
            td data-name="Last changed" {
                @if let Some(at) = watched.changed_at { (timestamp(at)) }
            }
        }
    }
}

fn timestamp(at: DateTime<Utc>) -> Markup {
    html! {
        time datetime=(at.to_rfc3339_opts(SecondsFormat::Secs, true)) {
            (at.format("%Y-%m-%d %H:%M:%S"))
        }
    }
}

/// Returns a number with groups of digits: `1 234 567`.
fn grouped(number: u64) -> String {
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

/// Returns a duration in its two largest units: `3 d 4 h`.
fn span(secs: u64) -> String {
    let units = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let first = units.iter().position(|(unit, _)| secs >= *unit).unwrap_or(units.len() - 1);
    let mut left = secs;
    let parts = units[first..].iter().take(2).map(|(unit, name)| {
        let many = left / unit;
        left %= unit;
        format!("{many}\u{a0}{name}")
    });
    parts.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        for (number, want) in [(0, "0"), (999, "999"), (1_000, "1 000"), (1_234_567, "1 234 567")] {
            assert_eq!(grouped(number).replace('\u{a0}', " "), want);
        }
        #[rustfmt::skip]
        let cases = [
            (0, "0 s"), (61, "1 min 1 s"), (7_199, "1 h 59 min"), (90_000, "1 d 1 h"),
        ];
        for (secs, want) in cases {
            assert_eq!(span(secs).replace('\u{a0}', " "), want);
        }
    }
}
