//! An index of sitemaps, which is read as one sitemap with the pages of the newest that it names.
//!
//! * A poll fetches a few of them at most: those that changed last, by their `lastmod`, and of these only
//!   those that changed since the index was read. They are fetched as a document that a feed has moved
//!   to: one after the other, in the turn of the host, within all limits of a poll.
//! * The index decides what is fetched, and anybody can write one: its sitemaps are on its own host, and
//!   `robots.txt` is asked about each.
//! * A sitemap that was not among the newest before has many pages that are not new. Those that the
//!   sitemap dates before the index was read are left out, and those without a date.
//! * Nothing is stored of single sitemaps. An index that dates not all of them is read in full each time,
//!   because it does not tell which have changed.

use chrono::{DateTime, TimeDelta, Utc};
use http::StatusCode;
use url::Url;

use crate::document_budget::DocumentMemory;
use crate::fetch_traces::TracedRequest;
use crate::net::{FetchError, FetchResponse, FetchedDocument};
use feedgate_core::poll::Validators;
use feedgate_core::resource::{Resource, ResourceKind};
use feedgate_core::store::{DueResource, StoreError};
use feedgate_feed::Context;
use feedgate_feed::model::{Entry, Feed, FeedFormat};
use feedgate_feed::parse::ListedSitemap;
use feedgate_feed::passes;

use super::Poller;
use super::fetch_and_parse::{Source, not_put_off};
use super::observation::{Failure, Found, NOT_A_FEED, Observation, ServerVisit};
use super::put_off::{PollStop, PutOff};
use super::read_document::parse_in_background;

/// The maximum number of sitemaps that are fetched for one poll.
const MAX_SITEMAPS: usize = 5;
/// The maximum number of pages of all sitemaps together: as many as are read of one document.
const MAX_PAGES: usize = 5_000;
/// How much earlier than the last poll a change may be dated that the poll has not seen: many dates are
/// days, in whatever zone.
const TOLERANCE: TimeDelta = TimeDelta::days(2);

/// The pages of the sitemaps that were read.
#[derive(Default)]
struct Pages {
    /// The time before which pages are not new; `None` if all may be.
    since: Option<DateTime<Utc>>,
    /// Whether pages without a date may be new.
    takes_undated: bool,
    entries: Vec<Entry>,
    /// The memory of the longest sitemap, which is reserved for as long as the pages are.
    memory: Option<DocumentMemory>,
    /// How many sitemaps were read.
    sitemaps: usize,
    /// The failure of a sitemap that is not there any more.
    missing: Option<Failure>,
}

impl Poller {
    /// Fetches the newest sitemaps of an index, if the observation is of one.
    pub(super) async fn follow_index(
        &self,
        source: Source<'_>,
        due: &DueResource,
        mut observation: Observation,
    ) -> Result<Observation, PollStop> {
        let (Found::Other(index) | Found::Same(index)) = &mut observation.found else {
            return Ok(observation);
        };
        let listed = std::mem::take(&mut index.sitemaps);
        if listed.is_empty() {
            return Ok(observation);
        }
        let read_at = last_read(&due.resource);
        let is_dated = listed.iter().all(|sitemap| sitemap.changed.is_some());
        let mut pages = Pages::new(read_at, listed.len());
        let changed = newest(listed, read_at);
        for sitemap in &changed {
            let read = (&mut observation, &mut pages);
            if let Some(failure) = self.read_sitemap(source, (due, sitemap), read).await? {
                observation.found = Found::Failure(failure);
                return Ok(observation);
            }
        }
        if let (0, Some(failure)) = (pages.sitemaps, pages.missing.take()) {
            observation.found = Found::Failure(failure);
            return Ok(observation);
        }
        let (Found::Other(mut index) | Found::Same(mut index)) = observation.found else {
            return Ok(observation);
        };
        if !is_dated {
            index.validators = Validators::default();
            index.hash.clear();
        }
        if let Some(memory) = pages.memory.take().filter(DocumentMemory::is_large) {
            index.memory = memory;
        }
        let is_read = due.resource.kind == ResourceKind::Feed;
        observation.found = match changed.is_empty() && is_read {
            true => Found::Same(index),
            false => Found::Feed { feed: feed_of(due, pages), received: index },
        };
        Ok(observation)
    }

