//! The front page for people who open the address of the gateway in a browser: what this is, how to
//! subscribe, what changed lately.

use std::collections::HashSet;
use std::sync::Arc;

use http::StatusCode;
use maud::{Markup, html};
use warp::reply::Response;

use super::visit::Visit;
use crate::http::kit::anonymous_access::Permission;
use crate::http::kit::html::Width;
use crate::http::kit::html::parts::{relative_time, web_address};
use crate::http::kit::public_pages;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use crate::http::kit::viewer_access::ViewerAccess;
use crate::http::routes::try_page::form::form as try_form;
use crate::http::state::Gateway;
use crate::jobs::runner;
use feedgate_core::event::{EventFilter, EventKind, EventOutcome, EventViewer, StoredEvent};

/// The heading: what this is for.
const PROMISE: &str = "Any feed, one schema, pushed";
/// What a callback is sent, shortened (`docs/api/payloads.md`).
const SAMPLE: &str = r#"{
  "status": { "code": 200, "nextFetch": 1796083200, … },
  "title": "Harbour news",
  "items": [{
    "id": "tag:example.com,2026:17",
    "title": "Shipyards face steel shortage",
    "permalinkUrl": "https://example.com/17",
    "published": 1796079600,
    "summary": "…"
  }]
}"#;
/// The number of changes that are listed.
const CHANGES: usize = 15;
/// The number of events that are read to find them.
const EVENTS_READ: usize = 200;

/// Returns the page.
pub(crate) async fn front_page(gateway: &Arc<Gateway>, request: Request) -> Response {
    match render(gateway, request).await {
        Ok(response) => response,
        Err(rejection) => rejection.to_response(),
    }
}

async fn render(gateway: &Arc<Gateway>, request: Request) -> Result<Response, Rejection> {
    let access = ViewerAccess::of_request(gateway, &request);
    let visit = Visit::begin(Arc::clone(gateway), request).await?;
    let wanted =
        EventFilter { kind: Some(EventKind::Fetch), limit: EVENTS_READ, ..EventFilter::default() };
    let events = gateway.store.events(&wanted).await;
    let mut events = events.map_err(|err| Rejection::unavailable(&err))?.events;
    let mut seen = HashSet::new();
    events.retain(|StoredEvent { event, .. }| {
        // The page is a list for everybody, whoever is signed in.
        let is_listed = EventViewer::Anonymous.knows_of(event) && access.sees(&event.feed);
        let is_change = event.outcome == EventOutcome::Ok && is_listed;
        is_change && seen.insert(event.feed.clone())
    });
    events.truncate(CHANGES);
    let content = html! {
        p {
            "This gateway fetches feeds, web pages and JSON documents, converts them to one schema, \
             and notifies subscribers when they change."
        }
        @if gateway.settings.anonymous.allows(Permission::Try) { (try_form("", "")) }
        h2 { "Subscribe" }
        p { "Any WebSub subscriber can use the hub, without an account:" }
        pre data-copy tabindex="0" { code {
            "curl " (gateway.public_url("hub")) " -d hub.mode=subscribe \\\n"
            "     -d hub.topic=https://example.com/feed \\\n"
            "     -d hub.callback=https://example.com/callback"
        } }
        p {
            "With an account, " a href=(visit.address("console")) { "sign in" } " to add feeds, or use \
             the API. Whatever the source is written in, entries come as Atom or as JSON:"
        }
        pre tabindex="0" { code { (SAMPLE) } }
        (changes(gateway, &events))
        h2 { "More" }
        (public_pages::list(gateway, ""))
    };
    Ok(visit.page_with(StatusCode::OK, (PROMISE, "", Width::Text), content))
}

fn changes(gateway: &Gateway, events: &[StoredEvent]) -> Markup {
    let now = runner::now();
    html! {
        @if gateway.shows_public_views() && !events.is_empty() {
            h2 { "Changed lately" }
            ul.links {
                @for StoredEvent { event, .. } in events {
                    li {
                        a href=(event.feed) rel="nofollow" { (web_address(&event.feed)) } " "
                        small { (relative_time(event.at, now)) }
                    }
                }
            }
        }
    }
}

/// Returns whether a client prefers a page for people: browsers name HTML first, programs do not name
/// it.
pub(crate) fn is_browser(request: &Request) -> bool {
    request.header("accept").trim_start().starts_with("text/html")
}
