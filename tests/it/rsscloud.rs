//! rssCloud: registrations are kept, and handlers told in their own protocol.

mod calls;
mod cancelling;
mod names;
mod reachable;
mod redirected;
mod waiting;

use chrono::{DateTime, Utc};
use feedgate::jobs::runner::now;
use futures_util::future::join_all;
use http::{Method, StatusCode};

use crate::support::feeds::rss;
use crate::support::server::client;
use crate::support::subscriber::{Behavior, named};
use crate::support::world::World;

impl World {
    /// One whose topic has a query.
    async fn with_query(settings: &[(&str, &str)]) -> World {
        World::with_tides(2, settings).await.about("/feed?a=1&b=2")
    }

    async fn register(&self, protocol: &str, path: &str, further: &[(&str, &str)]) -> String {
        let port = self.subscriber.port().to_string();
        let form = [
            ("notifyProcedure", "river.changed"),
            ("port", &port),
            ("path", path),
            ("protocol", protocol),
            ("url1", &self.topic),
        ];
        self.gateway.post("/rsscloud/pleaseNotify", &[&form, further].concat()).await.1
    }

    /// Publishes item `n`, and pings.
    async fn publish_and_ping(&self, n: usize) {
        self.put_tides(n);
        let (status, text) = self.gateway.post("/rsscloud/ping", &[("url", &self.topic)]).await;
        assert!(status == StatusCode::OK && text.contains("Thanks for the ping."), "{text}");
    }
}

fn worked(answer: &str) -> bool {
    answer.contains("success=\"true\"")
}

#[tokio::test]
async fn each_handler_is_told_in_its_own_protocol() {
    let world = World::with_query(&[]).await;
    for protocol in ["http-post", "xml-rpc", "soap"] {
        assert!(worked(&world.register(protocol, &format!("/{protocol}"), &[]).await));
    }
    world.publish_and_ping(3).await;
    for protocol in ["http-post", "xml-rpc", "soap"] {
        let path = format!("/{protocol}");
        // The first call is the test of the handler.
        world.subscriber.until(&path, |told| told.len() == 2).await;
        for told in world.subscriber.notified(&path) {
            assert_eq!(named(&told).as_deref(), Some(world.topic.as_str()), "{}", told.text());
        }
    }
    let told = world.subscriber.notified("/xml-rpc").pop().unwrap();
    assert!(told.text().contains("<methodName>river.changed</methodName>"));
    let told = world.subscriber.notified("/soap").pop().unwrap();
    assert!(told.text().contains("<river.changed>"), "{}", told.text());
    assert!(told.header("soapaction").is_some());
}

#[tokio::test]
async fn a_handler_elsewhere_must_echo_a_challenge() {
    let world = World::with_query(&[]).await;
    let domain = [("domain", "127.0.0.1")];
    assert!(worked(&world.register("http-post", "/cb?own=1", &domain).await));
    let request = world.subscriber.requests_to("/cb").remove(0);
    assert_eq!(request.method, Method::GET);
    assert_eq!(request.query("own"), Some("1"));
    assert_eq!(request.query("url"), Some(world.topic.as_str()));
    assert_eq!(request.query("challenge").map(str::len), Some(32));

    world.subscriber.set("/no", Behavior::Refusing);
    assert!(!worked(&world.register("http-post", "/no", &domain).await));
    // This one takes calls, but none that is XML-RPC: a web server, perhaps a victim.
    assert!(!worked(&world.register("xml-rpc", "/page", &domain).await));
}

#[tokio::test]
async fn registrations_side_by_side_are_all_kept() {
    let world = World::with_query(&[]).await;
    let paths: Vec<String> = (0..30).map(|n| format!("/cb{n}")).collect();
    let answers = join_all(paths.iter().map(|path| world.register("http-post", path, &[]))).await;
    assert!(answers.iter().all(|answer| worked(answer)));
    world.publish_and_ping(3).await;
    for path in &paths {
        world.subscriber.until(path, |told| told.len() == 2).await;
    }
}

