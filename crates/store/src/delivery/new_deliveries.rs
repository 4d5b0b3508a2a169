//! Putting deliveries into the queue, those that are alike in batches.

use chrono::{DateTime, Utc};
use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};

use crate::delivery::batch_members::{Members, search_range};
use crate::delivery::batches::key_columns;
use crate::engine::claims::readable;
use crate::engine::row::Row;
use crate::engine::sql::{Value, params};
use crate::engine::tx::{Tx, Wake};
use feedgate_core::ports::StoreError;

/// A subscription that is owed something and is not in the queue.
#[derive(Clone, Debug)]
pub(crate) struct NewDelivery {
    pub(crate) resource: i64,
    pub(crate) subscription: i64,
    pub(crate) account: i64,
    pub(crate) host: String,
    pub(crate) due_at: DateTime<Utc>,
}

impl NewDelivery {
    /// Reads a row with the numbers of the resource, the subscription and the account, and the host.
    pub(crate) fn read(row: &mut Row, due_at: DateTime<Utc>) -> Result<NewDelivery, StoreError> {
        let (resource, subscription) = (row.int()?, row.int()?);
        let (account, host) = (row.int()?, row.text()?);
        Ok(NewDelivery { resource, subscription, account, host, due_at })
    }
}

/// How many rows were selected, and the last subscription among them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SelectedRows {
    pub(crate) count: usize,
    pub(crate) last: i64,
}

/// Queues the subscriptions that `select` returns, unless they are already queued. All are to `resource`,
/// which is locked, and become due at once. Each row has the columns of [`NewDelivery::read`], and then 1
/// if the subscription is owed something, else 0.
pub(crate) async fn enqueue_selected(
    tx: &Tx<'_>,
    resource: i64,
    select: &str,
    params: &[Value],
    now: DateTime<Utc>,
) -> Result<SelectedRows, StoreError> {
    tx.join_by_keys().await?;
    let (mut selected, mut owed) = (SelectedRows::default(), Vec::new());
    for mut row in tx.query(select, params).await? {
        let new = NewDelivery::read(&mut row, now)?;
        selected = SelectedRows { count: selected.count + 1, last: new.subscription };
        if row.int()? != 0 {
            owed.push(new);
        }
    }
    let queued = queued_among(tx, resource, &owed).await?;
    owed.retain(|new| !queued.contains(&new.subscription));
    enqueue(tx, owed, now).await?;
    tx.plan_as_usual().await?;
    Ok(selected)
}

/// Returns the subscriptions in the queue among the given ones, which are to one resource; the result may
/// contain others.
async fn queued_among(
    tx: &Tx<'_>,
    resource: i64,
    among: &[NewDelivery],
) -> Result<HashSet<i64>, StoreError> {
    const MEMBERS: &str = "
        select members from deliveries {sqlite indexed by deliveries_members}
         where resource_id = $1
           and last_member >= $2 and last_member <= $3 and first_member <= $4";
    const OWN_ROWS: &str = "
        select subscription_id from deliveries
         where resource_id = $1 and subscription_id >= $2 and subscription_id <= $3";
    let mut queued = HashSet::new();
    let numbers = among.iter().map(|new| new.subscription);
    let Some((first, last)) = numbers.clone().min().zip(numbers.max()) else { return Ok(queued) };
    // Batches are read first: a member that leaves its batch meanwhile has a row of its own then.
    let [least, greatest, first_member] = search_range(first, last);
    let params = [Value::Int(resource), least, greatest, first_member];
    for mut row in tx.query(MEMBERS, &params).await? {
        queued.extend(readable(Members::read(&mut row)).iter().flat_map(Members::ids));
    }
    for mut row in tx.query(OWN_ROWS, params![resource, first, last]).await? {
        queued.insert(row.int()?);
    }
    Ok(queued)
}

