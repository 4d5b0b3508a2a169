//! When a poll reads who watches its resource.

use std::sync::Arc;
use std::time::Duration;

use feedgate::event_log::EventLog;
use feedgate::jobs::poll::{PollSettings, Poller};
use feedgate::jobs::runner;
use feedgate::metrics::Metrics;
use feedgate::net::{HttpClient, NetworkSettings, Patience};
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::topic::Topic;

use super::settings;
use crate::store::on_both_stores;
use crate::support::postgres::Database;

on_both_stores!(h20_who_watches_is_read_only_where_it_decides_something);

async fn h20_who_watches_is_read_only_where_it_decides_something(database: Database) {
    let store = database.open().await;
    let network = RegistrantNetwork::from_client(Some([192, 0, 2, 1].into()));
    let topic = Topic::parse("https://feeds.test/a").unwrap();
    let named = store.ensure_for(&topic, network, runner::now()).await.unwrap();
    let (mut read, mut failing) = (named.clone(), named.clone());
    "https://feeds.test/a".clone_into(&mut read.polling.validators.url);
    (failing.polling.validators, failing.polling.failures) = (read.polling.validators.clone(), 1);
    let poller = |fetch| {
        let settings = PollSettings {
            claim: Duration::from_secs(60),
            min_period_s: 60,
            porn_rank: false,
            upstream_url: None,
        };
        Poller::new(Arc::clone(&store), fetch, Metrics::new(), EventLog::off(), settings)
    };
    let nowhere_inside = NetworkSettings { allow_topics: Vec::new(), ..settings() };
    let public = poller(HttpClient::new(nowhere_inside));
    let with_inner = poller(HttpClient::new(settings()));
    let (scheduled, requested) = (Patience::Background, Patience::FirstFetch);
    let cases = [
        ("read at the last poll", &public, &read, scheduled, false),
        ("never read", &public, &named, scheduled, true),
        ("failing", &public, &failing, scheduled, true),
        ("somebody waits", &public, &read, requested, true),
        ("a stranger waits", &public.for_anonymous(network), &named, requested, false),
        ("inner topics", &with_inner, &read, scheduled, true),
        (
            "inner topics, a stranger waits",
            &with_inner.for_anonymous(network),
            &read,
            requested,
            true,
        ),
    ];
    for (why, poller, resource, patience, _) in &cases {
        let client = poller.client_for_poll(resource, *patience).await.unwrap();
        let is_public = client.reaches_public_topics_only();
        assert!(
            is_public || !client.has_inner_topics_for_some(),
            "{why}: only accounts reach inside"
        );
    }
    store.close().await;
    for (why, poller, resource, patience, reads) in &cases {
        let client = poller.client_for_poll(resource, *patience).await;
        assert_eq!(client.is_err(), *reads, "{why}");
    }
}
