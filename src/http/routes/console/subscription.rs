//! One subscription: its state, its last attempt, and what can be done with it.

mod references;

use std::convert::Infallible;

use chrono::{DateTime, TimeDelta, Utc};
use http::StatusCode;
use maud::{Markup, html};
use warp::reply::Response;

use super::attempts;
use super::callback_host;
use super::feed_state::title;
use super::new_subscription::random_secret;
use super::replay;
use super::subscription_action::{Action, has_changeable_secret};
use super::subscription_state::{
    SECTION, failure_note, from_path, next_step, protocol_name, state_badge, to_path,
};
use super::visit::Visit;
use crate::http::kit::auth;
use crate::http::kit::html::parts::{
    Tone, badge, copyable, grouped, relative_time, timestamp, web_address,
};
use crate::http::kit::rejection::Rejection;
use crate::jobs::deliver::TestOutcome;
use crate::jobs::runner;
use crate::subscriptions::{FirstFetchWait, RequestTerms, Verification};
use feedgate_core::callback_headers::CallbackHeaders;
use feedgate_core::intent::{Intent, IntentMode};
use feedgate_core::signing::{Secret, SecretOverlap, SigningRequest};
use feedgate_core::store::ListedSubscription;
use feedgate_core::subscription::{Format, SubscriptionRequest};
use feedgate_core::topic::Callback;
use feedgate_protocol::Protocol;

/// How long notifications are signed with both secrets after a rotation: a day.
const OVERLAP_S: u64 = 86_400;

/// What an action reports.
pub(super) enum Done {
    /// It is done.
    Plainly,
    /// A test was sent.
    Tested {
        /// Whether the callback accepted it.
        is_accepted: bool,
        /// What came back, as a sentence.
        report: String,
    },
    /// The secret from now on, which is shown once.
    NewSecret(Secret),
}

/// Finds the subscription of a page. One that does not belong to the account is answered as one that
/// does not exist (S37).
pub(super) async fn find(visit: &Visit, name: &str) -> Result<ListedSubscription, Rejection> {
    let not_found = || Rejection::new(StatusCode::NOT_FOUND, "There is no such subscription.");
    let visible = visit.visible_account()?;
    let id = from_path(name).ok_or_else(not_found)?;
    let found = visit.gateway.store.listed(id).await.map_err(|err| Rejection::unavailable(&err))?;
    let is_visible = |listed: &ListedSubscription| {
        visible.is_none_or(|account| listed.subscription.account == Some(account))
    };
    found.filter(is_visible).ok_or_else(not_found)
}

/// Carries out an action for one subscription.
pub(super) async fn carry_out(
    visit: &Visit,
    listed: &ListedSubscription,
    action: Action,
) -> Result<Done, Rejection> {
    auth::require(visit.access()?, action.scope())?;
    let unavailable = |err| Rejection::unavailable(&err);
    let (store, id, now) = (&visit.gateway.store, listed.subscription.id, runner::now());
    let is_paused = listed.delivery.paused_at.is_some();
    if is_paused && matches!(action, Action::Retry | Action::Replay) {
        return Err(Rejection::unprocessable("The subscription is paused. Resume it first."));
    }
    match action {
        Action::Pause => store.pause(id, now).await.map_err(unavailable)?,
        Action::Resume => store.resume(id, now).await.map_err(unavailable)?,
        Action::Retry => {
            if !store.retry_delivery(id, now).await.map_err(unavailable)? {
                let reason = "There is nothing to retry: the callback has received everything.";
                return Err(Rejection::unprocessable(reason));
            }
        }
        Action::Test => return test(visit, listed).await,
        Action::Replay => {
            let cursor = replay::cursor(visit, listed).await?;
            store.replay(id, cursor, now).await.map_err(unavailable)?;
        }
        Action::RotateSecret => return rotate_secret(visit, listed).await,
        Action::End => end(visit, listed).await?,
    }
    Ok(Done::Plainly)
}

async fn test(visit: &Visit, listed: &ListedSubscription) -> Result<Done, Rejection> {
    let sent = visit.gateway.test_notifier.send(&listed.subscription).await;
    match sent.map_err(|err| Rejection::unavailable(&err))? {
        TestOutcome::Sent(report) => {
            let status =
                report.response.status.map_or_else(String::new, |status| format!("{status} "));
            let is_accepted = report.is_accepted;
            let accepted = if is_accepted { "accepted" } else { "did not accept" };
            let (took, excerpt) = (report.took.as_millis(), report.response.excerpt);
            let report =
                format!("The callback {accepted} the test in {took} ms: {status}{excerpt}");
            Ok(Done::Tested { is_accepted, report })
        }
        TestOutcome::Busy => {
            Err(Rejection::overloaded("Too many tests are in progress, please try again.", 5))
        }
        TestOutcome::NothingStored => Err(Rejection::unprocessable(
            "The subscription receives the topic unchanged, and the topic has not been fetched yet.",
        )),
    }
}

