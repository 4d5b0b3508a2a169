//! Subscriptions for the tests of deliveries.

use chrono::DateTime;

use feedgate_core::callback_headers::CallbackHeaders;
use feedgate_core::claim::ClaimToken;
use feedgate_core::record::Seq;
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::resource::ResourceId;
use feedgate_core::signing::Signing;
use feedgate_core::subscription::{
    DueSubscription, Format, Statuses, Subscription, SubscriptionId, Updates,
};
use feedgate_core::topic::{Callback, Topic};
use feedgate_protocol::Protocol;

/// Returns an open WebSub subscription that was never notified.
pub(super) fn subscription() -> Subscription {
    Subscription {
        id: SubscriptionId { resource: ResourceId(1), number: 1 },
        account: None,
        topic: Topic::parse("https://feeds.test/").unwrap(),
        callback: Callback::parse("https://callback.test/in").unwrap(),
        protocol: Protocol::WebSub,
        format: Format::Atom,
        updates: Updates::default(),
        statuses: Statuses::default(),
        is_sanitized: false,
        filter: None,
        status_told: 0,
        signing: Signing::default(),
        headers: CallbackHeaders::default(),
        cursor: Seq(0),
        failures: 0,
        failing_since: None,
        lease_until: DateTime::UNIX_EPOCH,
        created_at: DateTime::UNIX_EPOCH,
        registrant: RegistrantNetwork::UNKNOWN,
        reading_list: String::new(),
    }
}

/// Returns the subscription as it is claimed, with nothing owed.
pub(super) fn due(subscription: Subscription) -> DueSubscription {
    DueSubscription {
        subscription: Box::new(subscription),
        claim: ClaimToken::NONE,
        claimed_at: DateTime::UNIX_EPOCH,
        generation: 0,
        owed: Seq(0),
        newest: Seq(0),
        status: 0,
        told_before: Seq(0),
        replays: 0,
        is_digest: false,
        acknowledged: 0,
        hops: 0,
    }
}
