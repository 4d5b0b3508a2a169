//! The list of feeds, with a search, a filter by state, and an order.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use maud::{Markup, html};
use url::form_urlencoded;
use warp::reply::Response;

use super::feed_state::{FeedState, address, title};
use super::visit::Visit;
use crate::http::kit::html::chart::sparkline;
use crate::http::kit::html::parts::{counted, grouped, optional_time, relative_time, span};
use crate::http::kit::rejection::Rejection;
use crate::jobs::runner;
use feedgate_core::resource::{Resource, ResourceId, ResourceKind};
use feedgate_core::store::{ResourcesPage, SubscriptionFilter};

/// The number of feeds that are read for a page, and searched and sorted in memory. Of an account with
/// more, the next part has an address of its own.
const FEEDS_READ: usize = 2_000;
/// The number of subscriptions of an account that are read at once to find its feeds.
const SUBSCRIPTIONS_READ: usize = 500;
/// The number of feeds on a page.
const PAGE: usize = 100;
/// The section of the navigation.
pub(super) const SECTION: &str = "console/feeds";

/// The feeds that somebody may see, from one position on.
pub(super) struct VisibleFeeds {
    /// The feeds, ascending by number.
    pub(super) resources: Vec<Resource>,
    /// The position after which more feeds follow: the number of a feed for administrators, of
    /// subscriptions for accounts.
    pub(super) next: Option<i64>,
}

impl VisibleFeeds {
    /// Reads the feeds after the position `after` of the query.
    pub(super) async fn read(visit: &Visit) -> Result<VisibleFeeds, Rejection> {
        VisibleFeeds::read_after(visit, visit.value("after").parse().unwrap_or(0).max(0)).await
    }

    /// Reads the feeds after the position `after`.
    pub(super) async fn read_after(visit: &Visit, after: i64) -> Result<VisibleFeeds, Rejection> {
        let Some(account) = visit.visible_account()? else {
            let page = visit.gateway.store.resources_page(ResourceId(after), FEEDS_READ).await;
            let ResourcesPage { resources, next } =
                page.map_err(|err| Rejection::unavailable(&err))?;
            return Ok(VisibleFeeds { resources, next: next.map(|id| id.0) });
        };
        let (mut resources, mut seen) = (Vec::new(), BTreeSet::new());
        let mut offset = usize::try_from(after).unwrap_or(usize::MAX);
        while resources.len() < FEEDS_READ {
            let filter = SubscriptionFilter {
                account: Some(account),
                offset,
                limit: SUBSCRIPTIONS_READ,
                ..SubscriptionFilter::default()
            };
            let listed = visit.gateway.store.list(&filter).await;
            let (listed, _) = listed.map_err(|err| Rejection::unavailable(&err))?;
            let is_end = listed.len() < SUBSCRIPTIONS_READ;
            offset = offset.saturating_add(listed.len());
            let new = listed.into_iter().map(|listed| listed.resource).filter(|resource| {
                resource.kind != ResourceKind::Collection && seen.insert(resource.id.0)
            });
            resources.extend(new);
            if is_end {
                return Ok(VisibleFeeds { resources, next: None });
            }
        }
        Ok(VisibleFeeds { resources, next: i64::try_from(offset).ok() })
    }
}

/// The orders of the list: the word in the address, and its name.
const ORDERS: &[(&str, &str)] = &[
    ("title", "title"),
    ("changed", "last change"),
    ("fetch", "next fetch"),
    ("subscribers", "subscribers"),
];

/// Returns the page.
pub(super) async fn page(visit: &Visit) -> Result<Response, Rejection> {
    let now = runner::now();
    let VisibleFeeds { resources, next } = VisibleFeeds::read(visit).await?;
    let is_all = next.is_none() && visit.value("after").is_empty();
    let all = resources.len();
    let mut found: Vec<&Resource> =
        resources.iter().filter(|feed| matches(visit, feed, now)).collect();
    sort(&mut found, visit.value("sort"));
    let begin = visit.value("page").parse::<usize>().unwrap_or(1).clamp(1, FEEDS_READ);
    let visible: Vec<&Resource> =
        found.iter().copied().skip((begin - 1) * PAGE).take(PAGE).collect();
    let content = html! {
        p.actions {
            a.button href=(visit.address("console/feeds/add")) { "Add a feed" }
            a.button href=(visit.address("console/opml")) { "Import or export OPML" }
        }
        (filter(visit))
        p role="status" {
            (counted(found.len() as u64, "feed"))
            @if found.len() < all { " of " (grouped(all as u64)) }
            @if !is_all { " in this part of the list" }
        }
        (feeds_table(visit, &visible, now))
        nav.pages aria-label="Pages" {
            @if begin > 1 { a rel="prev" href=(link(visit, "page", begin - 1)) { "Previous" } }
            @if found.len() > begin * PAGE {
                a rel="next" href=(link(visit, "page", begin + 1)) { "Next" }
            }
            @if let Some(next) = next {
                a href=(visit.address(&format!("{SECTION}?after={next}"))) { "More feeds" }
            }
        }
    };
    Ok(visit.page("Feeds", SECTION, content))
}

