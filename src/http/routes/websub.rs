//! `/hub` and `/websub`, the open WebSub hub: it needs no account, so the confirmation of the callback is all
//! that authorizes a subscription.
//!
//! "Hubs MUST … respond to a subscription request with 202" and the reply does not depend on
//! verification (WebSub `#subscription-response-details`). Only clients of PubSubHubbub 0.3 that
//! ask for it with `hub.verify=sync` wait for the outcome.

pub(crate) mod publish;

use std::net::IpAddr;
use std::sync::Arc;

use http::StatusCode;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::http::kit::anonymous_access::Permission;
use crate::http::kit::callback_credentials::PARAMETERS;
use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::params::{self, BodyFormats};
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
    SubscribeOutcome, SubscriptionRefusal, Verification,
};
use feedgate_core::intent::{Intent, IntentMode, VerifyToken};
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::signing::{BadSecret, Secret, SigningRequest};
use feedgate_core::subscription::{Lease, SubscriptionRequest};
use feedgate_core::topic::{Callback, Topic};
use feedgate_protocol::Protocol;
use feedgate_protocol::form::Form;

/// The body limit is large because publishers may send whole documents.
const ENDPOINT: Endpoint = Endpoint { name: "hub", methods: &["POST"], body_limit_bytes: 1 << 20 };

/// Returns the routes of this endpoint.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    // The deployed rssCloud servers have their hub at `/websub`.
    let hub = warp::path!("hub").or(warp::path!("websub")).unify();
    ENDPOINT.route(gateway, hub.boxed(), handle)
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

fn intent(form: &Form, mode: IntentMode) -> Result<Intent, Rejection> {
    let topic = whole_address(form, "hub.topic")?;
    let topic = Topic::parse(topic)
        .map_err(|reason| Rejection::bad_request(format!("hub.topic cannot be used: {reason}.")))?;
    let callback = whole_address(form, "hub.callback")?;
    let callback = Callback::parse(callback).map_err(|reason| {
        Rejection::bad_request(format!("hub.callback cannot be used: {reason}."))
    })?;
    // They concern subscriptions only, and many clients send one form for both.
    let is_new = mode == IntentMode::Subscribe;
    reject_sanitize(form)?;
    reject_filter(form)?;
    reject_callback_credentials(form)?;
    let requested = SubscriptionRequest {
        signing: if is_new { signing(form)? } else { SigningRequest::default() },
        lease: Lease::websub(if is_new { lease(form)? } else { None }),
        ..SubscriptionRequest::new(topic, callback, Protocol::WebSub)
    };
    let verify_token = form.get_verbatim("hub.verify_token").map(VerifyToken::parse).transpose();
    let verify_token = verify_token.map_err(|reason| {
        Rejection::bad_request(format!("hub.verify_token cannot be used: {reason}."))
    })?;
    let parameters = params::for_publisher(form)?;
    let backfill = form.is_set("backfill");
    Ok(Intent { verify_token, backfill, parameters, ..Intent::new(mode, requested) })
}

/// Returns how notifications are to be signed.
fn signing(form: &Form) -> Result<SigningRequest, Rejection> {
    let given = form.get_verbatim("hub.secret").filter(|secret| !secret.is_empty());
    let secret = given.map(|key| Secret::new(key.to_owned()).map_err(reject_secret)).transpose()?;
    let method = params::signature(form).map_err(Rejection::bad_request)?;
    Ok(SigningRequest { secret, method, ..SigningRequest::default() })
}

fn reject_secret(reason: BadSecret) -> Rejection {
    match reason {
        BadSecret::TooLong => Rejection::bad_request(format!(
            "hub.secret must be shorter than {} bytes.",
            Secret::TOO_LONG_BYTES
        )),
        BadSecret::ContainsNul => {
            Rejection::bad_request("hub.secret must not contain the character U+0000.")
        }
        BadSecret::NotBase64 => Rejection::bad_request(
            "hub.secret must continue in base64 after whsec_, or not begin with it.",
        ),
    }
}

/// Rejects a request to sanitize: a hub distributes the topic unchanged (WebSub
/// `#content-distribution`).
fn reject_sanitize(form: &Form) -> Result<(), Rejection> {
    match form.get("sanitize").map(str::to_ascii_lowercase).as_deref() {
        None | Some("" | "false" | "0" | "no" | "off") => Ok(()),
        Some("true" | "1" | "yes" | "on") => Err(Rejection::bad_request(
            "sanitize has no effect here, because the topic is delivered unchanged. Subscribe at / \
             with format=atom or format=json.",
        )),
        Some(word) => {
            Err(Rejection::bad_request(format!("sanitize must be true or false, not {word}.")))
        }
    }
}

/// Returns what a request says about following the page at its topic. A topic is exact by default.
fn follow(form: &Form) -> Result<Follow, Rejection> {
    discovered_feeds::follow(form, false, Rejection::bad_request)
}

/// Rejects a filter, because there are no entries to choose from.
pub(crate) fn reject_filter(form: &Form) -> Result<(), Rejection> {
    match form.get("filter") {
        Some(_) => Err(Rejection::bad_request(
            "filter has no effect here, because there are no entries to choose from. Subscribe at / \
             with format=atom or format=json.",
        )),
        None => Ok(()),
    }
}

