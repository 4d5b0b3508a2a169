//! What comes after a callback was subscribed, in a real browser.

use feedgate_core::account::Scopes;

use super::make_token;
use super::pages::{axe, check_displayed, sign_in};
use crate::support::browser::Browser;
use crate::support::subscriber::Behavior;
use crate::support::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn c06_a_new_callback_is_tested_where_its_secret_is_displayed() {
    let world = World::with_tides(1, &[]).await;
    make_token(&world, "ada", Scopes::all()).await;
    let callback = world.subscriber.url("/ada");
    let browser = Browser::start().await;
    sign_in(&browser, &world, "ada").await;
    let preview = format!("/console/feeds/add?url={}", world.topic);
    browser.open(&world.gateway.url(&preview)).await;
    browser.fill("#callback", &callback).await;
    browser.click("form.stacked button.primary").await;
    browser.until("document.querySelector('h1').textContent === 'Subscribed'").await;
    let secret = browser.text(".card pre").await;
    assert!(secret.starts_with("whsec_"), "{secret}");
    let page = browser.run("return document.documentElement.outerHTML").await;
    let page = page.as_str().unwrap();
    let settings = [format!("export SECRET='{secret}'"), format!("export CALLBACK='{callback}'")];
    let languages = ["Python", "TypeScript", "Go", "Ruby", "PHP"];
    let languages = languages.map(|language| format!("<summary>{language}</summary>"));
    for part in settings.iter().chain(&languages) {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(page.len() < 100_000, "{} bytes", page.len());

    browser.click("button[value=test]").await;
    browser
        .until("document.querySelector('#report').textContent.includes('accepted the test')")
        .await;
    assert_eq!(world.subscriber.notified("/ada")[0].header("x-feedgate-test"), Some("1"));
    let is_alert = "document.querySelector('#report').getAttribute('role') === 'alert'";
    browser.until(&format!("!({is_alert})")).await;
    world.subscriber.set("/ada", Behavior::Failing(500));
    browser.click("button[value=test]").await;
    browser.until(is_alert).await;
    assert_eq!(browser.text(".card pre").await, secret, "it is displayed as long as the page is");
    browser.click("button.copy").await;
    browser.until("document.querySelector('button.copy').textContent !== 'Copy'").await;
    assert_eq!(browser.complaints().await, [""; 0]);
    let (axe, mut wrong) = (axe(), Vec::new());
    browser.run("document.querySelectorAll('details').forEach((it) => { it.open = true })").await;
    for (width, theme) in [(1600, "light"), (390, "dark")] {
        browser.emulate(width, theme).await;
        check_displayed(&browser, &axe, ("subscribed", width, theme), &mut wrong).await;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
