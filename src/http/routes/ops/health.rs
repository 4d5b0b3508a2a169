//! `/livez` and `/readyz`: whether the process runs, and whether it can do its work.
//!
//! `/livez` does not depend on anything, so that a slow database does not get the process
//! killed; `/readyz` queries the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::StatusCode;
use tokio::time::timeout;
use tracing::{info, warn};
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::disk_space::DiskShortage;
use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::reply::plain_text;
use crate::http::kit::request::Request;
use crate::http::state::Gateway;

const ENDPOINT: Endpoint = Endpoint { name: "health", methods: &["GET"], body_limit_bytes: 1_024 };

/// How long the store may take to answer: less than health checks usually wait for a reply.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns the routes of this endpoint.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let live = warp::path!("livez").boxed();
    let ready = warp::path!("readyz").boxed();
    let live = ENDPOINT.route(gateway, live, |_, _| async { plain_text(StatusCode::OK, "alive") });
    let was_unready = Arc::new(AtomicBool::new(false));
    let ready = ENDPOINT.route(gateway, ready, move |gateway, _: Request| {
        let was_unready = Arc::clone(&was_unready);
        async move { readiness(&gateway, &was_unready).await }
    });
    live.or(ready).unify().boxed()
}

/// Returns the text for a node that can do its work.
fn ready_text(shortage: Option<DiskShortage>) -> String {
    let Some(DiskShortage { free_bytes, floor_bytes }) = shortage else {
        return "ready".to_owned();
    };
    format!(
        "ready, but only {free_bytes} bytes are free on the disk of the database \
         (FEEDGATE_MIN_FREE_BYTES: {floor_bytes}); resources without a subscription of an account are \
         not polled"
    )
}

/// Returns the reply of `/readyz`. `was_unready` is the last result, so that only changes are
/// logged.
async fn readiness(gateway: &Gateway, was_unready: &AtomicBool) -> Response {
    let reason = match timeout(STORE_TIMEOUT, gateway.store.ready()).await {
        Ok(Ok(())) => {
            if was_unready.swap(false, Ordering::Relaxed) {
                info!("the node is ready again");
            }
            return plain_text(StatusCode::OK, &ready_text(gateway.disk_space.shortage()));
        }
        Ok(Err(err)) => format!("{err} ({})", err.code()),
        Err(_) => format!("the database did not respond within {} s", STORE_TIMEOUT.as_secs()),
    };
    if !was_unready.swap(true, Ordering::Relaxed) {
        warn!(reason, "the node is not ready");
    }
    plain_text(StatusCode::SERVICE_UNAVAILABLE, &format!("not ready: {reason}"))
}
