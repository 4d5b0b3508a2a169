//! `feedgate subscribe`, `unsubscribe`, `list` and `replay` as a script runs them, against a gateway.

use std::process::Output;

use serde_json::Value;
use tokio::process::Command;

use crate::support::gateway::{LOGIN, TOKEN};
use crate::support::ports::free_port;
use crate::support::subscriber::Behavior;
use crate::support::world::World;

/// Runs a command against the gateway of `world`, with the credentials of its account or without.
async fn feedgate(world: &World, has_account: bool, args: &[&str]) -> Output {
    let server = world.gateway.url("/");
    run(&server, has_account, args).await
}

async fn run(server: &str, has_account: bool, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_feedgate"));
    command.args(args).args(["--server", server]).env_clear();
    if has_account {
        command.env("FEEDGATE_TOKEN", format!("{LOGIN}:{TOKEN}"));
    }
    command.output().await.unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

#[tokio::test]
async fn p52_a_page_is_followed_with_an_option() {
    let world = World::with_tides(1, &[]).await;
    let head = "<link rel=alternate type=application/rss+xml title=Tides href=/feed>";
    world.publisher.put("/home", "text/html", format!("<html><head>{head}</head><body><p>x"));
    let (home, callback) = (world.publisher.url("/home"), world.subscriber.url("/cb"));
    let made = ["subscribe", &home, "--callback", &callback, "--follow"];
    let made = feedgate(&world, true, &made).await;
    assert!(made.status.success() && text(&made.stderr).contains(&world.topic), "{made:?}");
    let ended = feedgate(&world, true, &["unsubscribe", &home]).await;
    assert!(ended.status.success(), "{ended:?}");
}

#[tokio::test]
async fn an_account_subscribes_lists_replays_and_unsubscribes() {
    let world = World::with_tides(3, &[]).await;
    let (topic, callback) = (world.topic.as_str(), world.subscriber.url("/cb"));
    let none = feedgate(&world, true, &["list"]).await;
    assert_eq!(text(&none.stdout), "no subscriptions\n", "{}", text(&none.stderr));

    let made = ["subscribe", topic, "--callback", &callback, "--format", "json", "--secret", "s"];
    let made = feedgate(&world, true, &made).await;
    assert!(made.status.success(), "{}", text(&made.stderr));
    assert_eq!(text(&made.stdout), format!("subscribed {callback} to {topic}\n"));

    let listed = feedgate(&world, true, &["list"]).await;
    let want = format!("TOPIC\tCALLBACK\tFORMAT\tSTATE\n{topic}\t{callback}\tjson\tok\n");
    assert_eq!(text(&listed.stdout), want);
    let listed = json(&feedgate(&world, true, &["list", "--json", "--topic", topic]).await);
    assert_eq!((&listed["endpoint"], &listed["feed"]["url"]), (&(*callback).into(), &topic.into()));
    let other = feedgate(&world, true, &["list", "--search", "nowhere", "--json"]).await;
    assert!(other.status.success() && other.stdout.is_empty(), "{other:?}");

    let replay = ["replay", topic, "--callback", &callback, "--count", "2", "--json"];
    let replayed = json(&feedgate(&world, true, &replay).await);
    assert_eq!((&replayed["result"], &replayed["status"]), (&"replaying".into(), &204.into()));
    world.subscriber.until("/cb", |told| !told.is_empty()).await;
    let told = world.subscriber.notified("/cb");
    assert!(told[0].header("x-feedgate-replay-of").is_some() && told[0].text().contains("Item 3"));

    let ended = feedgate(&world, true, &["unsubscribe", topic]).await;
    assert_eq!(text(&ended.stdout), format!("unsubscribed from {topic}\n"));
    world.gateway.measures("feedgate_subscriptions 0").await;
}

#[tokio::test]
async fn without_an_account_the_hub_verifies_the_callback() {
    let world = World::with_tides(3, &[]).await;
    let (topic, callback) = (world.topic.as_str(), world.subscriber.url("/cb"));
    let accepted = feedgate(&world, false, &["subscribe", topic, "--callback", &callback]).await;
    assert!(text(&accepted.stdout).starts_with("accepted: "), "{}", text(&accepted.stderr));
    world.gateway.measures("feedgate_subscriptions 1").await;
    let ended = ["unsubscribe", topic, "--callback", &callback, "--verify", "sync", "--json"];
    let ended = json(&feedgate(&world, false, &ended).await);
    assert_eq!((&ended["result"], &ended["status"]), (&"unsubscribed".into(), &204.into()));

    world.subscriber.set("/refusing", Behavior::Refusing);
    let callback = world.subscriber.url("/refusing");
    let refused = ["subscribe", topic, "--callback", &callback, "--verify", "sync"];
    let refused = feedgate(&world, false, &refused).await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains(" responded with 409 Conflict: "), "{refused:?}");
}

#[tokio::test]
async fn the_exit_code_says_whether_to_try_again_and_the_reply_is_quoted() {
    let world = World::with_tides(1, &[]).await;
    let (topic, callback) = (world.topic.as_str(), world.subscriber.url("/cb"));
    let replay = ["replay", topic, "--callback", &callback];
    let nowhere = format!("http://127.0.0.1:{}/", free_port());
    let here = world.gateway.url("/");
    let other = ["list", "--user", "ann:wrong"];
    let cases: [(&str, bool, &[&str], i32, &str); 6] = [
        (&here, true, &replay, 1, "responded with 404 Not Found: "),
        (&here, true, &other, 1, "responded with 401 Unauthorized: "),
        (&here, false, &["list"], 2, "needs an account: set FEEDGATE_TOKEN"),
        (&here, false, &["list", "--user", "ann"], 2, "separated by a colon"),
        (&here, false, &["unsubscribe", topic], 1, "--callback is required"),
        (&nowhere, true, &["list"], 3, "no response from http://127.0.0.1:"),
    ];
    for (server, has_account, args, code, want) in cases {
        let output = run(server, has_account, args).await;
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        assert!(text(&output.stderr).contains(want), "{args:?}: {output:?}");
        assert!(output.stdout.is_empty(), "{args:?}: {output:?}");
    }
    let refused = json(&run(&here, true, &[&replay[..], &["--json"]].concat()).await);
    assert_eq!((&refused["status"], &refused["code"]), (&404.into(), &"no_subscription".into()));
}
