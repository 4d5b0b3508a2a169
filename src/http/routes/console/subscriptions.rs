//! The list of subscriptions, and what can be done with several at once.

use chrono::{DateTime, Utc};
use maud::{Markup, html};
use url::form_urlencoded;
use warp::reply::Response;

use super::feed_state::title;
use super::list_totals::ListTotals;
use super::paging::Paging;
use super::subscription::{Action, carry_out, find};
use super::subscription_state::{SECTION, next_step, state_badge, to_path};
use super::visit::Visit;
use crate::http::kit::auth;
use crate::http::kit::html::parts::{counted, grouped, relative_time};
use crate::http::kit::rejection::Rejection;
use crate::jobs::runner;
use feedgate_core::account::Scope;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::{
    ListPosition, ListedState, ListedSubscription, SubscriptionQuery, SubscriptionsFound,
};

/// The number of subscriptions on a page.
const PAGE: usize = 100;
/// The parameters of the list.
const PARAMETERS: &[&str] = &["q", "state", "feed"];

/// Returns the page.
pub(super) async fn page(visit: &Visit) -> Result<Response, Rejection> {
    let (now, paging) = (runner::now(), Paging::read(visit));
    let query = SubscriptionQuery {
        account: visit.visible_account()?,
        resource: visit.value("feed").parse().ok().map(ResourceId),
        state: ListedState::from_word(visit.value("state")),
        search: visit.value("q").to_owned(),
        after: ListPosition::from_param(&paging.after).unwrap_or_default(),
        limit: PAGE,
    };
    let found = visit.gateway.store.find_subscriptions(&query).await;
    let SubscriptionsFound { listed, next } = found.map_err(|err| Rejection::unavailable(&err))?;
    let content = html! {
        (outcome(visit))
        @if visit.allows(Scope::Subscribe) {
            p.actions { a.button href=(visit.address("console/feeds/add")) { "New subscription" } }
        }
        (filter(visit))
        p role="status" { (status(visit, &query, listed.len(), next.is_some()).await?) }
        form method="post" action=(visit.address(SECTION)) {
            (visit.csrf_field())
            (selectable_table(visit, &listed, now))
            p.actions {
                @for action in [Action::Pause, Action::Resume, Action::Retry, Action::End] {
                    button type="submit" name="action" value=(action.as_str())
                        disabled[!visit.allows(action.scope())] {
                        (action.label()) " selected"
                    }
                }
            }
        }
        (paging.links(visit, (SECTION, PARAMETERS), next.map(|next| next.to_param())))
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
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("q", text).finish();
    html! {
        @if !text.is_empty() {
            p.soft {
                "Callbacks are found by their beginning. "
                a href=(visit.address(&format!("console/feeds?{query}"))) {
                    "Look for “" (text) "” among feeds"
                }
                ": the page of a feed has its subscriptions."
            }
        }
    }
}

/// Carries out an action for the selected subscriptions.
pub(super) async fn act(visit: &Visit) -> Result<Response, Rejection> {
    let action = Action::from_word(visit.value("action")).filter(|action| action.is_for_many());
    let action =
        action.ok_or_else(|| Rejection::bad_request("The form names no action of this page."))?;
    auth::require(visit.access()?, action.scope())?;
    let mut selected = Vec::new();
    for id in visit.form.all("id").take(PAGE) {
        selected.push(find(visit, id).await?);
    }
    if selected.is_empty() {
        return Err(Rejection::unprocessable("No subscriptions are selected."));
    }
    if !visit.form.is_set("confirmed") {
        return Ok(confirmation(visit, action, &selected));
    }
    let (mut done, mut failed) = (0, 0);
    for listed in &selected {
        match carry_out(visit, listed, action).await {
            Ok(_) => done += 1,
            Err(rejection) if rejection.status().is_server_error() => return Err(rejection),
            Err(_) => failed += 1,
        }
    }
    let query = format!("done={}&count={done}&failed={failed}", action.as_str());
    Ok(visit.see_other(&format!("{SECTION}?{query}")))
}

/// Returns the page that asks whether the selected subscriptions are meant.
fn confirmation(visit: &Visit, action: Action, selected: &[ListedSubscription]) -> Response {
    let many = counted(selected.len() as u64, "subscription");
    let verb = action.label().trim_end_matches(" now");
    let question = format!("{verb} {many}?");
    let content = html! {
        p { (consequence(action)) }
        form method="post" action=(visit.address(SECTION)) {
            (visit.csrf_field())
            input type="hidden" name="confirmed" value="1";
            @for listed in selected {
                input type="hidden" name="id" value=(to_path(listed.subscription.id));
            }
            (table(visit, selected.iter(), runner::now()))
            p.actions {
                button.danger[action == Action::End].primary[action != Action::End] type="submit"
                    name="action" value=(action.as_str()) { (verb) " " (many) }
                a.button href=(visit.address(SECTION)) { "Cancel" }
            }
        }
    };
    visit.page(&question, SECTION, content)
}

/// Returns what an action does to subscriptions, as a sentence.
fn consequence(action: Action) -> &'static str {
    match action {
        Action::Pause => {
            "Nothing is sent to these callbacks until they are resumed. Nothing is lost."
        }
        Action::Resume => "What was held back is sent, and deliveries go on.",
        Action::Retry => "Failed deliveries are repeated now, not at the time planned.",
        Action::End => "The subscriptions end and are deleted. This cannot be undone.",
        Action::Test | Action::Replay | Action::RotateSecret => "",
    }
}

