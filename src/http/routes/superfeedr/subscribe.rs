//! Subscribing, unsubscribing and replaying by Superfeedr's API (S-1 to U-6 and
//! P-1).

use http::StatusCode;

use super::api_reply::ApiReply;
use super::owned_subscription;
use super::params::{self, BAD_CALLBACK, NumberRange, callback, topic};
use super::refusal::reject_refusal;
use super::retrieve;
use super::signing::signing;
use super::wait::Wait;
use crate::http::kit::params as kit_params;
use crate::http::kit::rejected_request::RejectedRequest;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::empty;
use crate::http::kit::request::Request;
use crate::http::routes::discovered_feeds;
use crate::http::state::Gateway;
use crate::jobs::runner;
use crate::subscriptions::{
    CallerNetworks, FirstFetchWait, FollowOutcome, MAX_REPLAYED, RequestTerms, SubscribeOutcome,
    Verification, replay_cursor,
};
use feedgate_core::account::Access;
use feedgate_core::intent::{Intent, IntentMode, VerifyToken};
use feedgate_core::subscription::{Format, Lease, Statuses, SubscriptionRequest, Updates};
use feedgate_protocol::Protocol;
use feedgate_protocol::form::Form;

/// How many entries are replayed: one, unless the request says otherwise.
const REPLAYED: NumberRange = NumberRange { default: 1, max: MAX_REPLAYED as usize };

/// Starts or ends a subscription of the account.
pub(super) async fn carry_out(
    gateway: &Gateway,
    request: &Request,
    form: &Form,
    access: &Access,
    mode: IntentMode,
) -> Result<ApiReply, Rejection> {
    let received = RejectedRequest::hub(form, mode, "superfeedr");
    let intent = intent(gateway, request, form, access, mode).await;
    let intent = received.record_if_rejected(gateway, intent)?;
    let verification = received.record_if_rejected(gateway, verification(form))?;
    let (intent, followed) = follow(gateway, form, intent).await?;
    if form.is_set("retrieve") && mode == IntentMode::Subscribe {
        let checked = retrieve::check_range(gateway, form, &intent.request.topic).await;
        received.record_if_rejected(gateway, checked)?;
    }
    let wait = match form.is_set("retrieve") {
        true => FirstFetchWait::End,
        false => FirstFetchWait::Moment,
    };
    let done = gateway
        .subscribe
        .carry_out(&intent, RequestTerms::of_account(verification, wait), runner::now())
        .await;
    match done.map_err(reject_refusal)? {
        SubscribeOutcome::Later => {
            let mut response = empty(StatusCode::ACCEPTED);
            discovered_feeds::announce_followed(&mut response, &followed);
            Ok(ApiReply::Response(response))
        }
        SubscribeOutcome::Now if mode == IntentMode::Unsubscribe => {
            Ok(ApiReply::Empty(StatusCode::NO_CONTENT))
        }
        SubscribeOutcome::Now => {
            let findings =
                gateway.subscribe.findings(&intent.request.topic, form.is_set("discover"));
            let findings = findings.await.map_err(|err| Rejection::unavailable(&err))?;
            let mut response = match form.is_set("retrieve") {
                true => match retrieve::retrieve(gateway, request, form, access, Wait::No).await? {
                    ApiReply::Response(response) => response,
                    ApiReply::Empty(status) => empty(status),
                    other @ ApiReply::Json(_) => return Ok(other),
                },
                false => empty(StatusCode::NO_CONTENT),
            };
            discovered_feeds::announce_followed(&mut response, &followed);
            discovered_feeds::announce_findings(&mut response, &findings);
            Ok(ApiReply::Response(response))
        }
    }
}

/// Returns a request to subscribe as one to the feed of the page that it names, if that is to be followed.
async fn follow(
    gateway: &Gateway,
    form: &Form,
    intent: Intent,
) -> Result<(Intent, FollowOutcome), Rejection> {
    if intent.mode == IntentMode::Unsubscribe {
        return Ok((intent, FollowOutcome::Unsought));
    }
    // A value that is neither true nor false was rejected before, with all other flags.
    let by_default = gateway.settings.follows_pages;
    let follow = discovered_feeds::follow(form, by_default, Rejection::unprocessable)?;
    let (networks, now) = (CallerNetworks::Inner, runner::now());
    let chosen = params::feed_headers(form)?;
    let intent = gateway.subscribe.with_feed_headers(intent, chosen, now).await;
    let intent = intent.map_err(reject_refusal)?;
    let found = gateway.subscribe.follow(intent, follow, networks, now).await;
    found.map_err(reject_refusal)
}

