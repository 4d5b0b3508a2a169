//! The keys that secrets in a database may be encrypted with.
//!
//! A key is registered before the first secret is encrypted with it, and until a rotation has
//! found no such secret any more. So a gateway knows at its start whether it can read all secrets,
//! whatever their number. In a store of several cells, the shared schema has the keys of all.

use std::sync::Arc;

use crate::Db;
use crate::engine::envelope::{RowIdentity, SecretKey, SecretKeys};
use crate::engine::sql::params;
use crate::engine::tx::Tx;
use feedgate_core::store::StoreError;

/// The column with the check values.
const CHECK_VALUE: &str = "secret_keys.check_value";
/// The text that is encrypted as a check value.
const CHECK_TEXT: &str = "feedgate";

/// Fails if a key of the database is not set. Otherwise registers the present key.
pub(crate) async fn check(db: &Db) -> Result<(), StoreError> {
    let keys = Arc::clone(&db.secret_keys);
    db.write(move |tx| Box::pin(async move { check_and_register(tx, &keys).await })).await
}

async fn check_and_register(tx: &Tx<'_>, keys: &SecretKeys) -> Result<(), StoreError> {
    const KEYS: &str = "select id, check_value from secret_keys order by id";
    const REGISTER: &str = "
        insert into secret_keys (id, check_value) values ($1, $2)
            on conflict (id) do nothing";
    let mut is_registered = false;
    for mut row in tx.query(KEYS, &[]).await? {
        let (id, check_value) = (row.text()?, row.text()?);
        let opened = keys.open(CHECK_VALUE, &RowIdentity::new(&[&id]), check_value);
        if opened.ok().as_deref() != Some(CHECK_TEXT) {
            return Err(match keys.is_empty() {
                true => StoreError::NoSecretsKey { id },
                false => StoreError::OtherSecretsKey { id },
            });
        }
        is_registered |= keys.present.as_ref().is_some_and(|key| key.id() == id);
    }
    if let Some(key) = keys.present.as_ref().filter(|_| !is_registered) {
        let check_value = keys.seal(CHECK_VALUE, &RowIdentity::new(&[key.id()]), CHECK_TEXT)?;
        tx.execute(REGISTER, params![key.id(), check_value]).await?;
    }
    Ok(())
}

/// Forgets all keys but `key`.
pub(super) async fn forget_others(db: &Db, key: &SecretKey) -> Result<(), StoreError> {
    const FORGET: &str = "delete from secret_keys where id <> $1";
    let id = key.id().to_owned();
    let forgotten =
        db.write(move |tx| Box::pin(async move { tx.execute(FORGET, params![id]).await }));
    forgotten.await.map(drop)
}
