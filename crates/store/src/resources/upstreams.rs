//! Hubs and clouds that push changes: which of them are due for a request, and how reliable they
//! have proved.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::Store;
use crate::delivery::row::{protocol, secret};
use crate::engine::claims::ClaimedTable;
use crate::engine::envelope::RowIdentity;
use crate::engine::row::Row;
use crate::engine::sql::params;
use crate::engine::tx::Tx;
use feedgate_core::claim::ClaimToken;
use feedgate_core::poll::Trigger;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::{ClaimLimits, DueUpstream, StoreError};
use feedgate_core::upstream::{
    self, AdvertisedUpstream, Proof, Proposal, Upstream, UpstreamFinding, UpstreamState,
    UpstreamSummary,
};

/// A change that a poll finds this soon after a push of an upstream was found by push.
const TOLD_BEFORE: chrono::Duration = chrono::Duration::minutes(5);

/// The columns of an upstream behind its resource, as [`read_upstream`] reads them.
macro_rules! upstream_columns {
    () => {
        ", protocol, procedure, endpoint, topic, token, secret, state, lease_until, failures,
         (select r.subscribers from resources r where r.id = upstreams.resource_id)"
    };
}

/// The claims of upstreams. The state of a claimed upstream is `requested` from then on, because a hub may
/// verify before it responds. An upstream that gets another chance starts with no proof.
pub(crate) const UPSTREAMS: ClaimedTable<1> = ClaimedTable {
    columns: upstream_columns!(),
    set: ", pushed = case when state = 'doubted' then 0 else pushed end,
            missed = case when state = 'doubted' then 0 else missed end,
            state = case when state = 'active' then state else 'requested' end",
    ..ClaimedTable::new("upstreams", ["resource_id"])
};

/// Upstreams: hubs and clouds that notify the gateway of changes (P53).
impl Store {
    /// Claims upstreams that are due at `now`, within the limits for the hosts of the hubs and
    /// clouds, until `until`.
    pub async fn claim_upstreams(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limits: &ClaimLimits,
    ) -> Result<Vec<DueUpstream>, StoreError> {
        self.claim_within(
            limits,
            |due: &DueUpstream| due.upstream.offer.host(),
            |db, limits| async move {
                db.upstream_queue.claim(db, db.claims.lease(now, until), &limits).await
            },
        )
        .await
    }

    /// Extends those of `claims` that were not lost to `until`, and returns their resources.
    pub async fn renew_upstream_claims(
        &self,
        claims: &[(ResourceId, ClaimToken)],
        until: DateTime<Utc>,
    ) -> Result<Vec<ResourceId>, StoreError> {
        let claims: Vec<_> = claims.iter().map(|(id, token)| ([id.0], *token)).collect();
        let renewed = self.renew_claims(UPSTREAMS, &claims, until).await?;
        Ok(renewed.into_iter().map(|[id]| ResourceId(id)).collect())
    }

    /// Returns the upstream whose notification address has this token.
    pub async fn upstream(&self, token: &str) -> Result<Option<Upstream>, StoreError> {
        const FIND: &str =
            concat!("select resource_id", upstream_columns!(), " from upstreams where token = $1");

        let found = self.each(|db| async move {
            let token = token.to_owned();
            let found = db.read(|tx| Box::pin(async move { tx.first(FIND, params![token]).await }));
            let found = found.await?.map(|mut row| read_upstream(row.int()?, row));
            found.transpose()
        });
        Ok(found.await?.into_iter().flatten().next())
    }

    /// Returns what is displayed of the upstream of a resource.
    pub async fn upstream_summary(
        &self,
        id: ResourceId,
    ) -> Result<Option<UpstreamSummary>, StoreError> {
        let db = self.of_number(id.0);
        const FIND: &str = "
            select endpoint, state, lease_until, pushed, missed, is_trusted, pushed_at
              from upstreams
             where resource_id = $1";
        let found = db.read(move |tx| Box::pin(async move { tx.first(FIND, params![id.0]).await }));
        found.await?.map(read_summary).transpose()
    }

