//! Pings that wait to be forwarded: a row for each target and resource.
//!
//! A change that arrives while a row waits is covered by its ping; one that arrives while the ping
//! is sent makes the row due again.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use url::Url;

use crate::Store;
use crate::engine::lease::ClaimLease;
use crate::engine::row::Row;
use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use crate::log::row::most;
use feedgate_core::claim::ClaimToken;
use feedgate_core::ping::WeblogChange;
use feedgate_core::ping_forwarding::{DuePing, PingForwarding};
use feedgate_core::resource::ResourceId;
use feedgate_core::status::Status;
use feedgate_core::store::StoreError;

/// Pings that wait to be forwarded: a row for each target and resource.
impl Store {
    /// Queues a ping of a changed weblog to all targets, if pings are forwarded for its feed. For
    /// a weblog that nobody subscribes to, and that is known to have changed.
    pub async fn forward_ping(&self, weblog: &WeblogChange) -> Result<(), StoreError> {
        let cell = self.of_topic(weblog.feed_url.as_deref().unwrap_or(&weblog.url));
        let (weblog, forwarding) = (weblog.clone(), Arc::clone(&cell.forwarding));
        let told = cell.write(move |tx| {
            Box::pin(async move {
                let feed_url = weblog.feed_url.as_deref().unwrap_or(&weblog.url);
                if !forwarding.applies_to(feed_url) || has_credentials(&weblog.url) {
                    return Ok(());
                }
                queue_pings(tx, &forwarding, [&weblog.name, &weblog.url, feed_url], weblog.at).await
            })
        });
        told.await
    }

