//! The list of subscriptions, and what can be done with several at once.

use chrono::{DateTime, Utc};
use maud::{Markup, html};
use url::form_urlencoded;
use warp::reply::Response;

use super::feed_state::title;
use super::subscription::{Action, carry_out, find};
use super::subscription_state::{SECTION, next_step, state_badge, to_path};
use super::visit::Visit;
use crate::http::kit::auth;
use crate::http::kit::html::parts::{counted, grouped, relative_time};
use crate::http::kit::rejection::Rejection;
use crate::jobs::runner;
use feedgate_core::account::Scope;
use feedgate_core::delivery_health::DeliveryState;
use feedgate_core::store::{ListedSubscription, SubscriptionFilter};

/// The number of subscriptions on a page.
const PAGE: usize = 100;
/// The number of subscriptions that are read to find those of a search: as many as for a list of the
/// API.
const SEARCHED: usize = 2_000;
/// The states of the filter.
const STATES: [DeliveryState; 6] = [
    DeliveryState::Ok,
    DeliveryState::Pending,
    DeliveryState::Delivering,
    DeliveryState::Failing,
    DeliveryState::Paused,
    DeliveryState::Suspended,
];

/// A page of subscriptions.
struct Found {
    listed: Vec<ListedSubscription>,
    total: u64,
    /// Whether there are more subscriptions than were searched.
    is_partial: bool,
}

/// Returns the page.
pub(super) async fn page(visit: &Visit) -> Result<Response, Rejection> {
    let now = runner::now();
    let number = visit.value("page").parse::<usize>().unwrap_or(1).clamp(1, 100_000);
    let Found { listed, total, is_partial } = read(visit, number, now).await?;
    let content = html! {
        (outcome(visit))
        @if visit.allows(Scope::Subscribe) {
            p.actions { a.button href=(visit.address("console/feeds/add")) { "New subscription" } }
        }
        (filter(visit))
        p role="status" {
            (grouped(total)) " found"
            @if is_partial { " in the first " (grouped(SEARCHED as u64)) " subscriptions" }
        }
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
        nav.pages aria-label="Pages" {
            @if number > 1 { a rel="prev" href=(link(visit, number - 1)) { "Previous" } }
            @if total > (number * PAGE) as u64 {
                a rel="next" href=(link(visit, number + 1)) { "Next" }
            }
        }
    };
    Ok(visit.page("Subscriptions", SECTION, content))
}

async fn read(visit: &Visit, number: usize, now: DateTime<Utc>) -> Result<Found, Rejection> {
    let account = visit.visible_account()?;
    let (query, state) = (visit.value("q").to_lowercase(), visit.value("state"));
    let offset = (number - 1) * PAGE;
    let filter = |offset, limit| SubscriptionFilter {
        account,
        offset,
        limit,
        ..SubscriptionFilter::default()
    };
    let store = &visit.gateway.store;
    let unavailable = |err| Rejection::unavailable(&err);
    if query.is_empty() && state.is_empty() {
        let (listed, total) = store.list(&filter(offset, PAGE)).await.map_err(unavailable)?;
        return Ok(Found { listed, total, is_partial: false });
    }
    let (listed, _) = store.list(&filter(0, SEARCHED)).await.map_err(unavailable)?;
    let is_partial = listed.len() == SEARCHED;
    let is_match = |listed: &ListedSubscription| is_found(listed, &query, state, now);
    let found: Vec<ListedSubscription> = listed.into_iter().filter(is_match).collect();
    let total = found.len() as u64;
    let listed = found.into_iter().skip(offset).take(PAGE).collect();
    Ok(Found { listed, total, is_partial })
}

fn is_found(listed: &ListedSubscription, query: &str, state: &str, now: DateTime<Utc>) -> bool {
    let subscription = &listed.subscription;
    let texts = [
        subscription.callback.as_str(),
        subscription.topic.subscribed_as(),
        listed.resource.status.title.as_str(),
    ];
    let is_named = query.is_empty() || texts.iter().any(|text| text.to_lowercase().contains(query));
    is_named && (state.is_empty() || listed.delivery.state(subscription, now).as_str() == state)
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
    let state = visit.value("state");
    html! {
        form.filter method="get" action=(visit.address(SECTION)) {
            label { "Search "
                input type="search" name="q" value=(visit.value("q"))
                    placeholder="feed or callback";
            }
            label { "State "
                select name="state" {
                    option value="" { "any" }
                    @for held in STATES.map(DeliveryState::as_str) {
                        option selected[held == state] { (held) }
                    }
                }
            }
            button type="submit" { "Show" }
        }
    }
}

fn link(visit: &Visit, number: usize) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for kept in ["q", "state"] {
        if !visit.value(kept).is_empty() {
            query.append_pair(kept, visit.value(kept));
        }
    }
    query.append_pair("page", &number.to_string());
    visit.address(&format!("{SECTION}?{}", query.finish()))
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
