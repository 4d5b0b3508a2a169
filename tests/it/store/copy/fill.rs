//! A gateway with some of everything: every table has rows, and work is in progress.

use std::time::Duration;

use feedgate_core::account::{AccountId, NewToken, Scopes, TokenHash};
use feedgate_core::alert::{AlertAddress, AlertKind};
use feedgate_core::backfill::{BackfillShare, Chain, PastPage};
use feedgate_core::callback_headers::CallbackHeaders;
use feedgate_core::collection::{Collection, CollectionKind};
use feedgate_core::event::{Event, EventKind};
use feedgate_core::host::HostRefusal;
use feedgate_core::intent::{Intent, IntentMode, VerifyToken};
use feedgate_core::password::{Password, PasswordHash};
use feedgate_core::ping::TimeUnit;
use feedgate_core::ping_forwarding::{PingForwarding, PingTarget};
use feedgate_core::record::Seq;
use feedgate_core::resource::ResourceKind;
use feedgate_core::signing::Secret;
use feedgate_core::store::{DeliveryOutcome, StagedPage};
use feedgate_core::stored_file::{
    FileContent, FileLocation, FileToSave, PathSegment, Quota, WriteCondition,
};
use feedgate_core::subscription::{Format, Lease, Statuses};
use feedgate_core::topic::Callback;
use feedgate_core::traffic::{CountedDelivery, DeliveryClass, TrafficBatch};
use feedgate_core::upstream::{AdvertisedUpstream, Proposal, UpstreamFinding};
use feedgate_feed::Body;
use feedgate_protocol::Protocol;
use feedgate_protocol::robots::Robots;
use url::Url;

use crate::store::alerts::account;
use crate::store::attempts::attempt;
use crate::store::collections::{named, publish, settle};
use crate::store::pings::ping;
use crate::store::{at, entry, few, poll, request, room, search, subscribe, topic, tracks};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::Database;

/// Resources with entries: enough for each of four cells to have some.
pub(super) const FEEDS: usize = 12;

/// Fills a database, and leaves it closed.
pub(super) async fn fill(database: &Database) {
    let targets = vec![PingTarget::parse("get=https://target.test/").unwrap()];
    let prefixes = vec![Url::parse("https://feeds.test/").unwrap()];
    let forwarding = PingForwarding { targets, prefixes };
    let store = ClaimingStore::new(database.open_telling(forwarding).await);
    store.open_search_index().await.unwrap();
    accounts(&store).await;
    feeds(&store).await;
    collections(&store).await;
    other_work(&store).await;
    hosts(&store).await;
    claims(&store).await;
    traffic(&store).await;
    search::settle(&store, 50_000).await;
    store.close().await;
    database
        .run(
            "insert into fan_outs (resource_id, next_id, advanced_at)
             select id, 7, 1 from resources where topic = 'https://feeds.test/feed0'",
        )
        .await;
}

async fn traffic(store: &ClaimingStore) {
    let feed = store.find(topic("feed0").as_str()).await.unwrap().unwrap().id;
    let account = Some(account(store, "bob", "one").await);
    let (host, class) = ("callback.test:443", DeliveryClass::Accepted);
    let mut batch = TrafficBatch::default();
    batch.add_delivery(&CountedDelivery { feed, host, account, class, delay: None });
    store.add_gateway_traffic(&batch.total, at(30)).await.unwrap();
    store.add_subject_traffic(batch, at(30)).await.unwrap();
}

async fn accounts(store: &ClaimingStore) {
    let password = PasswordHash::from_password(&Password::chosen("a password").unwrap(), [1; 16]);
    store.create_account("ada", &password, at(1)).await.unwrap();
    for name in ["one", "two"] {
        let token = NewToken {
            login: "bob".to_owned(),
            name: name.to_owned(),
            scopes: Scopes::all(),
            hash: TokenHash::from_token(name),
            expires_at: None,
        };
        let id = store.create_token(&token, at(2)).await.unwrap();
        assert!(name == "one" || store.revoke_token(id, at(3)).await.unwrap());
    }
    let (login, name) = (PathSegment::login("ada").unwrap(), PathSegment::login("a.xml").unwrap());
    let content = FileContent { media_type: "text/xml".to_owned(), body: "\u{0}é".into() };
    let quota = Quota { file_bytes: 99, files: 9, bytes: 999 };
    let (location, condition) =
        (FileLocation { login: &login, name: &name }, &WriteCondition::None);
    let file = FileToSave { location, content: &content, condition, quota };
    store.save_file(file, at(4)).await.unwrap();
    let events = (0..5).map(|n| Event::new(EventKind::Ping, at(n)).owned_by(Some(AccountId(n))));
    store.append_events(events.collect()).await.unwrap();
}

