//! `hub.mode=list`: an account's subscriptions, oldest first (L-1 to L-10).
//!
//! A secret is shown as a fingerprint, because a token for listing is no reason to be able to sign.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use http::{StatusCode, header};
use serde_json::{Value, json};
use url::form_urlencoded::Serializer;

use super::api_reply::ApiReply;
use super::params::{NumberRange, number};
use super::search::SubscriptionSearch;
use super::subscription_search;
use crate::http::kit::jsonp;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::{set_header, with_content_type};
use crate::http::state::Gateway;
use crate::jobs::runner;
use feedgate_core::account::Access;
use feedgate_core::backfill::{Backfill, BackfillEnd};
use feedgate_core::callback_headers::CallbackHeaders;
use feedgate_core::query::EntryFilter;
use feedgate_core::resource::ResourceId;
use feedgate_core::signing::Secret;
use feedgate_core::store::{ListedSubscription, SubscriptionFilter};
use feedgate_core::topic::Topic;
use feedgate_feed::model::Feed;
use feedgate_feed::render;
use feedgate_protocol::form::Form;
use feedgate_protocol::signature::SignatureMethod;

/// Subscriptions on one page.
const BY_PAGE: NumberRange = NumberRange { default: 20, max: 500 };
/// The pages: there is no last one.
const PAGE: NumberRange = NumberRange { default: 1, max: usize::MAX };
/// The subscriptions that a search skips, if it skips any.
const SKIP: NumberRange = NumberRange { default: 1, max: usize::MAX };

/// Returns one page of the account's subscriptions.
pub(super) async fn list(
    gateway: &Gateway,
    form: &Form,
    access: &Access,
) -> Result<ApiReply, Rejection> {
    let page = number(form, "page", PAGE)?;
    let spelling = if form.get("by_page").is_some() { "by_page" } else { "byPage" };
    let by_page = number(form, spelling, BY_PAGE)?;
    let skip = match form.get("skip") {
        None | Some("0") => 0,
        Some(_) => number(form, "skip", SKIP)?,
    };
    let offset = (page - 1).saturating_mul(by_page);

    let search = SubscriptionSearch::from_form(form);
    let topic = match form.get("hub.topic").map(|text| (text, Topic::parse(text))) {
        Some((_, Ok(topic))) => {
            let topic = gateway.subscribe.resolve(&topic, Some(access.account), None).await;
            Some(topic.map_err(|err| Rejection::unavailable(&err))?.as_str().to_owned())
        }
        Some((text, Err(_))) => Some(text.to_owned()),
        None => None,
    };
    let all = SubscriptionFilter {
        account: Some(access.account),
        topic,
        ..SubscriptionFilter::default()
    };
    let (listed, total, next) = if search.is_empty() {
        let filter = SubscriptionFilter { offset, limit: by_page, ..all };
        let (listed, total) = subscription_search::read(gateway, access, &filter).await?;
        (listed, total, None)
    } else {
        let part = subscription_search::search_part(gateway, access, &search, &all, skip).await?;
        let total = part.found.len() as u64;
        let listed = part.found.into_iter().skip(offset).take(by_page).collect();
        (listed, total, part.next.map(|skip| address(gateway, form, skip)))
    };

    let is_detailed = form.is_set("detailed");
    let ids: Vec<ResourceId> = listed.iter().map(|listed| listed.resource.id).collect();
    let histories =
        gateway.store.backfills(&ids).await.map_err(|err| Rejection::unavailable(&err))?;
    let histories: HashMap<ResourceId, &Backfill> =
        histories.iter().map(|history| (history.resource, history)).collect();
    let subscriptions = listed.iter().map(|listed| {
        let mut entry = subscription(gateway, listed, is_detailed);
        if let Some(history) = histories.get(&listed.resource.id) {
            entry["subscription"]["backfill"] = backfill(history);
        }
        entry
    });
    let subscriptions = Value::Array(subscriptions.collect());
    let list = if is_detailed {
        // Clients read either spelling of by_page (L-5).
        let mut meta =
            json!({ "total": total, "page": page, "by_page": by_page, "byPage": by_page });
        if let Some(next) = &next {
            meta["next"] = json!(next);
        }
        json!({ "subscriptions": subscriptions, "meta": meta })
    } else {
        subscriptions
    };
    Ok(reply(form, list, next.as_deref()))
}

