//! The second step: the newest entries of each imported feed are compared, once or every hour.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::super::print_note;
use super::super::progress::Progress;
use super::account_api::{AccountApi, AccountApiError, CONCURRENCY};
use super::comparison::{ListedEntry, TopicComparison, compare_entries, read_entries};
use super::journal::{ImportJournal, JournalRecord};
use super::report::ResultPrinter;
use super::{MoveError, MovedAccount};

/// The entries of a feed that are retrieved; Superfeedr's maximum.
const MOST_ENTRIES: &str = "50";
/// The time between the beginnings of two comparisons.
const EVERY: Duration = Duration::from_secs(3_600);
/// How many results are stored together.
const STORED_TOGETHER: usize = 100;

/// Compares all feeds, and goes on until `lasts` is over. The result of the last comparison, which
/// includes what the earlier ones found, is printed.
pub(super) async fn compare(
    account: &MovedAccount,
    journal: &mut ImportJournal,
    lasts: Option<Duration>,
    printer: &mut ResultPrinter,
) -> Result<(), MoveError> {
    let end = Instant::now() + lasts.unwrap_or_default();
    loop {
        let begun = Instant::now();
        compare_all(account, journal).await?;
        if begun + EVERY > end {
            break;
        }
        let differing = count(journal, |comparison| comparison.reason().is_some());
        print_note(format!("{differing} feeds differ; the next comparison is in an hour"));
        sleep((begun + EVERY).saturating_duration_since(Instant::now())).await;
    }
    print_results(journal, printer);
    Ok(())
}

async fn compare_all(account: &MovedAccount, journal: &mut ImportJournal) -> Result<(), MoveError> {
    let topics: Vec<String> = journal.topics().into_iter().collect();
    let progress = Progress::of_items(topics.len() as u64);
    for part in topics.chunks(STORED_TOGETHER) {
        let before = part.iter().map(|topic| (topic, journal.comparison(topic).cloned()));
        let compared = stream::iter(before.collect::<Vec<_>>())
            .map(|(topic, before)| async move {
                (topic, compare_topic(account, topic, before.as_ref()).await)
            })
            .buffer_unordered(CONCURRENCY);
        let compared: Vec<_> = compared.collect().await;
        let (mut records, mut failure) = (Vec::new(), None);
        for (topic, result) in compared {
            let comparison = match result {
                Ok(comparison) => comparison,
                Err(err) if err.ends_run() => {
                    failure = Some(err);
                    continue;
                }
                Err(err) => TopicComparison::NotCompared { reason: err.to_string() },
            };
            records.push(JournalRecord::Compared { topic: topic.clone(), comparison });
        }
        journal.append(records)?;
        if let Some(err) = failure {
            return Err(err.into());
        }
        progress.add(part.len() as u64);
    }
    progress.finish();
    Ok(())
}

async fn compare_topic(
    account: &MovedAccount,
    topic: &str,
    before: Option<&TopicComparison>,
) -> Result<TopicComparison, AccountApiError> {
    let (here, there) = retrieve_both(account, topic).await?;
    Ok(match (here, there) {
        (Ok(here), Ok(there)) => compare_entries(before, &here, &there),
        (Err(reason), _) => TopicComparison::NotCompared { reason: format!("here, {reason}") },
        (_, Err(reason)) => {
            TopicComparison::NotCompared { reason: format!("at Superfeedr, {reason}") }
        }
    })
}

/// The newest entries of a feed, or the reason why there are none.
type RetrievedEntries = Result<Vec<ListedEntry>, String>;

/// Returns the newest entries of a feed here and at Superfeedr.
pub(super) async fn retrieve_both(
    account: &MovedAccount,
    topic: &str,
) -> Result<(RetrievedEntries, RetrievedEntries), AccountApiError> {
    tokio::try_join!(retrieve(&account.gateway, topic), retrieve(&account.superfeedr, topic))
}

async fn retrieve(server: &AccountApi, topic: &str) -> Result<RetrievedEntries, AccountApiError> {
    let parameters = [
        ("hub.mode", "retrieve"),
        ("hub.topic", topic),
        ("count", MOST_ENTRIES),
        ("format", "json"),
    ];
    Ok(read_entries(&server.get(&parameters).await?))
}

fn print_results(journal: &ImportJournal, printer: &mut ResultPrinter) {
    for topic in journal.topics() {
        let Some(comparison) = journal.comparison(&topic) else { continue };
        let Some(reason) = comparison.reason() else { continue };
        match comparison {
            TopicComparison::Different { only_here, only_there } => {
                let fields = json!({ "only_here": only_here, "only_there": only_there });
                printer.print_feed("different", &topic, fields, &reason);
            }
            _ => printer.print_feed("not compared", &topic, json!({}), &reason),
        }
    }
    let same = count(journal, |comparison| *comparison == TopicComparison::Same);
    let different =
        count(journal, |comparison| matches!(comparison, TopicComparison::Different { .. }));
    let others = journal.topics().len() - same - different;
    let counts = [("same", same), ("different", different), ("not_compared", others)];
    printer.print_summary("compared", &counts);
}

fn count(journal: &ImportJournal, is_counted: impl Fn(&TopicComparison) -> bool) -> usize {
    let topics = journal.topics();
    let comparisons = topics.iter().filter_map(|topic| journal.comparison(topic));
    comparisons.filter(|comparison| is_counted(comparison)).count()
}