    /// Stores the state, the lease and the failures of an upstream, which is due again at `due_at`,
    /// and ends its claim. With `claim`, the update applies only if that claim was not lost:
    /// because a hub may verify before it responds, updates without a claim end it too. Returns
    /// whether it applied.
    pub async fn save_upstream(
        &self,
        upstream: &Upstream,
        claim: Option<ClaimToken>,
        due_at: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let db = self.of_number(upstream.resource.0);
        const SETTLE: &str = "
            update upstreams
               set state = $3, lease_until = $4, failures = $5, due_at = $6, claim_token = 0
             where resource_id = $1 and token = $2 and claim_token = coalesce($7, claim_token)";
        #[rustfmt::skip]
        let values = params![
            upstream.resource.0, upstream.token.as_str(), upstream.state.as_str(),
            upstream.lease_until, i64::from(upstream.failures), due_at, claim.map(|claim| claim.0),
        ]
        .to_vec();
        let settled = db.write(|tx| Box::pin(async move { tx.execute(SETTLE, &values).await }));
        Ok(settled.await? > 0)
    }

    /// Deletes an upstream; with `claim`, only if that claim was not lost.
    pub async fn end_upstream(
        &self,
        upstream: &Upstream,
        claim: Option<ClaimToken>,
    ) -> Result<(), StoreError> {
        let db = self.of_number(upstream.resource.0);
        const END: &str = "
            delete from upstreams
             where resource_id = $1 and token = $2 and claim_token = coalesce($3, claim_token)";
        let claim = claim.map(|claim| claim.0);
        let values = params![upstream.resource.0, upstream.token.as_str(), claim].to_vec();
        let ended = db.write(|tx| Box::pin(async move { tx.execute(END, &values).await }));
        ended.await.map(drop)
    }

    /// Records a notification of a change at `now`, so that new entries of the next poll are
    /// attributed to the upstream, and that it had passed `hops` gateways. Returns `false` if the last
    /// notification was less than `spacing` ago.
    pub async fn record_upstream_push(
        &self,
        upstream: &Upstream,
        hops: u32,
        spacing: Duration,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let db = self.of_number(upstream.resource.0);
        const HOPS: &str = "update resources set hops = $2 where id = $1 and hops <> $2";
        const TOLD: &str = "
            update upstreams set pushed_at = $3
             where resource_id = $1 and token = $2 and (pushed_at is null or pushed_at <= $4)";
        let (id, token) = (upstream.resource.0, upstream.token.clone());
        let told = db.write(move |tx| {
            let params = params![id, token, now, now - spacing].to_vec();
            Box::pin(async move {
                tx.execute(HOPS, params![id, i64::from(hops)]).await?;
                tx.execute(TOLD, &params).await
            })
        });
        Ok(told.await? > 0)
    }
}

/// The least time between requests to different offers: a document that names another hub each time
/// it is read must not make this program send requests to them all.
const ANOTHER_AFTER: chrono::Duration = chrono::Duration::hours(1);

/// Stores the offer of a document. The same offer again changes nothing. The first offer is
/// requested at once, another later and like one that failed before; the earlier offer is
/// forgotten, and its pushes are answered with 410, which ends it. A doubt about the upstream
/// outlives a document without an offer.
pub(crate) async fn offer(
    tx: &Tx<'_>,
    id: ResourceId,
    offered: UpstreamFinding,
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    const FORGET: &str = "delete from upstreams where resource_id = $1 and state <> 'doubted'";
    const KEEP: &str = "
        insert into upstreams (resource_id, protocol, procedure, endpoint, topic, token, secret,
                               state, due_at, host)
        values ($1, $2, $3, $4, $5, $6, $7, 'wanted', $8, $10)
            on conflict (resource_id) do update
           set protocol = excluded.protocol, procedure = excluded.procedure,
               endpoint = excluded.endpoint, host = excluded.host, topic = excluded.topic,
               token = excluded.token,
               secret = excluded.secret, state = excluded.state,
               due_at = case when upstreams.state = 'doubted' and upstreams.due_at > $9
                             then upstreams.due_at else cast($9 as bigint) end,
               claim_token = 0, lease_until = null, pushed = 0, missed = 0, is_trusted = 0,
               pushed_at = null
         where upstreams.protocol <> excluded.protocol
            or upstreams.procedure <> excluded.procedure
            or upstreams.endpoint <> excluded.endpoint
            or upstreams.topic <> excluded.topic";
    match offered {
        UpstreamFinding::Unknown => Ok(()),
        UpstreamFinding::Nothing => tx.execute(FORGET, params![id.0]).await.map(drop),
        UpstreamFinding::Upstream(Proposal { offer, token, secret }) => {
            let host = offer.host();
            let identity = identity(&offer, &token);
            let secret = tx.seal(SECRET, &identity, Some(secret.expose()))?;
            #[rustfmt::skip]
            let params = params![
                id.0, offer.protocol.as_str(), offer.protocol.procedure(), offer.endpoint,
                offer.topic, token, secret, at, at + ANOTHER_AFTER, host,
            ];
            tx.execute(KEEP, params).await.map(drop)
        }
    }
}

