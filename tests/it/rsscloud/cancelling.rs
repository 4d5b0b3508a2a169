//! Who wants to be told no more can say so, and nobody can say so for another (D19).

use http::Method;

use super::worked;
use crate::support::subscriber::Behavior;
use crate::support::world::World;

impl World {
    async fn cancel(&self, path: &str, further: &[(&str, &str)]) -> String {
        let form = [("path", path), ("url", &self.topic)];
        self.gateway.post("/cancel", &[&form, further].concat()).await.1
    }

    /// Whether `path` is told of a change that `witness` is told of.
    async fn is_told(&self, path: &str, witness: &str, item: usize) -> bool {
        let before = self.subscriber.notified(path).len();
        let others = self.subscriber.notified(witness).len();
        self.publish_and_ping(item).await;
        self.subscriber.until(witness, |told| told.len() > others).await;
        self.gateway.comes_to_rest().await;
        self.subscriber.notified(path).len() > before
    }
}

#[tokio::test]
async fn d19_a_handler_is_told_no_more_when_its_own_address_says_so() {
    let world = World::with_query(&[]).await;
    let port = world.subscriber.port().to_string();
    for path in ["/cb", "/witness", "/rpc"] {
        let protocol = if path == "/rpc" { "xml-rpc" } else { "http-post" };
        assert!(worked(&world.register(protocol, path, &[]).await));
    }
    let here = [("port", port.as_str())];
    let none = "<cancelResult success=\"false\" msg=\"There is no such subscription.\"/>";
    for (path, further) in [
        ("/cb", vec![here[0], ("protocol", "soap")]), // registered as http-post
        ("/cb", vec![]),                              // at port 80 there is nobody
        ("/elsewhere", vec![here[0]]),
    ] {
        let answer = world.cancel(path, &further).await;
        assert!(answer.ends_with(none), "{path} {further:?}: {answer}");
    }
    assert!(world.is_told("/cb", "/witness", 3).await);

    let answer = world.cancel("/cb", &here).await;
    let want = "<cancelResult success=\"true\" msg=\"The subscription is cancelled. You will not \
                be notified any more.\"/>";
    assert!(answer.ends_with(want), "{answer}");
    assert!(!world.is_told("/cb", "/witness", 4).await);
    // With the domain that is its own address, as clients of php-rssCloud send it.
    let domain = [here[0], ("domain", "127.0.0.1")];
    assert!(worked(&world.cancel("/rpc", &domain).await));
    assert!(!world.is_told("/rpc", "/witness", 5).await);
    // Nobody needed to be asked.
    let request = ["/cb", "/rpc"].map(|path| world.subscriber.requests_to(path));
    assert!(request.iter().flatten().all(|request| request.method == Method::POST));
}

#[tokio::test]
async fn d19_nobody_ends_the_subscription_of_another_who_does_not_agree() {
    // The caller seems to be elsewhere: behind a proxy of ours, or hidden by another's.
    let world = World::with_query(&[("FEEDGATE_TRUSTED_PROXIES", "127.0.0.1/32")]).await;
    let domain = [("domain", "127.0.0.1")];
    for path in ["/cb", "/witness"] {
        assert!(worked(&world.register("http-post", path, &domain).await));
    }
    let cancel = async || {
        let body = format!(
            "domain=127.0.0.1&port={}&path=/cb&url={}",
            world.subscriber.port(),
            url::form_urlencoded::byte_serialize(world.topic.as_bytes()).collect::<String>()
        );
        let request = crate::support::server::client()
            .post(world.gateway.url("/rsscloud/cancel"))
            .header("x-forwarded-for", "203.0.113.9")
            .body(body);
        request.send().await.unwrap().text().await.unwrap()
    };
    // It proves itself to whoever asks, and knows nothing of cancelling.
    let answer = cancel().await;
    assert!(!worked(&answer), "{answer}");
    let request = world.subscriber.requests_to("/cb").pop().unwrap();
    assert_eq!(request.query("cancel").map(str::len), Some(32));
    assert!(world.is_told("/cb", "/witness", 3).await);

    world.subscriber.set("/cb", Behavior::Leaving);
    assert!(worked(&cancel().await));
    assert!(!world.is_told("/cb", "/witness", 4).await);
}

#[tokio::test]
async fn a_handler_that_answers_410_has_ended_its_subscription() {
    let world = World::with_query(&[]).await;
    for path in ["/cb", "/witness"] {
        assert!(worked(&world.register("http-post", path, &[]).await));
    }
    world.subscriber.set("/cb", Behavior::Failing(410));
    assert!(world.is_told("/cb", "/witness", 3).await, "it is told, and says that it has gone");
    assert!(!world.is_told("/cb", "/witness", 4).await);
}
