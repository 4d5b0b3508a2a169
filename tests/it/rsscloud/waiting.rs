//! A ping that waits is answered when its subscribers have been told, or when time is over.

use http::StatusCode;

use super::worked;
use crate::support::server::client;
use crate::support::subscriber::Behavior;
use crate::support::world::World;

impl World {
    /// Publishes item `n`, and pings as `how` says; the answer.
    async fn ping(&self, n: usize, path: &str, further: &[(&str, &str)]) -> String {
        self.put_tides(n);
        let form = [("url", self.topic.as_str())];
        let (status, text) = self.gateway.post(path, &[&form, further].concat()).await;
        assert_eq!(status, StatusCode::OK, "{text}");
        text
    }
}

#[tokio::test]
async fn a_ping_that_waits_is_answered_when_all_have_been_told() {
    let world = World::with_query(&[]).await;
    let paths: Vec<String> = (0..12).map(|n| format!("/cb{n}")).collect();
    for path in &paths {
        assert!(worked(&world.register("http-post", path, &[]).await));
    }
    world.subscriber.set("/cb0", Behavior::Failing(500));
    for (item, path, form) in [(3, "/ping?wait=1", &[][..]), (4, "/ping", &[("wait", "1")])] {
        let answer = world.ping(item, path, form).await;
        assert!(answer.ends_with("msg=\"Thanks for the ping.\" told=\"11\"/>"), "{answer}");
        for path in &paths[1..] {
            // The first call was the test of the handler.
            assert_eq!(world.subscriber.notified(path).len(), item - 1, "{path}");
        }
    }
    // Nothing has changed since.
    let answer = world.ping(4, "/ping?wait=1", &[]).await;
    assert!(answer.ends_with(" told=\"0\"/>"), "{answer}");
    let answer = world.ping(5, "/ping", &[]).await;
    assert!(answer.ends_with("msg=\"Thanks for the ping.\"/>"), "{answer}");
}

#[tokio::test]
async fn a_ping_waits_for_the_slowest_only_so_long() {
    let settings = [
        ("FEEDGATE_PING_WAIT", "on"),
        ("FEEDGATE_PING_WAIT_S", "1"),
        ("FEEDGATE_RSSCLOUD_TELL_COUNT", "on"),
    ];
    let world = World::with_query(&settings).await;
    for path in ["/cb", "/slow"] {
        assert!(worked(&world.register("http-post", path, &[]).await));
    }
    world.subscriber.set("/slow", Behavior::Hanging);
    let answer = world.ping(3, "/ping", &[]).await;
    assert!(answer.ends_with(" told=\"1\"/>"), "{answer}");
    // Who does not want to wait need not.
    let answer = world.ping(4, "/ping", &[("wait", "0")]).await;
    assert!(answer.ends_with("msg=\"Thanks for the ping.\"/>"), "{answer}");
}

#[tokio::test]
async fn a_ping_that_waits_says_what_cannot_be_read() {
    let world = World::with_query(&[]).await;
    assert!(worked(&world.register("http-post", "/cb", &[]).await));
    world.publisher.fail("/feed", StatusCode::NOT_FOUND);
    for topic in [world.topic.clone(), world.publisher.url("/nowhere"), "x".to_owned()] {
        let (_, answer) = world.gateway.post("/ping?wait=1", &[("url", &topic)]).await;
        assert!(answer.contains("error reading the resource"), "{answer}");
    }
}

#[tokio::test]
async fn f22_who_did_not_ask_to_wait_gets_the_answer_of_the_deployed_servers() {
    let world = World::with_query(&[("FEEDGATE_PING_WAIT", "on")]).await;
    assert!(worked(&world.register("http-post", "/cb", &[]).await));
    let answer = world.ping(3, "/ping", &[]).await;
    assert!(
        answer.ends_with("<result success=\"true\" msg=\"Thanks for the ping.\"/>"),
        "{answer}"
    );
    assert_eq!(world.subscriber.notified("/cb").len(), 2, "it waited nevertheless");
    let answer = world.ping(4, "/ping", &[("wait", "1")]).await;
    assert!(answer.ends_with(" told=\"1\"/>"), "{answer}");
}

#[tokio::test]
async fn a10_a_ping_is_answered_when_the_feed_has_been_fetched_after_it() {
    let world = World::with_query(&[("FEEDGATE_PING_MIN_INTERVAL_MS", "1000")]).await;
    // The registration has just fetched the feed.
    assert!(worked(&world.register("http-post", "/cb", &[]).await));
    let url = world.topic.replace('&', "&amp;");
    let call = format!(
        "<methodCall><methodName>rssCloud.ping</methodName><params><param><value>{url}</value>\
         </param></params></methodCall>"
    );
    let envelope = format!(
        "<e:Envelope xmlns:e='http://schemas.xmlsoap.org/soap/envelope/'><e:Body><ping><url>{url}\
         </url></ping></e:Body></e:Envelope>"
    );
    for (item, body) in [(3, None), (4, Some(call)), (5, Some(envelope))] {
        match body {
            None => drop(world.ping(item, "/ping", &[]).await),
            Some(body) => {
                world.put_tides(item);
                let request = client().post(world.gateway.url("/RPC2"));
                let request = request.header("content-type", "text/xml").body(body);
                assert_eq!(request.send().await.unwrap().status(), StatusCode::OK);
            }
        }
        let fetch = world.publisher.fetches("/feed").pop().unwrap();
        assert_eq!(fetch.status, StatusCode::OK, "item {item} was there");
        assert_eq!(world.publisher.fetches("/feed").len(), item - 1, "item {item}");
    }
}

#[tokio::test]
async fn a10_a_304_after_a_ping_is_followed_by_no_second_request() {
    let world = World::with_query(&[]).await;
    assert!(worked(&world.register("http-post", "/cb", &[]).await));
    world.ping(3, "/ping", &[]).await;
    let (_, answer) = world.gateway.post("/ping", &[("url", &world.topic)]).await;
    assert!(worked(&answer), "{answer}");
    let codes: Vec<_> =
        world.publisher.fetches("/feed").iter().map(|fetch| fetch.status.as_u16()).collect();
    assert_eq!(codes, [200, 200, 304]);
}
