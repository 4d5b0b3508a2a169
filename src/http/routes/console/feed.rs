//! One feed: its state, its entries, its subscriptions, and what its last fetches found.

mod document_health;
pub(crate) mod entries;
mod moments;
mod timeline;

use chrono::{DateTime, Utc};
use http::StatusCode;
use maud::{Markup, html};
use warp::reply::Response;

use super::feed_state::{
    address, format_title, last_result, reason_for_next_fetch, state_cards, title,
};
use super::feeds::{SECTION, entries_a_day};
use super::fetches;
use super::subscription_table;
use super::traffic_charts;
use super::visit::Visit;
use crate::http::kit::auth;
use crate::http::kit::html::parts::{counted, grouped, relative_time, timestamp};
use crate::http::kit::rejection::Rejection;
use crate::jobs::runner;
use feedgate_core::account::Scope;
use feedgate_core::event::{EventFilter, EventKind, EventViewer, StoredEvent};
use feedgate_core::feed_state::FeedState;
use feedgate_core::moves::Move;
use feedgate_core::ping::{Ping, PingSource};
use feedgate_core::resource::{Resource, ResourceId};
use feedgate_core::store::{ListedSubscription, SubscriptionQuery};
use feedgate_core::upstream::{UpstreamState, UpstreamSummary};

pub(super) use entries::entry_title;

use document_health::DocumentHealth;
use entries::ListedEntries;
use moments::{Moment, MomentSources};
use timeline::timeline;

/// The number of subscriptions on the page.
pub(super) const SUBSCRIPTIONS: usize = 20;
/// The number of fetches on the page.
const FETCHES: usize = 15;
/// The most events, and the most records, that are read for the timeline.
const EVENTS_READ: usize = 500;
const RECORDS_READ: usize = 200;

/// Finds the feed of a page. A feed that does not belong to the account is answered as one that does
/// not exist (S37).
pub(super) async fn find(visit: &Visit, id: &str) -> Result<Resource, Rejection> {
    let not_found = || Rejection::new(StatusCode::NOT_FOUND, "There is no such feed.");
    let id = id.parse().map(ResourceId).map_err(|_| not_found())?;
    let found = visit.gateway.store.get(id).await.map_err(|err| Rejection::unavailable(&err))?;
    let resource = found.ok_or_else(not_found)?;
    match visit.visible_account()?.is_none() || !subscribed(visit, &resource).await?.is_empty() {
        true => Ok(resource),
        false => Err(not_found()),
    }
}

/// Returns the subscriptions to a feed that are shown: those of the account, or all.
pub(super) async fn subscribed(
    visit: &Visit,
    resource: &Resource,
) -> Result<Vec<ListedSubscription>, Rejection> {
    let query = SubscriptionQuery {
        account: visit.visible_account()?,
        resource: Some(resource.id),
        limit: SUBSCRIPTIONS,
        ..SubscriptionQuery::default()
    };
    let found = visit.gateway.store.find_subscriptions(&query).await;
    found.map(|found| found.listed).map_err(|err| Rejection::unavailable(&err))
}

/// Carries out what a form of the page requests.
pub(super) async fn act(visit: &Visit, id: &str) -> Result<Response, Rejection> {
    let resource = find(visit, id).await?;
    match visit.value("action") {
        "poll" => poll(visit, &resource).await,
        _ => Err(Rejection::bad_request("The form names no action of this page.")),
    }
}

/// Makes the feed due, as a ping of its publisher does: no sooner than pings may.
async fn poll(visit: &Visit, resource: &Resource) -> Result<Response, Rejection> {
    auth::require(visit.access()?, Scope::Subscribe)?;
    let ping = Ping {
        at: runner::now(),
        source: PingSource::Console,
        name: String::new(),
        url: resource.topic.displayed().into_owned(),
        feed_url: None,
    };
    let taken = visit.gateway.subscribe.ping(&ping, visit.gateway.settings.ping_spacing).await;
    taken.map_err(|err| Rejection::unavailable(&err))?;
    Ok(visit.see_other(&format!("{SECTION}/{}?done=poll", resource.id)))
}

/// What the page shows of a feed.
struct FeedPage {
    resource: Resource,
    /// `None` if the token of the session may not read entries.
    entries: Option<ListedEntries>,
    subscriptions: Vec<ListedSubscription>,
    /// The newest events of the feed, which are not all for the reader.
    events: Vec<StoredEvent>,
    /// What happened lately.
    moments: Vec<Moment>,
    document: Option<DocumentHealth>,
    moves: Vec<Move>,
    upstream: Option<UpstreamSummary>,
}

