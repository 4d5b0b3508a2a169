//! Rows of claimed deliveries: what is known of the subscription of each, and of its resource.
//!
//! Many claimed subscriptions are to the same resource, which is read once for all of them.

use std::collections::BTreeSet;

use foldhash::{HashMap, HashMapExt as _};

use crate::delivery::row::subscription_to;
use crate::engine::claims::{self, Picked};
use crate::engine::lease::ClaimLease;
use crate::engine::row::Row;
use crate::engine::sql::Value;
use crate::engine::tx::Tx;
use crate::resources::row::topic;
use feedgate_core::ports::StoreError;
use feedgate_core::record::Seq;
use feedgate_core::resource::ResourceId;
use feedgate_core::subscription::{BatchNumber, DueSubscription, Format};
use feedgate_core::topic::{Callback, Topic};

/// The columns of a claimed delivery to a subscription `s`, after the number of its row or its batch. A
/// delivery that is in no batch has two more: the token of its claim, and where to set the cursor back to.
macro_rules! claimed_columns {
    () => {
        concat!(
            "s.resource_id, ",
            $crate::delivery::row::own_columns!(),
            ", s.replayed_upto, s.replays, s.digest_replays, s.acknowledged,
             s.generation"
        )
    };
}
pub(super) use claimed_columns;

/// A delivery that was claimed.
pub(super) struct ClaimedRow {
    pub(super) due: DueSubscription,
    /// Where to set the cursor of the subscription first.
    pub(super) replay_from: Option<i64>,
}

/// A statement that returns `claimed_columns!` of some claimed deliveries.
pub(super) struct ClaimedQuery<'a> {
    pub(super) sql: &'a str,
    /// The columns of `{rows}`.
    pub(super) columns: &'a [(&'static str, Value)],
    /// The number of deliveries, to reserve memory.
    pub(super) count: usize,
}

/// Runs a statement for claimed deliveries to `resources`. Returns the rows that are claimed under this
/// lease and whose subscriptions have not expired, each with the number of its delivery or batch.
pub(super) async fn read(
    tx: &Tx<'_>,
    lease: ClaimLease,
    resources: &HashMap<i64, ClaimedResource>,
    query: ClaimedQuery<'_>,
) -> Result<Vec<(i64, ClaimedRow)>, StoreError> {
    let mut valid: Vec<(i64, ClaimedRow)> = Vec::with_capacity(query.count);
    tx.visit_rows(query.sql, &[], query.columns, |row| {
        let neighbour = valid.last().map(|(_, last)| &last.due.subscription.callback);
        let claimed = claimed_row(row, lease, resources, neighbour);
        let is_valid = |row: &ClaimedRow| row.due.subscription.lease_until > lease.now;
        valid.extend(claims::readable(claimed).flatten().filter(|(_, row)| is_valid(row)));
    })
    .await?;
    Ok(valid)
}

/// What is known of a resource when subscriptions to it are claimed.
pub(super) struct ClaimedResource {
    topic: Topic,
    head: i64,
    body_version: i64,
    status_version: i64,
    announced_status_version: i64,
    hops: u32,
}

impl ClaimedResource {
    /// Returns the number of the newest record or body that a subscription with this format is owed.
    fn newest(&self, format: Format) -> Seq {
        Seq(if format == Format::Raw { self.body_version } else { self.head })
    }
}

/// Returns the resources of picked deliveries, by their numbers.
pub(super) async fn claimed_resources(
    tx: &Tx<'_>,
    picked: &[Picked],
) -> Result<HashMap<i64, ClaimedResource>, StoreError> {
    const RESOURCES: &str = "
        select id, topic, head, body_version, status_version, announced_status_version, hops
          from resources where id in ({ids $1})";
    let numbers: BTreeSet<i64> = picked.iter().map(|picked| picked.resource).collect();
    if numbers.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = tx.query(RESOURCES, &[Value::Ints(numbers.into_iter().collect())]).await?;
    let read = |mut row: Row| {
        let number = row.int()?;
        let resource = ClaimedResource {
            topic: topic(&mut row)?,
            head: row.int()?,
            body_version: row.int()?,
            status_version: row.int()?,
            announced_status_version: row.int()?,
            hops: row.small()?,
        };
        Ok((number, resource))
    };
    Ok(rows.into_iter().filter_map(|row| claims::readable(read(row))).collect())
}

/// Reads a row, with the number of its delivery or batch; `None` if its resource cannot be read or its
/// claim has another token. Its callback is probably at the same server as `neighbour`.
fn claimed_row(
    mut row: Row,
    lease: ClaimLease,
    resources: &HashMap<i64, ClaimedResource>,
    neighbour: Option<&Callback>,
) -> Result<Option<(i64, ClaimedRow)>, StoreError> {
    let number = row.int()?;
    let id = ResourceId(row.int()?);
    let Some(resource) = resources.get(&id.0) else { return Ok(None) };
    let topic = resource.topic.clone();
    let mut subscription = Box::new(subscription_to(id, topic, &mut row, neighbour)?);
    let newest = resource.newest(subscription.format);
    let (all, announced) = (resource.status_version, resource.announced_status_version);
    let status = subscription.statuses.version_of(all, announced);
    let told_before = Seq(row.int()?);
    let (replays, digest_replays, acknowledged) = (row.int()?, row.int()?, row.int()?);
    let generation = row.int()?;
    let batch = (number < 0).then_some(BatchNumber(number));
    let mut replay_from = None;
    if batch.is_none() {
        if row.int()? != lease.token.0 {
            return Ok(None);
        }
        replay_from = row.opt_int()?;
    }
    subscription.cursor = replay_from.map_or(subscription.cursor, Seq);
    // A later replay is no digest.
    let is_digest = digest_replays > 0
        && digest_replays == replays
        && subscription.format != Format::Raw
        && subscription.cursor < told_before;
    // A subscriber may ignore digests, so that what was never sent before follows by itself.
    let owed = if is_digest { newest.min(told_before) } else { newest };
    let (claim, claimed_at, hops) = (lease.token, lease.now, resource.hops);
    #[rustfmt::skip]
    let due = DueSubscription {
        subscription, claim, claimed_at, generation, batch, owed, newest, told_before, replays, is_digest,
        acknowledged, hops, status,
    };
    Ok(Some((number, ClaimedRow { due, replay_from })))
}
