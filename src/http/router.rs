//! All doors together, as the listener opens them.

use std::sync::Arc;

use http::Request;
use hyper::body::Body;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use super::Gateway;
use super::routes::archive;

/// What answers requests.
#[derive(Clone)]
pub struct Doors {
    routes: BoxedFilter<(Response,)>,
    gateway: Option<Arc<Gateway>>,
}

impl Doors {
    /// Those of a gateway, which are found by `routes`.
    pub(super) fn new(gateway: Arc<Gateway>, routes: BoxedFilter<(Response,)>) -> Doors {
        Doors { routes, gateway: Some(gateway) }
    }

    /// What finds the door of a request.
    pub(super) fn routes(&self) -> BoxedFilter<(Response,)> {
        self.routes.clone()
    }

    /// A reply that is ready before it is known which door the request is for.
    pub(super) fn at_hand<B: Body>(&self, request: &Request<B>) -> Option<Response> {
        archive::at_hand(self.gateway.as_ref()?, request)
    }
}

/// Doors of which none has a reply ready.
impl From<BoxedFilter<(Response,)>> for Doors {
    fn from(routes: BoxedFilter<(Response,)>) -> Doors {
        Doors { routes, gateway: None }
    }
}
