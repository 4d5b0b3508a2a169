//! Reading lists: an OPML document that is followed, and the subscriptions that are in step with it.

use chrono::{DateTime, Utc};
use feedgate::jobs::runner;
use feedgate_core::topic::{Callback, Topic};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::path_of;
use crate::store::alerts::account;
use crate::store::on_both_stores;
use crate::support::feeds::{entry_id, rss};
use crate::support::gateway::{Gateway, LOGIN, TOKEN};
use crate::support::postgres::Database;
use crate::support::until;
use crate::support::world::World;

on_both_stores!(
    a36_the_feeds_of_a_list_are_subscribed_to_and_ended_with_it,
    a36_a_list_that_is_empty_broken_or_gone_ends_nothing,
    a36_what_an_account_decides_itself_is_not_changed_by_a_list,
    a36_a_list_is_taken_up_to_the_limits_and_reports_what_was_refused,
    a36_an_account_with_many_lists_keeps_no_other_waiting,
    a36_the_lists_of_a_deactivated_account_are_read_when_it_is_active_again,
);

/// A list with these feeds of the publisher, the last of them in a folder.
fn opml(world: &World, paths: &[&str]) -> String {
    let outline = |path: &&str| {
        format!("<outline type='rss' text='feed' xmlUrl='{}'/>", world.publisher.url(path))
    };
    let (last, others) =
        paths.split_last().map_or((None, paths), |(last, rest)| (Some(last), rest));
    let others: String = others.iter().map(outline).collect();
    let last = last.map(outline).unwrap_or_default();
    format!(
        "<?xml version='1.0'?><opml version='2.0'><head><title>Tides</title></head><body>{others}\
         <outline text='folder'>{last}</outline></body></opml>"
    )
}

impl World {
    /// With a list of the feeds at these paths, each of which has an entry.
    async fn with_list(database: Database, settings: &[(&str, &str)], paths: &[&str]) -> World {
        let gateway = Gateway::start(&database, settings).await;
        let world = World::on(database, gateway).await;
        for path in paths {
            world.publisher.put_rss(path, rss(&path[1..], 1..=1));
        }
        world.put_list(opml(&world, paths));
        world
    }

    fn put_list(&self, document: String) {
        self.publisher.put("/list.opml", "text/x-opml", document);
    }

    /// Changes the list, and waits until it has been read.
    async fn change_list(&self, path: &str, document: String) -> Value {
        let before = self.rest_get(path).await.json["readingList"]["readAt"].clone();
        self.put_list(document);
        let list = self.publisher.url("/list.opml");
        self.gateway.post("/", &[("hub.mode", "publish"), ("hub.url", &list)]).await;
        self.until_read(path, before).await
    }

    async fn until_read(&self, path: &str, before: Value) -> Value {
        until("the list is read", async || {
            let now = &self.rest_get(path).await.json["readingList"]["readAt"];
            now.is_string() && *now != before
        })
        .await;
        self.rest_get(path).await.json["readingList"].clone()
    }

    /// Follows the list, and waits until it has been read; the path of its subscription.
    async fn follow_list(&self) -> String {
        let path = self.follow_list_as(TOKEN, "/cb").await;
        self.until_read(&path, Value::Null).await;
        path
    }

