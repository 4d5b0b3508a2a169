//! What an export has of an account, and what an import makes of it. The other contents are compared by the
//! tests of copies, and by `tests/it/transfer.rs`.

use feedgate_core::subscription::SubscriptionRequest;

use super::alerts::{account, address, with_address};
use super::secrets::keys;
use super::{at, few, listed, on_both_stores, request};
use crate::support::postgres::Database;
use crate::support::transfer::{export_lines, import_lines};

on_both_stores!(
    an_alert_address_is_exported_and_imported_with_its_account,
    a36_an_imported_list_is_followed_although_its_document_is_there,
);

async fn an_alert_address_is_exported_and_imported_with_its_account(mut database: Database) {
    database.secret_keys = keys(1, &[]);
    let (store, ann) = with_address(&database).await;
    store.close().await;
    let of_addresses = |line: &&String| line.contains("alerts.test");
    let without = export_lines(&database, false).await;
    assert_eq!(without.iter().filter(of_addresses).count(), 0, "alerts would not be signed");
    let with_secrets = export_lines(&database, true).await;
    let address_line = with_secrets.iter().find(of_addresses).unwrap();
    assert!(address_line.contains("sealed:1:"), "{address_line}");

    let mut target = Database::new(database.kind()).await;
    target.secret_keys = keys(1, &[]);
    let store = target.open().await;
    account(&store, "bob", "secret-of-bob").await;
    store.close().await;
    for added in [1, 0] {
        let report = import_lines(&target, &with_secrets).await;
        let kind = report.kinds.iter().find(|(kind, _)| kind == "alert_addresses").unwrap();
        assert_eq!((kind.1.added, kind.1.refused), (added, 0), "{report:?}");
    }
    let store = target.open().await;
    let imported = account(&store, "ann", "secret-of-ann").await;
    assert_ne!(imported, ann, "it has another number here");
    let state = store.alert_address(imported).await.unwrap().unwrap();
    assert_eq!(state.address, address(imported, "https://alerts.test/"));
}

async fn a36_an_imported_list_is_followed_although_its_document_is_there(database: Database) {
    let (store, target) = (database.open().await, Database::new(database.kind()).await);
    let account = account(&store, "ann", "secret-of-ann").await;
    let plain = request("list", "https://callback.test/");
    let reading_list = Some(plain.topic.as_str().to_owned());
    let followed = SubscriptionRequest { account: Some(account), reading_list, ..plain.clone() };
    store.subscribe(&followed, at(0)).await.unwrap();
    store.close().await;
    let store = target.open().await;
    store.subscribe(&plain, at(0)).await.unwrap();
    store.close().await;
    import_lines(&target, &export_lines(&database, true).await).await;
    let store = target.open().await;
    let due = store.claim_reading_lists(at(5), at(15), &few(9)).await.unwrap().remove(0);
    let held = listed(&store).await;
    let list = held.iter().find(|held| held.follows_list()).unwrap();
    assert_eq!(list.id, due.id);
}
