//! Public views of the watched feeds, in the formats of deployed rssCloud servers: `/feeds.opml`,
//! `/stats`, `/stats.json` and `/subscriptions.json`.
//!
//! No view shows a secret: topics with credentials are left out (rule S48), those at inner
//! addresses are shown to the operator's networks only (rule S55), and of callbacks the host and a
//! hash are shown (rule S54). The subscriptions of an account are visible to its owner only. Whoever
//! registered a callback at its own address, and an account with its token, is shown its own
//! callbacks in clear in `/subscriptions.json`, as they are at that moment.
//!
//! Of each kind, one document for everybody is made at a time, however many clients request it, and
//! it is served for a minute.

mod cache;
mod document;
mod feeds;
mod feeds_page;
mod page;
mod stats;
mod subscriptions;
mod totals;

use std::sync::Arc;

use chrono::{DateTime, Utc};
use http::StatusCode;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::byte_cache::CacheName;
use crate::http::kit::anonymous_access::Permission;
use crate::http::kit::auth;
use crate::http::kit::browser_view;
use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::params;
use crate::http::kit::paths;
use crate::http::kit::permissions;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::rejection::unavailable;
use crate::http::kit::reply::plain_text;
use crate::http::kit::request::Request;
use crate::http::kit::viewer_access::ViewerAccess;
use crate::http::state::Gateway;
use crate::jobs::runner;
use feedgate_core::account::Scope;
use feedgate_core::store::StoreError;

use cache::ViewCache;
use document::ViewDocument;
use feeds::ListedUrls;
use stats::Stats;
use subscriptions::{ListingCursor, ListingOwner};

const ENDPOINT: Endpoint = Endpoint { name: "views", methods: &["GET"], body_limit_bytes: 1_024 };
/// Characters of a title that are shown.
const TITLE_CHARS: usize = 200;
/// How many requests it counts as that a list with other addresses than usual is rendered: it reads all
/// resources.
const LIST_REQUESTS: usize = 10;

/// Returns the routes of this endpoint.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let views = Arc::new(Views::new(runner::now()));
    let route_of = |route: BoxedFilter<()>, view: View| {
        let views = Arc::clone(&views);
        ENDPOINT.route(gateway, route, move |gateway, request| {
            let views = Arc::clone(&views);
            async move { handle(&gateway, &request, &views, view).await }
        })
    };
    route_of(paths::exact("feeds.opml"), View::Feeds)
        .or(route_of(paths::exact("stats"), View::Page))
        .unify()
        .or(route_of(paths::exact("stats.json"), View::Stats))
        .unify()
        .or(route_of(paths::exact("subscriptions.json"), View::Subscriptions))
        .unify()
        .boxed()
}

/// One of the views.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum View {
    Feeds,
    Page,
    Stats,
    Subscriptions,
}

/// The views that were rendered lately.
struct Views {
    started_at: DateTime<Utc>,
    feeds: Arc<ViewCache<(ViewerAccess, ListedUrls), ViewDocument>>,
    stats: Arc<ViewCache<ViewerAccess, Stats>>,
    subscriptions: Arc<ViewCache<(ViewerAccess, ListingCursor), ViewDocument>>,
}

impl Views {
    fn new(started_at: DateTime<Utc>) -> Views {
        let feeds = Arc::new(ViewCache::new(CacheName::FeedList));
        let stats = Arc::new(ViewCache::new(CacheName::Statistics));
        let subscriptions = Arc::new(ViewCache::new(CacheName::SubscriptionList));
        Views { started_at, feeds, stats, subscriptions }
    }
}

