//! What is asked and what answers come to: a table of `docs/contributing/polling.md`, P24, P34 to
//! P37, P41.

use std::time::Duration;

use feedgate::net::{
    FetchError, FetchRequest, FetchResponse, HttpClient, NetworkSettings, Patience, RobotsResponse,
};
use feedgate_core::poll::Validators;
use url::Url;

use super::{ATOM, code, document, get, get_with, settings};
use crate::support::origin::{Origin, answer};

/// Row N-10.
#[tokio::test]
async fn p34_the_user_agent_counts_subscribers_and_names_the_resource() {
    let origin = Origin::start().await;
    let fetch = HttpClient::new(settings());
    let (url, validators) = (origin.url("/f"), Validators::default());
    let cases = [
        (0, None, "feedgate/0.0 (+https://gateway.test/)"),
        (0, Some(7), "feedgate/0.0 (+https://gateway.test/; feed-id=7)"),
        (12, Some(7), "feedgate/0.0 (+https://gateway.test/; 12 subscribers; feed-id=7)"),
    ];
    for (subscribers, feed_id, want) in cases {
        fetch.get(FetchRequest { url: &url, validators: &validators, subscribers, feed_id }).await;
        assert_eq!(origin.last().header("user-agent"), Some(want));
    }
}

#[tokio::test]
async fn p36_nothing_is_asked_for_that_a_publisher_would_mind() {
    let origin = Origin::start().await;
    origin.script("/f?a=1", [answer("200 OK", &["Set-Cookie: a=b"], ATOM)]);
    let fetch = HttpClient::new(settings());
    for _ in 0..2 {
        document(get_with(&fetch, &origin.url("/f?a=1#part"), &Validators::default()).await);
    }
    let request = origin.last();
    let mut names: Vec<_> =
        request.head.lines().skip(1).map(|line| line.split(':').next().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["accept", "accept-encoding", "host", "user-agent"]);
    assert_eq!(request.target(), "/f?a=1");
    assert!(request.header("accept").unwrap().starts_with("application/atom+xml, "));
    assert_eq!(request.header("accept-encoding"), Some("gzip, br, zstd, deflate"));
}

