//! The first page after signing in: how much there is, what needs attention, what happened lately.

use chrono::{DateTime, Utc};
use maud::{Markup, html};
use warp::reply::Response;

use super::accounts;
use super::feeds::{self, feeds_table};
use super::list_totals::ListTotals;
use super::subscription_table;
use super::traffic_charts;
use super::visit::Visit;
use crate::http::kit::html::parts::{empty_row, grouped, relative_time, span, web_address};
use crate::http::kit::rejection::Rejection;
use crate::http::routes::event_links::EventLinks;
use crate::jobs::runner;
use feedgate_core::account::{AccountId, Scope};
use feedgate_core::event::{EventFilter, EventViewer, StoredEvent};
use feedgate_core::feed_state::FeedState;
use feedgate_core::resource::Resource;
use feedgate_core::store::{
    FeedQuery, ListedState, ListedSubscription, StoreError, SubscriptionQuery,
};
use feedgate_core::traffic::{TrafficSubject, TrafficUnit};

/// The lists of what fails.
const FAILING_FEEDS: &str = "console/feeds?state=failing";
const FAILING_SUBSCRIPTIONS: &str = "console/subscriptions?state=failing";
/// The number of feeds and of subscriptions that are listed because they need attention.
const ATTENTION: usize = 8;
/// The number of events that are listed, and that are read to find those of the account.
const EVENTS: usize = 12;
const EVENTS_READ: usize = 200;

/// Returns the page; whose token may not see feeds and subscriptions gets to the own account.
pub(super) async fn page(visit: &Visit) -> Result<Response, Rejection> {
    if !visit.is_admin() && !visit.allows(Scope::List) {
        return accounts::page(visit).await;
    }
    let unavailable = |err| Rejection::unavailable(&err);
    let (account, now) = (visit.visible_account()?, runner::now());
    let totals = ListTotals::read(visit).await?;
    let (feeds, subscriptions) =
        needing_attention(visit, account, now).await.map_err(unavailable)?;
    let (events, links) = recent_events(visit, account).await.map_err(unavailable)?;
    let (subject, charts) = match account {
        Some(account) => (TrafficSubject::Account(account), traffic_charts::OF_DELIVERIES),
        None => (TrafficSubject::Gateway(TrafficUnit::Minute), traffic_charts::OF_GATEWAY),
    };
    let charts = traffic_charts::section(visit, "console", subject, charts).await?;
    let content = html! {
        (cards(visit, &totals))
        @if totals.is_empty() { (getting_started(visit)) }
        @if !feeds.is_empty() {
            h2 { "Feeds that need attention" }
            (feeds_table(visit, &feeds::LIST.all(), &feeds, now))
            p { a href=(visit.address(FAILING_FEEDS)) { "All failing feeds" } }
        }
        @if !subscriptions.is_empty() {
            h2 { "Subscriptions that need attention" }
            (subscription_table::table(visit, subscriptions.iter(), now))
            p { a href=(visit.address(FAILING_SUBSCRIPTIONS)) { "All failing subscriptions" } }
        }
        (charts)
        h2 { "What happened lately" }
        (events_table(visit, &events, &links))
    };
    Ok(visit.page("Overview", "console", content))
}

/// Returns the first feeds and subscriptions that fail.
async fn needing_attention(
    visit: &Visit,
    account: Option<AccountId>,
    now: DateTime<Utc>,
) -> Result<(Vec<Resource>, Vec<ListedSubscription>), StoreError> {
    let store = &visit.gateway.store;
    let (state, limit) = (Some(FeedState::Failing), ATTENTION);
    let feeds = FeedQuery { account, state, limit, ..FeedQuery::default() };
    let feeds = store.find_feeds(&feeds, now).await?.feeds;
    let state = Some(ListedState::Failing);
    let failing = SubscriptionQuery { account, state, limit, ..SubscriptionQuery::default() };
    Ok((feeds, store.find_subscriptions(&failing).await?.listed))
}

