//! Creating a subscription. The reply says what the first fetch of its URL found.

use std::sync::Arc;

use futures_util::FutureExt;
use http::{StatusCode, header};
use serde::Serialize;
use warp::reply::Response;

use super::{options, view};
use crate::http::kit::params;
use crate::http::kit::rejected_request::RejectedRequest;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::set_header;
use crate::http::kit::request::Request;
use crate::http::routes::v1::call::{RestCall, json_reply};
use crate::http::routes::v1::feed_view;
use crate::http::routes::v1::idempotency;
use crate::http::routes::v1::json_body::JsonBody;
use crate::http::routes::v1::refusal::reject_refusal;
use crate::http::state::Gateway;
use crate::jobs::runner;
use crate::subscriptions::{
    CallerNetworks, FirstFetchWait, Follow, RequestTerms, SubscribeOutcome, TopicFindings,
    Verification,
};
use feedgate_core::account::Scope;
use feedgate_core::callback_headers::CallbackHeaders;
use feedgate_core::event::EventKind;
use feedgate_core::intent::{Intent, IntentMode};
use feedgate_core::resource::Resource;
use feedgate_core::store::ListedSubscription;
use feedgate_core::subscription::{Format, Lease, Statuses, SubscriptionRequest};
use feedgate_core::topic::{Callback, Topic};
use feedgate_protocol::Protocol;
use feedgate_protocol::form::Form;

/// The fields of a new subscription besides its options.
const FIELDS: [&str; 4] = ["callback", "follow", "backfill", "verify"];

const VERIFICATIONS: [(&str, Verification); 3] =
    [("none", Verification::None), ("sync", Verification::Sync), ("async", Verification::Async)];

/// Creates the subscription that the body describes.
pub(super) async fn create(gateway: Arc<Gateway>, request: Request) -> Response {
    idempotency::once(gateway, request, Scope::Subscribe, |call| create_once(call).boxed()).await
}

async fn create_once(call: &RestCall<'_>) -> Result<Response, Rejection> {
    let fields = [fields("url"), vec![options::FEED.headers, options::FEED.authorization]];
    let body = JsonBody::read(call.request, &fields.concat())?;
    let (url, callback) = (body.text("url")?.unwrap_or_default(), body.text("callback")?);
    let received = RejectedRequest {
        kind: EventKind::Subscribe,
        via: "v1",
        feed: url,
        callback: callback.unwrap_or_default(),
    };
    let requested = topic(&body).and_then(|topic| subscription_request(call, &body, topic));
    let requested = received.record_if_rejected(call.gateway, requested)?;
    subscribe(call, &body, requested).await
}

