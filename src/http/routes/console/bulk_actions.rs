//! What is done with several subscriptions at once: those that are selected, or all that a filter finds.

use maud::{Markup, html};
use url::form_urlencoded;
use warp::reply::Response;

use super::subscription::{carry_out, find};
use super::subscription_action::Action;
use super::subscription_filter::{self, PAGE, PARAMETERS};
use super::subscription_state::{SECTION, to_path};
use super::subscription_table;
use super::visit::Visit;
use crate::http::kit::auth;
use crate::http::kit::html::parts::{counted, grouped};
use crate::http::kit::rejection::Rejection;
use crate::jobs::runner;
use feedgate_core::store::{ListPosition, ListedSubscription, SubscriptionsFound};

/// The most subscriptions that one request changes: some seconds. Then one is asked whether to go on.
const MOST_CHANGED: usize = 500;

/// The value of `done` after a form in which nothing was selected.
const NOTHING_SELECTED: &str = "nothing";

/// The actions, in the order of their buttons.
const ACTIONS: [Action; 4] = [Action::Pause, Action::Resume, Action::Retry, Action::End];

/// The subscriptions that a form means.
struct Selection {
    listed: Vec<ListedSubscription>,
    /// Where further ones begin, if all that a filter finds are meant.
    next: Option<ListPosition>,
}

impl Selection {
    async fn read(visit: &Visit) -> Result<Selection, Rejection> {
        if is_all(visit) {
            return Selection::after(visit, visit.form.get_verbatim("from").unwrap_or_default())
                .await;
        }
        let mut listed = Vec::new();
        for id in visit.form.all("id").take(PAGE) {
            listed.push(find(visit, id).await?);
        }
        Ok(Selection { listed, next: None })
    }

    /// Reads those that the filter finds behind a place.
    async fn after(visit: &Visit, after: &str) -> Result<Selection, Rejection> {
        let query = subscription_filter::query(visit, after)?;
        let found = visit.gateway.store.find_subscriptions(&query).await;
        let SubscriptionsFound { listed, next } =
            found.map_err(|err| Rejection::unavailable(&err))?;
        Ok(Selection { listed, next })
    }
}

/// Returns whether all that the filter finds are meant.
fn is_all(visit: &Visit) -> bool {
    visit.form.is_set("all")
}

/// Carries out an action for the subscriptions that a form means.
pub(super) async fn act(visit: &Visit) -> Result<Response, Rejection> {
    let action = Action::from_word(visit.value("action")).filter(|action| action.is_for_many());
    let action =
        action.ok_or_else(|| Rejection::bad_request("The form names no action of this page."))?;
    auth::require(visit.access()?, action.scope())?;
    let mut selection = Selection::read(visit).await?;
    if selection.listed.is_empty() && selection.next.is_none() {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(kept(visit)).append_pair("done", NOTHING_SELECTED);
        return Ok(visit.see_other(&format!("{SECTION}?{}", query.finish())));
    }
    if !visit.form.is_set("confirmed") {
        return Ok(confirmation(visit, action, &selection));
    }
    let (mut done, mut failed) = (0, 0);
    let left = loop {
        for listed in &selection.listed {
            match carry_out(visit, listed, action).await {
                Ok(_) => done += 1,
                Err(rejection) if rejection.status().is_server_error() => return Err(rejection),
                Err(_) => failed += 1,
            }
        }
        match selection.next.map(|next| next.to_param()) {
            Some(next) if done + failed < MOST_CHANGED => {
                selection = Selection::after(visit, &next).await?;
            }
            left => break left,
        }
    };
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(kept(visit));
    query.append_pair("done", action.as_str());
    query.append_pair("count", &done.to_string()).append_pair("failed", &failed.to_string());
    query.extend_pairs(left.map(|left| ("left", left)));
    Ok(visit.see_other(&format!("{SECTION}?{}", query.finish())))
}

/// Returns the filter of the page, which its forms keep.
fn kept(visit: &Visit) -> impl Iterator<Item = (&'static str, &str)> {
    let kept = PARAMETERS.iter().map(|name| (*name, visit.value(name)));
    kept.filter(|(_, value)| !value.is_empty())
}

/// Returns the fields of a form that keep the filter.
fn kept_fields(visit: &Visit) -> Markup {
    html! {
        @for (name, value) in kept(visit) { input type="hidden" name=(name) value=(value); }
    }
}

/// Returns the bar below a list with what can be done with the selected subscriptions.
pub(super) fn bar(visit: &Visit) -> Markup {
    html! {
        @if offered(visit).next().is_some() { div.bulk {
            (kept_fields(visit))
            label.choice { input type="checkbox" name="all" value="1"; " All that match" }
            @for action in offered(visit) {
                button.danger[action == Action::End] type="submit" name="action"
                    value=(action.as_str()) { (action.label()) }
            }
        } }
    }
}

/// Returns what the token of the session may do with several subscriptions.
fn offered(visit: &Visit) -> impl Iterator<Item = Action> {
    ACTIONS.into_iter().filter(move |action| visit.allows(action.scope()))
}

/// Returns the page that asks whether the selected subscriptions are meant.
fn confirmation(visit: &Visit, action: Action, selection: &Selection) -> Response {
    let Selection { listed, next } = selection;
    let many = match next {
        Some(_) => "all subscriptions that match".to_owned(),
        None => counted(listed.len() as u64, "subscription"),
    };
    let verb = action.label().trim_end_matches(" now");
    let content = html! {
        p { (consequence(action)) }
        form method="post" action=(visit.address(SECTION)) {
            (visit.csrf_field())
            input type="hidden" name="confirmed" value="1";
            @if is_all(visit) {
                input type="hidden" name="all" value="1";
                (kept_fields(visit))
            } @else {
                @for listed in listed {
                    input type="hidden" name="id" value=(to_path(listed.subscription.id));
                }
            }
            (subscription_table::table(visit, listed.iter(), runner::now()))
            @if next.is_some() { p { "… and all others that the filter finds." } }
            p.actions {
                button.danger[action == Action::End].primary[action != Action::End] type="submit"
                    name="action" value=(action.as_str()) { (verb) " " (many) }
                a.button href=(visit.address(SECTION)) { "Cancel" }
            }
        }
    };
    visit.page(&format!("{verb} {many}?"), SECTION, content)
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

/// Says what came of the action before. If not all were changed, one can go on.
pub(super) fn outcome(visit: &Visit) -> Markup {
    if visit.value("done") == NOTHING_SELECTED {
        return html! {
            p role="alert" {
                "No subscription was selected. Tick those that are meant, or “All that match”, and press the \
                 button again."
            }
        };
    }
    let Some(action) = Action::from_word(visit.value("done")) else { return html! {} };
    let count = |name| visit.value(name).parse::<u64>().unwrap_or(0);
    let left = visit.form.get_verbatim("left").unwrap_or_default();
    html! {
        p role="status" {
            (action.label()) ": done for " (grouped(count("count"))) "."
            @if count("failed") > 0 {
                " Not possible for " (grouped(count("failed"))) "."
            }
        }
        @if !left.is_empty() {
            form.inline method="post" action=(visit.address(SECTION)) {
                (visit.csrf_field())
                (kept_fields(visit))
                @for name in ["all", "confirmed"] { input type="hidden" name=(name) value="1"; }
                input type="hidden" name="from" value=(left);
                button type="submit" name="action" value=(action.as_str()) {
                    "Go on with the others"
                }
            }
        }
    }
}
