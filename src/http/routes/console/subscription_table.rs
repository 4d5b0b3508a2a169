//! Subscriptions as a table with a line for each, and a second one in grey.

use chrono::{DateTime, Utc};
use maud::{Markup, html};

use super::feed_state::{site_tile, title};
use super::list_columns::{ColumnList, ListColumn, cells, head};
use super::subscription_filter::PARAMETERS;
use super::subscription_state::{SECTION, next_in_short, protocol_name, state_badge, to_path};
use super::visit::Visit;
use crate::http::kit::html::parts::{empty_row, grouped, relative_time, web_address};
use feedgate_core::account::Scope;
use feedgate_core::store::ListedSubscription;

/// The word of the column of feeds.
const FEED: &str = "feed";

/// The list, with its columns.
pub(super) static LIST: ColumnList<ListedSubscription> = ColumnList {
    name: "subscriptions",
    parameters: PARAMETERS,
    columns: &[
        ListColumn {
            word: "callback",
            heading: "Callback",
            class: Some("main"),
            cell: callback_cell,
        },
        ListColumn { word: FEED, heading: "Feed", class: None, cell: feed_cell },
        ListColumn { word: "state", heading: "State", class: Some("state"), cell: state_cell },
        ListColumn {
            word: "next",
            heading: "Next",
            class: Some("next"),
            cell: |_, listed, now| next_in_short(listed, now),
        },
        ListColumn { word: "behind", heading: "Behind", class: Some("number"), cell: behind_cell },
    ],
};

/// Returns subscriptions as a table.
pub(super) fn table<'s>(
    visit: &Visit,
    listed: impl Iterator<Item = &'s ListedSubscription>,
    now: DateTime<Utc>,
) -> Markup {
    table_with(visit, &LIST.all(), listed, now)
}

/// Returns subscriptions to one feed as a table.
pub(super) fn table_of_feed<'s>(
    visit: &Visit,
    listed: impl Iterator<Item = &'s ListedSubscription>,
    now: DateTime<Utc>,
) -> Markup {
    let mut columns = LIST.all();
    columns.retain(|column| column.word != FEED);
    table_with(visit, &columns, listed, now)
}

fn table_with<'s>(
    visit: &Visit,
    columns: &[&ListColumn<ListedSubscription>],
    listed: impl Iterator<Item = &'s ListedSubscription>,
    now: DateTime<Utc>,
) -> Markup {
    let mut listed = listed.peekable();
    html! {
        table.records.dense {
            (head(columns, &html! {}))
            tbody {
                @if listed.peek().is_none() {
                    (empty_row(columns.len(), "No subscriptions.", html! { "Nothing is sent." }))
                }
                @for listed in listed { tr { (cells(columns, visit, listed, now)) } }
            }
        }
    }
}

/// Returns the list of subscriptions: a table with a checkbox in each row, without the columns that are hidden.
pub(super) fn selectable(
    visit: &Visit,
    listed: &[ListedSubscription],
    now: DateTime<Utc>,
) -> Markup {
    let columns = LIST.displayed(visit);
    html! {
        table.records.dense.picks {
            (head(&columns, &select_all()))
            tbody {
                @for listed in listed { tr {
                    (select(listed))
                    (cells(&columns, visit, listed, now))
                } }
                @if listed.is_empty() {
                    (empty_row(1 + columns.len(), "No subscriptions found.", what_next(visit)))
                }
            }
        }
    }
}

/// Returns what to do if the list is empty.
fn what_next(visit: &Visit) -> Markup {
    let is_filtered = ["q", "state", "feed"].iter().any(|name| !visit.value(name).is_empty());
    html! {
        @if is_filtered {
            a href=(visit.address(SECTION)) { "Show all subscriptions" } "."
        } @else if visit.allows(Scope::Subscribe) {
            a href=(visit.address("console/feeds/add")) { "Add a feed" }
            ", and name the callback that is to be sent its entries."
        }
    }
}

fn select_all() -> Markup {
    html! {
        th.pick scope="col" {
            span.unseen { "Select" }
            input type="checkbox" data-all hidden aria-label="Select all on this page";
        }
    }
}

fn select(listed: &ListedSubscription) -> Markup {
    let name = format!("Select {}", listed.subscription.callback.as_str());
    html! {
        td.pick {
            input type="checkbox" name="id" value=(to_path(listed.subscription.id))
                aria-label=(name);
        }
    }
}

fn callback_cell(visit: &Visit, listed: &ListedSubscription, now: DateTime<Utc>) -> Markup {
    let subscription = &listed.subscription;
    let path = visit.address(&format!("{SECTION}/{}", to_path(subscription.id)));
    html! {
        a href=(path) { (web_address(subscription.callback.as_str())) }
        small.narrow { (title(&listed.resource)) }
        small { (protocol_name(subscription)) ", made " (relative_time(subscription.created_at, now)) }
    }
}

fn feed_cell(visit: &Visit, listed: &ListedSubscription, _: DateTime<Utc>) -> Markup {
    let feed = visit.address(&format!("console/feeds/{}", listed.resource.id));
    let name = title(&listed.resource);
    html! { a href=(feed) title=(name) { (site_tile(visit, &listed.resource)) (name) } }
}

/// Returns the state, and if the callback fails what it responded last.
fn state_cell(_: &Visit, listed: &ListedSubscription, now: DateTime<Utc>) -> Markup {
    let last = listed.delivery.last_attempt.as_ref().filter(|_| listed.subscription.failures > 0);
    html! {
        (state_badge(listed, now))
        @if let Some(last) = last {
            small title=(last.response.excerpt) {
                @match last.response.status {
                    Some(status) => (status),
                    None => "no response",
                }
                ", " (relative_time(last.at, now))
            }
        }
    }
}

fn behind_cell(_: &Visit, listed: &ListedSubscription, _: DateTime<Utc>) -> Markup {
    html! { (grouped(listed.delivery.lag(&listed.subscription).unsigned_abs())) }
}
