//! The headers that an account has sent to the server of a feed.

use super::Poller;
use crate::net::HttpClient;
use feedgate_core::resource::Resource;
use feedgate_core::store::StoreError;

impl Poller {
    /// Returns the client for the requests of a resource, with its headers if it has its own.
    pub(super) async fn with_feed_headers(
        &self,
        client: HttpClient,
        resource: &Resource,
    ) -> Result<HttpClient, StoreError> {
        let held = self.store.feed_headers(resource.id, &resource.topic).await?;
        Ok(match held {
            Some(headers) => client.with_feed_headers(resource.topic.fetch_url(), headers),
            None => client,
        })
    }
}
