//! Pings, and the addresses by which they name resources.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use url::Url;

use crate::Db;
use crate::changes;
use crate::engine::sql::{Value, params};
use crate::engine::tx::{Tx, Wake};
use crate::log::append_budget;
use crate::resources::row;
use feedgate_core::ping::Ping;
use feedgate_core::ports::{Pings, StoreError};
use feedgate_core::resource::ResourceId;

/// The number of rows that count pings, so that pings seldom wait for each other.
const COUNTERS: u64 = 16;
/// The row that counts the next ping.
static NEXT_COUNTER: AtomicU64 = AtomicU64::new(0);

#[async_trait]
impl Pings for Db {
    async fn receive(&self, ping: &Ping, spacing: Duration) -> Result<usize, StoreError> {
        let ping = ping.clone();
        self.write(move |tx| Box::pin(receive(tx, ping, spacing))).await
    }
}

/// Stores a ping, and makes the resources due that it names. Returns their number.
pub(crate) async fn receive(
    tx: &Tx<'_>,
    ping: Ping,
    spacing: Duration,
) -> Result<usize, StoreError> {
    const COUNT: &str = "
        insert into counters (name, count) values ($1, 1)
            on conflict (name) do update set count = counters.count + 1";
    let named = mark_pinged(tx, &ping, spacing).await?;
    // The line is written after the lock, so that a change that a poll has just found is known.
    changes::pinged(tx, &ping, &named).await?;
    // The counter comes last: other pings wait for its row until this one is on the disk.
    let counter = NEXT_COUNTER.fetch_add(1, Ordering::Relaxed) % COUNTERS;
    tx.execute(COUNT, params![format!("pings/{counter}")]).await?;
    Ok(named.len())
}

/// Makes the resources due that a ping names, and removes the lines that it replaces. Returns the
/// numbers of the resources.
pub(crate) async fn mark_pinged(
    tx: &Tx<'_>,
    ping: &Ping,
    spacing: Duration,
) -> Result<Vec<i64>, StoreError> {
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
                  from (select id as wanted_id, appends_paid_at - cast($4 as bigint) as paid_at,
                               case when fetched_at + $3 > $2 then fetched_at + $3
                                    else cast($2 as bigint) end as spaced
                          from resources
                         where id in ({ids $1})) s) w
         where resources.id = wanted_id";
    let named = named(tx, ping).await?;
    if !named.is_empty() {
        row::lock(tx, named.clone()).await?;
        let ids = Value::Ints(named.clone());
        let spacing = i64::try_from(spacing.as_micros()).unwrap_or(i64::MAX / 4);
        let overdraft = append_budget::OVERDRAFT.num_microseconds().unwrap_or_default();
        tx.execute(DUE, params![ids, ping.at, spacing, overdraft]).await?;
        tx.wake(Wake::Resources);
    }
    changes::replace_seen(tx, ping, &named).await?;
    Ok(named)
}

/// Returns the numbers of the resources that a ping names.
pub(crate) async fn named(tx: &Tx<'_>, ping: &Ping) -> Result<Vec<i64>, StoreError> {
    const NAMED: &str = "
        select distinct resource_id from resource_urls
         where url_hash in ({blobs $1}) order by resource_id";
    let hashes = [Some(&ping.url), ping.feed_url.as_ref()].into_iter().flatten();
    let hashes = hashes.map(|url| hash(url)).collect();
    let named = tx.query(NAMED, &[Value::Blobs(hashes)]).await?;
    named.into_iter().map(|mut row| row.int()).collect()
}

/// Stores `url` as an address by which a ping may name the resource.
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
    tx.execute(NAME, params![id.0, role, hash(url)]).await.map(drop)
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
