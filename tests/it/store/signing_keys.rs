//! The keys that requests to publishers are signed with.

use feedgate_core::signing_key::{KeySeed, StoredSigningKey};
use feedgate_store::rotate_secrets;

use super::secrets::keys;
use super::{at, on_both_stores};
use crate::support::postgres::Database;

on_both_stores!(
    the_first_node_to_store_a_key_decides_which_it_is,
    s50_keys_are_encrypted_at_rest_and_rotated_with_the_other_secrets,
);

/// The key of a generation, whose seed is this byte in hexadecimal 32 times.
pub(super) fn key(generation: i64, byte: &str) -> StoredSigningKey {
    let seed = KeySeed::from_hex(&byte.repeat(32)).unwrap();
    StoredSigningKey { generation, seed, used_from: at(generation) }
}

async fn the_first_node_to_store_a_key_decides_which_it_is(database: Database) {
    let store = database.open().await;
    assert_eq!(store.signing_keys().await.unwrap(), []);
    store.add_signing_key(&key(2, "02")).await.unwrap();
    store.add_signing_key(&key(1, "01")).await.unwrap();
    store.add_signing_key(&key(1, "ff")).await.unwrap();
    assert_eq!(store.signing_keys().await.unwrap(), [key(1, "01"), key(2, "02")]);
    store.drop_signing_keys(2).await.unwrap();
    assert_eq!(store.signing_keys().await.unwrap(), [key(2, "02")]);
}

async fn s50_keys_are_encrypted_at_rest_and_rotated_with_the_other_secrets(mut database: Database) {
    const SEEDS: &str = "select seed from signing_keys";
    let store = database.open().await;
    store.add_signing_key(&key(1, "01")).await.unwrap();
    assert_eq!(database.texts(SEEDS).await, ["01".repeat(32)], "there is no key");
    store.close().await;

    database.secret_keys = keys(1, &[]);
    let store = database.open().await;
    store.add_signing_key(&key(2, "02")).await.unwrap();
    let rotated = rotate_secrets(&database.settings(), &mut |_| {}).await.unwrap().unwrap();
    assert!(rotated.is_complete() && rotated.rewritten == 1, "{rotated:?}");
    let sealed = database.texts(SEEDS).await;
    assert!(sealed.iter().all(|seed| seed.starts_with("sealed:1:")), "{sealed:?}");
    assert_eq!(store.signing_keys().await.unwrap(), [key(1, "01"), key(2, "02")]);
    store.close().await;

    database.secret_keys = keys(2, &[1]);
    let rotated = rotate_secrets(&database.settings(), &mut |_| {}).await.unwrap().unwrap();
    assert!(rotated.is_complete() && rotated.rewritten == 2, "{rotated:?}");
    database.secret_keys = keys(2, &[]);
    let store = database.open().await;
    assert_eq!(store.signing_keys().await.unwrap(), [key(1, "01"), key(2, "02")]);
}
