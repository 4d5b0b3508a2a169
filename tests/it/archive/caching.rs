//! What a cache in front of an archive may keep, and how it asks again.

use std::io::Read;

use http::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE,
    DATE, ETAG, HeaderName, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, LAST_MODIFIED, RANGE, VARY,
};
use http::{Method, StatusCode};
use reqwest::Response;

use super::{get, header};
use crate::support::feeds::{entry_id, link};
use crate::support::gateway::Gateway;
use crate::support::server::client;
use crate::support::until;
use crate::support::world::World;

/// Asks with these headers.
async fn ask(method: Method, url: &str, headers: &[(HeaderName, &str)]) -> Response {
    let mut request = client().request(method, url);
    for (name, value) in headers {
        request = request.header(name, *value);
    }
    request.send().await.unwrap()
}

async fn read(url: &str, headers: &[(HeaderName, &str)]) -> Response {
    ask(Method::GET, url, headers).await
}

#[tokio::test]
async fn documents_come_compressed_with_a_tag_for_each_form() {
    let world = World::with_archive().await;
    let recent = world.recent().await;
    for url in [recent.replace("recent", "documents/1"), recent.clone()] {
        let plain = get(&url).await;
        let (etag, text) = (header(&plain, ETAG), plain.text().await.unwrap());
        assert!(etag.starts_with('"'), "strong: {etag}");
        let mut tags = vec![etag];
        for (accepted, coding) in [("gzip", "gzip"), ("br, gzip", "br"), ("gzip, br;q=0.1", "gzip")]
        {
            let answer = read(&url, &[(ACCEPT_ENCODING, accepted)]).await;
            assert_eq!(header(&answer, CONTENT_ENCODING), coding, "{accepted}");
            assert_eq!(header(&answer, VARY), "Accept, Accept-Encoding");
            let (etag, length) = (header(&answer, ETAG), header(&answer, CONTENT_LENGTH));
            let body = answer.bytes().await.unwrap();
            assert_eq!(length, body.len().to_string());
            let mut back = String::new();
            match coding {
                "br" => {
                    let mut brotli = brotli_decompressor::Decompressor::new(body.as_ref(), 4_096);
                    brotli.read_to_string(&mut back).unwrap();
                }
                _ => {
                    let mut gzip = flate2::read::GzDecoder::new(body.as_ref());
                    gzip.read_to_string(&mut back).unwrap();
                }
            }
            assert_eq!(back, text, "{url} {accepted}");
            let again = read(&url, &[(ACCEPT_ENCODING, accepted), (IF_NONE_MATCH, &etag)]).await;
            assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
            assert_eq!(
                (header(&again, ETAG), header(&again, VARY)),
                (etag.clone(), "Accept, Accept-Encoding".into())
            );
            let head = ask(Method::HEAD, &url, &[(ACCEPT_ENCODING, accepted)]).await;
            assert_eq!(header(&head, CONTENT_LENGTH), length);
            tags.push(etag);
        }
        assert_eq!(tags.pop(), Some(tags[1].clone()), "the same form, the same tag");
        tags.dedup();
        assert_eq!(tags.len(), 3, "{tags:?}");
    }
}

