//! `/subscriptions.json`: the subscriptions, page by page. It contains no secrets. Paths of callbacks
//! and subscriptions of accounts are shown to their owners only.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, Utc};
use http::StatusCode;
use serde_json::{Map, Value, json};
use url::{Host, Url};

use super::TITLE_CHARS;
use super::document::{DocumentWriter, ViewDocument};
use crate::http::kit::rejection::Rejection;
use crate::http::kit::viewer_access::ViewerAccess;
use crate::http::state::Gateway;
use crate::jobs::runner;
use feedgate_core::account::AccountId;
use feedgate_core::redaction;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::{
    BodySummary, ListedSubscription, OpenSubscription, StoreError, SubscriptionFilter,
    WatchedResource,
};
use feedgate_core::subscription::{Subscription, SubscriptionId};
use feedgate_protocol::form::Form;

/// The most subscriptions of one page, and the default.
const MAX_SUBSCRIPTIONS: usize = 500;
/// The version of the format, as readers know it.
const VERSION: u32 = 2;
/// The word of the protocol whose subscribers request a lease.
const WEBSUB: &str = "websub";
const JSON: &str = "application/json; charset=utf-8";

/// Where a page begins, and how many subscriptions it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ListingCursor {
    after: SubscriptionId,
    limit: usize,
}

impl ListingCursor {
    /// Parses the query.
    pub(super) fn from_query(query: &str) -> Result<ListingCursor, Rejection> {
        let bad = |reason: &str| Rejection::new(StatusCode::BAD_REQUEST, reason);
        let form = Form::from_urlencoded(query.as_bytes()).unwrap_or_default();
        let word = |name| form.get(name).map(str::trim).filter(|word| !word.is_empty());
        let after = match word("after") {
            None => SubscriptionId { resource: ResourceId(0), number: 0 },
            Some(text) => {
                let reason = "after must be two numbers as in next, such as 7-12.";
                numbers(text).ok_or_else(|| bad(reason))?
            }
        };
        let limit = word("limit").map_or(Ok(MAX_SUBSCRIPTIONS as u64), |text| {
            text.parse().map_err(|_| bad("limit must be a number."))
        })?;
        Ok(ListingCursor {
            after,
            limit: usize::try_from(limit).unwrap_or(MAX_SUBSCRIPTIONS).clamp(1, MAX_SUBSCRIPTIONS),
        })
    }

    /// Returns whether this is the first page, with as many subscriptions as possible: the only page
    /// that clients request without a cursor from the page before.
    pub(super) fn is_start(self) -> bool {
        self.is_first() && self.limit == MAX_SUBSCRIPTIONS
    }

    /// Returns whether this is the first page.
    fn is_first(self) -> bool {
        self.after == SubscriptionId { resource: ResourceId(0), number: 0 }
    }

    /// Returns the URL of the page after this subscription.
    fn next(self, gateway: &Gateway, last: SubscriptionId) -> String {
        let mut next = format!("subscriptions.json?after={}-{}", last.resource, last.number);
        if self.limit != MAX_SUBSCRIPTIONS {
            next.push_str(&format!("&limit={}", self.limit));
        }
        gateway.public_url(&next)
    }
}

fn numbers(text: &str) -> Option<SubscriptionId> {
    let (resource, number) = text.split_once('-')?;
    let read = |text: &str| text.parse::<i64>().ok().filter(|number| *number >= 0);
    Some(SubscriptionId { resource: ResourceId(read(resource)?), number: read(number)? })
}

/// Whose subscriptions are shown in clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListingOwner {
    /// An account.
    Account(AccountId),
    /// The callbacks at an address.
    Address(IpAddr),
}

impl ListingOwner {
    /// Returns whether an open subscription is that of the owner.
    fn has_callback(self, callback: &str) -> bool {
        let ListingOwner::Address(client) = self else { return false };
        let host = Url::parse(callback).ok().and_then(|url| url.host().map(|host| host.to_owned()));
        match host {
            Some(Host::Ipv4(ip)) => IpAddr::V4(ip) == client,
            Some(Host::Ipv6(ip)) => IpAddr::V6(ip).to_canonical() == client,
            Some(Host::Domain(_)) | None => false,
        }
    }
}

/// Renders a page for everybody.
pub(super) async fn render(
    gateway: &Gateway,
    access: ViewerAccess,
    cursor: ListingCursor,
    before: Option<Arc<ViewDocument>>,
) -> Result<Arc<ViewDocument>, StoreError> {
    let document = render_page(gateway, access, cursor, None).await?;
    Ok(document.or_unchanged(before))
}

/// Renders a page for an owner.
pub(super) async fn render_for(
    gateway: &Gateway,
    access: ViewerAccess,
    cursor: ListingCursor,
    owner: ListingOwner,
) -> Result<ViewDocument, StoreError> {
    render_page(gateway, access, cursor, Some(owner)).await
}

