//! Pings that wait to be forwarded: a row for each target and resource.
//!
//! A change that arrives while a row waits is covered by its ping; one that arrives while the ping
//! is sent makes the row due again.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use url::Url;

use crate::Store;
use crate::engine::claims::{ClaimedTable, KeyedRow};
use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
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
            let (target, lease) = ([Value::from(target)], db.claims.lease(now, until));
            db.write(move |tx| {
                Box::pin(async move {
                    let claimed = PINGS.claim_due(tx, lease, &target, limit).await?;
                    claimed.into_iter().map(due_ping).collect()
                })
            })
        });
        claimed.await
    }

    /// Extends those of `claims` that were not lost to `until`, and returns the numbers of their pings.
    pub async fn renew_forwarded_ping_claims(
        &self,
        claims: &[(i64, ClaimToken)],
        until: DateTime<Utc>,
    ) -> Result<Vec<i64>, StoreError> {
        let claims: Vec<_> = claims.iter().map(|(id, token)| ([*id], *token)).collect();
        Ok(self.renew_claims(PINGS, &claims, until).await?.into_iter().flatten().collect())
    }

    /// Records that a ping is to be sent again at `retry_at`, or that it is finished. If the weblog
    /// changed again meanwhile, it is due again `now`. If the claim was lost, nothing changes.
    pub async fn finish_forwarded_ping(
        &self,
        due: &DuePing,
        retry_at: Option<DateTime<Utc>>,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        const END: &str =
            "delete from forwarded_pings where id = $1 and claim_token = $2 and version = $3";
        let (id, claim, version) = (due.id, due.claim, due.version);
        let settled = self.of_number(id).write(move |tx| {
            Box::pin(async move {
                let claimed = ([id], claim);
                if let Some(at) = retry_at {
                    return PINGS.release(tx, claimed, at, ", attempts = attempts + 1").await;
                }
                match tx.execute(END, params![id, claim.0, version]).await? {
                    0 => PINGS.release(tx, claimed, now, ", attempts = 0").await,
                    _ => Ok(true),
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

/// The claims of pings, of one target each time.
const PINGS: ClaimedTable<1> = ClaimedTable {
    only: "target = $3 and",
    columns: ", claim_token, target, name, url, feed_url, version, attempts",
    ..ClaimedTable::new("forwarded_pings", ["id"])
};

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

/// Reads a ping that was claimed.
fn due_ping(([id], mut row): KeyedRow<1>) -> Result<DuePing, StoreError> {
    Ok(DuePing {
        id,
        claim: ClaimToken(row.int()?),
        target: row.text()?,
        name: row.text()?,
        url: row.text()?,
        feed_url: row.text()?,
        version: row.int()?,
        attempts: row.small()?,
    })
}
