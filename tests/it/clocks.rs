//! Clocks that are set, of nodes and of the database, while a gateway runs and while it does not (E3): what is
//! due is not delayed by as much, no lease ends, and nothing is sent out of order.

use http::StatusCode;

use crate::store::on_both_stores;
use crate::support::clock::Clock;
use crate::support::feeds::{entry_id, entry_ids, rss};
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::subscriber::{Behavior, Subscriber};
use crate::support::until;

on_both_stores!(
    e03_a_clock_that_is_set_delays_nothing_and_ends_no_lease,
    e03_a_clock_that_was_set_while_nothing_ran_delays_nothing,
    e03_a_clock_that_is_set_again_while_due_times_move_moves_them_back,
);

const HOUR_S: i64 = 3_600;
const FEED: &str = "/feed.xml";
/// The callbacks of a subscription without a lease, and of one that lasts an hour.
const CALLBACK: &str = "/callback";
const LEASED: &str = "/leased";
/// A claim must outlast a request, and whoever is killed holds its claims so long.
const SETTINGS: [(&str, &str); 3] = [
    ("FEEDGATE_JOB_LEASE_S", "2"),
    ("FEEDGATE_FETCH_TIMEOUT_S", "1"),
    ("FEEDGATE_DELIVERY_TIMEOUT_S", "1"),
];

async fn e03_a_clock_that_is_set_delays_nothing_and_ends_no_lease(database: Database) {
    let scene = Scene::start(database.kind()).await;
    scene.fail_to_deliver(1).await;
    scene.set_clock(-HOUR_S).await;
    scene.repeat_delivery(1).await;
    scene.deliver(2).await;

    scene.fail_to_deliver(3).await;
    scene.set_clock(5 * HOUR_S).await;
    scene.repeat_delivery(3).await;
    scene.deliver(4).await;
    scene.is_sent_to(LEASED, 4).await;

    scene.fail_to_deliver(5).await;
    scene.set_clock(-HOUR_S).await;
    scene.repeat_delivery(5).await;
    scene.deliver(6).await;
    scene.is_sent_to(LEASED, 6).await;
    scene.was_sent_all_in_order(6);
}

async fn e03_a_clock_that_was_set_while_nothing_ran_delays_nothing(database: Database) {
    let mut scene = Scene::start(database.kind()).await;
    scene.fail_to_deliver(1).await;
    scene.restart_with_clock(-HOUR_S).await;
    scene.repeat_delivery(1).await;
    scene.deliver(2).await;
    scene.restart_with_clock(5 * HOUR_S).await;
    scene.deliver(3).await;
    scene.fail_to_deliver(4).await;
    scene.restart_with_clock(-HOUR_S).await;
    scene.repeat_delivery(4).await;
    scene.deliver(5).await;
    scene.was_sent_all_in_order(5);
}

async fn e03_a_clock_that_is_set_again_while_due_times_move_moves_them_back(database: Database) {
    let scene = Scene::start(database.kind()).await;
    let _other = match database.kind() {
        Kind::Postgres => Some(Gateway::start(&scene.database, &SETTINGS).await),
        Kind::Sqlite => None,
    };
    scene.deliver(1).await;
    let planned = scene.next_fetch().await;
    for hours in [-1, 3, -2] {
        scene.begin_to_set_clock(hours * HOUR_S).await;
        scene.set_clock(0).await;
    }
    let is_as_planned = async || (scene.next_fetch().await - planned).abs() < 3_000_000;
    until("the next fetch is planned as before", is_as_planned).await;
    scene.deliver(2).await;
    scene.is_sent_to(LEASED, 2).await;
    scene.was_sent_all_in_order(2);
}

#[tokio::test(flavor = "multi_thread")]
async fn e03_the_clock_of_a_node_delays_nothing() {
    let clock = Clock::new().expect(NO_FAKETIME);
    clock.set(300);
    let variables = clock.variables();
    let mut scene = Scene::start_with(Database::new(Kind::Postgres).await, None, &variables).await;
    scene.fail_to_deliver(1).await;
    clock.set(-HOUR_S);
    scene.repeat_delivery(1).await;

    clock.set(300);
    scene.fail_to_deliver(2).await;
    let healthy = Gateway::start(&scene.database, &SETTINGS).await;
    std::mem::replace(&mut scene.gateway, healthy).kill();
    scene.repeat_delivery(2).await;
    scene.deliver(3).await;
    scene.was_sent_all_in_order(3);
}

