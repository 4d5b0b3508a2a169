//! The lists of the console, of more feeds than one page has.

mod columns;
mod icons;

use feedgate_core::account::Scopes;
use http::header::LOCATION;

use super::{Visitor, make_token, subscribe, world_of_two};
use crate::store::lists::put_feeds;
use crate::support::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn c01_the_console_finds_and_counts_what_is_stored_however_much_it_is() {
    let world = World::with_tides(3, &[]).await;
    make_token(&world, "root", Scopes::all()).await;
    make_token(&world, "ada", Scopes::of_owner()).await;
    subscribe(&world, "ada", "/ada").await;
    put_feeds(&world.database, "select id from accounts where login = 'ada'").await;
    let store = world.database.open().await;
    while store.index_names().await.unwrap() > 0 {}
    for login in ["root", "ada"] {
        let visitor = Visitor::sign_in(&world, login, login).await;
        let page = async |path: &str| visitor.page(path).await.replace('\u{a0}', " ");
        let overview = page("/console").await;
        for part in [
            "Feeds<b>3 004</b>",
            "Failing feeds<b class=\"warning\">3</b>",
            "Failing subscriptions<b class=\"warning\">2</b>",
        ] {
            assert!(overview.contains(part), "{login}: {part}: {overview}");
        }
        assert!(overview.contains("/blog/1001.xml"), "{overview}");
        let found = page("/console/feeds?q=blog%2F2500").await;
        assert!(found.contains("/blog/2500.xml") && found.contains("1 feed found"), "{found}");
        let failing = page("/console/feeds?state=failing").await;
        assert!(failing.contains("3 feeds found") && failing.contains("/2002.xml"), "{failing}");
        let found = page("/console/subscriptions?q=s11.test/2501").await;
        assert!(found.contains("1 subscription found"), "{found}");

        // Forth and back through the pages.
        let first = page("/console/feeds").await;
        let second = page(&neighbour(&first, "next")).await;
        let third = page(&neighbour(&second, "next")).await;
        assert_ne!(rows(&second), rows(&third));
        let back = page(&neighbour(&third, "prev")).await;
        assert_eq!(rows(&second), rows(&back));
        assert_eq!(rows(&first), rows(&page(&neighbour(&back, "prev")).await));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c04_all_subscriptions_that_match_are_changed_at_once() {
    let world = World::with_tides(3, &[]).await;
    make_token(&world, "root", Scopes::all()).await;
    put_feeds(&world.database, "select id from accounts where login = 'root'").await;
    let root = Visitor::sign_in(&world, "root", "root").await;
    let page = async |path: &str| root.page(path).await.replace('\u{a0}', " ");
    let form = [("all", "1"), ("q", "s11.test"), ("action", "pause")];
    let question = root.act("/console/subscriptions", &form).await.text().await.unwrap();
    assert!(question.contains("<h1>Pause all subscriptions that match?</h1>"), "{question}");
    let pause = async |form: &[(&str, &str)]| {
        let form = [form, &[("all", "1"), ("confirmed", "1"), ("action", "pause")]].concat();
        let response = root.act("/console/subscriptions", &form).await;
        let location = response.headers()[LOCATION].to_str().unwrap().to_owned();
        page(&location.replace("../", "/")).await
    };
    let done = pause(&[("q", "s11.test")]).await;
    assert!(done.contains("done for 100.") && !done.contains("Go on"), "{done}");

    // Of many, some are changed at once.
    let done = pause(&[]).await;
    assert!(done.contains("done for 500.") && done.contains("Go on with the others"), "{done}");
    let (_, left) = done.split_once("name=\"from\" value=\"").unwrap();
    let done = pause(&[("from", left.split('"').next().unwrap())]).await;
    assert!(done.contains("done for 500."), "{done}");
    let paused = page("/console/subscriptions?state=paused&q=s12.test").await;
    assert!(paused.contains("s12.test") && paused.contains("33 subscriptions"), "{paused}");
}

/// Returns the path of the page before or behind one.
fn neighbour(page: &str, rel: &str) -> String {
    let (_, link) = page.split_once(&format!("rel=\"{rel}\" href=\"../")).expect("there is a link");
    format!("/{}", link.split('"').next().unwrap().replace("&amp;", "&"))
}

/// Returns the addresses of the feeds on a page.
fn rows(page: &str) -> Vec<&str> {
    let links = page.split("href=\"../console/feeds/").skip(1);
    links.filter_map(|link| link.split('"').next()).collect()
}

#[tokio::test]
async fn several_subscriptions_are_controlled_at_once() {
    let world = world_of_two().await;
    subscribe(&world, "ada", "/second").await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let page = ada.page("/console/subscriptions").await;
    let ids: Vec<&str> = page
        .match_indices("name=\"id\" value=\"")
        .map(|(at, found)| page[at + found.len()..].split('"').next().unwrap())
        .collect();
    assert_eq!(ids.len(), 2);
    let form: Vec<_> = ids.iter().map(|id| ("id", *id)).chain([("action", "pause")]).collect();
    let response = ada.act("/console/subscriptions", &form).await;
    let question = response.text().await.unwrap();
    assert!(
        question.replace('\u{a0}', " ").contains("<h1>Pause 2 subscriptions?</h1>"),
        "{question}"
    );
    assert!(
        ada.page("/console/subscriptions?state=paused").await.contains("No subscriptions found")
    );
    let form = [&form[..], &[("confirmed", "1")]].concat();
    let response = ada.act("/console/subscriptions", &form).await;
    assert!(response.headers()[LOCATION].to_str().unwrap().contains("count=2"));
    let paused = ada.page("/console/subscriptions?state=paused").await;
    assert!(paused.contains("/ada") && paused.contains("/second"), "{paused}");
}
