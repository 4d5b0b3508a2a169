//! Who may see what is watched, at every door at once: what only an account subscribes to inside a
//! private network belongs to it (H4), and what only accounts subscribe to is in no list (H9).

use std::sync::Arc;

use feedgate::jobs::runner;
use feedgate_core::account::{AccountId, NewToken, Scope, TokenHash};
use feedgate_core::event::{EventFilter, EventKind};
use feedgate_core::ping::{Ping, PingSource};
use feedgate_core::subscription::{Format, Statuses, SubscriptionRequest};
use feedgate_core::topic::{Callback, Topic};
use feedgate_core::visibility::{ListedTopics, SourceNetwork};
use feedgate_protocol::Protocol;
use feedgate_store::Store;
use feedgate_store::{self as store, StoreSettings};
use http::StatusCode;
use http::header::CACHE_CONTROL;

use crate::store::{on_both_stores, poll};
use crate::support::feeds::{entry_id, rss};
use crate::support::gateway::{Gateway, LOGIN, TOKEN};
use crate::support::postgres::Database;
use crate::support::publisher::Publisher;
use crate::support::server::client;
use crate::support::subscriber::Subscriber;
use crate::support::tracked::{found_once, track_topic};
use crate::support::until;

on_both_stores!(
    h04_a_feed_inside_belongs_to_the_accounts_that_subscribe_at_every_door,
    h04_strangers_are_answered_as_if_nobody_watched_what_belongs_to_an_account,
    h09_an_address_that_only_an_account_subscribes_to_is_in_no_list,
);

/// The title of the feed, which its entries have in their ids and links.
const TITLE: &str = "moonbase";
/// A word of every entry.
const WORD: &str = "text";
/// The path of the feed, which is the secret.
const PATH: &str = "/k3y/rss";
const OTHER: (&str, &str) = ("other", "0ther");
/// A network from which nobody comes here, so that this machine is not the operator's.
const NOBODY: (&str, &str) = ("FEEDGATE_METRICS_NETWORKS", "203.0.113.0/24");

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asker {
    /// Somebody without an account.
    Anonymous,
    /// An account that does not subscribe to the feed.
    OtherAccount,
    /// The account that does.
    Owner,
}

fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// The addresses of archives: those with numbers around this one, and that of the topic.
fn archives(topic: &str, number: i64) -> Vec<String> {
    let topic = encoded(topic);
    let mut archives =
        vec![format!("/feeds?topic={topic}"), format!("/feeds?topic={topic}&count=5")];
    for id in number - 4..number + 3 {
        for end in ["", "?count=9", "/recent", "/recent?order=asc", "/documents/1"] {
            archives.push(format!("/feeds/{id}{end}"));
        }
    }
    archives
}

/// Every address at which something of a watched feed could be shown.
fn endpoints(world: &World) -> Vec<String> {
    let World { topic, track, number, .. } = world;
    let hour = runner::now().format("/%Y/%m/%d/%H.xml").to_string();
    let mut endpoints = vec![
        "/".to_owned(),
        "/all/recent".to_owned(),
        "/all/documents/1".to_owned(),
        "/accounts/other/recent".to_owned(),
        "/feeds.opml".to_owned(),
        "/stats".to_owned(),
        "/stats.json".to_owned(),
        "/subscriptions.json".to_owned(),
        "/changes.xml".to_owned(),
        "/shortChanges.xml".to_owned(),
        hour,
        "/viewLog".to_owned(),
        "/log.json?limit=1000".to_owned(),
        "/?hub.mode=list&detailed=true".to_owned(),
        format!("/?hub.mode=search&query={WORD}"),
        format!("/?hub.mode=retrieve&hub.topic={}", encoded(topic)),
        format!("/?hub.mode=list&hub.topic={}", encoded(topic)),
        format!("/?hub.mode=retrieve&hub.topic={}", encoded(track)),
    ];
    endpoints.extend(archives(topic, *number));
    endpoints
}

