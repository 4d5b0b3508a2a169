//! The logs that a stream follows, and how far each of them was sent.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use futures_util::future::select_all;
use tokio::sync::watch;

use super::position::StreamPosition;
use super::scope::SelectedLog;
use crate::head_watch::HeadWatch;
use feedgate_core::record::Seq;
use feedgate_core::resource::{Resource, ResourceId};

/// A log of a stream.
pub(super) struct StreamedLog {
    pub(super) topic: String,
    /// The last record that was sent.
    pub(super) sent: Seq,
    pub(super) head: watch::Receiver<Seq>,
}

/// The logs of a stream.
pub(super) struct StreamedLogs {
    heads: Arc<HeadWatch>,
    logs: BTreeMap<ResourceId, StreamedLog>,
    /// The log that was read last.
    last_read: ResourceId,
}

impl StreamedLogs {
    /// Returns no logs; `heads` tells when one that is followed has grown.
    pub(super) fn new(heads: Arc<HeadWatch>) -> StreamedLogs {
        StreamedLogs { heads, logs: BTreeMap::new(), last_read: ResourceId(0) }
    }

    /// Follows the log of a resource behind `sent`.
    pub(super) fn follow(&mut self, resource: &Resource, sent: Seq) {
        let head = self.heads.follow(resource.id, resource.head);
        let topic = resource.topic.displayed().into_owned();
        self.logs.insert(resource.id, StreamedLog { topic, sent, head });
    }

    /// Follows the selected logs and no others. A new one is sent from where its subscription began.
    pub(super) fn change_to(&mut self, selected: BTreeMap<ResourceId, SelectedLog>) {
        self.logs.retain(|id, _| selected.contains_key(id));
        for (id, SelectedLog { resource, begun_after }) in selected {
            if !self.logs.contains_key(&id) {
                self.follow(&resource, begun_after);
            }
        }
    }

    pub(super) fn get_mut(&mut self, id: ResourceId) -> Option<&mut StreamedLog> {
        self.logs.get_mut(&id)
    }

    /// Returns a log that has grown: the next behind the one that was returned last, so that one which
    /// always grows keeps no other from being sent.
    pub(super) fn next_grown(&mut self) -> Option<ResourceId> {
        let behind = self.logs.range((Bound::Excluded(self.last_read), Bound::Unbounded));
        let mut in_turn = behind.chain(self.logs.range(..=self.last_read));
        let (id, _) = in_turn.find(|(_, log)| *log.head.borrow() > log.sent)?;
        self.last_read = *id;
        Some(self.last_read)
    }

    /// Returns when one of the logs has grown.
    pub(super) async fn growth(&mut self) {
        if self.logs.is_empty() {
            return std::future::pending().await;
        }
        let changes = self.logs.values_mut().map(|log| Box::pin(log.head.changed()));
        if select_all(changes).await.0.is_err() {
            std::future::pending().await // the watch has ended, and with it the node
        }
    }

    /// Returns how far each log was sent.
    pub(super) fn position(&self) -> StreamPosition {
        StreamPosition(self.logs.iter().map(|(id, log)| (*id, log.sent)).collect())
    }
}
