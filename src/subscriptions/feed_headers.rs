//! Headers and cookies for a feed that needs them.
//!
//! A resource is shared by all who subscribe to its URL, so a feed that an account fetches with headers of its own
//! is another resource, private to that account: its topic has a random user name, which no request can name, and
//! its address is the alias of the topic, as that of a followed page is. The headers belong to the resource, so
//! that its log goes on when they are replaced.

use chrono::{DateTime, Utc};

use super::followed_pages::LONGEST_BYTES;
use super::{CallerNetworks, SubscriptionRefusal, SubscriptionService, events};
use crate::jobs::runner;
use feedgate_core::callback_headers::CallbackHeaders;
use feedgate_core::intent::{Intent, IntentMode};
use feedgate_core::subscription::SubscriptionRequest;
use feedgate_core::topic::Topic;

impl SubscriptionService {
    /// Returns a request to subscribe as one to the feed that is fetched with these headers, which are
    /// stored. `None`: none are named, and a renewal keeps those that there are. Empty headers: the request
    /// stays one to the resource that everybody has at the URL.
    pub async fn with_feed_headers(
        &self,
        intent: Intent,
        chosen: Option<CallbackHeaders>,
        now: DateTime<Utc>,
    ) -> Result<Intent, SubscriptionRefusal> {
        let SubscriptionRequest { topic: address, callback, account, .. } = &intent.request;
        if account.is_none() || intent.mode != IntentMode::Subscribe {
            return Ok(intent);
        }
        let callback = chosen.is_none().then_some(callback);
        let mut topics = self.store.subscribed_under(*account, address.as_str(), callback).await?;
        topics.retain(Topic::has_own_headers);
        let Some(chosen) = chosen else {
            return Ok(with_topic(&intent, topics.into_iter().next()));
        };
        if chosen.is_empty() {
            return Ok(intent);
        }
        if topics.is_empty() {
            topics.extend(self.new_topic(&intent.request));
        }
        let own = with_topic(&intent, topics.first().cloned());
        let checked = match topics.is_empty() {
            true => Err(SubscriptionRefusal::FeedHeaders),
            false => self.check_subscription(&own, false, CallerNetworks::Inner).await,
        };
        checked.inspect_err(|why| self.event_log.record(events::refused(&intent, why, now)))?;
        // There is one, unless requests crossed.
        for topic in &topics {
            self.store.store_feed_headers(topic, &chosen, now).await?;
        }
        Ok(own)
    }

    /// Returns the topic of a new resource with headers of its own at the URL that a request names; `None` if
    /// there can be none.
    fn new_topic(&self, request: &SubscriptionRequest) -> Option<Topic> {
        let SubscriptionRequest { topic: address, callback, .. } = request;
        let is_long = address.as_str().len() + callback.as_str().len() > LONGEST_BYTES;
        let own = address.with_own_headers(&runner::nonce());
        own.filter(|_| !is_long && !self.is_own_log(address))
    }
}

fn with_topic(intent: &Intent, topic: Option<Topic>) -> Intent {
    let mut intent = intent.clone();
    if let Some(topic) = topic {
        intent.request.topic = topic;
    }
    intent
}
