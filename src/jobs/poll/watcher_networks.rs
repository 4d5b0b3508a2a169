//! Which networks the requests of a poll may lead into (rule S12).
//!
//! The private networks that the operator allows for topics are for accounts. Of a stranger, only the
//! name of a topic is known when it is subscribed to, and where the name leads can change with every
//! lookup. So each poll of a topic that no account watches goes to public addresses only, with all its
//! redirects: inside, not even a request arrives.

use super::Poller;
use crate::net::{HttpClient, Patience, is_inner};
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::resource::Resource;
use feedgate_core::store::StoreError;

impl Poller {
    /// Returns the poller for what an account requests, whose subscription may not be stored yet; or
    /// this one.
    pub fn for_account(&self, is_for_account: bool) -> Poller {
        Poller { is_for_account: is_for_account || self.is_for_account, ..self.clone() }
    }

    /// Returns the poller for what a client without an account requests from `network`.
    pub fn for_anonymous(&self, network: RegistrantNetwork) -> Poller {
        Poller { client: self.client.for_anonymous(network), ..self.clone() }
    }

    /// Returns the client for a poll of a resource, as [`client_for`](Self::client_for) does. Who watches
    /// the resource is not read where it decides nothing: of most polls.
    pub async fn client_for_poll(
        &self,
        resource: &Resource,
        patience: Patience,
    ) -> Result<HttpClient, StoreError> {
        // The name of what was read at the last poll is found at once. If the lookup fails, the next one
        // takes the shares of strangers.
        let is_well = !resource.polling.validators.url.is_empty() && resource.polling.failures == 0;
        let has_shares = patience.is_for_request() || !is_well;
        let is_decided = !self.client.has_inner_topics_for_some()
            && (self.client.is_for_anonymous() || !has_shares);
        match is_decided {
            true => self.with_feed_headers(self.client.clone(), resource).await,
            false => self.client_for(resource).await,
        }
    }

    /// Returns the client for the requests of a resource. Private networks are reached if an account or a
    /// collection of the operator watches it, or if its topic names one: whoever subscribed to it was
    /// allowed to. What nobody of these watches takes the shares of strangers.
    pub async fn client_for(&self, resource: &Resource) -> Result<HttpClient, StoreError> {
        // Whether strangers subscribe is known without reading.
        let has_only_accounts = resource.subscribers > 0 && !resource.exposure.is_open;
        let is_known = self.is_for_account
            || is_inner(&resource.topic.fetch_url())
            || has_only_accounts
            || self.store.has_trusted_watcher(resource.id).await?;
        let client = match is_known {
            true => self.client.clone(),
            false => self.client.public_topics_only(),
        };
        self.with_feed_headers(client, resource).await
    }
}
