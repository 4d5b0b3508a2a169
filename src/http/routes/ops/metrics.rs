//! `/metrics`, in the OpenMetrics text format: what this node counted, and what the
//! store can tell at the moment. It is shown to the operator's networks only (rule S45).

use std::fmt::Write;
use std::net::IpAddr;
use std::sync::Arc;

use http::{StatusCode, header};
use ipnet::IpNet;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::http::Gateway;
use crate::http::kit::exchange::{Asked, Door, out_of_order, plain, with_type};
use crate::jobs::runner;
use feedgate_core::ports::Gauges;

const DOOR: Door = Door { name: "metrics", methods: &["GET"], body_limit_bytes: 1_024 };

/// The route of this door.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    DOOR.open(gateway, warp::path!("metrics").boxed(), answer)
}

async fn answer(gateway: Arc<Gateway>, asked: Asked) -> Response {
    if !is_shown(&asked, &gateway.settings.metrics_networks) {
        let why = "Metrics are shown to the networks in FEEDGATE_METRICS_NETWORKS only, and to no \
                   page of another site.";
        return plain(StatusCode::FORBIDDEN, why);
    }
    let gauges = match gateway.store.gauges(runner::now()).await {
        Ok(gauges) => gauges,
        Err(err) => return out_of_order(&err),
    };
    let mut text = gateway.metrics.encode();
    write(&gauges, &mut text);
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    with_type(StatusCode::OK, content_type, text)
}

/// Who comes through a proxy that is not ours may be anybody, whatever the address of the
/// proxy. So may whoever wrote a page of another site that asks through a browser in these
/// networks: the browser names that site in `Origin`, which it does not send with what a
/// page reads of its own site (Fetch, `#origin-header`).
pub(crate) fn is_shown(asked: &Asked, networks: &[IpNet]) -> bool {
    let is_listed = |ip: IpAddr| networks.iter().any(|network| network.contains(&ip));
    let is_page_of_another = asked.headers.contains_key(header::ORIGIN);
    !asked.is_hidden && !is_page_of_another && asked.client.is_some_and(is_listed)
}

fn write(gauges: &Gauges, text: &mut String) {
    let lines = [
        ("resources", "Watched resources", gauges.resources),
        ("resources_failing", "Watched resources in error", gauges.failing),
        ("subscriptions", "Live subscriptions", gauges.subscriptions),
        ("subscriptions_due", "Subscriptions whose cursor lags", gauges.due),
        (
            "oldest_due_seconds",
            "How long the longest due subscription has been",
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
