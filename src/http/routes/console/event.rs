//! One event of the event log, and where it leads: to the attempt, the entries, the feed and its source.
//!
//! A link is shown only if its page may be seen too. The callback is that of an own subscription, or of any
//! for administrators.

use chrono::{DateTime, TimeDelta, Utc};
use http::StatusCode;
use maud::{Markup, html};
use warp::reply::Response;

use super::attempts;
use super::feed_state::{address, title};
use super::feeds;
use super::subscription_state::{SECTION as SUBSCRIPTIONS, to_path};
use super::visit::Visit;
use crate::http::kit::html::parts::{Tone, badge, counted, grouped, relative_time, timestamp};
use crate::http::kit::rejection::Rejection;
use crate::http::kit::viewer_access::ViewerAccess;
use crate::http::routes::event_words;
use crate::jobs::runner;
use feedgate_core::account::{AccountId, Scope};
use feedgate_core::attempt::StoredAttempt;
use feedgate_core::event::{Event, EventFilter, EventKind, EventOutcome, EventViewer};
use feedgate_core::record::Seq;
use feedgate_core::resource::Resource;
use feedgate_core::store::{AttemptRange, ListedSubscription, StoreError, SubscriptionFilter};

/// The most subscriptions of an account to one topic with one callback: one of each protocol.
const PROTOCOLS: usize = 8;
/// The most attempts of a subscription among which that of an event is looked for.
const ATTEMPTS_READ: usize = 50;
/// The most newest records of a feed among which those of a fetch are looked for, and the most that are listed.
const RECORDS_READ: usize = 200;
const RECORDS: usize = 20;
/// How far the recorded times of the same thing may be apart: an event is made after the attempt ended.
const APART: TimeDelta = TimeDelta::seconds(2);

/// What an event is about, as far as the reader may see it.
struct EventPage {
    event: Event,
    feed: Option<Resource>,
    subscription: Option<ListedSubscription>,
    attempt: Option<StoredAttempt>,
    /// The records that a fetch appended.
    records: Vec<Seq>,
}

impl EventPage {
    async fn read(visit: &Visit, id: &str) -> Result<EventPage, Rejection> {
        let not_found = || {
            let reason = "There is no such event, or it is no longer stored.";
            Rejection::new(StatusCode::NOT_FOUND, reason)
        };
        let account = visit.visible_account()?;
        let viewer = account.map_or(EventViewer::Admin, EventViewer::Account);
        let id: i64 =
            id.parse().ok().filter(|id| (1..i64::MAX).contains(id)).ok_or_else(not_found)?;
        let unavailable = |err: StoreError| Rejection::unavailable(&err);
        let event = find(visit, viewer, id).await.map_err(unavailable)?.ok_or_else(not_found)?;
        let feed = feed_of(visit, account, &event).await.map_err(unavailable)?;
        let access = match viewer {
            EventViewer::Admin => ViewerAccess::OperatorNetwork,
            _ => ViewerAccess::of_request(&visit.gateway, &visit.request),
        };
        if !viewer.is_concerned_by(&event, feed.is_some()) && !access.sees_event(viewer, &event) {
            return Err(not_found());
        }
        let mut page =
            EventPage { event, feed, subscription: None, attempt: None, records: Vec::new() };
        page.follow(visit, viewer).await.map_err(unavailable)?;
        Ok(page)
    }

    /// Finds the subscription of the event, its attempt and its records.
    async fn follow(&mut self, visit: &Visit, viewer: EventViewer) -> Result<(), StoreError> {
        let (store, event) = (&visit.gateway.store, &self.event);
        let Some(feed) = &self.feed else { return Ok(()) };
        if viewer.owns(event) && !event.callback.is_empty() {
            let filter = SubscriptionFilter {
                account: Some(event.account.unwrap_or(AccountId::NOBODY)),
                topic: Some(feed.topic.as_str().to_owned()),
                callback: Some(event.callback.clone()),
                limit: PROTOCOLS,
                ..SubscriptionFilter::default()
            };
            let (listed, _) = store.list(&filter).await?;
            let is_meant =
                |listed: &ListedSubscription| listed.subscription.protocol.as_str() == event.via;
            self.subscription = listed.into_iter().find(is_meant);
        }
        match (event.kind, &self.subscription) {
            (EventKind::Notify, Some(listed)) => {
                let range = AttemptRange { before: None, limit: ATTEMPTS_READ };
                let attempts = store.attempts(listed.subscription.id, range).await?;
                self.attempt = nearest(attempts, event.at);
            }
            (EventKind::Fetch, _) if event.outcome == EventOutcome::Ok => {
                let places = store.newest_records(feed.id, RECORDS_READ).await?;
                let is_of_fetch = |at: DateTime<Utc>| (at - event.at).abs() < APART;
                let found = places.iter().filter(|place| is_of_fetch(place.at));
                self.records = found.map(|place| place.seq).take(RECORDS).collect();
            }
            _ => {}
        }
        Ok(())
    }
}

async fn find(visit: &Visit, viewer: EventViewer, id: i64) -> Result<Option<Event>, StoreError> {
    let (after, before) = (Some(id - 1), Some(id + 1));
    let wanted = EventFilter { viewer, after, before, limit: 1, ..EventFilter::default() };
    let found = visit.gateway.store.events(&wanted).await?.events;
    Ok(found.into_iter().next().map(|kept| kept.event))
}

