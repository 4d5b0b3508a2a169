//! Reading lists: when they are read, what is made for them, and their reports.

use feedgate_core::account::AccountId;
use feedgate_core::poll::{NewContent, Poll};
use feedgate_core::reading_list::{
    DueReadingList, ReadingListFeed, ReadingListReport, ReadingListState,
};
use feedgate_core::store::ClaimLimits;
use feedgate_core::subscription::{Subscription, SubscriptionRequest};
use feedgate_core::topic::Callback;
use feedgate_feed::Body;
use feedgate_store::Store;

use super::alerts::account;
use super::{at, few, listed, on_both_stores, poll, request, topic};
use crate::support::postgres::Database;

on_both_stores!(
    a36_a_list_is_due_when_it_is_followed_changed_or_ended,
    a36_what_was_made_for_a_list_is_the_owners_once_the_owner_renews_it,
    a36_a_reading_whose_claim_was_lost_changes_nothing,
    a36_what_is_made_for_a_list_counts_for_an_hour_although_its_claim_is_lost,
    a36_an_account_with_many_lists_hides_no_other,
    a36_the_lists_of_an_account_are_due_when_it_is_activated_again,
);

const ACCOUNT: AccountId = AccountId(7);
const CALLBACK: &str = "https://callback.test/";

/// A request of the account for this topic; `list` is the reading list of the subscription.
fn own(name: &str, list: Option<&str>) -> SubscriptionRequest {
    SubscriptionRequest {
        account: Some(ACCOUNT),
        reading_list: list.map(|list| topic(list).as_str().to_owned()),
        ..request(name, CALLBACK)
    }
}

async fn follow(store: &Store) -> Subscription {
    store.subscribe(&own("list", Some("list")), at(0)).await.unwrap()
}

async fn claim(store: &Store, seconds: i64) -> Vec<DueReadingList> {
    store.claim_reading_lists(at(seconds), at(seconds + 10), &few(9)).await.unwrap()
}

async fn a36_a_list_is_due_when_it_is_followed_changed_or_ended(database: Database) {
    let store = database.open().await;
    let list = follow(&store).await;
    assert!(list.follows_list());
    let due = claim(&store, 1).await.remove(0);
    assert_eq!((due.id, &due.topic, due.account), (list.id, &list.topic, ACCOUNT));
    assert_eq!(due.report, ReadingListReport::default());
    assert_eq!(claim(&store, 2).await, []);

    let feed = ReadingListFeed {
        url: "https://a.test/".to_owned(),
        state: ReadingListState::Subscribed,
        code: String::new(),
        reason: String::new(),
        at: at(3),
    };
    let report = ReadingListReport { stated: 1, feeds: vec![feed], ..Default::default() };
    store.store_reading_list_report(&due, &report, at(900)).await.unwrap();
    assert_eq!(store.reading_list_report(list.id).await.unwrap(), Some(report.clone()));
    assert_eq!(claim(&store, 4).await, []);

    // The document changes, and then the options of the subscription.
    let body = Body { content_type: None, bytes: b"<opml/>".to_vec() };
    let (entry_id, atom) = ("revision".to_owned(), "<entry/>".to_owned());
    let found = NewContent::Revision { entry_id, atom };
    let resource = list.id.resource;
    store.record(resource, &Poll { found, body: Some(body), ..poll(at(5), &[]) }).await.unwrap();
    let due = claim(&store, 6).await.remove(0);
    assert_eq!(due.report, report);
    store.release_reading_list(&due, at(900)).await.unwrap();
    let renewed = store.subscribe(&own("list", None), at(7)).await.unwrap();
    assert!(renewed.follows_list(), "a renewal that says nothing keeps the list");
    assert_eq!(claim(&store, 8).await.len(), 1);

    let none = SubscriptionRequest { reading_list: Some(String::new()), ..own("list", None) };
    assert_eq!(store.subscribe(&none, at(9)).await.unwrap().reading_list, "");
    assert_eq!(claim(&store, 10).await.len(), 1, "it is due, so that what was made for it ends");
}

async fn a36_what_was_made_for_a_list_is_the_owners_once_the_owner_renews_it(database: Database) {
    let store = database.open().await;
    let list = follow(&store).await;
    let members = async || {
        let found =
            store.subscribed_by_list(ACCOUNT, &list.topic, &list.callback, 9).await.unwrap();
        let mut names: Vec<_> =
            found.iter().map(|(made, _)| made.topic.as_str().to_owned()).collect();
        names.sort();
        names
    };
    let one = store.subscribe(&own("one", Some("list")), at(1)).await.unwrap();
    let two = store.subscribe(&own("two", Some("list")), at(1)).await.unwrap();
    let other = SubscriptionRequest { account: Some(AccountId(8)), ..own("one", Some("list")) };
    store.subscribe(&other, at(1)).await.unwrap();
    assert_eq!(one.listed_by(), Some(list.topic.as_str()));
    assert_eq!(members().await, [one.topic.as_str(), two.topic.as_str()]);

    let renewed = store.subscribe(&own("one", None), at(2)).await.unwrap();
    assert_eq!((renewed.id, renewed.listed_by()), (one.id, None));
    assert_eq!(members().await, [two.topic.as_str()]);
    assert!(!store.end_listed(&one).await.unwrap(), "the owner keeps it");
    assert!(store.end_listed(&two).await.unwrap());
    assert!(!store.end_listed(&two).await.unwrap());
    assert_eq!(listed(&store).await.len(), 3);

    // A list whose subscription has ended is due, so that what was made for it ends.
    let due = claim(&store, 3).await.remove(0);
    store.release_reading_list(&due, at(900)).await.unwrap();
    store.unsubscribe(Some(ACCOUNT), &list.topic, &list.callback, None).await.unwrap();
    let due = claim(&store, 4).await.remove(0);
    store.forget_reading_list(&due).await.unwrap();
    assert_eq!(store.reading_list_report(list.id).await.unwrap(), None);
    assert_eq!(claim(&store, 9_999).await, []);
}

