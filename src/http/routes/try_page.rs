//! `/try`: what is at an address, for anybody who pastes one. The page has an address of its own, which
//! can be shared.
//!
//! What always holds:
//!
//! * Nothing is stored. The fetch is a preview as in the console, with the limits of clients without an
//!   account, and leads to public addresses only, unless the client may name others.
//! * What was found is kept for a minute, so that the publisher gets one request however many people open
//!   a link, or look at the entries one after the other.
//! * Another site can link to the page, but cannot make a browser fetch addresses unseen; neither a browser
//!   that guesses what comes next nor a HEAD fetches them; and neither this gateway nor another one fetches
//!   the page, so that no chain of addresses leads back to it.

pub(crate) mod failure;
pub(crate) mod form;
mod found;

use std::sync::Arc;
use std::time::Duration;

use http::header::{self, HeaderName};
use http::{Method, StatusCode};
use maud::{Markup, html};
use tokio::time::Instant;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::byte_cache::{ByteCache, ByteSize, CacheName};
use crate::http::kit::anonymous_access::Permission;
use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::html::{HtmlPage, Interaction, Place, Width};
use crate::http::kit::params;
use crate::http::kit::paths;
use crate::http::kit::permissions;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::set_header;
use crate::http::kit::request::Request;
use crate::http::kit::typed_address::parse_topic;
use crate::http::state::Gateway;
use crate::subscriptions::{CallerNetworks, PreviewOwner};
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::topic::Topic;
use feedgate_protocol::form::Form;

use failure::TryFailure;
use form::{address_of, form, with_url};
use found::TriedAddress;

const ENDPOINT: Endpoint = Endpoint { name: "try", methods: &["GET"], body_limit_bytes: 1_024 };
/// How many requests it counts as that an address is fetched: thirty a minute by default.
const FETCH_REQUESTS: usize = 20;
/// How long what was found is displayed without another fetch.
const FRESH_FOR: Duration = Duration::from_secs(60);
/// How this gateway and others begin the name that they fetch with.
const OWN_AGENT: &str = "feedgate/";
/// Addresses to try: a page with feeds, and a feed.
const EXAMPLES: [&str; 2] = ["xkcd.com", "www.rfc-editor.org/rfcrss.xml"];
/// The page of the console that adds a feed.
const ADD_PAGE: &str = "console/feeds/add";
/// Tells crawlers not to follow what a page links to (Google, "Robots meta tag").
const ROBOTS: HeaderName = HeaderName::from_static("x-robots-tag");

/// What was found lately, by topic and by what the client may name.
type TriedAddresses = ByteCache<(String, CallerNetworks), Arc<TriedAddress>>;

impl ByteSize for Arc<TriedAddress> {
    fn byte_size(&self) -> usize {
        self.bytes()
    }
}

/// Returns the routes of this endpoint.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let tried: Arc<TriedAddresses> = Arc::new(ByteCache::new(CacheName::Previews));
    ENDPOINT.route(gateway, paths::exact("try"), move |gateway, request| {
        let tried = Arc::clone(&tried);
        async move { respond(&gateway, &request, &tried).await }
    })
}

async fn respond(gateway: &Gateway, request: &Request, tried: &TriedAddresses) -> Response {
    let form = params::read_query(request);
    let is_head = request.method == Method::HEAD;
    let typed = form.get("url").filter(|_| !is_head).unwrap_or_default().trim();
    if let Err(rejection) = permissions::check(gateway, request, &form, Permission::Try).await {
        return closed(&rejection, typed);
    }
    if typed.is_empty() {
        return page(StatusCode::OK, typed, introduction());
    }
    match find(gateway, request, &form, tried).await {
        Ok((topic, found)) => {
            let number = form.get("entry").and_then(|number| number.parse().ok()).unwrap_or(1);
            let link =
                gateway.public_url(&address_of(topic.as_str(), Some(number).filter(|n| *n > 1)));
            let content = html! { (found.section(number)) (link_field(&link)) };
            page(StatusCode::OK, typed, content)
        }
        Err(failure) => {
            let mut response = page(failure.status, typed, failure.section());
            if let Some(wait_s) = failure.retry_after_s {
                set_header(&mut response, header::RETRY_AFTER, &wait_s.to_string());
            }
            response
        }
    }
}

