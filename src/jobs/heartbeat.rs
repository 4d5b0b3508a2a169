//! Reports from time to time that this node runs: operators see which nodes there are, and the nodes share the
//! hosts of callbacks, so that each is served by one of them.
//!
//! All other work is claimed in the store, whichever nodes report.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::jobs::failure_log::FailureLog;
use crate::jobs::runner;
use feedgate_core::callback_slots::SlotTerms;
use feedgate_core::node::NodeInfo;
use feedgate_store::Store;

/// The time between a report that failed and the next.
const AGAIN: Duration = Duration::from_secs(1);

/// Reports that a node runs.
pub struct Heartbeat {
    store: Arc<Store>,
    node: NodeInfo,
    terms: SlotTerms,
    failures: FailureLog,
}

impl Heartbeat {
    /// Creates the reports of `node`, which serves hosts of callbacks on these terms.
    pub fn new(store: Arc<Store>, node: NodeInfo, terms: SlotTerms) -> Heartbeat {
        let failures = FailureLog::new("recording the heartbeat of this node");
        Heartbeat { store, node, terms, failures }
    }

    /// Reports until `stop` is cancelled, and then deletes the node from the list of nodes, which may take as
    /// long as `shutdown_grace`. From then on other nodes serve its hosts.
    pub async fn run(mut self, shutdown_grace: Duration, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let pause = self.report().await;
            stop.run_until_cancelled(sleep(pause)).await;
        }
        // If this fails, its leases end, and maintenance deletes the node a day later.
        match timeout(shutdown_grace, self.store.remove_node(&self.node.id)).await {
            Ok(Err(err)) => {
                let error = &err as &dyn Error;
                warn!(error, "deleting this node from the list of nodes failed");
            }
            Err(_) => warn!("deleting this node from the list of nodes took too long"),
            Ok(Ok(())) => {}
        }
    }

    /// Reports once. Returns the time until the next report.
    pub async fn report(&mut self) -> Duration {
        let reported = self.store.share_callback_hosts(&self.node, runner::now(), self.terms).await;
        self.failures.note(reported).unwrap_or(AGAIN)
    }
}