#[tokio::test]
async fn who_holds_a_document_is_told_that_it_is_the_same() {
    let world = World::with_archive().await;
    let recent = world.recent().await;
    for url in [recent.replace("recent", "documents/2"), recent.clone()] {
        let first = get(&url).await;
        let etag = header(&first, ETAG);
        let cache = header(&first, CACHE_CONTROL);
        for held in [etag.clone(), format!("W/{etag}"), format!("\"x\", W/{etag}"), "*".to_owned()]
        {
            let again = read(&url, &[(IF_NONE_MATCH, &held)]).await;
            assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{url} {held}");
            assert_eq!(header(&again, CACHE_CONTROL), cache);
            assert_eq!(again.text().await.unwrap(), "");
        }
        let head = ask(Method::HEAD, &url, &[(IF_NONE_MATCH, &etag)]).await;
        assert_eq!(head.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(header(&head, CONTENT_LENGTH), "", "the document is not that short");
        let other = read(&url, &[(IF_NONE_MATCH, "\"x\""), (IF_NONE_MATCH, "W/\"y\"")]).await;
        assert_eq!(other.status(), StatusCode::OK);
    }
    // A date is less than a tag: it is not looked at beside one, and archives have none.
    let archived = recent.replace("recent", "documents/2");
    let late = [(IF_MODIFIED_SINCE, "Fri, 01 Jan 2100 00:00:00 GMT")];
    assert_eq!(header(&get(&archived).await, LAST_MODIFIED), "");
    assert_eq!(read(&archived, &late).await.status(), StatusCode::OK);
    let beside = [late[0].clone(), (IF_NONE_MATCH, "\"x\"")];
    assert_eq!(read(&recent, &beside).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_part_of_an_archived_document_can_be_had() {
    let world = World::with_archive().await;
    let recent = world.recent().await;
    let url = recent.replace("recent", "documents/1");
    let whole = get(&url).await;
    assert_eq!(header(&whole, ACCEPT_RANGES), "bytes");
    let (etag, text) = (header(&whole, ETAG), whole.text().await.unwrap());
    let part = read(&url, &[(RANGE, "bytes=5-9")]).await;
    assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT);
    assert_eq!(header(&part, CONTENT_RANGE), format!("bytes 5-9/{}", text.len()));
    assert_eq!(part.text().await.unwrap(), text[5..10]);
    let beyond = read(&url, &[(RANGE, "bytes=1000000-")]).await;
    assert_eq!(beyond.status(), StatusCode::RANGE_NOT_SATISFIABLE);
    assert_eq!(header(&beyond, CONTENT_RANGE), format!("bytes */{}", text.len()));

    let cases = [(etag.as_str(), StatusCode::PARTIAL_CONTENT), ("\"x\"", StatusCode::OK)];
    for (held, want) in cases {
        let answer = read(&url, &[(RANGE, "bytes=0-0"), (IF_RANGE, held)]).await;
        assert_eq!(answer.status(), want, "{held}");
    }
    let open = read(&recent, &[(RANGE, "bytes=5-9")]).await;
    assert_eq!((open.status(), header(&open, ACCEPT_RANGES)), (StatusCode::OK, String::new()));
}

/// A query that means nothing leads a request the usual way.
#[tokio::test]
async fn what_is_at_hand_is_answered_in_the_same_words() {
    let world = World::with_archive().await;
    let url = world.recent().await.replace("recent", "documents/1");
    let told = async |url: &str, request: &[(HeaderName, &str)]| {
        let mut answer = read(url, request).await;
        let mut headers = std::mem::take(answer.headers_mut());
        headers.remove(DATE);
        (answer.status(), headers, answer.bytes().await.unwrap())
    };
    let etag = header(&get(&url).await, ETAG);
    let cases: [&[(HeaderName, &str)]; 6] = [
        &[],
        &[(ACCEPT_ENCODING, "gzip")],
        &[(ACCEPT_ENCODING, "br")],
        &[(IF_NONE_MATCH, &etag)],
        &[(RANGE, "bytes=5-9")],
        &[(RANGE, "bytes=1000000-")],
    ];
    for request in cases {
        let routed = told(&format!("{url}?x"), request).await;
        assert_eq!(told(&url, request).await, routed, "{request:?}");
    }
    let posted = ask(Method::POST, &url, &[]).await;
    assert_eq!(posted.status(), StatusCode::METHOD_NOT_ALLOWED);
}

/// Another node, or the next start, gives the same tag for the same bytes.
#[tokio::test]
async fn tags_and_bytes_outlive_the_process() {
    let mut world = World::with_archive().await;
    let url = world.recent().await.replace("recent", "documents/2");
    let before = get(&url).await;
    let (etag, bytes) = (header(&before, ETAG), before.bytes().await.unwrap());
    world.gateway.kill();
    world.gateway.restart().await;
    let after = get(&url).await;
    assert_eq!((header(&after, ETAG), after.bytes().await.unwrap()), (etag, bytes));
}

#[tokio::test]
async fn documents_that_are_no_longer_kept_are_gone() {
    let world = World::with_archive().await;
    world.gateway.comes_to_rest().await;
    let keep_two = [("FEEDGATE_ARCHIVE_RETENTION_PAGES", "2")];
    let other = Gateway::start(&world.database, &keep_two).await;
    let recent = link(&other.fetch(&other.archive_of(&world.topic)).await.1, "self").unwrap();
    let store = world.database.open().await;
    let id = store.find(&world.topic).await.unwrap().unwrap().id;
    until("the first page is dropped", async || store.oldest_page(id).await.unwrap() == 2).await;
    let first = recent.replace("recent", "documents/1");
    let gone = get(&first).await;
    assert_eq!(gone.status(), StatusCode::GONE);
    assert!(gone.text().await.unwrap().contains("was deleted"));
    // The oldest that is left keeps its bytes, and so the link.
    let second = get(&recent.replace("recent", "documents/2")).await.text().await.unwrap();
    assert_eq!(link(&second, "prev-archive"), Some(first));
    assert!(second.contains(&entry_id("tides", 3)), "{second}");
}

/// Its link to what was dropped went with no entry that could date it.
#[tokio::test]
async fn the_recent_document_has_no_date_once_it_has_lost_its_link() {
    let world = World::with_archive().await;
    world.gateway.comes_to_rest().await;
    let keep_one = [("FEEDGATE_ARCHIVE_RETENTION_PAGES", "1")];
    let other = Gateway::start(&world.database, &keep_one).await;
    let recent = link(&other.fetch(&other.archive_of(&world.topic)).await.1, "self").unwrap();
    let store = world.database.open().await;
    let id = store.find(&world.topic).await.unwrap().unwrap().id;
    until("the others are dropped", async || store.oldest_page(id).await.unwrap() == 3).await;
    let answer = read(&recent, &[(IF_MODIFIED_SINCE, "Fri, 01 Jan 2100 00:00:00 GMT")]).await;
    assert_eq!((answer.status(), header(&answer, LAST_MODIFIED)), (StatusCode::OK, String::new()));
    assert_eq!(link(&answer.text().await.unwrap(), "prev-archive"), None);
}