/// A node that cannot read the clock of the database while it is set back, and would take a ping for an hour later.
#[tokio::test(flavor = "multi_thread")]
async fn e03_a_node_that_cannot_read_the_clock_stores_nothing_by_the_time_before() {
    let mut scene = Scene::start(Kind::Postgres).await;
    scene.deliver(1).await;
    let healthy_url = scene.database.url.clone();
    scene.database.url.push_str(&format!("&application_name={CUT_OFF}"));
    let cut_off = Gateway::start(&scene.database, &SETTINGS).await;
    scene.database.url = healthy_url;

    scene.database.run("update set_by set divisor = 0").await;
    let topic = scene.publisher.url(FEED);
    let ping = async || cut_off.post("/ping", &[("url", &topic)]).await.0;
    assert_eq!(ping().await, StatusCode::OK, "the clock was not set");
    scene.set_clock(-HOUR_S).await;
    scene.publish(2);
    assert_eq!(ping().await, StatusCode::SERVICE_UNAVAILABLE);

    scene.database.run("update set_by set divisor = 1").await;
    until("a ping is stored", async || ping().await == StatusCode::OK).await;
    scene.is_sent_to(CALLBACK, 2).await;
    scene.was_sent_all_in_order(2);
}

/// A request whose transaction is committed for so long that due times would have moved meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn e03_what_is_committed_while_the_clock_is_set_back_is_due_by_the_clock_of_now() {
    let scene = Scene::start(Kind::Postgres).await;
    let slow = "
        create function commit_slowly() returns trigger language plpgsql as
            'begin perform pg_sleep(4); return null; end';
        create constraint trigger slow after insert on intents
            deferrable initially deferred for each row execute function commit_slowly()";
    scene.database.run(slow).await;
    let (topic, callback) = (scene.publisher.url(FEED), scene.subscriber.url("/late"));
    let form = [("hub.mode", "subscribe"), ("hub.topic", &*topic), ("hub.callback", &*callback)];
    let set_meanwhile = async {
        let committing = "
            select 'committing' from pg_stat_activity where query ilike 'commit%' and wait_event = 'PgSleep'";
        until("it commits", async || !scene.database.texts(committing).await.is_empty()).await;
        scene.set_clock(-HOUR_S).await;
    };
    let ((status, text), ()) = tokio::join!(scene.gateway.post("/hub", &form), set_meanwhile);
    assert_eq!(status, StatusCode::ACCEPTED, "{text}");
    scene.subscriber.verified("/late", 1).await;
}

/// The name of a node that may be prevented from reading the clock of the database.
const CUT_OFF: &str = "cut-off";
const NO_FAKETIME: &str = "libfaketime is installed by tests/run (Debian: faketime)";

/// A gateway, a feed, and callbacks that are told of it.
struct Scene {
    database: Database,
    /// The clock of the machine, which is that of SQLite; `None`: PostgreSQL has its own.
    clock: Option<Clock>,
    gateway: Gateway,
    publisher: Publisher,
    subscriber: Subscriber,
}

impl Scene {
    /// One whose database has a clock that can be set.
    async fn start(kind: Kind) -> Scene {
        let mut database = Database::bare_with_cells(kind, 1).await;
        if kind == Kind::Sqlite {
            let clock = Clock::new().expect(NO_FAKETIME);
            let variables = clock.variables();
            return Scene::start_with(database, Some(clock), &variables).await;
        }
        // This function is found before that of the system.
        database.url.push_str("%2Cpg_catalog");
        database.open().await.close().await;
        let set = format!(
            "create table set_by (seconds bigint not null, divisor bigint not null);
             insert into set_by values (0, 1);
             create function statement_timestamp() returns timestamptz language sql stable as
             'select pg_catalog.statement_timestamp() + seconds * interval ''1 second''
                     / case current_setting(''application_name'') when ''{CUT_OFF}'' then divisor else 1 end
                from set_by'"
        );
        database.run(&set).await;
        Scene::start_with(database, None, &[]).await
    }

