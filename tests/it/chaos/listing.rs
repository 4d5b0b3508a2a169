//! What the nodes say about subscriptions.

use serde_json::Value;

use super::cast::{ACCOUNTS, Cast, login, token};
use crate::support::server::client;
use crate::support::until;
use feedgate::jobs::runner;

/// How much later than planned an attempt may begin.
const SLACK_S: i64 = 10;

/// The longest wait for a retry after the first failure, the second, and so on, if it is shorter than the steps
/// of the clocks.
const WAITS_S: [i64; 5] = [60, 60, 300, 1_800, 7_200];

/// A subscription as `hub.mode=list` shows it.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) account: usize,
    pub(super) callback: String,
    pub(super) topic: String,
    delivery: Value,
}

impl Listed {
    pub(super) fn is_owed(&self) -> bool {
        self.delivery["lag"].as_i64() != Some(0) && self.delivery["state"] != "paused"
    }

    /// Whether the last attempt failed, and the next one is not due yet.
    pub(super) fn awaits_retry(&self) -> bool {
        self.retried_in_s().is_some_and(|wait_s| wait_s > -SLACK_S)
    }

    /// Whether the next attempt is planned later than it can be after so many failures.
    pub(super) fn is_put_off(&self) -> bool {
        let failures = self.delivery["failures"].as_u64().unwrap_or_default().max(1) as usize;
        let longest_s = WAITS_S.get(failures - 1).copied().unwrap_or(i64::MAX / 8);
        self.retried_in_s().is_some_and(|wait_s| wait_s > longest_s * 6 / 5 + SLACK_S)
    }

    fn retried_in_s(&self) -> Option<i64> {
        let next = self.delivery["nextAttempt"].as_i64()?;
        (self.delivery["state"] == "failing").then(|| next - runner::now().timestamp())
    }
}

impl Cast {
    /// All subscriptions of all accounts. A node may need a while after what failed before.
    pub(super) async fn list(&self) -> Vec<Listed> {
        let mut all = Vec::new();
        for account in 0..ACCOUNTS {
            let mut page = None;
            until("subscriptions are listed", async || {
                page = self.page(account).await;
                page.is_some()
            })
            .await;
            all.extend(page.into_iter().flatten());
        }
        all
    }

    async fn page(&self, account: usize) -> Option<Vec<Listed>> {
        let url = format!("{}/?hub.mode=list&by_page=500", self.node(0));
        let request = client().get(url).basic_auth(login(account), Some(token(account)));
        let text = request.send().await.ok()?.text().await.ok()?;
        let page: Value = serde_json::from_str(&text).ok()?;
        let listed = page.as_array()?.iter().map(|one| {
            let one = &one["subscription"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (callback, topic) = (text(&one["endpoint"]), text(&one["feed"]["url"]));
            Listed { account, callback, topic, delivery: one["delivery"].clone() }
        });
        Some(listed.collect())
    }
}