/// Finds what is at the address of the form.
async fn find(
    gateway: &Gateway,
    request: &Request,
    form: &Form,
    tried: &TriedAddresses,
) -> Result<(Topic, Arc<TriedAddress>), TryFailure> {
    let rejected = |rejection: Rejection| TryFailure::rejected(&rejection);
    let topic = parse_topic(form.get("url").unwrap_or_default()).map_err(|wrong| {
        TryFailure::bad_address(
            wrong,
            "Paste the address of a feed or a page, such as example.com.",
        )
    })?;
    let url = topic.fetch_url();
    if !url.username().is_empty() || url.password().is_some() {
        let wrong = "The address contains a login, and this page is made to be shared.".to_owned();
        let right = "Sign in, and add the feed there.";
        return Err(TryFailure::bad_address(wrong, right));
    }
    check_is_visit(request).map_err(rejected)?;
    let may_name = permissions::caller_networks(gateway, request, form, std::slice::from_ref(&url));
    let may_name = may_name.await.map_err(rejected)?;
    let is_fresh = |held: &Arc<TriedAddress>| held.made_at + FRESH_FOR > Instant::now();
    let key = (topic.as_str().to_owned(), may_name);
    let is_held = tried.get(&key).is_some_and(|held| is_fresh(&held));
    let requests = if is_held { 1 } else { FETCH_REQUESTS };
    gateway.anonymous_rate_limit.admit(request, requests).map_err(rejected)?;
    let make = async {
        let network = RegistrantNetwork::from_client(request.client.ip);
        let owner = PreviewOwner::Anonymous { network, may_name };
        let preview = gateway.subscribe.preview(&topic, owner).await;
        let preview = preview.map_err(|why| TryFailure::of_preview(&why, &topic))?;
        let found = TriedAddress::read(topic.clone(), preview).await.map(Arc::new);
        found.map_err(|why| TryFailure::of_preview(&why, &topic))
    };
    let found = tried.get_or_make(&key, is_fresh, make).await?;
    Ok((topic, found))
}

/// Rejects a request that no person has made who looks at the page: one that a page of another site makes
/// as it would load an image, one of a browser that guesses what is opened next, and one of a gateway.
/// Programs, and browsers over plain HTTP, send no `Sec-Fetch-` headers.
fn check_is_visit(request: &Request) -> Result<(), Rejection> {
    let is_embedded = match request.header("sec-fetch-site") {
        "" => request.is_referer_foreign || !accepts_pages(request),
        "same-origin" | "none" => false,
        _ => request.header("sec-fetch-dest") != "document",
    };
    let is_guess = ["sec-purpose", "purpose", "x-moz"]
        .iter()
        .any(|name| request.header(name).contains("prefetch"));
    let is_gateway = request.header("user-agent").starts_with(OWN_AGENT);
    match is_embedded || is_guess || is_gateway || request.is_origin_foreign {
        true => Err(Rejection::new(
            StatusCode::FORBIDDEN,
            "This page is for people: other sites can link to it, and gateways do not fetch it. The button shows \
             what is there.",
        )
        .with_code("cross_site")),
        false => Ok(()),
    }
}

/// Returns whether the client reads pages: it names HTML, or everything and no media type of what pages are
/// made of.
fn accepts_pages(request: &Request) -> bool {
    let accepted = request.header("accept").to_ascii_lowercase();
    let is_part =
        ["image/", "text/css", "audio/", "video/"].iter().any(|kind| accepted.contains(kind));
    accepted.is_empty() || accepted.contains("text/html") || (accepted.contains("*/*") && !is_part)
}

fn introduction() -> Markup {
    html! {
        p {
            "Paste the address of a feed or of a page. You see the feeds of a page, the entries of a feed \
             as readers show them, the same entries as they are sent to subscribers, as Atom and JSON, where \
             each field came from, what had to be repaired, and how often the feed would be fetched. Nothing \
             is stored."
        }
        p {
            "For example: "
            @for (n, example) in EXAMPLES.iter().enumerate() {
                @if n > 0 { ", " }
                a href=(address_of(example, None)) { (example) }
            }
        }
    }
}

/// Returns the page where this gateway shows previews to accounts only.
fn closed(rejection: &Rejection, typed: &str) -> Response {
    let content = html! {
        p role="alert" { "This gateway shows what is at an address to accounts only." }
        p { a.button href=(with_url(ADD_PAGE, typed)) { "Sign in and preview it" } }
    };
    framed(rejection.status(), content)
}

fn link_field(link: &str) -> Markup {
    html! {
        label { "Link to this page"
            input.address type="text" readonly value=(link) spellcheck="false";
        }
    }
}

fn page(status: StatusCode, typed: &str, content: Markup) -> Response {
    framed(status, html! { (form("", typed)) (content) })
}

fn framed(status: StatusCode, content: Markup) -> Response {
    let page = HtmlPage {
        title: "What is at an address",
        width: Width::Table,
        interaction: Interaction::Forms,
        place: Place::public("try"),
        content,
    };
    let mut response = page.reply(status);
    set_header(&mut response, header::CACHE_CONTROL, "private, no-cache");
    set_header(&mut response, ROBOTS, "noindex, nofollow");
    response
}
