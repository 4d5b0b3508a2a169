//! The lists of the console, of more feeds than one page has.

use feedgate_core::account::Scopes;

use super::{Visitor, make_token, subscribe};
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
        for part in ["Feeds<b>3 004</b>", "Failing feeds<b>3</b>", "Failing subscriptions<b>2</b>"]
        {
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