/// Rejects credentials for the callback, which an account must vouch for.
pub(crate) fn reject_callback_credentials(form: &Form) -> Result<(), Rejection> {
    match PARAMETERS.into_iter().find(|name| form.get(name).is_some()) {
        Some(name) => {
            let reason = format!("{name} has no effect here. Subscribe at / with an account.");
            Err(Rejection::bad_request(reason))
        }
        None => Ok(()),
    }
}

/// Returns an address that is required, without a fragment: a hub distributes whole topics.
fn whole_address<'a>(form: &'a Form, name: &str) -> Result<&'a str, Rejection> {
    match form.pairs().find(|(key, value)| *key == name && !value.is_empty()) {
        Some((_, value)) if value.contains('#') => {
            Err(Rejection::bad_request(format!("{name} must not have a fragment.")))
        }
        Some((_, value)) => Ok(value),
        None => {
            let suggestion = params::suggest_prefix(form, name);
            Err(Rejection::bad_request(format!("{name} is missing.{suggestion}")))
        }
    }
}

fn lease(form: &Form) -> Result<Option<u64>, Rejection> {
    let Some(text) = form.get("hub.lease_seconds") else { return Ok(None) };
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    match is_number {
        // A number too large for the type is longer than any lease granted.
        true => Ok(Some(text.parse().unwrap_or(u64::MAX))),
        false => Err(Rejection::bad_request(format!(
            "hub.lease_seconds must be a number of seconds, not {text}."
        ))),
    }
}

/// Returns the first known kind in `hub.verify`, which lists them in order of preference
/// (PubSubHubbub 0.3, section 6.1).
fn verification(form: &Form) -> Result<Verification, Rejection> {
    let mut wanted = form.all("hub.verify").flat_map(|kinds| kinds.split(','));
    match wanted.find(|kind| matches!(kind.trim(), "sync" | "async")) {
        Some(kind) if kind.trim() == "sync" => Ok(Verification::Sync),
        None if form.has("hub.verify") => {
            Err(Rejection::bad_request("hub.verify must be sync or async."))
        }
        Some(_) | None => Ok(Verification::Async),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn rejection_of(form: &str) -> String {
        let form = Form::from_urlencoded(form.as_bytes()).unwrap();
        let checked = intent(&form, IntentMode::Subscribe).and_then(|_| verification(&form));
        let checked = checked.and_then(|_| follow(&form));
        checked.err().map_or_else(String::new, |rejection| rejection.reason().to_owned())
    }

    #[test]
    fn a_request_that_cannot_be_carried_out_is_rejected_with_the_reason() {
        let good = "hub.topic=http://a.test/feed&hub.callback=http://b.test/cb";
        let long = format!("{good}&hub.secret={}", "x".repeat(200));
        #[rustfmt::skip]
        let cases = [
            (good.to_owned(),                                   ""),
            (format!("{good}&hub.verify=async&unknown=1"),      ""),
            (format!("{good}&hub.lease_seconds="),              ""),
            ("hub.callback=http://b.test/".to_owned(),          "hub.topic is missing."),
            ("hub.topic=http://a.test/".to_owned(),             "hub.callback is missing."),
            (format!("{good}%23x"),                             "hub.callback must not have a fragment."),
            (good.replace("http://b", "ftp://b"),               "hub.callback cannot be used: ftp: URLs are not supported, only http: and https:."),
            (long,                                              "hub.secret must be shorter than 200 bytes."),
            (format!("{good}&hub.lease_seconds=soon"),          "hub.lease_seconds must be a number of seconds, not soon."),
            (good.replace("feed", "%00"),                       "hub.topic cannot be used: the character U+0000 is not allowed."),
            (format!("{good}%00"),                              "hub.callback cannot be used: the character U+0000 is not allowed."),
            (format!("{good}&hub.secret=whsec_a%20b"),          "hub.secret must continue in base64 after whsec_, or not begin with it."),
            (format!("{good}&hub.secret=a%00b"),                "hub.secret must not contain the character U+0000."),
            (format!("{good}&hub.verify_token=%00"),            "hub.verify_token cannot be used: the character U+0000 is not allowed."),
            (format!("{good}&sanitize=false"),                  ""),
            (format!("{good}&sanitize=true"),                   "sanitize has no effect here, because the topic is delivered unchanged. Subscribe at / with format=atom or format=json."),
            (format!("{good}&callback_headers="),               ""),
            (format!("{good}&callback_authorization=Bearer+a"), "callback_authorization has no effect here. Subscribe at / with an account."),
            (format!("{good}&filter="),                         ""),
            (format!("{good}&filter=a"),                        "filter has no effect here, because there are no entries to choose from. Subscribe at / with format=atom or format=json."),
            (format!("{good}&sanitize=maybe"),                  "sanitize must be true or false, not maybe."),
            (format!("{good}&follow=true"),                     ""),
            (format!("{good}&signature=SHA512"),                ""),
            (format!("{good}&signature=md5"),                   "signature must be one of sha1, sha256, sha384, sha512, not md5."),
            (format!("{good}&follow=maybe"),                    "follow must be true or false, not maybe."),
            (format!("{good}&hub.verify=meep"),                 "hub.verify must be sync or async."),
        ];
        for (form, want) in cases {
            assert_eq!(rejection_of(&form), want, "{form}");
        }
    }
}