fn matches(visit: &Visit, feed: &Resource, now: DateTime<Utc>) -> bool {
    let (query, state) = (visit.value("q").to_lowercase(), visit.value("state"));
    let is_named = query.is_empty()
        || feed.status.title.to_lowercase().contains(&query)
        || address(feed).to_lowercase().contains(&query);
    is_named && (state.is_empty() || FeedState::from_resource(feed, now).as_str() == state)
}

fn sort(feeds: &mut [&Resource], order: &str) {
    match order {
        "changed" => feeds.sort_by_key(|feed| std::cmp::Reverse(feed.polling.last_new)),
        "fetch" => feeds.sort_by_key(|feed| feed.next_fetch),
        "subscribers" => feeds.sort_by_key(|feed| std::cmp::Reverse(feed.subscribers)),
        _ => feeds.sort_by_cached_key(|feed| title(feed).to_lowercase()),
    }
}

fn filter(visit: &Visit) -> Markup {
    let (state, order) = (visit.value("state"), visit.value("sort"));
    html! {
        form.filter method="get" action=(visit.address(SECTION)) {
            label { "Search "
                input type="search" name="q" value=(visit.value("q")) placeholder="title or address";
            }
            label { "State "
                select name="state" {
                    option value="" { "any" }
                    @for held in FeedState::ALL.map(FeedState::as_str) {
                        option selected[held == state] { (held) }
                    }
                }
            }
            label { "Order "
                select name="sort" {
                    @for (word, name) in ORDERS {
                        option value=(word) selected[*word == order] { (name) }
                    }
                }
            }
            button type="submit" { "Show" }
        }
    }
}

/// Returns the address of this list with another value of one parameter.
fn link(visit: &Visit, name: &str, value: usize) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for kept in ["q", "state", "sort", "after"] {
        if !visit.value(kept).is_empty() {
            query.append_pair(kept, visit.value(kept));
        }
    }
    query.append_pair(name, &value.to_string());
    visit.address(&format!("{SECTION}?{}", query.finish()))
}

/// Returns feeds as a table.
pub(super) fn feeds_table(visit: &Visit, feeds: &[&Resource], now: DateTime<Utc>) -> Markup {
    html! {
        table.records {
            thead { tr {
                @for name in ["Feed", "State", "Last change", "Entries a day", "Next fetch"] {
                    th scope="col" { (name) }
                }
                th.number scope="col" { "Subscribers" }
            } }
            tbody {
                @for feed in feeds { (row(visit, feed, now)) }
                @if feeds.is_empty() { tr { td colspan="6" { "No feeds found." } } }
            }
        }
    }
}

fn row(visit: &Visit, feed: &Resource, now: DateTime<Utc>) -> Markup {
    let state = FeedState::from_resource(feed, now);
    let (title, address) = (title(feed), address(feed));
    html! {
        tr {
            td data-name="" {
                a href=(visit.address(&format!("{SECTION}/{}", feed.id))) { (title) }
                @if title != address { br; small { (address) } }
            }
            td data-name="State" {
                (state.badge())
                @if feed.status.is_failing() { br; small { (feed.status.http_message) } }
            }
            td data-name="Last change" { (optional_time(feed.polling.last_new, now)) }
            td data-name="Entries a day" { (entries_a_day(feed, now)) }
            td data-name="Next fetch" {
                @if state == FeedState::Gone { "none" } @else {
                    (relative_time(feed.next_fetch, now))
                    @if feed.status.period_s > 0 {
                        br; small { "every " (span(feed.status.period_s.into()))
                            @if !feed.status.period_reason.is_empty() {
                                ": " (feed.status.period_reason)
                            } }
                    }
                }
            }
            td.number data-name="Subscribers" { (grouped(feed.subscribers.into())) }
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