    /// Follows the list with this token and callback; the path of its subscription.
    async fn follow_list_as(&self, token: &str, callback: &str) -> String {
        let list = self.publisher.url("/list.opml");
        let callback = self.subscriber.url(callback);
        let body = json!({ "url": list, "callback": callback, "follow": true });
        let made = self.rest_as(token, Method::POST, "/v1/subscriptions", Some(body)).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.json);
        path_of("subscriptions", &made.json)
    }

    /// When the lists of these subscriptions were read last, as soon as all were read after `before`.
    async fn read_times(
        &self,
        token: &str,
        paths: &[String],
        before: DateTime<Utc>,
    ) -> Vec<DateTime<Utc>> {
        let mut times = Vec::new();
        for path in paths {
            until("the list is read", async || {
                let reply = self.rest_as(token, Method::GET, path, None).await;
                let read_at = reply.json["readingList"]["readAt"].as_str();
                let read_at = read_at.map(|at| at.parse::<DateTime<Utc>>().unwrap());
                times.extend(read_at.filter(|at| *at > before));
                read_at.is_some_and(|at| at > before)
            })
            .await;
        }
        times
    }

    /// The paths of the feeds that are subscribed to, besides the list, and whether that is for the list.
    async fn subscribed_paths(&self) -> Vec<(String, bool)> {
        let listed = self.rest_get("/v1/subscriptions").await.json;
        let root = self.publisher.url("");
        let list = self.publisher.url("/list.opml");
        let items = listed["data"].as_array().unwrap().iter();
        let items = items.filter(|item| item["url"] != list.as_str());
        let mut paths: Vec<_> = items
            .map(|item| {
                let path = item["url"].as_str().unwrap().strip_prefix(root.as_str()).unwrap();
                (path.trim_start_matches('/').to_owned(), item["listedBy"] == list.as_str())
            })
            .collect();
        paths.sort();
        paths
    }

    /// The feeds of the report with this state, with their codes.
    async fn reported(&self, path: &str, state: &str) -> Vec<(String, String)> {
        let reply = self.rest_get(&format!("{path}/reading-list?state={state}")).await;
        assert_eq!(reply.status, StatusCode::OK, "{}", reply.json);
        let feeds = reply.json["data"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        feeds.map(|feed| (text(&feed["url"]), text(&feed["code"]))).collect()
    }
}

fn listed(paths: &[&str]) -> Vec<(String, bool)> {
    paths.iter().map(|path| ((*path).to_owned(), true)).collect()
}

async fn a36_the_feeds_of_a_list_are_subscribed_to_and_ended_with_it(database: Database) {
    let world = World::with_list(database, &[], &["/a", "/b"]).await;
    let path = world.follow_list().await;
    assert_eq!(world.subscribed_paths().await, listed(&["a", "b"]));
    world.publisher.put_rss("/b", rss("b", 1..=2));
    let b = world.publisher.url("/b");
    world.gateway.archive_holds(&b, &entry_id("b", 1)).await;
    world.gateway.post("/", &[("hub.mode", "publish"), ("hub.url", &b)]).await;
    world.subscriber.until("/cb", |told| !told.is_empty()).await;
    let told = world.subscriber.notified("/cb").remove(0);
    assert_eq!(
        told.header("x-pubsubhubbub-topic"),
        Some(b.as_str()),
        "each feed has its own topic"
    );

    world.publisher.put_rss("/c", rss("c", 1..=1));
    let report = world.change_list(&path, opml(&world, &["/b", "/c"])).await;
    assert_eq!(world.subscribed_paths().await, listed(&["b", "c"]));
    let count = |name: &str| report[name].as_u64().unwrap();
    assert_eq!((count("stated"), count("subscribed"), count("removed")), (2, 2, 1), "{report}");
    let removed = world.reported(&path, "removed").await;
    assert_eq!(removed, [(world.publisher.url("/a"), String::new())]);
    assert_eq!(world.reported(&path, "subscribed").await.len(), 2);

    // The options of the list are those of its feeds.
    let changed = world.rest(Method::PATCH, &path, Some(json!({ "format": "atom" }))).await;
    assert_eq!(changed.status, StatusCode::OK, "{}", changed.json);
    until("the options are those of the list", async || {
        let all = world.rest_get("/v1/subscriptions").await.json;
        all["data"].as_array().unwrap().iter().all(|item| item["format"] == "atom")
    })
    .await;

    assert_eq!(world.rest(Method::DELETE, &path, None).await.status, StatusCode::NO_CONTENT);
    until("all has ended", async || world.subscribed_paths().await.is_empty()).await;
    world.gateway.comes_to_rest().await;
}

