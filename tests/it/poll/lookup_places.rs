//! Who looks up the names that strangers give: never what accounts wait for.

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use feedgate::event_log::EventLog;
use feedgate::jobs::runner;
use feedgate::metrics::Metrics;
use feedgate::net::{HttpClient, Lookup, NetworkSettings, Patience};
use feedgate::subscriptions::SubscriptionService;
use feedgate::subscriptions::cancellation::Cancelled;
use feedgate_core::poll::Trigger;
use feedgate_core::store::DueResource;
use feedgate_core::subscription::SubscriptionRequest;
use feedgate_core::topic::{Callback, Topic};
use feedgate_protocol::Protocol;

use super::poller;
use crate::store::on_both_stores;
use crate::support::postgres::Database;

on_both_stores!(h13_names_of_strangers_are_looked_up_in_their_places);

const TOPIC: &str = "http://feeds.example.org/feed";

/// A resolver for which no name exists.
#[derive(Debug, Default)]
struct Nowhere(Mutex<Vec<String>>);

impl Nowhere {
    fn take_names(&self) -> Vec<String> {
        let mut names = std::mem::take(&mut *self.0.lock().unwrap());
        names.dedup();
        names
    }
}

#[async_trait]
impl Lookup for Nowhere {
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        self.0.lock().unwrap().push(name.to_owned());
        Err(io::Error::other("Name or service not known"))
    }
}

async fn h13_names_of_strangers_are_looked_up_in_their_places(database: Database) {
    let (known, others) = (Arc::<Nowhere>::default(), Arc::<Nowhere>::default());
    let settings = NetworkSettings {
        user_agent: "feedgate/0.0 (+https://gateway.test/".to_owned(),
        allow_topics: Vec::new(),
        allow_callbacks: Vec::new(),
        fetch_timeout: Duration::from_secs(30),
        callback_timeout: Duration::from_secs(10),
        body_limit_bytes: 1_000_000,
        host_spacing: Duration::ZERO,
        fetch_concurrency: 4,
        document_memory_bytes: 1 << 30,
    };
    let client = HttpClient::with_lookups(settings, known.clone(), others.clone());
    let store = database.open().await;
    let ingest = poller(&store, client.clone());
    let topic = Topic::parse(TOPIC).unwrap();
    let callback = Callback::parse("http://callbacks.example.org/cb").unwrap();
    let request = SubscriptionRequest::new(topic.clone(), callback, Protocol::HttpPost);
    let (subscription, now) =
        (store.subscribe(&request, runner::now()).await.unwrap(), runner::now());

    let until = now + Duration::from_secs(60);
    let claimed = store.claim_resource(subscription.id.resource, now, until).await;
    let due = DueResource { trigger: Trigger::Schedule, ..claimed.unwrap().unwrap() };
    ingest.poll(&due, now, Patience::Background).await.unwrap();
    assert_eq!(
        (known.take_names(), others.take_names()),
        (Vec::new(), vec!["feeds.example.org".to_owned()])
    );

    let (metrics, events) = (Metrics::new(), EventLog::off());
    let service = SubscriptionService::new(Arc::clone(&store), client, ingest, metrics, events);
    let cancelled = Cancelled {
        protocol: Some("http-post".to_owned()),
        domain: Some("callbacks.example.org".to_owned()),
        port: Some("80".to_owned()),
        path: "/cb".to_owned(),
        caller: Some(IpAddr::from([203, 0, 113, 7])),
    };
    service.cancel(&cancelled, &[TOPIC.to_owned()]).await.unwrap_err();
    let want = vec!["callbacks.example.org".to_owned()];
    assert_eq!((known.take_names(), others.take_names()), (Vec::new(), want));
    store.close().await;
}
