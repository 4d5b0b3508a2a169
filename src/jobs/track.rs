//! Compares new records with the queries of all tracks.
//!
//! ```text
//! claimed range ──► learn new queries ──► compare ──► append to the tracks, and move the cursor
//! ```
//!
//! The queries are read after the range was claimed. So a query that was stored before a record is
//! known when the record is compared, on every node.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tokio::sync::Mutex;
use tokio::task::yield_now;
use tracing::error;

use feedgate_core::account::AccountId;
use feedgate_core::collection::PendingCollection;
use feedgate_core::query::{EntryText, Query, QueryIndex};
use feedgate_core::record::{RecordKind, Seq};
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;
use feedgate_core::stored_entry::sourced;
use feedgate_core::track::{ComparedRange, Track, TrackChange, TrackPosition};
use feedgate_store::Store;

/// The number of changes that are read at a time.
const CHANGES: usize = 1_000;

/// Compares records with the queries of all tracks.
pub struct TrackMatcher {
    store: Arc<Store>,
    known: Mutex<KnownTracks>,
}

/// The tracks that this node knows.
struct KnownTracks {
    /// The last change that was read.
    position: TrackPosition,
    index: QueryIndex<ResourceId>,
    /// The accounts that have a track for themselves.
    owners: HashMap<ResourceId, AccountId>,
}

impl TrackMatcher {
    /// Returns a matcher that has yet to learn its queries.
    pub fn new(store: Arc<Store>) -> TrackMatcher {
        let known = KnownTracks {
            position: TrackPosition::START,
            index: QueryIndex::new(),
            owners: HashMap::new(),
        };
        TrackMatcher { store, known: Mutex::new(known) }
    }

    /// Compares the records of claimed ranges. Records that a track receives get their source.
    pub async fn compare(
        &self,
        ranges: Vec<PendingCollection>,
    ) -> Result<Vec<ComparedRange>, StoreError> {
        let mut known = self.known.lock().await;
        known.update(&self.store).await?;
        let mut compared = Vec::with_capacity(ranges.len());
        for range in ranges {
            compared.push(known.compare(range));
            // A range is some milliseconds of work.
            yield_now().await;
        }
        Ok(compared)
    }
}

impl KnownTracks {
    /// Reads what has changed since the last time.
    async fn update(&mut self, store: &Store) -> Result<(), StoreError> {
        loop {
            let changes = store.track_changes(self.position, CHANGES).await?;
            let is_last = changes.len() < CHANGES;
            for TrackChange { position, key } in changes {
                self.position = position;
                let (query, owner) = key.as_deref().map(Track::parse_key).unzip();
                self.owners.remove(&position.log);
                self.owners.extend(owner.flatten().map(|owner| (position.log, owner)));
                match query.map(Query::parse) {
                    Some(Ok(query)) => self.index.insert(position.log, query),
                    Some(Err(err)) => {
                        let log = position.log.0;
                        error!(log, error = %err, "the stored query of a track cannot be parsed");
                    }
                    None => self.index.remove(position.log),
                }
            }
            if is_last {
                return Ok(());
            }
        }
    }

    fn compare(&self, mut range: PendingCollection) -> ComparedRange {
        let mut matches: BTreeMap<ResourceId, Vec<Seq>> = BTreeMap::new();
        for (record, _) in &mut range.records {
            // The record of a deletion holds only the id of the entry.
            if record.kind == RecordKind::Deleted || self.index.is_empty() {
                continue;
            }
            let Some(entry) = EntryText::read(&range.member, &record.atom) else { continue };
            let mut tracks = self.index.matching(&entry);
            if let Some(accounts) = &range.accounts {
                tracks.retain(|log| {
                    self.owners.get(log).is_some_and(|owner| accounts.contains(owner))
                });
            }
            if !tracks.is_empty() {
                record.atom = sourced(&range.member, &record.atom);
            }
            for track in tracks {
                matches.entry(track).or_default().push(record.seq);
            }
        }
        ComparedRange { pending: range, matches }
    }
}

impl std::fmt::Debug for TrackMatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TrackMatcher").finish_non_exhaustive()
    }
}