async fn a36_a_list_that_is_empty_broken_or_gone_ends_nothing(database: Database) {
    let world = World::with_list(database, &[], &["/a", "/b"]).await;
    let path = world.follow_list().await;
    let whole = opml(&world, &["/a", "/b"]);
    let shorter = opml(&world, &["/a"]);
    #[rustfmt::skip]
    let cases = [
        ("empty",       opml(&world, &[]),                              "states no feeds"),
        ("cut off",     whole[..whole.len() - 30].to_owned(),           "not well-formed"),
        ("broken",      shorter.replace("</outline>", ""),              "not well-formed"),
        ("another one", "<html><body><p>Sorry</p></body></html>".into(), "not OPML"),
    ];
    for (why, document, problem) in cases {
        let report = world.change_list(&path, document).await;
        assert!(report["problem"].as_str().unwrap().contains(problem), "{why}: {report}");
        assert_eq!(world.subscribed_paths().await, listed(&["a", "b"]), "{why}");
    }
    world.publisher.fail("/list.opml", StatusCode::GONE);
    let list = world.publisher.url("/list.opml");
    world.gateway.post("/", &[("hub.mode", "publish"), ("hub.url", &list)]).await;
    until("the list is gone", async || {
        world.rest_get(&path).await.json["feed"]["status"]["code"] == 410
    })
    .await;
    assert_eq!(world.subscribed_paths().await, listed(&["a", "b"]));
    let report = world.change_list(&path, shorter).await;
    assert_eq!((&report["problem"], &report["removed"]), (&Value::Null, &1.into()), "{report}");
    assert_eq!(world.subscribed_paths().await, listed(&["a"]));
}

async fn a36_what_an_account_decides_itself_is_not_changed_by_a_list(database: Database) {
    let world = World::with_list(database, &[], &["/own", "/taken", "/ended", "/rest"]).await;
    let subscribe = async |path: &str| {
        let (url, callback) = (world.publisher.url(path), world.subscriber.url("/cb"));
        let body = json!({ "url": url, "callback": callback, "format": "atom" });
        world.rest_post("/v1/subscriptions", body).await.json
    };
    subscribe("/own").await;
    let path = world.follow_list().await;
    assert_eq!(world.reported(&path, "existing").await.len(), 1);
    let taken = subscribe("/taken").await;
    assert!(taken.get("listedBy").is_none(), "{taken}");
    let all = world.rest_get("/v1/subscriptions").await.json;
    let ended = world.publisher.url("/ended");
    let ended = all["data"].as_array().unwrap().iter().find(|item| item["url"] == ended.as_str());
    let ended = path_of("subscriptions", ended.unwrap());
    assert_eq!(world.rest(Method::DELETE, &ended, None).await.status, StatusCode::NO_CONTENT);

    let mut want = listed(&["own", "rest", "taken"]);
    (want[0].1, want[2].1) = (false, false);
    world.change_list(&path, opml(&world, &["/rest", "/own", "/taken", "/ended"])).await;
    assert_eq!(world.subscribed_paths().await, want);
    assert_eq!(world.reported(&path, "ended").await.len(), 1);
    assert_eq!(world.reported(&path, "existing").await.len(), 2);
    world.change_list(&path, opml(&world, &["/rest"])).await;
    assert_eq!(world.subscribed_paths().await, want);
    let body = json!({ "url": world.publisher.url("/list.opml"), "callback": world.subscriber.url("/cb"),
                       "follow": false });
    assert_eq!(world.rest_post("/v1/subscriptions", body).await.status, StatusCode::OK);
    want.remove(1);
    until("the list has ended", async || world.subscribed_paths().await == want).await;
    let none = world.rest_get(&format!("{path}/reading-list")).await;
    assert_eq!(none.problem(), (404, "no_reading_list", ""));
}

