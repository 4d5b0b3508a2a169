//! The statistics as a page: the totals, and the feeds with the most subscribers. It needs no
//! script, and what others wrote is only text in it.

use maud::{Markup, html};

use super::TITLE_CHARS;
use super::totals::{StatsTotals, WINDOW_DAYS};
use crate::http::kit::html::parts::{empty_row, grouped, span, timestamp};
use crate::http::kit::html::{HtmlPage, Interaction, Place, Width};
use feedgate_core::redaction;
use feedgate_core::store::WatchedResource;

/// What the page calls the protocols of notifications, in the order of the totals. Webhooks of accounts are sent
/// as those of the hub are.
const PROTOCOL_NAMES: [&str; 5] = [
    "rssCloud over http",
    "rssCloud over https",
    "rssCloud over XML-RPC",
    "rssCloud over SOAP",
    "webhooks and WebSub",
];

/// Returns the page.
pub(super) fn page(totals: &StatsTotals) -> HtmlPage<'static> {
    HtmlPage {
        title: "Statistics",
        width: Width::Table,
        interaction: Interaction::None,
        place: Place::public("stats"),
        content: html! {
            p.actions.head {
                a.button href="stats.json" { "As JSON" }
                a.button href="feeds.opml" { "Feeds" }
                a.button href="subscriptions.json" { "Subscriptions" }
            }
            p.state { "Counted " (timestamp(totals.at)) ", at most once a minute." }
            (tiles(totals))
            (feeds(&totals.top))
            (details_table(totals))
        },
    }
}

/// Returns the key figures, each with what it is made of.
fn tiles(totals: &StatsTotals) -> Markup {
    let tiles = [
        (
            "Feeds with subscribers",
            totals.watched,
            format!("{} changed in {WINDOW_DAYS} days", grouped(totals.changed)),
        ),
        ("Failing feeds", totals.gauges.failing, String::new()),
        (
            "Subscriptions",
            totals.subscriptions(),
            format!("{} of accounts", grouped(totals.subscriptions() - totals.open)),
        ),
        (
            "Accepted deliveries by this node",
            totals.deliveries.0,
            format!("{} more failed", grouped(totals.deliveries.1)),
        ),
        ("Pings in the last hour", totals.pings.0, format!("{} in total", grouped(totals.pings.1))),
    ];
    html! {
        div.cards #tiles {
            @for (name, number, further) in tiles {
                div.card {
                    (name) b { (grouped(number)) }
                    @if !further.is_empty() { small { (further) } }
                }
            }
        }
    }
}

fn details_table(totals: &StatsTotals) -> Markup {
    let by_protocol = PROTOCOL_NAMES.iter().zip(totals.by_protocol).filter(|(_, many)| *many > 0);
    let by_protocol =
        by_protocol.map(|(name, many)| (format!("Subscriptions by {name}"), grouped(many)));
    let others = [
        ("Subscriptions whose last delivery failed", grouped(totals.failing)),
        ("Hosts of subscribers", grouped(totals.subscriber_hosts)),
        ("Uptime of this node", span(totals.uptime_s())),
    ];
    let others = others.map(|(name, number)| (name.to_owned(), number));
    html! {
        table {
            caption { "In detail" }
            tbody id="numbers" {
                @for (name, number) in by_protocol.chain(others) {
                    tr { th scope="row" { (name) } td.number { (number) } }
                }
            }
        }
    }
}

fn feeds(top: &[WatchedResource]) -> Markup {
    html! {
        table.records {
            caption { "Feeds with the most subscribers" }
            thead {
                tr {
                    th scope="col" { "Feed" } th scope="col" { "Last changed" }
                    th.number scope="col" { "Subscribers" }
                }
            }
            tbody id="feeds" {
                @for watched in top { (feed(watched)) }
                @if top.is_empty() {
                    (empty_row(3, "No feeds are listed yet.", html! {
                        "Feeds to which anybody may subscribe are listed here."
                    }))
                }
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
            td data-name="Last changed" {
                @if let Some(at) = watched.changed_at { (timestamp(at)) }
            }
            td.number data-name="Subscribers" { (grouped(watched.subscribers.into())) }
        }
    }
}
