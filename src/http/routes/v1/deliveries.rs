//! `/v1/deliveries`: what was delivered to a subscription, or is to be, newest first. A delivery is all
//! attempts with one `webhook-id`: to send the same range of the log.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use http::StatusCode;
use serde::Serialize;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use super::attempt_view::{AttemptId, delivery_id};
use super::attempts::named_subscription;
use super::call::{RestCall, json_reply, to_response};
use super::paging::PageRequest;
use super::subscriptions::owned;
use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::paths;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use feedgate_core::account::Scope;
use feedgate_core::attempt::{AttemptVerdict, StoredAttempt};
use feedgate_core::store::AttemptRange;
use feedgate_core::subscription::SubscriptionId;

const ENDPOINT: Endpoint =
    Endpoint { name: "v1_deliveries", methods: &["GET"], body_limit_bytes: 1_024 };

/// The attempts that are read together. Few subscriptions have as many, and none has more than 1,000
/// (`FEEDGATE_ATTEMPTS_PER_SUBSCRIPTION`).
const MOST_READ: usize = 200;

/// Returns the routes of deliveries.
pub(super) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let all = paths::exact("v1/deliveries");
    let one = paths::with_segment("v1/deliveries/{}");
    ENDPOINT
        .route(gateway, all, |gateway, request| async move {
            to_response(&request, list(&gateway, &request).await)
        })
        .or(ENDPOINT.route_with_param(gateway, one, |gateway, request, id| async move {
            to_response(&request, show(&gateway, &request, &id).await)
        }))
        .unify()
        .boxed()
}

/// Returns a page of the deliveries of the subscription that a call names.
async fn list(gateway: &Arc<Gateway>, request: &Request) -> Result<Response, Rejection> {
    let parameters = ["subscription", "limit", "cursor"];
    let call = RestCall::begin(gateway, request, Scope::List, &parameters).await?;
    let page = PageRequest::from_call(&call, "deliveries")?;
    let before = page.parse_after(|text| text.parse().ok())?;
    let listed = named_subscription(&call).await?;
    let read = read_attempts(&call, listed.subscription.id, before).await?;
    let is_cut = read.len() == MOST_READ;
    let mut deliveries = group(&read);
    let is_whole = deliveries.len() <= page.limit && !is_cut;
    // The oldest one may have further attempts that were not read.
    if is_cut && deliveries.len() > 1 {
        deliveries.pop();
    }
    deliveries.truncate(page.limit);
    let last = deliveries.last().and_then(|attempts| attempts.last());
    let next = last.filter(|_| !is_whole).map(|last| last.id);
    let data = deliveries.iter().map(|attempts| describe(attempts));
    Ok(page.to_reply(&call, data.collect(), next))
}

/// Returns the delivery with this id.
async fn show(gateway: &Arc<Gateway>, request: &Request, id: &str) -> Result<Response, Rejection> {
    let call = RestCall::begin(gateway, request, Scope::List, &[]).await?;
    let not_found = || {
        let reason = "There is no delivery with this id, or its attempts are no longer stored.";
        Rejection::new(StatusCode::NOT_FOUND, reason)
    };
    let mut parts = id.splitn(3, '-');
    let subscription = match (parts.next(), parts.next(), parts.next()) {
        (Some(feed), Some(number), Some(_)) => format!("{feed}-{number}"),
        _ => return Err(not_found()),
    };
    let listed = owned::find(&call, &subscription).await.map_err(|why| match why.status() {
        StatusCode::NOT_FOUND => not_found(),
        _ => why,
    })?;
    let found = find_attempts(&call, listed.subscription.id, id).await?;
    match found.is_empty() {
        true => Err(not_found()),
        false => Ok(json_reply(StatusCode::OK, &describe(&found))),
    }
}

/// Returns the attempts of the delivery with this id, which follow each other.
async fn find_attempts(
    call: &RestCall<'_>,
    subscription: SubscriptionId,
    id: &str,
) -> Result<Vec<StoredAttempt>, Rejection> {
    let (mut found, mut before) = (Vec::new(), None);
    loop {
        let read = read_attempts(call, subscription, before).await?;
        before = read.last().map(|oldest| oldest.id);
        let is_last = read.len() < MOST_READ;
        for stored in read {
            if id_of(std::slice::from_ref(&stored)) == id {
                found.push(stored);
            } else if !found.is_empty() {
                return Ok(found);
            }
        }
        if is_last {
            return Ok(found);
        }
    }
}

async fn read_attempts(
    call: &RestCall<'_>,
    id: SubscriptionId,
    before: Option<i64>,
) -> Result<Vec<StoredAttempt>, Rejection> {
    let charge = call.admit_rows(MOST_READ)?;
    let range = AttemptRange { before, limit: MOST_READ };
    let read = call.gateway.store.attempts(id, range).await;
    let read = read.map_err(|err| Rejection::unavailable(&err))?;
    charge.return_unread(read.len());
    Ok(read)
}

/// Returns the attempts of each delivery. Those of one delivery follow each other, because a
/// subscription is delivered in order.
fn group(attempts: &[StoredAttempt]) -> Vec<&[StoredAttempt]> {
    let of = |stored: &StoredAttempt| delivery_id(&stored.attempt).map(str::to_owned);
    attempts.chunk_by(|one, next| of(one).is_some() && of(one) == of(next)).collect()
}

/// Returns the id of the delivery of some attempts, which are at least one.
fn id_of(attempts: &[StoredAttempt]) -> String {
    let newest = &attempts[0];
    let subscription = newest.attempt.subscription;
    let of_attempt = || AttemptId { subscription, number: newest.id }.to_string();
    delivery_id(&newest.attempt).map_or_else(of_attempt, str::to_owned)
}

/// A delivery.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeliveryView {
    id: String,
    subscription: String,
    state: &'static str,
    code: String,
    content: &'static str,
    first: i64,
    last: i64,
    entries: usize,
    attempts: Vec<String>,
    first_attempt_at: DateTime<Utc>,
    last_attempt_at: DateTime<Utc>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_attempt_at: Option<DateTime<Utc>>,
}

fn describe(attempts: &[StoredAttempt]) -> serde_json::Value {
    let (newest, oldest) = (&attempts[0].attempt, &attempts[attempts.len() - 1].attempt);
    let subscription = newest.subscription;
    let ids = attempts.iter().map(|stored| AttemptId { subscription, number: stored.id });
    let displayed = DeliveryView {
        id: id_of(attempts),
        subscription: subscription.to_string(),
        state: match (newest.verdict, newest.next_attempt_at) {
            (AttemptVerdict::Delivered, _) => "delivered",
            (AttemptVerdict::Ended, _) => "ended",
            (AttemptVerdict::Failed, Some(_)) => "retrying",
            (AttemptVerdict::Failed, None) => "failed",
        },
        code: newest.code.clone(),
        content: newest.request.content.as_str(),
        first: newest.request.first.0,
        last: newest.request.last.0,
        entries: newest.request.entries,
        attempts: ids.map(|id| id.to_string()).collect(),
        first_attempt_at: oldest.at,
        last_attempt_at: newest.at,
        next_attempt_at: newest.next_attempt_at,
    };
    serde_json::to_value(displayed).expect("a delivery is a struct of plain values")
}
