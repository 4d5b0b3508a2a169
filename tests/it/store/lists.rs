//! The lists of the console: found, filtered and ordered in the database, whatever is stored.

use std::collections::BTreeSet;

use feedgate_core::account::AccountId;
use feedgate_core::feed_name::NameSearch;
use feedgate_core::feed_state::FeedState;
use feedgate_core::password::{Password, PasswordHash};
use feedgate_core::store::{
    FeedOrder, FeedQuery, ListCounts, ListPosition, ListedState, SubscriptionQuery,
};
use feedgate_store::Store;

use super::{at, in_one_cell, on_both_stores, poll, request, subscribe, topic};
use crate::support::postgres::Database;

on_both_stores! {
    c01_feeds_come_in_pages_in_the_order_of_their_titles,
    c01_subscriptions_come_in_pages,
    c01_a_feed_is_found_by_its_new_title,
    c01_accounts_come_in_pages,
}

in_one_cell! {
    c01_of_3_003_feeds_those_that_fail_are_counted_and_found,
    c01_the_2_500th_feed_is_found_by_a_part_of_its_address,
    c01_which_addresses_are_of_feeds_of_an_account_is_known,
    c01_feeds_are_found_by_their_states,
    c01_subscriptions_are_found_by_callback_and_state,
}

/// An account with many subscriptions, and one with few.
const MANY: AccountId = AccountId(7);
const FEW: AccountId = AccountId(8);

/// When the feeds are due, in microseconds: no gateway polls them.
const LATER: i64 = 4_000_000_000_000_000;

/// Stores 3,003 feeds of which 3 fail, each with a subscription of the account with the number that the SQL
/// `account` selects. Feed 40 is gone, 10 is new, 20 has moved, and the hub of 30 announces its changes.
pub(crate) async fn put_feeds(database: &Database, account: &str) {
    database
        .run(&format!(
            "with recursive n (n) as (select 1 union all select n + 1 from n where n < 3003)
             insert into resources (topic, fetch_url, host, kind, subscribers, next_fetch, due_at, measured_at,
                                    head, fetched_at, failing, gone_at)
             select 'https://h' || (n % 50) || '.test/blog/' || n || '.xml',
                    'https://' || case n when 20 then 'moved' else 'h' || (n % 50) end || '.test/blog/' || n || '.xml',
                    'h.test:443', 'feed', 1, {LATER}, {LATER} + n, {LATER},
                    case n when 10 then 0 else 5 end, case n when 10 then null else 1 end,
                    case when n in (40, 1001, 2002) then 1 else 0 end, case n when 40 then 1 end
               from n;
             insert into resource_details (resource_id, status, polling)
             select id, case when gone_at is not null then '{{\"error\": \"gone\"}}'
                             when failing = 1 then '{{\"error\": \"http_404\"}}' else '{{}}' end, '{{}}'
               from resources where host = 'h.test:443';
             insert into upstreams (resource_id, protocol, procedure, endpoint, topic, token, secret, state,
                                    is_trusted, lease_until, due_at)
             select id, 'websub', '', 'https://hub.test/', topic, 'token', '', 'active', 1, {LATER}, {LATER}
               from resources where topic = 'https://h30.test/blog/30.xml';
             insert into subscriptions (resource_id, account_id, callback, host, protocol, procedure, format,
                                        failures, paused_at, is_suspended, cursor, lease_until, created_at)
             select id, ({account}), 'https://s' || (n % 30) || '.test/' || n, 's' || (n % 30) || '.test:443',
                    'http-post', '', 'atom', case when n in (5, 6, 7) then 1 else 0 end,
                    case when n in (7, 8, 9) then 1 end, case n when 9 then 1 else 0 end, 5, {LATER}, 0
               from (select id, due_at - {LATER} as n from resources where host = 'h.test:443') r;
             insert into subscription_counts (account_id, host, stripe, subscriptions)
             values (({account}), '', 99, 3003);
             update database_properties set value = '0' where name = 'names'"
        ))
        .await;
}

