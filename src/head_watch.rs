//! The heads of the logs that streams and waiting clients of this node follow.
//!
//! One task reads the heads of all followed logs together, when a subscription of this node or
//! another becomes due and twice a second at least. However many clients follow a log, it is read
//! once.

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use feedgate_core::record::Seq;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;
use feedgate_store::Store;

/// How often the heads are read if no signal arrives: a signal is an optimization, and appends that
/// make no subscription due cause none.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// The least time between two reads, so that many appends cause one.
const SPACING: Duration = Duration::from_millis(20);
/// The number of heads that one statement reads.
const BATCH: usize = 1_000;

/// Follows the heads of logs for all clients of this node.
pub struct HeadWatch {
    store: Arc<Store>,
    heads: Mutex<HashMap<ResourceId, watch::Sender<Seq>>>,
    /// Signals that the first log is followed.
    added: Notify,
}

impl HeadWatch {
    /// Follows nothing yet. [`run`](Self::run) reads the heads.
    pub fn new(store: Arc<Store>) -> HeadWatch {
        HeadWatch { store, heads: Mutex::default(), added: Notify::new() }
    }

    /// Returns the head of a log, `head` or newer, and its changes for as long as the receiver
    /// exists.
    pub fn follow(&self, id: ResourceId, head: Seq) -> watch::Receiver<Seq> {
        let mut heads = self.heads();
        let sender = heads.entry(id).or_insert_with(|| watch::Sender::new(head));
        sender.send_if_modified(|held| advance(held, head));
        self.added.notify_one();
        sender.subscribe()
    }

    /// Reads the heads of followed logs until `stop` is cancelled.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let signals = self.store.wake_signals();
        loop {
            // Created before the heads are read, so that no signal in between is missed.
            let appended = signals.logs.notified();
            let followed = self.followed();
            let is_idle = followed.is_empty();
            let next = async {
                if let Err(err) = self.read(&followed).await {
                    warn!(error = &err as &dyn Error, "cannot read the heads of followed logs");
                }
                if is_idle {
                    return self.added.notified().await;
                }
                sleep(SPACING).await;
                tokio::select! {
                    () = appended => {}
                    () = self.added.notified() => {}
                    () = sleep(CHECK_INTERVAL) => {}
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = next => {}
            }
        }
    }

    /// Returns the followed logs. Logs whose receivers are all gone are followed no more.
    fn followed(&self) -> Vec<ResourceId> {
        let mut heads = self.heads();
        heads.retain(|_, sender| sender.receiver_count() > 0);
        heads.keys().copied().collect()
    }

    async fn read(&self, followed: &[ResourceId]) -> Result<(), StoreError> {
        for batch in followed.chunks(BATCH) {
            let found = self.store.heads(batch).await?;
            let heads = self.heads();
            for (id, head) in found {
                if let Some(sender) = heads.get(&id) {
                    sender.send_if_modified(|held| advance(held, head));
                }
            }
        }
        Ok(())
    }

    fn heads(&self) -> MutexGuard<'_, HashMap<ResourceId, watch::Sender<Seq>>> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Advances `held` to `head` if that is newer. Returns whether it was.
fn advance(held: &mut Seq, head: Seq) -> bool {
    let is_newer = head > *held;
    *held = head.max(*held);
    is_newer
}
