//! Rows of claimed subscriptions, and what is known of their resources.
//!
//! Many claimed subscriptions are to the same resource, which is read once for all of them.

use foldhash::{HashMap, HashMapExt as _};

use crate::delivery::row::subscription_to;
use crate::engine::claims;
use crate::engine::lease::ClaimLease;
use crate::engine::row::Row;
use crate::engine::sql::{Columns, Value};
use crate::engine::tx::Tx;
use crate::resources::row::topic;
use feedgate_core::claim::ClaimToken;
use feedgate_core::record::Seq;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;
use feedgate_core::subscription::{DueSubscription, Format};
use feedgate_core::topic::{Callback, Topic};

/// The columns of a claimed subscription `s`, after the place of its portion, the token of the claim, 1 if it
/// is due at a retry, and its number.
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

/// The rows that were read of a portion.
#[derive(Default)]
pub(super) struct ClaimedRows {
    /// How many there are in the order of their numbers, with those that cannot be read.
    pub(super) passed: usize,
    /// How many are due at a retry.
    pub(super) retried: usize,
    /// The number of the last one in the order of their numbers.
    pub(super) last: Option<i64>,
    pub(super) due: Vec<DueSubscription>,
}

/// Runs a statement with the columns of its `{rows}`, which returns `claimed_columns!` of subscriptions to
/// `resources`, and adds them to the rows of the portions.
pub(super) async fn read(
    tx: &Tx<'_>,
    lease: ClaimLease,
    resources: &HashMap<i64, ClaimedResource>,
    (sql, columns): (&str, &Columns<'_>),
    portions: &mut [ClaimedRows],
) -> Result<(), StoreError> {
    let now = [Value::from(lease.now)];
    tx.visit_rows(sql, &now, columns, |row| {
        claims::readable(read_row(row, lease, resources, portions));
    })
    .await
}

fn read_row(
    mut row: Row,
    lease: ClaimLease,
    resources: &HashMap<i64, ClaimedResource>,
    portions: &mut [ClaimedRows],
) -> Result<(), StoreError> {
    let place = usize::try_from(row.int()?).unwrap_or(usize::MAX);
    let (token, is_retried, number) = (ClaimToken(row.int()?), row.int()? == 1, row.int()?);
    let Some(rows) = portions.get_mut(place) else { return Ok(()) };
    match is_retried {
        true => rows.retried += 1,
        false => {
            rows.passed += 1;
            rows.last = rows.last.max(Some(number));
        }
    }
    let neighbour = rows.due.last().map(|last| &last.subscription.callback);
    let due = claimed_row(row, (token, lease), resources, neighbour)?;
    rows.due.extend(due);
    Ok(())
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

/// Locks those of the resources in share mode to which nobody appends, and returns them by their numbers: an
/// append that takes long delays no notification of another resource.
pub(super) async fn lock_idle_resources(
    tx: &Tx<'_>,
    numbers: Vec<i64>,
) -> Result<HashMap<i64, ClaimedResource>, StoreError> {
    const RESOURCES: &str = "
        select id, topic, head, body_version, status_version, announced_status_version, hops
          from resources where id in ({ids $1}) order by id {for share} {postgres skip locked}";
    if numbers.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = tx.query(RESOURCES, &[Value::Ints(numbers)]).await?;
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

/// Reads `claimed_columns!`; `None` if the resource cannot be read. The callback is probably at the same
/// server as `neighbour`.
fn claimed_row(
    mut row: Row,
    (claim, lease): (ClaimToken, ClaimLease),
    resources: &HashMap<i64, ClaimedResource>,
    neighbour: Option<&Callback>,
) -> Result<Option<DueSubscription>, StoreError> {
    let id = ResourceId(row.int()?);
    let Some(resource) = resources.get(&id.0) else { return Ok(None) };
    let topic = resource.topic.clone();
    let subscription = Box::new(subscription_to(id, topic, &mut row, neighbour)?);
    let newest = resource.newest(subscription.format);
    let (all, announced) = (resource.status_version, resource.announced_status_version);
    let status = subscription.statuses.version_of(all, announced);
    let told_before = Seq(row.int()?);
    let (replays, digest_replays, acknowledged) = (row.int()?, row.int()?, row.int()?);
    let generation = row.int()?;
    // A later replay is no digest.
    let is_digest = digest_replays > 0
        && digest_replays == replays
        && subscription.format != Format::Raw
        && subscription.cursor < told_before;
    // A subscriber may ignore digests, so that what was never sent before follows by itself.
    let owed = if is_digest { newest.min(told_before) } else { newest };
    let (claimed_at, hops) = (lease.now, resource.hops);
    #[rustfmt::skip]
    let due = DueSubscription {
        subscription, claim, claimed_at, generation, owed, newest, told_before, replays, is_digest,
        acknowledged, hops, status,
    };
    Ok(Some(due))
}
