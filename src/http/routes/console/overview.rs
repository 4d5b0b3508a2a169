//! The first page after signing in: how much there is, what needs attention, what happened lately.

use std::collections::HashSet;

use maud::{Markup, html};
use warp::reply::Response;

use super::feed_state::{FeedState, address};
use super::feeds::{VisibleFeeds, feeds_table};
use super::visit::Visit;
use crate::http::kit::html::parts::{grouped, relative_time, span};
use crate::http::kit::rejection::Rejection;
use crate::jobs::runner;
use feedgate_core::event::{EventFilter, EventOutcome, EventViewer, StoredEvent};
use feedgate_core::store::SubscriptionFilter;

/// The number of subscriptions that are read to find those that fail.
const SUBSCRIPTIONS_READ: usize = 500;
/// The number of feeds and of subscriptions that are listed because they need attention.
const ATTENTION: usize = 8;
/// The number of events that are listed, and that are read to find those of the account.
const EVENTS: usize = 12;
const EVENTS_READ: usize = 200;

/// Returns the page.
pub(super) async fn page(visit: &Visit) -> Result<Response, Rejection> {
    let unavailable = |err| Rejection::unavailable(&err);
    let (store, now) = (&visit.gateway.store, runner::now());
    let account = visit.visible_account()?;
    let feeds = VisibleFeeds::read(visit).await?;
    let filter =
        SubscriptionFilter { account, limit: SUBSCRIPTIONS_READ, ..SubscriptionFilter::default() };
    let (subscriptions, total) = store.list(&filter).await.map_err(unavailable)?;
    let viewer = account.map_or(EventViewer::Admin, EventViewer::Account);
    let wanted = EventFilter { viewer, limit: EVENTS_READ, ..EventFilter::default() };
    let mut events = store.events(&wanted).await.map_err(unavailable)?.events;
    let own: HashSet<String> = feeds.resources.iter().map(address).collect();
    events.retain(|kept| viewer.owns(&kept.event) || own.contains(&kept.event.feed));
    events.truncate(EVENTS);
    let failing_feeds: Vec<_> = feeds
        .resources
        .iter()
        .filter(|feed| {
            matches!(FeedState::from_resource(feed, now), FeedState::Failing | FeedState::Gone)
        })
        .collect();
    let failing: Vec<_> =
        subscriptions.iter().filter(|listed| listed.subscription.failures > 0).collect();
    let content = html! {
        (cards(visit, &feeds, total, (failing_feeds.len(), failing.len())).await?)
        @if feeds.resources.is_empty() { (getting_started(visit)) }
        @if !failing_feeds.is_empty() {
            h2 { "Feeds that need attention" }
            (feeds_table(visit, &failing_feeds[..failing_feeds.len().min(ATTENTION)], now))
        }
        @if !failing.is_empty() {
            h2 { "Subscriptions that need attention" }
            (super::subscriptions::table(visit, failing.iter().copied().take(ATTENTION), now))
        }
        h2 { "What happened lately" }
        (recent_events(visit, &events))
    };
    Ok(visit.page("Overview", "console", content))
}

async fn cards(
    visit: &Visit,
    feeds: &VisibleFeeds,
    subscriptions: u64,
    (failing_feeds, failing): (usize, usize),
) -> Result<Markup, Rejection> {
    let count = grouped(feeds.resources.len() as u64);
    let more = if feeds.next.is_some() { "+" } else { "" };
    let gauges = match visit.is_admin() {
        true => {
            let counted = visit.gateway.gauges.get(&visit.gateway.store).await;
            Some(counted.map_err(|err| Rejection::unavailable(&err))?.gauges)
        }
        false => None,
    };
    Ok(html! {
        div.cards {
            a.card href=(visit.address("console/feeds")) { "Feeds" b { (count) (more) } }
            a.card href=(visit.address("console/feeds?state=failing")) {
                "Failing feeds" b { (failing_feeds) }
            }
            a.card href=(visit.address("console/subscriptions")) {
                "Subscriptions" b { (grouped(subscriptions)) }
            }
            a.card href=(visit.address("console/subscriptions?state=failing")) {
                "Failing subscriptions" b { (failing) }
            }
            @if let Some(gauges) = gauges {
                div.card { "Deliveries waiting" b { (grouped(gauges.due)) }
                    small { "the oldest for " (span(gauges.oldest_due.deliveries_s)) }
                }
                div.card { "Verifications waiting" b { (grouped(gauges.pending_verifications)) } }
            }
        }
    })
}

fn getting_started(visit: &Visit) -> Markup {
    html! {
        h2 { "Start here" }
        p {
            "There are no feeds yet. " a href=(visit.address("console/feeds/add")) { "Add a feed" }
            ": enter the address of a feed or of a web page, see what it contains, and say where its \
             entries are to be sent."
        }
    }
}

fn recent_events(visit: &Visit, events: &[StoredEvent]) -> Markup {
    let now = runner::now();
    html! {
        table.records {
            thead { tr { @for name in ["Time", "Event", "Feed", "Message"] {
                th scope="col" { (name) }
            } } }
            tbody {
                @for StoredEvent { event, .. } in events {
                    tr.(event.outcome.as_str()) {
                        td data-name="Time" { (relative_time(event.at, now)) }
                        td data-name="Event" {
                            (event.kind.as_str()) " "
                            @if event.outcome != EventOutcome::Ok { (event.outcome.as_str()) }
                        }
                        td data-name="Feed" { (event.feed) }
                        td data-name="Message" { (event.detail) }
                    }
                }
                @if events.is_empty() { tr { td colspan="4" { "Nothing has happened yet." } } }
            }
        }
        p { a href=(visit.address("viewLog")) { "Event log" } }
    }
}