/// What somebody is answered, with a program and with a browser: status, headers and text.
async fn ask(gateway: &Gateway, path: &str, asker: Asker) -> (StatusCode, String) {
    let (mut status, mut texts) = (StatusCode::OK, String::new());
    for accept in ["*/*", "text/html"] {
        let request = client().get(gateway.url(path)).header("accept", accept);
        let request = match asker {
            Asker::Anonymous => request,
            Asker::OtherAccount => request.basic_auth(OTHER.0, Some(OTHER.1)),
            Asker::Owner => request.basic_auth(LOGIN, Some(TOKEN)),
        };
        let answer = request.send().await.unwrap();
        status = answer.status();
        texts.push_str(&format!("{:?}", answer.headers()));
        texts.push_str(&answer.text().await.unwrap());
    }
    (status, texts)
}

/// The doors of a gateway at which something of the feed is shown: its entries, its site, or its
/// address.
async fn open_endpoints(world: &World, gateway: &Gateway, asker: Asker) -> Vec<String> {
    let mut open = Vec::new();
    for endpoint in endpoints(world) {
        let (_, text) = ask(gateway, &endpoint, asker).await;
        // What the asker has said itself may be repeated.
        let says_address = text.contains(PATH) && !endpoint.contains(&encoded(PATH));
        if text.contains("tag:moonbase") || text.contains("moonbase.test") || says_address {
            open.push(endpoint);
        }
    }
    open
}

struct World {
    publisher: Publisher,
    subscriber: Subscriber,
    gateway: Gateway,
    database: Database,
    topic: String,
    track: String,
    /// The number of the feed.
    number: i64,
}

impl World {
    /// A feed inside that only the account of the tests subscribes to. Its newest entries came after
    /// everything was there that could spread them.
    async fn new(database: Database) -> World {
        let store = database.open().await;
        let (login, name, hash) = (OTHER.0.into(), "tests".into(), TokenHash::from_token(OTHER.1));
        let scopes = Scope::ALL.into_iter().filter(|scope| *scope != Scope::Admin).collect();
        let token = NewToken { login, name, scopes, hash, expires_at: None };
        store.create_token(&token, runner::now()).await.unwrap();
        store.close().await;
        let settings = [("FEEDGATE_COLLECT_ALL", "on"), ("FEEDGATE_PAGE_RECORDS", "2")];
        let gateway = Gateway::start(&database, &settings).await;
        let (publisher, subscriber) = (Publisher::start().await, Subscriber::start().await);
        let (topic, track) = (publisher.url(PATH), track_topic(&gateway, WORD));
        publisher.put_rss(PATH, rss(TITLE, 1..3));
        let mut world = World { publisher, subscriber, gateway, database, topic, track, number: 0 };
        let subscriber = world.subscriber.clone();
        let callback = |name: &str| subscriber.url(name);
        world.gateway.subscribe_websub(&world.track, &callback("/track"), &[]).await;
        world
            .gateway
            .subscribe_websub(&world.gateway.url("/all/recent"), &callback("/all"), &[])
            .await;
        assert!(world.other("subscribe", &world.track).await.is_success());
        world.gateway.subscribe_superfeedr(&world.track, &callback("/own-track"), "atom").await;
        world.gateway.subscribe_superfeedr(&world.topic, &callback("/own"), "atom").await;
        world.gateway.archive_holds(&world.topic, &entry_id(TITLE, 2)).await;
        let store = world.database.open().await;
        world.number = store.find(&world.topic).await.unwrap().unwrap().id.0;
        store.close().await;
        world.publish(5).await;
        world.subscriber.until("/own", |told| !told.is_empty()).await;
        found_once(&world.gateway, WORD, &(1..6).map(|n| entry_id(TITLE, n)).collect::<Vec<_>>())
            .await;
        world.gateway.comes_to_rest().await;
        world
    }

    /// Publishes entries, and makes the gateway fetch them as the console does.
    async fn publish(&self, count: usize) {
        self.publisher.put_rss(PATH, rss(TITLE, 1..count + 1));
        let store = self.database.open().await;
        let (name, url, source) = (String::new(), self.topic.clone(), PingSource::Console);
        let ping = Ping { at: runner::now(), source, name, url, feed_url: None };
        store.receive(&ping, std::time::Duration::ZERO).await.unwrap();
        store.close().await;
        self.gateway.archive_holds(&self.topic, &entry_id(TITLE, count)).await;
    }

