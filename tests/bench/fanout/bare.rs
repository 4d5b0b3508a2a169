//! What a bare client needs for the same requests: the physical limit of the measurement.

use std::time::{Duration, Instant};

use futures_util::StreamExt;

use super::AnyError;
use super::callbacks::CallbackServer;

/// Requests in progress at once.
const CONCURRENCY: usize = 32;

/// Posts once to each of `many` subscribers, and says how long that took.
#[expect(clippy::disallowed_methods, reason = "it is what feedgate is compared with")]
pub(crate) async fn post_to_all(
    callbacks: &CallbackServer,
    many: usize,
) -> Result<Duration, AnyError> {
    // Connections are kept where they can be used again.
    let kept = if callbacks.has_own_addresses() { 0 } else { CONCURRENCY };
    let client = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(kept).build()?;
    let topic = callbacks.topic();
    let begun = Instant::now();
    let posts = (0..many).map(|n| {
        let request = client.post(callbacks.callback(n)).body(format!("url={topic}"));
        async move { request.send().await?.error_for_status()?.bytes().await }
    });
    let mut posts = futures_util::stream::iter(posts).buffer_unordered(CONCURRENCY);
    while let Some(posted) = posts.next().await {
        posted?;
    }
    Ok(begun.elapsed())
}