/// Counts new entries for or against the upstream that should have pushed them. Entries that were
/// found because of another sender's ping count neither way.
pub(crate) async fn count(
    tx: &Tx<'_>,
    id: ResourceId,
    (new, trigger): (usize, Trigger),
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    const PROVED: &str = "
        select pushed, missed, is_trusted, pushed_at
          from upstreams
         where resource_id = $1 and state = 'active' and lease_until > $2";
    const KEEP: &str = "
        update upstreams
           set pushed = $2, missed = $3, is_trusted = $4,
               state = case when cast($5 as bigint) = 1 then 'doubted' else state end,
               due_at = case when cast($5 as bigint) = 1 then $6 else due_at end,
               claim_token = case when cast($5 as bigint) = 1 then 0 else claim_token end
         where resource_id = $1";
    let Some(mut row) = tx.first(PROVED, params![id.0, at]).await? else { return Ok(()) };
    let proved =
        Proof { pushed: row.small()?, missed: row.small()?, last_was_pushed: row.int()? != 0 };
    let was_told = row.opt_time()?.is_some_and(|told| at - told < TOLD_BEFORE);
    let by_push = match trigger {
        Trigger::Push => true,
        Trigger::Ping if was_told => true,
        Trigger::Ping => return Ok(()),
        Trigger::Schedule => false,
    };
    let proved = proved.after(u32::try_from(new).unwrap_or(u32::MAX), by_push);
    #[rustfmt::skip]
    let params = params![
        id.0, i64::from(proved.pushed), i64::from(proved.missed), proved.is_relied_on(),
        proved.is_doubtful(), upstream::next_chance(at),
    ];
    tx.execute(KEEP, params).await.map(drop)
}

/// The column with the secret that signs what an upstream sends.
pub(crate) const SECRET: &str = "upstreams.secret";

/// Returns what identifies the row of an upstream.
pub(crate) fn identity(offer: &AdvertisedUpstream, token: &str) -> RowIdentity {
    RowIdentity::new(&[offer.protocol.as_str(), &offer.endpoint, &offer.topic, token])
}

fn read_summary(mut row: Row) -> Result<UpstreamSummary, StoreError> {
    Ok(UpstreamSummary {
        endpoint: row.text()?,
        state: row.word(UpstreamState::from_word)?,
        lease_until: row.opt_time()?,
        proof: Proof {
            pushed: row.small()?,
            missed: row.small()?,
            last_was_pushed: row.int()? != 0,
        },
        pushed_at: row.opt_time()?,
    })
}

/// Reads an upstream that was claimed.
pub(crate) fn due_upstream(
    resource: i64,
    claim: ClaimToken,
    row: Row,
) -> Result<DueUpstream, StoreError> {
    Ok(DueUpstream { upstream: read_upstream(resource, row)?, claim })
}

fn read_upstream(resource: i64, mut row: Row) -> Result<Upstream, StoreError> {
    let resource = ResourceId(resource);
    let offer = AdvertisedUpstream {
        protocol: protocol(&mut row)?,
        endpoint: row.text()?,
        topic: row.text()?,
    };
    let token = row.text()?;
    let secret = secret(&mut row, SECRET, || identity(&offer, &token))?;
    Ok(Upstream {
        resource,
        secret: secret.ok_or_else(|| StoreError::Corrupt("an upstream without a secret".into()))?,
        offer,
        token,
        state: row.word(UpstreamState::from_word)?,
        lease_until: row.opt_time()?,
        failures: row.small()?,
        subscribers: row.small()?,
    })
}
