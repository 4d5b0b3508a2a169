//! The subscriptions of an account at Superfeedr, by `hub.mode=list`.

use std::collections::HashSet;

use feedgate_core::signing::Secret;
use serde_json::Value;
use url::Url;

use super::super::print_note;
use super::account_api::{AccountApi, AccountApiError};
use super::journal::SubscriptionKey;

/// The subscriptions that one request returns; Superfeedr's maximum.
const BY_PAGE: usize = 500;
/// The most subscriptions that are read.
const MOST_SUBSCRIPTIONS: usize = 2_000_000;

/// A subscription at Superfeedr.
pub(super) struct SourceSubscription {
    pub(super) key: SubscriptionKey,
    /// `atom` or `json`, where it is known.
    pub(super) format: Option<String>,
    pub(super) secret: Option<Secret>,
}

/// What the account has at Superfeedr.
pub(super) struct SourceList {
    pub(super) subscriptions: Vec<SourceSubscription>,
    /// Subscriptions that cannot be moved, each with the reason.
    pub(super) unusable: Vec<(SubscriptionKey, String)>,
}

/// Reads the whole list before anything changes: pages shift when subscriptions end.
pub(super) async fn read_list(superfeedr: &AccountApi) -> Result<SourceList, AccountApiError> {
    let mut list = SourceList { subscriptions: Vec::new(), unusable: Vec::new() };
    let (mut keys, by_page) = (HashSet::new(), BY_PAGE.to_string());
    for page in 1_usize.. {
        let number = page.to_string();
        let parameters = [("hub.mode", "list"), ("page", &*number), ("by_page", &*by_page)];
        let body = superfeedr.get(&parameters).await?;
        let listed = read_page(&body).map_err(|reason| superfeedr.unreadable(reason))?;
        if listed.is_empty() {
            break;
        }
        let known = keys.len();
        for usable in listed.iter().map(read_subscription) {
            let key = usable.as_ref().map_or_else(|(key, _)| key, |usable| &usable.key);
            if !keys.insert(key.clone()) {
                continue;
            }
            match usable {
                Ok(usable) => list.subscriptions.push(usable),
                Err(unusable) => list.unusable.push(unusable),
            }
        }
        // A server that ignores `page` would be read for ever.
        if keys.len() == known {
            let reason = format!("page {page} of the list repeats those before it");
            return Err(superfeedr.unreadable(reason));
        }
        if keys.len() > MOST_SUBSCRIPTIONS {
            let reason = format!("the list has more than {MOST_SUBSCRIPTIONS} subscriptions");
            return Err(superfeedr.unreadable(reason));
        }
    }
    print_note(format!("{} subscriptions are listed at Superfeedr", keys.len()));
    Ok(list)
}

/// Returns the items of a page, which is an array, or an object if details are requested.
fn read_page(body: &[u8]) -> Result<Vec<Value>, String> {
    let page = serde_json::from_slice(body).map_err(|err| format!("it is not JSON: {err}"))?;
    match page {
        Value::Array(items) => Ok(items),
        Value::Object(mut page) => match page.remove("subscriptions") {
            Some(Value::Array(items)) => Ok(items),
            _ => Err("it is no list of subscriptions".to_owned()),
        },
        _ => Err("it is no list of subscriptions".to_owned()),
    }
}

/// Returns a subscription, or what identifies it and the reason why it cannot be moved.
fn read_subscription(item: &Value) -> Result<SourceSubscription, (SubscriptionKey, String)> {
    let subscription = &item["subscription"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (topic, callback) = (text(&subscription["feed"]["url"]), text(&subscription["endpoint"]));
    let key = SubscriptionKey { topic, callback };
    let secret = subscription["secret"].as_str().filter(|secret| !secret.is_empty());
    let secret = secret.map(|secret| Secret::new(secret.to_owned())).transpose();
    let secret = secret.map_err(|err| format!("its secret cannot be used: {err}"));
    let usable = check(&key).and(secret);
    let format = subscription["format"].as_str().map(str::to_ascii_lowercase);
    let format = format.filter(|format| ["atom", "json"].contains(&&**format));
    match usable {
        Ok(secret) => Ok(SourceSubscription { key, format, secret }),
        Err(reason) => Err((key, reason)),
    }
}

fn check(key: &SubscriptionKey) -> Result<(), String> {
    let SubscriptionKey { topic, callback } = key;
    if topic.is_empty() {
        return Err("the list names no feed".to_owned());
    }
    match Url::parse(callback).is_ok_and(|url| ["http", "https"].contains(&url.scheme())) {
        true => Ok(()),
        false => Err(format!("{callback} is no URL; an address of XMPP has to become a callback")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_page_is_an_array_or_an_object() {
        let item = json!({ "subscription": {} });
        for page in [json!([item]), json!({ "subscriptions": [item], "meta": {} })] {
            let read = read_page(page.to_string().as_bytes()).unwrap();
            assert_eq!(read, std::slice::from_ref(&item));
        }
        for page in ["", "{}", "3", "<html>"] {
            assert!(read_page(page.as_bytes()).is_err(), "{page}");
        }
    }

    #[test]
    fn what_cannot_be_moved_has_a_reason() {
        let subscription = |endpoint: &str, url: &str, secret: &str| {
            json!({ "subscription": {
                "format": "JSON", "endpoint": endpoint, "secret": secret, "feed": { "url": url },
            } })
        };
        let (hook, feed) = ("https://a.test/hook", "https://a.test/feed");
        let long = "k".repeat(200);
        let cases = [
            (subscription(hook, feed, "key"), None),
            (subscription(hook, feed, ""), None),
            (subscription("ann@superfeedr.com", feed, ""), Some("XMPP")),
            (subscription(hook, "", ""), Some("names no feed")),
            (subscription(hook, feed, &long), Some("its secret cannot be used")),
            (json!({}), Some("names no feed")),
        ];
        for (item, want) in cases {
            match (read_subscription(&item), want) {
                (Ok(read), None) => assert_eq!(read.format.as_deref(), Some("json")),
                (Err((_, reason)), Some(want)) => assert!(reason.contains(want), "{reason}"),
                (usable, _) => panic!("{item}: {:?}", usable.map(|read| read.key)),
            }
        }
    }
}