impl FeedPage {
    async fn read(visit: &Visit, resource: Resource) -> Result<FeedPage, Rejection> {
        let unavailable = |err| Rejection::unavailable(&err);
        let store = &visit.gateway.store;
        let entries = match visit.allows(Scope::Retrieve) {
            true => Some(ListedEntries::read(visit, &resource).await?),
            false => None,
        };
        let viewer = visit.visible_account()?.map_or(EventViewer::Admin, EventViewer::Account);
        let wanted = EventFilter {
            viewer,
            feed: address(&resource),
            limit: EVENTS_READ,
            ..EventFilter::default()
        };
        let mut events = store.events(&wanted).await.map_err(unavailable)?.events;
        // The filter also finds longer addresses, which may be of others.
        events.retain(|kept| kept.event.feed == wanted.feed);
        let moves = store.moves(resource.id).await.map_err(unavailable)?;
        let records = store.newest_records(resource.id, RECORDS_READ).await.map_err(unavailable)?;
        let sources = MomentSources {
            resource: &resource,
            events: &events,
            viewer,
            records: &records,
            moves: &moves,
        };
        let moments = sources.moments(visit);
        let document = DocumentHealth::read(visit, &resource).await?;
        let subscriptions = subscribed(visit, &resource).await?;
        let upstream = store.upstream_summary(resource.id).await.map_err(unavailable)?;
        #[rustfmt::skip]
        let page = FeedPage {
            resource, entries, subscriptions, events, moments, document, moves, upstream,
        };
        Ok(page)
    }

    /// Returns how many entries the feed has, if they are all on the page.
    fn entry_count(&self, visit: &Visit) -> Option<usize> {
        self.entries.as_ref().and_then(|entries| entries.total(visit))
    }
}

/// Returns the page.
pub(super) async fn page(visit: &Visit, id: &str) -> Result<Response, Rejection> {
    let now = runner::now();
    let feed = FeedPage::read(visit, find(visit, id).await?).await?;
    let charts = traffic_charts::of_feed(visit, feed.resource.id).await?;
    let content = html! {
        (visit.crumbs(&[("Feeds", SECTION)]))
        (actions(visit, &feed.resource))
        (done(visit.value("done")))
        (status(visit, &feed, now))
        (timeline(visit, &feed.moments, now))
        h2 #entries { "Entries" }
        @match &feed.entries {
            Some(entries) => (entries.list(visit, &feed.resource, now)),
            None => p.soft { "Your token does not have the scope retrieve." },
        }
        h2 { "Subscriptions" }
        (subscription_table::table_of_feed(visit, feed.subscriptions.iter(), now))
        @if feed.subscriptions.len() == SUBSCRIPTIONS {
            p { a href=(visit.address(&format!("console/subscriptions?feed={}", feed.resource.id))) {
                "All subscriptions of this feed"
            } }
        }
        (charts)
        @if let Some(document) = &feed.document { (document.section()) }
        h2 { "Details" }
        (transitions(&feed.resource))
        details #fetches {
            summary { "Last fetches" }
            (fetches::list(visit, feed.resource.id, now))
        }
        details {
            summary { "Fetches in the event log" }
            (fetch_events(visit, &feed.events))
        }
    };
    Ok(visit.page(&title(&feed.resource), SECTION, content))
}

/// Returns the note on the change that led to the page.
fn done(action: &str) -> Markup {
    let note = match action {
        "poll" => "The feed will be fetched as soon as its server allows.",
        "subscribed" => "The subscription is stored.",
        "existing" => "You have this subscription already. Nothing was changed.",
        _ => return html! {},
    };
    html! { p role="status" { (note) } }
}

