//! The list of subscriptions, with a search, a filter by state, and columns that can be hidden.

use maud::{Markup, html};
use warp::reply::Response;

use super::list_totals::ListTotals;
use super::paging::Paging;
use super::subscription_state::SECTION;
use super::visit::Visit;
use super::{bulk_actions, subscription_filter, subscription_table};
use crate::http::kit::html::parts::counted;
use crate::http::kit::rejection::Rejection;
use crate::jobs::runner;
use feedgate_core::account::Scope;
use feedgate_core::store::{ListPosition, SubscriptionQuery, SubscriptionsFound};

/// Returns the page.
pub(super) async fn page(visit: &Visit) -> Result<Response, Rejection> {
    let (now, paging) = (runner::now(), Paging::read(visit));
    let query = subscription_filter::query(visit, &paging.after)?;
    let found = visit.gateway.store.find_subscriptions(&query).await;
    let SubscriptionsFound { listed, next } = found.map_err(|err| Rejection::unavailable(&err))?;
    let content = html! {
        (bulk_actions::outcome(visit))
        @if visit.allows(Scope::Subscribe) {
            p.actions.head {
                a.button.primary href=(visit.address("console/feeds/add")) { "New subscription" }
            }
        }
        p.state role="status" { (status(visit, &query, listed.len(), next.is_some()).await?) }
        div.actions {
            (subscription_filter::form(visit))
            (subscription_table::LIST.form(visit))
        }
        form method="post" action=(visit.address(SECTION)) {
            (visit.csrf_field())
            (subscription_table::selectable(visit, &listed, now))
            @if !listed.is_empty() { (bulk_actions::bar(visit)) }
        }
        (paging.links(visit, (SECTION, subscription_filter::PARAMETERS), next.map(|next| next.to_param())))
        (search_elsewhere(visit))
    };
    Ok(visit.page("Subscriptions", SECTION, content))
}

/// Returns how many subscriptions the list has.
async fn status(
    visit: &Visit,
    query: &SubscriptionQuery,
    found: usize,
    is_more: bool,
) -> Result<Markup, Rejection> {
    let is_filtered = query.state.is_some() || query.resource.is_some() || !query.search.is_empty();
    if !is_filtered {
        let total = ListTotals::read(visit).await?.subscriptions();
        return Ok(html! { (total) " subscription" @if total != "1" { "s" } });
    }
    let place = match is_more {
        true => " on this page, and there may be more",
        false if query.after != ListPosition::default() => " on this page",
        false => " found",
    };
    Ok(html! { (counted(found as u64, "subscription")) (place) })
}

/// Says where the subscriptions to a feed are found by its name.
fn search_elsewhere(visit: &Visit) -> Markup {
    let text = visit.value("q");
    html! {
        @if !text.is_empty() {
            p.soft {
                "Callbacks are found by their beginning. "
                a href=(visit.address_with("console/feeds", "q", text)) {
                    "Look for “" (text) "” among feeds"
                }
                ": the page of a feed has its subscriptions."
            }
        }
    }
}
