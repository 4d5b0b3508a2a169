//! Validators and conditional requests: rules P1 to P11, S35.

use feedgate::net::{FetchResponse, HttpClient};
use feedgate_core::poll::Validators;

use super::{ATOM, code, document, get, get_with, held, redirect, settings};
use crate::support::origin::{Origin, Step, answer};

#[tokio::test]
async fn p01_validators_travel_byte_for_byte() {
    let cases: [(&[u8], &[u8]); 4] = [
        (b"W/\"abc\"", b"Sun, 06 Nov 1994 08:49:37 GMT"),
        (b"unquoted", b"2011-02-30 27:00 +0000"),
        (b"\"a\"\"b, c\"", b"Sunday, 06-Nov-94 08:49:37 GMT"),
        (b"\"caf\xe9\"", b"  odd   spaces"),
    ];
    for (etag, modified) in cases {
        let origin = Origin::start().await;
        let mut bytes = b"HTTP/1.1 200 OK\r\nETag: ".to_vec();
        bytes.extend_from_slice(etag);
        bytes.extend_from_slice(b"\r\nLast-Modified: ");
        bytes.extend_from_slice(modified);
        bytes.extend_from_slice(b"\r\nContent-Length: 0\r\n\r\n");
        origin.script("/f", [Step::Send(bytes), answer("304 Not Modified", &[], "")]);

        let fetch = HttpClient::new(settings());
        let first = document(get_with(&fetch, &origin.url("/f"), &Validators::default()).await);
        let again = get_with(&fetch, &origin.url("/f"), &first.validators).await;
        assert!(matches!(again.result, Ok(FetchResponse::NotModified { .. })));

        let sent = origin.last();
        let latin1 = |bytes: &[u8]| -> String { bytes.iter().map(|&b| char::from(b)).collect() };
        assert_eq!(sent.header("if-none-match"), Some(&*latin1(etag)));
        assert_eq!(
            sent.header("if-modified-since"),
            Some(latin1(modified).trim_start()),
            "the space before a value is not part of it"
        );
    }
}

#[tokio::test]
async fn p02_validators_are_never_invented() {
    let origin = Origin::start().await;
    origin.script("/f", [answer("200 OK", &["Date: Sun, 06 Nov 1994 08:49:37 GMT"], ATOM)]);
    let fetch = HttpClient::new(settings());
    let first = document(get_with(&fetch, &origin.url("/f"), &Validators::default()).await);
    assert!(first.validators.is_empty());
    get_with(&fetch, &origin.url("/f"), &first.validators).await;
    for request in origin.requests() {
        assert_eq!(request.header("if-none-match"), None);
        assert_eq!(request.header("if-modified-since"), None);
    }
}

#[tokio::test]
async fn p03_both_validators_are_sent_if_both_are_held() {
    let origin = Origin::start().await;
    origin.script("/f", [answer("304 Not Modified", &[], "")]);
    let url = origin.url("/f");
    let held = Validators {
        last_modified: Some(b"Sun, 06 Nov 1994 08:49:37 GMT".to_vec()),
        ..held(&url, b"\"1\"")
    };
    get_with(&HttpClient::new(settings()), &url, &held).await;
    assert_eq!(origin.last().header("if-none-match"), Some("\"1\""));
    let since = origin.last();
    assert_eq!(since.header("if-modified-since"), Some("Sun, 06 Nov 1994 08:49:37 GMT"));
}

#[tokio::test]
async fn p04_validators_go_only_to_the_url_they_came_from() {
    let origin = Origin::start().await;
    origin.script("/a", [redirect("302 Found", "/b")]);
    origin.script(
        "/b",
        [answer("200 OK", &["ETag: \"of-b\""], ATOM), answer("304 Not Modified", &[], "")],
    );
    let fetch = HttpClient::new(settings());
    let first = document(get_with(&fetch, &origin.url("/a"), &Validators::default()).await);
    assert_eq!(first.validators.url, origin.url("/b"));

    let again = get_with(&fetch, &origin.url("/a"), &first.validators).await;
    assert!(matches!(again.result, Ok(FetchResponse::NotModified { .. })));
    let tags: Vec<_> = origin.requests().into_iter().skip(2).collect();
    assert_eq!(tags[0].header("if-none-match"), None, "to A");
    assert_eq!(tags[1].header("if-none-match"), Some("\"of-b\""), "to B");
}

