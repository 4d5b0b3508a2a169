//! What docs/archives.md promises: an archive has each entry once and in order, and a full document never
//! changes.

use std::collections::HashMap;

use super::cast::{ALL_FEEDS, Cast};
use crate::support::feeds::link;
use crate::support::gateway::{Gateway, LOGIN, TOKEN};
use crate::support::reader::Reader;
use crate::support::server::client;

/// What marks a document that never changes again.
const FULL: &str = "<fh:archive";

/// The full documents that were read so far, by their addresses.
#[derive(Default)]
pub(super) struct Archives {
    full: HashMap<String, String>,
}

impl Archives {
    /// Reads the archive of a feed, and compares its full documents with what they were before.
    pub(super) async fn are_unchanged(&mut self, cast: &Cast, gateway: &Gateway, feed: usize) {
        let mut next = Some(gateway.archive_of(&cast.origins.topic(feed)));
        while let Some(address) = next {
            let request = client().get(&address).basic_auth(LOGIN, Some(TOKEN));
            let document = request.send().await.unwrap().text().await.unwrap();
            next = link(&document, "prev-archive");
            if document.contains(FULL) {
                let before = self.full.entry(address.clone()).or_insert_with(|| document.clone());
                assert_eq!(*before, document, "a_full_document_never_changes: {address}");
            }
        }
    }

    /// Reads all archives to their ends. Returns how many full documents they have.
    pub(super) async fn are_complete(mut self, cast: &Cast, gateway: &Gateway) -> usize {
        for feed in 0..ALL_FEEDS {
            self.are_unchanged(cast, gateway, feed).await;
            let mut reader = Reader::default();
            reader.catch_up(&gateway.archive_of(&cast.origins.topic(feed))).await.unwrap();
            assert_eq!(
                reader.processed,
                cast.origins.entries(feed, 0),
                "an_archive_has_each_entry_once: that of feed {feed}"
            );
        }
        self.full.len()
    }
}
