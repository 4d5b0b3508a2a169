//! Lists of feeds: import, with a report on each feed, and export.

use std::fmt::Write;

use feedgate_core::account::Scopes;
use http::StatusCode;
use http::header::{CONTENT_DISPOSITION, LOCATION};
use reqwest::Response;
use serde_json::{Value, json};

use super::pages::{axe, check_displayed, sign_in};
use super::{Visitor, make_token, subscribe, tokens, world_of_two};
use crate::support::browser::Browser;
use crate::support::feeds::{between, entry_ids, rss};
use crate::support::gateway::{Gateway, LOGIN, TOKEN};
use crate::support::postgres::{self, Database, Kind};
use crate::support::until;
use crate::support::world::World;

impl Visitor<'_> {
    /// Imports a file with the form.
    async fn import(&self, document: &str, callback: &str) -> (StatusCode, String) {
        self.import_with(document, &[("callback", callback)]).await
    }

    /// Imports a file with these fields of the form.
    async fn import_with(&self, document: &str, more: &[(&str, &str)]) -> (StatusCode, String) {
        let page = self.page("/console/opml").await;
        let (_, token) = page.split_once("name=\"csrf_token\" value=\"").unwrap();
        let token = token.split('"').next().unwrap();
        let mut body = String::new();
        for (name, value) in [("csrf_token", token), ("opml", "")].iter().chain(more) {
            let head = format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"");
            write!(body, "{head}\r\n\r\n{value}\r\n").unwrap();
        }
        let head = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.opml\"";
        write!(body, "{head}\r\nContent-Type: text/x-opml\r\n\r\n{document}\r\n--x--\r\n").unwrap();
        let request = self.client.post(self.world.gateway.url("/console/opml"));
        let request = request.header("cookie", &self.cookie);
        let request = request.header("content-type", "multipart/form-data; boundary=x");
        let response = request.body(body).send().await.unwrap();
        let status = response.status();
        if status != StatusCode::SEE_OTHER {
            return (status, response.text().await.unwrap());
        }
        (status, self.import_report(&import_path(&response)).await)
    }

    /// Waits until an import has ended, and returns its page.
    async fn import_report(&self, path: &str) -> String {
        let mut page = String::new();
        until("the import has ended", async || {
            page = self.page(path).await;
            !page.contains("data-in-progress")
        })
        .await;
        page
    }
}

/// Returns the path of the page that the response to a form leads to.
fn import_path(response: &Response) -> String {
    let location = response.headers()[LOCATION].to_str().unwrap();
    response.url().join(location).unwrap().path().to_owned()
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
    assert_eq!(status, StatusCode::SEE_OTHER, "{page}");
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
    world.gateway.open_to_anonymous(tides).await; // so that everybody may read the archive
    world.gateway.archive_holds(tides, "tag:tides.test,2026:3").await;
    world.put_tides(4);
    world.gateway.post("/ping", &[("url", tides)]).await;
    world.subscriber.until("/ada", |received| !received.is_empty()).await;
    let received = &world.subscriber.notified("/ada")[0];
    let body = String::from_utf8_lossy(&received.body);
    assert_eq!(entry_ids(&body), ["tag:tides.test,2026:4"], "{body}");
}

