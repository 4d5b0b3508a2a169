//! Documents that are published as gzip files: `sitemap.xml.gz`.
//!
//! Their content is what is read. The file itself is what the topic is, and is kept and sent as it is.

use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;

use super::body::BodyMemory;
use super::decode;
use super::{FetchError, FetchedDocument, HttpClient};
use crate::document_budget::DocumentMemory;

/// How long the content of a file waits for memory.
const PATIENCE: Duration = Duration::from_secs(2);
/// The media types of gzip files.
const TYPES: [&str; 3] = ["application/gzip", "application/x-gzip", "application/gzipped"];

impl HttpClient {
    /// Returns the content of a document that is a gzip file by its bytes and by its name or its media
    /// type, with the memory to read it in; `None` for any other document.
    pub async fn unpack(
        &self,
        document: &FetchedDocument,
    ) -> Option<Result<(Bytes, DocumentMemory), FetchError>> {
        if !decode::is_gzip(&document.body) || !is_called_gzip(document) {
            return None;
        }
        let memory = BodyMemory { documents: self.documents(), patience: PATIENCE };
        let limit_bytes = self.inner.settings.body_limit_bytes;
        Some(decode::unpack_gzip(&document.body, limit_bytes, memory).await)
    }
}

fn is_called_gzip(document: &FetchedDocument) -> bool {
    let label = document.headers.get(CONTENT_TYPE).and_then(|label| label.to_str().ok());
    let essence = label.and_then(|label| label.split(';').next()).unwrap_or_default().trim();
    document.url.path().ends_with(".gz")
        || TYPES.iter().any(|known| essence.eq_ignore_ascii_case(known))
}
