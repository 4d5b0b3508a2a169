//! Subscriptions as a table with a line for each, and a second one in grey.

use chrono::{DateTime, Utc};
use maud::{Markup, html};

use super::feed_state::title;
use super::subscription_state::{SECTION, next_step, state_badge, to_path};
use super::visit::Visit;
use crate::http::kit::html::parts::{empty_row, grouped, relative_time, web_address};
use feedgate_core::account::Scope;
use feedgate_core::store::ListedSubscription;

/// Returns subscriptions as a table.
pub(super) fn table<'s>(
    visit: &Visit,
    listed: impl Iterator<Item = &'s ListedSubscription>,
    now: DateTime<Utc>,
) -> Markup {
    let mut rows = listed.map(|listed| row(visit, listed, now, false)).peekable();
    html! {
        table.records.dense {
            (head(false))
            tbody {
                @if rows.peek().is_none() {
                    (empty_row(5, "No subscriptions.", html! { "Nobody is sent the entries of this feed." }))
                }
                @for row in rows { (row) }
            }
        }
    }
}

/// Returns subscriptions as a table with a checkbox in each row.
pub(super) fn selectable(
    visit: &Visit,
    listed: &[ListedSubscription],
    now: DateTime<Utc>,
) -> Markup {
    html! {
        table.records.dense.picks {
            (head(true))
            tbody {
                @for listed in listed { (row(visit, listed, now, true)) }
                @if listed.is_empty() {
                    (empty_row(6, "No subscriptions found.", what_next(visit)))
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

fn head(is_selectable: bool) -> Markup {
    html! {
        thead { tr {
            @if is_selectable {
                th.pick scope="col" {
                    span.unseen { "Select" }
                    input type="checkbox" data-all hidden aria-label="Select all on this page";
                }
            }
            th.main scope="col" { "Callback" }
            @for name in ["Feed", "State", "Next"] { th scope="col" { (name) } }
            th.number scope="col" { "Behind" }
        } }
    }
}

fn row(
    visit: &Visit,
    listed: &ListedSubscription,
    now: DateTime<Utc>,
    is_selectable: bool,
) -> Markup {
    let subscription = &listed.subscription;
    let path = to_path(subscription.id);
    let callback = subscription.callback.as_str();
    let (feed, name) = (format!("console/feeds/{}", listed.resource.id), title(&listed.resource));
    html! {
        tr {
            @if is_selectable {
                td.pick {
                    input type="checkbox" name="id" value=(path)
                        aria-label=(format!("Select {callback}"));
                }
            }
            td.main {
                a href=(visit.address(&format!("{SECTION}/{path}"))) { (web_address(callback)) }
                small { (subscription.protocol.as_str()) ", since "
                    (relative_time(subscription.created_at, now)) }
            }
            td { a href=(visit.address(&feed)) title=(name) { (name) } }
            td.state { (state_badge(listed, now)) }
            td { (next_step(listed, now)) }
            td.number { (grouped(listed.delivery.lag(subscription).unsigned_abs())) }
        }
    }
}
