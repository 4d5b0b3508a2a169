//! What waits to be verified at the end of a run: what has failed, until its retry, and nothing else.

use feedgate::jobs::runner;

use crate::support::gateway::Gateway;
use crate::support::postgres::Database;
use crate::support::until;

/// How long a verification waits that has failed so often, at most.
const WAITS_S: [i64; 4] = [10, 60, 300, 1_800];
/// By how much it may be put off, because others are verified first.
const PUT_OFF_S: i64 = 60;

/// Waits until nothing waits to be verified any more, nor is anybody owed anything. Nobody waits for retries: they
/// are made now, which nothing keeps from succeeding any more.
pub(super) async fn come_to_rest(database: &Database, gateway: &Gateway) {
    const RETRIED: &str = "attempts > 0 and claim_token = 0";
    let waiting = format!("select attempts || ' ' || due_at from intents where {RETRIED}");
    let retry = format!("update intents set due_at = 1 where due_at > 1 and {RETRIED}");
    let is_retried = async || {
        let waiting = database.texts(&waiting).await;
        for row in &waiting {
            let (failures, due_at) = row.split_once(' ').unwrap();
            let longest_s = WAITS_S[failures.parse::<usize>().unwrap() - 1] + PUT_OFF_S;
            let latest = runner::now().timestamp_micros() + longest_s * 1_000_000;
            assert!(
                due_at.parse::<i64>().unwrap() <= latest,
                "a_verification_waits_no_longer_than_for_its_retry: {row}, now {}",
                runner::now().timestamp_micros()
            );
        }
        if !waiting.is_empty() {
            database.run(&retry).await;
        }
        database.texts("select mode from intents").await.is_empty()
    };
    until("everything is verified", is_retried).await;
    gateway.comes_to_rest().await;
}