fn outcome(visit: &Visit) -> Markup {
    let Some(action) = Action::from_word(visit.value("done")) else { return html! {} };
    let count = |name| visit.value(name).parse::<u64>().unwrap_or(0);
    html! {
        p role="status" {
            (action.label()) ": done for " (grouped(count("count"))) "."
            @if count("failed") > 0 {
                " Not possible for " (grouped(count("failed"))) "."
            }
        }
    }
}

fn filter(visit: &Visit) -> Markup {
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

fn selectable_table(visit: &Visit, listed: &[ListedSubscription], now: DateTime<Utc>) -> Markup {
    html! {
        table.records {
            (head(true))
            tbody {
                @for listed in listed { (row(visit, listed, now, true)) }
                @if listed.is_empty() { tr { td colspan="6" { "No subscriptions found." } } }
            }
        }
    }
}

/// Returns subscriptions as a table.
pub(super) fn table<'s>(
    visit: &Visit,
    listed: impl Iterator<Item = &'s ListedSubscription>,
    now: DateTime<Utc>,
) -> Markup {
    let mut rows = listed.map(|listed| row(visit, listed, now, false)).peekable();
    html! {
        table.records {
            (head(false))
            tbody {
                @if rows.peek().is_none() { tr { td colspan="5" { "No subscriptions." } } }
                @for row in rows { (row) }
            }
        }
    }
}

fn head(is_selectable: bool) -> Markup {
    html! {
        thead { tr {
            @if is_selectable { th scope="col" { "Select" } }
            @for name in ["Callback", "Feed", "State", "Next"] { th scope="col" { (name) } }
            th.number scope="col" { "Behind" }
        } }
    }
}

fn row(
    visit: &Visit,
    listed: &ListedSubscription,
    now: DateTime<Utc>,
    is_selectable: bool,
) -> Markup {
    let subscription = &listed.subscription;
    let path = to_path(subscription.id);
    let callback = subscription.callback.as_str();
    let feed = format!("console/feeds/{}", listed.resource.id);
    html! {
        tr {
            @if is_selectable {
                td data-name="" {
                    input type="checkbox" name="id" value=(path)
                        aria-label=(format!("Select {callback}"));
                }
            }
            td data-name="" {
                a href=(visit.address(&format!("{SECTION}/{path}"))) { (callback) }
                br; small { (subscription.protocol.as_str()) ", since "
                    (relative_time(subscription.created_at, now)) }
            }
            td data-name="Feed" { a href=(visit.address(&feed)) { (title(&listed.resource)) } }
            td data-name="State" { (state_badge(listed, now)) }
            td data-name="Next" { (next_step(listed, now)) }
            td.number data-name="Behind" {
                (grouped(listed.delivery.lag(subscription).unsigned_abs()))
            }
        }
    }
}
