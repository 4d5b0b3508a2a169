//! `/livez` and `/readyz`: whether the process runs, and whether it can do its work.
//!
//! The first asks nothing of anybody, so that a slow database does not get the
//! process killed; the second asks the store.

use std::sync::Arc;

use http::StatusCode;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use super::Gateway;
use super::exchange::{Asked, Door, plain};

const DOOR: Door = Door { name: "health", methods: &["GET"], body_limit_bytes: 1_024 };

/// The routes of this door.
pub(super) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let live = warp::path!("livez").boxed();
    let ready = warp::path!("readyz").boxed();
    let live = DOOR.open(gateway, live, |_, _| async { plain(StatusCode::OK, "alive") });
    live.or(DOOR.open(gateway, ready, readiness)).unify().boxed()
}

async fn readiness(gateway: Arc<Gateway>, _: Asked) -> Response {
    match gateway.store.ready().await {
        Ok(()) => plain(StatusCode::OK, "ready"),
        Err(err) => {
            let why = format!("not ready: {err} ({})", err.code());
            plain(StatusCode::SERVICE_UNAVAILABLE, &why)
        }
    }
}
