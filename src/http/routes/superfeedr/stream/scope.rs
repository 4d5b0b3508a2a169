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
use feedgate_core::record::Seq;
use feedgate_core::resource::{Resource, ResourceId};
use feedgate_core::store::ListedSubscription;
use feedgate_protocol::form::Form;

/// The parameters that select the logs of a stream, and the credentials of its client.
#[derive(Clone)]
pub(super) struct StreamScope {
    pub(super) form: Form,
    pub(super) credentials: Credentials,
}

/// A log that a stream sends.
#[derive(Clone, Debug)]
pub(super) struct SelectedLog {
    pub(super) resource: Resource,
    /// The last record from before the client's first subscription to the resource.
    pub(super) begun_after: Seq,
}

impl StreamScope {
    /// Returns whether the stream combines the logs of several subscriptions: all with a callback,
    /// all that a search finds, or all of the account.
    pub(super) fn is_combined(&self) -> bool {
        !self.form.has("hub.topic")
    }

    /// Authenticates the client again, and returns the logs.
    pub(super) async fn select(
        &self,
        gateway: &Gateway,
    ) -> Result<BTreeMap<ResourceId, SelectedLog>, Rejection> {
        let access = self.credentials.authenticate(gateway).await?;
        auth::require(&access, Scope::Retrieve)?;
        self.logs(gateway, &access).await
    }

    /// Returns the logs of the subscriptions of `access` that the parameters select.
    pub(super) async fn logs(
        &self,
        gateway: &Gateway,
        access: &Access,
    ) -> Result<BTreeMap<ResourceId, SelectedLog>, Rejection> {
        let listed = match self.is_combined() {
            true => combined::found_subscriptions(gateway, &self.form, access).await?,
            false => vec![retrieve::first_subscription(gateway, &self.form, access).await?],
        };
        let mut logs = BTreeMap::new();
        for ListedSubscription { resource, begun_after, .. } in listed {
            let begun_after = begun_after.min(resource.head);
            let log = logs.entry(resource.id).or_insert(SelectedLog { resource, begun_after });
            log.begun_after = log.begun_after.min(begun_after);
        }
        Ok(logs)
    }
}