    /// Fetches a sitemap and adds its pages. Returns the failure that keeps the index from being read.
    async fn read_sitemap(
        &self,
        source: Source<'_>,
        (due, sitemap): (&DueResource, &ListedSitemap),
        (observation, pages): (&mut Observation, &mut Pages),
    ) -> Result<Option<Failure>, PollStop> {
        if let Some(failure) = self.disallowed(source, &sitemap.url, observation.at).await? {
            pages.missing = Some(failure);
            return Ok(None);
        }
        let fetched = source.get(due, &sitemap.url, &Validators::default()).await;
        let fetched = not_put_off(fetched, true).map_err(PollStop::PutOff)?;
        observation.took += fetched.took;
        observation.wire_bytes += fetched.wire_bytes;
        observation.source_network = observation.source_network.max(fetched.source_network());
        observation.requests.extend(TracedRequest::from_hops(&fetched.hops));
        observation.visits.extend(ServerVisit::from_hops(&fetched.hops));
        if let Some(hop) = fetched.hops.get(1..).and_then(<[_]>::last)
            && let Some(failure) = self.disallowed(source, hop.url.as_str(), observation.at).await?
        {
            pages.missing = Some(failure);
            return Ok(None);
        }
        match fetched.result {
            Ok(FetchResponse::Document(document)) => {
                let added = source.add_pages(*document, observation.at, pages).await;
                added.map_err(PollStop::PutOff)
            }
            Ok(FetchResponse::NotModified { .. }) => Ok(None),
            Err(err) if is_gone(&err) => {
                pages.missing = Some(Failure::from(&err));
                Ok(None)
            }
            Err(err) => Ok(Some(Failure::from(&err))),
        }
    }

    /// Returns the failure if `robots.txt` disallows a sitemap at `url`.
    async fn disallowed(
        &self,
        source: Source<'_>,
        url: &str,
        now: DateTime<Utc>,
    ) -> Result<Option<Failure>, StoreError> {
        let Ok(url) = Url::parse(url) else { return Ok(None) };
        let is_allowed = self.is_allowed(source.client, &url, now).await?;
        Ok((!is_allowed).then(|| Failure::disallowed(&url, "a sitemap at this address")))
    }
}

impl Source<'_> {
    async fn add_pages(
        self,
        document: FetchedDocument,
        now: DateTime<Utc>,
        pages: &mut Pages,
    ) -> Result<Option<Failure>, PutOff> {
        let unpacked = match self.client.unpack(&document).await {
            None => document.memory.clone().map(|memory| (document.body.clone(), memory)),
            Some(Ok(unpacked)) => Some(unpacked),
            Some(Err(FetchError::GatewayBusy(busy))) => return Err(PutOff::begun(busy)),
            Some(Err(err)) => return Ok(Some(Failure::from(&err))),
        };
        let Some((body, memory)) = unpacked else { return Ok(None) };
        match parse_in_background(body, document.context(now), &memory).await {
            None => Ok(Some(Failure::parser_panicked())),
            Some(Ok(sitemap)) if sitemap.format == FeedFormat::Sitemap => {
                pages.add(*sitemap, memory);
                Ok(None)
            }
            // An index within an index, or a page in place of a sitemap.
            Some(_) => {
                let message = "the index names a document that is no sitemap".to_owned();
                pages.missing = Some(Failure::unusable(NOT_A_FEED, message));
                Ok(None)
            }
        }
    }
}

