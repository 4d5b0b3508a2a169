//! Copies records from the logs of resources to the logs of their collections, and of tracks.
//!
//! ```text
//! claim ──► add the source to each entry ──► append, and move the cursor
//! ```
//!
//! What is copied has memory of the document budget; without it, the claim expires, and another attempt is
//! made. A claim itself reads a few megabytes at most.
//!
//! Invariants: the order within a resource is preserved, and between resources it is the order of
//! arrival at one node. A cursor moves in the transaction that appends the records behind it, so a
//! crash neither loses nor duplicates any.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tracing::{debug, info};
use url::Url;

use crate::document_budget::DocumentBudget;
use crate::jobs::runner::{self, Job};
use crate::jobs::track::TrackMatcher;
use feedgate_core::collection::{
    Collection, CollectionKind, ConfiguredCollection, PendingCollection,
};
use feedgate_core::record::RecordKind;
use feedgate_core::store::StoreError;
use feedgate_core::stored_entry::sourced;
use feedgate_core::topic::Topic;
use feedgate_core::track::TRACKER;
use feedgate_store::Store;

/// The most cursors that are moved in one step. Each brings at most
/// [`feedgate_store::COLLECT_BATCH`] records, so a step is little work however much there is to do.
const BATCH: usize = 20;

/// The operator's settings for collections.
#[derive(Clone, Debug)]
pub struct CollectionSettings {
    /// The public address of this gateway.
    pub public_url: Url,
    /// How long this node owns a claimed batch.
    pub claim: Duration,
    /// Whether there is a collection of all public resources.
    pub all: bool,
    /// The collections in the operator's settings.
    pub named: Vec<ConfiguredCollection>,
}

/// Adds records to collections and tracks.
pub struct Collector {
    store: Arc<Store>,
    tracks: TrackMatcher,
    documents: DocumentBudget,
    claim: Duration,
}

impl Collector {
    /// Creates the collections of the settings, closes all others, and returns the job that fills
    /// them.
    pub async fn prepare(
        store: Arc<Store>,
        documents: DocumentBudget,
        settings: &CollectionSettings,
        now: DateTime<Utc>,
    ) -> Result<Collector, StoreError> {
        let mut open = Vec::new();
        if settings.all {
            let host = settings.public_url.host_str().unwrap_or_default();
            let title = format!("Everything at {host}");
            let all =
                Collection { scope: CollectionKind::All, topic: settings.topic(&["all"]), title };
            open.push(store.open_collection(&all, now).await?.id);
        }
        for named in &settings.named {
            let name = named.name.as_str();
            let mut topic = settings.topic(&["collections", name]);
            if named.account.is_some() {
                topic = unguessable(&topic);
            }
            let (scope, title) = (CollectionKind::Named(named.name.clone()), name.to_owned());
            let collection = Collection { scope, topic, title };
            let id = store.open_collection(&collection, now).await?.id;
            store.set_members(id, &named.topics, now).await?;
            open.push(id);
        }
        let closed = store.close_collections(&open, now).await?;
        if !open.is_empty() || closed > 0 {
            info!(open = open.len(), closed, "collections are ready");
        }
        let tracks = TrackMatcher::new(Arc::clone(&store));
        Ok(Collector { store, tracks, documents, claim: settings.claim })
    }
}

impl CollectionSettings {
    /// Returns the topic of the collection whose archive is in this folder.
    fn topic(&self, folder: &[&str]) -> Topic {
        archive_topic(&self.public_url, folder)
    }
}

/// Returns the address of the archive in this folder of the gateway, as a topic.
pub fn archive_topic(public_url: &Url, folder: &[&str]) -> Topic {
    let mut url = public_url.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(folder).push("recent");
    }
    Topic::parse(url.as_str()).expect("a host and a few short words make a web address")
}

/// Returns the same topic with a secret fragment, so that nobody can guess it.
pub fn unguessable(topic: &Topic) -> Topic {
    let secret = format!("{}#{}", topic.as_str(), runner::nonce());
    Topic::parse(secret).expect("a web address with a short fragment is one")
}

impl Job for Collector {
    type Item = Vec<PendingCollection>;

    const NAME: &'static str = "collect";

    async fn claim(&self, _limit: usize) -> Result<Vec<Vec<PendingCollection>>, StoreError> {
        let now = runner::now();
        let batch = self.store.claim_collecting(now, now + self.claim, BATCH).await?;
        Ok(if batch.is_empty() { Vec::new() } else { vec![batch] })
    }

    async fn perform(&self, batch: Vec<PendingCollection>) -> Result<(), StoreError> {
        let records = batch.iter().flat_map(|owing| &owing.records);
        let bytes = records.map(|(record, _)| record.atom.len() as u64).sum();
        // The claim has to last until what was copied is stored.
        let Ok(_memory) = self.documents.admit_stored(bytes, self.claim / 4).await else {
            debug!(bytes, "no memory for adding records to collections; it will be retried");
            return Ok(());
        };
        let is_for_tracks = |owing: &PendingCollection| owing.collection == TRACKER;
        let (for_tracks, batch): (Vec<_>, Vec<_>) = batch.into_iter().partition(is_for_tracks);
        if !for_tracks.is_empty() {
            let compared = self.tracks.compare(for_tracks).await?;
            self.store.append_tracked(compared, runner::now()).await?;
        }
        if batch.is_empty() {
            return Ok(());
        }
        let records = batch.into_iter().map(|mut owing| {
            for (record, _) in &mut owing.records {
                // The record of a deletion holds only the id of the entry.
                if record.kind != RecordKind::Deleted {
                    record.atom = sourced(&owing.member, &record.atom);
                }
            }
            owing
        });
        self.store.collect(records.collect(), runner::now()).await
    }
}

impl std::fmt::Debug for Collector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collector").field("claim", &self.claim).finish_non_exhaustive()
    }
}
