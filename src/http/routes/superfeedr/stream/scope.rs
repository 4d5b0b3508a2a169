//! The logs of a stream: those of the subscriptions that its parameters select.
//!
//! They are selected again while the stream is open, because a subscription may end or begin, and
//! because a token may be revoked.

use std::collections::BTreeMap;

use crate::http::kit::auth::{self, Credentials};
use crate::http::kit::rejection::Rejection;
use crate::http::routes::superfeedr::{combined, retrieve};
use crate::http::state::Gateway;
use feedgate_core::account::{Access, Scope};
use feedgate_core::resource::{Resource, ResourceId};
use feedgate_protocol::form::Form;

/// The parameters that select the logs of a stream, and the credentials of its client.
#[derive(Clone)]
pub(super) struct StreamScope {
    pub(super) form: Form,
    pub(super) credentials: Credentials,
}

impl StreamScope {
    /// Returns whether the stream combines the logs of several subscriptions: all with a callback,
    /// all that a search finds, or all of the account.
    pub(super) fn is_combined(&self) -> bool {
        !self.form.has("hub.topic")
    }

    /// Authenticates the client again, and returns the resources.
    pub(super) async fn select(
        &self,
        gateway: &Gateway,
    ) -> Result<BTreeMap<ResourceId, Resource>, Rejection> {
        let access = self.credentials.authenticate(gateway).await?;
        auth::require(&access, Scope::Retrieve)?;
        self.resources(gateway, &access).await
    }

    /// Returns the resources of the subscriptions of `access` that the parameters select.
    pub(super) async fn resources(
        &self,
        gateway: &Gateway,
        access: &Access,
    ) -> Result<BTreeMap<ResourceId, Resource>, Rejection> {
        if self.is_combined() {
            return combined::found_resources(gateway, &self.form, access).await;
        }
        let resource = retrieve::subscribed_resource(gateway, &self.form, access).await?;
        Ok(BTreeMap::from([(resource.id, resource)]))
    }
}
