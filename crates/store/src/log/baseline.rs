//! The baseline of a resource: what its first poll finds, which existed before its subscriptions and
//! is sent to nobody (rule N5).
//!
//! A subscription may be stored before that poll ends, because no subscriber waits long for it. Then
//! the baseline may contain a change that was published after the subscription began. If the
//! publisher pings, the newest entry of the baseline is that change, unless the poll for the ping
//! finds a newer one.

use chrono::{DateTime, TimeDelta, Utc};

use crate::delivery::backlogs::{mark_selected, marked_columns};
use crate::engine::sql::params;
use crate::engine::tx::Tx;
use crate::log::fan_out::LogState;
use crate::log::records::After;
use feedgate_core::poll::Poll;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;

/// The maximum time from the baseline to the poll for a ping that may report a part of it. Publishers
/// ping when they publish, so a later ping is about a later change.
const LATEST_PING: TimeDelta = TimeDelta::seconds(60);
/// The value of `resources.pinged` after a ping that came during the poll.
const PINGED_SINCE: i64 = 1;
/// The value of `resources.pinged` during the poll for a ping.
const PINGED_BEFORE: i64 = 2;

/// The state of a resource before its poll is recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PolledResource {
    pub(crate) id: ResourceId,
    pub(crate) log: LogState,
    /// The number of subscriptions.
    pub(crate) subscribers: u32,
    /// The value of `resources.pinged`.
    pub(crate) pinged: i64,
    /// When the baseline was read, if the last poll read it.
    pub(crate) baseline_at: Option<DateTime<Utc>>,
}

/// Stores whether `poll` read a baseline that may contain a change, and notifies the subscribers of
/// one if a ping has reported it. The row of the resource is locked.
pub(crate) async fn store_baseline(
    tx: &Tx<'_>,
    before: PolledResource,
    poll: &mut Poll,
    after: &After,
) -> Result<(), StoreError> {
    poll.polling.baseline_at = None;
    let PolledResource { log, pinged, .. } = before;
    let log_after = LogState { head: after.head, body_version: after.body_version };
    let is_first = poll.silent && (poll.is_baseline || log.body_version == 0);
    if is_first && before.subscribers > 0 {
        // The ping came after the subscription: nobody was subscribed when a baseline poll began.
        if pinged == PINGED_BEFORE && !poll.is_baseline {
            return send_newest(tx, before.id, (poll.at, poll.at), log_after).await;
        }
        poll.polling.baseline_at = Some(poll.at);
    } else if let Some(baseline_at) = before.baseline_at {
        let is_same = log == log_after;
        if pinged == PINGED_SINCE && is_same {
            // The poll for that ping follows.
            poll.polling.baseline_at = Some(baseline_at);
        } else if pinged == PINGED_BEFORE && is_same && poll.at - baseline_at <= LATEST_PING {
            return send_newest(tx, before.id, (baseline_at, poll.at), log).await;
        }
    }
    Ok(())
}

/// Marks the subscriptions due that are up to date and were made by the first of two times, such
/// that they are sent the newest entry, or the body.
async fn send_newest(
    tx: &Tx<'_>,
    id: ResourceId,
    (made_by, at): (DateTime<Utc>, DateTime<Utc>),
    log: LogState,
) -> Result<(), StoreError> {
    const SET_BACK: &str = "
        update subscriptions
           set cursor = cursor - 1,
               begun_after = case when begun_after > 0 and begun_after >= cast($5 as bigint)
                                  then cast($5 as bigint) - 1 else begun_after end
         where resource_id = $1 and lease_until > $2 and created_at <= $3 and cursor > 0
           and cursor = case when format = 'raw' then cast($4 as bigint)
                             else cast($5 as bigint) end";
    const SEND_NEWEST: &str = concat!(
        "select ",
        marked_columns!(),
        " from subscriptions s
          where s.resource_id = $1 and lease_until > $2 and created_at <= $3 and paused_at is null
            and cursor = case when format = 'raw' then cast($4 as bigint)
                              else cast($5 as bigint) end - 1"
    );
    let params = params![id.0, at, made_by, log.body_version, log.head];
    tx.execute(SET_BACK, params).await?;
    mark_selected(tx, SEND_NEWEST, params, at).await
}
