//! Keeps the keys that requests to publishers are signed with: makes the next one in time, deletes old
//! ones, and tells the client and the directory of keys which there are.
//!
//! Every node does this, because each needs the keys; that two nodes make the next key at the same time
//! is decided by the store.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::jobs::failure_log::FailureLog;
use crate::jobs::runner;
use crate::net::{PublishedKey, RequestSigner, Signer};
use feedgate_core::signing_key::{
    KeySeed, PlannedKey, StoredSigningKey, oldest_published, planned_key,
};
use feedgate_core::store::StoreError;
use feedgate_protocol::message_signatures::SigningKey;
use feedgate_store::Store;

/// How often the keys are read: a small part of the days for which a key is published before it is used.
const INTERVAL: Duration = Duration::from_secs(600);

/// The reason why keys could not be brought up to date.
#[derive(Debug, thiserror::Error)]
pub enum SigningKeysError {
    /// The store failed, or a key cannot be decrypted.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system provides no random numbers.
    #[error("the system provides no random numbers: {0}")]
    Random(getrandom::Error),
}

/// Keeps the keys of the gateway at `public_url`.
#[derive(Clone)]
pub struct SigningKeyring {
    store: Arc<Store>,
    signer: RequestSigner,
    public_url: Url,
}

impl SigningKeyring {
    /// Keys for the requests that `signer` signs.
    pub fn new(store: Arc<Store>, signer: RequestSigner, public_url: Url) -> SigningKeyring {
        SigningKeyring { store, signer, public_url }
    }

    /// Brings the keys up to date until `stop` is cancelled. Requests are signed with the keys that
    /// are known, or not at all, while that fails.
    pub async fn run(self, stop: CancellationToken) {
        let mut failures = FailureLog::new("updating the keys of signed requests");
        while !stop.is_cancelled() {
            failures.note(self.update(runner::now()).await);
            stop.run_until_cancelled(sleep(INTERVAL)).await;
        }
    }

    /// Makes the key that is missing, deletes those that are no longer published, and publishes the
    /// others.
    pub async fn update(&self, now: DateTime<Utc>) -> Result<(), SigningKeysError> {
        let mut keys = self.store.signing_keys().await?;
        if let Some(PlannedKey { generation, used_from }) = planned_key(&keys, now) {
            let seed = KeySeed::random().map_err(SigningKeysError::Random)?;
            self.store.add_signing_key(&StoredSigningKey { generation, seed, used_from }).await?;
            // The key of another node, if that was first.
            keys = self.store.signing_keys().await?;
        }
        let oldest = oldest_published(&keys, now);
        if keys.first().is_some_and(|key| key.generation < oldest) {
            self.store.drop_signing_keys(oldest).await?;
            keys.retain(|key| key.generation >= oldest);
        }
        let published = keys.iter().map(|StoredSigningKey { seed, used_from, .. }| PublishedKey {
            key: SigningKey::from_seed(seed.expose()),
            used_from: *used_from,
        });
        self.signer.replace(Signer::new(&self.public_url, published.collect()));
        Ok(())
    }
}
