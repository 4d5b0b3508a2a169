//! The list of feeds, with a search, a filter by state, an order, and columns that can be hidden.

use chrono::{DateTime, Utc};
use maud::{Markup, html};
use warp::reply::Response;

use super::feed_state::{address, badge_of, site_tile, title};
use super::list_columns::{ColumnList, ListColumn, cells, head};
use super::list_totals::ListTotals;
use super::paging::Paging;
use super::visit::Visit;
use crate::http::kit::html::chart::sparkline;
use crate::http::kit::html::parts::{
    counted, empty_row, grouped, optional_time, relative_time, span, web_address,
};
use crate::http::kit::rejection::Rejection;
use crate::jobs::runner;
use feedgate_core::account::Scope;
use feedgate_core::feed_name::NameSearch;
use feedgate_core::feed_state::FeedState;
use feedgate_core::resource::Resource;
use feedgate_core::store::{FeedOrder, FeedQuery, FeedsFound, ListPosition};

/// The number of feeds on a page.
const PAGE: usize = 50;
/// The section of the navigation.
pub(super) const SECTION: &str = "console/feeds";
/// The parameters of the list.
const PARAMETERS: &[&str] = &["q", "state", "sort"];
/// The states of the filter: those that an index finds.
const STATES: [FeedState; 5] =
    [FeedState::Failing, FeedState::Gone, FeedState::New, FeedState::Moved, FeedState::Pushed];

/// The orders of the list: the word in the address, and its name.
const ORDERS: &[(&str, &str)] =
    &[("", "title"), ("changed", "last change"), ("fetch", "next fetch")];

/// The list, with its columns.
pub(super) static LIST: ColumnList<Resource> = ColumnList {
    name: "feeds",
    parameters: PARAMETERS,
    columns: &[
        ListColumn { word: "feed", heading: "Feed", class: Some("main"), cell: feed_cell },
        ListColumn { word: "state", heading: "State", class: Some("state"), cell: state_cell },
        ListColumn {
            word: "change",
            heading: "Last change",
            class: None,
            cell: |_, feed, now| optional_time(feed.polling.last_new, now),
        },
        ListColumn {
            word: "entries",
            heading: "Received a day",
            class: None,
            cell: |_, feed, now| entries_a_day(feed, now),
        },
        ListColumn { word: "fetch", heading: "Next fetch", class: None, cell: next_fetch_cell },
        ListColumn {
            word: "subscribers",
            heading: "Subscribers",
            class: Some("number"),
            cell: |_, feed, _| html! { (grouped(feed.subscribers.into())) },
        },
    ],
};

/// Returns the page.
pub(super) async fn page(visit: &Visit) -> Result<Response, Rejection> {
    let (now, paging) = (runner::now(), Paging::read(visit));
    let query = FeedQuery {
        account: visit.visible_account()?,
        search: NameSearch::parse(visit.value("q")),
        state: FeedState::from_word(visit.value("state")).filter(|state| STATES.contains(state)),
        order: match visit.value("sort") {
            "changed" => FeedOrder::LastChange,
            "fetch" => FeedOrder::NextFetch,
            _ => FeedOrder::Title,
        },
        after: ListPosition::from_param(&paging.after).unwrap_or_default(),
        limit: PAGE,
    };
    let found = visit.gateway.store.find_feeds(&query, now).await;
    let FeedsFound { feeds, next } = found.map_err(|err| Rejection::unavailable(&err))?;
    let content = html! {
        p.actions.head {
            a.button href=(visit.address("console/opml")) { "Import or export OPML" }
            @if visit.allows(Scope::Subscribe) {
                a.button.primary href=(visit.address("console/feeds/add")) { "Add a feed" }
            }
        }
        p.state role="status" { (status(visit, &query, feeds.len(), next.is_some()).await?) }
        div.actions {
            (filter(visit))
            (LIST.form(visit))
        }
        (feeds_table(visit, &LIST.displayed(visit), &feeds, now))
        (paging.links(visit, (SECTION, PARAMETERS), next.map(|next| next.to_param())))
    };
    Ok(visit.page("Feeds", SECTION, content))
}

