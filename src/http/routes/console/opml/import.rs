//! Importing a list of feeds. Subscriptions are stored without waiting for the first fetches of their
//! feeds, so that a thousand take seconds; the schedule fetches the feeds afterwards. An import that
//! breaks off can be repeated: what is subscribed to already stays as it is.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::{FutureExt, StreamExt, stream};

use super::{MAX_FEEDS, MAX_IMPORT_BYTES};
use crate::http::kit::rejection::Rejection;
use crate::http::routes::console::new_subscription::{NewSubscription, SubscribeResult};
use crate::http::routes::console::visit::Visit;
use crate::subscriptions::FirstFetchWait;
use feedgate_core::topic::Topic;
use feedgate_feed::parse::{ListedFeed, listed_feeds};

/// The number of feeds that are subscribed to at the same time.
const CONCURRENCY: usize = 16;
/// How long an import waits for memory for its document.
const ADMISSION_WAIT: Duration = Duration::from_secs(5);

/// A list of feeds that was read and not imported.
pub(super) struct Import {
    feeds: Vec<ListedFeed>,
}

/// What came of a feed of the list.
pub(super) enum ImportResult {
    /// The account is subscribed now.
    Subscribed,
    /// The account was subscribed before.
    Existing,
    /// The list has the feed more than once.
    Repeated,
    /// The account is not subscribed, for the reason in this sentence.
    Failed(String),
}

/// A feed of the list, with what came of it.
pub(super) struct ImportedFeed {
    pub(super) feed: ListedFeed,
    pub(super) result: ImportResult,
}

impl Import {
    /// Reads the list of a form: its file, or its text. An error of the list is a sentence.
    pub(super) async fn read(visit: &Visit) -> Result<Result<Import, String>, Rejection> {
        let fields = ["file", "opml"].into_iter().filter_map(|name| visit.form.get_verbatim(name));
        let mut fields = fields.filter(|text| !text.trim().is_empty());
        let Some(document) = fields.next() else {
            return Ok(Err("Please choose an OPML file, or insert its text.".to_owned()));
        };
        if document.len() > MAX_IMPORT_BYTES {
            return Ok(Err("The list is longer than 1 MiB. Please import it in parts.".to_owned()));
        }
        let document = document.to_owned();
        let memory = visit.gateway.documents.admit(document.as_bytes(), ADMISSION_WAIT).await;
        let memory = memory.map_err(Rejection::busy)?;
        let read = memory.run_blocking(move || listed_feeds(document.as_bytes())).await;
        Ok(match read {
            Some(Ok(feeds)) if feeds.is_empty() => Err("The list has no feeds.".to_owned()),
            Some(Ok(feeds)) if feeds.len() > MAX_FEEDS => Err(format!(
                "The list has {} feeds, and at most {MAX_FEEDS} can be imported at once. Please \
                 import it in parts.",
                feeds.len()
            )),
            Some(Ok(feeds)) => Ok(Import { feeds }),
            Some(Err(why)) => Err(format!("The list cannot be imported: {why}.")),
            None => Err("The list cannot be read.".to_owned()),
        })
    }

    /// Subscribes to the feeds of the list. Fails only if the store does.
    pub(super) async fn carry_out(
        self,
        visit: &Visit,
        request: &NewSubscription,
    ) -> Result<Vec<ImportedFeed>, Rejection> {
        let mut known = HashSet::new();
        let mut all = Vec::with_capacity(self.feeds.len());
        for feed in self.feeds {
            let is_repeated = !known.insert(feed.url.clone());
            let imported = async move {
                let result = match is_repeated {
                    true => ImportResult::Repeated,
                    false => import(visit, request, &feed.url).await?,
                };
                Ok::<_, Rejection>(ImportedFeed { feed, result })
            };
            all.push(imported.boxed());
        }
        let done: Vec<_> = stream::iter(all).buffered(CONCURRENCY).collect().await;
        done.into_iter().collect()
    }
}

async fn import(
    visit: &Visit,
    request: &NewSubscription,
    url: &str,
) -> Result<ImportResult, Rejection> {
    let topic = match Topic::parse(url) {
        Ok(topic) => topic,
        Err(why) => return Ok(ImportResult::Failed(format!("The address cannot be used: {why}."))),
    };
    Ok(match request.subscribe(visit, &topic, FirstFetchWait::None).await? {
        SubscribeResult::Subscribed => ImportResult::Subscribed,
        SubscribeResult::Existing(_) => ImportResult::Existing,
        SubscribeResult::Refused(reason) => ImportResult::Failed(reason),
    })
}