/// Returns the fields of a new subscription whose topic is in the field `of_topic`.
pub(in crate::http::routes::v1) fn fields(of_topic: &'static str) -> Vec<&'static str> {
    [&[of_topic], FIELDS.as_slice(), &options::FIELDS].concat()
}

fn topic(body: &JsonBody) -> Result<Topic, Rejection> {
    let url = body.required_text("url")?.trim();
    Topic::parse(url).map_err(|reason| {
        let guess = format!("https://{url}");
        let is_meant = !url.contains("://") && Topic::parse(guess.as_str()).is_ok();
        let reason = match is_meant {
            true => format!("url must be a whole URL. Did you mean {guess}?"),
            false => format!("url cannot be used: {reason}."),
        };
        Rejection::unprocessable(reason).with_code("bad_topic").with_field("url")
    })
}

/// Returns the callback. Without one, the subscription is only listed, read and streamed.
fn callback(call: &RestCall<'_>, body: &JsonBody) -> Result<Callback, Rejection> {
    let null_device = || call.gateway.settings.public_url.join("/dev/null").map(String::from);
    let text = match body.text("callback")?.map(str::trim) {
        Some(text) => text.to_owned(),
        None => null_device().unwrap_or_default(),
    };
    Callback::parse(text).map_err(|reason| {
        let reason = format!("callback cannot be used: {reason}.");
        Rejection::unprocessable(reason).with_code("bad_callback").with_field("callback")
    })
}

/// Returns the subscription to `topic` that the body describes.
pub(in crate::http::routes::v1) fn subscription_request(
    call: &RestCall<'_>,
    body: &JsonBody,
    topic: Topic,
) -> Result<SubscriptionRequest, Rejection> {
    let mut request = SubscriptionRequest {
        account: Some(call.access.account),
        format: Format::Json,
        statuses: Statuses::default(),
        lease: Lease::ACCOUNT,
        ..SubscriptionRequest::new(topic, callback(call, body)?, Protocol::WebSub)
    };
    options::apply(body, &mut request)?;
    Ok(request)
}

/// Carries out a request, and replies with the subscription.
pub(in crate::http::routes::v1) async fn subscribe(
    call: &RestCall<'_>,
    body: &JsonBody,
    requested: SubscriptionRequest,
) -> Result<Response, Rejection> {
    let (service, now) = (&call.gateway.subscribe, runner::now());
    let verification = body.word("verify", &VERIFICATIONS)?.unwrap_or(Verification::None);
    let follow = Follow::new(body.flag("follow")?, call.gateway.settings.follows_pages);
    let backfill = body.flag("backfill")?.unwrap_or_default();
    let parameters = for_publisher(&requested)?;
    let intent = Intent { backfill, parameters, ..Intent::new(IntentMode::Subscribe, requested) };
    let chosen = options::changed_headers(body, &options::FEED, &CallbackHeaders::default())?;
    let intent = service.with_feed_headers(intent, chosen, now).await.map_err(reject_refusal)?;
    let followed = service.follow(intent, follow, CallerNetworks::Inner, now).await;
    let (intent, _) = followed.map_err(reject_refusal)?;
    let is_new = find_held(call, &intent.request).await?.is_none();
    let terms = RequestTerms::of_account(verification, FirstFetchWait::End);
    let outcome = service.carry_out(&intent, terms, now).await.map_err(reject_refusal)?;
    let made = find_held(call, &intent.request).await?;
    match (outcome, made) {
        (SubscribeOutcome::Now, Some(made)) => {
            let findings = service.findings(&made.subscription.topic, false).await;
            let findings = findings.map_err(|err| Rejection::unavailable(&err))?;
            Ok(created(call, &made, &findings, is_new))
        }
        _ => Ok(json_reply(StatusCode::ACCEPTED, &PendingView::new(&intent.request))),
    }
}

/// Returns the subscription that a request makes or renews, if it exists.
async fn find_held(
    call: &RestCall<'_>,
    request: &SubscriptionRequest,
) -> Result<Option<ListedSubscription>, Rejection> {
    let SubscriptionRequest { topic, callback, .. } = request;
    let found = call.gateway.subscribe.find_held(call.access.account, topic, callback).await;
    let found = found.map_err(|err| Rejection::unavailable(&err))?;
    Ok(found.filter(|held| held.subscription.topic.subscribed_as() == topic.subscribed_as()))
}

/// Returns the parameters for a publisher that validates the subscription (row P-5), without secrets.
fn for_publisher(request: &SubscriptionRequest) -> Result<String, Rejection> {
    let parameters = [
        ("hub.mode", "subscribe"),
        ("hub.topic", request.topic.as_str()),
        ("hub.callback", request.callback.as_str()),
    ];
    let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let form = Form::from_pairs(parameters.into_iter());
    params::for_publisher(&form.map_err(|err| Rejection::unprocessable(format!("{err}.")))?)
}

fn created(
    call: &RestCall<'_>,
    made: &ListedSubscription,
    findings: &TopicFindings,
    is_new: bool,
) -> Response {
    let mut displayed = view::subscription(call, made);
    displayed["found"] = serde_json::to_value(FindingsView::new(&made.resource, findings))
        .expect("findings are a struct of plain values");
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    let mut response = json_reply(status, &displayed);
    let address = call.gateway.public_url(&format!("v1/subscriptions/{}", made.subscription.id));
    set_header(&mut response, header::LOCATION, &address);
    response
}

/// A subscription that begins once its callback has agreed.
#[derive(Serialize)]
struct PendingView<'s> {
    state: &'static str,
    url: &'s str,
    callback: &'s str,
}

impl PendingView<'_> {
    fn new(request: &SubscriptionRequest) -> PendingView<'_> {
        let (url, callback) = (request.topic.subscribed_as(), request.callback.as_str());
        PendingView { state: "verifying", url, callback }
    }
}

/// What the fetches of a URL have found so far.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FindingsView<'s> {
    fetched: bool,
    kind: &'static str,
    entries: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<&'s str>,
    feeds: Vec<OfferView<'s>>,
}

/// A feed that a page links to.
#[derive(Serialize)]
struct OfferView<'s> {
    url: &'s str,
    #[serde(rename = "type")]
    media_type: &'s str,
    title: &'s str,
}

impl<'s> FindingsView<'s> {
    fn new(resource: &'s Resource, findings: &'s TopicFindings) -> FindingsView<'s> {
        let feeds = findings.feeds.iter().map(|offer| OfferView {
            url: &offer.href,
            media_type: &offer.mime,
            title: &offer.title,
        });
        FindingsView {
            fetched: resource.status.last_fetch.is_some(),
            kind: feed_view::kind(resource),
            entries: resource.head.0,
            failure: findings.failure.as_deref(),
            feeds: feeds.collect(),
        }
    }
}