    /// Claims up to `limit` pings that are due to the target with this key at `now`, until `until`.
    pub async fn claim_forwarded_pings(
        &self,
        target: &str,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<DuePing>, StoreError> {
        let claimed = self.claim_in_turn(limit, |db, limit| {
            let (target, claims) = (target.to_owned(), db.claims.clone());
            db.write(move |tx| {
                Box::pin(async move {
                    let lease = claims.lease(now, until);
                    claim(tx, &target, lease, limit).await
                })
            })
        });
        claimed.await
    }

    /// Records that a ping is to be sent again at `retry_at`, or that it is finished. If the weblog
    /// changed again meanwhile, it is due again `now`. If the claim was lost, nothing changes.
    pub async fn finish_forwarded_ping(
        &self,
        due: &DuePing,
        retry_at: Option<DateTime<Utc>>,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let db = self.of_number(due.id);
        const RETRY: &str = "
            update forwarded_pings
               set due_at = $3, claim_token = 0, attempts = attempts + 1
             where id = $1 and claim_token = $2";
        const END: &str =
            "delete from forwarded_pings where id = $1 and claim_token = $2 and version = $3";
        const AGAIN: &str = "
            update forwarded_pings
               set due_at = $3, claim_token = 0, attempts = 0
             where id = $1 and claim_token = $2";
        let (id, claim, version) = (due.id, due.claim.0, due.version);
        let settled = db.write(move |tx| {
            Box::pin(async move {
                if let Some(at) = retry_at {
                    return tx.execute(RETRY, params![id, claim, at]).await;
                }
                match tx.execute(END, params![id, claim, version]).await? {
                    0 => tx.execute(AGAIN, params![id, claim, now]).await,
                    ended => Ok(ended),
                }
            })
        });
        settled.await.map(drop)
    }

    /// Deletes the pings to targets other than these. Returns how many.
    pub async fn forget_other_targets(&self, known: &[String]) -> Result<u64, StoreError> {
        const FORGET: &str = "delete from forwarded_pings where target not in ({texts $1})";
        let forgotten = self.sum(|db| {
            let known = [Value::Texts(known.to_vec())];
            db.write(move |tx| Box::pin(async move { tx.execute(FORGET, &known).await }))
        });
        forgotten.await
    }
}

/// Claims up to `limit` pings that are due to a target. Candidates are read without locks, and
/// claimed by an update that applies only while no other claim on them is valid.
async fn claim(
    tx: &Tx<'_>,
    target: &str,
    lease: ClaimLease,
    limit: usize,
) -> Result<Vec<DuePing>, StoreError> {
    const DUE: &str = "
        select id
          from forwarded_pings
         where target = $1 and due_at <= $2 and (claim_token = 0 or due_at <= $3)
         order by due_at
         limit $4";
    const CLAIM: &str = "
        update forwarded_pings
           set due_at = $3, claim_token = $4
        {from rows}
         where forwarded_pings.id = {given id}
           and due_at <= $1 and (claim_token = 0 or due_at <= $2)";
    const CLAIMED: &str = "
        select p.id, p.claim_token, p.target, p.name, p.url, p.feed_url, p.version, p.attempts
          from {rows}
          join forwarded_pings p on p.id = given.id
         where p.claim_token = $1
         order by p.id";
    let rows = tx.query(DUE, params![target, lease.now, lease.now, most(limit)]).await?;
    let ids = rows.into_iter().map(|mut row| row.int());
    let mut ids = ids.collect::<Result<Vec<_>, StoreError>>()?;
    ids.sort_unstable();
    let ids = [("id", Value::Ints(ids))];
    let params = params![lease.now, lease.now, lease.ends, lease.token.0];
    tx.execute_rows(CLAIM, params, &ids).await?;
    let rows = tx.query_rows(CLAIMED, params![lease.token.0], &ids).await?;
    rows.into_iter().map(due).collect()
}

/// Queues pings of a change of this resource, if pings are forwarded for it.
pub(crate) async fn queue_changed_resource(
    tx: &Tx<'_>,
    forwarding: &PingForwarding,
    id: ResourceId,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const WHOSE: &str = "
        select r.topic, r.site_url, d.status
          from resources r join resource_details d on d.resource_id = r.id
         where r.id = $1";
    if forwarding.targets.is_empty() {
        return Ok(());
    }
    let Some(mut row) = tx.first(WHOSE, params![id.0]).await? else { return Ok(()) };
    let (topic, site) = (row.text()?, row.opt_text()?);
    let status: Status = row.json()?;
    let url = site.unwrap_or_else(|| topic.clone());
    if forwarding.applies_to(&topic) && !has_credentials(&topic) && !has_credentials(&url) {
        queue_pings(tx, forwarding, [&status.title, &url, &topic], now).await?;
    }
    Ok(())
}

/// Queues a ping of a weblog to all targets: its name, its address and its feed.
async fn queue_pings(
    tx: &Tx<'_>,
    forwarding: &PingForwarding,
    [name, url, feed_url]: [&str; 3],
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    // A ping that waits for a retry keeps waiting: the target is failing.
    const KEEP: &str = "
        insert into forwarded_pings (hash, target, name, url, feed_url, due_at)
        values ($1, $2, $3, $4, $5, $6)
            on conflict (hash) do update
           set name = excluded.name, url = excluded.url, feed_url = excluded.feed_url,
               version = forwarded_pings.version + 1";
    for target in &forwarding.targets {
        let target = target.name();
        let params = params![hash(&target, feed_url), target, name, url, feed_url, now];
        tx.execute(KEEP, params).await?;
    }
    Ok(())
}

/// Returns the hash of target and feed, which together are longer than an index entry may be.
fn hash(target: &str, topic: &str) -> Vec<u8> {
    let mut hash = Sha256::new();
    hash.update((target.len() as u64).to_be_bytes());
    hash.update(target);
    hash.update(topic);
    hash.finalize().to_vec()
}

fn has_credentials(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| !url.username().is_empty() || url.password().is_some())
}

fn due(mut row: Row) -> Result<DuePing, StoreError> {
    Ok(DuePing {
        id: row.int()?,
        claim: ClaimToken(row.int()?),
        target: row.text()?,
        name: row.text()?,
        url: row.text()?,
        feed_url: row.text()?,
        version: row.int()?,
        attempts: row.small()?,
    })
}
