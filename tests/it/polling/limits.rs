//! Servers that send too much, too slowly or not at all: rules P42 and P43, S18 and S19.

use std::io::Write;
use std::time::Duration;

use feedgate::net::{Fetched, HttpClient, NetworkSettings};
use feedgate_core::poll::Validators;

use super::{ATOM, code, document, get, get_with, hasty, settings};
use crate::support::origin::{Origin, Step, answer, head};

async fn get_hastily(url: &str) -> Fetched {
    get_with(&HttpClient::new(hasty()), url, &Validators::default()).await
}

#[tokio::test]
async fn p42_a_server_that_never_answers_is_left() {
    let origin = Origin::start().await;
    origin.script("/f", [Step::Hang]);
    let got = get_hastily(&origin.url("/f")).await;
    assert_eq!(code(&got), "timed_out");
}

#[tokio::test]
async fn p42_a_body_that_pauses_too_long_is_left() {
    let origin = Origin::start().await;
    let head = head("200 OK", &["Content-Length: 1000"]);
    origin.script("/f", [Step::Drip(head, Duration::from_secs(3600))]);
    assert_eq!(code(&get_hastily(&origin.url("/f")).await), "timed_out");
}

#[tokio::test]
async fn p42_a_body_that_drips_is_left() {
    let origin = Origin::start().await;
    let head = head("200 OK", &["Content-Length: 1000000"]);
    origin.script("/f", [Step::Drip(head, Duration::from_millis(10))]);
    let got = get_hastily(&origin.url("/f")).await;
    assert_eq!(code(&got), "timed_out");
    assert!(got.wire_bytes < 1_000);
}

#[tokio::test]
async fn s19_headers_without_end_are_refused() {
    for line in [&b"X-Long: 0123456789\r\n"[..], b"0123456789"] {
        let origin = Origin::start().await;
        origin.script("/f", [Step::Flood(b"HTTP/1.1 200 OK\r\nX: ".to_vec(), line.to_vec())]);
        assert_eq!(code(&get(&origin.url("/f")).await), "unreachable");
    }
}

#[tokio::test]
async fn t11_too_many_headers_are_called_so() {
    let origin = Origin::start().await;
    let headers: Vec<String> = (0..120).map(|n| format!("X-{n}: 1")).collect();
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    origin.script("/f", [answer("200 OK", &headers, ATOM)]);
    let got = get(&origin.url("/f")).await;
    assert_eq!(code(&got), "unreachable");
    let told = got.result.unwrap_err().to_string();
    assert!(told.contains("more than 100 headers") && !told.contains("not HTTP"), "{told}");
}

#[tokio::test]
async fn p43_a_body_that_tells_it_is_too_long_is_not_read() {
    let origin = Origin::start().await;
    let head = head("200 OK", &["Content-Length: 10485761"]);
    origin.script("/f", [Step::Flood(head, vec![b' '; 65_536])]);
    let got = get(&origin.url("/f")).await;
    assert_eq!((code(&got), got.wire_bytes), ("body_too_large", 0));
}

#[tokio::test]
async fn p43_a_body_without_end_is_cut_at_the_limit() {
    let origin = Origin::start().await;
    let chunk = [&b"10000\r\n"[..], &[b' '; 65_536], b"\r\n"].concat();
    for (headers, piece) in
        [(vec![], vec![b' '; 65_536]), (vec!["Transfer-Encoding: chunked"], chunk)]
    {
        origin.script("/f", [Step::Flood(head("200 OK", &headers), piece)]);
        let got = get(&origin.url("/f")).await;
        assert_eq!(code(&got), "body_too_large");
        assert!((10_485_760..11_000_000).contains(&got.wire_bytes), "{}", got.wire_bytes);
    }
}

#[tokio::test]
async fn p43_a_body_of_exactly_the_limit_is_read() {
    let origin = Origin::start().await;
    let limit = 100_000;
    let fetch = HttpClient::new(NetworkSettings { body_limit_bytes: limit, ..settings() });
    for (length, want) in [(limit, "ok"), (limit + 1, "body_too_large")] {
        let body = vec![b' '; usize::try_from(length).unwrap()];
        origin.script("/f", [answer("200 OK", &[], body)]);
        assert_eq!(code(&get_with(&fetch, &origin.url("/f"), &Validators::default()).await), want);
    }
}

#[tokio::test]
async fn p43_a_truncated_body_is_an_error() {
    let origin = Origin::start().await;
    let whole = [head("200 OK", &["Content-Length: 1000"]), ATOM.into()].concat();
    origin.script("/told", [Step::SendAndClose(whole)]);
    let chunk = format!("{:x}\r\n{ATOM}\r\n", ATOM.len());
    let chunked = [head("200 OK", &["Transfer-Encoding: chunked"]), chunk.into()].concat();
    origin.script("/chunked", [Step::SendAndClose(chunked)]);
    for path in ["/told", "/chunked"] {
        assert_eq!(code(&get(&origin.url(path)).await), "unreachable", "{path}");
    }
}

#[tokio::test]
async fn p37_a_body_is_decoded_and_its_size_on_the_wire_is_known() {
    let origin = Origin::start().await;
    let long = ATOM.repeat(1_000);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(long.as_bytes()).unwrap();
    let coded = [
        ("gzip", gzip.finish().unwrap()),
        ("zstd", zstd::encode_all(long.as_bytes(), 1).unwrap()),
        ("gzip", long.clone().into_bytes()), // a false label
    ];
    for (coding, wire) in coded {
        let length = wire.len() as u64;
        origin.script("/f", [answer("200 OK", &[&format!("Content-Encoding: {coding}")], wire)]);
        let got = get(&origin.url("/f")).await;
        assert_eq!(got.wire_bytes, length);
        assert_eq!(document(got).body, long);
    }
}

#[tokio::test]
async fn s18_bombs_are_refused() {
    let zeros = vec![0; 32 * 1024 * 1024];
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&zeros).unwrap();
    let bombs = [
        ("gzip", gzip.finish().unwrap()),
        ("zstd", zstd::encode_all(&zeros[..], 1).unwrap()),
        ("br", include_bytes!("../../../fixtures/fetch/zeros_64_mib.br").to_vec()),
    ];
    for (coding, bomb) in bombs {
        let origin = Origin::start().await;
        origin.script("/f", [answer("200 OK", &[&format!("Content-Encoding: {coding}")], bomb)]);
        assert_eq!(code(&get(&origin.url("/f")).await), "body_too_large", "{coding}");
    }
}

#[tokio::test]
async fn an_answer_that_is_no_http_is_an_error() {
    let origin = Origin::start().await;
    for bytes in [&b"SSH-2.0-OpenSSH_9.2\r\n"[..], b"", b"HTTP/1.1 2"] {
        origin.script("/f", [Step::SendAndClose(bytes.to_vec())]);
        let got = get(&origin.url("/f")).await;
        assert_eq!(code(&got), "unreachable", "{bytes:?}");
        assert!(got.hops.last().unwrap().failure.is_some());
    }
}