/// Stores the feeds of an account with many subscriptions, and three subscriptions of another.
async fn filled(database: &Database) -> std::sync::Arc<Store> {
    let store = database.open().await;
    put_feeds(database, "7").await;
    while store.index_names().await.unwrap() > 0 {}
    for name in ["a/2500", "b", "c"] {
        let mut request = request(name, "https://few.test/callback");
        request.account = Some(FEW);
        store.subscribe(&request, at(0)).await.unwrap();
    }
    store
}

/// Reads a list of feeds to its end. Returns the ends of their addresses, and how many pages there were.
async fn all_feeds(store: &Store, query: FeedQuery) -> (Vec<String>, usize) {
    let (mut found, mut pages, mut after) = (Vec::new(), 0, ListPosition::default());
    loop {
        let page = store.find_feeds(&FeedQuery { after, ..query.clone() }, at(0)).await.unwrap();
        assert!(page.feeds.len() <= query.limit);
        let end = |topic: &str| topic.rsplit('/').next().unwrap().to_owned();
        found.extend(page.feeds.iter().map(|feed| end(feed.topic.as_str())));
        pages += 1;
        match page.next {
            Some(next) => after = ListPosition::from_param(&next.to_param()).unwrap(),
            None => return (found, pages),
        }
    }
}

/// Reads a list of subscriptions to its end. Returns the ends of their callbacks.
async fn all_subscriptions(store: &Store, query: SubscriptionQuery) -> Vec<String> {
    let (mut found, mut after) = (Vec::new(), ListPosition::default());
    loop {
        let query = SubscriptionQuery { after, ..query.clone() };
        let page = store.find_subscriptions(&query).await.unwrap();
        assert!(page.listed.len() <= query.limit);
        let end = |callback: &str| callback.rsplit('/').next().unwrap().to_owned();
        found.extend(page.listed.iter().map(|listed| end(listed.subscription.callback.as_str())));
        match page.next {
            Some(next) => after = next,
            None => return found,
        }
    }
}

async fn c01_of_3_003_feeds_those_that_fail_are_counted_and_found(database: Database) {
    let store = filled(&database).await;
    let counts = |feeds, failing_feeds, subscriptions, failing_subscriptions| ListCounts {
        feeds,
        failing_feeds,
        subscriptions,
        failing_subscriptions,
    };
    assert_eq!(store.list_counts(None).await.unwrap(), counts(3_006, 3, 3_006, 2));
    assert_eq!(store.list_counts(Some(MANY)).await.unwrap(), counts(3_003, 3, 3_003, 2));
    assert_eq!(store.list_counts(Some(FEW)).await.unwrap(), counts(3, 0, 3, 0));
    for account in [None, Some(MANY)] {
        let failing = FeedQuery {
            account,
            state: Some(FeedState::Failing),
            limit: 2,
            ..FeedQuery::default()
        };
        let (found, _) = all_feeds(&store, failing).await;
        assert_eq!(found, ["40.xml", "1001.xml", "2002.xml"]);
        let all = FeedQuery { account, limit: 700, ..FeedQuery::default() };
        let (found, _) = all_feeds(&store, all).await;
        let distinct: BTreeSet<&String> = found.iter().collect();
        assert_eq!(
            (found.len(), distinct.len()),
            (if account.is_some() { 3_003 } else { 3_006 }, found.len())
        );
    }
}

async fn c01_which_addresses_are_of_feeds_of_an_account_is_known(database: Database) {
    let store = filled(&database).await;
    let [many, few] = ["https://h0.test/blog/2500.xml", "https://feeds.test/b"].map(str::to_owned);
    #[rustfmt::skip]
    let cases = [
        (Some(MANY), vec![&many]),
        (Some(FEW),  vec![&few]),
        (None,       vec![&few, &many]),
    ];
    for (account, own) in cases {
        let addresses = vec![many.clone(), few.clone(), "https://nowhere.test/".to_owned()];
        let found = store.named_feeds(account, addresses).await.unwrap();
        assert_eq!(found.keys().collect::<BTreeSet<_>>(), BTreeSet::from_iter(own), "{account:?}");
        for (topic, id) in found {
            let feed = store.get(id).await.unwrap().unwrap();
            assert_eq!(feed.topic.redacted(), topic);
        }
    }
}

