//! The document that a resource was before it became a feed.

use bytes::Bytes;
use feedgate_core::change_detection::{FeedDocument, FormerDocument};
use feedgate_core::resource::Resource;
use feedgate_core::store::StoreError;
use feedgate_feed::Context;
use feedgate_feed::model::Feed;
use feedgate_store::Store;
use url::Url;

use super::read_document::parse_in_background;
use crate::document_budget::DocumentMemory;

/// Returns the entries of the stored document, if `feed` is the first feed of a resource that was a document
/// until now, and both are of the same format: this program has learnt to read it.
///
/// It may be much longer than the new one, so memory of its own is reserved for it. If there is none now, it is
/// not read, and the dates of the entries decide which are new.
pub(super) async fn former_document(
    store: &Store,
    resource: &Resource,
    (feed, memory): (&Feed, &DocumentMemory),
) -> Result<Option<FormerDocument>, StoreError> {
    if !resource.is_known_document() {
        return Ok(None);
    }
    let Some((_, body)) = store.body(resource.id).await? else { return Ok(None) };
    let Ok(url) = Url::parse(&resource.fetch_url) else { return Ok(None) };
    let headers = body.content_type.map(|value| ("content-type".to_owned(), value));
    let context = Context {
        url,
        headers: headers.into_iter().collect(),
        received_at: resource.status.last_parse,
        known_by: resource.polling.known_by,
    };
    let Ok(memory) = memory.admit_beside(&body.bytes).await else { return Ok(None) };
    let parsed = parse_in_background(Bytes::from(body.bytes), context, &memory).await;
    let Some(Ok(former)) = parsed else { return Ok(None) };
    if former.format != feed.format {
        return Ok(None);
    }
    let at = resource.status.last_parse.unwrap_or_default();
    let document = FeedDocument::from_feed(&former, true, None, at);
    Ok(Some(FormerDocument::from_document(&document)))
}
