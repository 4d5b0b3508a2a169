//! What is checked of a request to subscribe before anything is done for it.

use url::Url;

use super::{CallerNetworks, SubscriptionRefusal, SubscriptionService};
use crate::net::Purpose;
use feedgate_core::intent::Intent;
use feedgate_core::own_document::OwnDocument;
use feedgate_core::subscription::SubscriptionRequest;
use feedgate_core::topic::{Callback, Topic};
use feedgate_feed::documents::Fragment;

impl SubscriptionService {
    /// Checks a request of a caller who may name addresses of these networks.
    pub(super) async fn check_subscription(
        &self,
        intent: &Intent,
        is_own_log: bool,
        networks: CallerNetworks,
    ) -> Result<(), SubscriptionRefusal> {
        self.check(&intent.request, is_own_log)?;
        if !is_own_log {
            self.check_is_no_own_document(&intent.request.topic)?;
            self.check_topic_network(&intent.request.topic, networks).await?;
        }
        self.check_quota(&intent.request).await
    }

    /// Refuses a topic that is a document of this gateway, but not a log of it.
    fn check_is_no_own_document(&self, topic: &Topic) -> Result<(), SubscriptionRefusal> {
        let own = self.public_url.as_ref().and_then(|own| OwnDocument::find(own, topic));
        own.map_or(Ok(()), |document| Err(SubscriptionRefusal::OwnDocument(document)))
    }

    /// Checks the topic and the callback, which the hub may refuse (WebSub
    /// `#subscription-validation`). A literal address in the URL is checked before the response;
    /// the address that a name resolves to is checked by the first request.
    fn check(
        &self,
        request: &SubscriptionRequest,
        is_own_log: bool,
    ) -> Result<(), SubscriptionRefusal> {
        // The fragment of a log of this gateway keeps it secret, and selects nothing.
        if !is_own_log {
            self.check_address(&request.topic.fetch_url(), Purpose::Topic)?;
            check_part(&request.topic)?;
        }
        self.check_callback(&request.callback)
    }

    /// Refuses a callback at an address of this gateway, or at a literal address that is forbidden.
    pub fn check_callback(&self, callback: &Callback) -> Result<(), SubscriptionRefusal> {
        self.check_is_elsewhere(callback)?;
        match callback.is_null_device() {
            true => Ok(()),
            false => self.check_address(callback.url(), Purpose::Callback),
        }
    }

    fn check_address(&self, url: &Url, purpose: Purpose) -> Result<(), SubscriptionRefusal> {
        match self.fetch.refuses(url, purpose) {
            Some(why) => Err(SubscriptionRefusal::Forbidden(purpose, why)),
            None => Ok(()),
        }
    }
}

/// Refuses a fragment that can never select anything, before anybody waits for it.
pub(super) fn check_part(topic: &Topic) -> Result<(), SubscriptionRefusal> {
    match topic.fragment().map(Fragment::parse).transpose() {
        Ok(_) => Ok(()),
        Err(why) => Err(SubscriptionRefusal::BadPart(why)),
    }
}