async fn feeds(store: &ClaimingStore) {
    let procedure = "river.changed".to_owned();
    let protocols = [
        Protocol::WebSub,
        Protocol::HttpPost,
        Protocol::XmlRpc { procedure: procedure.clone() },
        Protocol::Soap { procedure },
    ];
    for n in 0..FEEDS {
        let name = format!("feed{n}");
        let mut first = None;
        for (k, protocol) in protocols.iter().enumerate() {
            let mut request = request(&name, &format!("https://callback.test/{n}/{k}"));
            request.protocol = protocol.clone();
            request.account = (k % 2 == 1).then_some(AccountId(1));
            request.signing.secret =
                (k == 0).then(|| Secret::new("opensesame".to_owned()).unwrap());
            request.format = if k == 2 { Format::Raw } else { Format::Atom };
            request.statuses = if k == 3 { Statuses::Always } else { Statuses::Never };
            let made = store.subscribe(&request, at(n as i64)).await.unwrap();
            first = first.or(Some(made.id));
        }
        let id = first.unwrap();
        let mut found = poll(at(20), &["1", "2", "3"]);
        found.kind = Some(ResourceKind::Feed);
        found.feed_head = Some("<title>Tides</title>".to_owned());
        found.site_url = Some(format!("https://site{n}.test/"));
        let bytes = vec![0, 159, n as u8];
        found.body = Some(Body { content_type: None, bytes });
        found.fetch_url = (n % 5 == 0).then(|| format!("https://moved{n}.test/feed"));
        found.upstream = if n % 4 == 1 { upstream(n) } else { UpstreamFinding::Nothing };
        store.record(id.resource, &found).await.unwrap();
        store.record(id.resource, &poll(at(30), &["3", "4"])).await.unwrap();
        let attempts = (20..23).map(|seconds| attempt(id, seconds)).collect();
        store.append_attempts(attempts, 9).await.unwrap();
        if n % 3 == 0 {
            assert!(store.replay(id, Seq::NONE, at(31)).await.unwrap());
        }
    }
    let mut list = request("feed0", "https://callback.test/list");
    list.account = Some(AccountId(1));
    list.reading_list = Some(list.topic.as_str().to_owned());
    store.subscribe(&list, at(30)).await.unwrap();
    let alerts = AlertAddress {
        account: account(store, "bob", "one").await,
        callback: Callback::parse("https://alerts.test/").unwrap(),
        secret: None,
        kinds: AlertKind::ALL.to_vec(),
    };
    store.set_alert_address(&alerts, at(30)).await.unwrap();
    let own = topic("feed1").with_own_headers("n0nce").unwrap();
    let headers = CallbackHeaders::parse("cookie: s3cret", "").unwrap();
    store.store_feed_headers(&own, &headers, at(30)).await.unwrap();
    let mut ended = request("feed0", "https://ended.test/");
    ended.lease = Lease::from(Duration::from_secs(10));
    store.subscribe(&ended, at(30)).await.unwrap();
    assert_eq!(store.drop_expired(at(40)).await.unwrap().len(), 1, "its cursor is kept");
}

fn upstream(n: usize) -> UpstreamFinding {
    UpstreamFinding::Upstream(Proposal {
        offer: AdvertisedUpstream {
            protocol: Protocol::WebSub,
            endpoint: "https://hub.test/".to_owned(),
            topic: format!("https://feeds.test/feed{n}"),
        },
        token: format!("token{n}"),
        secret: Secret::new("opensesame".to_owned()).unwrap(),
    })
}

