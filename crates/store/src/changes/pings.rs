//! Pings, and the addresses by which they name resources.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::try_join;
use sha2::{Digest, Sha256};
use url::Url;

use crate::changes::{self, NamedResource};
use crate::engine::sql::{Value, params};
use crate::engine::tx::{Tx, Wake};
use crate::log::append_budget;
use crate::resources::row;
use crate::{Db, Store};
use feedgate_core::ping::Ping;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;
use feedgate_core::topic;
use feedgate_core::visibility::ListedTopics;

/// The name of the row that counted all pings in earlier versions, and the beginning of the names of
/// those that count them now.
const COUNTER: &str = "pings";
/// The number of rows that count pings. With one row, each batch would wait for the commit of the
/// one before.
const COUNTERS: u64 = 16;

/// Pings and notifications from other servers.
impl Store {
    /// Stores a ping and makes the resources due that it names: those whose topic, fetch URL or web
    /// site is the address of the ping or of its feed. No resource is fetched sooner than `spacing`
    /// after its last fetch. Returns the number of resources that strangers may know of.
    pub async fn receive(&self, ping: &Ping, spacing: Duration) -> Result<usize, StoreError> {
        if let Some(db) = self.only_cell() {
            return db.pings.receive(ping.clone(), spacing).await;
        }
        let named = self.each(|db| db.names(ping)).await?;
        let mut naming = self.cells.iter().zip(named).filter(|(_, names)| *names);
        // One cell lists the ping; in the others that have such resources, these become due.
        let listing = naming.next().map_or_else(|| self.of_topic(&ping.url), |(cell, _)| cell);
        let mut count = listing.pings.receive(ping.clone(), spacing).await?;
        for (cell, _) in naming {
            count += cell.mark_named_resources(ping, spacing).await?;
        }
        Ok(count)
    }
}

impl Db {
    /// Returns whether a ping names resources here.
    async fn names(&self, ping: &Ping) -> Result<bool, StoreError> {
        let ping = [ping.clone()];
        let named = self.read(move |tx| Box::pin(async move { named(tx, &ping).await }));
        Ok(named.await?.iter().any(|named| !named.is_empty()))
    }

    /// Makes the resources that a ping names due. The ping is listed in changes.xml by another cell.
    /// Returns their number.
    async fn mark_named_resources(
        &self,
        ping: &Ping,
        spacing: Duration,
    ) -> Result<usize, StoreError> {
        let ping = ping.clone();
        self.write(move |tx| Box::pin(mark_named_resources(tx, ping, spacing))).await
    }
}

/// What happens to a ping of a resource whose row another transaction has locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockedRows {
    /// The ping waits for that transaction.
    Wait,
    /// The ping is left out.
    Skip,
}

/// A batch of pings.
#[derive(Clone, Debug)]
pub(crate) struct PingBatch {
    pub(crate) pings: Vec<Ping>,
    /// The least time between two fetches of a resource.
    pub(crate) spacing: Duration,
    pub(crate) locked_rows: LockedRows,
    /// Selects the row that counts the pings: the number of the batch.
    pub(crate) number: u64,
    /// The resources that lists contain.
    pub(crate) listed: ListedTopics,
}

