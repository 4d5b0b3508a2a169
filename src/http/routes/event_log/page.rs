//! The event log as a page: a table of recent events, newest first, with a form to filter it.
//!
//! The page works without scripts: filtering and paging are links. With scripts, new events appear
//! as they are recorded. Content from third parties is always escaped text.

use std::sync::Arc;

use http::{StatusCode, header};
use maud::{Markup, html};
use warp::filters::BoxedFilter;
use warp::reply::Response;

use super::{ENDPOINT, LogView, fresh};
use crate::http::kit::html::parts::timestamp;
use crate::http::kit::html::{HtmlPage, Interaction, Place, Reader, Width};
use crate::http::kit::paths;
use crate::http::kit::rejection::unavailable;
use crate::http::kit::reply::{set_header, with_content_type};
use crate::http::routes::console::Session;
use crate::http::routes::event_links::EventLinks;
use crate::http::routes::event_words;
use crate::http::state::Gateway;
use feedgate_core::event::{EventKind, EventOutcome, StoredEvent};
use feedgate_core::store::StoreError;

const SCRIPT: &str = include_str!("live.js");

/// Returns the route of the script.
pub(super) fn script(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    ENDPOINT.route(gateway, paths::exact("log/live.js"), |_, _| async {
        let mut response =
            with_content_type(StatusCode::OK, "text/javascript; charset=utf-8", SCRIPT);
        // The script changes only with a new version.
        set_header(&mut response, header::CACHE_CONTROL, "public, max-age=300");
        response
    })
}

/// Returns the page as the viewer may see it.
pub(super) async fn reply(gateway: &Gateway, view: LogView) -> Response {
    match content(gateway, &view).await {
        Ok(content) => {
            let (title, width) = ("Event log", Width::Table);
            let interaction = Interaction::Scripts(&["console/page.js", "log/live.js"]);
            let reader = view.session.as_ref().map_or(Reader::Anybody, Session::reader);
            let place = Place { reader, ..Place::public("viewLog") };
            let page = HtmlPage { title, width, interaction, place, content };
            fresh(page.reply(StatusCode::OK))
        }
        Err(err) => unavailable(&err),
    }
}

async fn content(gateway: &Gateway, view: &LogView) -> Result<Markup, StoreError> {
    let wanted = &view.wanted;
    // Read before the events: the stream begins after this number, so an event recorded between the
    // two reads is sent twice rather than never.
    let newest = gateway.store.event_numbers().await?.newest;
    let page = gateway.store.events(wanted).await?;
    let next = view.next(&page);
    let mut events = page.events;
    let oldest = match wanted.after {
        Some(_) => events.first().filter(|first| view.shows(&first.event)).map(|first| first.id),
        None => next,
    };
    if wanted.after.is_some() {
        events.reverse();
    }
    let is_live = wanted.before.is_none() && wanted.after.is_none();
    let stream = is_live.then(|| format!("log/stream?{}", query(view, &[("after", newest)])));
    events.retain(|kept| view.shows(&kept.event));
    let links = EventLinks::read(gateway, view.console_reader(), "", &events).await?;
    Ok(html! {
        (introduction(view))
        (filter(view))
        p.state id="live" role="status" data-stream=[stream] {}
        (table(view, &events, &links))
        @if !is_live || oldest.is_some() {
            nav.pages aria-label="Pages" {
                @if !is_live { a href=(address(view, &[])) { "Newest events" } }
                @if let Some(oldest) = oldest {
                    a rel="next" href=(address(view, &[("before", oldest)])) { "Older events" }
                }
            }
        }
    })
}

fn introduction(view: &LogView) -> Markup {
    html! {
        p {
            "Recent subscription requests, pings, fetches and notifications, and why some of \
             them failed. Only its owner sees the whole URL of a callback; others see its host and a \
             hash. "
            @match &view.login {
                Some(login) => { "You are signed in as " (login) "." }
                None => { a href="console" { "Sign in" } " to see your own callbacks in full." }
            }
        }
    }
}

fn filter(view: &LogView) -> Markup {
    let wanted = &view.wanted;
    let kinds = EventKind::ALL.iter().map(|kind| (kind.as_str(), event_words::noun(*kind)));
    let outcomes = EventOutcome::ALL.iter().map(|outcome| (outcome.as_str(), outcome.as_str()));
    html! {
        form.filter method="get" action="viewLog" {
            label {
                "Feed "
                input type="search" name="feed" value=(wanted.feed) placeholder="part of its URL";
            }
            label {
                "Callback "
                input type="search" name="callback" value=(wanted.callback)
                    placeholder="host or whole URL";
            }
            label { "Kind " (choice("kind", kinds, wanted.kind.map(EventKind::as_str))) }
            label {
                "Outcome " (choice("outcome", outcomes, wanted.outcome.map(EventOutcome::as_str)))
            }
            @if view.login.is_some() && view.session.is_none() { input type="hidden" name="login" value="1"; }
            button type="submit" { "Filter" }
        }
    }
}

/// Returns a choice of one of these values, of which each has a text.
fn choice<'w>(
    name: &str,
    values: impl Iterator<Item = (&'w str, &'w str)>,
    chosen: Option<&str>,
) -> Markup {
    html! {
        select name=(name) {
            option value="" { "any" }
            @for (value, text) in values {
                option value=(value) selected[chosen == Some(value)] { (text) }
            }
        }
    }
}

fn table(view: &LogView, events: &[StoredEvent], links: &EventLinks) -> Markup {
    html! {
        table.records.log {
            caption { "Events, newest first" }
            thead {
                tr { @for name in ["Time", "Event", "Feed", "Callback", "Details", "Message"] {
                    th scope="col" { (name) }
                } }
            }
            tbody id="events" data-words=(event_words::as_json()) data-pages=[links.folder()] {
                @for kept in events { (row(view, kept, links)) }
            }
        }
        p.empty id="no-events" hidden[!events.is_empty()] {
            b { "No events found." } " Subscribe to a feed, or " a href="viewLog" { "show all events" } "."
        }
    }
}

/// Renders one event. `live.js` creates the same cells.
fn row(view: &LogView, kept: &StoredEvent, links: &EventLinks) -> Markup {
    let event = &kept.event;
    let callback = view.callback(event);
    html! {
        tr.(event.outcome.as_str()) data-id=(kept.id) {
            td data-name="Time" { (timestamp(event.at)) }
            td data-name="Event" { (links.event(kept)) }
            td data-name="Feed" title=(event.feed) { (links.feed(event, html! { (event.feed) })) }
            td data-name="Callback" title=(callback) { (callback) }
            td data-name="Details" { (event_words::details(event)) }
            td data-name="Message" { (view.detail(event)) }
        }
    }
}

/// Returns the query of the current filter, with these numbers.
fn query(view: &LogView, numbers: &[(&str, i64)]) -> String {
    let wanted = &view.wanted;
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    let words = [
        ("feed", wanted.feed.as_str()),
        ("callback", wanted.callback.as_str()),
        ("kind", wanted.kind.map_or("", EventKind::as_str)),
        ("outcome", wanted.outcome.map_or("", EventOutcome::as_str)),
        ("login", if view.login.is_some() && view.session.is_none() { "1" } else { "" }),
    ];
    query.extend_pairs(words.into_iter().filter(|(_, word)| !word.is_empty()));
    for (name, number) in numbers {
        query.append_pair(name, &number.to_string());
    }
    query.finish()
}

fn address(view: &LogView, numbers: &[(&str, i64)]) -> String {
    format!("viewLog?{}", query(view, numbers))
}
