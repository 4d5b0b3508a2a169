//! Handlers that redirect: what agrees in the end is what is notified.

use http::header::{HeaderValue, LOCATION};
use http::{Method, StatusCode};

use super::worked;
use crate::support::server::{ReceivedRequest, Server, say};
use crate::support::world::World;

/// A server that redirects every request to this address. `keeps_query` adds the query of the
/// request to it.
async fn redirecting(code: u16, target: &str, keeps_query: bool) -> Server {
    let target = target.to_owned();
    Server::start(move |request: ReceivedRequest| {
        let mut to = url::Url::parse(&target).unwrap();
        if keeps_query && !request.query.is_empty() {
            to.query_pairs_mut().extend_pairs(&request.query);
        }
        let mut answer = say(StatusCode::from_u16(code).unwrap(), "");
        answer.headers_mut().insert(LOCATION, HeaderValue::try_from(to.as_str()).unwrap());
        async move { answer }
    })
    .await
}

impl World {
    /// Registers the handler at `server`.
    async fn register_at(
        &self,
        server: &Server,
        protocol: &str,
        further: &[(&str, &str)],
    ) -> String {
        let port = server.port().to_string();
        let form = [
            ("notifyProcedure", "river.changed"),
            ("port", port.as_str()),
            ("path", "/cb"),
            ("protocol", protocol),
            ("url1", &self.topic),
        ];
        self.gateway.post("/pleaseNotify", &[&form, further].concat()).await.1
    }
}

/// The path that agrees, how the other redirects to it, and further parameters.
type Redirection<'a> = (&'a str, u16, bool, &'a [(&'a str, &'a str)]);

#[tokio::test]
async fn f24_a_handler_that_redirects_is_notified_where_it_agreed() {
    let world = World::with_query(&[]).await;
    let domain = [("domain", "127.0.0.1")];
    #[rustfmt::skip]
    let cases: [Redirection<'_>; 4] = [
        ("/called",   301, false, &[]),
        ("/kept",     308, false, &[]),
        ("/repeated", 302, true,  &domain),
        ("/dropped",  307, false, &domain),
    ];
    for (n, (path, code, keeps_query, further)) in cases.into_iter().enumerate() {
        let server = redirecting(code, &world.subscriber.url(path), keeps_query).await;
        let answer = world.register_at(&server, "http-post", further).await;
        assert!(worked(&answer), "{path}: {answer}");
        drop(server);
        let tested = world.subscriber.requests_to(path);
        let method = if further.is_empty() { Method::POST } else { Method::GET };
        assert_eq!(tested[0].method, method, "{path}: the method is kept");
        let before = world.subscriber.notified(path).len();
        world.publish_and_ping(3 + n).await;
        world.subscriber.until(path, |told| told.len() == before + 1).await;
        assert!(world.subscriber.notified(path)[before].query.is_empty(), "{path}");
    }
}

#[tokio::test]
async fn f24_redirects_are_followed_a_few_times_and_never_past_the_guard() {
    let world = World::with_query(&[]).await;
    let inner = redirecting(302, "http://10.0.0.1/cb", false).await;
    assert!(!worked(&world.register_at(&inner, "http-post", &[]).await), "a private address");
    // Twenty in a row, and one that never ends.
    let mut target = world.subscriber.url("/far");
    let mut servers = Vec::new();
    for _ in 0..20 {
        servers.push(redirecting(301, &target, false).await);
        target = servers[servers.len() - 1].url("/cb");
    }
    assert!(!worked(&world.register_at(&servers[19], "http-post", &[]).await), "too many");
    assert!(worked(&world.register_at(&servers[4], "http-post", &[]).await), "five");
    assert_eq!(world.subscriber.requests_to("/far").len(), 1);
}
