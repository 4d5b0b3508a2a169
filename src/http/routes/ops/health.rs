//! `/livez` and `/readyz`: whether the process runs, and whether it can do its work.
//!
//! The first asks nothing of anybody, so that a slow database does not get the
//! process killed; the second asks the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::StatusCode;
use tokio::time::timeout;
use tracing::{info, warn};
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::reply::plain_text;
use crate::http::kit::request::Request;
use crate::http::state::Gateway;

const ENDPOINT: Endpoint = Endpoint { name: "health", methods: &["GET"], body_limit_bytes: 1_024 };

/// How long the store may take to answer: less than those who ask are willing to wait, or
/// they would learn nothing.
const PATIENCE: Duration = Duration::from_secs(2);

/// The routes of this endpoint.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let live = warp::path!("livez").boxed();
    let ready = warp::path!("readyz").boxed();
    let live = ENDPOINT.route(gateway, live, |_, _| async { plain_text(StatusCode::OK, "alive") });
    let ailing = Arc::new(AtomicBool::new(false));
    let ready = ENDPOINT.route(gateway, ready, move |gateway, _: Request| {
        let ailing = Arc::clone(&ailing);
        async move { readiness(&gateway, &ailing).await }
    });
    live.or(ready).unify().boxed()
}

/// `ailing` holds what was answered last, so that only changes are logged.
async fn readiness(gateway: &Gateway, ailing: &AtomicBool) -> Response {
    let reason = match timeout(PATIENCE, gateway.store.ready()).await {
        Ok(Ok(())) => {
            if ailing.swap(false, Ordering::Relaxed) {
                info!("ready again");
            }
            return plain_text(StatusCode::OK, "ready");
        }
        Ok(Err(err)) => format!("{err} ({})", err.code()),
        Err(_) => format!("the database did not answer within {} s", PATIENCE.as_secs()),
    };
    if !ailing.swap(true, Ordering::Relaxed) {
        warn!(reason, "not ready");
    }
    plain_text(StatusCode::SERVICE_UNAVAILABLE, &format!("not ready: {reason}"))
}
