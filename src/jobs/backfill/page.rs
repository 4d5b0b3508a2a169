//! One document of a backfill: its address, and its entries.

use chrono::{DateTime, Utc};
use http::header::LINK;
use url::Url;

use crate::jobs::poll;
use crate::net::{
    FetchError, FetchRequest, FetchResponse, Fetched, FetchedDocument, Hop, HttpClient,
};
use feedgate_core::backfill::{Backfill, PastPage, leads_to};
use feedgate_core::poll::Validators;
use feedgate_core::resource::Resource;
use feedgate_core::schedule::FailureClass;
use feedgate_feed::Context;
use feedgate_feed::link_header;
use feedgate_feed::parse;
use feedgate_feed::passes;

use super::with_credentials;

/// Why a document could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PageFailure {
    /// A code of `docs/errors.md`.
    pub(super) code: &'static str,
    /// Whether a retry may succeed.
    pub(super) is_passing: bool,
    /// The status code of the response, if that is the failure.
    pub(super) http_code: Option<u16>,
    /// The seconds for which the server does not accept requests, if it gave a time.
    pub(super) retry_after_s: Option<u32>,
    /// The URL of the server that answered, to which redirects may have led.
    pub(super) answered_by: Option<Url>,
    /// Until when the server, to which redirects may have led, is not contacted.
    pub(super) paused_until: Option<DateTime<Utc>>,
}

impl PageFailure {
    fn lasting(code: &'static str) -> PageFailure {
        PageFailure {
            code,
            is_passing: false,
            http_code: None,
            retry_after_s: None,
            answered_by: None,
            paused_until: None,
        }
    }

    fn from_fetch_error(err: &FetchError, hops: &[Hop]) -> PageFailure {
        let (http_code, retry_after_s) = match err {
            FetchError::Status { status, retry_after_s, .. } => {
                (Some(status.as_u16()), *retry_after_s)
            }
            _ => (None, None),
        };
        let is_passing = match err {
            FetchError::Status { status, .. } => status.is_server_error() || status.as_u16() == 429,
            _ => err.class() == FailureClass::Network,
        };
        let answered_by = hops.last().map(|hop| hop.url.clone());
        let paused_until = match err {
            FetchError::HostPaused { until, .. } => Some(*until),
            _ => None,
        };
        let code = err.code();
        PageFailure { code, is_passing, http_code, retry_after_s, answered_by, paused_until }
    }
}

/// Returns the address of the next document, or `None` if it is not a web address.
pub(super) fn address(backfill: &Backfill, resource: &Resource) -> Option<Url> {
    // A fragment of a document has no history of its own.
    if resource.topic.fragment().is_some() {
        return None;
    }
    let topic = Url::parse(&resource.fetch_url).ok()?;
    let Some(next) = &backfill.next else { return Some(topic) };
    let url = Url::parse(next).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    with_credentials(url, &topic)
}

/// Fetches the document at `url`.
pub(super) async fn fetch(client: &HttpClient, resource: &Resource, url: &Url) -> Fetched {
    let validators = Validators::default(); // each document is read once
    let (subscribers, feed_id) = (resource.subscribers, Some(resource.id.0));
    let request = FetchRequest { url: url.as_str(), validators: &validators, subscribers, feed_id };
    client.get(request).await
}

/// Reads the document that was fetched from `url`.
pub(super) async fn read(
    fetched: Fetched,
    backfill: &Backfill,
    resource: &Resource,
    url: &Url,
    now: DateTime<Utc>,
) -> Result<PastPage, PageFailure> {
    let document = match fetched.result {
        Ok(FetchResponse::Document(document)) => document,
        Ok(FetchResponse::NotModified { .. }) => return Err(PageFailure::lasting("http_status")),
        Err(err) => return Err(PageFailure::from_fetch_error(&err, &fetched.hops)),
    };
    let known_by = backfill.known_by.max(resource.polling.known_by);
    let context = Context { known_by, ..document.context(now) };
    let (requested, chain) = (bare(url), backfill.chain);
    let Some(memory) = document.memory.clone() else {
        return Err(PageFailure::lasting("parser_failed"));
    };
    let read = memory.run_blocking(move || {
        let feed = parse::parse(&document.body, &context).ok()?;
        if feed.format.is_page() || feed.moved_to.is_some() {
            return None;
        }
        let feed = passes::run(feed, &context);
        let link = leads_to(&feed, &headers(&document), chain);
        let link =
            link.and_then(|(chain, href)| Some((chain, bare(&document.url.join(&href).ok()?))));
        Some(PastPage {
            urls: vec![requested, bare(&document.url)],
            bytes: document.body.len() as u64,
            known_by: feed.known_by,
            entries: poll::candidates(&feed, now),
            link,
        })
    });
    match read.await {
        Some(Some(page)) => Ok(page),
        Some(None) => Err(PageFailure::lasting("not_a_feed")),
        None => Err(PageFailure::lasting("parser_failed")),
    }
}

/// Returns relation and target of each link in the headers.
fn headers(document: &FetchedDocument) -> Vec<(String, String)> {
    let values = document.headers.get_all(LINK).iter();
    let links = link_header::read(values.filter_map(|value| value.to_str().ok()));
    let is_feed = |mime: &Option<String>| mime.as_deref().is_none_or(|mime| mime != "text/html");
    let links = links.into_iter().filter(|link| is_feed(&link.mime));
    links
        .flat_map(|link| link.rels.into_iter().map(move |rel| (rel, link.target.clone())))
        .collect()
}

/// Returns an address as it is stored and compared: without credentials and without a fragment.
fn bare(url: &Url) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    // Only a URL without a host is an error, and it is refused when it is requested.
    let _ = url.set_username("").and_then(|()| url.set_password(None));
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s49_credentials_go_to_the_server_of_the_topic_and_to_no_other() {
        let topic = Url::parse("https://me:pass@a.test/feed").unwrap();
        let cases = [
            ("https://a.test/feed?page=2", "https://me:pass@a.test/feed?page=2"),
            ("https://other@a.test/2", "https://me:pass@a.test/2"),
            ("http://a.test/2", "http://a.test/2"),
            ("https://b.test/2", "https://b.test/2"),
            ("https://x:y@b.test/2", "https://b.test/2"),
        ];
        for (url, want) in cases {
            let url = with_credentials(Url::parse(url).unwrap(), &topic).unwrap();
            assert_eq!(url.as_str(), want);
        }
        assert_eq!(bare(&topic), "https://a.test/feed");
    }
}
