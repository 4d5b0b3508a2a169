//! Runs CPU-bound work away from the threads that serve requests.

use std::error::Error;

use tracing::error;

/// Runs `work` on the blocking pool, so that it neither delays other tasks nor ends the process if
/// it panics on somebody's document (rule S47). `None` if it panicked.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let result = tokio::task::spawn_blocking(work).await;
    result.inspect_err(|err| error!(error = err as &dyn Error, "reading a document panicked")).ok()
}
