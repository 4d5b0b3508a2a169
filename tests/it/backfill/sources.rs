//! Sources that lead on without end, in circles, to other servers, or to nothing.

use feedgate::jobs::runner;
use feedgate_core::backfill::{BackfillEnd, BackfillLimits};
use http::StatusCode;

use super::{Bench, atom, numbered, request, steps};
use crate::support::feeds::entry_id;
use crate::support::origin::{Origin, Step, answer};
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;

async fn bench() -> (Bench, Database) {
    let database = Database::new(Kind::Sqlite).await;
    (Bench::start(&database).await, database)
}

#[tokio::test(flavor = "multi_thread")]
async fn paged_feeds_are_followed_in_every_spelling_of_next() {
    let json = |next: &str, n: usize| {
        let id = entry_id("tides", n);
        format!(
            "{{\"version\":\"https://jsonfeed.org/version/1.1\",\"title\":\"Tides\",{next}\
             \"items\":[{{\"id\":\"{id}\",\"content_text\":\"The text of {n}\"}}]}}"
        )
    };
    let rss = |next: &str, n: usize| {
        let id = entry_id("tides", n);
        format!(
            "<rss version=\"2.0\" xmlns:atom=\"http://www.w3.org/2005/Atom\"><channel>\
             <title>Tides</title><link>https://tides.test/</link>{next}<item><title>Entry {n}\
             </title><guid isPermaLink=\"false\">{id}</guid></item></channel></rss>"
        )
    };
    let next_url = "\"next_url\":\"/older\",";
    let link = "<atom:link rel=\"next\" href=\"/older\"/>";
    let cases = [
        ("next_url of JSON Feed", "application/feed+json", json(next_url, 2), json("", 1)),
        ("atom:link in RSS", "application/rss+xml", rss(link, 2), rss("", 1)),
    ];
    for (why, mime, newest, older) in cases {
        let (bench, _database) = bench().await;
        bench.publisher.put("/feed", mime, newest);
        bench.publisher.put("/older", mime, older);
        bench.subscribe("https://b.test/cb").await;
        assert_eq!(bench.finish().await.ending, Some(BackfillEnd::Complete), "{why}");
        assert_eq!(bench.ids().await, numbered(1..=2), "{why}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_way_back_ends_where_a_source_leads_nowhere_and_keeps_what_it_found() {
    type Put = fn(&Publisher);
    let not_a_feed: Put = |publisher| publisher.put("/older", "text/html", "<h1>Log in</h1>");
    let article: Put = |publisher| {
        let json = r#"{"@type": "Article", "headline": "Log in"}"#;
        let page =
            format!("<html><script type='application/ld+json'>{json}</script><h1>Log in</h1>");
        publisher.put("/older", "text/html", page);
    };
    let gone: Put = |publisher| publisher.fail("/older", StatusCode::GONE);
    let circle: Put = |publisher| {
        let links = [("prev-archive", "/feed".to_owned())];
        publisher.put("/older", "application/atom+xml", atom(&links, 1..=1));
    };
    let unlinked: Put = |publisher| {
        let links = [("next", "/elsewhere".to_owned()), ("next-archive", "/feed".to_owned())];
        publisher.put("/older", "application/atom+xml", atom(&links, 1..=1));
    };
    let inner: Put = |publisher| {
        let links = [("prev-archive", "http://127.0.0.2:8080/secret".to_owned())];
        publisher.put("/older", "application/atom+xml", atom(&links, 1..=1));
    };
    let other: Put = |publisher| {
        let links = [("prev-archive", "gopher://127.0.0.1/0".to_owned())];
        publisher.put("/older", "application/atom+xml", atom(&links, 1..=1));
    };
    let cases = [
        ("a page that is no feed", not_a_feed, "not_a_feed", 2..=3),
        ("a page that states an article", article, "not_a_feed", 2..=3),
        ("a page that is gone", gone, "http_status", 2..=3),
        ("a circle", circle, "complete", 1..=3),
        ("a link of another kind", unlinked, "complete", 1..=3),
        ("an inner address (S3)", inner, "forbidden_address", 1..=3),
        ("no address of the web", other, "bad_url", 1..=3),
    ];
    for (why, put, ending, ids) in cases {
        let (bench, _database) = bench().await;
        let links = [("prev-archive", "/older".to_owned()), ("next", "/elsewhere".to_owned())];
        bench.publisher.put("/feed", "application/atom+xml", atom(&links, 2..=3));
        put(&bench.publisher);
        bench.subscribe("https://b.test/cb").await;
        let done = bench.finish().await;
        assert_eq!(done.ending.as_ref().map(BackfillEnd::as_str), Some(ending), "{why}");
        bench.poll().await;
        assert_eq!(bench.ids().await, numbered(ids), "{why}");
    }
}

/// A server each page of which leads to another, and holds the entries that `entries` says.
async fn endless(entries: fn(usize) -> std::ops::RangeInclusive<usize>) -> Origin {
    Origin::playing(move |request| {
        let Some(page) = request.target().strip_prefix("/feed?page=") else {
            return answer("404 Not Found", &[], "");
        };
        let page: usize = page.parse().unwrap();
        let next = [("next", format!("?page={}", page + 1))];
        answer("200 OK", &["Content-Type: application/atom+xml"], atom(&next, entries(page)))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_without_end_is_read_up_to_a_limit() {
    let most = |pages, entries, bytes| BackfillLimits { pages, entries, bytes };
    let cases = [
        ("pages", most(4, 1_000, 1 << 20), 4),
        ("entries", most(50, 10, 1 << 20), 4),
        ("bytes", most(50, 1_000, 2_000), 4),
        ("none", most(0, 1_000, 1 << 20), 0),
    ];
    for (why, limits, pages) in cases {
        let database = Database::new(Kind::Sqlite).await;
        let claim = std::time::Duration::from_secs(60);
        let bench = Bench::with(&database, limits, claim).await;
        let origin = endless(|page| {
            let newest = 300 - page * 3;
            newest..=newest + 2
        })
        .await;
        let topic = origin.url("/feed?page=1");
        bench
            .store
            .subscribe_with_history(&request(&topic, "https://b.test/cb"), runner::now())
            .await
            .unwrap();
        steps(&bench.backfills, usize::MAX).await;
        let id = bench.store.find(&topic).await.unwrap().unwrap().id;
        let done = bench.store.backfills(&[id]).await.unwrap().pop().unwrap();
        assert_eq!((done.ending, done.pages), (Some(BackfillEnd::Limited), pages), "{why}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_answers_every_page_alike_is_soon_left_alone() {
    let (bench, _database) = bench().await;
    let origin = endless(|_| 1..=3).await;
    let topic = origin.url("/feed?page=1");
    let request = request(&topic, "https://b.test/cb");
    bench.store.subscribe_with_history(&request, runner::now()).await.unwrap();
    steps(&bench.backfills, usize::MAX).await;
    let id = bench.store.find(&topic).await.unwrap().unwrap().id;
    let done = bench.store.backfills(&[id]).await.unwrap().pop().unwrap();
    assert_eq!((done.ending, done.pages, done.appended), (Some(BackfillEnd::Complete), 4, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn s49_the_credentials_of_a_topic_go_to_no_other_server() {
    let (bench, _database) = bench().await;
    let (own, other) = (Origin::start().await, Origin::start().await);
    let page = |links: &[(&str, String)], n: usize| -> Step {
        answer("200 OK", &["Content-Type: application/atom+xml"], atom(links, n..=n))
    };
    own.script("/feed", [page(&[("prev-archive", "/older".to_owned())], 3)]);
    own.script("/older", [page(&[("prev-archive", other.url("/oldest"))], 2)]);
    other.script("/oldest", [page(&[], 1)]);
    let topic = own.url("/feed").replace("http://", "http://me:opensesame@");
    let request = request(&topic, "https://b.test/cb");
    bench.store.subscribe_with_history(&request, runner::now()).await.unwrap();
    steps(&bench.backfills, usize::MAX).await;
    let secret = |origin: &Origin| {
        let pages = origin.requests().into_iter().filter(|ask| ask.target() != "/robots.txt");
        pages.map(|ask| ask.header("authorization").is_some()).collect::<Vec<_>>()
    };
    assert_eq!((secret(&own), secret(&other)), (vec![true, true], vec![false]));
    let resource = bench.store.find(&topic).await.unwrap().unwrap();
    assert_eq!(resource.head.0, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn p40_what_robots_txt_forbids_us_is_not_read() {
    let (bench, _database) = bench().await;
    bench.archive(5, 2);
    bench.publisher.put(
        "/robots.txt",
        "text/plain",
        "User-agent: feedgate\nDisallow: /documents/1\n",
    );
    bench.subscribe("https://b.test/cb").await;
    let done = bench.finish().await;
    assert_eq!(done.ending.as_ref().map(BackfillEnd::as_str), Some("robots_disallowed"));
    assert_eq!(bench.ids().await, numbered(3..=5));
    assert_eq!(bench.publisher.fetches("/documents/1").len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_in_trouble_is_asked_again_later() {
    let (bench, _database) = bench().await;
    bench.archive(3, 2);
    bench.publisher.fail("/documents/1", StatusCode::SERVICE_UNAVAILABLE);
    bench.subscribe("https://b.test/cb").await;
    let waiting = bench.finish().await;
    assert_eq!((waiting.state(), waiting.attempts, waiting.pages), ("reading", 1, 1));
    bench.poll().await;
    assert_eq!(bench.records().await, [], "what is there now waits for its history");
}
