//! `/hub` and `/websub`, the open WebSub hub: it needs no account, so the confirmation of the callback is all
//! that authorizes a subscription.
//!
//! "Hubs MUST … respond to a subscription request with 202" and the reply does not depend on
//! verification (WebSub `#subscription-response-details`). Only clients of PubSubHubbub 0.3 that
//! ask for it with `hub.verify=sync` wait for the outcome.

pub(crate) mod parameters;
pub(crate) mod publish;

use std::net::IpAddr;
use std::sync::Arc;

use http::StatusCode;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::http::kit::anonymous_access::Permission;
use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::params::{self, BodyFormats};
use crate::http::kit::paths;
use crate::http::kit::permissions;
use crate::http::kit::rejected_request::RejectedRequest;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::empty;
use crate::http::kit::request::Request;
use crate::http::routes::discovered_feeds;
use crate::http::state::Gateway;
use crate::jobs::runner;
use crate::net::{FetchError, Purpose};
use crate::subscriptions::{
    FirstFetchWait, Follow, FollowOutcome, NotValidated, NotVerified, RequestTerms,
    SubscribeOutcome, SubscriptionRefusal,
};
use feedgate_core::intent::{Intent, IntentMode};
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::subscription::SubscriptionRequest;
use feedgate_protocol::form::Form;
use parameters::{follow, intent, verification};

/// The body limit is large because publishers may send whole documents.
const ENDPOINT: Endpoint = Endpoint { name: "hub", methods: &["POST"], body_limit_bytes: 1 << 20 };

/// Returns the routes of this endpoint.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    // The deployed rssCloud servers have their hub at `/websub`.
    let hub = paths::any_of(vec!["hub", "websub"]);
    ENDPOINT.route(gateway, hub, handle)
}

/// Answers a request to the hub.
pub(crate) async fn handle(gateway: Arc<Gateway>, request: Request) -> Response {
    match carry_out(&gateway, &request).await {
        Ok(response) => discovered_feeds::with_notes_in_body(&request, response),
        Err(rejection) => rejection.to_response(),
    }
}

async fn carry_out(gateway: &Gateway, request: &Request) -> Result<Response, Rejection> {
    let form = params::read(request, BodyFormats::Forms)?;
    let mode = match form.get("hub.mode") {
        Some("publish") => {
            return match publish::publish(gateway, request, &form).await? {
                0 => Err(Rejection::bad_request(format!(
                    "hub.url is missing: it must name the topic that changed.{}",
                    params::suggest_prefix(&form, "hub.url")
                ))),
                _ => Ok(empty(StatusCode::NO_CONTENT)),
            };
        }
        Some(word) => IntentMode::from_word(word).ok_or_else(|| {
            Rejection::bad_request(format!(
                "hub.mode must be subscribe, unsubscribe or publish, not {word}."
            ))
        })?,
        None => {
            return Err(Rejection::bad_request(format!(
                "hub.mode is missing: subscribe, unsubscribe or publish.{}",
                params::suggest_prefix(&form, "hub.mode")
            )));
        }
    };
    let read = admit(gateway, request, &form, mode).await;
    let received = RejectedRequest::hub(&form, mode, "websub");
    let (intent, terms, follow) = received.record_if_rejected(gateway, read)?;
    gateway.recent_registrants.remember(request);
    let (intent, followed) = match mode {
        IntentMode::Subscribe => {
            let found = gateway.subscribe.follow(intent, follow, terms.networks, runner::now());
            found.await.map_err(|refusal| reject_refusal(mode, &refusal))?
        }
        IntentMode::Unsubscribe => (intent, FollowOutcome::Unsought),
    };
    match gateway.subscribe.carry_out(&intent, terms, runner::now()).await {
        Ok(SubscribeOutcome::Now) => {
            let mut response = empty(StatusCode::NO_CONTENT);
            if mode == IntentMode::Subscribe {
                discovered_feeds::announce_followed(&mut response, &followed);
                let findings = gateway.subscribe.findings(&intent.request.topic, false).await;
                let findings = findings.map_err(|err| Rejection::unavailable(&err))?;
                discovered_feeds::announce_findings(&mut response, &findings);
            }
            Ok(response)
        }
        Ok(SubscribeOutcome::Later) => {
            let mut response = empty(StatusCode::ACCEPTED);
            discovered_feeds::announce_followed(&mut response, &followed);
            Ok(response)
        }
        Err(refusal) => Err(reject_refusal(mode, &refusal)),
    }
}

