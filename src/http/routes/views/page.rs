//! The statistics as a page: the totals, and the feeds with the most subscribers. It needs no
//! script, and what others wrote is only text in it.

use chrono::SecondsFormat;
use maud::{Markup, html};

use super::TITLE_CHARS;
use super::totals::{PROTOCOLS, StatsTotals, WINDOW_DAYS};
use crate::http::kit::html::parts::{grouped, span, timestamp};
use crate::http::kit::html::{HtmlPage, Interaction, Place, Width};
use feedgate_core::redaction;
use feedgate_core::store::WatchedResource;

/// Returns the page.
pub(super) fn page(totals: &StatsTotals) -> HtmlPage<'static> {
    let at = totals.at.to_rfc3339_opts(SecondsFormat::Secs, true);
    HtmlPage {
        title: "Statistics",
        width: Width::Table,
        interaction: Interaction::None,
        place: Place::public("stats"),
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
    let topic = watched.topic.as_str();
    let text = if title.is_empty() { topic } else { &title };
    html! {
        tr {
            td data-name="Feed" { a href=(topic) rel="nofollow" { (text) } }
            td data-name="Subscribers" { (grouped(watched.subscribers.into())) }
            td data-name="Last changed" {
                @if let Some(at) = watched.changed_at { (timestamp(at)) }
            }
        }
    }
}
