//! What others registered is nobody else's to change, and nobody else's to see.

use crate::support::server::client;
use crate::support::subscriber::{Behavior, is_signed};
use crate::support::world::World;

/// What a subscriber wants nobody to know.
const SECRET: &str = "opensesame-and-close-it-again";

/// The deployed hub changed its record, and verified then.
#[tokio::test]
async fn b03_a_refused_verification_changes_nothing() {
    let world = World::with_tides(2, &[]).await;
    let callback = world.subscriber.url("/cb");
    world.gateway.subscribe_websub(&world.topic, &callback, &[("hub.secret", SECRET)]).await;
    world.registers("/plain").await;

    for path in ["/cb", "/plain"] {
        world.subscriber.set(path, Behavior::Refusing);
    }
    let mine = [
        ("hub.mode", "subscribe"),
        ("hub.topic", world.topic.as_str()),
        ("hub.callback", &callback),
        ("hub.secret", "mine"),
        ("hub.lease_seconds", "300"),
        ("hub.verify", "sync"),
    ];
    let (status, _) = world.gateway.post("/hub", &mine).await;
    assert!(status.is_client_error(), "{status}");
    let port = world.subscriber.port().to_string();
    for path in ["/cb", "/plain"] {
        let form = [
            ("notifyProcedure", "mine"),
            ("port", port.as_str()),
            ("path", path),
            ("protocol", "xml-rpc"),
            ("url1", &world.topic),
        ];
        let (_, text) = world.gateway.post("/pleaseNotify", &form).await;
        assert!(text.contains("success=\"false\""), "{text}");
    }
    for path in ["/cb", "/plain"] {
        world.subscriber.set(path, Behavior::Accepting);
    }

    let before = ["/cb", "/plain"].map(|path| world.subscriber.notified(path).len());
    world.changes(3).await;
    for (path, before) in ["/cb", "/plain"].iter().zip(before) {
        world.subscriber.until(path, |told| told.len() > before).await;
    }
    world.gateway.comes_to_rest().await;
    let told = world.subscriber.notified("/cb").split_off(before[0]);
    assert!(told.len() == 1 && is_signed(&told[0], SECRET), "still by WebSub, still signed");
    let told = world.subscriber.notified("/plain").split_off(before[1]);
    assert!(told.len() == 1 && told[0].form("url").is_some(), "still by a form, and once");
}

/// The deployed hub showed its whole store to everybody.
#[tokio::test]
async fn b05_no_page_shows_a_secret_or_the_path_of_a_callback() {
    const TOKEN: &str = "token-9f8e7d";
    let proxies = [("FEEDGATE_TRUSTED_PROXIES", "127.0.0.0/8")];
    let world = World::with_tides(2, &proxies).await;
    let path = format!("/cb/{TOKEN}");
    let callback = world.subscriber.url(&path);
    world.gateway.subscribe_websub(&world.topic, &callback, &[("hub.secret", SECRET)]).await;
    world.registers(&path).await;
    world.subscriber.set(&path, Behavior::Failing(500));
    world.changes(3).await;
    // The first call was the test of the handler.
    world.subscriber.until(&path, |told| told.len() >= 3).await;

    let archive = world.gateway.archive_of(&world.topic);
    let pages = [
        "/",
        "/subscriptions.json",
        "/stats",
        "/stats.json",
        "/feeds.opml",
        "/viewLog",
        "/log.json",
        "/changes.xml",
        "/shortChanges.xml",
        "/metrics",
        "/hub",
        "/bot",
        "/healthz",
    ];
    let pages = pages.map(|page| world.gateway.url(page)).into_iter().chain([archive]);
    let mut displayed = 0;
    for page in pages {
        // Whoever registered a callback at its own address may see it; this is somebody else.
        let request = client().get(&page).header("x-forwarded-for", "192.0.2.7");
        let answer = request.send().await.unwrap();
        displayed += usize::from(answer.status().is_success());
        let text = format!("{:?}{}", answer.headers().clone(), answer.text().await.unwrap());
        assert!(!text.contains(SECRET) && !text.contains(TOKEN), "{page}: {text}");
    }
    assert!(displayed > 3, "only {displayed} pages were there to be looked at");
}
