//! Lists of what an account has, read page by page behind a number.

use feedgate_core::account::AccountId;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::SubscriptionRange;
use feedgate_store::Store;

use super::{at, on_both_stores, request};
use crate::support::postgres::Database;

on_both_stores!(
    a02_the_subscriptions_of_an_account_come_in_pages,
    a02_the_feeds_of_an_account_come_in_pages,
);

const ADA: AccountId = AccountId(7);

/// Stores nine subscriptions of Ada to three feeds, between others. Returns the store.
async fn crowded(database: &Database) -> std::sync::Arc<Store> {
    let store = database.open().await;
    for n in 0..9 {
        for account in [Some(ADA), Some(AccountId(8)), None] {
            let mut request = request(&format!("{}", n % 3), &format!("https://callback.test/{n}"));
            request.account = account;
            store.subscribe(&request, at(n)).await.unwrap();
        }
    }
    store
}

async fn a02_the_subscriptions_of_an_account_come_in_pages(database: Database) {
    let store = crowded(&database).await;
    let all = SubscriptionRange { account: ADA, resource: None, after: 0, limit: 100 };
    let whole = store.list_range(all).await.unwrap();
    assert_eq!(whole.len(), 9);
    let numbers: Vec<_> = whole.iter().map(|held| held.subscription.id.number).collect();
    assert!(numbers.is_sorted(), "{numbers:?}");
    for limit in [1, 2, 4, 9, 10] {
        let (mut read, mut after) = (Vec::new(), 0);
        loop {
            let page = store.list_range(SubscriptionRange { after, limit, ..all }).await.unwrap();
            read.extend(page.iter().map(|held| held.subscription.id.number));
            match page.last() {
                Some(last) => after = last.subscription.id.number,
                None => break,
            }
        }
        assert_eq!(read, numbers, "{limit} at a time");
    }
    let resource = whole[0].resource.id;
    let of_feed = SubscriptionRange { resource: Some(resource), ..all };
    let of_feed = store.list_range(of_feed).await.unwrap();
    let wanted: Vec<_> = whole.iter().filter(|held| held.resource.id == resource).collect();
    assert_eq!(of_feed.iter().collect::<Vec<_>>(), wanted);
    let of_nobody = SubscriptionRange { account: AccountId(9), ..all };
    assert_eq!(store.list_range(of_nobody).await.unwrap(), []);
}

async fn a02_the_feeds_of_an_account_come_in_pages(database: Database) {
    let store = crowded(&database).await;
    let mut wanted: Vec<_> = Vec::new();
    for name in ["0", "1", "2"] {
        let found = store.find(super::topic(name).as_str()).await.unwrap();
        wanted.push(found.unwrap().id);
    }
    wanted.sort_unstable();
    for limit in [1, 2, 3, 4, 100] {
        let (mut read, mut after) = (Vec::new(), ResourceId(0));
        loop {
            let page = store.resources_of_account(ADA, after, limit).await.unwrap();
            read.extend(page.resources.iter().map(|resource| resource.id));
            match page.next {
                Some(next) => after = next,
                None => break,
            }
        }
        assert_eq!(read, wanted, "{limit} subscriptions at a time");
    }
    let page = store.resources_of_account(AccountId(9), ResourceId(0), 10).await.unwrap();
    assert!(page.resources.is_empty() && page.next.is_none(), "{page:?}");
}