/// Returns the reply with a list. If a search continues elsewhere, the reply names the address.
fn reply(form: &Form, list: Value, next: Option<&str>) -> ApiReply {
    let Some(next) = next else { return ApiReply::Json(list) };
    let mut response = match jsonp::function(form) {
        Some(function) => jsonp::wrap(function, &list),
        None => {
            let content_type = "application/json; charset=utf-8";
            with_content_type(StatusCode::OK, content_type, list.to_string())
        }
    };
    set_header(&mut response, header::LINK, &format!("<{next}>; rel=\"next\""));
    ApiReply::Response(response)
}

/// Returns the address at which a search continues. It contains no credentials.
fn address(gateway: &Gateway, form: &Form, skip: usize) -> String {
    let mut query = Serializer::new(String::new());
    let is_kept = |name: &str| {
        name.starts_with("hub.callback")
            || name.starts_with("search")
            || ["hub.mode", "hub.topic", "by_page", "byPage", "detailed"].contains(&name)
    };
    query.extend_pairs(form.pairs().filter(|(name, _)| is_kept(name)));
    query.append_pair("skip", &skip.to_string());
    gateway.public_url(&format!("?{}", query.finish()))
}

/// Returns how far the history of a resource has been backfilled.
fn backfill(history: &Backfill) -> Value {
    json!({
        "state": history.state(),
        "pages": history.pages,
        "entries": history.appended,
        "ending": history.ending.as_ref().map(BackfillEnd::as_str),
    })
}

fn subscription(gateway: &Gateway, listed: &ListedSubscription, is_detailed: bool) -> Value {
    let ListedSubscription { subscription, resource, .. } = listed;
    let mut feed = json!({
        "title": resource.status.title,
        "url": subscription.topic.subscribed_as(),
    });
    if let Some(followed) = gateway.subscribe.followed_by(&subscription.topic) {
        feed["followed"] = followed.into();
    }
    if is_detailed {
        let head = Feed::default();
        let mut whole = render::json::status_only(
            &head,
            &subscription.topic.displayed(),
            resource.status.report(),
        );
        feed["status"] = whole["status"].take();
    }
    let now = runner::now();
    let previous = subscription.signing.previous.as_ref().filter(|previous| previous.until > now);
    json!({ "subscription": {
        "format": subscription.format.told(),
        "endpoint": subscription.callback.as_str(),
        "secret": subscription.signing.secret.as_ref().map(Secret::fingerprint),
        "previousSecret": previous.map(|previous| previous.secret.fingerprint()),
        "previousSecretUntil": previous.map(|previous| previous.until.timestamp()),
        "signature": subscription.signing.method.map(SignatureMethod::as_str),
        "callbackHeaders": callback_headers(&subscription.headers),
        "sanitize": subscription.is_sanitized,
        "filter": subscription.filter.as_ref().map(EntryFilter::as_str),
        "feed": feed,
        "created": subscription.created_at.timestamp(),
        "leaseUntil": subscription.lease_until.timestamp(),
        "delivery": delivery(listed, now),
    } })
}

/// Returns the names of the headers for a callback, each with the fingerprint of its value.
fn callback_headers(headers: &CallbackHeaders) -> Value {
    headers.fingerprints().collect()
}

/// Returns the delivery health of a subscription.
fn delivery(listed: &ListedSubscription, now: DateTime<Utc>) -> Value {
    let ListedSubscription { subscription, delivery, .. } = listed;
    let seconds = |at: DateTime<Utc>| at.timestamp();
    let last_attempt = delivery.last_attempt.as_ref().map(|last| {
        json!({
            "at": seconds(last.at),
            "status": last.response.status,
            "excerpt": last.response.excerpt,
        })
    });
    json!({
        "state": delivery.state(subscription, now).as_str(),
        "pausedSince": delivery.paused_at.map(seconds),
        "failures": subscription.failures,
        "failingSince": subscription.failing_since.map(seconds),
        "lastAttempt": last_attempt,
        "nextAttempt": delivery.next_attempt(now).map(seconds),
        "cursor": subscription.cursor.0,
        "lag": delivery.lag(subscription),
    })
}
