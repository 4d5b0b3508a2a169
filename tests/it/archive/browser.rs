//! What people find who open an archive, a feed or a list in a browser, and that programs never do.

use http::StatusCode;
use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderMap, IF_NONE_MATCH, LINK, VARY,
};
use serde_json::json;

use crate::support::browser::Browser;
use crate::support::feeds::rss;
use crate::support::server::client;
use crate::support::world::World;

const CHROMIUM: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,\
                        image/webp,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7";

/// Requests a document with these headers.
async fn get(url: &str, headers: &[(http::HeaderName, &str)]) -> (StatusCode, HeaderMap, String) {
    let mut request = client().get(url);
    for (name, value) in headers {
        request = request.header(name, *value);
    }
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    (status, headers, response.text().await.unwrap())
}

fn text<'h>(headers: &'h HeaderMap, name: &http::HeaderName) -> &'h str {
    headers.get(name).map_or("", |value| value.to_str().unwrap())
}

/// The addresses of the documents, with the media types of what programs get.
async fn documents(world: &World) -> Vec<(String, &'static str)> {
    let recent = world.recent().await;
    let newest = recent.trim_end_matches("/recent").to_owned();
    vec![
        (format!("{newest}/documents/1"), "application/atom+xml"),
        (recent, "application/atom+xml"),
        (newest, "application/atom+xml"),
        (world.gateway.url("/changes.xml"), "text/xml"),
        (world.gateway.url("/feeds.opml"), "text/x-opml"),
    ]
}

#[tokio::test]
async fn programs_get_the_document_whatever_browsers_got_before() {
    const READERS: [&str; 5] = [
        "",
        "*/*",
        "application/atom+xml",
        "application/atom+xml, application/rss+xml;q=0.9, text/html;q=0.7, */*;q=0.1",
        "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2",
    ];
    let world = World::with_archive().await;
    for (url, media_type) in documents(&world).await {
        let (_, first, document) = get(&url, &[]).await;
        let etag = text(&first, &ETAG);
        // Twice: the second request for a full document takes the fast path.
        for _ in 0..2 {
            let (status, headers, page) =
                get(&url, &[(ACCEPT, CHROMIUM), (IF_NONE_MATCH, etag)]).await;
            assert_eq!(status, StatusCode::OK, "{url}");
            assert_eq!(text(&headers, &CONTENT_TYPE), "text/html; charset=utf-8", "{url}");
            assert_eq!(text(&headers, &CACHE_CONTROL), "private, no-store", "{url}");
            assert_eq!(text(&headers, &VARY), "Accept", "{url}");
            assert!(!headers.contains_key(ETAG) && page.contains("<h1>"), "{url}: {page}");
            for accepted in READERS {
                let (status, headers, body) = get(&url, &[(ACCEPT, accepted)]).await;
                assert_eq!(status, StatusCode::OK, "{url} {accepted}");
                assert!(text(&headers, &CONTENT_TYPE).starts_with(media_type), "{url} {accepted}");
                assert!(text(&headers, &VARY).starts_with("Accept, Accept-Encoding"), "{url}");
                assert_eq!(text(&headers, &ETAG).is_empty(), etag.is_empty());
                assert!(body.starts_with("<?xml"), "{url} {accepted}: {body}");
            }
        }
        let source = format!("{url}?as=xml");
        let (_, headers, body) = get(&source, &[(ACCEPT, CHROMIUM)]).await;
        assert!(text(&headers, &CONTENT_TYPE).starts_with(media_type), "{source}");
        assert_eq!(body.len(), document.len(), "{source}");
        if media_type == "application/atom+xml" {
            assert_eq!(body, document, "{source}");
            let conditional = [(ACCEPT, "*/*"), (IF_NONE_MATCH, etag)];
            assert_eq!(get(&url, &conditional).await.0, StatusCode::NOT_MODIFIED, "{url}");
        }
    }
}

#[tokio::test]
async fn the_page_of_a_feed_leads_programs_to_the_feed_and_its_hub() {
    let world = World::with_archive().await;
    let recent = world.recent().await;
    let (_, headers, page) = get(&recent, &[(ACCEPT, CHROMIUM)]).await;
    let link = text(&headers, &LINK);
    for part in ["rel=\"hub\"", "rel=\"self\"", "<?as=xml>; rel=\"alternate\""] {
        assert!(link.contains(part), "{part}: {link}");
    }
    let alternate = "<link rel=\"alternate\" type=\"application/atom+xml\" href=\"?as=xml\">";
    assert!(page.contains(alternate), "{page}");
    assert!(page.contains(&format!("value=\"{recent}\"")), "{page}");
    let gone = recent.replace("recent", "documents/99");
    assert_eq!(get(&gone, &[(ACCEPT, CHROMIUM)]).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn each_revision_in_an_archive_has_its_own_text_and_updates_are_marked() {
    let world = World::with_tides(2, &[]).await;
    let callback = world.subscriber.url("/cb");
    world.gateway.subscribe_superfeedr(&world.topic, &callback, "atom").await;
    world.gateway.open_to_anonymous(&world.topic).await;
    world.gateway.comes_to_rest().await;
    world.publisher.put_rss("/feed", rss("tides", 1..3).replace("Item 1<", "Item one<"));
    world.gateway.post("/ping", &[("url", &world.topic)]).await;
    world.publisher.fetched("/feed", 2).await;
    world.gateway.comes_to_rest().await;
    let (_, _, page) = get(&world.recent().await, &[(ACCEPT, CHROMIUM)]).await;
    let (updated, first) = (page.find(">Item one<").unwrap(), page.find(">Item 1<").unwrap());
    assert!(updated < first && page.matches(">update</span>").count() == 1, "{page}");
    assert!(page[updated..first].contains(">update</span> <small>received <time "), "{page}");
}

#[tokio::test]
async fn what_publishers_wrote_is_text_in_the_page() {
    let world = World::with_tides(1, &[]).await;
    let markup = "&lt;script&gt;alert(1)&lt;/script&gt;&lt;b onclick=x()&gt;bold&lt;/b&gt;";
    let feed = format!(
        "<rss><channel><title>{markup}</title><item><guid>1</guid><title>{markup}</title>\
         <link>javascript:alert(1)</link><description>{markup}</description></item></channel></rss>"
    );
    world.publisher.put_rss("/feed", feed);
    let callback = world.subscriber.url("/cb");
    world.gateway.subscribe_superfeedr(&world.topic, &callback, "atom").await;
    world.gateway.open_to_anonymous(&world.topic).await;
    let (_, headers, page) = get(&world.recent().await, &[(ACCEPT, CHROMIUM)]).await;
    assert!(page.contains("bold"), "{page}");
    for active in ["<script", "<b onclick", "href=\"javascript"] {
        assert!(!page.contains(active), "{active}: {page}");
    }
    let policy = text(&headers, &http::header::CONTENT_SECURITY_POLICY);
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("script-src"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_shows_a_page_and_its_scripts_fetch_the_document() {
    let world = World::with_archive().await;
    let browser = Browser::start().await;
    for (url, _) in documents(&world).await {
        // The same address from a script and from the address bar, each twice: the cache of the
        // browser must not mix them.
        for _ in 0..2 {
            browser.open(&world.gateway.url("/console")).await;
            let fetch = format!("return fetch({}).then((found) => found.text())", json!(url));
            let document = browser.run(&fetch).await;
            assert!(document.as_str().unwrap().starts_with("<?xml"), "{url}: {document}");
            browser.open(&url).await;
            browser.until("document.querySelector('h1 ~ label input[readonly]') !== null").await;
        }
    }
}
