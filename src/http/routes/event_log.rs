//! The event log: `/viewLog` for people, `/log.json` and `/log/stream` for programs. "If you're
//! debugging an app using our cloud, the log is an essential tool, to see if you're getting through
//! and what the cloud is doing with your requests and updates." (seed 000)
//!
//! Anybody may read the log. Callbacks are reduced to their host and a hash, except for their owner
//! (rule S54), who authenticates with a token as everywhere. What a callback at an inner address
//! answered is shown to the operator only (rule S13), and so are events about topics at inner
//! addresses (rule S55).

mod page;
mod stream;
mod stream_slots;

use std::sync::Arc;

use chrono::SecondsFormat;
use http::{StatusCode, header};
use serde_json::{Value, json};
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::http::kit::anonymous_access::Permission;
use crate::http::kit::auth::{self, Credentials};
use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::params;
use crate::http::kit::paths;
use crate::http::kit::permissions;
use crate::http::kit::rejection::{Rejection, unavailable};
use crate::http::kit::reply::{set_header, with_content_type};
use crate::http::kit::request::Request;
use crate::http::kit::viewer_access::ViewerAccess;
use crate::http::routes::console::Session;
use crate::http::state::Gateway;
use feedgate_core::account::Scope;
use feedgate_core::event::{
    Event, EventFilter, EventKind, EventOutcome, EventPage, EventViewer, StoredEvent,
};
use feedgate_core::redaction;
use feedgate_core::store::StoreError;
use feedgate_protocol::form::Form;

use stream_slots::StreamSlots;

const ENDPOINT: Endpoint =
    Endpoint { name: "event_log", methods: &["GET"], body_limit_bytes: 1_024 };
/// The default number of listed events.
const DEFAULT_EVENTS: usize = 100;
/// The maximum number of events in one response.
const MAX_EVENTS: usize = 1_000;

/// Returns the routes of this endpoint.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let streams = Arc::new(StreamSlots::new());
    let view = ENDPOINT.route(gateway, paths::exact("viewLog"), |gateway, request| async move {
        match requested_view(&gateway, &request).await {
            Ok(view) => page::reply(&gateway, view).await,
            Err(rejection) => rejection.to_response(),
        }
    });
    let log_streams = Arc::clone(&streams);
    let lines = ENDPOINT.route(gateway, paths::exact("log.json"), move |gateway, request| {
        handle_log(gateway, request, Arc::clone(&log_streams))
    });
    let live = ENDPOINT.route(gateway, paths::exact("log/stream"), move |gateway, request| {
        stream(gateway, request, Arc::clone(&streams))
    });
    view.or(lines).unify().or(live).unify().or(page::script(gateway)).unify().boxed()
}

/// The selection of events, and the permissions of the viewer.
#[derive(Clone, Debug)]
struct LogView {
    wanted: EventFilter,
    /// Whether the viewer may read the responses of servers on private networks, and see topics at
    /// inner addresses of which it is not the owner.
    access: ViewerAccess,
    /// The login of the viewer, if authenticated.
    login: Option<String>,
    /// Whether only events are shown whose callbacks the viewer may see.
    is_own_only: bool,
    /// The session of the browser, if it is signed in to the console.
    session: Option<Session>,
    /// The credentials of the request, which come before the session.
    credentials: Option<Credentials>,
}

async fn requested_view(gateway: &Gateway, request: &Request) -> Result<LogView, Rejection> {
    let form = params::read_query(request);
    let has_credentials = auth::has_credentials(request, &form);
    // A browser sends stored credentials only after a 401, which the parameter `login` requests.
    let session = match request.is_cross_site() {
        true => None,
        false => {
            Session::find(gateway, request).await.map_err(|err| Rejection::unavailable(&err))?
        }
    };
    let credentials = match has_credentials || form.is_set("login") {
        true => Some(Credentials::read(request, &form)?),
        false => None,
    };
    let access = match &credentials {
        Some(credentials) => Some(credentials.authenticate(gateway).await?),
        None => session.as_ref().map(|session| session.access.clone()),
    };
    if access.is_none() {
        permissions::check(gateway, request, &form, Permission::Views).await?;
    }
    let viewer = match &access {
        Some(access) if access.scopes.allow(Scope::Admin) => EventViewer::Admin,
        Some(access) if access.scopes.allow(Scope::List) => EventViewer::Account(access.account),
        Some(_) | None => EventViewer::Anonymous,
    };
    let networks = &gateway.settings.metrics_networks;
    let is_operator = viewer == EventViewer::Admin || request.is_from(networks);
    let wanted = parse_filter(&form, viewer)?;
    let login = access.map(|access| access.login);
    let access = match is_operator {
        true => ViewerAccess::OperatorNetwork,
        false => ViewerAccess::Public,
    };
    let is_own_only = form.is_set("own");
    Ok(LogView { wanted, access, login, is_own_only, session, credentials })
}

