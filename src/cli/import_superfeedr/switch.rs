//! The last step: the gateway notifies the callbacks, and Superfeedr no longer.
//!
//! For each subscription: it is made here; what is here and not yet at Superfeedr, which has not sent it,
//! is sent from here; and it is ended at Superfeedr. In this order, an entry may be sent by both, and
//! none by neither. A run that ends in between is repeated.

use std::collections::HashSet;

use futures_util::{StreamExt, stream};

use super::super::progress::Progress;
use super::account_api::{AccountApiError, CONCURRENCY};
use super::compare::retrieve_both;
use super::comparison::missing_there;
use super::import::{subscribe_batch, unsubscribe_all};
use super::journal::{ImportJournal, JournalRecord, SubscriptionKey};
use super::report::ResultPrinter;
use super::source::{SourceSubscription, read_list};
use super::{MoveError, MovedAccount};

/// The subscriptions that are made here before they end at Superfeedr: so many receive entries from both
/// for some seconds.
const MADE_TOGETHER: usize = 100;

/// How many subscriptions were switched, and how many were not.
#[derive(Default)]
struct SwitchCounts {
    switched: usize,
    kept: usize,
    failed: usize,
}

/// Switches the subscriptions whose feeds are the same at both; all of them `despite_differences`.
pub(super) async fn switch(
    account: &MovedAccount,
    journal: &mut ImportJournal,
    despite_differences: bool,
    printer: &mut ResultPrinter,
) -> Result<(), MoveError> {
    let list = read_list(&account.superfeedr).await?;
    let mut counts = SwitchCounts::default();
    // Topics that somebody is still subscribed to at Superfeedr.
    let mut remaining: HashSet<&str> = HashSet::new();
    for (key, reason) in &list.unusable {
        counts.failed += 1;
        printer.print_exception("failed", key, reason);
        remaining.insert(&key.topic);
    }
    let mut ready = Vec::new();
    let topics = journal.topics();
    for source in &list.subscriptions {
        let comparison = journal.comparison(&source.key.topic);
        let reason = match comparison {
            _ if !topics.contains(&source.key.topic) => Some("it is not imported yet".to_owned()),
            _ if despite_differences => None,
            None => Some("it is not compared yet".to_owned()),
            Some(comparison) => comparison.reason(),
        };
        match reason {
            None => ready.push(source),
            Some(reason) => {
                counts.kept += 1;
                printer.print_exception("kept", &source.key, &reason);
                remaining.insert(&source.key.topic);
            }
        }
    }
    let progress = Progress::of_items(ready.len() as u64);
    for part in ready.chunks(MADE_TOGETHER) {
        let terms = SwitchTerms { account, despite_differences };
        let failed = switch_part(terms, journal, part, printer).await?;
        counts.failed += failed.len();
        counts.switched += part.len() - failed.len();
        remaining.extend(failed);
        progress.add(part.len() as u64);
    }
    progress.finish();
    end_placeholders(account, journal, &remaining, printer).await?;
    let SwitchCounts { switched, kept, failed } = counts;
    let counts = [("switched", switched), ("kept_at_superfeedr", kept), ("failed", failed)];
    printer.print_summary("switched", &counts);
    Ok(())
}