#[tokio::test]
async fn a_refused_registration_leaves_the_one_before_it() {
    let world = World::with_query(&[]).await;
    assert!(worked(&world.register("http-post", "/cb", &[]).await));
    world.subscriber.set("/cb", Behavior::Failing(500));
    assert!(!worked(&world.register("xml-rpc", "/cb", &[]).await));
    world.subscriber.set("/cb", Behavior::Accepting);
    world.publish_and_ping(3).await;
    world.subscriber.until("/cb", |told| told.len() == 3).await;
    let told = world.subscriber.notified("/cb").pop().unwrap();
    assert_eq!(told.form("url").as_deref(), Some(world.topic.as_str()));
}

#[tokio::test]
async fn a_page_that_is_no_feed_can_be_watched_too() {
    let world = World::with_query(&[]).await;
    world.publisher.put("/outline", "text/x-opml", "<opml><body/></opml>");
    let world = world.about("/outline");
    assert!(worked(&world.register("http-post", "/cb", &[]).await));
    world.publisher.put("/outline", "text/x-opml", "<opml><body><outline text='x'/></body></opml>");
    let (_, text) = world.gateway.post("/ping", &[("url", &world.topic)]).await;
    assert!(worked(&text), "{text}");
    world.subscriber.until("/cb", |told| told.len() == 2).await;
}

#[tokio::test]
async fn an_edit_is_told_and_a_new_build_date_is_not() {
    let world = World::with_query(&[]).await;
    let feed = rss("tides", 1..3);
    let link = "<link>https://tides.test/</link>";
    let date = "<lastBuildDate>Sat, 07 Sep 2002 00:00:01 GMT</lastBuildDate>";
    let dated = feed.replace(link, &format!("{link}{date}"));
    let edited = feed.replace("The text of 1", "The corrected text of 1");
    assert!(worked(&world.register("http-post", "/cb", &[]).await));
    for (document, told) in [(dated, 1), (edited, 2)] {
        world.publisher.put_rss("/feed", document);
        let (_, text) = world.gateway.post("/ping", &[("url", &world.topic)]).await;
        assert!(worked(&text), "{text}");
        world.subscriber.until("/cb", |received| received.len() >= told).await;
        world.gateway.comes_to_rest().await;
        // The first call was the test of the handler.
        assert_eq!(world.subscriber.notified("/cb").len(), told);
    }
}

#[tokio::test]
async fn only_our_own_proxy_says_where_a_request_comes_from() {
    let world = World::with_query(&[("FEEDGATE_TRUSTED_PROXIES", "127.0.0.1/32")]).await;
    let form = format!(
        "port={}&path=/cb&protocol=http-post&url1={}",
        world.subscriber.port(),
        world.publisher.url("/feed")
    );
    // The subscriber listens at 127.0.0.1 and nowhere else.
    for (hops, want) in [("127.0.0.1", true), ("127.0.0.1, 127.0.0.2", false)] {
        let answer = client()
            .post(world.gateway.url("/pleaseNotify"))
            .header("x-forwarded-for", hops)
            .body(form.clone())
            .send();
        let text = answer.await.unwrap().text().await.unwrap();
        assert_eq!(worked(&text), want, "{hops}: {text}");
    }
}

/// The result a client compares: the prolog, one element, nothing behind it.
fn result(element: &str, success: bool, msg: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n\
         <{element} success=\"{success}\" msg=\"{msg}\"/>"
    )
}

/// An answer without one of its attributes, and the value of that.
fn without(answer: &str, attribute: &str) -> (String, Option<String>) {
    let Some((before, after)) = answer.split_once(&format!(" {attribute}=\"")) else {
        return (answer.to_owned(), None);
    };
    let (value, after) = after.split_once('"').unwrap();
    (format!("{before}{after}"), Some(value.to_owned()))
}

/// A form, whether it succeeds, and what is said.
type Case<'a> = (&'a [(&'a str, &'a str)], bool, &'a str);

