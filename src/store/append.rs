//! The end of a poll: what it found goes into the log, and whoever follows the log
//! becomes due, in one transaction (rules N11, N13).
//!
//! The resource's row is locked first, and everything else that changes a resource's
//! subscriptions locks it too. So numbers have no gaps, two nodes that found the same
//! change append it once, and no cursor is read while its head moves.

use sha2::{Digest as _, Sha256};

use chrono::{DateTime, Utc};

use super::records::{After, Records, append};
use super::sql::{self, params};
use super::tell::{tell, tell_status};
use super::tx::{Tx, Wake};
use super::{Appended, StoreError, entries, hosts, moves, pings, upstreams};
use crate::domain::limit::Groups;
use crate::domain::novelty::{self, Document, Judgement, Standing, Verdict};
use crate::domain::page::Cut;
use crate::domain::poll::{Body, Found, Poll, Polling, Trigger};
use crate::domain::record::{Digest, Reach, RecordKind, Seq};
use crate::domain::resource::{Kind, ResourceId};
use crate::domain::status::Status;

/// What the row held when it was locked.
struct Before {
    host: String,
    head: i64,
    body_version: i64,
    kind: Kind,
    status: Status,
    polling: Polling,
    /// 1: a ping came since the poll began; 2: the poll answers one.
    pinged: i64,
    spacing_us: i64,
}

/// Keeps all that `poll` found.
pub(super) async fn record(
    tx: &Tx<'_>,
    (groups, cut): (&Groups, &Cut),
    id: ResourceId,
    mut poll: Poll,
) -> Result<Appended, StoreError> {
    let before = lock(tx, id).await?;
    let body_version = match poll.body.take() {
        Some(body) => keep_body(tx, id, before.body_version, (body, poll.meaning)).await?,
        None => before.body_version,
    };
    let mut after = match std::mem::take(&mut poll.found) {
        Found::Feed(mut document) => {
            let (after, judgement) =
                keep_entries(tx, (cut, id), &before, &mut document, poll.at).await?;
            entries::note(tx, id, &document, &judgement).await?;
            judged(&judgement, &before, &mut poll);
            after
        }
        Found::Revision { entry_id, atom } if body_version > before.body_version => {
            let mut records = Records::after(before.head);
            records.push(RecordKind::New, Reach::Everybody, None, (entry_id, atom));
            append(tx, cut, id, (poll.at, records)).await?
        }
        Found::Revision { .. } | Found::Nothing => Records::after(before.head).appended(),
    };
    after.body_version = body_version;
    if poll.fetch_url.is_some() {
        poll.status.has_moved(poll.at);
    }
    move_on(tx, id, &before, &poll, &after).await?;
    hosts::release(tx, &before.host, poll.answered_well, poll.at).await?;
    if let Some(url) = &poll.fetch_url {
        moves::settle(tx, groups, id, (url, poll.at)).await?;
    }
    if let Some(url) = &poll.site_url {
        pings::name(tx, id, "site", url).await?;
    }
    keep_outcome(tx, id, &poll, after.news, before.pinged != 0).await?;
    if after.entries > 0 {
        upstreams::count(tx, id, (after.entries, poll.trigger), poll.at).await?;
    }
    upstreams::offer(tx, id, std::mem::take(&mut poll.upstream), poll.at).await?;
    tell(tx, id, (poll.at, poll.silent), (before.stands_at(), &after)).await?;
    tell_status(tx, id, (&before.status, &poll.status), poll.at).await?;
    Ok(Appended { head: Seq(after.head), new: after.news })
}

/// Keeps what an upstream sent: records, and nothing else of the resource changes but
/// that there are more of them. It may hold less than the document, so it says nothing of
/// what else the document holds.
pub(super) async fn push(
    tx: &Tx<'_>,
    cut: &Cut,
    id: ResourceId,
    (mut document, at): (Document, DateTime<Utc>),
) -> Result<Appended, StoreError> {
    const GROW: &str = "update resources set head = $2, status = $3 where id = $1";
    let before = lock(tx, id).await?;
    let (mut after, _) = keep_entries(tx, (cut, id), &before, &mut document, at).await?;
    after.body_version = before.body_version;
    if after.head > before.head {
        let mut status = before.status.clone();
        status.entries_count_since_last_maintenance += after.entries as u64;
        tx.execute(GROW, params![id.0, after.head, sql::json(&status)]).await?;
        tell(tx, id, (at, false), (before.stands_at(), &after)).await?;
    }
    if after.entries > 0 {
        upstreams::count(tx, id, (after.entries, Trigger::Push), at).await?;
    }
    Ok(Appended { head: Seq(after.head), new: after.news })
}

