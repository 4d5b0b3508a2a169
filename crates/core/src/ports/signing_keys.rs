//! The port of the keys that requests to publishers are signed with.

use async_trait::async_trait;

use super::StoreError;
use crate::signing_key::StoredSigningKey;

/// Signing keys. All nodes use the same ones.
#[async_trait]
pub trait SigningKeys: Send + Sync {
    /// Returns all keys, by generation.
    async fn signing_keys(&self) -> Result<Vec<StoredSigningKey>, StoreError>;

    /// Stores a key, unless there is one of its generation.
    async fn add_signing_key(&self, key: &StoredSigningKey) -> Result<(), StoreError>;

    /// Deletes the keys from before a generation.
    async fn drop_signing_keys(&self, before: i64) -> Result<(), StoreError>;
}
