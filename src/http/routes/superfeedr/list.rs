//! `hub.mode=list`: an account's subscriptions, oldest first (L-1 to L-10).
//!
//! A secret is shown as a fingerprint, because a token for listing is no reason to be able to sign.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::params::{NumberRange, number};
use super::search::SubscriptionSearch;
use crate::http::kit::rejection::Rejection;
use crate::http::state::Gateway;
use crate::jobs::runner;
use feedgate_core::account::Access;
use feedgate_core::backfill::{Backfill, BackfillEnd};
use feedgate_core::ports::{ListedSubscription, SubscriptionFilter};
use feedgate_core::resource::ResourceId;
use feedgate_core::signing::Secret;
use feedgate_core::topic::Topic;
use feedgate_feed::model::Feed;
use feedgate_feed::render;
use feedgate_protocol::form::Form;
use feedgate_protocol::signature::SignatureMethod;

/// Subscriptions on one page.
const BY_PAGE: NumberRange = NumberRange { default: 20, max: 500 };
/// The pages: there is no last one.
const PAGE: NumberRange = NumberRange { default: 1, max: usize::MAX };
/// The most subscriptions that a search goes through.
const MAX_SEARCHED: usize = 20_000;

/// Returns one page of the account's subscriptions.
pub(super) async fn list(
    gateway: &Gateway,
    form: &Form,
    access: &Access,
) -> Result<Value, Rejection> {
    let page = number(form, "page", PAGE)?;
    let spelling = if form.get("by_page").is_some() { "by_page" } else { "byPage" };
    let by_page = number(form, spelling, BY_PAGE)?;
    let offset = (page - 1).saturating_mul(by_page);

    let search = SubscriptionSearch::from_form(form);
    let topic = match form.get("hub.topic").map(|text| (text, Topic::parse(text))) {
        Some((_, Ok(topic))) => {
            let topic = gateway.subscribe.resolve(&topic).await;
            Some(topic.map_err(|err| Rejection::unavailable(&err))?.as_str().to_owned())
        }
        Some((text, Err(_))) => Some(text.to_owned()),
        None => None,
    };
    let filter = SubscriptionFilter {
        account: Some(access.account),
        topic,
        offset,
        limit: by_page,
        ..SubscriptionFilter::default()
    };
    let (listed, total) = match search.is_empty() {
        true => gateway.store.list(&filter).await.map_err(|err| Rejection::unavailable(&err))?,
        false => find(gateway, &search, &filter).await?,
    };

    let is_detailed = form.is_set("detailed");
    let ids: Vec<ResourceId> = listed.iter().map(|listed| listed.resource.id).collect();
    let histories =
        gateway.store.backfills(&ids).await.map_err(|err| Rejection::unavailable(&err))?;
    let subscriptions = listed.iter().map(|listed| {
        let mut entry = subscription(listed, is_detailed);
        if let Some(history) =
            histories.iter().find(|history| history.resource == listed.resource.id)
        {
            entry["subscription"]["backfill"] = backfill(history);
        }
        entry
    });
    let subscriptions: Vec<Value> = subscriptions.collect();
    if !is_detailed {
        return Ok(Value::Array(subscriptions));
    }
    // Clients read either spelling (L-5).
    let meta = json!({ "total": total, "page": page, "by_page": by_page, "byPage": by_page });
    Ok(json!({ "subscriptions": subscriptions, "meta": meta }))
}

/// Returns one page of the subscriptions that a search finds, and how many it finds in all.
pub(super) async fn find(
    gateway: &Gateway,
    search: &SubscriptionSearch,
    filter: &SubscriptionFilter,
) -> Result<(Vec<ListedSubscription>, u64), Rejection> {
    let mut found = Vec::new();
    let mut offset = 0;
    while offset < MAX_SEARCHED {
        let part = SubscriptionFilter { offset, limit: BY_PAGE.max, ..filter.clone() };
        let (listed, _) =
            gateway.store.list(&part).await.map_err(|err| Rejection::unavailable(&err))?;
        let is_last_part = listed.len() < BY_PAGE.max;
        found.extend(listed.into_iter().filter(|listed| search.matches(listed)));
        if is_last_part {
            break;
        }
        offset += BY_PAGE.max;
    }
    let total = found.len() as u64;
    Ok((found.into_iter().skip(filter.offset).take(filter.limit).collect(), total))
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

fn subscription(listed: &ListedSubscription, is_detailed: bool) -> Value {
    let ListedSubscription { subscription, resource, .. } = listed;
    let mut feed = json!({
        "title": resource.status.title,
        "url": subscription.topic.subscribed_as(),
    });
    if is_detailed {
        let head = Feed::default();
        let mut whole =
            render::json::status_only(&head, subscription.topic.as_str(), resource.status.report());
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
        "sanitize": subscription.is_sanitized,
        "feed": feed,
        "created": subscription.created_at.timestamp(),
        "leaseUntil": subscription.lease_until.timestamp(),
        "delivery": delivery(listed, now),
    } })
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
