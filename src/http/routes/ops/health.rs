//! `/livez` and `/readyz`: whether the process runs, and whether it can do its work.
//!
//! `/livez` does not depend on anything, so that a slow database does not get the process
//! killed; `/readyz` writes to the store, at most ten times a second, however many clients request
//! it.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{info, warn};
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::disk_space::DiskShortage;
use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::paths;
use crate::http::kit::reply::plain_text;
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use feedgate_core::store::StoreError;

const ENDPOINT: Endpoint = Endpoint { name: "health", methods: &["GET"], body_limit_bytes: 1_024 };

/// How long the store may take to answer: less than health checks usually wait for a reply.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);
/// The least time between two checks: anybody may request them, and each is a write.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Returns the routes of this endpoint.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let live = paths::exact("livez");
    let ready = paths::exact("readyz");
    let live = ENDPOINT.route(gateway, live, |_, _| async { plain_text(StatusCode::OK, "alive") });
    let checks = Arc::<ReadinessCheck>::default();
    let ready = ENDPOINT.route(gateway, ready, move |gateway, _: Request| {
        let checks = Arc::clone(&checks);
        async move {
            match checks.reason_unready(&gateway).await {
                None => plain_text(StatusCode::OK, &ready_text(gateway.disk_space.shortage())),
                Some(reason) => {
                    let text = format!("not ready: {reason}");
                    plain_text(StatusCode::SERVICE_UNAVAILABLE, &text)
                }
            }
        }
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

/// The last check. Requests that came before it began share its result, and those that came before it
/// ended share a failure, so that none waits for two checks that take long.
#[derive(Default)]
struct ReadinessCheck(Mutex<Option<CheckResult>>);

/// The result of a check.
struct CheckResult {
    began_at: Instant,
    ended_at: Instant,
    /// Why the node cannot do its work; `None` if it can.
    reason: Option<String>,
}

impl ReadinessCheck {
    /// Returns why the node cannot do its work; `None` if it can. Only changes are logged.
    async fn reason_unready(&self, gateway: &Gateway) -> Option<String> {
        let requested_at = Instant::now();
        let mut last = self.0.lock().await;
        if let Some(last) = last.as_ref() {
            let is_failure = last.reason.is_some();
            let valid_from = if is_failure { last.ended_at } else { last.began_at };
            if valid_from >= requested_at {
                return last.reason.clone();
            }
            sleep_until(last.began_at + CHECK_INTERVAL).await;
        }
        let began_at = Instant::now();
        let was_unready = last.as_ref().is_some_and(|last| last.reason.is_some());
        let reason = match timeout(STORE_TIMEOUT, gateway.store.ready()).await {
            Ok(Ok(())) => None,
            Ok(Err(err)) => Some(format!("{} ({})", with_cause(&err), err.code())),
            Err(_) => {
                Some(format!("the database did not respond within {} s", STORE_TIMEOUT.as_secs()))
            }
        };
        match &reason {
            Some(reason) if !was_unready => warn!(reason, "the node is not ready"),
            None if was_unready => info!("the node is ready again"),
            _ => {}
        }
        *last = Some(CheckResult { began_at, ended_at: Instant::now(), reason: reason.clone() });
        reason
    }
}

/// Returns an error with what the database reported.
fn with_cause(err: &StoreError) -> String {
    err.source().map_or_else(|| err.to_string(), |cause| format!("{err}: {cause}"))
}
