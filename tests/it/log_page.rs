//! The log page as a person sees it, in a real browser.
//!
//! One browser serves all of it: starting one takes seconds.

use serde_json::json;

use crate::support::browser::Browser;
use crate::support::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn the_log_page_has_history_shows_what_comes_and_finds_what_is_looked_for() {
    let mut world = World::with_tides(1, &[]).await;
    let topic = world.topic.clone();
    let path = "/s3cret/<b>path";
    world.gateway.subscribe_rsscloud("http-post", &topic, &world.subscriber, path).await;
    let rows = "document.querySelectorAll('tbody tr').length";
    let holds = |text: &str| format!("document.body.innerText.includes({})", json!(text));

    let browser = Browser::start().await;
    let page = world.gateway.url("/viewLog");
    browser.open(&page).await;
    browser.until(&holds("subscribed")).await;

    // History survives a crash of what wrote it, and the page comes back by itself.
    world.gateway.kill();
    world.gateway.restart().await;
    browser.complaints().await; // that it was gone
    browser.open(&page).await;
    browser.until(&holds("subscribed")).await;
    browser.until(&holds("Live")).await;

    // What happens now is there without a reload.
    browser.run("window.mark = 'not reloaded'").await;
    world.put_tides(2);
    world.gateway.post("/ping", &[("url", &topic)]).await;
    browser.until(&holds("delivered")).await;
    assert_eq!(browser.run("return window.mark").await, json!("not reloaded"));
    let first = browser.text("tbody tr").await;
    assert!(first.contains(&topic), "{first}");

    let all = browser.text("body").await;
    assert!(!all.contains("s3cret") && all.contains("http://127.0.0.1:"), "{all}");
    let source = browser.run("return document.documentElement.outerHTML").await;
    assert!(!source.as_str().unwrap().contains("s3cret"), "nor behind the scenes");

    assert_eq!(browser.complaints().await, [""; 0], "nothing is forbidden, no script fails");

    // A line that was missed while the gateway was away is made up for.
    world.gateway.kill();
    world.gateway.restart().await;
    world.gateway.post("/ping", &[("url", &format!("{topic}?meanwhile"))]).await;
    browser.until(&holds("?meanwhile")).await;
    assert_eq!(browser.run("return window.mark").await, json!("not reloaded"));

    browser.complaints().await; // that the connection was lost

    // The form filters, and says what it filters by.
    browser.fill("input[name=feed]", "?meanwhile").await;
    browser.click("form button").await;
    browser.until(&format!("{rows} === 1")).await;
    assert_eq!(browser.run("return document.forms[0].feed.value").await, json!("?meanwhile"));
    browser.run("document.forms[0].feed.value = ''; document.forms[0].kind.value = 'verify'").await;
    browser.click("form button").await;
    browser.until(&format!("location.search.includes('kind=verify') && {rows} === 1")).await;
    browser.open(&format!("{page}?limit=2")).await;
    browser.click("a[rel=next]").await;
    browser.until("location.search.includes('before=')").await;
    assert_eq!(browser.complaints().await, [""; 0]);
}