async fn c01_the_2_500th_feed_is_found_by_a_part_of_its_address(database: Database) {
    let store = filled(&database).await;
    #[rustfmt::skip]
    let cases: [(Option<AccountId>, &str, &[&str]); 8] = [
        (None,       "2500",                          &["2500.xml", "2500"]),
        (None,       "https://h0.test/blog/2500.xml", &["2500.xml"]),
        (None,       "blog h0 25",                    &["250.xml", "2500.xml", "2550.xml"]),
        (None,       "nothing",                       &[]),
        (Some(MANY), "2500",                          &["2500.xml"]),
        (Some(MANY), "nothing",                       &[]),
        (Some(FEW),  "2500",                          &["2500"]),
        (Some(FEW),  "h0 2500",                       &[]),
    ];
    for (account, search, want) in cases {
        let search = NameSearch::parse(search);
        let query = FeedQuery { account, search: search.clone(), limit: 3, ..FeedQuery::default() };
        let (mut found, _) = all_feeds(&store, query).await;
        found.sort();
        let mut want: Vec<_> = want.iter().map(|name| (*name).to_owned()).collect();
        want.sort();
        assert_eq!(found, want, "{account:?} {search:?}");
    }
}

async fn c01_feeds_are_found_by_their_states(database: Database) {
    let store = filled(&database).await;
    #[rustfmt::skip]
    let cases: [(FeedState, &[&str], &[&str]); 5] = [
        (FeedState::New,     &["10.xml", "2500", "b", "c"], &["2500", "b", "c"]),
        (FeedState::Moved,   &["20.xml"],                   &[]),
        (FeedState::Pushed,  &["30.xml"],                   &[]),
        (FeedState::Gone,    &["40.xml"],                   &[]),
        (FeedState::Failing, &["40.xml", "1001.xml", "2002.xml"], &[]),
    ];
    for (state, of_all, of_few) in cases {
        for (account, want) in [(None, of_all), (Some(FEW), of_few)] {
            for order in [FeedOrder::Title, FeedOrder::LastChange, FeedOrder::NextFetch] {
                let query = FeedQuery {
                    account,
                    state: Some(state),
                    order,
                    limit: 2,
                    ..FeedQuery::default()
                };
                let (mut found, _) = all_feeds(&store, query).await;
                found.sort_by_key(|name| want.iter().position(|want| want == name));
                assert_eq!(found, want, "{account:?} {state:?}");
            }
        }
    }
    let next_fetch = FeedQuery { order: FeedOrder::NextFetch, limit: 500, ..FeedQuery::default() };
    let (found, _) = all_feeds(&store, next_fetch).await;
    assert_eq!(found[..5], ["2500", "b", "c", "1.xml", "2.xml"]);
    assert_eq!(found.len(), 3_006);
}

async fn c01_subscriptions_are_found_by_callback_and_state(database: Database) {
    let store = filled(&database).await;
    let found = async |account, state, search: &str| {
        let search = search.to_owned();
        let query =
            SubscriptionQuery { account, state, search, limit: 40, ..SubscriptionQuery::default() };
        all_subscriptions(&store, query).await
    };
    for account in [None, Some(MANY)] {
        assert_eq!(found(account, Some(ListedState::Failing), "").await, ["5", "6"]);
        assert_eq!(found(account, Some(ListedState::Paused), "").await, ["7", "8"]);
        assert_eq!(found(account, Some(ListedState::Suspended), "").await, ["9"]);
        assert_eq!(found(account, None, "https://S11.test").await.len(), 100);
        assert_eq!(found(account, None, "s11.test/2501").await, ["2501"]);
        assert_eq!(found(account, Some(ListedState::Failing), "s6.test").await, ["6"]);
        assert_eq!(found(account, None, "nowhere").await, [""; 0]);
    }
    assert_eq!(found(Some(FEW), None, "w.test/call").await.len(), 3, "any part of the callback");
    assert_eq!(found(Some(FEW), None, "feeds.test/a").await.len(), 1, "the words of the feed");
    assert_eq!(found(None, None, "").await.len(), 3_006);
}

