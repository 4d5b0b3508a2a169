//! A publisher with one feed, a subscriber, and a gateway between them.

use http::StatusCode;

use super::feeds::rss;
use super::gateway::Gateway;
use super::postgres::{Database, Kind};
use super::publisher::Publisher;
use super::subscriber::Subscriber;

/// All of them, on a database of its own.
pub(crate) struct World {
    pub(crate) publisher: Publisher,
    pub(crate) subscriber: Subscriber,
    pub(crate) gateway: Gateway,
    /// The address of the feed.
    pub(crate) topic: String,
    pub(crate) database: Database,
}

impl World {
    /// One whose publisher has the first `items` items of the feed `tides`, and whose gateway
    /// has these settings.
    pub(crate) async fn with_tides(items: usize, settings: &[(&str, &str)]) -> World {
        let publisher = Publisher::start().await;
        let database = Database::new(Kind::Sqlite).await;
        let gateway = Gateway::start(&database, settings).await;
        let world = World::between(publisher, gateway, database).await;
        world.put_tides(items);
        world
    }

    /// One whose gateway hubs and clouds can reach.
    pub(crate) async fn reachable() -> World {
        let publisher = Publisher::start().await;
        let database = Database::new(Kind::Sqlite).await;
        let gateway = Gateway::start_reachable(&database).await;
        World::between(publisher, gateway, database).await
    }

    /// The same, about another topic of its publisher.
    pub(crate) fn about(self, path: &str) -> World {
        World { topic: self.publisher.url(path), ..self }
    }

    /// One with this gateway, and without a feed.
    pub(crate) async fn on(database: Database, gateway: Gateway) -> World {
        World::between(Publisher::start().await, gateway, database).await
    }

    async fn between(publisher: Publisher, gateway: Gateway, database: Database) -> World {
        let subscriber = Subscriber::start().await;
        let topic = publisher.url("/feed");
        World { publisher, subscriber, gateway, topic, database }
    }

    /// Makes the feed hold the items 1 to `items`, and pings.
    pub(crate) async fn publish_tides(&self, items: usize) {
        self.put_tides(items);
        let (status, text) = self.gateway.post("/ping", &[("url", &self.topic)]).await;
        assert!(status == StatusCode::OK && text.contains("success=\"true\""), "{text}");
    }

    /// Makes the feed hold the items 1 to `items`; tells nobody.
    pub(crate) fn put_tides(&self, items: usize) {
        self.publisher.put_rss("/feed", rss("tides", 1..items + 1));
    }
}