/// Returns whether the counter with this name counts pings.
pub(crate) fn is_ping_counter(name: &str) -> bool {
    name.strip_prefix(COUNTER).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Stores pings and makes the resources that they name due. Returns the number of resources of each
/// ping that its sender may know of, or `None` for one that was skipped because a row is locked.
pub(crate) async fn receive(
    tx: &Tx<'_>,
    batch: &PingBatch,
) -> Result<Vec<Option<usize>>, StoreError> {
    const COUNT: &str = "
        insert into counters (name, count) values ($1, $2)
            on conflict (name) do update set count = counters.count + excluded.count";
    let PingBatch { pings, spacing, .. } = batch;
    let ((), named) = try_join!(tx.join_by_keys(), named(tx, pings))?;
    let ids: BTreeSet<i64> = named.iter().flatten().copied().collect();
    let resources =
        changes::named_resources(tx, ids.iter().copied().collect(), batch.listed).await?;
    let locked = lock(tx, ids, batch.locked_rows).await?;
    let is_taken = |named: &Vec<i64>| named.iter().all(|id| locked.contains(id));
    let taken: Vec<(&Ping, &[i64])> = pings
        .iter()
        .zip(&named)
        .filter(|(_, named)| is_taken(named))
        .map(|(ping, named)| (ping, named.as_slice()))
        .collect();
    if let Some(last) = taken.iter().map(|(ping, _)| ping.at).max() {
        let marked: BTreeSet<i64> =
            taken.iter().flat_map(|(_, named)| named.iter().copied()).collect();
        mark_pinged(tx, marked.into_iter().collect(), last, *spacing).await?;
        // Lines are written after the lock, so that a change that a poll has just found is known.
        changes::insert_ping_lines(tx, &taken, &resources).await?;
        // The counter comes last: other batches wait for its row until this one is on the disk.
        let counter = format!("{COUNTER}/{}", batch.number % COUNTERS);
        tx.execute(COUNT, params![counter, taken.len() as i64]).await?;
    }
    let known = |named: &Vec<i64>| count_readable(named, &resources);
    Ok(named.iter().map(|named| is_taken(named).then(|| known(named))).collect())
}

/// Returns how many of these resources the sender of a ping may know of.
fn count_readable(named: &[i64], resources: &HashMap<i64, NamedResource>) -> usize {
    let known = named.iter().filter_map(|id| resources.get(id));
    known.filter(|resource| resource.is_readable()).count()
}

/// Makes the resources that a ping names due. The ping is listed in changes.xml by another cell.
/// Returns the number of those that its sender may know of.
pub(crate) async fn mark_named_resources(
    tx: &Tx<'_>,
    ping: Ping,
    spacing: Duration,
) -> Result<usize, StoreError> {
    let at = ping.at;
    let ids: Vec<i64> = named(tx, &[ping]).await?.into_iter().flatten().collect();
    let resources = changes::named_resources(tx, ids.clone(), ListedTopics::default()).await?;
    row::lock(tx, ids.clone()).await?;
    let count = count_readable(&ids, &resources);
    mark_pinged(tx, ids, at, spacing).await?;
    Ok(count)
}

/// Locks resources. Returns those that are locked now.
async fn lock(
    tx: &Tx<'_>,
    ids: BTreeSet<i64>,
    locked_rows: LockedRows,
) -> Result<BTreeSet<i64>, StoreError> {
    if ids.is_empty() {
        return Ok(ids);
    }
    match locked_rows {
        LockedRows::Wait => {
            row::lock(tx, ids.iter().copied().collect()).await?;
            Ok(ids)
        }
        LockedRows::Skip => {
            let free = row::lock_unless_locked(tx, ids.into_iter().collect()).await?;
            Ok(free.into_iter().collect())
        }
    }
}

/// Makes resources due, whose rows are locked, and removes the lines that the pings replace. `at` is
/// the time of the last ping.
pub(crate) async fn mark_pinged(
    tx: &Tx<'_>,
    ids: Vec<i64>,
    at: DateTime<Utc>,
    spacing: Duration,
) -> Result<(), StoreError> {
    // A poll in progress may have fetched the document before the change, so `record` reads
    // `pinged` again when the poll ends.
    const DUE: &str = "
        update resources
           set pinged = 1, ping_interval = $3,
               next_fetch = case when claimed_until > $2 or next_fetch < wanted then next_fetch
                                 else wanted end,
               due_at = case when claimed_until > $2 or due_at < wanted then due_at
                             else wanted end
          from (select wanted_id,
                       case when paid_at > spaced then paid_at else spaced end as wanted
                  from (select id as wanted_id,
                               case when left_alone_until > appends_paid_at - cast($4 as bigint)
                                    then left_alone_until
                                    else appends_paid_at - cast($4 as bigint) end as paid_at,
                               case when fetched_at + $3 > $2 then fetched_at + $3
                                    else cast($2 as bigint) end as spaced
                          from resources
                         where id in ({ids $1})) s) w
         where resources.id = wanted_id";
    if ids.is_empty() {
        return Ok(());
    }
    let at = tx.at(at);
    let spacing = i64::try_from(spacing.as_micros()).unwrap_or(i64::MAX / 4);
    let overdraft = append_budget::OVERDRAFT.num_microseconds().unwrap_or_default();
    tx.wake(Wake::Resources);
    let params = params![Value::Ints(ids.clone()), at, spacing, overdraft];
    try_join!(tx.execute(DUE, params), changes::replace_seen(tx, ids, at)).map(drop)
}

/// Returns the numbers of the resources that each ping names, in order.
pub(crate) async fn named(tx: &Tx<'_>, pings: &[Ping]) -> Result<Vec<Vec<i64>>, StoreError> {
    const NAMED: &str = "
        select url_hash, resource_id from resource_urls where url_hash in ({blobs $1})";
    let hashes = |ping: &Ping| {
        let urls = [Some(&ping.url), ping.feed_url.as_ref()];
        urls.into_iter().flatten().map(|url| hash(url)).collect::<Vec<_>>()
    };
    let by_ping: Vec<Vec<Vec<u8>>> = pings.iter().map(hashes).collect();
    let wanted: BTreeSet<Vec<u8>> = by_ping.iter().flatten().cloned().collect();
    let mut resources: HashMap<Vec<u8>, Vec<i64>> = HashMap::new();
    for mut row in tx.query(NAMED, &[Value::Blobs(wanted.into_iter().collect())]).await? {
        let (hash, id) = (row.blob()?, row.int()?);
        resources.entry(hash).or_default().push(id);
    }
    let named = by_ping.iter().map(|hashes| {
        let ids = hashes.iter().filter_map(|hash| resources.get(hash)).flatten();
        ids.copied().collect::<BTreeSet<_>>().into_iter().collect()
    });
    Ok(named.collect())
}

/// Stores `url` as an address by which a ping may name the resource, as its publisher knows it.
pub(crate) async fn name(
    tx: &Tx<'_>,
    id: ResourceId,
    role: &'static str,
    url: &str,
) -> Result<(), StoreError> {
    const NAME: &str = "
        insert into resource_urls (resource_id, role, url_hash) values ($1, $2, $3)
            on conflict (resource_id, role) do update set url_hash = excluded.url_hash
         where resource_urls.url_hash <> excluded.url_hash";
    tx.execute(NAME, params![id.0, role, hash(&topic::displayed(url))]).await.map(drop)
}

/// Returns the hash of an address without its scheme, fragment and closing slashes. The sender of a
/// ping rarely writes an address as its subscribers did; the worst result is a useless fetch.
fn hash(url: &str) -> Vec<u8> {
    let plain = match Url::parse(url) {
        Ok(mut url) => {
            url.set_fragment(None);
            let scheme = url.scheme().len();
            url.as_str()[scheme..].trim_end_matches('/').to_owned()
        }
        Err(_) => url.to_owned(),
    };
    Sha256::digest(plain)[..16].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_differ_in_form_only_are_one() {
        let one = hash("http://Example.com/blog");
        for same in ["https://example.com/blog/", "http://example.com/blog#top"] {
            assert_eq!(hash(same), one, "{same}");
        }
        assert_ne!(hash("http://example.com/other"), one);
        assert_ne!(hash("http://example.com/blog?page=2"), one);
    }
}
