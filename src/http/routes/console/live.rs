//! What comes in and goes out at this moment: events as they are recorded, and for administrators
//! charts of the last hour, the ages of the queues and the nodes of the gateway.
//!
//! Events come from the stream of the event log. An account is shown its own events only.

use http::StatusCode;
use maud::{Markup, html};
use url::form_urlencoded;
use warp::reply::Response;

use super::live_charts;
use super::visit::Visit;
use crate::http::kit::html::parts::{empty_row, timestamp};
use crate::http::kit::html::{self, Interaction};
use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::with_content_type;
use crate::http::routes::event_links::EventLinks;
use crate::http::routes::event_words;
use feedgate_core::event::{EventFilter, EventOutcome, EventViewer, StoredEvent};

/// The section of the navigation.
pub(super) const SECTION: &str = "console/live";
/// The scripts of the page: that of the console, that of the event log, and its own.
const SCRIPTS: Interaction =
    Interaction::Scripts(&["console/page.js", "log/live.js", "console/live.js"]);
/// The number of events that are read, and the number of those that are shown: the event log has all.
const EVENTS_READ: usize = 500;
const EVENTS: usize = 10;

/// Returns the page.
pub(super) async fn page(visit: &Visit) -> Result<Response, Rejection> {
    let unavailable = |err| Rejection::unavailable(&err);
    let account = visit.visible_account()?;
    let outcome = EventOutcome::from_word(visit.value("outcome"));
    let viewer = account.map_or(EventViewer::Admin, EventViewer::Account);
    let store = &visit.gateway.store;
    // The stream begins after this number: an event recorded between the two reads is sent twice
    // rather than never.
    let newest = store.event_numbers().await.map_err(unavailable)?.newest;
    let wanted = EventFilter {
        viewer,
        feed: visit.value("feed").to_owned(),
        callback: visit.value("callback").to_owned(),
        outcome,
        limit: EVENTS_READ,
        ..EventFilter::default()
    };
    let mut events = store.events(&wanted).await.map_err(unavailable)?.events;
    events.retain(|kept| viewer.owns(&kept.event));
    events.truncate(EVENTS);
    let links = EventLinks::read(&visit.gateway, viewer, visit.root(), &events).await;
    let links = links.map_err(unavailable)?;
    let content = html! {
        @if visit.is_admin() {
            section id="charts" data-source=(visit.address("console/live/charts")) {
                (live_charts::charts(visit).await?)
            }
            h2 { "Events" }
        } @else {
            p { "Requests, deliveries and failures of your account, as they happen." }
        }
        (filter(visit))
        p.state id="live" role="status" data-stream=(stream(visit, outcome, newest)) {}
        (table(&events, &links))
        p { a href=(visit.address("viewLog")) { "All events" } }
    };
    Ok(visit.page_with_scripts(("Live", SECTION), SCRIPTS, content))
}

/// Returns the charts alone, which the script of the page requests from time to time.
pub(super) async fn charts(visit: &Visit) -> Result<Response, Rejection> {
    if !visit.is_admin() {
        return Err(Rejection::new(StatusCode::FORBIDDEN, "The charts are for administrators."));
    }
    let charts = live_charts::charts(visit).await?.into_string();
    let mut response = with_content_type(StatusCode::OK, html::MEDIA_TYPE, charts);
    html::restrict(&mut response, &Interaction::None.policy());
    Ok(response)
}

/// Returns the address of the stream of the events that the page shows.
fn stream(visit: &Visit, outcome: Option<EventOutcome>, newest: i64) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("own", "1").append_pair("after", &newest.to_string());
    let words = [
        ("feed", visit.value("feed")),
        ("callback", visit.value("callback")),
        ("outcome", outcome.map_or("", EventOutcome::as_str)),
    ];
    query.extend_pairs(words.into_iter().filter(|(_, word)| !word.is_empty()));
    visit.address(&format!("log/stream?{}", query.finish()))
}

fn filter(visit: &Visit) -> Markup {
    html! {
        form.filter method="get" action=(visit.address(SECTION)) {
            label { "Feed "
                input type="search" name="feed" value=(visit.value("feed"))
                    placeholder="part of its URL";
            }
            label { "Callback "
                input type="search" name="callback" value=(visit.value("callback"))
                    placeholder="host or whole URL";
            }
            label { "Outcome "
                select name="outcome" {
                    option value="" { "any" }
                    @for held in EventOutcome::ALL.iter().map(|outcome| outcome.as_str()) {
                        option selected[held == visit.value("outcome")] { (held) }
                    }
                }
            }
            button type="submit" { "Show" }
        }
    }
}

fn table(events: &[StoredEvent], links: &EventLinks) -> Markup {
    html! {
        table.records.log {
            caption { "Newest first" }
            thead { tr {
                @for name in ["Time", "Event", "Feed", "Callback", "Details", "Message"] {
                    th scope="col" { (name) }
                }
            } }
            tbody id="events" data-most=(EVENTS) data-words=(event_words::as_json())
                data-pages=[links.folder()] {
                @for event in events { (row(event, links)) }
            }
            tbody id="no-events" hidden[!events.is_empty()] {
                (empty_row(6, "Nothing has happened yet.", html! { "Events appear here as they happen." }))
            }
        }
    }
}

fn row(kept: &StoredEvent, links: &EventLinks) -> Markup {
    let StoredEvent { id, event } = kept;
    html! {
        tr.(event.outcome.as_str()) data-id=(id) {
            td data-name="Time" { (timestamp(event.at)) }
            td data-name="Event" { (links.event(kept)) }
            td data-name="Feed" title=(event.feed) { (links.feed(event, html! { (event.feed) })) }
            td data-name="Callback" title=(event.callback) { (event.callback) }
            td data-name="Details" { (event_words::details(event)) }
            td data-name="Message" { (event.detail) }
        }
    }
}
