//! The keys that requests to publishers are signed with. They lie in the shared schema.

use crate::Store;
use crate::engine::envelope::RowIdentity;
use crate::engine::row::Row;
use crate::engine::sql::params;
use feedgate_core::signing_key::{KeySeed, StoredSigningKey};
use feedgate_core::store::StoreError;

/// The column with the private keys.
pub(crate) const SEED: &str = "signing_keys.seed";

/// Signing keys. All nodes use the same ones.
impl Store {
    /// Returns all keys, by generation.
    pub async fn signing_keys(&self) -> Result<Vec<StoredSigningKey>, StoreError> {
        const KEYS: &str =
            "select generation, used_from, seed from signing_keys order by generation";
        self.shared.rows(KEYS, &[]).await?.into_iter().map(read).collect()
    }

    /// Stores a key, unless there is one of its generation.
    pub async fn add_signing_key(&self, key: &StoredSigningKey) -> Result<(), StoreError> {
        const ADD: &str = "
            insert into signing_keys (generation, used_from, seed) values ($1, $2, $3)
                on conflict (generation) do nothing";
        let key = key.clone();
        let added = self.shared.write(move |tx| {
            Box::pin(async move {
                let seed = tx.seal(SEED, &identity(key.generation), Some(&key.seed.to_hex()))?;
                tx.execute(ADD, params![key.generation, key.used_from, seed]).await
            })
        });
        added.await.map(drop)
    }

    /// Deletes the keys from before a generation.
    pub async fn drop_signing_keys(&self, before: i64) -> Result<(), StoreError> {
        const DROP: &str = "delete from signing_keys where generation < $1";
        let params = [before.into()];
        let dropped =
            self.shared.write(move |tx| Box::pin(async move { tx.execute(DROP, &params).await }));
        dropped.await.map(drop)
    }
}

/// Returns what identifies the row of a key.
pub(crate) fn identity(generation: i64) -> RowIdentity {
    RowIdentity::new(&[&generation.to_string()])
}

fn read(mut row: Row) -> Result<StoredSigningKey, StoreError> {
    let (generation, used_from) = (row.int()?, row.time()?);
    let seed = row.opt_secret(SEED, || identity(generation))?;
    let seed = seed.as_deref().and_then(KeySeed::from_hex);
    let seed = seed.ok_or_else(|| StoreError::Corrupt("a signing key is no key".into()))?;
    Ok(StoredSigningKey { generation, seed, used_from })
}
