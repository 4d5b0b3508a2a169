//! The pages of the console in a real browser: what a person does, and what a screen reader needs.

use std::fs;
use std::path::{Path, PathBuf};

use feedgate_core::account::Scopes;
use serde_json::{Value, json};

use super::{link, make_token, subscribe};
use crate::support::browser::Browser;
use crate::support::subscriber::Behavior;
use crate::support::until;
use crate::support::world::World;

/// The widths at which pages are checked: a desktop and a phone, in pixels.
const WIDTHS: [u32; 2] = [1280, 390];

/// Where the screenshots of the last run are.
fn screenshots() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("console");
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Signs in as a person does.
pub(super) async fn sign_in(browser: &Browser, world: &World, login: &str) {
    browser.open(&world.gateway.url("/console")).await;
    browser.fill("#login", login).await;
    browser.fill("#token", login).await;
    browser.click("main button[type=submit]").await;
    browser.until("document.querySelector('h1').textContent !== 'Sign in'").await;
}

/// Returns the source of axe-core.
pub(super) fn axe() -> String {
    #[expect(clippy::disallowed_methods, reason = "it is the test runner that sets it")]
    let modules = std::env::var("FEEDGATE_TEST_NODE_MODULES").expect("tests/run sets it");
    fs::read_to_string(Path::new(&modules).join("axe-core/axe.min.js")).unwrap()
}

