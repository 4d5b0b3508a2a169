//! The first step: the feeds of the account are subscribed to at the gateway, in batches.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::super::progress::Progress;
use super::account_api::{AccountApi, AccountApiError};
use super::journal::{ImportJournal, JournalRecord, SubscriptionKey};
use super::report::ResultPrinter;
use super::source::{SourceSubscription, read_list};
use super::{MoveError, MovedAccount};

/// The items of a batch; the gateway's maximum.
const BATCH_ITEMS: usize = 500;

/// Subscribes to what the account has at Superfeedr and not yet here. Without `deliver`, each feed is
/// subscribed to once, with the placeholder.
pub(super) async fn import(
    account: &MovedAccount,
    journal: &mut ImportJournal,
    deliver: bool,
    printer: &mut ResultPrinter,
) -> Result<(), MoveError> {
    let list = read_list(&account.superfeedr).await?;
    for (key, reason) in &list.unusable {
        printer.print_exception("failed", key, reason);
    }
    let (mut new, mut present, mut keys) = (Vec::new(), 0, HashSet::new());
    for source in &list.subscriptions {
        let wanted = if deliver { source.clone_at_gateway() } else { placeholder(account, source) };
        if journal.is_imported(&wanted.key) {
            present += 1;
        } else if keys.insert(wanted.key.clone()) {
            new.push(wanted);
        }
    }
    let (mut added, mut failed) = (0, list.unusable.len());
    let progress = Progress::of_items(new.len() as u64);
    for batch in new.chunks(BATCH_ITEMS) {
        let results = subscribe_batch(&account.gateway, batch).await?;
        let mut records = Vec::new();
        for (wanted, result) in batch.iter().zip(results) {
            match result {
                Ok(note) => {
                    records.push(JournalRecord::Imported(wanted.key.clone()));
                    if let Some(note) = note {
                        printer.print_subscription("note", &wanted.key, &note);
                    }
                }
                Err(reason) => {
                    failed += 1;
                    printer.print_exception("failed", &wanted.key, &reason);
                }
            }
        }
        added += records.len();
        journal.append(records)?;
        progress.add(batch.len() as u64);
    }
    progress.finish();
    let listed = list.subscriptions.len() + list.unusable.len();
    let counts =
        [("listed", listed), ("added", added), ("already_there", present), ("failed", failed)];
    printer.print_summary("imported", &counts);
    Ok(())
}

/// A subscription that the gateway is to have.
pub(super) struct WantedSubscription {
    pub(super) key: SubscriptionKey,
    /// The parameters of the request.
    parameters: Value,
}

impl SourceSubscription {
    /// Returns the same subscription at the gateway.
    pub(super) fn clone_at_gateway(&self) -> WantedSubscription {
        let mut parameters = parameters("subscribe", &self.key);
        if let Some(format) = &self.format {
            parameters["format"] = format.as_str().into();
        }
        if let Some(secret) = &self.secret {
            parameters["hub.secret"] = secret.expose().into();
        }
        WantedSubscription { key: self.key.clone(), parameters }
    }
}

/// Returns the subscription that collects the entries of a feed and notifies nobody.
fn placeholder(account: &MovedAccount, source: &SourceSubscription) -> WantedSubscription {
    let key =
        SubscriptionKey { topic: source.key.topic.clone(), callback: account.placeholder.clone() };
    let parameters = parameters("subscribe", &key);
    WantedSubscription { key, parameters }
}

/// Subscribes, and returns what became of each: a note on its topic, or the reason why it failed.
pub(super) async fn subscribe_batch(
    gateway: &AccountApi,
    batch: &[WantedSubscription],
) -> Result<Vec<Result<Option<String>, String>>, AccountApiError> {
    let items: Vec<Value> = batch.iter().map(|wanted| wanted.parameters.clone()).collect();
    gateway.post_batch(&items).await
}

/// Ends subscriptions at the gateway. Returns those that ended, and the others with the reason.
pub(super) async fn unsubscribe_all(
    gateway: &AccountApi,
    keys: Vec<SubscriptionKey>,
) -> Result<Vec<(SubscriptionKey, Result<(), String>)>, AccountApiError> {
    let mut ended = Vec::with_capacity(keys.len());
    for batch in keys.chunks(BATCH_ITEMS) {
        let items: Vec<Value> = batch.iter().map(|key| parameters("unsubscribe", key)).collect();
        let results = gateway.post_batch(&items).await?;
        let results = results.into_iter().map(|result| result.map(|_| ()));
        ended.extend(batch.iter().cloned().zip(results));
    }
    Ok(ended)
}

fn parameters(mode: &str, key: &SubscriptionKey) -> Value {
    json!({ "hub.mode": mode, "hub.topic": key.topic, "hub.callback": key.callback })
}