async fn render_page(
    gateway: &Gateway,
    access: ViewerAccess,
    cursor: ListingCursor,
    owner: Option<ListingOwner>,
) -> Result<ViewDocument, StoreError> {
    let now = runner::now();
    let page = gateway.store.open_page(cursor.after, cursor.limit, now).await?;
    let mut by_resource: BTreeMap<ResourceId, Vec<Value>> = BTreeMap::new();
    for open in &page.open {
        let is_own = owner.is_some_and(|owner| owner.has_callback(&open.callback));
        by_resource.entry(open.id.resource).or_default().push(subscription(open, is_own));
    }
    let (mut feeds, listed) = (Map::new(), gateway.settings.listed);
    for watched in page.resources.iter().filter(|watched| access.lists(watched, listed)) {
        let subscriptions = by_resource.remove(&watched.id).unwrap_or_default();
        let body = page.bodies.iter().find(|body| body.resource == watched.id);
        feeds.insert(watched.topic.as_str().to_owned(), feed(watched, body, subscriptions, access));
    }
    if let Some(ListingOwner::Account(account)) = owner
        && cursor.is_first()
    {
        add_subscriptions_of_account(gateway, account, &mut feeds).await?;
    }
    let next = page.next.map(|last| cursor.next(gateway, last));
    let body = json!({ "version": VERSION, "next": next, "feeds": feeds });
    let mut writer = DocumentWriter::new();
    writer.push(&format!("{body}\n"));
    Ok(writer.finish(JSON, now).with_next_page(next))
}

/// Adds the subscriptions of an account, in clear. They are all on the first page.
async fn add_subscriptions_of_account(
    gateway: &Gateway,
    account: AccountId,
    feeds: &mut Map<String, Value>,
) -> Result<(), StoreError> {
    let filter = SubscriptionFilter {
        account: Some(account),
        limit: MAX_SUBSCRIPTIONS,
        ..SubscriptionFilter::default()
    };
    for listed in gateway.store.list(&filter).await?.0 {
        let ListedSubscription { subscription, resource, .. } = listed;
        let url = subscription.topic.displayed();
        let entry = feeds.entry(&*url).or_insert_with(|| {
            let body_bytes = resource.polling.body_bytes;
            json!({
                "resource": {
                    "url": url,
                    "whenLastCheck": resource.status.last_fetch.map(timestamp),
                    "lastHash": resource.polling.body_hash,
                    "lastSize": body_bytes,
                    "feed": { "title": resource.status.title },
                },
                "subscriberCount": resource.subscribers,
                "subscriptions": [],
            })
        });
        if let Some(subscriptions) = entry["subscriptions"].as_array_mut() {
            subscriptions.push(own_subscription(&subscription));
        }
    }
    Ok(())
}

fn own_subscription(own: &Subscription) -> Value {
    let callback = own.callback.as_str();
    json!({
        "url": callback,
        "protocol": protocol_word(own.protocol.as_str(), callback.get(..6)),
        "failedAttempts": own.failures,
        "failingSince": own.failing_since.map(timestamp),
        "whenCreated": timestamp(own.created_at),
        "whenExpires": timestamp(own.lease_until),
    })
}

fn feed(
    watched: &WatchedResource,
    body: Option<&BodySummary>,
    subscriptions: Vec<Value>,
    access: ViewerAccess,
) -> Value {
    json!({
        "resource": {
            "url": watched.topic.as_str(),
            "whenLastCheck": watched.fetched_at.map(timestamp),
            "whenLastUpdate": watched.changed_at.map(timestamp),
            "lastHash": body.map(|body| hex::encode(&body.sha256)),
            "lastSize": body.map(|body| body.length_bytes),
            "feed": {
                "title": redaction::line(&watched.title, TITLE_CHARS),
                "htmlUrl": watched.site_url.as_deref().filter(|site| access.sees(site)),
            },
        },
        "subscriberCount": watched.subscribers,
        "subscriptions": subscriptions,
    })
}

fn subscription(open: &OpenSubscription, is_own: bool) -> Value {
    let redacted = || redaction::callback(&open.callback);
    let mut listed = json!({
        "url": if is_own { open.callback.clone() } else { redacted() },
        "protocol": protocol_word(&open.protocol, open.callback.get(..6)),
        "ctConsecutiveErrors": open.errors,
        "failedAttempts": open.failures,
        "failingSince": open.failing_since.map(timestamp),
        "whenCreated": timestamp(open.created_at),
        "whenExpires": timestamp(open.lease_until),
    });
    // The lease of a renewal is not stored, only its end.
    if open.protocol == WEBSUB && open.is_unchanged {
        let lease_s = (open.lease_until - open.created_at).num_seconds();
        listed["details"] = json!({ "leaseSeconds": lease_s });
    }
    listed
}

/// Returns the name of a protocol on the wire of rssCloud.
fn protocol_word<'p>(protocol: &'p str, scheme: Option<&str>) -> &'p str {
    let is_https = scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"));
    if protocol == "http-post" && is_https { "https-post" } else { protocol }
}

/// Returns a time for programs.
pub(super) fn timestamp(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_requested_by_the_next_link_of_the_page_before_it() {
        let read = |query: &str| {
            let ListingCursor { after, limit } = ListingCursor::from_query(query)
                .map_err(|rejection| rejection.reason().to_owned())?;
            Ok((after.resource.0, after.number, limit))
        };
        let after = "after must be two numbers as in next, such as 7-12.".to_owned();
        let limit = "limit must be a number.".to_owned();
        #[rustfmt::skip]
        let cases = [
            ("",                     Ok((0, 0, MAX_SUBSCRIPTIONS))),
            ("after=7-12",           Ok((7, 12, MAX_SUBSCRIPTIONS))),
            ("after=7-12&limit=5",   Ok((7, 12, 5))),
            ("limit=0&after=",       Ok((0, 0, 1))),
            ("limit=99999",          Ok((0, 0, MAX_SUBSCRIPTIONS))),
            ("after=7",              Err(after.clone())),
            ("after=-7-1",           Err(after.clone())),
            ("after=7-x",            Err(after)),
            ("limit=-1",             Err(limit.clone())),
            ("limit=many",           Err(limit)),
        ];
        for (query, want) in cases {
            assert_eq!(read(query), want, "{query}");
        }
    }
}