async fn a36_a_list_is_taken_up_to_the_limits_and_reports_what_was_refused(database: Database) {
    let quota = [("FEEDGATE_SUBSCRIPTIONS_PER_ACCOUNT", "3")];
    let world = World::with_list(database, &quota, &["/a", "/b"]).await;
    let outline = |url: &str| format!("<outline text='feed' xmlUrl='{url}'/>");
    let refused = ["http://10.11.12.13/feed", "ftp://a.test/", "/relative"].map(outline).concat();
    let many: String =
        (0..2_100).map(|n| outline(&world.publisher.url(&format!("/n{n}")))).collect();
    let list =
        opml(&world, &["/a", "/a", "/b"]).replace("</body>", &format!("{refused}{many}</body>"));
    world.put_list(list);
    let path = world.follow_list().await;
    assert_eq!(world.subscribed_paths().await, listed(&["a", "b"]));
    let report = world.rest_get(&path).await.json["readingList"].clone();
    let count = |name: &str| report[name].as_u64().unwrap();
    assert_eq!((count("stated"), count("omitted")), (2_105, 105), "{report}");
    assert_eq!((count("subscribed"), count("refused")), (2, 1_998), "{report}");
    let codes: Vec<_> =
        world.reported(&path, "refused").await.into_iter().map(|(_, code)| code).collect();
    assert_eq!(codes[..4], ["forbidden_address", "bad_topic", "bad_topic", "account_quota"]);
    let page = world.rest_get(&format!("{path}/reading-list?limit=2")).await;
    assert!(page.json["nextCursor"].is_string(), "{}", page.json);
    let wrong = world.rest_get(&format!("{path}/reading-list?state=good")).await;
    assert_eq!(wrong.problem(), (422, "invalid_parameter", "state"));
}

async fn a36_an_account_with_many_lists_keeps_no_other_waiting(database: Database) {
    let world = World::with_list(database, &[], &["/a"]).await;
    let other = world.create_token("other", "subscribe list").await;
    let mut many = Vec::new();
    for number in 0..30 {
        many.push(world.follow_list_as(TOKEN, &format!("/cb?{number}")).await);
    }
    let one = [world.follow_list_as(&other, "/cb").await];
    let mut before = world.read_times(TOKEN, &many, DateTime::UNIX_EPOCH).await;
    before.extend(world.read_times(&other, &one, DateTime::UNIX_EPOCH).await);
    let before = before.into_iter().max().unwrap();

    world.put_list(opml(&world, &["/a", "/b"]));
    let list = world.publisher.url("/list.opml");
    world.gateway.post("/", &[("hub.mode", "publish"), ("hub.url", &list)]).await;
    let of_other = world.read_times(&other, &one, before).await.remove(0);
    let of_many = world.read_times(TOKEN, &many, before).await;
    let earlier = of_many.iter().filter(|read_at| **read_at < of_other).count();
    assert!(earlier <= 2, "{earlier} of {} lists were read before", many.len());
}

async fn a36_the_lists_of_a_deactivated_account_are_read_when_it_is_active_again(
    database: Database,
) {
    let world = World::with_list(database, &[], &["/a"]).await;
    let other = world.create_token("other", "subscribe list").await;
    world.follow_list().await;
    let one = [world.follow_list_as(&other, "/cb").await];
    let mut read_at = world.read_times(&other, &one, DateTime::UNIX_EPOCH).await.remove(0);
    let store = world.database.open().await;
    let account = account(&store, LOGIN, TOKEN).await;
    let list = world.publisher.url("/list.opml");
    let made = async || {
        let (list, callback) = (Topic::parse(&list), Callback::parse(world.subscriber.url("/cb")));
        let made = store.subscribed_by_list(account, &list.unwrap(), &callback.unwrap(), 9).await;
        let mut made: Vec<_> =
            made.unwrap().iter().map(|(made, _)| made.topic.as_str().to_owned()).collect();
        made.sort();
        made
    };
    store.deactivate_account(LOGIN, runner::now()).await.unwrap();
    for paths in [["/a", "/b"], ["/b", "/c"]] {
        world.put_list(opml(&world, &paths));
        world.gateway.post("/", &[("hub.mode", "publish"), ("hub.url", &list)]).await;
        read_at = world.read_times(&other, &one, read_at).await.remove(0);
    }
    assert_eq!(made().await, [world.publisher.url("/a")]);
    store.activate_account(LOGIN, runner::now()).await.unwrap();
    let want = ["/b", "/c"].map(|path| world.publisher.url(path));
    until("the list is read again", async || made().await == want).await;
    store.close().await;
}
