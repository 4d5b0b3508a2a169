//! What the views do not show, and what they make of what strangers wrote.

use feedgate::jobs::runner;
use feedgate_core::account::AccountId;
use feedgate_core::signing::{Secret, SigningRequest};
use feedgate_core::subscription::{Format, Statuses, SubscriptionRequest};
use feedgate_core::topic::{Callback, Topic};
use feedgate_protocol::Protocol;
use http::StatusCode;

use super::{VIEWS, json_at, outlines, rows, watch};
use crate::store::on_both_stores;
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::server::client;

on_both_stores!(s48_s54_s55_no_view_shows_a_secret_or_an_inner_address);

/// A network from which nobody comes here.
const NOBODY: (&str, &str) = ("FEEDGATE_METRICS_NETWORKS", "203.0.113.0/24");

/// An open subscription, and one of an account, with a secret in all places that have one.
async fn subscribe(database: &Database, topic: &str) {
    let store = database.open().await;
    for (account, path) in [(None, "hook/s3cret"), (Some(AccountId(7)), "mine")] {
        let request = SubscriptionRequest {
            account,
            format: Format::Atom,
            statuses: Statuses::default(),
            signing: SigningRequest {
                secret: Secret::new("s3cret".to_owned()).ok(),
                ..SigningRequest::default()
            },
            ..SubscriptionRequest::new(
                Topic::parse(topic).unwrap(),
                Callback::parse(format!("https://reader.test:8443/{path}?k=s3cret")).unwrap(),
                Protocol::WebSub,
            )
        };
        store.subscribe(&request, runner::now()).await.unwrap();
    }
    store.close().await;
}

async fn s48_s54_s55_no_view_shows_a_secret_or_an_inner_address(database: Database) {
    const PUBLIC: &str = "https://feeds.test/public";
    let topics = [
        (PUBLIC, true, true),
        ("https://feeds.test/?access_token=s3cret", false, false),
        ("https://me:s3cret@feeds.test/", false, false),
        ("http://10.0.0.7/feed", false, true),
        ("http://intranet/feed", false, true),
        ("http://[fd00::7]/feed", false, true),
    ];
    for (topic, ..) in topics {
        watch(&database, topic, "Tides").await;
        subscribe(&database, topic).await;
    }
    for settings in [&[NOBODY][..], &[]] {
        let is_inside = settings.is_empty();
        let gateway = Gateway::start(&database, settings).await;
        let mut texts = String::new();
        for path in VIEWS {
            let (status, text) = gateway.get(path).await;
            assert_eq!(status, StatusCode::OK, "{path}: {text}");
            assert!(!text.contains("s3cret") && !text.contains("mine"), "{path}: {text}");
            texts.push_str(&text);
        }
        let want: Vec<&str> = topics
            .iter()
            .filter(|(_, everybody, inside)| if is_inside { *inside } else { *everybody })
            .map(|(topic, ..)| *topic)
            .collect();
        for (topic, ..) in topics {
            assert_eq!(texts.contains(topic), want.contains(&topic), "{topic}, {is_inside}");
        }
        let listed: Vec<String> = outlines(&gateway, "?urls=source")
            .await
            .into_iter()
            .filter_map(|line| line.xml_url)
            .collect();
        assert_eq!(listed, want);
        assert_eq!(rows(&gateway, "feeds").await.len(), want.len());
        let listing = json_at(&gateway, "/subscriptions.json").await;
        let feeds = listing["feeds"].as_object().unwrap();
        assert_eq!(feeds.keys().collect::<Vec<_>>(), want);
        let [one] = &**feeds[PUBLIC]["subscriptions"].as_array().unwrap() else {
            panic!("an account's is listed: {listing:#}")
        };
        let displayed = one["url"].as_str().unwrap();
        assert!(displayed.starts_with("https://reader.test:8443/…"), "{displayed}");
        assert_eq!(feeds[PUBLIC]["subscriberCount"], 3, "they are counted");
        let stats = json_at(&gateway, "/stats.json").await;
        assert_eq!(stats["feedsWithSubscribers"], topics.len(), "all are");
        assert_eq!(stats["accountSubscriptions"], topics.len());
    }
}

#[tokio::test]
async fn what_everybody_is_shown_may_be_kept_by_every_cache() {
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[NOBODY]).await;
    for path in VIEWS {
        let answer = client().get(gateway.url(path)).send().await.unwrap();
        assert_eq!(answer.headers()["cache-control"], "public, max-age=60", "{path}");
    }
}

#[tokio::test]
async fn s55_a_page_of_another_site_is_shown_no_more_than_everybody() {
    const INNER: &str = "http://10.0.0.7/feed";
    let database = Database::new(Kind::Sqlite).await;
    watch(&database, INNER, "Tides").await;
    subscribe(&database, INNER).await;
    let gateway = Gateway::start(&database, &[]).await;
    for path in VIEWS.map(|path| path.replace(".opml", ".opml?urls=source")) {
        for (origin, sees) in [(None, true), (Some("https://page.test"), false)] {
            let mut request = client().get(gateway.url(&path));
            if let Some(origin) = origin {
                request = request.header("origin", origin);
            }
            let answer = request.send().await.unwrap();
            let vary = answer.headers()["vary"].to_str().unwrap().to_owned();
            assert_eq!(vary.contains("Origin"), sees, "{path}: {vary}");
            let text = answer.text().await.unwrap();
            assert_eq!(text.contains(INNER), sees, "{path} for {origin:?}: {text}");
        }
    }
}

#[tokio::test]
async fn s24_titles_are_text_whatever_is_in_them() {
    let titles = [
        "<script>alert(1)</script> & \"quotes\" 'too'",
        "]]> &amp; &lt;b&gt; {feeds} {numbers}",
        "bell \u{7}, nul \u{0}, line\r\n\u{2028}end \u{fffe}",
        "  ",
        &"long ".repeat(1_000),
    ];
    let database = Database::new(Kind::Sqlite).await;
    for (n, title) in titles.iter().enumerate() {
        watch(&database, &format!("https://feeds.test/{n}?a=1&b=<2>&c=\"3\""), title).await;
    }
    let gateway = Gateway::start(&database, &[("FEEDGATE_LIST_ACCOUNT_FEEDS", "on")]).await;
    let seen: Vec<String> =
        outlines(&gateway, "?urls=source").await.into_iter().map(|line| line.text).collect();
    assert_eq!(seen[..2], titles[..2]);
    assert_eq!(seen[2], "bell , nul , line end \u{fffe}".replace('\u{fffe}', ""));
    assert_eq!(
        seen[3], "https://feeds.test/3?a=1&b=<2>&c=\"3\"",
        "what has no title has its address"
    );
    assert!(seen[4].chars().count() <= 201, "{}", seen[4]);
    let displayed = rows(&gateway, "feeds").await;
    assert_eq!(displayed[..2].iter().map(|row| row[0].as_str()).collect::<Vec<_>>(), titles[..2]);
    let (_, page) = gateway.get("/stats").await;
    assert!(!page.contains("<script"), "{page}");
}
