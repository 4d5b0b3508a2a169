//! The filter of the list of subscriptions: its parameters, and its form.

use maud::{Markup, html};

use super::subscription_state::SECTION;
use super::visit::Visit;
use crate::http::kit::rejection::Rejection;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::{ListPosition, ListedState, SubscriptionQuery};

/// The number of subscriptions on a page.
pub(super) const PAGE: usize = 50;
/// The parameters of the list.
pub(super) const PARAMETERS: &[&str] = &["q", "state", "feed"];

/// Returns what a list has that begins behind a place and whose filter is that of a page.
pub(super) fn query(visit: &Visit, after: &str) -> Result<SubscriptionQuery, Rejection> {
    Ok(SubscriptionQuery {
        account: visit.visible_account()?,
        resource: visit.value("feed").parse().ok().map(ResourceId),
        state: ListedState::from_word(visit.value("state")),
        search: visit.value("q").to_owned(),
        after: ListPosition::from_param(after).unwrap_or_default(),
        limit: PAGE,
    })
}

/// Returns the form of the filter.
pub(super) fn form(visit: &Visit) -> Markup {
    let (state, feed) = (visit.value("state"), visit.value("feed"));
    html! {
        form.filter method="get" action=(visit.address(SECTION)) {
            label { "Search "
                input type="search" name="q" value=(visit.value("q")) placeholder="callback";
            }
            label { "State "
                select name="state" {
                    option value="" { "any" }
                    @for held in ListedState::ALL.map(ListedState::as_str) {
                        option selected[held == state] { (held) }
                    }
                }
            }
            @if !feed.is_empty() { input type="hidden" name="feed" value=(feed); }
            button type="submit" { "Show" }
        }
    }
}
