//! `/feed-health`: how a feed is polled, for its publisher, who has no account.
//!
//! Only what everybody may find in the lists of this gateway is shown. Any other feed is answered as one
//! that nobody subscribes to: one at a private address, one with credentials in its address or with headers
//! of its own, and one that only accounts subscribe to.

mod advice;
mod page;
mod validators;

use std::sync::Arc;

use http::StatusCode;
use maud::{Markup, html};
use url::Url;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::fetch_traces::FetchTrace;
use crate::http::kit::anonymous_access::Permission;
use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::html::{HtmlPage, Interaction, Place, Width};
use crate::http::kit::params;
use crate::http::kit::paths;
use crate::http::kit::permissions;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use crate::http::kit::typed_address::{has_scheme, parse_topic};
use crate::http::kit::viewer_access::ViewerAccess;
use crate::http::routes::try_page::form::with_url;
use crate::http::state::Gateway;
use feedgate_core::event::{EventFilter, EventKind, StoredEvent};
use feedgate_core::ping::PingSource;
use feedgate_core::resource::Resource;
use feedgate_core::store::StoreError;
use feedgate_core::topic::Topic;
use feedgate_core::upstream::UpstreamSummary;

const ENDPOINT: Endpoint =
    Endpoint { name: "feed_health", methods: &["GET"], body_limit_bytes: 1_024 };
/// How many requests it counts as that a feed is looked up: the event log is searched for its pings.
const LOOKUP_REQUESTS: usize = 5;
/// The most pings that are read.
const PINGS: usize = 50;

/// What is known of the health of a feed.
struct FeedHealth {
    resource: Resource,
    /// What the client may see.
    access: ViewerAccess,
    upstream: Option<UpstreamSummary>,
    /// The last pings of its publisher, newest first.
    pings: Vec<StoredEvent>,
    /// The last fetches by this node, newest first.
    fetches: Vec<Arc<FetchTrace>>,
}

/// Returns the routes of this endpoint.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    ENDPOINT.route(gateway, paths::exact("feed-health"), |gateway, request| async move {
        let response = respond(&gateway, &request).await;
        permissions::keep_private(&gateway, response)
    })
}

async fn respond(gateway: &Gateway, request: &Request) -> Response {
    let form = params::read_query(request);
    if !gateway.settings.has_public_views {
        return reply(StatusCode::NOT_FOUND, switched_off());
    }
    if let Err(rejection) = permissions::check(gateway, request, &form, Permission::Views).await {
        return rejection.to_response();
    }
    let typed = form.get("url").unwrap_or_default().trim();
    if typed.is_empty() {
        return reply(StatusCode::OK, html! { (url_form(typed)) (introduction()) });
    }
    let (status, content, rejection) = match find(gateway, request, typed).await {
        Ok(Some(health)) => {
            let content = html! { (url_form(typed)) (page::content(gateway, &health)) };
            return reply(StatusCode::OK, content);
        }
        Ok(None) => (StatusCode::NOT_FOUND, not_polled(typed), None),
        Err(rejection) => {
            let content = html! { p role="alert" { (rejection.reason()) } };
            (rejection.status(), content, Some(rejection))
        }
    };
    let response = reply(status, html! { (url_form(typed)) (content) });
    match rejection {
        Some(rejection) => rejection.set_retry_after(response),
        None => response,
    }
}

/// Finds the feed that somebody typed, if it may be shown.
async fn find(
    gateway: &Gateway,
    request: &Request,
    typed: &str,
) -> Result<Option<FeedHealth>, Rejection> {
    gateway.anonymous_rate_limit.admit(request, LOOKUP_REQUESTS)?;
    let access = ViewerAccess::of_request(gateway, request);
    let topics = possible_topics(typed).map_err(Rejection::unprocessable)?;
    for topic in topics {
        let found = gateway.store.find(topic.as_str()).await;
        let found = found.map_err(|err| Rejection::unavailable(&err))?;
        let is_displayed = |resource: &Resource| {
            resource.subscribers > 0 && access.shows(resource, gateway.settings.listed)
        };
        if let Some(resource) = found.filter(is_displayed) {
            let health = FeedHealth::read(gateway, resource, access).await;
            return health.map(Some).map_err(|err| Rejection::unavailable(&err));
        }
    }
    Ok(None)
}

