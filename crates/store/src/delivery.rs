//! Subscriptions, and how far notifications have been delivered to them.

pub(crate) mod claim;
pub(crate) mod deliveries;
mod digests;
pub(crate) mod intents;
pub(crate) mod listing;
pub(crate) mod pausing;
pub(crate) mod ping_forwarding;
pub(crate) mod row;
pub(crate) mod subscriber_counts;
pub(crate) mod subscription_batcher;
pub(crate) mod subscriptions;
