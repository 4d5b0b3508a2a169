//! `feedgate demo` delivers everything by every way, and leaves nothing behind.

use std::process::Stdio;

use feedgate_core::store::SubscriptionFilter;
use tokio::process::Command;
use tokio::time::timeout;

use crate::store::on_one_store;
use crate::support::PATIENCE;
use crate::support::postgres::Database;

on_one_store!(everything_arrives);

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
