//! What others told us: pings, and the changes that changes.xml lists.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use url::Url;

use super::db::Db;
use super::log::most;
use super::sql::{Row, Value, params};
use super::tx::{Tx, Wake};
use super::{Pings, StoreError, resources};
use crate::domain::ping::{Change, Ping};
use crate::domain::resource::ResourceId;
use crate::domain::status::Status;

/// A ping this soon after a change was seen without one tells of that change.
const SAME_CHANGE: chrono::Duration = chrono::Duration::minutes(5);

#[async_trait]
impl Pings for Db {
    async fn receive(&self, ping: &Ping, spacing: Duration) -> Result<usize, StoreError> {
        let ping = ping.clone();
        self.write(move |tx| Box::pin(receive(tx, ping, spacing))).await
    }

    async fn changes(&self, since: DateTime<Utc>, limit: usize) -> Result<Vec<Change>, StoreError> {
        // What was pinged is listed as it was pinged, the rest as it is known here.
        const CHANGES: &str = "
            select c.at, c.name, c.url, c.feed_url, r.topic, r.site_url, r.status
              from (select at, name, url, feed_url, resource_id
                      from (select at, name, url, feed_url, resource_id
                              from pings
                             where at >= $1 order by at desc limit $2) pinged
                    union all
                    select at, '', null, null, resource_id
                      from (select at, resource_id
                              from fetches
                             where at >= $1 and appended > 0 and announced = 0
                             order by at desc limit $2) seen) c
              left join resources r on r.id = c.resource_id
             order by c.at desc
             limit $2";
        let rows = self.rows(CHANGES, params![since, most(limit)]).await?;
        rows.into_iter().filter_map(|row| change(row).transpose()).collect()
    }

    async fn ping_count(&self) -> Result<u64, StoreError> {
        const COUNT: &str = "select count from counters where name = 'pings'";
        let rows = self.rows(COUNT, &[]).await?;
        rows.into_iter().next().map_or(Ok(0), |mut row| row.count())
    }
}

async fn receive(tx: &Tx<'_>, ping: Ping, spacing: Duration) -> Result<usize, StoreError> {
    const NAMED: &str = "
        select distinct resource_id from addresses where hash in ({blobs $1}) order by resource_id";
    const KEEP: &str = "
        insert into pings (at, source, name, url, feed_url, resource_id)
        values ($1, $2, $3, $4, $5, $6)";
    const COUNT: &str = "
        insert into counters (name, count) values ('pings', 1)
            on conflict (name) do update set count = counters.count + 1";
    // A poll in hand may have asked before the change was there, so `record` looks at
    // `pinged` again when it ends.
    const DUE: &str = "
        update resources
           set pinged = 1, spacing = $3,
               next_fetch = case when claimed_until > $2 or next_fetch < wanted then next_fetch
                                 else wanted end,
               due_at = case when claimed_until > $2 or due_at < wanted then due_at
                             else wanted end
          from (select id as wanted_id,
                       case when fetched_at + $3 > $2 then fetched_at + $3
                            else cast($2 as bigint) end as wanted
                  from resources
                 where id in ({ids $1})) w
         where resources.id = wanted_id";
    const ANNOUNCE: &str = "
        update fetches
           set announced = 1
         where resource_id in ({ids $1}) and appended > 0 and at between $2 and $3";
    let hashes = [Some(&ping.url), ping.feed_url.as_ref()].into_iter().flatten();
    let hashes = hashes.map(|url| hash(url)).collect();
    let named = tx.query(NAMED, &[Value::Blobs(hashes)]).await?;
    let named = named.into_iter().map(|mut row| row.int());
    let named = named.collect::<Result<Vec<_>, StoreError>>()?;
    let source = ping.source.as_str();
    let first = named.first().copied();
    tx.execute(KEEP, params![ping.at, source, ping.name, ping.url, ping.feed_url, first]).await?;
    if !named.is_empty() {
        resources::lock(tx, named.clone()).await?;
        let ids = Value::Ints(named.clone());
        let spacing = i64::try_from(spacing.as_micros()).unwrap_or(i64::MAX / 4);
        tx.execute(DUE, params![ids.clone(), ping.at, spacing]).await?;
        let since = ping.at - SAME_CHANGE;
        tx.execute(ANNOUNCE, params![ids, since, ping.at]).await?;
        tx.wake(Wake::Resources).await?;
    }
    // Last, because all pings wait for this row.
    tx.execute(COUNT, &[]).await?;
    Ok(named.len())
}

/// Keeps `url` as one by which a ping may name the resource.
pub(super) async fn name(
    tx: &Tx<'_>,
    id: ResourceId,
    role: &'static str,
    url: &str,
) -> Result<(), StoreError> {
    const NAME: &str = "
        insert into addresses (resource_id, role, hash) values ($1, $2, $3)
            on conflict (resource_id, role) do update set hash = excluded.hash
         where addresses.hash <> excluded.hash";
    tx.execute(NAME, params![id.0, role, hash(url)]).await.map(drop)
}

/// Who pings rarely writes an address as its subscribers did, so scheme, fragment and
/// closing slashes make no difference: at worst a resource is fetched in vain.
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

/// The line of one change; `None` if it would tell somebody's password. A ping that did
/// not tell it is listed as it came.
fn change(mut row: Row) -> Result<Option<Change>, StoreError> {
    let (at, name, url, feed_url) = (row.time()?, row.text()?, row.opt_text()?, row.opt_text()?);
    let is_public = [&url, &feed_url].into_iter().flatten().all(|url| !has_credentials(url));
    let topic = row.opt_text()?;
    let (Some(topic), true) = (topic.filter(|topic| !has_credentials(topic)), is_public) else {
        let url = url.filter(|_| is_public);
        return Ok(url.map(|url| Change { at, name, url, feed_url }));
    };
    let site = row.opt_text()?;
    let status: Status = row.json()?;
    // Who gave no name pinged the feed; the line is about the weblog it belongs to.
    let (name, url) =
        if name.is_empty() { (status.title, site.or(url)) } else { (name, url.or(site)) };
    let url = url.unwrap_or_else(|| topic.clone());
    Ok(Some(Change { at, name, url, feed_url: feed_url.or(Some(topic)) }))
}

fn has_credentials(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| !url.username().is_empty() || url.password().is_some())
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