    async fn start_with(
        database: Database,
        clock: Option<Clock>,
        variables: &[(&str, String)],
    ) -> Scene {
        let mut settings = SETTINGS.to_vec();
        settings.extend(variables.iter().map(|(name, value)| (*name, value.as_str())));
        let gateway = Gateway::start(&database, &settings).await;
        let (publisher, subscriber) = (Publisher::start().await, Subscriber::start().await);
        let scene = Scene { database, clock, gateway, publisher, subscriber };
        scene.publish(0);
        let topic = scene.publisher.url(FEED);
        let callback = scene.subscriber.url(CALLBACK);
        scene.gateway.subscribe_superfeedr(&topic, &callback, "atom").await;
        let lease = [("hub.lease_seconds", "3600")];
        scene.gateway.subscribe_websub(&topic, &scene.subscriber.url(LEASED), &lease).await;
        scene.gateway.archive_holds(&topic, &entry_id("feed", 0)).await;
        scene
    }

    /// Sets the clock of the database, and waits until the gateway has followed.
    async fn set_clock(&self, seconds: i64) {
        let count = self.times_set().await;
        self.set_database_clock(seconds).await;
        until("due times are moved", async || self.times_set().await > count).await;
    }

    /// Sets the clock of the database, and waits until a gateway has noticed, and has yet to move due times.
    async fn begin_to_set_clock(&self, seconds: i64) {
        let count = self.times_noticed().await;
        self.set_database_clock(seconds).await;
        until("the step is noticed", async || self.times_noticed().await > count).await;
    }

    async fn set_database_clock(&self, seconds: i64) {
        match &self.clock {
            Some(clock) => clock.set(seconds),
            None => self.database.run(&format!("update set_by set seconds = {seconds}")).await,
        }
    }

    async fn restart_with_clock(&mut self, seconds: i64) {
        self.gateway.kill();
        self.set_database_clock(seconds).await;
        self.gateway.restart().await;
    }

    /// How often the gateway has moved all due times.
    async fn times_set(&self) -> i64 {
        let moved = "select cast(generation - is_moving as text) from clocks";
        self.database.texts(moved).await[0].parse().unwrap()
    }

    /// How often the gateway has noticed that the clock was set.
    async fn times_noticed(&self) -> i64 {
        let noticed = "select cast(generation as text) from clocks";
        self.database.texts(noticed).await[0].parse().unwrap()
    }

    /// When the feed is polled next, in microseconds.
    async fn next_fetch(&self) -> i64 {
        let planned = "select cast(max(next_fetch) as text) from resources";
        self.database.texts(planned).await[0].parse().unwrap()
    }

    /// Publishes all entries up to `newest`.
    fn publish(&self, newest: usize) {
        self.publisher.put_rss(FEED, rss("feed", 0..newest + 1));
    }

    async fn publish_and_ping(&self, newest: usize) {
        self.publish(newest);
        self.gateway.post("/ping", &[("url", &self.publisher.url(FEED))]).await;
    }

    /// Publishes an entry, which is delivered.
    async fn deliver(&self, entry: usize) {
        self.publish_and_ping(entry).await;
        self.is_sent_to(CALLBACK, entry).await;
        self.gateway.comes_to_rest().await;
    }

    /// Publishes an entry, of which a first attempt to deliver fails.
    async fn fail_to_deliver(&self, entry: usize) {
        self.subscriber.set(CALLBACK, Behavior::Failing(500));
        self.publish_and_ping(entry).await;
        self.is_sent_to(CALLBACK, entry).await;
        let failed = "select 'failed' from subscriptions where failures > 0";
        until("the failure is stored", async || !self.database.texts(failed).await.is_empty())
            .await;
    }

    /// Waits for another attempt to deliver this entry.
    async fn repeat_delivery(&self, entry: usize) {
        self.subscriber.set(CALLBACK, Behavior::Accepting);
        let before = self.subscriber.notified(CALLBACK).len();
        self.subscriber.until(CALLBACK, |told| told.len() > before).await;
        self.is_sent_to(CALLBACK, entry).await;
    }

    async fn is_sent_to(&self, callback: &str, entry: usize) {
        let id = entry_id("feed", entry);
        let has = |text: String| entry_ids(&text).contains(&id);
        self.subscriber.until(callback, |told| told.iter().any(|told| has(told.text()))).await;
    }

    /// Every entry was sent to the callback, and none after a newer one.
    fn was_sent_all_in_order(&self, newest: usize) {
        let told = self.subscriber.notified(CALLBACK);
        let mut ids: Vec<String> = told.iter().flat_map(|told| entry_ids(&told.text())).collect();
        ids.dedup();
        let want: Vec<String> = (1..=newest).map(|n| entry_id("feed", n)).collect();
        assert_eq!(ids, want);
    }
}
