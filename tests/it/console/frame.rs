//! The frame of all pages, the icon, and the page where there is nothing (C9).

use http::StatusCode;
use http::header::{ACCEPT, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use reqwest::Response;

use crate::support::server::client;
use crate::support::world::World;

const FIREFOX: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

async fn get(world: &World, path: &str, accept: &str) -> Response {
    let request = client().get(world.gateway.url(path)).header(ACCEPT, accept);
    request.send().await.unwrap()
}

#[tokio::test]
async fn c09_every_page_has_the_frame_and_the_icon() {
    let world = World::with_tides(1, &[]).await;
    let pages = [
        "/",
        "/author",
        "/stats",
        "/changes.xml",
        "/feeds.opml",
        "/viewLog",
        "/bot",
        "/pingSiteForm",
        "/console",
        "/errors/rate_limited",
        "/no/such/page",
        "/feeds/99",
    ];
    for path in pages {
        let page = get(&world, path, FIREFOX).await.text().await.unwrap();
        assert!(page.contains("class=\"brand\""), "{path}: {page}");
        assert!(page.contains("rel=\"icon\" href=\"data:image/svg+xml;base64,"), "{path}");
        assert!(page.len() < 100_000, "{path}: {} bytes", page.len());
    }
    for (path, media_type, beginning) in [
        ("/favicon.svg", "image/svg+xml", &b"<svg "[..]),
        ("/favicon.ico", "image/vnd.microsoft.icon", &[0, 0, 1, 0]),
    ] {
        let response = get(&world, path, "*/*").await;
        assert_eq!(response.headers()[CONTENT_TYPE], media_type);
        assert!(response.bytes().await.unwrap().starts_with(beginning), "{path}");
    }
}

#[tokio::test]
async fn c09_where_there_is_nothing_a_browser_is_led_on_and_a_program_told_so() {
    let world = World::with_tides(1, &[]).await;
    let response = get(&world, "/no/<b>where", FIREFOX).await;
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    assert_eq!(response.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
    assert!(response.headers().contains_key(CONTENT_SECURITY_POLICY));
    let page = response.text().await.unwrap();
    for piece in ["href=\"../viewLog?feed=", "href=\"../docs\"", "href=\"../console/feeds?q="] {
        assert!(page.contains(piece), "{piece}: {page}");
    }
    assert!(!page.contains("<b>where"), "{page}");
    for (path, meant) in [("/viewlog", "viewLog"), ("/changes", "changes.xml"), ("/bots", "bot")] {
        let page = get(&world, path, FIREFOX).await.text().await.unwrap();
        assert!(page.contains(&format!("Did you mean <a href=\"{meant}\">")), "{path}: {page}");
    }
    // Each link of a page repeats the way to the root.
    let deep = "/x".repeat(200);
    for (path, accept) in [("/no/where", "*/*"), ("/no/where", ""), (deep.as_str(), FIREFOX)] {
        let response = get(&world, path, accept).await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND);
        assert_eq!(response.headers()[CONTENT_TYPE], "text/plain; charset=utf-8");
        assert_eq!(response.text().await.unwrap(), "There is nothing at this URL.\n");
    }
}