fn status(visit: &Visit, feed: &FeedPage, now: DateTime<Utc>) -> Markup {
    let FeedPage { resource, moves, upstream, .. } = feed;
    let status = &resource.status;
    let is_moved = FeedState::from_resource(resource, now) == FeedState::Moved;
    let received = html! { div.card { "Received a day" (entries_a_day(resource, now)) } };
    html! {
        (state_cards(resource, "fetch", now, &received))
        @if status.is_failing() {
            p.failure { "The last fetch failed: " (status.http_message) "." }
        }
        dl.facts {
            dt { "Address" }
            dd { a href=(address(resource)) rel="nofollow noreferrer" { (address(resource)) } }
            @if is_moved { dt { "Fetched at" } dd { (feedgate_core::redaction::feed(&resource.fetch_url)) } }
            @if !status.is_failing() && !status.http_message.is_empty() {
                dt { "Last result" } dd { (last_result(status)) }
            }
            dt { "Why then" } dd { (reason_for_next_fetch(resource, now)) }
            dt { "Entries" } dd { (entries_in_words(feed.entry_count(visit), resource)) }
            @if let Some(until) = resource.pushed_until {
                dt { "Pushed by its hub" } dd { "until " (timestamp(until)) }
            }
            @if let Some(upstream) = upstream {
                dt { "Hub or cloud" } dd { (upstream_text(upstream, now)) }
            }
            @if !resource.polling.format.is_empty() {
                dt { "Format" } dd { (format_title(&resource.polling.format)) }
            }
            dt { "Archive" }
            dd { a href=(visit.address(&format!("feeds/{}/recent", resource.id))) {
                (visit.gateway.public_url(&format!("feeds/{}/recent", resource.id)))
            } }
            @for moved in moves {
                dt { "Moved" }
                dd { (timestamp(moved.at)) " from " (feedgate_core::redaction::feed(&moved.from))
                    @if moved.undone_at.is_some() { " (undone)" } }
            }
        }
    }
}

/// Returns how many entries a feed has, as far as that is known, and how many updates of them: each is in the log.
fn entries_in_words(entries: Option<usize>, resource: &Resource) -> String {
    let records = resource.head.0.unsigned_abs();
    let Some(all) = entries.map(|all| all as u64) else {
        return format!("{}\u{a0}entries and updates", grouped(records));
    };
    let entries = match all {
        1 => "1\u{a0}entry".to_owned(),
        all => format!("{}\u{a0}entries", grouped(all)),
    };
    match records.saturating_sub(all) {
        0 => entries,
        updates => format!("{entries}, and {} of them", counted(updates, "update")),
    }
}

/// Returns which hub or cloud announces changes, and how often it came first.
fn upstream_text(upstream: &UpstreamSummary, now: DateTime<Utc>) -> Markup {
    let state = match upstream.state {
        UpstreamState::Wanted => "not subscribed to yet",
        UpstreamState::Requested => "asked for a subscription",
        UpstreamState::Active => "subscribed to",
        UpstreamState::Doubted => "not relied on for now",
    };
    let proof = upstream.proof;
    let all = proof.pushed.saturating_add(proof.missed);
    html! {
        (feedgate_core::redaction::feed(&upstream.endpoint)) ", " (state)
        @if let Some(at) = upstream.pushed_at { ", last heard of " (relative_time(at, now)) }
        @if all > 0 {
            br;
            "New entries lately: " (grouped(proof.pushed.into())) " announced by it first, "
            (grouped(proof.missed.into())) " found first by a fetch"
        }
    }
}

fn actions(visit: &Visit, resource: &Resource) -> Markup {
    html! {
        @if visit.allows(Scope::Subscribe) {
            form.inline.head method="post" action=(visit.address(&format!("{SECTION}/{}", resource.id))) {
                (visit.csrf_field())
                button type="submit" name="action" value="poll" { "Fetch now" }
            }
        }
    }
}

fn transitions(resource: &Resource) -> Markup {
    html! {
        @if !resource.status.transitions.is_empty() {
            details {
                summary { "Changes of its state" }
                table.records {
                    thead { tr {
                        @for name in ["Time", "State", "Reason"] { th scope="col" { (name) } }
                    } }
                    tbody {
                        @for change in resource.status.transitions.iter().rev() {
                            tr {
                                td data-name="Time" { (timestamp(change.at)) }
                                td data-name="State" { (change.state) }
                                td data-name="Reason" { (change.reason) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn fetch_events(visit: &Visit, events: &[StoredEvent]) -> Markup {
    let fetches = events.iter().filter(|kept| kept.event.kind == EventKind::Fetch);
    let fetches: Vec<&StoredEvent> = fetches.take(FETCHES).collect();
    html! {
        table.records {
            thead { tr { @for name in ["Time", "Event", "Took", "Message"] {
                th scope="col" { (name) }
            } } }
            tbody {
                @for StoredEvent { id, event } in &fetches {
                    tr.(event.outcome.as_str()) {
                        td data-name="Time" { (timestamp(event.at)) }
                        td data-name="Event" {
                            a href=(visit.address(&format!("console/events/{id}"))) { (event.outcome.as_str()) }
                        }
                        td data-name="Took" {
                            @if let Some(took) = event.took { (took.as_millis()) "\u{a0}ms" }
                        }
                        td data-name="Message" { (event.detail) }
                    }
                }
                @if fetches.is_empty() {
                    tr { td colspan="4" {
                        "No fetch that changed something is in the event log."
                    } }
                }
            }
        }
    }
}
