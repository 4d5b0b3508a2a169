//! `/metrics`: the counters of this node, and gauges from the store, in the text format that the
//! client prefers. It is shown to the operator's networks only (rule S45).

mod accepted_format;

use std::sync::Arc;

use http::{StatusCode, header};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::{Registry, Unit};
use warp::filters::BoxedFilter;
use warp::reply::Response;

use super::gauges::Counted;
use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::paths;
use crate::http::kit::rejection::unavailable;
use crate::http::kit::reply::{plain_text, set_header, with_content_type};
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use crate::metrics::PREFIX;
use feedgate_core::store::OldestDue;

const ENDPOINT: Endpoint = Endpoint { name: "metrics", methods: &["GET"], body_limit_bytes: 1_024 };

/// Returns the route of this endpoint.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    ENDPOINT.route(gateway, paths::exact("metrics"), handle)
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
    let counted = match gateway.gauges.get(&gateway.store).await {
        Ok(counted) => counted,
        Err(err) => return unavailable(&err),
    };
    gateway.metrics.documents(gateway.documents.usage());
    let format = accepted_format::best(&request.headers);
    let text = gateway.metrics.encode(&registry(&counted), format);
    let mut response = with_content_type(StatusCode::OK, format.content_type(), text);
    set_header(&mut response, header::VARY, "Accept");
    response
}

/// Returns the gauges as metrics.
fn registry(counted: &Counted) -> Registry {
    let mut registry = Registry::with_prefix(PREFIX);
    let gauges = &counted.gauges;
    let counts = [
        ("resources", "Watched resources", gauges.resources),
        ("resources_failing", "Watched resources that are failing", gauges.failing),
        ("subscriptions", "Active subscriptions", gauges.subscriptions),
        ("subscriptions_due", "Subscriptions whose cursor lags", gauges.due),
        (
            "pending_verifications",
            "Requests that wait for their callback to be verified",
            gauges.pending_verifications,
        ),
    ];
    for (name, help, count) in counts {
        registry.register(name, help, ConstGauge::new(count));
    }
    let help = "How long the item of a queue that has been due longest has been due, by queue";
    registry.register_with_unit("oldest_due", help, Unit::Seconds, ages(gauges.oldest_due));
    let help = "The size of the database, without the write-ahead log";
    let size = ConstGauge::new(counted.database_bytes);
    registry.register_with_unit("database_size", help, Unit::Bytes, size);
    registry
}

fn ages(oldest: OldestDue) -> Family<[(&'static str, &'static str); 1], Gauge> {
    let ages = Family::default();
    for (queue, age_s) in [
        ("polls", oldest.polls_s),
        ("deliveries", oldest.deliveries_s),
        ("verifications", oldest.verifications_s),
        ("forwarded_pings", oldest.forwarded_pings_s),
    ] {
        let age: &Gauge = &ages.get_or_create_owned(&[("queue", queue)]);
        age.set(i64::try_from(age_s).unwrap_or(i64::MAX));
    }
    ages
}