    /// The other account subscribes, or ends that, with a callback that is never called.
    async fn other(&self, mode: &str, topic: &str) -> StatusCode {
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        let callback = "http://127.0.0.1:9/dev/null";
        let form = [("hub.mode", mode), ("hub.topic", topic), ("hub.callback", callback)];
        let request = client()
            .post(self.gateway.url("/"))
            .basic_auth(OTHER.0, Some(OTHER.1))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body.extend_pairs(form).finish());
        request.send().await.unwrap().status()
    }
}

async fn h04_a_feed_inside_belongs_to_the_accounts_that_subscribe_at_every_door(
    database: Database,
) {
    let world = World::new(database).await;
    let World { gateway, topic, .. } = &world;
    let outside = Gateway::start(&world.database, &[NOBODY, ("FEEDGATE_COLLECT_ALL", "on")]).await;
    for asker in [Asker::Anonymous, Asker::OtherAccount] {
        assert_eq!(open_endpoints(&world, &outside, asker).await, [""; 0], "{asker:?}");
        // The operator's networks see the event log, and no more than others else.
        let mut open = open_endpoints(&world, gateway, asker).await;
        open.retain(|endpoint| endpoint != "/viewLog" && !endpoint.starts_with("/log.json"));
        assert_eq!(open, [""; 0], "{asker:?} in the network of the operator");
    }
    world.subscriber.until("/own-track", |told| !told.is_empty()).await;
    for path in ["/track", "/all"] {
        assert!(world.subscriber.notified(path).is_empty(), "{path}");
    }
    // Its owner reads it everywhere, and no shared cache keeps it.
    let own = open_endpoints(&world, gateway, Asker::Owner).await;
    for endpoint in [archives(topic, 9)[0].as_str(), "/?hub.mode=search&query=text"] {
        assert!(own.iter().any(|open| open == endpoint), "{endpoint} is not among {own:?}");
    }
    let numbered = own.iter().find(|endpoint| endpoint.ends_with("/documents/1"));
    let archived = numbered.unwrap_or_else(|| panic!("no document among {own:?}"));
    let request = client().get(gateway.url(archived)).basic_auth(LOGIN, Some(TOKEN));
    let answer = request.send().await.unwrap();
    let caching = answer.headers()[CACHE_CONTROL].to_str().unwrap().to_owned();
    assert!(caching.starts_with("private"), "{caching}");
    assert!(!answer.text().await.unwrap().contains("rel=\"hub\""), "nobody else may subscribe");
    // A document that was read by its owner is not served to others from memory.
    assert_eq!(gateway.get(archived).await.0, StatusCode::NOT_FOUND);
    // The archive is a topic for its owner only.
    let recent = gateway.url(&archived.replace("/documents/1", "/recent"));
    world.other("subscribe", &recent).await;
    assert_eq!(open_endpoints(&world, &outside, Asker::OtherAccount).await, [""; 0]);
    gateway.subscribe_superfeedr(&recent, &world.subscriber.url("/alias"), "atom").await;
    // What a stranger subscribes to is for everybody.
    gateway.subscribe_websub(topic, &world.subscriber.url("/stranger"), &[]).await;
    let open = open_endpoints(&world, gateway, Asker::Anonymous).await;
    for endpoint in [&archives(topic, 9)[0], archived] {
        assert!(open.iter().any(|open| open == endpoint), "{endpoint} is not among {open:?}");
    }
    world.publish(6).await;
    for path in ["/track", "/all", "/stranger"] {
        world.subscriber.until(path, |told| !told.is_empty()).await;
    }
}

