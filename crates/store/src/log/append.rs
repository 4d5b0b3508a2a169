//! The end of a poll: appends what the poll found to the log and marks subscriptions due, in one
//! transaction (rules N11, N13), or in several if the document is large (`document_parts.rs`).
//!
//! The row of the resource is locked first, and every other change of its subscriptions locks the
//! row too. Therefore record numbers have no gaps, two nodes that found the same change append it
//! once, and no cursor is read while the head moves.

use chrono::{DateTime, Utc};
use futures_util::try_join;

use crate::changes::{self, pings};
use crate::delivery::reading_lists;
use crate::engine::sql::params;
use crate::engine::tx::Tx;
use crate::log::append_budget::{self, AppendBudget, ChargedResource};
use crate::log::baseline::{self, PolledResource};
use crate::log::before::{Before, lock};
use crate::log::bodies::{KeptBody, keep_body};
use crate::log::document_parts::{AppendProgress, append_part};
use crate::log::entries;
use crate::log::fan_out::{LogChange, LogState, mark_due};
use crate::log::first_document;
use crate::log::published_since::{self, PublishedSince};
use crate::log::recording::{PushedPart, Recorded, Recording};
use crate::log::records::{After, NewRecord, RecordBatch, append};
use crate::resources::poll_result::{self, PollResult, ResourceBefore};
use crate::resources::{details, moves, upstreams};
use feedgate_core::change_detection::{ChangeSet, FeedDocument};
use feedgate_core::host_groups::HostGroups;
use feedgate_core::page::PageLimits;
use feedgate_core::poll::{NewContent, Poll, Trigger};
use feedgate_core::record::{Audience, RecordKind, Seq};
use feedgate_core::resource::ResourceId;
use feedgate_core::status::Status;
use feedgate_core::store::{Appended, StoreError};
use feedgate_core::visibility::ListedTopics;

/// The settings of appends.
#[derive(Clone, Copy)]
pub(crate) struct AppendSettings<'s> {
    /// The servers that share a rate limit.
    pub(crate) groups: &'s HostGroups,
    /// The size limits of a page.
    pub(crate) page_limits: &'s PageLimits,
    /// How much may be appended for subscribers.
    pub(crate) budget: AppendBudget,
    /// The resources whose changes changes.xml lists.
    pub(crate) listed: ListedTopics,
}

/// Stores the next part of what a poll found. The last part includes everything that is not in the
/// document.
pub(crate) async fn record(
    tx: &Tx<'_>,
    settings: AppendSettings<'_>,
    id: ResourceId,
    recording: Recording,
) -> Result<Recorded, StoreError> {
    let before = lock(tx, id).await?;
    if before.held.claim != recording.poll.claim {
        return Ok(Recorded::ClaimLost);
    }
    let Recording { mut poll, document, mut progress, mut since } = recording;
    let Some(mut document) = document else {
        return record_rest(tx, settings, (&before, before.log), Poll::clone(&poll), None).await;
    };
    if !progress.has_begun() {
        since =
            first_document::put_published_since_last(tx, &before, &mut poll, &mut document).await?;
    }
    let appended = append_part(tx, settings.page_limits, &before, &document, &mut progress).await?;
    let (after, seqs) = appended;
    let new_entries = published_since::appended(&document, &seqs, since);
    if !progress.is_complete(&document) {
        let is_first = progress.first_head == 0;
        let appended = (&after, &new_entries[..], is_first);
        if let Some(until) = grow(tx, settings, (&before, &poll), appended).await? {
            return Ok(Recorded::OverBudget(until));
        }
        return Ok(Recorded::Part(Recording { poll, document: Some(document), progress, since }));
    }
    let (mut poll, first) = (Poll::clone(&poll), before.log);
    add_classification(progress.changes(), &before, &mut poll);
    let first = LogState { head: progress.first_head, ..first };
    let stored = StoredDocument { document: &document, progress: &progress, after, new_entries };
    record_rest(tx, settings, (&before, first), poll, Some(stored)).await
}

