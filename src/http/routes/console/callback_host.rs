//! The deliveries to all callbacks at one host, for administrators: an account does not see those of others.

use http::StatusCode;
use maud::html;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use warp::reply::Response;

use super::subscription_state;
use super::subscription_table::table;
use super::traffic_charts;
use super::visit::Visit;
use crate::http::kit::rejection::Rejection;
use crate::jobs::runner;
use feedgate_core::store::{ListPosition, ListedState, ListedSubscription, SubscriptionQuery};
use feedgate_core::traffic::TrafficSubject;

/// The most subscriptions of each of the two lists.
const SUBSCRIPTIONS: usize = 20;

/// Returns the page of a host, which is named with its port.
pub(super) async fn page(visit: &Visit, host: &str) -> Result<Response, Rejection> {
    if !visit.is_admin() {
        return Err(Rejection::new(StatusCode::NOT_FOUND, "There is no such page."));
    }
    let now = runner::now();
    let failing = subscriptions(visit, host, Some(ListedState::Failing)).await?;
    let mut others = subscriptions(visit, host, None).await?;
    others.retain(|other| failing.iter().all(|it| it.subscription.id != other.subscription.id));
    let subject = TrafficSubject::CallbackHost(host.to_owned());
    let charts =
        traffic_charts::section(visit, &path(host), subject, traffic_charts::OF_DELIVERIES).await?;
    let all = visit.address_with(subscription_state::SECTION, "q", without_usual_port(host));
    let events = visit.address_with("viewLog", "callback", host);
    let content = html! {
        (visit.crumbs(&[("Subscriptions", subscription_state::SECTION)]))
        p.actions {
            a.button href=(all) { "All subscriptions" }
            a.button href=(events) { "Events" }
        }
        @if !failing.is_empty() {
            h2 { "Subscriptions whose callback fails" }
            (table(visit, failing.iter(), now))
        }
        @if failing.is_empty() || !others.is_empty() {
            h2 { @if failing.is_empty() { "Subscriptions" } @else { "Other subscriptions" } }
            (table(visit, others.iter(), now))
        }
        (charts)
    };
    Ok(visit.page(host, subscription_state::SECTION, content))
}

/// Returns the first subscriptions with callbacks at a host.
async fn subscriptions(
    visit: &Visit,
    host: &str,
    state: Option<ListedState>,
) -> Result<Vec<ListedSubscription>, Rejection> {
    let (search, limit) = (without_usual_port(host).to_owned(), SUBSCRIPTIONS);
    // Callbacks are found by their beginning, in the order of their hosts: those at hosts with longer names, such as
    // `a.test.example:443` beside `a.test:443`, do not come first.
    let after = ListPosition { text: host.to_owned(), ..ListPosition::default() };
    let query = SubscriptionQuery { state, search, after, limit, ..SubscriptionQuery::default() };
    let found = visit.gateway.store.find_subscriptions(&query).await;
    let mut listed = found.map_err(|err| Rejection::unavailable(&err))?.listed;
    listed.retain(|it| it.subscription.callback.host() == host);
    Ok(listed)
}

/// Returns a host as addresses have it: without a port that belongs to the scheme.
pub(super) fn without_usual_port(host: &str) -> &str {
    host.strip_suffix(":443").or(host.strip_suffix(":80")).unwrap_or(host)
}

/// Returns the address of the page of a host.
pub(super) fn path(host: &str) -> String {
    format!("console/hosts/{}", utf8_percent_encode(host, NON_ALPHANUMERIC))
}
