//! Importing a list of feeds. Subscriptions are stored without waiting for the first fetches of their
//! feeds, so that a thousand take seconds; the schedule fetches the feeds afterwards. An import goes
//! on when its page is closed, and ends with the session that began it: with its token, or when its
//! user signs out. One that breaks off can be repeated: what is subscribed to already stays as it is.

use std::collections::HashSet;
use std::error::Error;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::{FutureExt, StreamExt, stream};
use tracing::warn;

use super::imports::{ImportEnd, ImportRecord, ImportResult, ImportedFeed};
use super::{MAX_FEEDS, MAX_IMPORT_BYTES};
use crate::http::kit::rejection::Rejection;
use crate::http::routes::console::new_subscription::{NewSubscription, SubscribeResult};
use crate::http::routes::console::visit::{Session, Visit};
use crate::http::state::Gateway;
use crate::subscriptions::FirstFetchWait;
use feedgate_core::account::AccountId;
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

    /// Returns the number of feeds of the list.
    pub(super) fn len(&self) -> usize {
        self.feeds.len()
    }

    /// Subscribes an account to the feeds of the list, and notes in `record` what came of each. If the
    /// session ends, the store fails or the node is stopped, no more feeds are begun; what has begun
    /// is finished.
    pub(super) async fn carry_out(
        self,
        gateway: Arc<Gateway>,
        session: Session,
        request: NewSubscription,
        record: Arc<ImportRecord>,
    ) {
        let account = session.access.account;
        let mut ending = Ending { record: &record, end: ImportEnd::Stopped };
        let early_end = OnceLock::new();
        let mut known = HashSet::new();
        let mut all = Vec::with_capacity(self.feeds.len());
        for feed in self.feeds {
            let is_repeated = !known.insert(feed.url.clone());
            let (gateway, request, early_end) = (&gateway, &request, &early_end);
            let imported = async move {
                if early_end.get().is_some() || gateway.stop.is_cancelled() {
                    return None;
                }
                let result = match is_repeated {
                    true => Some(ImportResult::Repeated),
                    false => import(gateway, account, request, &feed.url).await,
                };
                if result.is_none() {
                    early_end.get_or_init(|| ImportEnd::StoreFailed);
                }
                result.map(|result| ImportedFeed { feed, result })
            };
            all.push(imported.boxed());
        }
        let mut results = stream::iter(all).buffered(CONCURRENCY).enumerate();
        while let Some((number, imported)) = results.next().await {
            record.state().done.extend(imported);
            if number % CONCURRENCY == CONCURRENCY - 1
                && let Some(end) = session_end(&session, &gateway).await
            {
                early_end.get_or_init(|| end);
            }
        }
        if record.state().done.len() == record.total {
            ending.end = ImportEnd::Complete;
        } else if let Some(end) = early_end.get() {
            ending.end = *end;
        }
    }
}

/// Returns how an import ends because its session did; `None` while the session goes on.
async fn session_end(session: &Session, gateway: &Gateway) -> Option<ImportEnd> {
    match session.is_valid(gateway).await {
        Ok(true) => None,
        Ok(false) => Some(ImportEnd::SessionEnded),
        Err(err) => {
            warn!(error = &err as &dyn Error, "an import of feeds ends early");
            Some(ImportEnd::StoreFailed)
        }
    }
}

/// Notes how an import ended, in whatever way it does.
struct Ending<'r> {
    record: &'r ImportRecord,
    end: ImportEnd,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.record.state().end = Some(self.end);
    }
}

/// Subscribes to one feed. Returns `None` if the store failed, which is logged then.
async fn import(
    gateway: &Gateway,
    account: AccountId,
    request: &NewSubscription,
    url: &str,
) -> Option<ImportResult> {
    let topic = match Topic::parse(url) {
        Ok(topic) => topic,
        Err(why) => {
            return Some(ImportResult::Failed(format!("The address cannot be used: {why}.")));
        }
    };
    match request.subscribe(gateway, account, &topic, FirstFetchWait::None).await {
        Ok(SubscribeResult::Subscribed) => Some(ImportResult::Subscribed),
        Ok(SubscribeResult::Existing(_)) => Some(ImportResult::Existing),
        Ok(SubscribeResult::Refused(reason)) => Some(ImportResult::Failed(reason)),
        Err(rejection) if rejection.status().is_server_error() => None,
        Err(rejection) => Some(ImportResult::Failed(rejection.reason().to_owned())),
    }
}