async fn c01_feeds_come_in_pages_in_the_order_of_their_titles(database: Database) {
    let store = database.open().await;
    for n in 10..40 {
        let mut request = request(&format!("{n}"), "https://callback.test/");
        request.account = (n % 3 == 0).then_some(FEW);
        store.subscribe(&request, at(0)).await.unwrap();
    }
    let names =
        |step| (10..40).filter(|n| n % step == 0).map(|n| n.to_string()).collect::<Vec<_>>();
    for (account, want) in [(None, names(1)), (Some(FEW), names(3))] {
        let query = FeedQuery { account, limit: 4, ..FeedQuery::default() };
        let (found, pages) = all_feeds(&store, query).await;
        assert_eq!(found, want);
        assert_eq!(pages, want.len().div_ceil(4));
    }
    // A feed without subscriptions is in no list.
    store
        .unsubscribe(None, &topic("10"), &request("10", "https://callback.test/").callback, None)
        .await
        .unwrap();
    let query = FeedQuery { limit: 100, ..FeedQuery::default() };
    assert_eq!(all_feeds(&store, query).await.0, names(1)[1..]);
}

async fn c01_subscriptions_come_in_pages(database: Database) {
    let store = database.open().await;
    for n in 10..20 {
        for account in [None, Some(FEW)] {
            let mut request = request(&format!("{}", n % 4), &format!("https://callback.test/{n}"));
            request.account = account;
            store.subscribe(&request, at(0)).await.unwrap();
        }
    }
    for (account, many) in [(None, 20), (Some(FEW), 10)] {
        let query = SubscriptionQuery { account, limit: 3, ..SubscriptionQuery::default() };
        assert_eq!(all_subscriptions(&store, query.clone()).await.len(), many);
        let resource = Some(store.find(topic("1").as_str()).await.unwrap().unwrap().id);
        let found = all_subscriptions(&store, SubscriptionQuery { resource, ..query }).await;
        assert_eq!(found.len(), many / 10 * 2, "{found:?}");
    }
}

async fn c01_a_feed_is_found_by_its_new_title(database: Database) {
    let store = database.open().await;
    let id = subscribe(&store, "b", "https://callback.test/").await.id.resource;
    subscribe(&store, "a", "https://callback.test/").await;
    let search = NameSearch::parse("tides");
    let query = FeedQuery { search, limit: 10, ..FeedQuery::default() };
    let newest_first = FeedQuery { order: FeedOrder::LastChange, limit: 1, ..FeedQuery::default() };
    for (second, title, many) in [(60, "The Tides", 1), (120, "The Waves", 0)] {
        let mut found = poll(at(second), &["one"]);
        title.clone_into(&mut found.status.title);
        found.polling.last_new = Some(at(60));
        store.record(id, &found).await.unwrap();
        assert_eq!(all_feeds(&store, query.clone()).await.0.len(), many, "{title}");
        assert_eq!(all_feeds(&store, newest_first.clone()).await.0, ["b", "a"]);
    }
}

async fn c01_accounts_come_in_pages(database: Database) {
    let store = database.open().await;
    let hash = PasswordHash::from_password(&Password::chosen("a password").unwrap(), [1; 16]);
    for login in ["ada", "bea", "Bob", "bob", "cid"] {
        assert!(store.create_account(login, &hash, at(0)).await.unwrap());
    }
    let logins = async |prefix: &str, after: &str| {
        let page = store.accounts_page(prefix, after, 2).await.unwrap();
        page.into_iter().map(|account| account.login).collect::<Vec<_>>()
    };
    assert_eq!(logins("", "").await, ["Bob", "ada"]);
    assert_eq!(logins("", "ada").await, ["bea", "bob"]);
    assert_eq!(logins("b", "bea").await, ["bob"]);
    assert_eq!(store.account("bob").await.unwrap().unwrap().login, "bob");
    assert_eq!(store.account("nobody").await.unwrap(), None);
}