impl Before {
    /// The head and the version of the body.
    fn stands_at(&self) -> (i64, i64) {
        (self.head, self.body_version)
    }
}

async fn lock(tx: &Tx<'_>, id: ResourceId) -> Result<Before, StoreError> {
    const LOCK: &str = "
        select host, head, body_version, kind, status, polling, pinged, spacing
          from resources
         where id = $1
           {for update}";
    let row = tx.first(LOCK, params![id.0]).await?;
    let mut row = row.ok_or_else(|| StoreError::Corrupt(format!("there is no resource {id}")))?;
    Ok(Before {
        host: row.text()?,
        head: row.int()?,
        body_version: row.int()?,
        kind: row.word(Kind::from_word)?,
        status: row.json()?,
        polling: row.json()?,
        pinged: row.int()?,
        spacing_us: row.int()?,
    })
}

/// Judges the entries of a document, appends what is new, and keeps what was learnt.
async fn keep_entries(
    tx: &Tx<'_>,
    (cut, id): (&Cut, ResourceId),
    before: &Before,
    document: &mut Document,
    at: DateTime<Utc>,
) -> Result<(After, Judgement), StoreError> {
    let known = entries::known(tx, id, document.keys()).await?;
    let standing = Standing::of(before.kind, &before.status, &before.polling);
    let mut judgement = novelty::judge(document, &known, &standing, document.at);

    let mut records = Records::after(before.head);
    let mut seqs = Vec::with_capacity(judgement.verdicts.len());
    for (candidate, verdict) in document.candidates.iter_mut().zip(&judgement.verdicts) {
        let (kind, reach, predecessor) = match verdict {
            Verdict::New(Reach::Nobody) => (RecordKind::Old, Reach::Nobody, None),
            Verdict::New(reach) => (RecordKind::New, *reach, None),
            Verdict::Updated(known, reach) => (RecordKind::Update, *reach, Some(known.newest.0)),
            _ => {
                seqs.push(None);
                continue;
            }
        };
        // What was judged otherwise before it came here has not been rendered: the document
        // is read again.
        let atom = candidate.atom.take();
        judgement.is_unrendered |= atom.is_none();
        let rendered = atom.map(|atom| (candidate.entry_id.clone(), atom));
        seqs.push(rendered.map(|entry| records.push(kind, reach, predecessor, entry)));
    }
    let (mut gone, mut gone_seqs) = (Vec::new(), Vec::new());
    for (at, known) in &judgement.deleted {
        let deletion = &mut document.deletions[*at];
        let Some(atom) = deletion.atom.take() else {
            judgement.is_unrendered = true;
            continue;
        };
        let element = (deletion.entry_id.clone(), atom);
        let predecessor = Some(known.newest.0);
        gone.push(known.first.0);
        gone_seqs.push(records.push(RecordKind::Deleted, Reach::Askers, predecessor, element));
    }
    let after = append(tx, cut, id, (at, records)).await?;
    entries::learn(tx, id, document, &judgement, &seqs).await?;
    entries::take_back(tx, id, gone, gone_seqs).await?;
    Ok((after, judgement))
}

/// How long something that was put off waits: just longer than two updates must be apart.
const PUT_OFF: chrono::TimeDelta = chrono::TimeDelta::seconds(61);

/// Lets status and schedule know how the entries were judged.
fn judged(judgement: &Judgement, before: &Before, poll: &mut Poll) {
    if let Some(remark) = judgement.remark() {
        poll.status.http_message = format!("{}; {remark}", poll.status.http_message);
    }
    poll.status.bozo_rank = judgement.bozo_rank(poll.status.bozo_rank);
    if judgement.is_put_off() {
        // Validators go with what was kept of a body (rule P7), and not all of this was.
        poll.polling.validators = before.polling.validators.clone();
        poll.polling.body_hash.clone_from(&before.polling.body_hash);
        poll.next_fetch = poll.next_fetch.min(poll.at + PUT_OFF);
        poll.status.next_fetch = Some(poll.next_fetch);
    }
}