/// A document whose entries are stored, the last of them in this transaction.
struct StoredDocument<'a> {
    document: &'a FeedDocument,
    progress: &'a AppendProgress,
    /// The state of the log after the last part.
    after: After,
    /// The entries of the last part that were published after subscriptions were made.
    new_entries: Vec<PublishedSince>,
}

/// Completes a part of a document after which others follow: moves the head, marks subscriptions due,
/// and charges the budget. The status, the validators and the claim belong to the last part. Where the
/// document came from decides who may see the entries, so it is stored with the first of them. Returns
/// until when the other parts must wait, if the budget of a network is used up.
async fn grow(
    tx: &Tx<'_>,
    settings: AppendSettings<'_>,
    (before, poll): (&Before, &Poll),
    (after, new_entries, is_first): (&After, &[PublishedSince], bool),
) -> Result<Option<DateTime<Utc>>, StoreError> {
    let (id, network) = (before.id, poll.source_network.unwrap_or_default().as_number());
    tx.execute(GROW, params![id.0, after.head, network]).await?;
    // The body is stored with the last part: until then, no subscription to bodies changes.
    let after = After { body_version: NO_BODY, ..*after };
    mark_subscriptions_due(tx, before, poll, (&after, new_entries)).await?;
    let paid_at = before.held.appends_paid_at;
    let resource = ChargedResource { id, paid_at, is_first, body_bytes: 0 };
    let charged = append_budget::charge(tx, settings.budget, resource, after.size, poll.at).await?;
    Ok(charged.is_rest_postponed.then(|| append_budget::earliest(charged.paid_at)))
}

/// A version before that of every body.
const NO_BODY: i64 = -1;

/// Stores everything that `poll` found beside the entries of its document, of which the last are
/// stored in the same transaction. `first` is the state of the log before the first of them.
async fn record_rest(
    tx: &Tx<'_>,
    settings: AppendSettings<'_>,
    (before, first): (&Before, LogState),
    mut poll: Poll,
    stored: Option<StoredDocument<'_>>,
) -> Result<Recorded, StoreError> {
    let AppendSettings { groups, page_limits, budget, .. } = settings;
    let id = before.id;
    let KeptBody { version: body_version, cost_bytes } = match poll.body.take() {
        Some(body) => {
            keep_body(tx, id, before.log.body_version, body, poll.semantic_digest).await?
        }
        None => KeptBody { version: before.log.body_version, cost_bytes: 0 },
    };
    let mut old_entries = None;
    let mut after = match (&stored, std::mem::take(&mut poll.found)) {
        (Some(StoredDocument { document, progress, after, .. }), _) => {
            old_entries = entries::note(tx, id, document, progress.changes()).await?;
            *after
        }
        (None, NewContent::Revision { entry_id, atom })
            if body_version > before.log.body_version =>
        {
            let mut records = RecordBatch::after(before.log.head);
            records.push(NewRecord {
                kind: RecordKind::New,
                audience: Audience::Everybody,
                predecessor: None,
                entry_id,
                atom,
            });
            reading_lists::mark_changed_due(tx, id, poll.at).await?;
            append(tx, page_limits, id, poll.at, records).await?
        }
        (None, _) => RecordBatch::after(before.log.head).appended(),
    };
    after.body_version = body_version;
    if poll.fetch_url.is_some() {
        poll.status.has_moved(poll.at);
    }
    keep_content(tx, id, &poll, before.log, &after).await?;
    if let Some(url) = &poll.fetch_url {
        moves::move_to(tx, groups, id, (url, poll.at)).await?;
    }
    let new_entries = stored.as_ref().map_or(&[][..], |stored| &stored.new_entries);
    mark_subscriptions_due(tx, before, &poll, (&after, new_entries)).await?;
    // From here on, the parts of a document count as one append.
    if let Some(StoredDocument { progress, .. }) = stored {
        after.new_records = progress.new_records;
        after.entries = progress.entries;
    }
    let polled = PolledResource { log: first, ..before.polled() };
    baseline::store_baseline(tx, polled, &mut poll, &after).await?;
    if after.new_records > 0 && before.held.pinged == 0 && poll.trigger != Trigger::Ping {
        changes::seen(tx, (id, settings.listed), &poll.status.title, poll.at).await?;
    }
    store_site_and_upstream(tx, id, &mut poll, &after).await?;
    let held = charge(tx, budget, (before, first), (&after, cost_bytes), &mut poll).await?;
    keep_measured(&before.status, &after, &mut poll);
    // What is before this compares lists with the rows of one resource, which may be many.
    let ended = [(PollResult::from_poll(id, &poll, true), held)];
    try_join!(tx.join_by_keys(), poll_result::end(tx, &ended))?;
    let appended = Appended { head: Seq(after.head), new: after.new_records };
    Ok(Recorded::All(appended, old_entries))
}