fn parse_filter(form: &Form, viewer: EventViewer) -> Result<EventFilter, Rejection> {
    let bad = |reason: String| Rejection::bad_request(reason);
    let word = |name| form.get(name).map(str::trim).filter(|word| !word.is_empty());
    let kind = word("kind").map(|word| {
        let words = EventKind::ALL.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(", ");
        EventKind::from_word(word).ok_or_else(|| bad(format!("kind must be one of {words}.")))
    });
    let outcome = word("outcome").map(|word| {
        let words =
            EventOutcome::ALL.iter().map(|held| held.as_str()).collect::<Vec<_>>().join(", ");
        EventOutcome::from_word(word).ok_or_else(|| bad(format!("outcome must be one of {words}.")))
    });
    let number = |name| {
        let read = |text: &str| text.parse::<i64>().ok().filter(|number| *number >= 0);
        let reason = || bad(format!("{name} must be the number of an event."));
        word(name).map(|text| read(text).ok_or_else(reason)).transpose()
    };
    let limit = number("limit")?
        .map_or(DEFAULT_EVENTS, |limit| usize::try_from(limit).unwrap_or(DEFAULT_EVENTS));
    Ok(EventFilter {
        viewer,
        feed: word("feed").unwrap_or_default().to_owned(),
        callback: word("callback").unwrap_or_default().to_owned(),
        kind: kind.transpose()?,
        outcome: outcome.transpose()?,
        after: number("after")?,
        before: number("before")?,
        limit: limit.clamp(1, MAX_EVENTS),
    })
}

/// Answers `/log.json`: by `Accept` one document, one line per event, or a stream of new events.
async fn handle_log(
    gateway: Arc<Gateway>,
    request: Request,
    streams: Arc<StreamSlots>,
) -> Response {
    if request.header("accept").contains("text/event-stream") {
        return stream(gateway, request, streams).await;
    }
    let view = match requested_view(&gateway, &request).await {
        Ok(view) => view,
        Err(rejection) => return rejection.to_response(),
    };
    match list_events(&gateway, &request, &view).await {
        Ok(response) => fresh(response),
        Err(err) => unavailable(&err),
    }
}

async fn list_events(
    gateway: &Gateway,
    request: &Request,
    view: &LogView,
) -> Result<Response, StoreError> {
    let newest = gateway.store.event_numbers().await?.newest;
    let page = gateway.store.events(&view.wanted).await?;
    let lines: Vec<Value> = page.events.iter().filter_map(|kept| view.visible_line(kept)).collect();
    if request.header("accept").contains("application/x-ndjson") {
        let body: String = lines.iter().map(|line| format!("{line}\n")).collect();
        return Ok(with_content_type(StatusCode::OK, "application/x-ndjson; charset=utf-8", body));
    }
    // The link to the next page in the requested direction, if there may be more events.
    let name = if view.wanted.after.is_some() { "after" } else { "before" };
    let next = view.next(&page).map(|id| json!({ name: id }));
    let body = json!({ "newest": newest, "next": next, "events": lines });
    Ok(with_content_type(StatusCode::OK, "application/json; charset=utf-8", body.to_string()))
}

async fn stream(gateway: Arc<Gateway>, request: Request, streams: Arc<StreamSlots>) -> Response {
    match requested_view(&gateway, &request).await {
        Ok(view) => fresh(stream::reply(gateway, &request, view, &streams).await),
        Err(rejection) => rejection.to_response(),
    }
}