/// Returns the subscription that the parameters describe.
async fn intent(
    gateway: &Gateway,
    request: &Request,
    form: &Form,
    access: &Access,
    mode: IntentMode,
) -> Result<Intent, Rejection> {
    let topic = topic(form)?;
    let callback = match callback(form)? {
        Some(callback) => callback,
        None if mode == IntentMode::Unsubscribe => {
            let only = gateway.subscribe.only_callback(access.account, &topic).await;
            only.map_err(reject_refusal)?
        }
        None => {
            let suggestion = kit_params::suggest_prefix(form, "hub.callback");
            let reason = format!("{BAD_CALLBACK}{suggestion}");
            return Err(Rejection::unprocessable(reason).with_code("bad_callback"));
        }
    };
    let is_sanitized = form.is_set("sanitize");
    let filter = params::filter(form)?;
    let needs_entries = is_sanitized.then_some("sanitize").or(filter.as_ref().map(|_| "filter"));
    let format = format(request, form, needs_entries)?;
    let requested = SubscriptionRequest {
        account: Some(access.account),
        format,
        updates: updates(form)?,
        statuses: statuses(form, format)?,
        is_sanitized,
        filter,
        signing: signing(form)?,
        headers: params::callback_headers(form)?,
        digest: digest(form, format)?,
        lease: Lease::ACCOUNT,
        ..SubscriptionRequest::new(topic, callback, Protocol::WebSub)
    };
    let verify_token = form.get_verbatim("hub.verify_token").map(VerifyToken::parse).transpose();
    let verify_token = verify_token.map_err(|reason| {
        Rejection::unprocessable(format!("Please provide a valid hub.verify_token. ({reason})"))
    })?;
    let parameters = kit_params::for_publisher(form)?;
    let backfill = form.is_set("backfill");
    Ok(Intent { verify_token, backfill, parameters, ..Intent::new(mode, requested) })
}

/// Returns the format of a subscription. A document that is not a feed is sent as it is, unless a
/// format is requested or the option that is named needs entries; then it becomes one.
fn format(
    request: &Request,
    form: &Form,
    needs_entries: Option<&str>,
) -> Result<Format, Rejection> {
    match (params::format(request, form)?, needs_entries) {
        (Some(Format::Raw), Some(option)) => {
            let reason = format!("{option} has an effect with format=atom or format=json only.");
            Err(Rejection::unprocessable(reason))
        }
        (Some(format), _) => Ok(format),
        (None, Some(_)) => Ok(Format::Atom),
        (None, None) => Ok(Format::Fitting),
    }
}

/// Sends the last entries once more (P-1).
pub(super) async fn replay(
    gateway: &Gateway,
    form: &Form,
    access: &Access,
) -> Result<ApiReply, Rejection> {
    topic(form)?;
    callback(form)?.ok_or_else(|| {
        Rejection::unprocessable("Please provide the hub.callback to be notified.")
    })?;
    let count = params::number(form, "count", REPLAYED)?;
    let listed = owned_subscription::find(gateway, form, access).await?;
    if listed.delivery.paused_at.is_some() {
        return Err(owned_subscription::reject_paused());
    }
    let cursor = replay_cursor(&listed, count as u64);
    let replayed = gateway.store.replay(listed.subscription.id, cursor, runner::now()).await;
    replayed.map_err(|err| Rejection::unavailable(&err))?;
    Ok(ApiReply::Empty(StatusCode::NO_CONTENT))
}

/// Returns the value of `updates=true` or `false`; by default as Superfeedr does it (rule N7).
fn updates(form: &Form) -> Result<Updates, Rejection> {
    match form.get("updates").map(str::to_ascii_lowercase).as_deref() {
        None | Some("") => Ok(Updates::Fresh),
        Some("true" | "1") => Ok(Updates::Always),
        Some("false" | "0") => Ok(Updates::Never),
        Some(word) => {
            Err(Rejection::unprocessable(format!("updates must be true or false, not {word}.")))
        }
    }
}

/// Returns whether a digest is requested (row S-14). The raw topic has no entries to repeat.
fn digest(form: &Form, format: Format) -> Result<bool, Rejection> {
    match form.is_set("superfeedr.digest") {
        true if format == Format::Raw => {
            let reason = "superfeedr.digest has an effect with format=atom or format=json only.";
            Err(Rejection::unprocessable(reason))
        }
        is_requested => Ok(is_requested),
    }
}

/// Returns the value of `status=transitions`, `always` or `never`: which changes of the status
/// cause a notification of their own (rule P33).
fn statuses(form: &Form, format: Format) -> Result<Statuses, Rejection> {
    let statuses = match form.get("status").filter(|word| !word.is_empty()) {
        Some(word) => Statuses::from_word(word).ok_or_else(|| {
            Rejection::unprocessable(format!(
                "status must be transitions, always or never, not {word}."
            ))
        })?,
        None => Statuses::default(),
    };
    // The raw topic has no place for a status.
    Ok(if format == Format::Raw { Statuses::Never } else { statuses })
}

/// Returns the first known kind in `hub.verify`, which may list several.
fn verification(form: &Form) -> Result<Verification, Rejection> {
    let mut wanted = form.all("hub.verify").flat_map(|kinds| kinds.split(',')).map(str::trim);
    match wanted.find(|kind| matches!(*kind, "sync" | "async")) {
        Some("sync") => Ok(Verification::Sync),
        Some(_) => Ok(Verification::Async),
        None => match form.get("hub.verify") {
            Some(word) => Err(Rejection::unprocessable(format!(
                "hub.verify must be sync or async, not {word}."
            ))),
            None => Ok(Verification::None),
        },
    }
}