/// Returns the last events of the account, and of the feeds that it subscribes to, with their links.
async fn recent_events(
    visit: &Visit,
    account: Option<AccountId>,
) -> Result<(Vec<StoredEvent>, EventLinks), StoreError> {
    let store = &visit.gateway.store;
    let viewer = account.map_or(EventViewer::Admin, EventViewer::Account);
    let wanted = EventFilter { viewer, limit: EVENTS_READ, ..EventFilter::default() };
    let mut events = store.events(&wanted).await?.events;
    let links = EventLinks::read(&visit.gateway, viewer, visit.root(), &events).await?;
    events.retain(|StoredEvent { event, .. }| {
        viewer.is_concerned_by(event, links.feed_of(event).is_some())
    });
    events.truncate(EVENTS);
    Ok((events, links))
}

fn cards(visit: &Visit, totals: &ListTotals) -> Markup {
    let cards = [
        ("console/feeds", "Feeds", totals.feeds(), false),
        (FAILING_FEEDS, "Failing feeds", totals.failing_feeds(), true),
        ("console/subscriptions", "Subscriptions", totals.subscriptions(), false),
        (FAILING_SUBSCRIPTIONS, "Failing subscriptions", totals.failing_subscriptions(), true),
    ];
    html! {
        div.cards {
            @for (path, name, total, is_failure) in cards {
                a.card href=(visit.address(path)) {
                    (name)
                    @if is_failure && total != "0" { b.warning { (total) } } @else { b { (total) } }
                }
            }
            @if let Some(gauges) = totals.gauges() {
                div.card { "Subscriptions behind" b { (grouped(gauges.due)) }
                    @if gauges.oldest_due.deliveries_s > 0 {
                        small { "the oldest for " (span(gauges.oldest_due.deliveries_s)) }
                    }
                }
                div.card { "Verifications waiting" b { (grouped(gauges.pending_verifications)) } }
            }
        }
    }
}

fn getting_started(visit: &Visit) -> Markup {
    html! {
        h2 { "Start here" }
        p {
            "There are no feeds yet. Enter the address of a feed or of a web page, see what it contains, \
             and say where its entries are to be sent."
        }
        @if visit.allows(Scope::Subscribe) {
            p.actions {
                a.button.primary href=(visit.address("console/feeds/add")) { "Add a feed" }
                a.button href=(visit.address("console/opml")) { "Import a list" }
            }
            p { "Or from a program:" }
            pre tabindex="0" { code {
                "curl " (visit.gateway.public_url("")) " -u LOGIN:TOKEN -d hub.mode=subscribe \\\n"
                "     -d hub.topic=https://example.com/feed \\\n"
                "     -d hub.callback=https://example.com/callback"
            } }
        }
    }
}

fn events_table(visit: &Visit, events: &[StoredEvent], links: &EventLinks) -> Markup {
    let now = runner::now();
    html! {
        table.records.dense {
            thead { tr {
                th.main.half scope="col" { "Event" } th scope="col" { "Feed" }
                th.number scope="col" { "Time" }
            } }
            tbody {
                @for kept in events {
                    @let event = &kept.event;
                    @let words = [event.detail.as_str(), &event.callback];
                    @let words = words.into_iter().filter(|words| !words.is_empty());
                    @let words = words.collect::<Vec<_>>().join(" · ");
                    tr.(event.outcome.as_str()) {
                        td.main.half data-name="Event" {
                            (links.event(kept))
                            small title=(words) { (words) }
                        }
                        td { (links.feed(event, web_address(&event.feed))) }
                        td.state.number { (relative_time(event.at, now)) }
                    }
                }
                @if events.is_empty() {
                    (empty_row(3, "Nothing has happened yet.", html! {
                        "Fetches, notifications and requests of your feeds are listed here."
                    }))
                }
            }
        }
        p { a href=(visit.address("viewLog")) { "All events" } }
    }
}
