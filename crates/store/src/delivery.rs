//! Subscriptions, and how far notifications have been delivered to them.

pub(crate) mod account_turns;
pub(crate) mod attempts;
pub(crate) mod batch_members;
pub(crate) mod batches;
pub(crate) mod claim;
mod claimed_rows;
mod common_results;
pub(crate) mod deliveries;
mod digests;
mod generations;
mod held_claims;
pub(crate) mod intents;
pub(crate) mod kept_cursors;
pub(crate) mod listing;
pub(crate) mod new_deliveries;
pub(crate) mod pausing;
pub(crate) mod ping_forwarding;
mod progress;
pub(crate) mod queue;
mod renewal;
pub(crate) mod replays;
mod result_columns;
pub(crate) mod row;
pub(crate) mod subscriber_counts;
pub(crate) mod subscription_batcher;
pub(crate) mod subscriptions;
pub(crate) mod unsubscribe;
