//! Subscriptions that an account has: finding one by its address, and replaying to it.

use super::SubscriptionService;
use feedgate_core::account::AccountId;
use feedgate_core::record::Seq;
use feedgate_core::resource::ResourceKind;
use feedgate_core::store::{ListedSubscription, StoreError, SubscriptionFilter};
use feedgate_core::subscription::Format;
use feedgate_core::topic::{Callback, Topic};

/// The maximum number of subscriptions of one callback to one resource, under several addresses, that are
/// compared.
const MOST_COMPARED: usize = 16;

/// The most entries that are replayed at the request of a program (P-1).
pub const MAX_REPLAYED: i64 = 50;

/// Selects the subscriptions of an account, or of anybody, to the resource of `topic` with this callback.
pub(super) fn filter_for(
    account: Option<AccountId>,
    topic: &Topic,
    callback: &Callback,
) -> SubscriptionFilter {
    SubscriptionFilter {
        account,
        topic: Some(topic.as_str().to_owned()),
        callback: Some(callback.as_str().to_owned()),
        limit: MOST_COMPARED,
        ..SubscriptionFilter::default()
    }
}

impl SubscriptionService {
    /// Returns the subscription of an account to `topic` with this callback. One under the address that
    /// is named comes before others.
    pub async fn find_held(
        &self,
        account: AccountId,
        topic: &Topic,
        callback: &Callback,
    ) -> Result<Option<ListedSubscription>, StoreError> {
        let topic = self.resolve(topic, Some(account), Some(callback)).await?;
        let filter = filter_for(Some(account), &topic, callback);
        let (mut listed, _) = self.store.list(&filter).await?;
        listed.sort_by_key(|held| held.subscription.topic.subscribed_as() != topic.subscribed_as());
        Ok(listed.into_iter().next())
    }
}

/// Returns the cursor from which the newest `count` entries are sent once more (P-1).
pub fn replay_cursor(listed: &ListedSubscription, count: u64) -> Seq {
    let owed = match listed.subscription.format {
        Format::Raw => listed.resource.body_version,
        Format::Atom | Format::Json | Format::Fitting => listed.resource.head.0,
    };
    // The body of a resource is kept in its newest version only.
    let is_body = match listed.subscription.format {
        Format::Raw => true,
        Format::Fitting => listed.resource.kind == ResourceKind::Other,
        Format::Atom | Format::Json => false,
    };
    let most = if is_body { 1 } else { MAX_REPLAYED };
    let count = i64::try_from(count).unwrap_or(MAX_REPLAYED).clamp(1, most);
    Seq((owed - count).max(0))
}