/// Stores the site that the document names and the upstream that it offers, and counts new entries for the
/// upstream.
async fn store_site_and_upstream(
    tx: &Tx<'_>,
    id: ResourceId,
    poll: &mut Poll,
    after: &After,
) -> Result<(), StoreError> {
    let (offered, at) = (std::mem::take(&mut poll.upstream), poll.at);
    let site = async {
        match &poll.site_url {
            Some(url) => pings::name(tx, id, "site", url).await,
            None => Ok(()),
        }
    };
    let upstream = async {
        if after.entries > 0 {
            upstreams::count(tx, id, (after.entries, poll.trigger), at).await?;
        }
        upstreams::offer(tx, id, offered, at).await
    };
    try_join!(site, upstream).map(drop)
}

/// Keeps what maintenance has measured, perhaps since the poll was claimed, and counts new entries.
fn keep_measured(before: &Status, after: &After, poll: &mut Poll) {
    poll.status.last_maintenance_at = before.last_maintenance_at;
    poll.status.velocity = before.velocity;
    let entries = before.entries_count_since_last_maintenance + after.entries as u64;
    poll.status.entries_count_since_last_maintenance = entries;
    poll.status.daily = before.daily.clone();
    poll.status.daily.add(after.entries, poll.at);
}

/// Charges the budget of the resource for what was appended. A resource that has used it up is fetched
/// later, and its status says why.
async fn charge(
    tx: &Tx<'_>,
    budget: AppendBudget,
    (before, first): (&Before, LogState),
    (after, body_bytes): (&After, u64),
    poll: &mut Poll,
) -> Result<ResourceBefore, StoreError> {
    let mut held = before.held.clone();
    let paid_at = held.appends_paid_at;
    // What has no entries has a body before it has a record.
    let is_first = first.head == 0 && (first.body_version == 0 || body_bytes == 0);
    let resource = ChargedResource { id: before.id, paid_at, is_first, body_bytes };
    let charged = append_budget::charge(tx, budget, resource, after.size, poll.at).await?;
    let remark = charged.remark;
    held.appends_paid_at = charged.paid_at;
    let earliest = append_budget::earliest(held.appends_paid_at);
    if earliest > poll.next_fetch {
        poll.next_fetch = earliest;
        poll.status.next_fetch = Some(earliest);
        poll.status.http_message.push_str(remark);
    }
    Ok(held)
}

/// Marks the subscriptions due that receive some of what `poll` found.
async fn mark_subscriptions_due(
    tx: &Tx<'_>,
    before: &Before,
    poll: &Poll,
    (after, new_entries): (&After, &[PublishedSince]),
) -> Result<(), StoreError> {
    let Poll { at, silent: is_silent, is_baseline, .. } = *poll;
    let subscribers = before.subscribers;
    let change = LogChange {
        at,
        is_silent,
        new_entries,
        is_baseline,
        subscribers,
        before: before.log,
        after,
    };
    mark_due(tx, before.id, change).await
}

