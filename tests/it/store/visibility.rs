//! Who may see a resource, as the store remembers it.

use feedgate_core::account::AccountId;
use feedgate_core::collection::{Collection, CollectionKind};
use feedgate_core::query::Query;
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::ChangesWindow;
use feedgate_core::track::{TRACKER, Track};
use feedgate_core::visibility::{ListedTopics, SourceNetwork, Visibility};
use feedgate_store::{self as store, StoreSettings};
use url::Url;

use super::{at, on_both_stores, poll, request, resource, topic};
use crate::support::postgres::Database;

on_both_stores! {
    h04_what_was_public_once_and_then_comes_from_inside_is_private,
    h04_a_backfill_from_inside_makes_a_resource_private,
    h04_tracks_of_the_accounts_that_subscribe_receive_what_is_private,
    h09_all_entries_and_changes_are_those_of_listed_resources,
}

const ACCOUNT: Option<AccountId> = Some(AccountId(7));

async fn h04_what_was_public_once_and_then_comes_from_inside_is_private(database: Database) {
    let store = database.open().await;
    let mut of_account = request("a", "https://cb.test/account");
    of_account.account = ACCOUNT;
    let id = store.subscribe(&of_account, at(0)).await.unwrap().id.resource;
    let visibility = async || resource(&store, id).await.visibility(ListedTopics::Open);
    assert_eq!(visibility().await, Visibility::Private, "before the first fetch");
    #[rustfmt::skip]
    let polls = [
        (None,                 Visibility::Private,  "a fetch that reached nothing"),
        (Some(SourceNetwork::Public),  Visibility::Unlisted, "the internet"),
        (None,                 Visibility::Unlisted, "a later failure"),
        (Some(SourceNetwork::Inner),   Visibility::Private,  "its name leads inside"),
        (Some(SourceNetwork::Public),  Visibility::Private,  "what was read inside is still stored"),
    ];
    for (n, (source_network, want, why)) in (1..).zip(polls) {
        let mut found = poll(at(n), &[]);
        found.source_network = source_network;
        store.record(id, &found).await.unwrap();
        assert_eq!(visibility().await, want, "{why}");
    }
    let own = store.subscribed_by(AccountId(7), &[id]).await.unwrap();
    assert_eq!(own, [id]);
    assert_eq!(store.subscribed_by(AccountId(8), &[id]).await.unwrap(), []);

    let open = request("a", "https://cb.test/open");
    store.subscribe(&open, at(10)).await.unwrap();
    assert_eq!(visibility().await, Visibility::Private, "a stranger is not sent it");
    assert_eq!(store.subscribed_by(AccountId(0), &[id]).await.unwrap(), [], "no account");
    let (topic, callback) = (&open.topic, &open.callback);
    assert!(store.unsubscribe(None, topic, callback, None).await.unwrap());
    assert_eq!(visibility().await, Visibility::Private, "no stranger subscribes any more");
}

async fn h04_a_backfill_from_inside_makes_a_resource_private(database: Database) {
    let store = database.open().await;
    let mut of_account = request("a", "https://cb.test/account");
    of_account.account = ACCOUNT;
    let id = store.subscribe(&of_account, at(0)).await.unwrap().id.resource;
    store.record(id, &poll(at(1), &["1"])).await.unwrap();
    assert!(resource(&store, id).await.is_readable());
    store.note_inner(id).await.unwrap();
    assert!(!resource(&store, id).await.is_readable());
}

async fn h04_tracks_of_the_accounts_that_subscribe_receive_what_is_private(database: Database) {
    let settings = StoreSettings { listed: ListedTopics::Open, ..database.settings() };
    let store = store::open(&settings).await.unwrap();
    let public_url = Url::parse("https://gate.test/").unwrap();
    let track = Track::new(&public_url, Query::parse("apple").unwrap()).unwrap();
    store.open_track(&track, RegistrantNetwork::UNKNOWN, at(0)).await.unwrap();
    for (name, account, callback) in
        [("a", Some(7), "1"), ("a", Some(7), "2"), ("a", Some(9), "3"), ("b", None, "4")]
    {
        let mut request = request(name, &format!("https://cb.test/{callback}"));
        request.account = account.map(AccountId);
        store.subscribe(&request, at(0)).await.unwrap();
    }
    for name in ["a", "b"] {
        let id = store.find(topic(name).as_str()).await.unwrap().unwrap().id;
        let mut found = poll(at(10), &[&format!("{name}-1")]);
        let network = if name == "a" { SourceNetwork::Inner } else { SourceNetwork::Public };
        found.source_network = Some(network);
        store.record(id, &found).await.unwrap();
    }
    let mut claimed = store.claim_collecting(at(30), at(90), 100).await.unwrap();
    claimed.retain(|pending| pending.collection == TRACKER);
    claimed.sort_by(|one, other| one.member.topic.cmp(&other.member.topic));
    let accounts: Vec<_> = claimed.into_iter().map(|pending| pending.accounts).collect();
    let own = Some(vec![AccountId(7), AccountId(9)]);
    assert_eq!(accounts, [own, None], "a stranger subscribes to the second");
}

async fn h09_all_entries_and_changes_are_those_of_listed_resources(database: Database) {
    for (listed, lists_accounts) in [(ListedTopics::Open, false), (ListedTopics::OfAccounts, true)]
    {
        let store = store::open(&StoreSettings { listed, ..database.settings() }).await.unwrap();
        let scope = CollectionKind::All;
        let all = Collection { scope, topic: topic("all/recent"), title: "All".to_owned() };
        store.open_collection(&all, at(0)).await.unwrap();
        let names = match lists_accounts {
            false => ["open", "mine", "inside"],
            true => ["open2", "mine2", "inside2"],
        };
        let owners = [None, ACCOUNT, ACCOUNT];
        let networks = [SourceNetwork::Public, SourceNetwork::Public, SourceNetwork::Inner];
        let mut ids = Vec::new();
        for ((name, account), source_network) in names.iter().zip(owners).zip(networks) {
            let mut request = request(name, "https://cb.test/");
            request.account = account;
            let id = store.subscribe(&request, at(0)).await.unwrap().id.resource;
            for second in [10, 20] {
                let mut found = poll(at(second), &[&format!("{name}-{second}")]);
                (found.source_network, found.silent) = (Some(source_network), second == 10);
                found.status.last_fetch = Some(at(second));
                store.record(id, &found).await.unwrap();
            }
            ids.push(id);
        }
        let want: &[ResourceId] = if lists_accounts { &ids[..2] } else { &ids[..1] };
        let mut collected: Vec<ResourceId> = Vec::new();
        loop {
            let taken = store.claim_collecting(at(30), at(90), 100).await.unwrap();
            if taken.is_empty() {
                break;
            }
            let full = taken.iter().filter(|taken| !taken.records.is_empty());
            collected.extend(full.map(|taken| taken.member.id).filter(|id| ids.contains(id)));
            store.collect(taken, at(30)).await.unwrap();
        }
        collected.sort();
        collected.dedup();
        let mut want_sorted = want.to_vec();
        want_sorted.sort();
        assert_eq!(collected, want_sorted, "{listed:?}");
        let window = ChangesWindow { from: at(0), until: at(100), newest: i64::MAX };
        let lines = store.changes(&window, None).await.unwrap();
        for (name, id) in names.iter().zip(&ids) {
            let address = topic(name);
            let is_listed =
                lines.iter().any(|line| line.change.feed_url.as_deref() == Some(address.as_str()));
            assert_eq!(is_listed, want.contains(id), "{name}, {listed:?}");
        }
        store.close().await;
    }
}