#[tokio::test]
async fn only_a_200_is_a_document() {
    let statuses = [
        "201 Created",
        "202 Accepted",
        "203 Non-Authoritative",
        "206 Partial Content",
        "226 IM Used",
        "300 Multiple Choices",
        "305 Use Proxy",
        "400 Bad Request",
        "401 Unauthorized",
        "403 Forbidden",
        "404 Not Found",
        "405 Method Not Allowed",
        "410 Gone",
        "429 Too Many Requests",
        "500 Internal Server Error",
        "503 Service Unavailable",
        "520 Unknown",
        "999 Request Denied",
    ];
    for line in statuses {
        let origin = Origin::start().await;
        origin.script("/f", [answer(line, &[], ATOM)]);
        match get(&origin.url("/f")).await.result {
            Err(FetchError::Status { status, retry_after_s: None }) => {
                assert_eq!(status.as_str(), &line[..3]);
            }
            other => panic!("{line}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn p27_a_guard_that_wants_a_browser_is_told_from_a_refusal() {
    let origin = Origin::start().await;
    origin.script("/f", [answer("403 Forbidden", &["cf-mitigated: challenge"], "<html>")]);
    assert_eq!(code(&get(&origin.url("/f")).await), "blocked");
}

#[tokio::test]
async fn p40_robots_txt_belongs_to_the_visit_and_forbids_nothing_where_there_is_none() {
    let origin = Origin::start().await;
    let text = RobotsResponse::Text("User-agent: feedgate\nDisallow: /".to_owned());
    let cases = [
        ("200 OK", "User-agent: feedgate\nDisallow: /", text),
        ("404 Not Found", "", RobotsResponse::None),
        ("403 Forbidden", "", RobotsResponse::None),
        ("429 Too Many Requests", "", RobotsResponse::Unavailable),
        ("503 Service Unavailable", "", RobotsResponse::Unavailable),
    ];
    let slowly = NetworkSettings { host_spacing: Duration::from_secs(3_600), ..settings() };
    let fetch = HttpClient::new(slowly);
    let url = Url::parse(&origin.url("/some/feed?x")).unwrap();
    for (status, body, want) in cases {
        origin.script("/robots.txt", [answer(status, &[], body)]);
        assert_eq!(fetch.robots(&url, Patience::Interactive).await, want, "{status}");
        let request = origin.last();
        assert!(request.header("user-agent").unwrap().starts_with("feedgate/"));
        assert_eq!(request.target(), "/robots.txt");
    }
}

#[tokio::test]
async fn a_204_is_an_unchanged_resource() {
    let origin = Origin::start().await;
    origin.script("/f", [answer("204 No Content", &[], "")]);
    assert!(matches!(get(&origin.url("/f")).await.result, Ok(FetchResponse::NotModified { .. })));
}

#[tokio::test]
async fn a_406_is_asked_again_for_anything() {
    let origin = Origin::start().await;
    origin.script("/f", [answer("406 Not Acceptable", &[], ""), answer("200 OK", &[], ATOM)]);
    document(get(&origin.url("/f")).await);
    assert_eq!(origin.last().header("accept"), Some("*/*"));

    origin.script("/g", [answer("406 Not Acceptable", &[], "")]);
    assert_eq!(code(&get(&origin.url("/g")).await), "http_status");
    assert_eq!(origin.requests().len(), 4, "once, not for ever");
}

#[tokio::test]
async fn p24_retry_after_is_read_in_both_forms() {
    let date = "Date: Sun, 06 Nov 1994 12:00:00 GMT";
    let cases = [
        ("429 Too Many Requests", "Retry-After: 120", Some(120)),
        ("503 Service Unavailable", "Retry-After: Sun, 06 Nov 1994 12:01:00 GMT", Some(60)),
        ("503 Service Unavailable", "Retry-After: 999999", Some(86_400)),
        ("429 Too Many Requests", "Retry-After: soon", None),
    ];
    for (status, header, want) in cases {
        let origin = Origin::start().await;
        origin.script("/f", [answer(status, &[date, header], "")]);
        match get(&origin.url("/f")).await.result {
            Err(FetchError::Status { retry_after_s, .. }) => assert_eq!(retry_after_s, want),
            other => panic!("{header}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn p12_a_document_brings_what_its_headers_hint() {
    let origin = Origin::start().await;
    origin.script("/f", [answer("200 OK", &["Cache-Control: max-age=600", "Age: 60"], ATOM)]);
    assert_eq!(document(get(&origin.url("/f")).await).hint_s, 540);
}

#[tokio::test]
async fn untidy_headers_are_read_as_far_as_they_go() {
    let origin = Origin::start().await;
    let headers = ["X-Folded: one", " two", "Bad Name: x", "ETag : \"1\""];
    origin.script("/f", [answer("200 OK", &headers, ATOM)]);
    let got = document(get(&origin.url("/f")).await);
    assert_eq!(got.body, ATOM);
    assert_eq!(got.validators.etag.as_deref(), Some(&b"\"1\""[..]));
}

#[tokio::test]
async fn p41_a_host_has_one_request_in_flight() {
    let origin = Origin::start().await;
    let settings = NetworkSettings { host_spacing: Duration::from_millis(1), ..settings() };
    let fetch = HttpClient::new(settings);
    let gets = (0..20).map(|n| {
        let (fetch, url) = (fetch.clone(), origin.url(&format!("/{n}")));
        tokio::spawn(async move { get_with(&fetch, &url, &Validators::default()).await })
    });
    for got in gets.collect::<Vec<_>>() {
        assert_eq!(code(&got.await.unwrap()), "http_status");
    }
    assert_eq!(origin.requests().len(), 20);
    assert_eq!(origin.most_concurrent(), 1);
}

#[tokio::test]
async fn a_trace_tells_every_hop() {
    let origin = Origin::start().await;
    origin.script("/f", [super::redirect("302 Found", "/g")]);
    origin.script("/g", [answer("200 OK", &["X-From: us"], ATOM)]);
    let got = get(&origin.url("/f")).await;
    let told: Vec<_> =
        got.hops.iter().map(|hop| (hop.url.path(), hop.status.unwrap().as_u16())).collect();
    assert_eq!(told, [("/f", 302), ("/g", 200)]);
    assert_eq!(got.hops[1].response["x-from"], "us");
    assert_eq!(got.hops[0].addresses, ["127.0.0.1".parse::<std::net::IpAddr>().unwrap()]);
    assert_eq!(got.wire_bytes, ATOM.len() as u64);
}