async fn h04_strangers_are_answered_as_if_nobody_watched_what_belongs_to_an_account(
    database: Database,
) {
    let world = World::new(database).await;
    let World { gateway, topic, publisher, .. } = &world;
    publisher.put_rss("/free/rss", rss("free", 1..3));
    let unknown = publisher.url("/free/rss");
    let answers = async |address: &str, number: i64| {
        let mut answers = Vec::new();
        for path in archives(address, 9).into_iter().take(2) {
            answers.push(ask(gateway, &path, Asker::Anonymous).await.0);
        }
        for end in ["", "/recent", "/documents/1"] {
            answers
                .push(ask(gateway, &format!("/feeds/{number}{end}"), Asker::OtherAccount).await.0);
        }
        let mut texts = Vec::new();
        for (path, name) in
            [("/ping", "url"), ("/rsscloud/ping", "url"), ("/hub", "hub.url"), ("/", "hub.url")]
        {
            let form = [("hub.mode", "publish"), (name, address)];
            let (status, text) = gateway.post(path, &form).await;
            answers.push(status);
            texts.push(text.replace(address, "TOPIC"));
        }
        (answers, texts)
    };
    assert_eq!(answers(topic, world.number).await, answers(&unknown, 9_999).await);
    let details = async || {
        let store = world.database.open().await;
        let wanted = EventFilter { kind: Some(EventKind::Ping), ..EventFilter::default() };
        let events = store.events(&wanted).await.unwrap().events;
        store.close().await;
        events.into_iter().map(|kept| kept.event.detail).collect::<Vec<_>>()
    };
    until("all pings are in the log", async || details().await.len() == 8).await;
    assert_eq!(details().await, ["ping received"; 8]);
}

/// Stores a subscription to a topic on the public internet, and a poll that found an entry.
async fn watch(store: &Arc<Store>, topic: &str, account: Option<AccountId>) {
    let request = SubscriptionRequest {
        account,
        format: Format::Atom,
        statuses: Statuses::default(),
        ..SubscriptionRequest::new(
            Topic::parse(topic).unwrap(),
            Callback::parse("https://reader.test/dev/null").unwrap(),
            Protocol::WebSub,
        )
    };
    let now = runner::now();
    let id = store.subscribe(&request, now).await.unwrap().id.resource;
    let later = now + std::time::Duration::from_secs(3_600);
    let mut found = poll(now, &["tag:free.test,2026:1"]);
    (found.next_fetch, found.source_network) = (later, Some(SourceNetwork::Public));
    store.record(id, &found).await.unwrap();
}

async fn h09_an_address_that_only_an_account_subscribes_to_is_in_no_list(database: Database) {
    // The first are seen to be secret by their words; of the others nobody could know it.
    let told_by_words = [
        "feed?pass=k3y",
        "feed?pwd=k3y",
        "feed?sig=k3y",
        "feed?rss_key=k3y",
        "feed?jwt=k3y",
        "feed?session=k3y",
        "private-0k3y/basic.ics",
    ];
    let others = ["feed?u=k3y", "k3y/feed", "s/k3y.xml", "feed?q=1&k3y"];
    let public = "https://feeds.test/known";
    let gateway = Gateway::start(&database, &[NOBODY]).await; // makes the account
    drop(gateway);
    let settings = StoreSettings { listed: ListedTopics::Open, ..database.settings() };
    let store = store::open(&settings).await.unwrap();
    for path in told_by_words.iter().chain(&others) {
        watch(&store, &format!("https://feeds.test/{path}"), Some(AccountId(1))).await;
    }
    watch(&store, public, None).await;
    store.close().await;
    let lists = [
        "/feeds.opml",
        "/stats",
        "/stats.json",
        "/subscriptions.json",
        "/changes.xml",
        "/shortChanges.xml",
        "/log.json",
        "/viewLog",
        "/",
    ];
    for (settings, lists_accounts) in
        [(&[NOBODY][..], false), (&[], false), (&[("FEEDGATE_LIST_ACCOUNT_FEEDS", "on")], true)]
    {
        let gateway = Gateway::start(&database, settings).await;
        let mut text = String::new();
        for list in lists {
            text.push_str(&ask(&gateway, list, Asker::Anonymous).await.1);
        }
        assert!(text.contains(public), "{text}");
        assert_eq!(text.contains("k3y"), lists_accounts, "{settings:?}: {text}");
        for path in told_by_words {
            assert!(!text.contains(path), "{path}, {settings:?}");
        }
        // Whoever knows the address of an unlisted feed reads it, unless it is told to be secret.
        for (path, want) in [(others[0], StatusCode::OK), (told_by_words[0], StatusCode::NOT_FOUND)]
        {
            let archive = &archives(&format!("https://feeds.test/{path}"), 9)[0];
            assert_eq!(ask(&gateway, archive, Asker::Anonymous).await.0, want, "{path}");
        }
    }
}
