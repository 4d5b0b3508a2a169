//! The deliveries to all callbacks at one host, for administrators: an account does not see those of others.

use http::StatusCode;
use maud::html;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use warp::reply::Response;

use super::subscription_state;
use super::traffic_charts;
use super::visit::Visit;
use crate::http::kit::rejection::Rejection;
use feedgate_core::traffic::TrafficSubject;

/// Returns the page of a host, which is named with its port.
pub(super) async fn page(visit: &Visit, host: &str) -> Result<Response, Rejection> {
    if !visit.is_admin() {
        return Err(Rejection::new(StatusCode::NOT_FOUND, "There is no such page."));
    }
    let subject = TrafficSubject::CallbackHost(host.to_owned());
    let charts =
        traffic_charts::section(visit, &path(host), subject, traffic_charts::OF_DELIVERIES).await?;
    let written = utf8_percent_encode(without_usual_port(host), NON_ALPHANUMERIC);
    let subscriptions = format!("{}?q={written}", subscription_state::SECTION);
    let content = html! {
        p { "All deliveries to callbacks at " b { (host) } ", of all subscribers." }
        p { a href=(visit.address(&subscriptions)) { "Subscriptions with callbacks there" } }
        (charts)
    };
    Ok(visit.page(host, subscription_state::SECTION, content))
}

/// Returns a host as addresses have it: without a port that belongs to the scheme.
pub(super) fn without_usual_port(host: &str) -> &str {
    host.strip_suffix(":443").or(host.strip_suffix(":80")).unwrap_or(host)
}

/// Returns the address of the page of a host.
pub(super) fn path(host: &str) -> String {
    format!("console/hosts/{}", utf8_percent_encode(host, NON_ALPHANUMERIC))
}
