//! `hub.mode=list`: an account's subscriptions, oldest first (rows L-1 to L-10).
//!
//! Secrets are shown here and nowhere else, to their own account only.

use serde_json::{Value, json};

use super::account::{broken, number};
use super::search::Search;
use crate::http::Gateway;
use crate::http::kit::params::Refused;
use feedgate_core::account::Access;
use feedgate_core::backfill::{Backfill, BackfillEnd};
use feedgate_core::ports::{ListedSubscription, SubscriptionFilter};
use feedgate_core::resource::ResourceId;
use feedgate_feed::model::Feed;
use feedgate_feed::render;
use feedgate_protocol::form::Form;

/// Subscriptions on one page if nobody says otherwise, and at most.
const BY_PAGE: (usize, usize) = (20, 500);
/// The most subscriptions looked through in a search.
const MOST_SEARCHED: usize = 20_000;

/// One page of the account's subscriptions.
pub(super) async fn list(
    gateway: &Gateway,
    form: &Form,
    access: &Access,
) -> Result<Value, Refused> {
    let page = number(form, "page", (1, usize::MAX))?;
    let spelling = if form.get("by_page").is_some() { "by_page" } else { "byPage" };
    let by_page = number(form, spelling, BY_PAGE)?;
    let offset = (page - 1).saturating_mul(by_page);

    let search = Search::of(form);
    let filter = SubscriptionFilter {
        account: Some(access.account),
        topic: form.get("hub.topic").map(str::to_owned),
        offset,
        limit: by_page,
        ..SubscriptionFilter::default()
    };
    let (listed, total) = match search.is_empty() {
        true => gateway.store.list(&filter).await.map_err(|err| broken(&err))?,
        false => found(gateway, &search, &filter).await?,
    };

    let is_detailed = form.is_set("detailed");
    let ids: Vec<ResourceId> = listed.iter().map(|listed| listed.resource.id).collect();
    let histories = gateway.store.backfills(&ids).await.map_err(|err| broken(&err))?;
    let subscriptions = listed.iter().map(|listed| {
        let mut entry = subscription(listed, is_detailed);
        if let Some(history) = histories.iter().find(|held| held.resource == listed.resource.id) {
            entry["subscription"]["backfill"] = backfill(history);
        }
        entry
    });
    let subscriptions: Vec<Value> = subscriptions.collect();
    if !is_detailed {
        return Ok(Value::Array(subscriptions));
    }
    // Clients read either spelling (row L-5).
    let meta = json!({ "total": total, "page": page, "by_page": by_page, "byPage": by_page });
    Ok(json!({ "subscriptions": subscriptions, "meta": meta }))
}

/// The page of what a search finds, and how much it finds in all.
pub(super) async fn found(
    gateway: &Gateway,
    search: &Search,
    filter: &SubscriptionFilter,
) -> Result<(Vec<ListedSubscription>, u64), Refused> {
    let mut found = Vec::new();
    let mut offset = 0;
    while offset < MOST_SEARCHED {
        let part = SubscriptionFilter { offset, limit: BY_PAGE.1, ..filter.clone() };
        let (listed, _) = gateway.store.list(&part).await.map_err(|err| broken(&err))?;
        let is_last = listed.len() < BY_PAGE.1;
        found.extend(listed.into_iter().filter(|listed| search.finds(listed)));
        if is_last {
            break;
        }
        offset += BY_PAGE.1;
    }
    let total = found.len() as u64;
    Ok((found.into_iter().skip(filter.offset).take(filter.limit).collect(), total))
}

/// How far the history of a resource has been brought in.
fn backfill(history: &Backfill) -> Value {
    json!({
        "state": history.state(),
        "pages": history.pages,
        "entries": history.appended,
        "ending": history.ending.as_ref().map(BackfillEnd::as_str),
    })
}

fn subscription(listed: &ListedSubscription, is_detailed: bool) -> Value {
    let ListedSubscription { subscription, resource } = listed;
    let mut feed = json!({
        "title": resource.status.title,
        "url": subscription.topic.as_str(),
    });
    if is_detailed {
        let head = Feed::default();
        let mut whole =
            render::json::status_only(&head, subscription.topic.as_str(), resource.status.report());
        feed["status"] = whole["status"].take();
    }
    json!({ "subscription": {
        "format": subscription.format.told(),
        "endpoint": subscription.callback.as_str(),
        "secret": subscription.secret.as_ref().map(|secret| secret.expose()),
        "feed": feed,
    } })
}