/// Switches some subscriptions. Returns the topics of those for which it failed.
async fn switch_part<'s>(
    terms: SwitchTerms<'_>,
    journal: &mut ImportJournal,
    part: &[&'s SourceSubscription],
    printer: &mut ResultPrinter,
) -> Result<Vec<&'s str>, MoveError> {
    let wanted: Vec<_> = part.iter().map(|source| source.clone_at_gateway()).collect();
    let made = subscribe_batch(&terms.account.gateway, &wanted).await?;
    let made = part.iter().zip(made).map(|(source, made)| {
        let was_notified = journal.is_imported(&source.key);
        async move {
            let switched = match made {
                Ok(_) => terms.end_at_superfeedr(&source.key, was_notified).await,
                Err(reason) => Ok(Err(reason)),
            };
            (*source, switched)
        }
    });
    let switched: Vec<_> =
        stream::iter(made.collect::<Vec<_>>()).buffer_unordered(CONCURRENCY).collect().await;
    let (mut records, mut failed, mut failure) = (Vec::new(), Vec::new(), None);
    for (source, result) in switched {
        match result {
            Ok(Ok(())) => records.push(JournalRecord::Switched(source.key.clone())),
            Ok(Err(reason)) => {
                printer.print_exception("failed", &source.key, &reason);
                failed.push(&*source.key.topic);
            }
            Err(err) => failure = Some(err),
        }
    }
    journal.append(records)?;
    failure.map_or(Ok(failed), |err| Err(err.into()))
}

/// What subscriptions are switched.
#[derive(Clone, Copy)]
struct SwitchTerms<'a> {
    account: &'a MovedAccount,
    /// Whether also those whose entries cannot be compared.
    despite_differences: bool,
}

impl SwitchTerms<'_> {
    /// Ends a subscription at Superfeedr that the gateway has. Returns why it could not be; the error is one
    /// that ends the run.
    async fn end_at_superfeedr(
        self,
        key: &SubscriptionKey,
        was_notified: bool,
    ) -> Result<Result<(), String>, AccountApiError> {
        let refused = |err: AccountApiError| match err.ends_run() {
            true => Err(err),
            false => Ok(Err(err.to_string())),
        };
        let missing = match was_notified {
            true => 0,
            false => match self.count_missing(&key.topic).await? {
                Ok(missing) => missing,
                Err(_) if self.despite_differences => 0,
                Err(reason) => return Ok(Err(format!("not compared again: {reason}"))),
            },
        };
        let named = [("hub.topic", &*key.topic), ("hub.callback", &*key.callback)];
        if missing > 0 {
            let count = missing.to_string();
            let replay = [&[("hub.mode", "replay"), ("count", &*count)], &named[..]].concat();
            if let Err(err) = self.account.gateway.post(&replay).await {
                return refused(err);
            }
        }
        let end = [&[("hub.mode", "unsubscribe")], &named[..]].concat();
        match self.account.superfeedr.post(&end).await {
            Ok(_) => Ok(Ok(())),
            Err(err) => refused(err),
        }
    }

    /// Returns how many of the newest entries here Superfeedr has not sent, or why nobody knows.
    async fn count_missing(self, topic: &str) -> Result<Result<usize, String>, AccountApiError> {
        match retrieve_both(self.account, topic).await {
            Ok((Ok(here), Ok(there))) => Ok(missing_there(&here, &there)
                .ok_or_else(|| "no entry is at both services".to_owned())),
            Ok((Err(reason), _) | (_, Err(reason))) => Ok(Err(reason)),
            Err(err) if err.ends_run() => Err(err),
            Err(err) => Ok(Err(err.to_string())),
        }
    }
}

/// Ends the placeholders of feeds that nobody is subscribed to at Superfeedr any more.
async fn end_placeholders(
    account: &MovedAccount,
    journal: &mut ImportJournal,
    remaining: &HashSet<&str>,
    printer: &mut ResultPrinter,
) -> Result<(), MoveError> {
    let done = journal.imported().filter(|key| !remaining.contains(&*key.topic)).cloned();
    let (placeholders, others): (Vec<_>, Vec<_>) =
        done.partition(|key| key.callback == account.placeholder);
    // A run that was killed may have ended them at Superfeedr without storing it.
    let mut records: Vec<_> = others.into_iter().map(JournalRecord::Switched).collect();
    for (key, ended) in unsubscribe_all(&account.gateway, placeholders).await? {
        match ended {
            Ok(()) => records.push(JournalRecord::Ended(key)),
            Err(reason) => printer.print_exception("placeholder not ended", &key, &reason),
        }
    }
    Ok(journal.append(records)?)
}
