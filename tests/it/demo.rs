//! `feedgate demo` delivers everything by every way, and leaves nothing behind.

use std::process::Stdio;

use feedgate_core::store::SubscriptionFilter;
use http::StatusCode;
use reqwest::Client;
use reqwest::redirect::Policy;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

use crate::store::on_one_store;
use crate::support::PATIENCE;
use crate::support::postgres::Database;
use crate::support::server::client;

on_one_store!(everything_arrives, it_goes_on_with_a_console_that_is_signed_in);

async fn everything_arrives(database: Database) {
    let demo = Command::new(env!("CARGO_BIN_EXE_feedgate"))
        .args(["demo", "--for", "8s", "--database", &database.url])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = timeout(PATIENCE, demo).await.expect("it ends by itself").unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{printed}\n{told}", output.status);

    // The table: a line for each channel, and nothing missing in any.
    let lines = printed.lines().skip_while(|line| !line.starts_with("channel ")).skip(1);
    let numbers = lines.map(|line| {
        let mut numbers = line.split_whitespace().filter_map(|word| word.parse::<usize>().ok());
        (numbers.next().unwrap_or_default(), numbers.next())
    });
    let numbers: Vec<_> = numbers.collect();
    assert_eq!(numbers.len(), 7, "{printed}");
    assert!(
        numbers.iter().all(|(received, missing)| *received > 3 && *missing == Some(0)),
        "{printed}"
    );

    let store = database.open().await;
    let (left, _) = store
        .list(&SubscriptionFilter { limit: 10, ..SubscriptionFilter::default() })
        .await
        .unwrap();
    assert!(left.is_empty(), "subscriptions are left: {left:?}");
    store.close().await;
}

async fn it_goes_on_with_a_console_that_is_signed_in(database: Database) {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_feedgate"))
        .args(["demo", "--database", &database.url])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    let find = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains("/sign-in/") {
                return line.trim().to_owned();
            }
        }
        panic!("no address was printed")
    };
    let address = timeout(PATIENCE, find).await.expect("it prints an address");
    // The demo ends if nobody reads its output any more.
    let reading = tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });

    let wrong = client().get(format!("{address}0")).send().await.unwrap();
    assert_eq!(wrong.status(), StatusCode::GONE);
    #[expect(clippy::disallowed_methods, reason = "feedgate under test listens on loopback")]
    let client = Client::builder().no_proxy().redirect(Policy::none()).build().unwrap();
    let signed_in = client.get(&address).send().await.unwrap();
    assert_eq!(signed_in.status(), StatusCode::SEE_OTHER);
    let header = |name| signed_in.headers()[name].to_str().unwrap().to_owned();
    let (console, cookie) = (header("location"), header("set-cookie"));
    let page = client.get(&console).header("cookie", cookie.split(';').next().unwrap());
    let page = page.send().await.unwrap().text().await.unwrap();
    assert!(page.contains("Sign out"), "{page}");
    let again = client.get(&address).send().await.unwrap();
    assert_eq!(again.status(), StatusCode::GONE, "the address works once");

    let id = i32::try_from(demo.id().unwrap()).unwrap();
    kill_process(Pid::from_raw(id).unwrap(), Signal::INT).unwrap();
    let ended = timeout(PATIENCE, demo.wait()).await.expect("it ends").unwrap();
    assert!(ended.success(), "{ended}");
    reading.await.unwrap();
    let store = database.open().await;
    let tokens = store.list_tokens().await.unwrap();
    assert!(tokens.iter().all(|token| token.login != "demo" || token.revoked_at.is_some()));
    store.close().await;
}