/// Replaces the secret by a random one. Notifications are signed with both for a day.
async fn rotate_secret(visit: &Visit, listed: &ListedSubscription) -> Result<Done, Rejection> {
    let subscription = &listed.subscription;
    if !has_changeable_secret(listed) {
        let reason = "Only subscriptions of accounts have a secret that can be changed here.";
        return Err(Rejection::unprocessable(reason));
    }
    let secret = random_secret()?;
    let overlap = SecretOverlap::from_secs(OVERLAP_S);
    let signing =
        SigningRequest { secret: Some(secret.clone()), overlap, ..SigningRequest::default() };
    let change = move |held: &ListedSubscription| {
        Ok::<_, Infallible>(SubscriptionRequest { signing, ..request_of(held) })
    };
    let changed =
        visit.gateway.store.change_subscription(subscription.id, change, runner::now()).await;
    match changed.map_err(|err| Rejection::unavailable(&err))? {
        Ok(true) => Ok(Done::NewSecret(secret)),
        Ok(false) => Err(Rejection::new(StatusCode::NOT_FOUND, "The subscription has ended.")),
    }
}

async fn end(visit: &Visit, listed: &ListedSubscription) -> Result<(), Rejection> {
    let intent = Intent::new(IntentMode::Unsubscribe, request_of(listed));
    let wait = FirstFetchWait::Moment;
    let ended = visit
        .gateway
        .subscribe
        .carry_out(&intent, RequestTerms::of_account(Verification::None, wait), runner::now())
        .await;
    ended.map(drop).map_err(|refusal| Rejection::unprocessable(refusal.to_string()))
}

/// Returns the request that would make the same subscription.
fn request_of(listed: &ListedSubscription) -> SubscriptionRequest {
    let digest = listed.delivery.next_digest_at.is_some();
    SubscriptionRequest { digest, ..listed.subscription.to_request() }
}

/// Carries out what a form of the page requests.
pub(super) async fn act(visit: &Visit, name: &str) -> Result<Response, Rejection> {
    let listed = find(visit, name).await?;
    let action = Action::from_word(visit.value("action"));
    let action =
        action.ok_or_else(|| Rejection::bad_request("The form names no action of this page."))?;
    let path = path(&listed);
    match carry_out(visit, &listed, action).await? {
        Done::Plainly if action == Action::End => {
            Ok(visit.see_other(&format!("{SECTION}?done=end&count=1")))
        }
        Done::Plainly => Ok(visit.see_other(&format!("{path}?done={}", action.as_str()))),
        Done::Tested { is_accepted, report } => {
            let note = html! {
                @if is_accepted { p role="status" { (badge(Tone::Good, &report)) } }
                @else { p role="alert" { (report) } }
            };
            show(visit, &listed, note).await
        }
        Done::NewSecret(secret) => {
            let note = html! {
                div.card role="status" {
                    p { "The new secret is shown only now. Notifications are signed with it and with \
                         the previous one for a day." }
                    (copyable(secret.expose()))
                }
            };
            show(visit, &find(visit, name).await?, note).await
        }
    }
}

/// Returns the page.
pub(super) async fn page(visit: &Visit, name: &str) -> Result<Response, Rejection> {
    let listed = find(visit, name).await?;
    let done = Action::from_word(visit.value("done"));
    let note = html! {
        @if let Some(action) = done { p role="status" { (action.label()) ": done." } }
    };
    show(visit, &listed, note).await
}

async fn show(
    visit: &Visit,
    listed: &ListedSubscription,
    note: Markup,
) -> Result<Response, Rejection> {
    let now = runner::now();
    let feed = &listed.resource;
    let feed_headers = visit.gateway.store.feed_headers(feed.id, &feed.topic).await;
    let feed_headers =
        feed_headers.map_err(|err| Rejection::unavailable(&err))?.unwrap_or_default();
    let content = html! {
        (visit.crumbs(&[("Subscriptions", SECTION)]))
        (note)
        (failure_note(listed, now))
        (actions(visit, listed))
        (facts(visit, (listed, &feed_headers), now))
        h2 { "Deliveries" }
        (attempts::timeline(visit, listed).await?)
        @if Action::Replay.is_possible(listed) && visit.allows(Action::Replay.scope()) {
            (replay::form(visit, &visit.address(&path(listed))))
        }
        (references::section(visit, listed)?)
    };
    let target = match listed.subscription.callback.is_null_device() {
        true => "no callback".to_owned(),
        false => callback_host::without_usual_port(&listed.subscription.callback.host()).to_owned(),
    };
    Ok(visit.page(&format!("{} → {target}", title(feed)), SECTION, content))
}

