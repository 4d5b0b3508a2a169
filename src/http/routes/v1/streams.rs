//! `/v1/streams`: entries as server-sent events over an open connection, of one subscription, of one
//! feed, or of all that the account subscribes to. It is the stream of Superfeedr's API.

use std::sync::Arc;

use warp::filters::BoxedFilter;
use warp::reply::Response;

use super::call::{RestCall, to_response};
use super::feeds;
use super::subscriptions::owned;
use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::paths;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use crate::http::routes::superfeedr::stream;
use crate::http::state::Gateway;
use feedgate_core::account::Scope;
use feedgate_core::query::EntryFilter;
use feedgate_core::resource::Resource;
use feedgate_core::store::SubscriptionRange;
use feedgate_protocol::form::Form;

const ENDPOINT: Endpoint =
    Endpoint { name: "v1_streams", methods: &["GET"], body_limit_bytes: 1_024 };

/// The parameters that a stream takes as they are.
const PASSED_ON: [&str; 4] = ["count", "after", "sanitize", "lastEventId"];

/// Returns the route of streams.
pub(super) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    ENDPOINT.route(gateway, paths::exact("v1/streams"), |gateway, request| async move {
        to_response(&request, open(&gateway, &request).await)
    })
}

async fn open(gateway: &Arc<Gateway>, request: &Request) -> Result<Response, Rejection> {
    let parameters = [["subscription", "feed", "filter"].as_slice(), &PASSED_ON].concat();
    let call = RestCall::begin(gateway, request, Scope::Retrieve, &parameters).await?;
    let (topic, own_filter) = selected(&call).await?;
    let mut pairs: Vec<(&str, String)> = vec![("format", "json".to_owned())];
    pairs.extend(topic.map(|topic| ("hub.topic", topic)));
    let filter = call.query.get("filter").map(str::to_owned).or(own_filter);
    pairs.extend(filter.map(|filter| ("filter", filter)));
    for name in PASSED_ON.into_iter().chain(["authorization"]) {
        pairs.extend(call.query.get_verbatim(name).map(|value| (name, value.to_owned())));
    }
    let pairs = pairs.into_iter().map(|(name, value)| (name.to_owned(), value));
    let form = Form::from_pairs(pairs);
    let form = form.map_err(|err| Rejection::unprocessable(format!("{err}.")))?;
    stream::events(gateway, request, &form, &call.access).await
}

/// Returns the topic that is streamed, as the account subscribes to it, and the filter of its
/// subscription; no topic for all subscriptions of the account.
async fn selected(call: &RestCall<'_>) -> Result<(Option<String>, Option<String>), Rejection> {
    for name in ["subscription", "feed"] {
        // An id that a program has forgotten to fill in must not select everything.
        if call.query.has(name) && call.query.get(name).is_none() {
            let reason = format!("{name} must be an id, or be left out for all subscriptions.");
            return Err(RestCall::reject_parameter(name, reason));
        }
    }
    if call.query.has("subscription") && call.query.has("feed") {
        let reason = "subscription and feed cannot be used together.".to_owned();
        return Err(RestCall::reject_parameter("feed", reason));
    }
    if let Some(id) = call.query.get("subscription") {
        let subscription = owned::find(call, id).await?.subscription;
        let filter = subscription.filter.as_ref().map(EntryFilter::as_str).map(str::to_owned);
        return Ok((Some(subscription.topic.subscribed_as().to_owned()), filter));
    }
    let Some(id) = call.query.get("feed") else { return Ok((None, None)) };
    let resource = feeds::find(call, id).await?;
    Ok((Some(subscribed_address(call, &resource).await?), None))
}

/// Returns the address under which the account subscribes to a feed.
async fn subscribed_address(call: &RestCall<'_>, resource: &Resource) -> Result<String, Rejection> {
    let (account, only) = (call.access.account, Some(resource.id));
    let range = SubscriptionRange { account, resource: only, after: 0, limit: 1 };
    let held = call.gateway.store.list_range(range).await;
    let held = held.map_err(|err| Rejection::unavailable(&err))?.into_iter().next();
    let address = held.map(|held| held.subscription.topic.subscribed_as().to_owned());
    address.ok_or_else(|| {
        let reason = "You are not subscribed to this feed: only subscribers may stream it.";
        Rejection::unprocessable(reason).with_code("no_subscription").with_field("feed")
    })
}