/// Returns the topics that may be meant, the most likely first: as it was typed, as browsers write it, and
/// without HTTPS if no scheme was typed. The error is a sentence.
fn possible_topics(typed: &str) -> Result<Vec<Topic>, String> {
    let topic = parse_topic(typed)?;
    let mut texts = vec![topic.as_str().to_owned()];
    let plain = texts[0].strip_prefix("https://").filter(|_| !has_scheme(typed));
    texts.extend(plain.map(|rest| format!("http://{rest}")));
    let written: Vec<String> =
        texts.iter().flat_map(|text| Url::parse(text)).map(String::from).collect();
    texts.extend(written);
    let mut topics: Vec<Topic> = Vec::new();
    for topic in texts.into_iter().filter_map(|text| Topic::parse(text).ok()) {
        if !topics.contains(&topic) {
            topics.push(topic);
        }
    }
    Ok(topics)
}

impl FeedHealth {
    async fn read(
        gateway: &Gateway,
        resource: Resource,
        access: ViewerAccess,
    ) -> Result<FeedHealth, StoreError> {
        let address = resource.topic.redacted();
        let feed = address.to_owned();
        let wanted = EventFilter {
            feed,
            kind: Some(EventKind::Ping),
            limit: PINGS,
            ..EventFilter::default()
        };
        let mut pings = gateway.store.events(&wanted).await?.events;
        // The filter matches longer addresses too, and somebody who fetches the feed by hand is no publisher.
        pings.retain(|StoredEvent { event, .. }| {
            event.feed == address && event.via != PingSource::Console.as_str()
        });
        let upstream = gateway.store.upstream_summary(resource.id).await?;
        let fetches = gateway.fetch_traces.of_feed(resource.id);
        Ok(FeedHealth { resource, access, upstream, pings, fetches })
    }
}

fn introduction() -> Markup {
    html! {
        p {
            "For the publisher of a feed: whether this gateway polls it, when next and why then, what your \
             server answered, whether its ETag and Last-Modified save you anything, whether your hub or your \
             pings were received, and what would bring new entries to subscribers sooner."
        }
        p { "The address has to be one of " a href="feeds.opml" { "the feeds that this gateway polls" } "." }
    }
}

fn not_polled(typed: &str) -> Markup {
    html! {
        p role="alert" { "This gateway polls no feed at this address that everybody may see." }
        ul {
            li {
                "The address has to be the one that is fetched, as it is in the log of your server: with or \
                 without " code { "www." } " and a slash at its end."
            }
            li { "Feeds that only accounts subscribe to are not shown here, and private ones never." }
            li { a href=(with_url("try", typed)) rel="nofollow" { "See what is at this address" } }
            li { a href="bot" { "How to recognize the requests of this gateway" } }
        }
    }
}

fn switched_off() -> Markup {
    html! {
        p role="alert" {
            "The operator of this gateway does not publish which feeds it polls: FEEDGATE_PUBLIC_VIEWS is off."
        }
        p { a href="bot" { "How this gateway fetches, how to slow it down, and whom to write to" } }
    }
}

fn url_form(typed: &str) -> Markup {
    html! {
        form.filter method="get" action="feed-health" {
            label { "Address of your feed "
                input name="url" inputmode="url" required maxlength=(Topic::LONGEST_BYTES)
                    placeholder="https://example.com/feed" value=(typed)
                    autocapitalize="none" spellcheck="false";
            }
            button.primary type="submit" { "Show its health" }
        }
    }
}

fn reply(status: StatusCode, content: Markup) -> Response {
    let page = HtmlPage {
        title: "The health of a feed",
        width: Width::Table,
        interaction: Interaction::Forms,
        place: Place::public("feed-health"),
        content,
    };
    page.reply(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_mean_several_topics() {
        #[rustfmt::skip]
        let cases: [(&str, &[&str]); 4] = [
            ("a.test/feed",         &["https://a.test/feed", "http://a.test/feed"]),
            ("a.test",              &["https://a.test", "http://a.test", "https://a.test/", "http://a.test/"]),
            ("https://A.test/feed", &["https://A.test/feed", "https://a.test/feed"]),
            ("http://a.test/feed",  &["http://a.test/feed"]),
        ];
        for (typed, want) in cases {
            let topics = possible_topics(typed).unwrap();
            assert_eq!(topics.iter().map(Topic::as_str).collect::<Vec<_>>(), want, "{typed}");
        }
        assert!(possible_topics("ftp://a.test/").is_err());
    }
}