impl LogView {
    /// Returns whether the viewer still has the permissions of the view: they end with the token.
    async fn is_valid(&self, gateway: &Gateway) -> Result<bool, StoreError> {
        match (&self.credentials, &self.session) {
            (Some(credentials), _) => credentials.are_valid(gateway).await,
            (None, Some(session)) => session.is_valid(gateway).await,
            (None, None) => Ok(true),
        }
    }

    /// Returns whether the view shows an event.
    fn shows(&self, event: &Event) -> bool {
        let viewer = self.wanted.viewer;
        viewer.owns(event) || (!self.is_own_only && self.access.sees_event(viewer, event))
    }

    /// Returns the viewer as a reader of the console, to whose pages rows lead. Without a session they lead
    /// nowhere.
    fn console_reader(&self) -> EventViewer {
        match (&self.session, &self.credentials) {
            (Some(_), None) => self.wanted.viewer,
            _ => EventViewer::Anonymous,
        }
    }

    /// Returns where the next page begins. If the viewer may see nothing of what was selected by feed,
    /// the next page begins where it would if there were no such feed.
    fn next(&self, page: &EventPage) -> Option<i64> {
        let is_known =
            self.wanted.feed.is_empty() || page.events.iter().any(|kept| self.shows(&kept.event));
        if is_known { page.next } else { page.next_if_empty }
    }

    /// Returns an event as JSON, if the viewer may see it.
    fn visible_line(&self, kept: &StoredEvent) -> Option<Value> {
        self.shows(&kept.event).then(|| self.line(kept))
    }

    /// Returns the callback of an event as the viewer may see it.
    fn callback(&self, event: &Event) -> String {
        match self.wanted.viewer.owns(event) {
            true => event.callback.clone(),
            false => redaction::callback(&event.callback),
        }
    }

    /// Returns the details of an event as the viewer may see them.
    fn detail(&self, event: &Event) -> String {
        let is_operator = self.access == ViewerAccess::OperatorNetwork;
        match (is_operator, event.detail.is_empty(), event.private_detail.is_empty()) {
            (false, ..) | (_, _, true) => event.detail.clone(),
            (true, true, false) => event.private_detail.clone(),
            (true, false, false) => format!("{}; {}", event.detail, event.private_detail),
        }
    }

    /// Returns an event as JSON.
    fn line(&self, kept: &StoredEvent) -> Value {
        let event = &kept.event;
        json!({
            "id": kept.id,
            "at": event.at.to_rfc3339_opts(SecondsFormat::Millis, true),
            "kind": event.kind.as_str(),
            "outcome": event.outcome.as_str(),
            "code": event.code,
            "via": event.via,
            "feed": event.feed,
            "callback": self.callback(event),
            "count": event.many,
            "took_ms": event.took.map(|took| took.as_millis() as u64),
            "detail": self.detail(event),
        })
    }
}

/// Forbids caches to store the response, because it changes at any moment and differs for each
/// viewer.
fn fresh(mut response: Response) -> Response {
    set_header(&mut response, header::CACHE_CONTROL, "private, no-store");
    set_header(&mut response, header::VARY, "Accept, Authorization, Cookie");
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_is_read_from_the_query() {
        let read = |query: &str| {
            parse_filter(&Form::from_urlencoded(query.as_bytes()).unwrap(), EventViewer::Anonymous)
        };
        let all = read("kind=&feed=+&limit=5000").unwrap();
        assert_eq!(all, EventFilter { limit: MAX_EVENTS, ..EventFilter::default() });
        let some = read("kind=ping&outcome=refused&before=7&feed=a.test").unwrap();
        assert_eq!((some.kind, some.outcome), (Some(EventKind::Ping), Some(EventOutcome::Refused)));
        assert_eq!((some.before, some.feed.as_str()), (Some(7), "a.test"));
        for (query, word) in
            [("kind=party", "subscribe"), ("outcome=x", "failed"), ("after=-1", "number")]
        {
            let reason = read(query).unwrap_err().reason().to_owned();
            assert!(reason.contains(word), "{query}: {reason}");
        }
    }
}