/// Puts deliveries into the queue, those that are alike in batches. Their resources are locked.
pub(crate) async fn enqueue(
    tx: &Tx<'_>,
    deliveries: Vec<NewDelivery>,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const INSERT: &str = "
        insert into deliveries (resource_id, subscription_id, account_id, host, due_at, size,
                                first_member, last_member, members)
        {values resource_id, subscription_id, account_id, host, due_at, size, first_member, last_member, members}";
    if deliveries.is_empty() {
        return Ok(());
    }
    let mut groups: HashMap<(i64, i64, &str, DateTime<Utc>), Vec<i64>> = HashMap::new();
    for one in &deliveries {
        let group = (one.resource, one.account, one.host.as_str(), one.due_at);
        groups.entry(group).or_default().push(one.subscription);
    }
    let batches = groups.into_iter().flat_map(|(group, numbers)| {
        Members::divide(numbers).into_iter().map(move |members| (group, members))
    });
    let batches: Vec<_> = batches.collect();
    let many = batches.iter().filter(|(_, members)| members.ids().len() > 1);
    let possible = many.flat_map(|((resource, ..), members)| {
        possible_numbers(members).map(|number| (*resource, number))
    });
    let taken = existing_batches(tx, &possible.collect::<Vec<_>>()).await?;
    let mut rows = Vec::with_capacity(batches.len());
    for ((resource, account, host, due_at), members) in &batches {
        let row = NewRow {
            resource: *resource,
            number: 0,
            account: *account,
            host,
            due_at: *due_at,
            members: None,
        };
        let number = possible_numbers(members)
            .into_iter()
            .find(|number| !taken.contains(&(*resource, *number)))
            .filter(|_| members.ids().len() > 1);
        match number {
            Some(number) => rows.push(NewRow { number, members: Some(members), ..row }),
            None => {
                rows.extend(members.ids().iter().map(|number| NewRow { number: *number, ..row }))
            }
        }
    }
    tx.execute_rows(INSERT, &[], &row_columns(&rows)).await?;
    if deliveries.iter().any(|one| one.due_at <= now) {
        tx.wake(Wake::Subscriptions);
    }
    Ok(())
}

/// Returns the numbers that a batch with these members may have: those of the first and of the last
/// one, negated. An older batch may still have one of them. If both are taken, the deliveries are queued
/// one by one.
fn possible_numbers(members: &Members) -> [i64; 2] {
    let numbers = members.ids();
    [numbers.first(), numbers.last()].map(|number| -number.copied().unwrap_or_default())
}

/// Returns which of these batches, given with their resources, exist.
async fn existing_batches(
    tx: &Tx<'_>,
    batches: &[(i64, i64)],
) -> Result<HashSet<(i64, i64)>, StoreError> {
    const EXISTING: &str = "
        select d.resource_id, d.subscription_id
          from {rows}
          join deliveries d on d.resource_id = given.resource_id and d.subscription_id = given.id";
    let rows = tx.query_rows(EXISTING, &[], &key_columns(batches)).await?;
    rows.into_iter().map(|mut row| Ok((row.int()?, row.int()?))).collect()
}

/// A row that is inserted into `deliveries`.
#[derive(Clone, Copy)]
struct NewRow<'a> {
    resource: i64,
    number: i64,
    account: i64,
    host: &'a str,
    due_at: DateTime<Utc>,
    /// The members of a batch; `None`: the row is that of one subscription.
    members: Option<&'a Members>,
}

impl NewRow<'_> {
    /// Returns the member that `which` selects; `None` if the row is not a batch.
    fn member(&self, which: fn(&[i64]) -> Option<&i64>) -> Option<i64> {
        which(self.members?.ids()).copied()
    }
}

fn row_columns(rows: &[NewRow<'_>]) -> [(&'static str, Value); 9] {
    let ints = |column: fn(&NewRow<'_>) -> i64| Value::Ints(rows.iter().map(column).collect());
    let members = rows.iter().map(|row| row.members.map(Members::to_text));
    [
        ("resource_id", ints(|row| row.resource)),
        ("subscription_id", ints(|row| row.number)),
        ("account_id", ints(|row| row.account)),
        ("host", Value::Texts(rows.iter().map(|row| row.host.to_owned()).collect())),
        ("due_at", ints(|row| row.due_at.timestamp_micros())),
        ("size", ints(|row| row.members.map_or(1, |members| members.ids().len() as i64))),
        (
            "first_member",
            Value::OptInts(rows.iter().map(|row| row.member(<[i64]>::first)).collect()),
        ),
        ("last_member", Value::OptInts(rows.iter().map(|row| row.member(<[i64]>::last)).collect())),
        ("members", Value::OptTexts(members.collect())),
    ]
}
