//! A document as it was received.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use http::HeaderMap;
use url::Url;

use crate::document_budget::DocumentMemory;
use feedgate_core::poll::Validators;
use feedgate_feed::Context;
use feedgate_feed::model::KnownBy;

/// A document as received.
#[derive(Clone, Debug)]
pub struct FetchedDocument {
    /// The URL of the response.
    pub url: Url,
    /// All response headers.
    pub headers: HeaderMap,
    /// The body, decoded.
    pub body: Bytes,
    /// The validators for the next request.
    pub validators: Validators,
    /// The number of seconds for which the document is fresh according to the headers (rule P12).
    pub hint_s: u32,
    /// How far the clock of the server is ahead of ours, in seconds.
    pub clock_ahead_s: i64,
    /// The memory reserved for the document; `None` once another place accounts for it.
    pub memory: Option<DocumentMemory>,
}

impl FetchedDocument {
    /// Returns the context in which the body is parsed. `received_at` is the time of the response.
    pub fn context(&self, received_at: DateTime<Utc>) -> Context {
        let headers = self.headers.iter().map(|(name, value)| {
            let value = value.as_bytes().iter().map(|byte| char::from(*byte)).collect();
            (name.as_str().to_owned(), value)
        });
        Context {
            url: self.url.clone(),
            headers: headers.collect(),
            received_at: Some(received_at),
            known_by: KnownBy::default(),
        }
    }
}