#[tokio::test]
async fn p05_validators_are_replaced_as_a_pair() {
    let origin = Origin::start().await;
    origin.script(
        "/f",
        [
            answer("200 OK", &["ETag: \"1\"", "Last-Modified: yesterday"], ATOM),
            answer("200 OK", &["ETag: \"2\""], ATOM),
        ],
    );
    let fetch = HttpClient::new(settings());
    let first = document(get_with(&fetch, &origin.url("/f"), &Validators::default()).await);
    let second = document(get_with(&fetch, &origin.url("/f"), &first.validators).await);
    assert_eq!(second.validators.etag.as_deref(), Some(&b"\"2\""[..]));
    assert_eq!(second.validators.last_modified, None);
}

#[tokio::test]
async fn p08_a_304_is_no_error_and_brings_its_own_freshness() {
    let origin = Origin::start().await;
    let held = held(&origin.url("/f"), b"\"1\"");
    for (headers, want) in [(vec![], None), (vec!["Cache-Control: max-age=60"], Some(60))] {
        origin.script("/f", [answer("304 Not Modified", &headers, "")]);
        let got = get_with(&HttpClient::new(settings()), &held.url, &held).await;
        match got.result {
            Ok(FetchResponse::NotModified { hint_s }) => assert_eq!(hint_s, want),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn p09_a_modification_date_in_the_future_is_not_kept() {
    let origin = Origin::start().await;
    let headers = [
        "Date: Sun, 06 Nov 1994 08:49:37 GMT",
        "Last-Modified: Wed, 06 Nov 2041 08:49:37 GMT",
        "ETag: \"1\"",
    ];
    origin.script("/f", [answer("200 OK", &headers, ATOM)]);
    let got = document(get(&origin.url("/f")).await);
    assert_eq!(got.validators.last_modified, None);
    assert!(got.validators.etag.is_some());
}

#[tokio::test]
async fn p10_a_200_with_the_same_validators_is_a_document() {
    let origin = Origin::start().await;
    origin.script("/f", [answer("200 OK", &["ETag: \"constant\""], ATOM)]);
    let fetch = HttpClient::new(settings());
    let first = document(get_with(&fetch, &origin.url("/f"), &Validators::default()).await);
    let second = document(get_with(&fetch, &origin.url("/f"), &first.validators).await);
    assert_eq!(second.body, ATOM);
}

#[tokio::test]
async fn a_304_that_was_not_asked_for_is_an_error() {
    let origin = Origin::start().await;
    origin.script("/f", [answer("304 Not Modified", &[], "")]);
    assert_eq!(code(&get(&origin.url("/f")).await), "http_status");
}

#[tokio::test]
async fn s35_a_validator_that_is_no_header_value_is_not_sent() {
    let origin = Origin::start().await;
    origin.script("/f", [answer("200 OK", &[], ATOM)]);
    let evil: [&[u8]; 4] = [b"\"1\"\r\nX-Evil: 1", b"\"1\"\nX-Evil: 1", b"\0", &[b'x'; 1025]];
    for etag in evil {
        let held = held(&origin.url("/f"), etag);
        document(get_with(&HttpClient::new(settings()), &held.url, &held).await);
        let head = origin.last().head.to_ascii_lowercase();
        assert!(!head.contains("x-evil") && !head.contains("if-none-match"), "{head}");
    }
}

#[tokio::test]
async fn s35_line_breaks_in_a_topic_or_target_stay_in_the_path() {
    let origin = Origin::start().await;
    let fetch = HttpClient::new(settings());
    let url = origin.url("/f%0d%0aX-Evil:%201");
    get_with(&fetch, &url, &Validators::default()).await;
    assert_eq!(origin.last().target(), "/f%0d%0aX-Evil:%201");
    assert_eq!(origin.last().header("x-evil"), None);
}
