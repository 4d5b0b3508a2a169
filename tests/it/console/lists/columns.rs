//! Columns of the lists of the console that somebody hides.

use feedgate_core::account::Scopes;
use http::StatusCode;
use http::header::{LOCATION, SET_COOKIE};

use crate::console::pages::{axe, check_displayed, sign_in};
use crate::console::{Visitor, make_token, subscribe, world_of_two};
use crate::support::browser::Browser;
use crate::support::feeds::between;
use crate::support::world::World;

const ALL_OF_FEEDS: [&str; 6] =
    ["Feed", "State", "Last change", "Received a day", "Next fetch", "Subscribers"];

/// Returns the headings of the table of a page.
fn headings(page: &str) -> Vec<&str> {
    let head = between(page, "<thead>", "</thead>").unwrap();
    let headings = head.split("scope=\"col\">").skip(1);
    headings.map(|heading| heading.split('<').next().unwrap()).filter(|it| !it.is_empty()).collect()
}

/// Sends the form of a page with these columns, and stores the cookie as a browser does. Returns the address
/// to which it leads.
async fn choose(visitor: &mut Visitor<'_>, page: &str, columns: &[&str]) -> String {
    let form = between(page, "action=\"../console/columns\">", "</form>").unwrap();
    let fields = form.split("<input type=\"hidden\" name=\"").skip(1);
    let mut fields: Vec<(&str, &str)> = fields
        .map(|field| {
            let (name, rest) = field.split_once("\" value=\"").unwrap();
            (name, rest.split('"').next().unwrap())
        })
        .collect();
    fields.extend(columns.iter().map(|column| ("column", *column)));
    let response = visitor.post("/console/columns", &fields).await;
    assert_eq!(response.status(), StatusCode::SEE_OTHER);
    let cookie = response.headers()[SET_COOKIE].to_str().unwrap();
    assert!(cookie.contains("; Path=/console; HttpOnly; SameSite=Lax; Max-Age="), "{cookie}");
    let session = visitor.cookie.split(';').next().unwrap();
    visitor.cookie = format!("{session}; {}", cookie.split(';').next().unwrap());
    response.headers()[LOCATION].to_str().unwrap().replace("../", "/")
}

#[tokio::test]
async fn c04_columns_that_are_hidden_stay_hidden_and_the_filter_is_kept() {
    let world = world_of_two().await;
    let mut ada = Visitor::sign_in(&world, "ada", "ada").await;
    let page = ada.page("/console/feeds?q=tides&sort=changed").await;
    assert_eq!(headings(&page), ALL_OF_FEEDS);
    let address = choose(&mut ada, &page, &["state", "subscribers"]).await;
    assert_eq!(address, "/console/feeds?q=tides&sort=changed");
    let page = ada.page(&address).await;
    assert_eq!(headings(&page), ["Feed", "State", "Subscribers"]);
    assert_eq!(page.matches("<td").count(), 3, "{page}");
    assert!(ada.page("/console/feeds?q=nothing").await.contains("colspan=\"3\""));

    // Each list has columns of its own to choose.
    let page = ada.page("/console/subscriptions?state=failing").await;
    assert_eq!(headings(&page), ["Callback", "Feed", "State", "Next", "Behind"]);
    let address = choose(&mut ada, &page, &[]).await;
    assert_eq!(address, "/console/subscriptions?state=failing");
    let page = ada.page("/console/subscriptions").await;
    assert_eq!((headings(&page), page.matches("<td").count()), (vec!["Callback"], 2), "{page}");
    assert_eq!(headings(&ada.page("/console/feeds").await), ["Feed", "State", "Subscribers"]);
    let page = ada.page("/console/feeds").await;
    choose(&mut ada, &page, &["state", "change", "entries", "fetch", "subscribers"]).await;
    assert_eq!(headings(&ada.page("/console/feeds").await), ALL_OF_FEEDS);
    assert_eq!(headings(&ada.page("/console/subscriptions").await), ["Callback"]);
}

#[tokio::test]
async fn c04_a_cookie_hides_what_can_be_hidden_and_only_the_own_form_sets_it() {
    let world = world_of_two().await;
    let mut ada = Visitor::sign_in(&world, "ada", "ada").await;
    let session = ada.cookie.clone();
    let many = format!("{}feeds-state", "x-y.".repeat(1_000));
    #[rustfmt::skip]
    let cases = [
        ("feeds-feed.feeds-nothing.-.subscriptions-fetch.feeds-state", &ALL_OF_FEEDS[2..]),
        (many.as_str(),                                                &ALL_OF_FEEDS[1..]),
    ];
    for (hidden, others) in cases {
        ada.cookie = format!("feedgate_columns={hidden}; {session}");
        let page = ada.page("/console/feeds").await;
        assert_eq!(headings(&page), [&ALL_OF_FEEDS[..1], others].concat());
    }
    // Over HTTP/2, browsers send each cookie in a header of its own.
    let request = ada.client.get(world.gateway.url("/console/feeds"));
    let request = request.header("cookie", "feedgate_columns=feeds-state");
    let page = request.header("cookie", &session).send().await.unwrap().text().await.unwrap();
    assert_eq!(headings(&page).len(), ALL_OF_FEEDS.len() - 1);
    let form = [("list", "feeds"), ("column", "state")];
    let response = ada.post("/console/columns", &form).await;
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    assert!(!response.headers().contains_key(SET_COOKIE));
    let page = ada.page("/console/feeds").await;
    let token = between(&page, "name=\"csrf_token\" value=\"", "\"").unwrap();
    let form = [("list", "//evil.test/"), ("csrf_token", token)];
    let response = ada.post("/console/columns", &form).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test(flavor = "multi_thread")]
async fn c04_a_person_hides_columns_on_a_desktop_and_a_phone() {
    let axe = axe();
    let world = World::with_tides(3, &[]).await;
    make_token(&world, "root", Scopes::all()).await;
    subscribe(&world, "root", "/root").await;
    let browser = Browser::start().await;
    sign_in(&browser, &world, "root").await;
    let mut wrong = Vec::new();
    let list = world.gateway.url("/console/subscriptions?q=http%3A%2F%2F127");
    for (width, theme, column, left) in [(1280, "light", "next", 5), (390, "dark", "state", 4)] {
        browser.emulate(width, theme).await;
        browser.open(&list).await;
        browser.click("details.columns > summary").await;
        check_displayed(&browser, &axe, ("columns", width, theme), &mut wrong).await;
        browser.click(&format!("details.columns input[value={column}]")).await;
        browser.click("details.columns button").await;
        browser.until(&format!("document.querySelectorAll('tbody td').length === {left}")).await;
        browser.until("location.search === '?q=http%3A%2F%2F127'").await;
        check_displayed(&browser, &axe, ("columns-hidden", width, theme), &mut wrong).await;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(browser.complaints().await, [""; 0]);
}
