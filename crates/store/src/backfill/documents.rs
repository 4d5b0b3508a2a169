//! Stages the documents of backfills, and postpones those that have to wait.
//!
//! A document is staged in parts, as the log appends one, so that no document decides how long a
//! transaction is. What is staged is charged like what is appended; when staged entries are appended,
//! nothing is charged again. If the claim is lost before the backfill has advanced, the document is read
//! again, its staged entries are found, and each counts once.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};

use crate::Store;
use crate::backfill::claim::{hold_back, lock_claimed};
use crate::backfill::staging::{self, PageEntry};
use crate::backfill::{HOLD, find, hash, release, save_progress};
use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use crate::log::append_budget::{self, AppendBudget, ChargedResource};
use crate::log::recording;
use feedgate_core::backfill::{Backfill, PastPage};
use feedgate_core::claim::ClaimToken;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::{StagedPage, StoreError};

/// What came of a part of a document.
enum StagedPart {
    Staged,
    ClaimLost,
    /// The part is staged, and what comes after it waits until this time.
    Postponed(DateTime<Utc>),
}

/// A document that is being staged.
#[derive(Clone)]
struct Document {
    backfill: Backfill,
    claim: ClaimToken,
    page: Arc<PastPage>,
    now: DateTime<Utc>,
}

impl Store {
    /// Stages the entries of a document and advances the backfill to its link, due at `now`, which
    /// ends the claim. Nothing changes if the claim was lost.
    pub async fn stage_backfill(
        &self,
        backfill: &Backfill,
        claim: ClaimToken,
        page: PastPage,
        now: DateTime<Utc>,
    ) -> Result<StagedPage, StoreError> {
        let db = self.of_number(backfill.resource.0);
        let parts = staging::parts(&page.entries);
        let document = Document { backfill: backfill.clone(), claim, page: Arc::new(page), now };
        let _permit = db.append_permit().await?;
        let mut parts = parts.into_iter().peekable();
        while let Some(part) = parts.next() {
            let size =
                recording::write_size(part.len(), staging::bytes(&part, &document.page.entries));
            let (document, part, budget) = (document.clone(), Arc::new(part), db.append_budget);
            let staged = db.write_sized(size, move |tx| {
                Box::pin(async move { stage_part(tx, budget, &document, &part).await })
            });
            match staged.await? {
                StagedPart::Staged => {}
                StagedPart::ClaimLost => return Ok(StagedPage::ClaimLost),
                StagedPart::Postponed(until) if parts.peek().is_some() => {
                    return Ok(StagedPage::Postponed(until));
                }
                // Nothing of this document is left to wait, and the next one waits by itself.
                StagedPart::Postponed(_) => {}
            }
        }
        let advanced = db.write(move |tx| Box::pin(async move { advance(tx, document).await }));
        Ok(if advanced.await? { StagedPage::Staged } else { StagedPage::ClaimLost })
    }

    /// Ends the claim of a backfill, whose next step waits until `until` for the budget of its
    /// subscribers or for disk space. If that is long, its resource is polled meanwhile. Returns
    /// `false` without changes if the claim was lost.
    pub async fn postpone_backfill(
        &self,
        id: ResourceId,
        claim: ClaimToken,
        (until, now): (DateTime<Utc>, DateTime<Utc>),
    ) -> Result<bool, StoreError> {
        let db = self.of_number(id.0);
        let postponed = db.write(move |tx| {
            Box::pin(async move {
                if !lock_claimed(tx, id, claim).await? {
                    return Ok(false);
                }
                postpone(tx, id, until, until - now).await.map(|()| true)
            })
        });
        postponed.await
    }
}

/// Stages a part of the entries of a document, and charges it.
async fn stage_part(
    tx: &Tx<'_>,
    budget: AppendBudget,
    document: &Document,
    part: &[PageEntry],
) -> Result<StagedPart, StoreError> {
    let Document { backfill, claim, page, now } = document;
    let id = backfill.resource;
    if !lock_claimed(tx, id, *claim).await? || !is_at(tx, backfill).await? {
        return Ok(StagedPart::ClaimLost);
    }
    let size = staging::stage_entries(tx, id, backfill.pages, (part, &page.entries)).await?;
    let paid_at = DateTime::UNIX_EPOCH;
    let resource = ChargedResource { id, paid_at, is_first: false, body_bytes: 0 };
    let charged = append_budget::charge(tx, budget, resource, size, *now).await?;
    Ok(match charged.is_rest_postponed {
        true => StagedPart::Postponed(append_budget::earliest(charged.paid_at)),
        false => StagedPart::Staged,
    })
}

/// Whether a backfill still reads this document.
async fn is_at(tx: &Tx<'_>, backfill: &Backfill) -> Result<bool, StoreError> {
    let held = find(tx, backfill.resource).await?;
    Ok(held.is_some_and(|held| held.pages == backfill.pages && held.ending.is_none()))
}

/// Advances a backfill to the link of a document whose entries are staged. Which of them were staged for
/// the first time does not depend on how often the document was read.
async fn advance(tx: &Tx<'_>, document: Document) -> Result<bool, StoreError> {
    const SEEN: &str = "
        insert into backfill_visits (resource_id, url_hash)
        select cast($1 as bigint), given.url_hash from {rows} where true
            on conflict (resource_id, url_hash) do nothing";
    const WAS_SEEN: &str = "
        select 1 from backfill_visits where resource_id = $1 and url_hash = $2";
    let Document { mut backfill, claim, page, now } = document;
    let id = backfill.resource;
    if !lock_claimed(tx, id, claim).await? || !is_at(tx, &backfill).await? {
        return Ok(false);
    }
    let urls = page.urls.iter().map(|url| hash(url)).collect();
    tx.execute_rows(SEEN, params![id.0], &[("url_hash", Value::Blobs(urls))]).await?;
    let was_seen = match &page.link {
        Some((_, url)) => tx.first(WAS_SEEN, params![id.0, hash(url)]).await?.is_some(),
        None => false,
    };
    let pages = backfill.pages;
    let new = staging::count(tx, id).await?.saturating_sub(backfill.entries);
    backfill.walked(&page, new, was_seen);
    save_progress(tx, &backfill, pages, now).await
}

async fn postpone(
    tx: &Tx<'_>,
    id: ResourceId,
    until: DateTime<Utc>,
    wait: TimeDelta,
) -> Result<(), StoreError> {
    const POSTPONE: &str = "
        update backfills set due_at = $2, claim_token = 0, is_postponed = 1
         where resource_id = $1 and ended_at is null";
    const LET_GO: &str = "update backfills set delays_polling = 0 where resource_id = $1";
    tx.execute(POSTPONE, params![id.0, until]).await?;
    let Some(backfill) = find(tx, id).await? else { return Ok(()) };
    if wait < HOLD {
        return hold_back(tx, &[id.0], until).await;
    }
    tx.execute(LET_GO, params![id.0]).await?;
    release(tx, &backfill, until).await
}
