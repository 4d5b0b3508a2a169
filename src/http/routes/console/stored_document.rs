//! The newest document of a feed, which pages read again to tell how it is.

use std::time::Duration;

use chrono::{DateTime, Utc};
use url::Url;

use super::visit::Visit;
use crate::http::kit::rejection::Rejection;
use feedgate_core::resource::Resource;
use feedgate_feed::{Body, Context};

/// How long a page waits for memory for a document.
const ADMISSION_WAIT: Duration = Duration::from_secs(5);
/// The maximum length of a document that is read again for a page, in bytes. An explanation takes several times
/// as long as reading the document.
const LONGEST_BYTES: usize = 2 << 20;

/// Reads the newest document of a feed with `examine`, on a thread for documents. Otherwise returns the reason
/// why there is nothing to read, as a sentence.
pub(super) async fn examine<T: Send + 'static>(
    visit: &Visit,
    resource: &Resource,
    examine: impl FnOnce(&Body) -> T + Send + 'static,
) -> Result<Result<T, &'static str>, Rejection> {
    let body = visit.gateway.store.body(resource.id).await;
    let Some((_, body)) = body.map_err(|err| Rejection::unavailable(&err))? else {
        return Ok(Err("The document is not stored."));
    };
    if body.bytes.len() > LONGEST_BYTES {
        return Ok(Err("The document is too large to be explained here."));
    }
    let memory = visit.gateway.documents.admit(&body.bytes, ADMISSION_WAIT).await;
    let memory = memory.map_err(Rejection::busy)?;
    let examined = memory.run_blocking(move || examine(&body)).await;
    Ok(examined.ok_or("The document could not be read again."))
}

/// Returns how the document of a feed is read that was received at this time.
pub(super) fn context(resource: &Resource, body: &Body, received_at: DateTime<Utc>) -> Context {
    let url = Url::parse(&resource.fetch_url).unwrap_or_else(|_| resource.topic.fetch_url());
    let mut context = Context::new(url);
    context.known_by = resource.polling.known_by;
    context.received_at = Some(received_at);
    let content_type = body.content_type.iter();
    let headers = content_type.map(|value| ("content-type".to_owned(), value.clone()));
    context.headers.extend(headers);
    context
}
