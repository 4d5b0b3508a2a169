//! `/docs` shows the document to people, and calls the gateway that served it; the document and the files of
//! the page are sent compressed, and not again to a client that has them.

use http::{StatusCode, header};
use serde_json::json;

use crate::support::browser::Browser;
use crate::support::server::client;
use crate::support::world::World;

#[tokio::test]
async fn a01_the_page_shows_the_document_and_tries_calls() {
    // Nothing at the public URL can be reached.
    let world = World::with_tides(1, &[("FEEDGATE_PUBLIC_URL", "https://gate.example/")]).await;
    let browser = Browser::start().await;
    browser.open(&world.gateway.url("/docs#/Operations/checkLiveness")).await;
    browser
        .until("document.querySelector('#operations-Operations-checkLiveness .try-out__btn')")
        .await;
    let operations = browser.run("return document.querySelectorAll('.opblock').length").await;
    assert!(operations.as_u64().unwrap() > 50, "{operations}");
    browser.click("#operations-Operations-checkLiveness .try-out__btn").await;
    browser.click("#operations-Operations-checkLiveness .execute").await;
    let answered =
        "#operations-Operations-checkLiveness .live-responses-table .response-col_status";
    browser.until(&format!("document.querySelector('tbody {answered}, {answered}')")).await;
    browser
        .until("document.querySelector('.live-responses-table').innerText.includes('200')")
        .await;
    assert_eq!(browser.complaints().await, [""; 0]);
    let loaded = "return performance.getEntriesByType('resource').map(it => new URL(it.name).origin)\
                  .filter(origin => origin !== location.origin)";
    assert_eq!(browser.run(loaded).await, json!([]), "the page loads nothing from elsewhere");
}

#[tokio::test]
async fn a01_the_document_and_the_page_are_sent_compressed_and_only_once() {
    let world = World::with_tides(1, &[]).await;
    for path in ["/openapi.json", "/docs/swagger-ui-bundle.js", "/docs/swagger-ui.css"] {
        let url = world.gateway.url(path);
        let plain = client().get(&url).send().await.unwrap();
        assert!(!plain.headers().contains_key(header::CONTENT_ENCODING), "{path}");
        let mut tags = vec![plain.headers()[header::ETAG].clone()];
        let length = plain.bytes().await.unwrap().len();
        for coding in ["gzip", "br"] {
            let get = || client().get(&url).header(header::ACCEPT_ENCODING, coding);
            let packed = get().send().await.unwrap();
            assert_eq!(packed.headers()[header::CONTENT_ENCODING], coding, "{path}");
            assert_eq!(packed.headers()[header::VARY], "Accept-Encoding", "{path}");
            let tag = packed.headers()[header::ETAG].clone();
            let packed = packed.bytes().await.unwrap().len();
            assert!(packed < length / 3, "{path} {coding}: {packed} of {length} bytes");
            let again = get().header(header::IF_NONE_MATCH, &tag).send().await.unwrap();
            assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{path} {coding}");
            assert_eq!(again.headers()[header::ETAG], tag, "{path} {coding}");
            tags.push(tag);
        }
        tags.sort();
        tags.dedup();
        assert_eq!(tags.len(), 3, "{path}: each coding has a tag of its own");
    }
    let (status, _) = world.gateway.get("/docs/start.css").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}
