//! A ping that waits is answered when its subscribers have been told, or when time is over.

use http::StatusCode;

use super::worked;
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
