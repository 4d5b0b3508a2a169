//! Names that look public and lead inside a private network (H4): which polls follow them there.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use feedgate::jobs::poll::Poller;
use feedgate::jobs::runner;
use feedgate::net::{self, HttpClient, Lookup};
use feedgate_core::account::AccountId;
use feedgate_core::record::Seq;
use feedgate_core::resource::Resource;
use feedgate_core::subscription::{Format, Statuses, SubscriptionRequest};
use feedgate_core::topic::{Callback, Topic};
use feedgate_core::visibility::SourceNetwork;
use feedgate_protocol::Protocol;
use feedgate_store::Store;

use super::poller;
use crate::store::on_both_stores;
use crate::support::feeds::rss;
use crate::support::origin::{Origin, answer};
use crate::support::postgres::Database;

on_both_stores!(
    h04_a_name_that_leads_inside_is_followed_for_accounts_only,
    h04_a_part_of_a_document_from_inside_is_for_accounts_too,
);

/// Names, and where each of them leads.
#[derive(Debug)]
struct Names(Mutex<HashMap<&'static str, &'static str>>);

#[async_trait]
impl Lookup for Names {
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let names = self.0.lock().unwrap();
        let found = names.get(name).ok_or(io::Error::other("Name or service not known"))?;
        Ok(vec![found.parse().unwrap()])
    }
}

/// A gateway that may fetch topics on this machine.
struct World {
    store: Arc<Store>,
    ingest: Poller,
    origin: Origin,
}

impl World {
    async fn start(database: &Database, names: &[(&'static str, &'static str)]) -> World {
        let names = Names(Mutex::new(names.iter().copied().collect()));
        let settings = net::NetworkSettings {
            user_agent: "feedgate/0.0 (+https://gateway.test/".to_owned(),
            allow_topics: vec!["127.0.0.0/8".parse().unwrap()],
            allow_callbacks: Vec::new(),
            fetch_timeout: std::time::Duration::from_secs(30),
            callback_timeout: std::time::Duration::from_secs(10),
            body_limit_bytes: 10_000_000,
            host_spacing: std::time::Duration::ZERO,
            fetch_concurrency: 64,
            document_memory_bytes: 1 << 30,
        };
        let store = database.open().await;
        let ingest = poller(&store, HttpClient::with_lookup(settings, Arc::new(names)));
        World { store, ingest, origin: Origin::start().await }
    }

    async fn subscribe(&self, topic: &str, account: Option<AccountId>) {
        let callback = format!("https://b.test/{}", account.map_or(0, |account| account.0));
        let request = SubscriptionRequest {
            account,
            format: Format::Atom,
            statuses: Statuses::default(),
            ..SubscriptionRequest::new(
                Topic::parse(topic).unwrap(),
                Callback::parse(callback).unwrap(),
                Protocol::WebSub,
            )
        };
        self.store.subscribe(&request, runner::now()).await.unwrap();
    }

    async fn poll(&self, topic: &str) -> Resource {
        self.poll_with(&self.ingest, topic).await
    }

    async fn poll_with(&self, ingest: &Poller, topic: &str) -> Resource {
        let topic = Topic::parse(topic).unwrap();
        let resource = self.store.ensure(&topic, runner::now()).await.unwrap();
        ingest.poll_now(&resource).await.unwrap().resource
    }
}

/// Asserts that nothing was read of a resource, and that its status says why.
fn assert_refused(resource: &Resource, name: &str) {
    let Resource { status, head, exposure, .. } = resource;
    assert_eq!((status.error.as_str(), *head), ("forbidden_address", Seq::NONE));
    assert!(status.http_message.contains(name), "{}", status.http_message);
    assert_eq!(status.title, "");
    // The name may lead out again, and strangers then receive what is public.
    assert_eq!(exposure.source_network, SourceNetwork::Unknown);
}

async fn h04_a_name_that_leads_inside_is_followed_for_accounts_only(database: Database) {
    let world = World::start(&database, &[("feeds.example.org", "127.0.0.1")]).await;
    let document = rss("wages", 1..=3);
    for path in ["/feed", "/other"] {
        world.origin.script(path, [answer("200 OK", &[], &document)]);
    }
    let topic = world.origin.url_as("feeds.example.org", "/feed");
    world.subscribe(&topic, None).await;
    assert_refused(&world.poll(&topic).await, "feeds.example.org");
    assert_eq!(world.origin.connections(), 0, "not even a request arrives inside");

    world.subscribe(&topic, Some(AccountId(7))).await;
    let resource = world.poll(&topic).await;
    assert_eq!((resource.status.error.as_str(), resource.head), ("", Seq(3)));
    assert_eq!(resource.exposure.source_network, SourceNetwork::Inner);

    // The first fetch for an account comes before its subscription.
    let other = world.origin.url_as("feeds.example.org", "/other");
    let resource = world.poll_with(&world.ingest.for_account(true), &other).await;
    assert_eq!(resource.head, Seq(3));
}

async fn h04_a_part_of_a_document_from_inside_is_for_accounts_too(database: Database) {
    let world = World::start(&database, &[("feeds.example.org", "127.0.0.1")]).await;
    let page = "<html><body><p id='news'>wages</p><p id='list'>names</p></body></html>";
    world.origin.script("/page", [answer("200 OK", &["Content-Type: text/html"], page)]);
    // A topic that names this machine itself was named by somebody on it.
    let here = world.origin.url_as("127.0.0.1", "/page");
    world.subscribe(&here, None).await;
    assert_eq!(world.poll(&here).await.status.error, "");
    // One document, one part for an account and one for a stranger.
    let whole = world.origin.url_as("feeds.example.org", "/page");
    let (mine, theirs) = (format!("{whole}#news"), format!("{whole}#list"));
    world.subscribe(&mine, Some(AccountId(7))).await;
    world.subscribe(&theirs, None).await;
    assert_eq!(world.poll(&mine).await.exposure.source_network, SourceNetwork::Inner);
    let requests = world.origin.requests().len();
    assert_refused(&world.poll(&theirs).await, "feeds.example.org");
    assert_eq!(world.origin.requests().len(), requests);
}