/// Appends the next part of the entries that an upstream pushed. All other stored data of the resource
/// stays unchanged, because a push may contain less than the whole document.
pub(crate) async fn push(
    tx: &Tx<'_>,
    settings: AppendSettings<'_>,
    id: ResourceId,
    (document, at): (&FeedDocument, DateTime<Utc>),
    mut progress: AppendProgress,
) -> Result<PushedPart, StoreError> {
    let AppendSettings { page_limits, budget, .. } = settings;
    let before = lock(tx, id).await?;
    let is_over_budget = append_budget::earliest(before.held.appends_paid_at) > at;
    if is_over_budget && !progress.has_begun() {
        // The next poll finds it.
        let appended = Appended { head: Seq(before.log.head), new: 0 };
        return Ok(PushedPart { appended, rest: None });
    }
    let (mut after, _) = append_part(tx, page_limits, &before, document, &mut progress).await?;
    after.body_version = before.log.body_version;
    if after.head > before.log.head {
        let mut status = before.status.clone();
        status.entries_count_since_last_maintenance += after.entries as u64;
        status.daily.add(after.entries, at);
        tx.execute(GROW, params![id.0, after.head, 0_i64]).await?;
        details::keep_status(tx, id, &status).await?;
        let paid_at = before.held.appends_paid_at;
        let resource = ChargedResource { id, paid_at, is_first: false, body_bytes: 0 };
        append_budget::charge(tx, budget, resource, after.size, at).await?;
        let change = LogChange {
            at,
            is_silent: false,
            new_entries: &[],
            is_baseline: false,
            subscribers: before.subscribers,
            before: before.log,
            after: &after,
        };
        mark_due(tx, id, change).await?;
    }
    if after.entries > 0 {
        upstreams::count(tx, id, (after.entries, Trigger::Push), at).await?;
    }
    let appended = Appended { head: Seq(after.head), new: progress.new_records };
    let rest = (!progress.is_complete(document)).then_some(progress);
    Ok(PushedPart { appended, rest })
}

/// Moves the head of a log.
const GROW: &str = "update resources set head = $2, source_network =
    case when source_network < cast($3 as bigint) then $3 else source_network end where id = $1";

/// The delay of a postponed update: slightly longer than the minimum interval of updates.
const PUT_OFF: chrono::TimeDelta = chrono::TimeDelta::seconds(61);

/// Adds the result of the classification to the status and the schedule.
fn add_classification(changes: &ChangeSet, before: &Before, poll: &mut Poll) {
    if let Some(remark) = changes.remark() {
        poll.status.http_message = format!("{}; {remark}", poll.status.http_message);
    }
    poll.status.bozo_rank = changes.bozo_rank(poll.status.bozo_rank);
    poll.polling.id_changes = changes.id_changes;
    if changes.is_put_off() {
        // Validators must match the stored content, and some of this content is not stored (rule
        // P7).
        poll.polling.validators = before.polling.validators.clone();
        poll.polling.body_hash.clone_from(&before.polling.body_hash);
        poll.next_fetch = poll.next_fetch.min(poll.at + PUT_OFF);
        poll.status.next_fetch = Some(poll.next_fetch);
    }
}

/// Updates the columns about the content, if any of them has changed since `before`.
async fn keep_content(
    tx: &Tx<'_>,
    id: ResourceId,
    poll: &Poll,
    before: LogState,
    after: &After,
) -> Result<(), StoreError> {
    const KEEP: &str = "
        update resources
           set head = $2, body_version = $3, kind = coalesce($4, kind),
               site_url = coalesce($5, site_url),
               source_network = case when source_network < cast($7 as bigint) then $7 else source_network end,
               hops = case when cast($6 as bigint) = 1 then 0 else hops end
         where id = $1";
    const HEAD: &str = "update resource_details set feed_head = $2 where resource_id = $1";
    let Poll { kind, site_url, feed_head, source_network: network, .. } = poll;
    let is_same = kind.is_none() && site_url.is_none() && feed_head.is_none() && network.is_none();
    if is_same && before == (LogState { head: after.head, body_version: after.body_version }) {
        return Ok(());
    }
    #[rustfmt::skip]
    let params = params![
        id.0, after.head, after.body_version, poll.kind.map(|kind| kind.as_str()),
        poll.site_url.as_deref(), poll.trigger == Trigger::Schedule, network.unwrap_or_default().as_number(),
    ];
    let keep_head = async {
        match feed_head.as_deref() {
            Some(head) => tx.execute(HEAD, params![id.0, head]).await.map(drop),
            None => Ok(()),
        }
    };
    try_join!(tx.execute(KEEP, params), keep_head).map(drop)
}