/// Returns how many feeds the list has.
async fn status(
    visit: &Visit,
    query: &FeedQuery,
    found: usize,
    is_more: bool,
) -> Result<Markup, Rejection> {
    let is_filtered = query.state.is_some() || !query.search.words.is_empty();
    Ok(match (is_filtered, is_more) {
        (false, _) => {
            let total = ListTotals::read(visit).await?.feeds();
            html! { (total) " feed" @if total != "1" { "s" } }
        }
        (true, true) => {
            html! { (counted(found as u64, "feed")) " on this page, and there may be more" }
        }
        (true, false) if query.after != ListPosition::default() => {
            html! { (counted(found as u64, "feed")) " on this page" }
        }
        (true, false) => html! { (counted(found as u64, "feed")) " found" },
    })
}

fn filter(visit: &Visit) -> Markup {
    let state = visit.value("state");
    html! {
        form.filter method="get" action=(visit.address(SECTION)) {
            label { "Search "
                input type="search" name="q" value=(visit.value("q"))
                    placeholder="words of title or address";
            }
            label { "State "
                select name="state" {
                    option value="" { "any" }
                    @for held in STATES.map(FeedState::as_str) {
                        option selected[held == state] { (held) }
                    }
                }
            }
            label { "Order "
                select name="sort" {
                    @for (word, name) in ORDERS {
                        option value=(word) selected[*word == visit.value("sort")] { (name) }
                    }
                }
            }
            button type="submit" { "Show" }
        }
    }
}

/// Returns feeds as a table with a line for each, and a second one in grey.
pub(super) fn feeds_table(
    visit: &Visit,
    columns: &[&ListColumn<Resource>],
    feeds: &[Resource],
    now: DateTime<Utc>,
) -> Markup {
    html! {
        table.records.dense {
            (head(columns, &html! {}))
            tbody {
                @for feed in feeds { tr { (cells(columns, visit, feed, now)) } }
                @if feeds.is_empty() {
                    (empty_row(columns.len(), "No feeds found.", what_next(visit)))
                }
            }
        }
    }
}

/// Returns what to do if the list is empty.
fn what_next(visit: &Visit) -> Markup {
    let is_filtered = ["q", "state"].iter().any(|name| !visit.value(name).is_empty());
    html! {
        @if is_filtered {
            a href=(visit.address(SECTION)) { "Show all feeds" } "."
        } @else if visit.allows(Scope::Subscribe) {
            a href=(visit.address("console/feeds/add")) { "Add a feed" }
            ": a preview shows what it contains."
        }
    }
}

fn feed_cell(visit: &Visit, feed: &Resource, _: DateTime<Utc>) -> Markup {
    let (title, address) = (title(feed), address(feed));
    let path = visit.address(&format!("{SECTION}/{}", feed.id));
    html! {
        @if title == address {
            a href=(path) { (site_tile(visit, feed)) (web_address(&address)) }
        } @else {
            a href=(path) title=(title) { (site_tile(visit, feed)) (title) }
            small { (web_address(&address)) }
        }
    }
}

fn state_cell(_: &Visit, feed: &Resource, now: DateTime<Utc>) -> Markup {
    html! {
        (badge_of(FeedState::from_resource(feed, now)))
        @if feed.status.is_failing() {
            @let message = feed.status.http_message.as_str();
            small title=(message) {
                (message.strip_prefix("the server responded with ").unwrap_or(message))
            }
        }
    }
}

fn next_fetch_cell(_: &Visit, feed: &Resource, now: DateTime<Utc>) -> Markup {
    html! {
        @if FeedState::from_resource(feed, now) == FeedState::Gone { "none" } @else {
            (relative_time(feed.next_fetch, now))
            @if feed.status.period_s > 0 {
                small title=(feed.status.period_reason) {
                    "every " (span(feed.status.period_s.into()))
                }
            }
        }
    }
}

/// Returns how many entries came on each of the last days, as a chart with its numbers as text.
pub(super) fn entries_a_day(feed: &Resource, now: DateTime<Utc>) -> Markup {
    let days = feed.status.daily.last_days(now).map(u64::from);
    let (total, most) = (days.iter().sum::<u64>(), days.iter().max().copied().unwrap_or(0));
    if total == 0 {
        return html! { span.absent { "none in " (days.len()) " days" } };
    }
    let text = format!(
        "{total} new entries in {} days, at most {most} on a day, {} today",
        days.len(),
        days[days.len() - 1],
    );
    html! { (sparkline(&text, &days)) small { (grouped(total)) " in " (days.len()) " days" } }
}
