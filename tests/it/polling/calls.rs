//! Calls to callbacks: rules D4 and D5.

use std::time::Duration;

use bytes::Bytes;
use feedgate::net::{CallbackRequest, CallbackResponse, FetchError, HttpClient};
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method};
use url::Url;

use super::{hasty, redirect, settings};
use crate::support::origin::{Origin, Step, answer, head};

fn post(url: &str) -> CallbackRequest {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/atom+xml"));
    let body = Bytes::from_static(b"<feed/>");
    CallbackRequest { method: Method::POST, url: Url::parse(url).unwrap(), headers, body }
}

async fn call(url: &str) -> Result<CallbackResponse, FetchError> {
    HttpClient::new(settings()).call(post(url)).await
}

#[tokio::test]
async fn a_call_says_who_calls_and_sends_what_it_was_given() {
    let origin = Origin::start().await;
    origin.script("/c?x=1", [answer("202 Accepted", &["X-Here: yes"], "thanks")]);
    let reply = call(&origin.url("/c?x=1")).await.unwrap();
    assert_eq!((reply.status.as_u16(), &reply.body[..]), (202, &b"thanks"[..]));
    assert_eq!(reply.headers["x-here"], "yes");
    let got = origin.last();
    assert_eq!(got.body, b"<feed/>");
    assert_eq!(got.header("content-type"), Some("application/atom+xml"));
    assert_eq!(got.header("user-agent"), Some("feedgate/0.0 (+https://gateway.test/)"));
    assert!(got.head.starts_with("POST /c?x=1 "));
}

/// WebSub 7: no redirect is followed.
#[tokio::test]
async fn d05_redirects_are_answers_and_not_followed() {
    let origin = Origin::start().await;
    origin.script("/c", [redirect("307 Temporary Redirect", "/d")]);
    assert_eq!(call(&origin.url("/c")).await.unwrap().status, 307);
    assert_eq!(origin.requests().len(), 1);
}

#[tokio::test]
async fn d04_sixteen_kilobytes_of_an_answer_are_read() {
    let origin = Origin::start().await;
    let flood = head("200 OK", &["Transfer-Encoding: chunked"]);
    let chunk = [&b"1000\r\n"[..], &[b'x'; 4096], b"\r\n"].concat();
    origin.script("/c", [Step::Flood(flood, chunk)]);
    let reply = call(&origin.url("/c")).await.unwrap();
    assert_eq!((reply.status.as_u16(), reply.body.len()), (200, 16 * 1024));
}

#[tokio::test]
async fn d04_a_callback_that_hangs_is_left() {
    let origin = Origin::start().await;
    origin.script("/c", [Step::Hang]);
    let err = HttpClient::new(hasty()).call(post(&origin.url("/c"))).await.unwrap_err();
    assert_eq!(err.code(), "timed_out");
}

/// WebSub 7: the body of a response is ignored.
#[tokio::test]
async fn d04_a_status_code_counts_even_if_its_body_never_ends() {
    let origin = Origin::start().await;
    let head = head("200 OK", &["Content-Length: 9000"]);
    origin.script("/c", [Step::Drip(head, Duration::from_millis(5))]);
    let reply = HttpClient::new(hasty()).call(post(&origin.url("/c"))).await.unwrap();
    assert_eq!(reply.status, 200);
}

#[tokio::test]
async fn connections_are_used_again_from_the_second_call_of_a_server_on() {
    let origin = Origin::start().await;
    origin.script("/c", [answer("200 OK", &[], "ok")]);
    let fetch = HttpClient::new(settings());
    for _ in 0..10 {
        fetch.call(post(&origin.url("/c"))).await.unwrap();
    }
    assert_eq!((origin.requests().len(), origin.connections()), (10, 2));
}