#[tokio::test]
async fn p52_pages_of_a_list_are_followed_if_the_form_says_so() {
    let world = World::with_tides(1, &[]).await;
    let head = "<link rel=alternate type=application/rss+xml title=Tides href=/feed>";
    world.publisher.put("/home", "text/html", format!("<html><head>{head}</head><body><p>x"));
    let ada = Visitor::sign_in(&world, LOGIN, TOKEN).await;
    assert!(ada.page("/console/opml").await.contains("name=\"follow\""));
    let home = world.publisher.url("/home");
    let list = format!("<opml><body><outline xmlUrl='{home}'/></body></opml>");
    let (page, feed) = (world.subscriber.url("/page"), world.subscriber.url("/feed"));
    for fields in [&[("callback", page.as_str())][..], &[("callback", &feed), ("follow", "true")]] {
        let (_, report) = ada.import_with(&list, fields).await;
        assert!(report.contains("Subscribed to 1\u{a0}feed of 1."), "{report}");
    }
    let listed = world.gateway.own("/?hub.mode=list").await;
    let subscriptions = listed.as_array().unwrap().iter().map(|one| &one["subscription"]);
    let followed = |callback: &str| {
        let mut held = subscriptions.clone().filter(|held| held["endpoint"] == callback);
        let feed = &held.next().unwrap_or_else(|| panic!("{callback}: {listed}"))["feed"];
        (feed["url"].clone(), feed["followed"].clone())
    };
    assert_eq!(followed(&page), (home.as_str().into(), Value::Null));
    assert_eq!(followed(&feed), (home.as_str().into(), world.topic.as_str().into()));
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
async fn an_import_that_the_database_ends_early_reports_what_it_has_done() {
    let world = World::with_tides(3, &[]).await;
    make_token(&world, "ada", Scopes::all()).await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let refuse = "
        create trigger refuse before insert on resources when new.topic like '%/refused'
        begin select raise(abort, 'no more'); end";
    world.database.run(refuse).await;
    let url = |path: &str| world.publisher.url(path);
    let outlines: String = (0..40)
        .map(|n| if n == 10 { url("/refused") } else { url(&format!("/{n}")) })
        .map(|url| format!("<outline xmlUrl='{url}'/>"))
        .collect();
    let list = format!("<opml><body>{outlines}</body></opml>");
    let (_, page) = ada.import(&list, &world.subscriber.url("/ada")).await;
    assert!(page.contains("The import ended early because the database failed"), "{page}");
    assert!(page.contains("whsec_"), "the secret of what was stored: {page}");
    let subscribed = world.database.texts("select cast(id as text) from subscriptions").await;
    let want = format!("Subscribed to {}\u{a0}feeds of 40.", subscribed.len());
    assert!(subscribed.len() >= 10 && page.contains(&want), "{want} {page}");
}

#[tokio::test]
async fn h07_an_import_ends_with_the_token_that_began_it() {
    let world = World::with_tides(3, &[]).await;
    for token in ["ada", "other"] {
        tokens::create(&world, token, Scopes::all(), None).await;
    }
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let revoke = "
        create trigger revoke after insert on resources when new.topic like '%/revoked'
        begin update tokens set revoked_at = 1 where name = 'ada'; end";
    world.database.run(revoke).await;
    let url = |path: &str| world.publisher.url(path);
    let outlines: String = (0..200)
        .map(|n| if n == 10 { url("/revoked") } else { url(&format!("/{n}")) })
        .map(|url| format!("<outline xmlUrl='{url}'/>"))
        .collect();
    let list = format!("<opml><body>{outlines}</body></opml>");
    ada.import(&list, &world.subscriber.url("/ada")).await;
    let other = Visitor::sign_in(&world, "ada", "other").await;
    let page = other.page("/console/opml").await;
    let import = between(&page, "opml/imports/", "\"").unwrap().to_owned();
    let page = other.import_report(&format!("/console/opml/imports/{import}")).await;
    let reason = "ended early because you signed out, or the token was revoked";
    assert!(page.contains(reason), "{page}");
    let subscribed = world.database.texts("select cast(id as text) from subscriptions").await;
    assert!((10..100).contains(&subscribed.len()), "{}", subscribed.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_an_import_follows_it_to_its_report() {
    let database = Database::with_cells(Kind::Postgres, 1).await;
    let gateway = Gateway::start(&database, &[]).await;
    let world = World::on(database, gateway).await;
    for login in ["root", "bob"] {
        make_token(&world, login, Scopes::all()).await;
    }
    // The import waits for this lock, and nothing that the page reads does.
    let mut lock = postgres::connect(&world.database.url).await;
    let lock = lock.transaction().await.unwrap();
    lock.batch_execute("lock table subscriptions in exclusive mode").await.unwrap();

    let (browser, axe) = (Browser::start().await, axe());
    sign_in(&browser, &world, "root").await;
    let list = format!(
        "<opml><body><outline text='Tides' xmlUrl='{}'/><outline text='Moon' \
         xmlUrl='ftp://moon.test/'/></body></opml>",
        world.topic
    );
    let send = async || {
        browser.open(&world.gateway.url("/console/opml")).await;
        browser.fill("#opml", &list).await;
        browser.fill("#callback", &world.subscriber.url("/ada")).await;
        browser.click("form[enctype] button.primary").await;
    };
    send().await;
    browser.until("document.querySelector('progress')?.max === 2").await;
    let import = browser.run("return location.href").await;
    let import = import.as_str().unwrap();
    let mut wrong = Vec::new();
    for (width, theme) in [(1280, "light"), (390, "dark")] {
        browser.emulate(width, theme).await;
        check_displayed(&browser, &axe, ("import", width, theme), &mut wrong).await;
    }
    send().await;
    let says = |text: &str| format!("document.body.innerText.includes({})", json!(text));
    browser.until(&says("An import of this account is still in progress.")).await;
    browser.click("[role=alert] a").await;
    browser.until("document.querySelector('progress')").await;
    let bob = Visitor::sign_in(&world, "bob", "bob").await;
    let path = import.strip_prefix(world.gateway.url("").as_str()).unwrap();
    assert_eq!(bob.get(path).await.0, StatusCode::NOT_FOUND, "it is an import of root");

    lock.commit().await.unwrap();
    browser.until(&says("Subscribed to 1\u{a0}feed of 2.")).await;
    browser.until(&says("whsec_")).await;
    for (width, theme) in [(1280, "dark"), (390, "light")] {
        browser.emulate(width, theme).await;
        check_displayed(&browser, &axe, ("import-report", width, theme), &mut wrong).await;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let complaints = browser.complaints().await;
    let other = complaints.iter().filter(|complaint| !complaint.contains("409 (Conflict)"));
    assert_eq!(other.count(), 0, "nothing is forbidden, no script fails: {complaints:?}");
    browser.open(&world.gateway.url("/console/opml")).await;
    browser.click("a[href*=\"opml/imports/\"]").await;
    browser.until(&says("Subscribed to 1\u{a0}feed of 2.")).await;
    browser.until(&format!("!{}", says("whsec_"))).await;
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
