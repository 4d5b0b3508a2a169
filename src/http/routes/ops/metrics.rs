//! `/metrics`, in the OpenMetrics text format: the counters of this node, and gauges from the
//! store. It is shown to the operator's networks only (rule S45).

use std::fmt::Write;
use std::sync::Arc;

use http::StatusCode;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::rejection::unavailable;
use crate::http::kit::reply::{plain_text, with_content_type};
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use feedgate_core::ports::Gauges;

const ENDPOINT: Endpoint = Endpoint { name: "metrics", methods: &["GET"], body_limit_bytes: 1_024 };

/// Returns the route of this endpoint.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    ENDPOINT.route(gateway, warp::path!("metrics").boxed(), handle)
}

async fn handle(gateway: Arc<Gateway>, request: Request) -> Response {
    if !request.is_host_own {
        let reason = "Metrics are shown only at the host of FEEDGATE_PUBLIC_URL, at localhost and at an \
                      IP address, and not at the host that this request names.";
        return plain_text(StatusCode::MISDIRECTED_REQUEST, reason);
    }
    if !request.is_from(&gateway.settings.metrics_networks) {
        let reason = "Metrics are shown only to the networks in FEEDGATE_METRICS_NETWORKS, and not to \
                      pages of other sites.";
        return plain_text(StatusCode::FORBIDDEN, reason);
    }
    let gauges = match gateway.gauges.get(&*gateway.store).await {
        Ok(gauges) => gauges,
        Err(err) => return unavailable(&err),
    };
    gateway.metrics.documents(gateway.documents.usage());
    let mut text = gateway.metrics.encode();
    write_gauges(&gauges, &mut text);
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    with_content_type(StatusCode::OK, content_type, text)
}

fn write_gauges(gauges: &Gauges, text: &mut String) {
    let lines = [
        ("resources", "Watched resources", gauges.resources),
        ("resources_failing", "Watched resources that are failing", gauges.failing),
        ("subscriptions", "Active subscriptions", gauges.subscriptions),
        ("subscriptions_due", "Subscriptions whose cursor lags", gauges.due),
        (
            "oldest_due_seconds",
            "How long the subscription that is overdue longest has been due",
            gauges.oldest_due_s,
        ),
        (
            "pending_verifications",
            "Requests that wait for their callback to be verified",
            gauges.pending_verifications,
        ),
    ];
    for (name, help, value) in lines {
        // Writing to a String does not fail.
        let line = format_args!(
            "# HELP feedgate_{name} {help}.\n# TYPE feedgate_{name} gauge\nfeedgate_{name} {value}\n"
        );
        text.write_fmt(line).unwrap_or_default();
    }
    text.push_str("# EOF\n");
}
