//! How many large documents are stored at the same time for subscribers without an account.
//!
//! A document that is stored in many transactions occupies its poll until the last of them. Hundreds of
//! such documents would occupy all polls, and those that accounts wait for with them. So only some are
//! stored at the same time, and few of them for one network; the others are fetched again later.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::engine::tx::lock;
use feedgate_core::registrant::RegistrantNetwork;

/// The most documents.
const MOST: usize = 8;
/// The most documents of one network.
const MOST_OF_NETWORK: usize = 2;

/// The documents that are being stored, by the network of the oldest subscription. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct AnonymousDocuments(Arc<Mutex<HashMap<RegistrantNetwork, usize>>>);

impl AnonymousDocuments {
    /// Returns a place for a document; `None` if there is none now.
    pub(crate) fn admit(&self, network: RegistrantNetwork) -> Option<AnonymousPlace> {
        let mut stored = lock(&self.0);
        let has_room = stored.values().sum::<usize>() < MOST
            && stored.get(&network).copied().unwrap_or_default() < MOST_OF_NETWORK;
        has_room.then(|| {
            *stored.entry(network).or_default() += 1;
            AnonymousPlace { documents: self.clone(), network }
        })
    }
}

/// The place of a document, which is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct AnonymousPlace {
    documents: AnonymousDocuments,
    network: RegistrantNetwork,
}

impl Drop for AnonymousPlace {
    fn drop(&mut self) {
        let mut stored = lock(&self.documents.0);
        if let Some(count) = stored.get_mut(&self.network) {
            *count -= 1;
            if *count == 0 {
                stored.remove(&self.network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(last: u8) -> RegistrantNetwork {
        RegistrantNetwork::from_client(Some([192, 0, 2, last].into()))
    }

    #[test]
    fn h01_a_network_leaves_room_for_the_documents_of_others() {
        let documents = AnonymousDocuments::default();
        let first = documents.admit(network(1)).unwrap();
        let _second = documents.admit(network(1)).unwrap();
        assert!(documents.admit(network(1)).is_none());
        let others: Vec<_> = (2..=4).map(|n| [0, 1].map(|_| documents.admit(network(n)))).collect();
        assert!(others.iter().flatten().all(Option::is_some));
        assert!(documents.admit(network(9)).is_none(), "all places are taken");
        drop(first);
        assert!(documents.admit(network(9)).is_some());
        drop(others);
        assert!(documents.admit(network(1)).is_some());
        assert_eq!(lock(&documents.0).len(), 1, "nothing is left of those that have ended");
    }
}