/// Keeps the newest body. Returns its version, which is `version` still if the bytes are
/// those already kept, or mean the same (rule P11).
async fn keep_body(
    tx: &Tx<'_>,
    id: ResourceId,
    version: i64,
    (body, meaning): (Body, Option<Digest>),
) -> Result<i64, StoreError> {
    const KEPT: &str = "select hash, coalesce(meaning, hash) from bodies where resource_id = $1";
    const KEEP: &str = "
        insert into bodies (resource_id, version, content_type, hash, meaning, bytes)
        values ($1, $2, $3, $4, $5, $6)
            on conflict (resource_id) do update
           set version = excluded.version, content_type = excluded.content_type,
               hash = excluded.hash, meaning = excluded.meaning, bytes = excluded.bytes";
    let hash = Sha256::digest(&body.bytes).to_vec();
    let meaning = meaning.map_or_else(|| hash.clone(), |meaning| meaning.0.to_vec());
    let mut now = version + 1;
    if let Some(mut kept) = tx.first(KEPT, params![id.0]).await? {
        let is_same = kept.blob()? == hash;
        if is_same || kept.blob()? == meaning {
            now = version;
        }
        if is_same {
            return Ok(version);
        }
    }
    let params = params![id.0, now, body.content_type, hash, meaning, body.bytes];
    tx.execute(KEEP, params).await?;
    Ok(now)
}

/// Brings the resource's own row up to date and ends the claim.
async fn move_on(
    tx: &Tx<'_>,
    id: ResourceId,
    before: &Before,
    poll: &Poll,
    after: &After,
) -> Result<(), StoreError> {
    const MOVE_ON: &str = "
        update resources
           set head = $2, body_version = $3, status = $4, polling = $5, failing = $6,
               next_fetch = $7, due_at = $7, claimed_until = null, pinged = $8,
               fetched_at = $9, put_off_why = null,
               kind = coalesce($10, kind), site_url = coalesce($11, site_url),
               feed_head = coalesce($12, feed_head), least_s = $13, unit_ms = $14,
               status_version = $15, status_news = $16, period = $17
         where id = $1";
    // Upkeep may have measured the resource since it was claimed.
    let status = Status {
        last_maintenance_at: before.status.last_maintenance_at,
        velocity: before.status.velocity,
        entries_count_since_last_maintenance: before.status.entries_count_since_last_maintenance
            + after.entries as u64,
        ..poll.status.clone()
    };
    // What a ping told of may have been written after the server answered.
    let pinged = before.pinged == 1;
    let spacing = chrono::Duration::microseconds(before.spacing_us);
    let next_fetch = if pinged { poll.next_fetch.min(poll.at + spacing) } else { poll.next_fetch };
    let params = params![
        id.0,
        after.head,
        after.body_version,
        sql::json(&status),
        sql::json(&poll.polling),
        status.is_failing(),
        next_fetch,
        i64::from(pinged),
        poll.at,
        poll.kind.map(|kind| kind.as_str()),
        poll.site_url.as_deref(),
        poll.feed_head.as_deref(),
        i64::from(poll.demand.least_s),
        i64::try_from(poll.demand.unit_ms).unwrap_or(i64::MAX),
        status.version,
        status.announced.version,
        i64::from(status.period_s),
    ];
    tx.execute(MOVE_ON, params).await?;
    if pinged {
        tx.wake(Wake::Resources).await?;
    }
    Ok(())
}

async fn keep_outcome(
    tx: &Tx<'_>,
    id: ResourceId,
    poll: &Poll,
    new: usize,
    pinged: bool,
) -> Result<(), StoreError> {
    const KEEP: &str = "
        insert into fetches (resource_id, at, trigger, outcome, http_code, took_ms,
                             wire_bytes, appended, announced)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    #[rustfmt::skip]
    let params = params![
        id.0, poll.at, poll.trigger.as_str(), poll.outcome.as_str(),
        i64::from(poll.status.http_code), i64::from(poll.took_ms),
        i64::try_from(poll.wire_bytes).unwrap_or(i64::MAX), new as i64,
        pinged || poll.trigger == Trigger::Ping,
    ];
    tx.execute(KEEP, params).await.map(drop)
}