async fn feed_of(
    visit: &Visit,
    account: Option<AccountId>,
    event: &Event,
) -> Result<Option<Resource>, StoreError> {
    let store = &visit.gateway.store;
    let found = store.named_feeds(account, vec![event.feed.clone()]).await?;
    match found.get(&event.feed) {
        Some(id) => store.get(*id).await,
        None => Ok(None),
    }
}

/// Returns the attempt that ended when an event was made.
fn nearest(attempts: Vec<StoredAttempt>, at: DateTime<Utc>) -> Option<StoredAttempt> {
    let distance = |stored: &StoredAttempt| {
        let took = TimeDelta::from_std(stored.attempt.took).unwrap_or_default();
        (stored.attempt.at + took - at).abs()
    };
    let nearest = attempts.into_iter().min_by_key(distance)?;
    (distance(&nearest) < APART).then_some(nearest)
}

/// Returns the page.
pub(super) async fn page(visit: &Visit, id: &str) -> Result<Response, Rejection> {
    let page = EventPage::read(visit, id).await?;
    let EventPage { event, .. } = &page;
    let content = html! {
        (visit.crumbs(&[("Event log", "viewLog")]))
        (facts(visit, &page))
        (related(visit, &page))
    };
    let title = format!("Event: {}", event_words::described(event));
    Ok(visit.page(&title, "viewLog", content))
}

fn facts(visit: &Visit, page: &EventPage) -> Markup {
    let (event, now) = (&page.event, runner::now());
    let detail = match visit.is_admin() {
        true => [event.detail.as_str(), event.private_detail.as_str()],
        false => [event.detail.as_str(), ""],
    };
    let detail: Vec<&str> = detail.into_iter().filter(|detail| !detail.is_empty()).collect();
    html! {
        dl.facts {
            dt { "Outcome" } dd { (badge(tone(event.outcome), event.outcome.as_str())) }
            @if !detail.is_empty() { dt { "Message" } dd { (detail.join("; ")) } }
            @if event.outcome != EventOutcome::Ok && !event.code.is_empty() {
                dt { "Code" } dd { code { (event.code) } }
            }
            dt { "Time" } dd { (timestamp(event.at)) " (" (relative_time(event.at, now)) ")" }
            @if event.many > 1 { dt { "Count" } dd { (counted(event.many, "time")) } }
            @if !event.via.is_empty() { dt { "By" } dd { (event_words::via(event)) } }
            @if let Some(took) = event.took {
                dt { "Took" } dd { (grouped(took.as_millis() as u64)) "\u{a0}ms" }
            }
            (chain(visit, page))
        }
    }
}

/// Returns what the event is about, from the attempt to the source of the feed.
fn chain(visit: &Visit, page: &EventPage) -> Markup {
    html! {
        @if let Some(listed) = &page.subscription {
            @let path = format!("{SUBSCRIPTIONS}/{}", to_path(listed.subscription.id));
            dt { "Subscription" }
            dd { a href=(visit.address(&path)) { (listed.subscription.callback.as_str()) } }
            @match &page.attempt {
                Some(stored) => {
                    dt { "Attempt" }
                    dd { a href=(visit.address(&attempts::address(stored))) {
                        (stored.attempt.verdict.as_str()) " " (relative_time(stored.attempt.at, runner::now()))
                    } }
                    dt { "Sent" } dd { (attempts::sent(visit, listed, &stored.attempt)) }
                }
                None if page.event.kind == EventKind::Notify => {
                    dt { "Attempt" }
                    dd.absent { "not stored: of many that succeed at the same time, some are left out" }
                }
                None => {}
            }
        }
        @if let Some(feed) = &page.feed {
            @let path = format!("{}/{}", feeds::SECTION, feed.id);
            @if !page.records.is_empty() && visit.allows(Scope::Retrieve) {
                dt { "Entries" }
                dd { @for (n, seq) in page.records.iter().enumerate() {
                    @if n > 0 { ", " }
                    a href=(visit.address(&format!("{path}/entries/{seq}"))) { (seq) }
                } }
            }
            dt { "Feed" } dd { a href=(visit.address(&path)) { (title(feed)) } }
            dt { "Source" }
            dd { a href=(address(feed)) rel="nofollow noreferrer" { (address(feed)) } }
        } @else if !page.event.feed.is_empty() {
            dt { "Feed" } dd { (page.event.feed) }
        }
    }
}

/// Returns the links to the events of the same feed, and of the same subscription.
fn related(visit: &Visit, page: &EventPage) -> Markup {
    let link = |name: &str, value: &str| visit.address_with("viewLog", name, value);
    html! {
        p.actions {
            @if !page.event.feed.is_empty() {
                a.button href=(link("feed", &page.event.feed)) { "Events of this feed" }
            }
            @if let Some(listed) = &page.subscription {
                a.button href=(link("callback", listed.subscription.callback.as_str())) {
                    "Events of this callback"
                }
            }
            a.button href=(visit.address("viewLog")) { "All events" }
        }
    }
}

fn tone(outcome: EventOutcome) -> Tone {
    match outcome {
        EventOutcome::Ok => Tone::Good,
        EventOutcome::Pending => Tone::Neutral,
        EventOutcome::Refused | EventOutcome::Failed => Tone::Bad,
    }
}
