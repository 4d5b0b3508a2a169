//! The routes of all endpoints, and the fast path before them.

use std::sync::Arc;

use http::{HeaderMap, Method};
use hyper::body::Body;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::path::FullPath;
use warp::reply::Response;

use crate::http::kit::browser_view;
use crate::http::kit::not_found_page;
use crate::http::kit::reply::not_found;
use crate::http::public_path::PublicPath;
use crate::http::routes::{
    archive, author, changes, cloud_aliases, console, crawlers, errors, event_log, feed_health,
    icon, openapi, ops, rpc, rsscloud, schemas, storage, superfeedr, try_page, upstream, v1, views,
    weblogs, websub,
};
use crate::http::state::Gateway;

/// Finds the endpoint of a request.
#[derive(Clone)]
pub struct Router {
    routes: BoxedFilter<(Response,)>,
    gateway: Option<Arc<Gateway>>,
    public_path: PublicPath,
}

impl Router {
    /// Returns the endpoints of a gateway.
    pub fn new(gateway: Arc<Gateway>) -> Router {
        let public_path = PublicPath::new(&gateway.settings.public_url);
        Router { routes: routes(&gateway), gateway: Some(gateway), public_path }
    }

    /// Returns the endpoints that tell operators about a gateway.
    pub fn health(gateway: &Arc<Gateway>) -> Router {
        let routes = ops::health::routes(gateway).or(ops::metrics::routes(gateway)).unify();
        routes.or(warp::any().map(not_found)).unify().boxed().into()
    }

    /// Returns all routes, as one filter.
    pub(super) fn routes(&self) -> BoxedFilter<(Response,)> {
        self.routes.clone()
    }

    /// Prepares a request for the routes, which see its path without that of the public URL. Returns
    /// the response if it is known before the request is matched against them.
    pub(super) fn prepare<B: Body>(&self, request: &mut http::Request<B>) -> Option<Response> {
        let redirect = self.public_path.remove_from(request);
        redirect.or_else(|| archive::fast_path::reply(self.gateway.as_ref()?, request))
    }
}

/// A router of these routes alone, without a fast path.
impl From<BoxedFilter<(Response,)>> for Router {
    fn from(routes: BoxedFilter<(Response,)>) -> Router {
        Router { routes, gateway: None, public_path: PublicPath::default() }
    }
}

/// Returns all routes, the busiest first.
fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    superfeedr::routes(gateway)
        .or(websub::routes(gateway))
        .unify()
        .or(v1::routes(gateway))
        .unify()
        .or(rsscloud::routes(gateway))
        .unify()
        .or(rpc::routes(gateway))
        .unify()
        .or(cloud_aliases::routes(gateway))
        .unify()
        .or(weblogs::routes(gateway))
        .unify()
        .or(changes::routes(gateway))
        .unify()
        .or(archive::routes(gateway))
        .unify()
        .or(storage::routes(gateway))
        .unify()
        .or(author::routes(gateway))
        .unify()
        .or(try_page::routes(gateway))
        .unify()
        .or(feed_health::routes(gateway))
        .unify()
        .or(ops::bot::routes(gateway))
        .unify()
        .or(ops::key_directory::routes(gateway))
        .unify()
        .or(upstream::routes(gateway))
        .unify()
        .or(event_log::routes(gateway))
        .unify()
        .or(console::routes(gateway))
        .unify()
        .or(views::routes(gateway))
        .unify()
        .or(schemas::routes(gateway))
        .unify()
        .or(errors::routes(gateway))
        .unify()
        .or(openapi::routes(gateway))
        .unify()
        .or(ops::health::routes(gateway))
        .unify()
        .or(ops::metrics::routes(gateway))
        .unify()
        .or(icon::routes(gateway))
        .unify()
        .or(crawlers::routes(gateway))
        .unify()
        .or(unknown_path(gateway))
        .unify()
        .boxed()
}

/// Returns the route of all paths that no endpoint has.
fn unknown_path(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let gateway = Arc::clone(gateway);
    let request = warp::method().and(warp::path::full()).and(warp::header::headers_cloned());
    let reply = move |method: Method, path: FullPath, headers: HeaderMap| {
        let is_read = [Method::GET, Method::HEAD].contains(&method);
        match is_read && browser_view::is_preferred(&headers, "") {
            true => not_found_page::page(&gateway, path.as_str()),
            false => not_found(),
        }
    };
    request.map(reply).boxed()
}