impl Pages {
    /// Returns no pages yet, of an index that lists so many sitemaps and was read at a time before.
    fn new(read_at: Option<DateTime<Utc>>, listed: usize) -> Pages {
        // Of a few, all were read before; of more, nobody knows which pages are new.
        let takes_undated = read_at.is_none() || listed <= MAX_SITEMAPS;
        let since = read_at.map(|at| at - TOLERANCE);
        Pages { since, takes_undated, ..Pages::default() }
    }

    fn add(&mut self, sitemap: Feed, memory: DocumentMemory) {
        let (since, takes_undated) = (self.since, self.takes_undated);
        let is_recent = |entry: &Entry| match last_change(entry) {
            Some(at) => since.is_none_or(|since| at >= since),
            None => takes_undated,
        };
        self.entries.extend(sitemap.entries.into_iter().filter(is_recent));
        self.sitemaps += 1;
        if self.entries.len() > MAX_PAGES {
            self.entries.sort_by_key(|entry| std::cmp::Reverse(last_change(entry)));
            self.entries.truncate(MAX_PAGES);
        }
        if self.memory.is_none() || memory.is_large() {
            self.memory = Some(memory);
        }
    }
}

/// Returns the time when a resource was last read as a feed; `None` if it never was.
fn last_read(resource: &Resource) -> Option<DateTime<Utc>> {
    resource.polling.whole_at.filter(|_| resource.kind == ResourceKind::Feed)
}

/// Returns the sitemaps that may have changed since a time, the newest first, a few at most. Those
/// without a date come last.
fn newest(mut listed: Vec<ListedSitemap>, since: Option<DateTime<Utc>>) -> Vec<ListedSitemap> {
    let since = since.map(|at| at - TOLERANCE);
    listed.retain(|sitemap| match (sitemap.changed, since) {
        (Some(at), Some(since)) => at >= since,
        _ => true,
    });
    listed.sort_by_key(|sitemap| std::cmp::Reverse(sitemap.changed));
    listed.truncate(MAX_SITEMAPS);
    listed
}

/// Returns when a sitemap says that a page changed last; `None` if it does not say.
fn last_change(page: &Entry) -> Option<DateTime<Utc>> {
    let stated = page.updated.max(page.published).filter(|_| !page.date_assumed);
    stated.map(|at| at.to_utc())
}

/// Returns the feed of an index.
fn feed_of(due: &DueResource, pages: Pages) -> Box<Feed> {
    let mut feed = Feed { format: FeedFormat::Sitemap, ..Feed::default() };
    if let Ok(url) = Url::parse(&due.resource.fetch_url) {
        feed = passes::run(feed, &Context::new(url));
    }
    feed.entries = pages.entries;
    Box::new(feed)
}

/// Returns whether a sitemap is not where the index says, and will not be.
fn is_gone(err: &FetchError) -> bool {
    let gone = [StatusCode::NOT_FOUND, StatusCode::GONE];
    matches!(err, FetchError::Status { status, .. } if gone.contains(status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n12_the_newest_sitemaps_are_read_and_only_if_they_have_changed() {
        let sitemap = |name: &str, day: Option<i64>| ListedSitemap {
            url: name.to_owned(),
            changed: day.map(|day| DateTime::UNIX_EPOCH + TimeDelta::days(day)),
        };
        let listed = || {
            let dated = (1..=8).map(|day| sitemap(&format!("{day}"), Some(day)));
            dated.chain([sitemap("undated", None)]).collect::<Vec<_>>()
        };
        let chosen = |since: Option<i64>| {
            let since = since.map(|day| DateTime::UNIX_EPOCH + TimeDelta::days(day));
            let chosen = newest(listed(), since).into_iter().map(|sitemap| sitemap.url);
            chosen.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(chosen(None), "8 7 6 5 4");
        assert_eq!(chosen(Some(8)), "8 7 6 undated");
        assert_eq!(chosen(Some(20)), "undated");
    }
}
