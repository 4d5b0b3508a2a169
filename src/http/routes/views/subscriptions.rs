//! `/subscriptions.json`: who is told of what, page by page. What is not known, or not to be
//! known, is not in it: no secret, no path of a callback, and nothing of an account's.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, Utc};
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::document::{Document, Press};
use super::{Audience, TITLE_CHARS};
use crate::http::kit::rejection::Rejection;
use crate::http::state::Gateway;
use crate::jobs::runner;
use feedgate_core::ports::{OpenSubscription, StoreError, WatchedResource};
use feedgate_core::redaction;
use feedgate_core::resource::ResourceId;
use feedgate_core::subscription::SubscriptionId;
use feedgate_protocol::form::Form;

/// Subscriptions read for one page if nobody says otherwise, and at most.
const MOST: usize = 1_000;
/// The version of the shape, as readers know it.
const VERSION: u32 = 2;
const JSON: &str = "application/json; charset=utf-8";

/// Where a page begins, and how much is read for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Cursor {
    after: SubscriptionId,
    limit: usize,
}

impl Cursor {
    /// Reads the query.
    pub(super) fn from_query(query: &str) -> Result<Cursor, Rejection> {
        let bad = |reason: &str| Rejection::new(StatusCode::BAD_REQUEST, reason);
        let form = Form::from_urlencoded(query.as_bytes()).unwrap_or_default();
        let word = |name| form.get(name).map(str::trim).filter(|word| !word.is_empty());
        let after = match word("after") {
            None => SubscriptionId { resource: ResourceId(0), number: 0 },
            Some(text) => {
                let reason = "after must be two numbers as they stand in next, such as 7-12.";
                numbers(text).ok_or_else(|| bad(reason))?
            }
        };
        let limit = word("limit").map_or(Ok(MOST as u64), |text| {
            text.parse().map_err(|_| bad("limit must be a number."))
        })?;
        Ok(Cursor { after, limit: usize::try_from(limit).unwrap_or(MOST).clamp(1, MOST) })
    }

    /// The address of the page behind this subscription.
    fn next(self, gateway: &Gateway, last: SubscriptionId) -> String {
        let mut next = format!("subscriptions.json?after={}-{}", last.resource, last.number);
        if self.limit != MOST {
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

/// A page as it is now.
pub(super) async fn print(
    gateway: &Gateway,
    audience: Audience,
    cursor: Cursor,
    before: Option<Arc<Document>>,
) -> Result<Arc<Document>, StoreError> {
    let now = runner::now();
    let page = gateway.store.open_page(cursor.after, cursor.limit, now).await?;
    let mut of: BTreeMap<ResourceId, Vec<Value>> = BTreeMap::new();
    for open in &page.open {
        of.entry(open.id.resource).or_default().push(subscription(open));
    }
    let mut feeds = Map::new();
    for watched in page.resources.iter().filter(|watched| audience.sees(&watched.topic)) {
        let subscriptions = of.remove(&watched.id).unwrap_or_default();
        feeds.insert(watched.topic.clone(), feed(watched, subscriptions, audience));
    }
    let next = page.next.map(|last| cursor.next(gateway, last));
    let body = json!({ "version": VERSION, "next": next, "feeds": feeds });
    let mut press = Press::new();
    press.push(&format!("{body}\n"));
    Ok(press.finish(JSON, now).followed_by(next).unless_as(before))
}

fn feed(watched: &WatchedResource, subscriptions: Vec<Value>, audience: Audience) -> Value {
    json!({
        "resource": {
            "url": watched.topic,
            "whenLastCheck": watched.fetched_at.map(moment),
            "whenLastUpdate": watched.changed_at.map(moment),
            "feed": {
                "title": redaction::line(&watched.title, TITLE_CHARS),
                "htmlUrl": watched.site_url.as_deref().filter(|site| audience.sees(site)),
            },
        },
        "subscriberCount": watched.subscribers,
        "subscriptions": subscriptions,
    })
}

fn subscription(open: &OpenSubscription) -> Value {
    json!({
        "url": redaction::callback(&open.callback),
        "protocol": told_by(&open.protocol, open.callback.get(..6)),
        "ctConsecutiveErrors": open.errors,
        "failedAttempts": open.failures,
        "failingSince": open.failing_since.map(moment),
        "whenCreated": moment(open.created_at),
        "whenExpires": moment(open.lease_until),
    })
}

/// The word of a protocol as rssCloud has it on the wire.
fn told_by<'p>(protocol: &'p str, scheme: Option<&str>) -> &'p str {
    let is_https = scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"));
    if protocol == "http-post" && is_https { "https-post" } else { protocol }
}

/// A time as programs read it.
pub(super) fn moment(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_asked_for_by_what_the_one_before_it_said() {
        let read = |query: &str| {
            let Cursor { after, limit } =
                Cursor::from_query(query).map_err(|rejection| rejection.reason().to_owned())?;
            Ok((after.resource.0, after.number, limit))
        };
        let after = "after must be two numbers as they stand in next, such as 7-12.".to_owned();
        let limit = "limit must be a number.".to_owned();
        #[rustfmt::skip]
        let cases = [
            ("",                     Ok((0, 0, 1_000))),
            ("after=7-12",           Ok((7, 12, 1_000))),
            ("after=7-12&limit=5",   Ok((7, 12, 5))),
            ("limit=0&after=",       Ok((0, 0, 1))),
            ("limit=99999",          Ok((0, 0, 1_000))),
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