async fn a36_a_reading_whose_claim_was_lost_changes_nothing(database: Database) {
    let (store, other) = (database.open().await, database.open().await);
    let list = follow(&store).await;
    let lost = claim(&store, 1).await.remove(0);
    let renewed = store.renew_reading_list_claims(&[(lost.id, lost.claim)], at(20)).await.unwrap();
    assert_eq!(renewed, [list.id]);
    assert_eq!(claim(&other, 19).await, []);
    let valid = claim(&other, 20).await.remove(0);
    let renewed = store.renew_reading_list_claims(&[(lost.id, lost.claim)], at(60)).await.unwrap();
    assert_eq!(renewed, []);
    let report = ReadingListReport { stated: 3, ..ReadingListReport::default() };
    store.store_reading_list_report(&lost, &report, at(22)).await.unwrap();
    store.release_reading_list(&lost, at(22)).await.unwrap();
    store.forget_reading_list(&lost).await.unwrap();
    let held = store.reading_list_report(list.id).await.unwrap();
    assert_eq!(held, Some(ReadingListReport::default()));
    store.store_reading_list_report(&valid, &report, at(900)).await.unwrap();
    assert_eq!(store.reading_list_report(list.id).await.unwrap(), Some(report));
}

async fn a36_what_is_made_for_a_list_counts_for_an_hour_although_its_claim_is_lost(
    database: Database,
) {
    let store = database.open().await;
    let id = follow(&store).await.id;
    let reserve = async |wanted: usize, seconds: i64| {
        store.reserve_listed(id, wanted, 4_000, at(seconds)).await.unwrap()
    };
    let first = claim(&store, 1).await.remove(0);
    assert_eq!(reserve(2_000, 1).await, 2_000);
    store.subscribe(&own("list", None), at(2)).await.unwrap();
    let second = claim(&store, 3).await.remove(0);
    let report = ReadingListReport::default();
    assert!(!store.store_reading_list_report(&first, &report, at(900)).await.unwrap());
    assert_eq!(reserve(2_000, 4).await, 2_000);
    assert_eq!(reserve(2_000, 5).await, 0, "all of the hour is used");
    store.return_listed(id, 300, at(4)).await.unwrap();
    assert!(store.store_reading_list_report(&second, &report, at(900)).await.unwrap());
    assert_eq!(reserve(2_000, 6).await, 300);
    assert_eq!(reserve(2_000, 3_600).await, 2_000, "another hour has begun");
    store.return_listed(id, 300, at(6)).await.unwrap();
    assert_eq!(reserve(2_500, 3_601).await, 2_000, "the hour before does not count");
}

async fn a36_an_account_with_many_lists_hides_no_other(database: Database) {
    let store = database.open().await;
    for number in 0..600 {
        let callback = Callback::parse(format!("{CALLBACK}{number}")).unwrap();
        let many = SubscriptionRequest { callback, ..own("list", Some("list")) };
        store.subscribe(&many, at(0)).await.unwrap();
    }
    let other = SubscriptionRequest { account: Some(AccountId(8)), ..own("list", Some("list")) };
    store.subscribe(&other, at(1)).await.unwrap();
    let one = |busy: &[&str]| {
        let busy = busy.iter().map(|account| (*account).to_owned()).collect();
        ClaimLimits { limit: 2, per_host: 1, busy }
    };
    let claim = async |busy: &[&str]| {
        let due = store.claim_reading_lists(at(2), at(60), &one(busy)).await.unwrap();
        due.iter().map(|due| due.owner()).collect::<Vec<_>>()
    };
    assert_eq!(claim(&[]).await, ["7", "8"]);
    assert_eq!(claim(&["7"]).await, [] as [&str; 0]);
    assert_eq!(claim(&[]).await, ["7"]);
}

async fn a36_the_lists_of_an_account_are_due_when_it_is_activated_again(database: Database) {
    let store = database.open().await;
    let account = account(&store, "ann", "secret-of-ann").await;
    let followed = SubscriptionRequest { account: Some(account), ..own("list", Some("list")) };
    store.subscribe(&followed, at(0)).await.unwrap();
    assert!(!store.is_account_deactivated(account).await.unwrap());
    store.deactivate_account("ann", at(1)).await.unwrap();
    assert!(store.is_account_deactivated(account).await.unwrap());
    let due = claim(&store, 2).await.remove(0);
    store.release_reading_list(&due, at(900)).await.unwrap();
    assert_eq!(claim(&store, 3).await, []);
    store.activate_account("ann", at(4)).await.unwrap();
    assert_eq!(claim(&store, 5).await.len(), 1);
    assert!(!store.is_account_deactivated(account).await.unwrap());
}
