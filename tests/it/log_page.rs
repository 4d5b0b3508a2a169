//! The pages that people see, in a real browser.

use serde_json::json;

use crate::support::browser::Browser;
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_is_shown_the_front_page_and_does_what_it_is_told() {
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[]).await;
    let browser = Browser::start().await;
    browser.open(&gateway.url("/")).await;
    assert!(browser.text("body").await.contains("any feed in"));
    assert_eq!(browser.complaints().await, [""; 0]);

    let page = "<input><button onclick=\"document.title=document.querySelector('input').value\">";
    browser.open(&format!("data:text/html,{page}")).await;
    browser.fill("input", "tides").await;
    browser.click("button").await;
    browser.until("document.title === 'tides'").await;
    assert_eq!(browser.run("return document.forms.length").await, json!(0));
}