/// Reads a request to subscribe or unsubscribe, if the caller may make it.
async fn admit(
    gateway: &Gateway,
    request: &Request,
    form: &Form,
    mode: IntentMode,
) -> Result<(Intent, RequestTerms, Follow), Rejection> {
    let mut intent = intent(form, mode)?;
    let follow = follow(form)?;
    intent.request.registrant = RegistrantNetwork::from_client(request.client.ip);
    let verification = verification(form)?;
    permissions::check(gateway, request, form, Permission::Hub).await?;
    if mode == IntentMode::Subscribe {
        permissions::check_topics(gateway, request, form, [&intent.request.topic]).await?;
    }
    gateway.anonymous_rate_limit.admit(request, 1)?;
    admit_verification(gateway, request, &intent.request).await?;
    let SubscriptionRequest { topic, callback, .. } = &intent.request;
    let urls = [topic.fetch_url(), callback.url().clone()];
    let networks = permissions::caller_networks(gateway, request, form, &urls).await?;
    Ok((intent, RequestTerms { verification, wait: FirstFetchWait::Moment, networks }, follow))
}

/// Counts the verification that a request causes, by its client, or if that has caused too many, by
/// the secret of the subscription.
async fn admit_verification(
    gateway: &Gateway,
    request: &Request,
    wanted: &SubscriptionRequest,
) -> Result<(), Rejection> {
    let subject = (wanted.topic.as_str(), wanted.callback.as_str());
    let limit = &gateway.verification_rate_limit;
    let Err(rejection) = limit.admit(request, subject, false) else { return Ok(()) };
    let is_proven = gateway.subscribe.knows_secret(wanted, runner::now()).await;
    match is_proven.map_err(|err| Rejection::unavailable(&err))? {
        true => limit.admit(request, subject, true),
        false => Err(rejection),
    }
}

fn reject_refusal(mode: IntentMode, refusal: &SubscriptionRefusal) -> Rejection {
    match refusal {
        SubscriptionRefusal::NotVerified(NotVerified::RateLimited { retry_after }) => {
            Rejection::callback_rate_limited(*retry_after)
        }
        SubscriptionRefusal::NotVerified(reason) => Rejection::new(
            StatusCode::CONFLICT,
            format!("The callback did not confirm the {} request: {reason}.", mode.as_str()),
        ),
        SubscriptionRefusal::NotValidated(NotValidated::RateLimited { retry_after }) => {
            Rejection::callback_rate_limited(*retry_after)
        }
        SubscriptionRefusal::NotValidated(reason) => Rejection::new(
            StatusCode::FORBIDDEN,
            format!("The request was not carried out: {reason}."),
        ),
        SubscriptionRefusal::Superseded => Rejection::new(
            StatusCode::CONFLICT,
            format!("The request was not carried out: {refusal}."),
        ),
        SubscriptionRefusal::Forbidden(purpose, reason) => {
            let reason = describe_forbidden(*purpose, reason);
            let name = match purpose {
                Purpose::Topic => "hub.topic",
                Purpose::Callback => "hub.callback",
            };
            Rejection::bad_request(format!("{name} cannot be used: {reason}."))
        }
        SubscriptionRefusal::OwnCallback => {
            let reason = "hub.callback cannot be used: it is an address of this gateway.";
            Rejection::bad_request(reason).with_code(refusal.code())
        }
        SubscriptionRefusal::OwnDocument(document) => {
            let reason = format!("hub.topic cannot be used. {}", document.advice());
            Rejection::bad_request(reason).with_code(refusal.code())
        }
        SubscriptionRefusal::BadTrack(reason) => {
            Rejection::bad_request(format!("hub.topic cannot be used: {reason}."))
        }
        SubscriptionRefusal::BadFilter(reason) => {
            Rejection::bad_request(format!("The filter in hub.topic cannot be used: {reason}."))
                .with_code(refusal.code())
        }
        SubscriptionRefusal::NotFollowed(reason) => {
            Rejection::bad_request(format!("hub.topic cannot be followed: {reason}."))
                .with_code(refusal.code())
        }
        SubscriptionRefusal::QuotaExceeded(reason) => Rejection::new(
            StatusCode::FORBIDDEN,
            format!("The request was not carried out: {reason}."),
        )
        .with_code(refusal.code()),
        SubscriptionRefusal::Busy(busy) => Rejection::busy(*busy),
        // A fragment was rejected before.
        refusal => Rejection::unavailable(refusal),
    }
}

/// Describes why a topic or a callback is not requested, and what an operator can do about it.
pub(crate) fn describe_forbidden(purpose: Purpose, err: &FetchError) -> String {
    let setting = match purpose {
        Purpose::Topic => "FEEDGATE_EGRESS_ALLOW_TOPIC_CIDRS",
        Purpose::Callback => "FEEDGATE_EGRESS_ALLOW_CALLBACK_CIDRS",
    };
    match err {
        FetchError::Forbidden { host } => {
            let option = if is_loopback(host) { " or feedgate serve --allow-local" } else { "" };
            format!(
                "{host} is not a public address; an operator can allow it with {setting}{option}"
            )
        }
        other => other.to_string(),
    }
}

fn is_loopback(host: &str) -> bool {
    let is_loopback = |ip: IpAddr| ip.to_canonical().is_loopback();
    host == "localhost" || host.parse().is_ok_and(is_loopback)
}