fn facts(
    visit: &Visit,
    (listed, feed_headers): (&ListedSubscription, &CallbackHeaders),
    now: DateTime<Utc>,
) -> Markup {
    let ListedSubscription { subscription, resource, delivery, .. } = listed;
    let signing = &subscription.signing;
    let feed = visit.address(&format!("console/feeds/{}", resource.id));
    let lag = delivery.lag(subscription);
    // The lease of an account lasts for years.
    let is_renewed = subscription.lease_until < now + TimeDelta::days(365);
    html! {
        dl.facts {
            dt { "State" }
            dd {
                (state_badge(listed, now)) " "
                @if let Some(since) = delivery.paused_at { (relative_time(since, now)) ". " }
                (next_step(listed, now))
            }
            dt { "Callback" } dd { (callback(visit, &subscription.callback)) }
            dt { "Feed" } dd { a href=(feed) { (title(resource)) } }
            @if visit.gateway.subscribe.followed_by(&subscription.topic).is_some() {
                dt { "Followed page" } dd { (subscription.topic.subscribed_as()) }
            }
            dt { "Protocol" }
            dd { (protocol_name(subscription))
                @if subscription.protocol == Protocol::WebSub { ", " (format_name(subscription.format)) }
                @if subscription.is_sanitized { ", sanitized" } }
            @if let Some(filter) = &subscription.filter {
                dt { "Filter" } dd { code { (filter.as_str()) } }
            }
            dt { "Position" }
            dd { "after entry " (grouped(subscription.cursor.0.unsigned_abs())) " of "
                (grouped(delivery.owed.0.unsigned_abs())) " that the feed has had"
                @if lag > 0 { ", " (grouped(lag.unsigned_abs())) " behind" } }
            @if let Some(last) = &delivery.last_attempt {
                dt { "Last attempt" }
                dd { (relative_time(last.at, now)) ": "
                    @if let Some(status) = last.response.status { (status) " " }
                    (last.response.excerpt) }
            }
            dt { "Secret" }
            dd {
                @match &signing.secret {
                    Some(secret) => { "with the fingerprint " code { (secret.fingerprint()) } }
                    None => "none, notifications are not signed",
                }
                @if let Some(previous) = signing.previous.as_ref().filter(|held| held.until > now) {
                    "; the previous one, " code { (previous.secret.fingerprint()) }
                    ", is used until " (timestamp(previous.until))
                }
            }
            (header_facts("Headers for the callback", &subscription.headers))
            (header_facts("Headers for the feed", feed_headers))
            @if let Some(at) = delivery.next_digest_at {
                dt { "Next digest" } dd { (relative_time(at, now)) }
            }
            dt { "Since" } dd { (timestamp(subscription.created_at)) }
            @if is_renewed { dt { "Lease" } dd { "until " (timestamp(subscription.lease_until)) } }
        }
    }
}

/// Returns the address of a callback, for administrators with the page of its host.
fn callback(visit: &Visit, callback: &Callback) -> Markup {
    html! {
        (web_address(callback.as_str()))
        @if visit.is_admin() && !callback.is_null_device() {
            " " a href=(visit.address(&callback_host::path(&callback.host()))) {
                "all deliveries to this host"
            }
        }
    }
}

fn header_facts(title: &str, headers: &CallbackHeaders) -> Markup {
    html! {
        @if !headers.is_empty() {
            dt { (title) }
            dd {
                @for (n, (name, print)) in headers.fingerprints().enumerate() {
                    @if n > 0 { ", " }
                    (name) " with the fingerprint " code { (print) }
                }
            }
        }
    }
}

fn format_name(format: Format) -> &'static str {
    match format {
        Format::Atom => "Atom",
        Format::Json => "JSON",
        Format::Raw => "the topic unchanged",
        Format::Fitting => "Atom for feeds, anything else unchanged",
    }
}

fn actions(visit: &Visit, listed: &ListedSubscription) -> Markup {
    let buttons =
        [Action::Pause, Action::Resume, Action::Test, Action::Retry, Action::RotateSecret];
    let is_offered = |action: &Action| visit.allows(action.scope()) && action.is_possible(listed);
    html! {
        form.inline method="post" action=(visit.address(&path(listed))) {
            (visit.csrf_field())
            @for action in buttons.iter().filter(|action| is_offered(action)) {
                button type="submit" name="action" value=(action.as_str()) { (action.label()) }
            }
            @if is_offered(&Action::End) {
                button.danger type="submit" name="action" value=(Action::End.as_str())
                    data-confirm="End this subscription?" { (Action::End.label()) }
            }
        }
    }
}

/// Returns the address of the page.
fn path(listed: &ListedSubscription) -> String {
    format!("{SECTION}/{}", to_path(listed.subscription.id))
}
