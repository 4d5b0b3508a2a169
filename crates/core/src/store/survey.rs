//! What surveys of all resources and subscriptions return, a step at a time.

use chrono::{DateTime, Utc};

use crate::resource::{Resource, ResourceId, ResourceKind};
use crate::subscription::SubscriptionId;
use crate::topic::Topic;
use crate::visibility::Exposure;

/// A resource with subscriptions, as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedResource {
    /// The number of the resource.
    pub id: ResourceId,
    /// The topic, as the first subscriber wrote it.
    pub topic: Topic,
    /// The title as plain text; empty if it is unknown.
    pub title: String,
    /// The web site of the feed.
    pub site_url: Option<String>,
    /// The kind; never a collection.
    pub kind: ResourceKind,
    /// The number of subscriptions, as sent to the publisher (P34).
    pub subscribers: u32,
    /// When the resource was last polled.
    pub fetched_at: Option<DateTime<Utc>>,
    /// When the newest record was appended to its log.
    pub changed_at: Option<DateTime<Utc>>,
    /// What decides who may see the resource.
    pub exposure: Exposure,
}

/// An open subscription, which belongs to no account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenSubscription {
    /// The number of the subscription.
    pub id: SubscriptionId,
    /// The callback in full, which must be redacted before it is displayed (S54).
    pub callback: String,
    /// The word of [`feedgate_protocol::Protocol::as_str`].
    pub protocol: String,
    /// The number of consecutive changes that could not be delivered.
    pub errors: u32,
    /// The number of consecutive failed attempts.
    pub failures: u32,
    /// When the first of them failed.
    pub failing_since: Option<DateTime<Utc>>,
    /// When the subscription was created.
    pub created_at: DateTime<Utc>,
    /// When the lease ends.
    pub lease_until: DateTime<Utc>,
    /// Whether the subscription is as it was created, so that its lease began then.
    pub is_unchanged: bool,
}

/// The newest body of a resource, without its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodySummary {
    /// The number of the resource.
    pub resource: ResourceId,
    /// The SHA-256 of the body.
    pub sha256: Vec<u8>,
    /// The length of the body in bytes.
    pub length_bytes: u64,
}

/// A page of open subscriptions, in the order of their resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenSubscriptions {
    /// The open subscriptions of the page, which may be few or none of the rows that were read.
    pub open: Vec<OpenSubscription>,
    /// Their resources, by number; collections are left out.
    pub resources: Vec<WatchedResource>,
    /// The newest bodies of the resources, as far as there are any.
    pub bodies: Vec<BodySummary>,
    /// The last row that was read, after which the next page begins; `None` on the last page.
    pub next: Option<SubscriptionId>,
}

/// A page of resources with all their properties.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourcesPage {
    /// The resources, ascending by number.
    pub resources: Vec<Resource>,
    /// The last resource that was read, after which the next page begins; `None` on the last page.
    pub next: Option<ResourceId>,
}

/// The number of subscriptions with the same properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriberGroup {
    /// Host and port of their callbacks.
    pub host: String,
    /// The word of [`feedgate_protocol::Protocol::as_str`].
    pub protocol: String,
    /// Whether their callbacks use TLS.
    pub is_https: bool,
    /// Whether they are open subscriptions.
    pub is_open: bool,
    /// The number of subscriptions.
    pub many: u64,
    /// The number of those whose last attempt failed.
    pub failing: u64,
}

/// The counts of a batch of subscriptions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionCounts {
    /// The groups, which do not overlap.
    pub groups: Vec<SubscriberGroup>,
    /// The last subscription that was counted; `None` if there are no more.
    pub next: Option<SubscriptionId>,
}