async fn handle(gateway: &Arc<Gateway>, request: &Request, views: &Views, view: View) -> Response {
    if !gateway.settings.has_public_views {
        let reason = "The operator of this gateway does not publish its views: \
                   FEEDGATE_PUBLIC_VIEWS is off.";
        return plain_text(StatusCode::NOT_FOUND, reason);
    }
    let entered = permissions::check_by_query(gateway, request, Permission::Views).await;
    if let Err(rejection) = entered {
        return rejection.to_response();
    }
    match render_view(gateway, request, views, view).await {
        Ok(response) => permissions::keep_private(gateway, response),
        Err(Failure::Rejection(rejection)) => rejection.to_response(),
        Err(Failure::Store(err)) => unavailable(&err),
    }
}

/// The reason why a view is not shown.
enum Failure {
    Rejection(Rejection),
    Store(StoreError),
}

impl From<StoreError> for Failure {
    fn from(err: StoreError) -> Failure {
        Failure::Store(err)
    }
}

async fn render_view(
    gateway: &Arc<Gateway>,
    request: &Request,
    views: &Views,
    view: View,
) -> Result<Response, Failure> {
    let access = ViewerAccess::of_request(gateway, request);
    let (shared, started_at) = (Arc::clone(gateway), views.started_at);
    Ok(match view {
        View::Feeds if browser_view::is_preferred(&request.headers, &request.query) => {
            feeds_page::reply(gateway, request, access).await?
        }
        View::Feeds => {
            let urls = ListedUrls::from_query(&request.query).map_err(Failure::Rejection)?;
            let key = (access, urls);
            // The cache has room for one long list for everybody, which others must not push out.
            if urls != ListedUrls::Gateway && !views.feeds.is_fresh(key) {
                gateway
                    .anonymous_rate_limit
                    .admit(request, LIST_REQUESTS)
                    .map_err(Failure::Rejection)?;
            }
            let make = move |before| async move { feeds::render(&shared, key, before).await };
            let document = views.feeds.get_or_make(key, make).await?;
            let requests = document.requests_to_decompress(&request.method, &request.headers);
            gateway.anonymous_rate_limit.admit(request, requests).map_err(Failure::Rejection)?;
            let mut response = document.to_response(request, access);
            browser_view::vary_by_accept(&mut response);
            response
        }
        View::Stats | View::Page => {
            let make = move |_| async move {
                Stats::render(&shared, access, started_at).await.map(Arc::new)
            };
            let stats = views.stats.get_or_make(access, make).await?;
            let document = if view == View::Page { &stats.page } else { &stats.json };
            document.to_response(request, access)
        }
        View::Subscriptions => {
            let cursor = ListingCursor::from_query(&request.query).map_err(Failure::Rejection)?;
            if let Some(owner) = find_owner(gateway, request).await.map_err(Failure::Rejection)? {
                let document = subscriptions::render_for(gateway, access, cursor, owner).await?;
                return Ok(document.to_private_response(request, access));
            }
            // Clients can make up any number of cursors, each with a page that must be read.
            if !cursor.is_start() && !views.subscriptions.is_fresh((access, cursor)) {
                gateway.anonymous_rate_limit.admit(request, 1).map_err(Failure::Rejection)?;
            }
            let make = move |before| async move {
                subscriptions::render(&shared, access, cursor, before).await
            };
            views
                .subscriptions
                .get_or_make((access, cursor), make)
                .await?
                .to_response(request, access)
        }
    })
}

/// Returns who is shown subscriptions of its own, in clear and as they are now: an account, or an
/// address that registered lately.
async fn find_owner(
    gateway: &Gateway,
    request: &Request,
) -> Result<Option<ListingOwner>, Rejection> {
    let form = params::read_query(request);
    if auth::has_credentials(request, &form) {
        let access = auth::authenticate(gateway, request, &form).await?;
        auth::require(&access, Scope::List)?;
        return Ok(Some(ListingOwner::Account(access.account)));
    }
    let Some(client) = gateway.recent_registrants.find(request) else { return Ok(None) };
    gateway.anonymous_rate_limit.admit(request, 1)?;
    Ok(Some(ListingOwner::Address(client)))
}
