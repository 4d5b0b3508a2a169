//! What `robots.txt` says to all robots: it holds for pages and other documents, and not for feeds.

use chrono::TimeDelta;
use feedgate::jobs::runner;
use feedgate_core::record::Seq;
use feedgate_core::resource::ResourceKind;
use feedgate_core::subscription::Format;
use feedgate_protocol::robots::Robots;

use super::Bench;
use crate::store::on_both_stores;
use crate::support::feeds::rss;
use crate::support::postgres::Database;

on_both_stores!(p40_rules_for_all_robots_hold_for_pages_and_not_for_feeds,);

const PAGE: &str = "<html><body><p class=\"price\">7</p></body></html>";

async fn p40_rules_for_all_robots_hold_for_pages_and_not_for_feeds(database: Database) {
    let bench = Bench::start(&database).await;
    let publisher = &bench.publisher;
    publisher.put("/robots.txt", "text/plain", "User-agent: *\nDisallow: /closed\n");
    publisher.put_rss("/closed/feed", rss("tides", 1..2));
    for path in ["/closed/page", "/closed/part", "/open/page"] {
        publisher.put(path, "text/html", PAGE);
    }
    publisher.put("/closed/data", "application/json", "[1, 2]");
    let article =
        r#"<script type="application/ld+json">{"@type": "Article", "headline": "Ebb"}</script>"#;
    publisher.put("/closed/article", "text/html", PAGE.replace("<body>", article));

    let feed = bench.poll("/closed/feed").await;
    assert_eq!((feed.head, feed.status.error.as_str()), (Seq(1), ""));
    let open = bench.poll("/open/page").await;
    assert_eq!((open.head, open.status.error.as_str()), (Seq(1), ""));

    bench.subscribe("/closed/page", Format::Atom).await;
    // What it is shows at the first fetch only, except of a part of a page.
    for (path, fetches) in [
        ("/closed/page", 1),
        ("/closed/data", 1),
        ("/closed/article", 1),
        ("/closed/part#.price", 0),
    ] {
        for _ in 0..2 {
            let page = bench.poll(path).await;
            assert_eq!((page.head, page.body_version), (Seq(0), 0), "{path}");
            assert_eq!(page.status.error, "robots_disallowed", "{path}");
            let printed = "the robots.txt of 127.0.0.1 disallows fetching pages at this address";
            assert!(page.status.http_message.starts_with(printed), "{}", page.status.http_message);
        }
        let path = path.split('#').next().unwrap();
        assert_eq!(publisher.fetches(path).len(), fetches, "{path}");
    }

    // The rule is gone a day later: what was there before is sent to nobody, what changes is.
    let origin = publisher.url("");
    let read_at = runner::now() + TimeDelta::seconds(1);
    bench.store.save_robots(&origin, &Robots::default(), read_at).await.unwrap();
    let page = bench.poll("/closed/page").await;
    assert_eq!((page.kind, page.body_version), (ResourceKind::Other, 1), "{:?}", page.status);
    assert_eq!(bench.owed().await, []);
    publisher.put("/closed/page", "text/html", PAGE.replace('7', "8"));
    assert_eq!(bench.poll("/closed/page").await.body_version, 2);
    assert_eq!(bench.owed().await.len(), 1);
}