/// Returns what axe-core finds wrong with the page.
async fn violations(browser: &Browser, axe: &str) -> Vec<String> {
    browser.run(axe).await;
    let found = browser.run("return axe.run(document)").await;
    let describe = |violation: &Value| {
        let nodes = violation["nodes"].as_array().unwrap().iter();
        let nodes: Vec<_> = nodes.map(|node| node["html"].to_string()).collect();
        format!("{} ({}): {}", violation["id"], violation["impact"], nodes.join(", "))
    };
    found["violations"].as_array().unwrap().iter().map(describe).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_is_accessible_on_desktops_and_phones_in_light_and_dark() {
    let axe = axe();
    let world = World::with_tides(3, &[]).await;
    make_token(&world, "root", Scopes::all()).await;
    world.subscriber.set("/failing", Behavior::Failing(500));
    for path in ["/root", "/failing"] {
        subscribe(&world, "root", path).await;
    }
    world.gateway.open_to_anonymous(&world.topic).await; // its archive is a page for everybody
    world.put_tides(4);
    world.gateway.post("/ping", &[("url", &world.topic)]).await;
    world.subscriber.until("/root", |received| !received.is_empty()).await;

    let browser = Browser::start().await;
    let mut wrong = Vec::new();
    let public = ["", "console", "bot", "author", "pingSiteForm", "stats", "no/page"];
    check(&browser, &world, &axe, &public, &mut wrong).await;
    sign_in(&browser, &world, "root").await;
    let source = async |path: &str| {
        browser.open(&world.gateway.url(path)).await;
        let source = browser.run("return document.documentElement.outerHTML").await;
        source.as_str().unwrap().to_owned()
    };
    let feed = link(&source("/console/feeds").await, "console/feeds");
    let found = format!("/console/subscriptions?q={}", world.subscriber.url("/root"));
    let subscription = link(&source(&found).await, "console/subscriptions");
    until("an attempt", async || source(&subscription).await.contains("/attempts/")).await;
    let page = source(&subscription).await;
    let (_, number) = page.split_once("/attempts/").unwrap();
    let attempt = format!("{subscription}/attempts/{}", number.split('"').next().unwrap());
    let entry = format!("{}/entries/1", feed.trim_start_matches('/'));
    let event = last_link(&source("/console/live").await, "console/events/");
    let preview = format!("console/feeds/add?url={}", world.topic);
    let archive = feed.trim_start_matches("/console/");
    let documents = [archive, &format!("{archive}/recent"), "changes.xml", "feeds.opml"];
    check(&browser, &world, &axe, &documents, &mut wrong).await;
    let pages = [
        "console",
        "console/feeds",
        "console/live",
        &preview,
        "console/opml",
        &entry,
        &event,
        "console/subscriptions",
        "console/accounts",
        "console/accounts/root",
        "console/hosts/a.test%3A443",
        "console/nothing",
        "viewLog",
        feed.trim_start_matches('/'),
        subscription.trim_start_matches('/'),
        attempt.trim_start_matches('/'),
    ];
    check(&browser, &world, &axe, &pages, &mut wrong).await;
    check_fetches(&browser, &world.gateway.url(&feed), &axe, &mut wrong).await;
    browser.open(&world.gateway.url("/console/subscriptions")).await;
    browser.click("tbody input[type=checkbox]").await;
    browser.click("button[value=end]").await;
    browser.until("document.querySelector('h1').textContent.startsWith('End 1')").await;
    check_displayed(&browser, &axe, ("confirmation", 390, "dark"), &mut wrong).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_about_an_address_are_accessible() {
    let axe = axe();
    let world = World::with_tides(3, &[]).await;
    world.gateway.open_to_anonymous(&world.topic).await;
    let browser = Browser::start().await;
    let tried = format!("try?url={}", world.topic);
    let health = format!("feed-health?url={}", world.topic);
    let mut wrong = Vec::new();
    check(&browser, &world, &axe, &[&tried, &health], &mut wrong).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_fits_in_every_width_and_a_long_login_in_the_head() {
    let world = World::with_tides(3, &[]).await;
    let login = "monitoring-of-all-feeds@very-long-name.example.org";
    make_token(&world, login, Scopes::all()).await;
    let callback = format!("/failing/{}", "long".repeat(20));
    world.subscriber.set(&callback, Behavior::Failing(500));
    subscribe(&world, login, &callback).await;
    world.put_tides(4);
    world.gateway.post("/ping", &[("url", &world.topic)]).await;
    let browser = Browser::start().await;
    sign_in(&browser, &world, login).await;
    for path in ["/viewLog", "/console/live"] {
        browser.open(&world.gateway.url(path)).await;
        browser
            .until("document.querySelector('#events').innerText.includes('delivery failed')")
            .await;
        for width in [390, 801, 897, 1024, 1100, 1280] {
            browser.emulate(width, "light").await;
            let overflow = "return document.documentElement.scrollWidth - innerWidth";
            assert_eq!(browser.run(overflow).await, json!(0), "{path}, {width}");
            let lines = "const text = document.createRange();
                text.selectNodeContents(document.querySelector('header form button'));
                return text.getClientRects().length";
            assert_eq!(browser.run(lines).await, json!(1), "{path}, {width}");
        }
    }
}

/// Returns the last address on a page that is below `folder`, from the root.
fn last_link(page: &str, folder: &str) -> String {
    let (_, rest) = page.rsplit_once(folder).unwrap();
    format!("{folder}{}", rest.split('"').next().unwrap())
}

/// Checks the page of a feed with the trace of a fetch.
async fn check_fetches(browser: &Browser, feed: &str, axe: &str, wrong: &mut Vec<String>) {
    for (width, theme) in [(1280, "light"), (390, "dark")] {
        browser.emulate(width, theme).await;
        browser.open(feed).await;
        browser.click("#fetches > summary").await;
        browser.click("details.fetch summary").await;
        browser.until("document.querySelector('details.fetch').open").await;
        check_displayed(browser, axe, ("fetches", width, theme), wrong).await;
    }
}

/// Checks pages at each width in light and dark, and keeps screenshots of them.
async fn check(
    browser: &Browser,
    world: &World,
    axe: &str,
    pages: &[&str],
    wrong: &mut Vec<String>,
) {
    for path in pages {
        for width in WIDTHS {
            for theme in ["light", "dark"] {
                browser.emulate(width, theme).await;
                browser.open(&world.gateway.url(&format!("/{path}"))).await;
                let name = path.split('?').next().unwrap_or_default().replace('/', "-");
                let name = if name.is_empty() { "front" } else { &name };
                check_displayed(browser, axe, (name, width, theme), wrong).await;
            }
        }
    }
}

/// Checks the page that the browser shows, and keeps a screenshot of it.
pub(super) async fn check_displayed(
    browser: &Browser,
    axe: &str,
    (name, width, theme): (&str, u32, &str),
    wrong: &mut Vec<String>,
) {
    let image = browser.screenshot().await;
    fs::write(screenshots().join(format!("{name}-{width}-{theme}.png")), image).unwrap();
    let found = violations(browser, axe).await;
    wrong.extend(found.iter().map(|what| format!("{name}, {width}, {theme}: {what}")));
    let overflow = "return document.documentElement.scrollWidth - innerWidth";
    if browser.run(overflow).await.as_i64().unwrap() > 0 {
        wrong.push(format!("{name}, {width}: the page is wider than the window"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_pauses_a_subscription_and_makes_a_token() {
    let world = World::with_tides(3, &[]).await;
    make_token(&world, "root", Scopes::all()).await;
    subscribe(&world, "root", "/root").await;
    let browser = Browser::start().await;
    sign_in(&browser, &world, "root").await;
    let says = |text: &str| format!("document.body.innerText.includes({})", json!(text));

    browser.open(&world.gateway.url("/console/subscriptions")).await;
    browser.click("main table a").await;
    browser.until(&says("up to date")).await;
    browser.click("button[value=pause]").await;
    browser.until(&says("Pause: done.")).await;
    browser.until(&says("Nothing is sent")).await;
    browser.click("button[value=resume]").await;
    browser.until(&says("Resume: done.")).await;

    // A question comes before what cannot be undone.
    browser.run("window.confirm = () => false").await;
    browser.click("button[value=end]").await;
    browser.until(&says("up to date")).await;

    browser.open(&world.gateway.url("/console/accounts/root")).await;
    browser.fill("input[name=name]", "from a browser").await;
    browser.click("button[value=create-token]").await;
    browser.until(&says("The new token is shown only now.")).await;
    browser.until(&says("from a browser")).await;
    browser.click("header form button").await;
    browser.until(&says("hub.mode=subscribe")).await;
    assert_eq!(browser.complaints().await, [""; 0], "nothing is forbidden, no script fails");
}

#[tokio::test(flavor = "multi_thread")]
async fn c04_lists_are_used_with_the_keyboard() {
    let world = World::with_tides(3, &[]).await;
    make_token(&world, "root", Scopes::all()).await;
    for path in ["/one", "/two"] {
        subscribe(&world, "root", path).await;
    }
    let browser = Browser::start().await;
    sign_in(&browser, &world, "root").await;
    browser.open(&world.gateway.url("/console/subscriptions")).await;
    let press = async |key: &str| {
        let event = format!("new KeyboardEvent('keydown', {{ key: '{key}', bubbles: true }})");
        browser.run(&format!("document.activeElement.dispatchEvent({event})")).await;
    };
    let focused = async |css: &str| {
        let is_it = format!("return document.activeElement.matches({})", json!(css));
        assert_eq!(browser.run(&is_it).await, Value::Bool(true), "{css}");
    };
    press("j").await;
    focused("tbody tr:nth-child(1) a").await;
    press("j").await;
    focused("tbody tr:nth-child(2) a").await;
    press("x").await;
    browser.until("document.querySelectorAll('input[name=id]:checked').length === 1").await;
    press("k").await;
    focused("tbody tr:nth-child(1) a").await;
    browser.click("input[data-all]").await;
    browser.until("document.querySelectorAll('input[name=id]:checked').length === 2").await;
    press("?").await;
    browser.until("document.querySelector('dialog').open").await;
    browser.click("dialog button").await;
    browser.until("!document.querySelector('dialog')").await;
    press("/").await;
    focused("input[type=search]").await;
    // Whoever types in a field types.
    press("j").await;
    focused("input[type=search]").await;
    assert_eq!(browser.complaints().await, [""; 0]);
}
