//! Reports from time to time that this node runs, so that operators see which nodes there are.
//!
//! Nothing depends on these reports: work is claimed in the store, whichever nodes are listed.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::jobs::runner;
use feedgate_core::node::NodeInfo;
use feedgate_core::ports::Store;

/// The time between two reports.
const INTERVAL: Duration = Duration::from_secs(30);

/// Reports that `node` runs until `stop` is cancelled, and then deletes it from the list of nodes,
/// which may take as long as `shutdown_grace`.
pub async fn run(
    store: Arc<dyn Store>,
    node: NodeInfo,
    shutdown_grace: Duration,
    stop: CancellationToken,
) {
    let mut can_report = true;
    while !stop.is_cancelled() {
        let reported = store.record_node(&node, runner::now()).await;
        // A failure is logged when it begins and when it ends, not every time.
        match &reported {
            Ok(()) if !can_report => info!("recording the heartbeat of this node works again"),
            Err(err) if can_report => {
                warn!(error = err as &dyn Error, "recording the heartbeat of this node failed");
            }
            Ok(()) | Err(_) => {}
        }
        can_report = reported.is_ok();
        tokio::select! {
            () = stop.cancelled() => {}
            () = sleep(INTERVAL) => {}
        }
    }
    // If this fails, maintenance deletes the node a day later.
    match timeout(shutdown_grace, store.remove_node(&node.id)).await {
        Ok(Err(err)) => {
            warn!(error = &err as &dyn Error, "deleting this node from the list of nodes failed");
        }
        Err(_) => warn!("deleting this node from the list of nodes took too long"),
        Ok(Ok(())) => {}
    }
}
