//! Who is taken for the operator.

use http::StatusCode;
use http::header::CONTENT_TYPE;

use super::{FORM, PROXIED};
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::server::client;

/// Sends pings until one is refused, at most this many.
async fn pings(gateway: &Gateway, header: Option<(&str, &str)>, most: usize) -> usize {
    for n in 0..most {
        let mut request = client().post(gateway.url("/ping")).header(CONTENT_TYPE, FORM);
        if let Some((name, value)) = header {
            request = request.header(name, value);
        }
        let answer = request.body("url=http://a.test/").send().await.unwrap();
        if answer.text().await.unwrap().contains("Your address has sent too many requests") {
            return n;
        }
    }
    most
}

#[tokio::test]
async fn h10_a_client_that_is_not_certain_is_a_stranger() {
    let database = Database::new(Kind::Sqlite).await;
    let limit = ("FEEDGATE_ANONYMOUS_REQUESTS_PER_MIN", "3");
    let none = ("FEEDGATE_TRUSTED_PROXIES", "");
    #[rustfmt::skip]
    let cases = [
        ("a program on this machine",                   none,    None,                                false),
        ("the same beside a declared proxy",            PROXIED, None,                                false),
        ("a declared proxy names this machine",         PROXIED, Some(("x-forwarded-for", "127.0.0.1")), false),
        ("a proxy that is not declared",                none,    Some(("x-forwarded-for", "8.8.4.4")), true),
        ("one that names this machine",                 none,    Some(("x-forwarded-for", "127.0.0.1")), true),
        ("one with another header",                     none,    Some(("forwarded", "for=8.8.4.4")),  true),
        ("one that names nobody",                       none,    Some(("via", "1.1 proxy")),          true),
        ("a declared proxy without a client",           PROXIED, Some(("x-forwarded-for", "")),       true),
        ("a declared proxy with an unreadable client",  PROXIED, Some(("x-forwarded-for", "unknown")), true),
        ("a declared proxy names it elsewhere",         PROXIED, Some(("x-real-ip", "8.8.4.4")),      true),
        ("a declared proxy with a client",              PROXIED, Some(("x-forwarded-for", "8.8.4.4")), true),
        ("a declared proxy with a private client",      PROXIED, Some(("x-forwarded-for", "10.1.2.3")), true),
        ("a declared proxy with a client of IPv6",      PROXIED, Some(("x-forwarded-for", "fd00::1")), true),
    ];
    for (why, proxies, header, is_anonymous) in cases {
        let gateway = Gateway::start(&database, &[limit, proxies]).await;
        let admitted = pings(&gateway, header, 9).await;
        assert_eq!(admitted < 9, is_anonymous, "{why}: {admitted} pings");
        let mut request = client().get(gateway.url("/metrics"));
        if let Some((name, value)) = header {
            request = request.header(name, value);
        }
        let status = request.send().await.unwrap().status();
        assert_eq!(status == StatusCode::FORBIDDEN, is_anonymous, "{why}: {status}");
    }
}

#[tokio::test]
async fn h10_headers_that_are_made_up_give_no_further_requests() {
    let database = Database::new(Kind::Sqlite).await;
    let limit = ("FEEDGATE_ANONYMOUS_REQUESTS_PER_MIN", "3");
    let gateway = Gateway::start(&database, &[limit]).await;
    let mut refused = 0;
    for n in 0..9 {
        let request = client().post(gateway.url("/ping")).header(CONTENT_TYPE, FORM);
        let request = request.header("x-forwarded-for", format!("8.8.4.{n}"));
        let answer = request.body("url=http://a.test/").send().await.unwrap();
        refused += usize::from(answer.text().await.unwrap().contains("too many requests"));
    }
    assert_eq!(refused, 6);
}