fn missing(names: &str) -> String {
    format!("The following parameters were missing from the request body: {names}.")
}

fn unreadable(what: &str, url: &str) -> String {
    format!(
        "The {what} was cancelled because there was an error reading the resource at URL {url}."
    )
}

#[tokio::test]
async fn registrations_are_answered_as_by_the_deployed_servers_to_the_letter() {
    const REGISTERED: &str = "Thanks for the registration. It worked. When the resource updates \
        we'll notify you. Don't forget to re-register after 24 hours, your subscription will \
        expire in 25. Keep on truckin!";
    const UNTESTED: &str =
        "The subscription was cancelled because the call failed when we tested the handler.";
    const PROTOCOL: &str = "Can't accept the subscription because the protocol, \
        &lt;i&gt;HTTP-POST&lt;/i&gt;, is unsupported.";
    let world = World::with_query(&[]).await;
    world.subscriber.set("/no", Behavior::Refusing);
    let port = world.subscriber.port().to_string();
    let nowhere = world.publisher.url("/nowhere");
    let (port, feed) = (("port", port.as_str()), ("url1", world.topic.as_str()));
    let (path, post) = (("path", "/cb"), ("protocol", "http-post"));
    #[rustfmt::skip]
    let cases: [Case<'_>; 10] = [
        (&[port, path, post, feed],                      true,  REGISTERED),
        (&[],                                            false, &missing("port, path, protocol")),
        (&[port, post, feed],                            false, &missing("path")),
        (&[port, path, ("protocol", "HTTP-POST"), feed], false, PROTOCOL),
        (&[port, path, post],                            false, "No resources specified."),
        (&[port, path, post, ("url1", &nowhere)],        false, &unreadable("subscription", &nowhere)),
        (&[port, path, post, ("url1", "x")],             false, &unreadable("subscription", "x")),
        (&[port, ("path", "/no"), post, feed],           false, UNTESTED),
        (&[("port", "99999"), path, post, feed],         false, UNTESTED),
        (&[("port", ""), ("path", ""), post, feed],      false, UNTESTED),
    ];
    for (form, success, msg) in cases {
        let (status, text) = world.gateway.post("/pleaseNotify", form).await;
        let (text, expires) = without(&text, "expires");
        let want = result("notifyResult", success, msg);
        assert_eq!((status, text), (StatusCode::OK, want), "{form:?}");
        // "They expire after 25 hours" (seed 000).
        let hours = expires.map(|at| (at.parse::<DateTime<Utc>>().unwrap() - now()).num_minutes());
        assert_eq!(hours.map(|minutes| minutes / 15), success.then_some(25 * 4 - 1), "{form:?}");
    }
}

#[tokio::test]
async fn pings_are_answered_as_by_the_deployed_servers_to_the_letter() {
    let world = World::with_query(&[]).await;
    let nowhere = world.publisher.url("/nowhere");
    #[rustfmt::skip]
    let cases: [Case<'_>; 3] = [
        (&[("url", &world.topic)], true,  "Thanks for the ping."),
        (&[],                      false, &missing("url")),
        (&[("url", &nowhere)],     false, &unreadable("ping", &nowhere)),
    ];
    for (form, success, msg) in cases {
        let answer = world.gateway.post("/ping", form).await;
        assert_eq!(answer, (StatusCode::OK, result("result", success, msg)), "{form:?}");
    }
    let ask = |accept: &'static str| {
        client().post(world.gateway.url("/ping")).header("accept", accept).send()
    };
    let json = ask("application/json").await.unwrap();
    assert_eq!(json.headers()["content-type"], "application/json; charset=utf-8");
    let want = format!("{{\"success\":false,\"msg\":\"{}\"}}", missing("url"));
    assert_eq!(json.text().await.unwrap(), want);
    let html = ask("text/html").await.unwrap();
    assert_eq!(html.status(), StatusCode::NOT_ACCEPTABLE);
    assert_eq!(html.text().await.unwrap(), "Not Acceptable");
}
