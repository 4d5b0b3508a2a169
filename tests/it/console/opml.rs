//! Lists of feeds: import, with a report on each feed, and export.

use std::fmt::Write;

use feedgate_core::account::Scopes;
use http::StatusCode;
use http::header::CONTENT_DISPOSITION;

use super::{Visitor, make_token, subscribe, world_of_two};
use crate::support::feeds::{entry_ids, rss};
use crate::support::world::World;

impl Visitor<'_> {
    /// Imports a file with the form.
    async fn import(&self, document: &str, callback: &str) -> (StatusCode, String) {
        let page = self.page("/console/opml").await;
        let (_, token) = page.split_once("name=\"csrf_token\" value=\"").unwrap();
        let token = token.split('"').next().unwrap();
        let mut body = String::new();
        let fields = [("csrf_token", token), ("callback", callback), ("opml", "")];
        for (name, value) in fields {
            let head = format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"");
            write!(body, "{head}\r\n\r\n{value}\r\n").unwrap();
        }
        let head = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.opml\"";
        write!(body, "{head}\r\nContent-Type: text/x-opml\r\n\r\n{document}\r\n--x--\r\n").unwrap();
        let request = self.client.post(self.world.gateway.url("/console/opml"));
        let request = request.header("cookie", &self.cookie);
        let request = request.header("content-type", "multipart/form-data; boundary=x");
        let response = request.body(body).send().await.unwrap();
        (response.status(), response.text().await.unwrap())
    }
}

#[tokio::test]
async fn feeds_are_imported_from_a_broken_list_and_reported_on() {
    let world = World::with_tides(3, &[]).await;
    world.publisher.put_rss("/moon", rss("moon", 1..2));
    make_token(&world, "ada", Scopes::all()).await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let (tides, moon) = (world.topic.as_str(), world.publisher.url("/moon"));
    let list = format!(
        "<opml>\n<body><outline text='Sea & <sky>'>\n<outline text='Tides' xmlUrl='{tides}'>\n\
         <outline text='Moon' type='rss' xmlUrl='{moon}'/>\n<outline xmlUrl='ftp://a.test/'/>\n\
         <outline text='Inner' xmlUrl='http://10.1.2.3/feed'/>\n<outline xmlUrl='{tides}'/>"
    );
    let callback = world.subscriber.url("/ada");
    let (status, page) = ada.import(&list, &callback).await;
    assert_eq!(status, StatusCode::OK, "{page}");
    #[rustfmt::skip]
    let parts = [
        "Subscribed to 2\u{a0}feeds of 5.", "Failed: 2", "ftp: URLs are not supported",
        "10.1.2.3 is not a public address", ">5</td>", ">6</td>", "Listed more than once: 1", "whsec_",
    ];
    for part in parts {
        assert!(page.contains(part), "{part}: {page}");
    }
    let (_, page) = ada.import(&list, &callback).await;
    assert!(page.contains("Subscribed to 0\u{a0}feeds of 5."), "{page}");
    assert!(page.contains("Already subscribed: 2") && !page.contains("whsec_"), "{page}");

    // What the first fetch finds existed before, and is sent to nobody.
    world.publisher.fetched("/feed", 1).await;
    world.gateway.archive_holds(tides, "tag:tides.test,2026:3").await;
    world.put_tides(4);
    world.gateway.post("/ping", &[("url", tides)]).await;
    world.subscriber.until("/ada", |received| !received.is_empty()).await;
    let received = &world.subscriber.notified("/ada")[0];
    let body = String::from_utf8_lossy(&received.body);
    assert_eq!(entry_ids(&body), ["tag:tides.test,2026:4"], "{body}");
}

#[tokio::test]
async fn a_list_that_cannot_be_imported_is_refused_with_the_reason() {
    let world = world_of_two().await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let many = |feeds: usize| {
        let outlines: String =
            (0..feeds).map(|n| format!("<outline xmlUrl='http://{n}.test/'/>")).collect();
        format!("<opml><body>{outlines}</body></opml>")
    };
    let (most, long) = (many(2_001), format!("<opml>{}", " ".repeat(1 << 20)));
    #[rustfmt::skip]
    let cases = [
        ("",                                          "Please choose an OPML file"),
        ("{}",                                        "The list cannot be imported: the document is not OPML."),
        ("<opml><body><outline text='a'/></body></opml>", "The list has no feeds."),
        (most.as_str(),                               "The list has 2001 feeds, and at most 2000"),
        (long.as_str(),                               "The list is longer than 1 MiB."),
    ];
    for (list, want) in cases {
        let (status, page) = ada.import(list, "").await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{want}");
        assert!(page.contains(want), "{want}");
    }
    let (_, page) = ada.import(&many(1), "ftp://a.test/").await;
    assert!(page.contains("The callback cannot be used"), "{page}");
}

#[tokio::test]
async fn s48_the_exported_list_has_the_feeds_of_the_account_and_no_secrets_of_others() {
    let world = world_of_two().await;
    let secret = World { topic: format!("{}?token=opensesame", world.topic), ..world };
    subscribe(&secret, "ada", "/ada").await;
    let world = secret;
    let export = async |login: &str| {
        let visitor = Visitor::sign_in(&world, login, login).await;
        let request = visitor.client.get(world.gateway.url("/console/opml/feeds.opml"));
        let response = request.header("cookie", &visitor.cookie).send().await.unwrap();
        let name = response.headers()[CONTENT_DISPOSITION].to_str().unwrap().to_owned();
        assert_eq!(name, "attachment; filename=\"feeds.opml\"");
        response.text().await.unwrap()
    };
    let own = export("ada").await;
    assert!(own.contains("title=\"tides\"") && own.contains("?token=opensesame\""), "{own}");
    let all = export("root").await;
    assert!(all.contains("/feed\"") && !all.contains("opensesame"), "{all}");
    let none = export("bob").await;
    assert!(!none.contains("xmlUrl") && none.contains("There are no feeds yet."), "{none}");
}