async fn collections(store: &ClaimingStore) {
    let names: Vec<String> = (0..FEEDS).map(|n| format!("member{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let named_log = named(store, &names).await;
    let scope = CollectionKind::Account(AccountId(1));
    let own = Collection { scope, topic: topic("own"), title: "Own".to_owned() };
    store.open_collection(&own, at(0)).await.unwrap();
    for name in &names {
        publish(store, name, 40, &[&format!("{name} 1"), &format!("{name} 2")]).await;
    }
    settle(store, 41).await;
    subscribe(store, "collected/named-news/recent", "https://reader.test/").await;
    tracks::open(store, "news", 41).await;
    for name in &names[..5] {
        publish(store, name, 42, &[&format!("{name} 3")]).await;
    }
    assert!(store.get(named_log).await.unwrap().unwrap().head.0 >= 2 * FEEDS as i64);
}

async fn other_work(store: &ClaimingStore) {
    for n in 0..5 {
        let mut request = request(&format!("wanted{n}"), "https://callback.test/");
        request.signing.secret = Secret::new("opensesame".to_owned()).ok();
        let verify_token = VerifyToken::parse("token").ok();
        let intent = Intent {
            verify_token,
            backfill: true,
            parameters: "hub.topic=x".to_owned(),
            is_verified: true,
            ..Intent::new(IntentMode::Subscribe, request)
        };
        store.enqueue_intent(&intent, at(50 + n)).await.unwrap();
        // Two of the resources that are pinged exist.
        let url = format!("https://feeds.test/feed{}", n + FEEDS as i64 - 2);
        store.receive(&ping(51 + n, &url), Duration::ZERO).await.unwrap();
    }
    for name in ["old0", "old1", "old2"] {
        let request = request(name, "https://callback.test/");
        store.subscribe_with_history(&request, at(0)).await.unwrap();
    }
    let share = BackfillShare::Anonymous;
    for due in store.claim_backfills(share, at(1), at(61), 2).await.unwrap() {
        let page = PastPage {
            urls: vec!["https://feeds.test/old?page=1".to_owned()],
            entries: ["1", "2", "3", "4"].map(entry).to_vec(),
            link: Some((Chain::Paged, "https://feeds.test/old?page=2".to_owned())),
            ..PastPage::default()
        };
        let staged = store.stage_backfill(&due.backfill, due.claim, page, at(3)).await;
        assert_eq!(staged.unwrap(), StagedPage::Staged);
    }
    let later = at(3 * 3_600);
    assert!(store.save_hours(later, TimeUnit::Minutes).await.unwrap() > 0);
    store.receive(&ping(3 * 3_600, "https://feeds.test/feed1"), Duration::ZERO).await.unwrap();
    store.claim_maintenance_task("measure", at(1), Duration::from_secs(60)).await.unwrap();
    store.save_poll_factor(1.5).await.unwrap();
}

async fn hosts(store: &ClaimingStore) {
    for n in 0..3 {
        let resource =
            store.find(&format!("https://feeds.test/feed{n}")).await.unwrap().unwrap().id;
        let group = store.group("https://feeds.test/");
        let refused = HostRefusal {
            group,
            resource,
            was_read: true,
            at: at(60),
            http_code: 503,
            retry_after_s: None,
        };
        store.record_refusal(&refused).await.unwrap();
    }
    store.save_robots("https://feeds.test", &Robots::default(), at(61)).await.unwrap();
}

/// Claims some of everything, as a node does that is then killed.
async fn claims(store: &ClaimingStore) {
    let (now, until) = (at(100), at(160));
    let due = store.claim_subscriptions(now, until, &few(5)).await.unwrap();
    let delivered = DeliveryOutcome::Delivered { cursor: Seq(3), status: 0 };
    let failed = DeliveryOutcome::Failed { retry_at: Some(at(150)) };
    let ended = [(due[0].subscription.id, delivered), (due[1].subscription.id, failed)];
    store.record_deliveries(&ended, at(101)).await.unwrap();
    assert!(!store.claim_resources(now, until, &room()).await.unwrap().is_empty());
    assert!(!store.claim_intents(now, until, &few(2)).await.unwrap().is_empty());
    assert!(!store.claim_upstreams(now, until, &few(2)).await.unwrap().is_empty());
    let pings = store.claim_forwarded_pings("get=https://target.test/", now, until, 2).await;
    assert!(!pings.unwrap().is_empty());
}
