//! What a body depends on.

use feedgate_core::query::EntryFilter;
use feedgate_core::record::{Audience, Seq};
use feedgate_core::resource::ResourceId;
use feedgate_core::subscription::{DueSubscription, Format, Statuses, Subscription};

/// A part of a log that a stream sends, as `Composer::compose_range` takes it.
#[derive(Clone, Debug)]
pub(crate) struct LogRange {
    /// The log.
    pub(crate) resource: ResourceId,
    /// The topic that the body names.
    pub(crate) topic: String,
    /// All records after this one,
    pub(crate) after: Seq,
    /// up to and including this one,
    pub(crate) upto: Seq,
    /// that have at least this audience.
    pub(crate) least: Audience,
    /// The format of the body: Atom or JSON.
    pub(crate) format: Format,
    /// Whether the texts of entries are sanitized.
    pub(crate) is_sanitized: bool,
    /// Which of these records are sent; `None`: all.
    pub(crate) filter: Option<EntryFilter>,
}

/// Everything that a body depends on: the log, the range, the format, and the kind of subscriber.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct BodyKey {
    pub(super) resource: ResourceId,
    pub(super) topic: String,
    pub(super) after: Seq,
    pub(super) owed: Seq,
    pub(super) format: Format,
    /// Whether a body in Atom is converted to the format that the topic names, if it is the address of a
    /// feed of this gateway. A stream has one format, whatever its topics are.
    pub(super) is_converted: bool,
    pub(super) least: Audience,
    pub(super) is_open: bool,
    /// The least version of the status that is owed; 0 where the body includes none. A body with an
    /// older status is not sent as one with this version (rule P33).
    pub(super) status: i64,
    /// The option that determines which changes of the status that version counts.
    pub(super) statuses: Statuses,
    /// Whether only the status is sent.
    pub(super) is_status_only: bool,
    /// Whether the body is marked as a digest.
    pub(super) is_digest: bool,
    /// Whether its texts are sanitized (rule S22).
    pub(super) is_sanitized: bool,
    /// Which entries of the range are sent (row Q-5); `None`: all.
    pub(super) filter: Option<EntryFilter>,
}

impl BodyKey {
    pub(super) fn new(due: &DueSubscription, is_status_only: bool) -> BodyKey {
        let subscription = &due.subscription;
        let says_status = is_status_only || subscription.format != Format::Raw;
        BodyKey {
            resource: subscription.id.resource,
            topic: subscription.topic.subscribed_as().to_owned(),
            after: subscription.cursor,
            owed: due.owed,
            format: subscription.format,
            is_converted: true,
            least: subscription.updates.least(),
            is_open: subscription.account.is_none(),
            status: if says_status { due.status } else { 0 },
            statuses: if says_status { subscription.statuses } else { Statuses::Never },
            is_status_only,
            is_digest: due.is_digest && !is_status_only,
            is_sanitized: subscription.is_sanitized,
            // A status is the same for all.
            filter: subscription.filter.clone().filter(|_| !is_status_only),
        }
    }

    pub(super) fn of_test(subscription: &Subscription, is_status_only: bool) -> BodyKey {
        BodyKey {
            resource: subscription.id.resource,
            topic: subscription.topic.subscribed_as().to_owned(),
            after: subscription.cursor,
            owed: subscription.cursor,
            format: subscription.format,
            is_converted: true,
            least: subscription.updates.least(),
            is_open: subscription.account.is_none(),
            status: 0,
            statuses: subscription.statuses,
            is_status_only,
            is_digest: false,
            is_sanitized: subscription.is_sanitized,
            filter: subscription.filter.clone(),
        }
    }

    /// Returns the key of the entries of a subscription in a part of the log: after `after`, up to
    /// `upto`.
    pub(super) fn of_entries(subscription: &Subscription, after: Seq, upto: Seq) -> BodyKey {
        BodyKey { after, owed: upto, ..BodyKey::of_test(subscription, false) }
    }

    pub(super) fn from_range(range: LogRange) -> BodyKey {
        BodyKey {
            resource: range.resource,
            topic: range.topic,
            after: range.after,
            owed: range.upto,
            format: range.format,
            is_converted: false,
            least: range.least,
            is_open: false,
            status: 0,
            statuses: Statuses::Never,
            is_status_only: false,
            is_digest: false,
            is_sanitized: range.is_sanitized,
            filter: range.filter,
        }
    }
}
