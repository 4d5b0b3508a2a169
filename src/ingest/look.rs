//! What a resource holds now: fetch it, read it, and say what was found.
//!
//! Nothing is stored or scheduled here.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use http::HeaderMap;
use sha2::{Digest, Sha256};
use tracing::error;

use crate::domain::feed::Feed;
use crate::domain::poll::{Body, Trigger, Validators};
use crate::domain::resource::Kind;
use crate::domain::schedule::Class;
use crate::domain::source::Context;
use crate::fetch::{Answer, Ask, Document, Fetch, FetchError, Fetched};
use crate::normalize;
use crate::parse;
use crate::store::DueResource;
use crate::wire::link;

/// How often documents that point to another one are followed (as HTTP redirects are,
/// rule P18).
const MOST_MOVES: usize = 5;
/// How often at most a "not modified" is doubted (rule P9: "Never more than one such
/// unconditional GET per feed per day").
const DOUBT_EVERY: Duration = Duration::from_secs(24 * 3_600);
/// What is said of a page where a feed was before.
const PAGE_FOR_FEED: &str = "not the feed any more: looks like an HTML page";
/// A document changed less than this before it was sent may change again and keep its
/// `Last-Modified`, which counts in seconds.
const STILL_CHANGING: Duration = Duration::from_secs(2);

/// One look at a resource.
#[derive(Debug)]
pub(super) struct Seen {
    /// When it was begun.
    pub(super) at: DateTime<Utc>,
    /// From the first byte sent to the last received.
    pub(super) took: Duration,
    /// Bytes received, before content decoding.
    pub(super) wire_bytes: u64,
    /// Whether a "not modified" was doubted.
    pub(super) doubted: bool,
    /// What was found.
    pub(super) found: Found,
}

/// What was found.
#[derive(Debug)]
pub(super) enum Found {
    /// 304.
    NotModified {
        /// Seconds for which the answer said it is good, if it did.
        hint_s: Option<u32>,
    },
    /// The same bytes as last time (rule P11).
    Same(Fresh),
    /// A feed.
    Feed {
        /// As it is stored and sent.
        feed: Box<Feed>,
        /// What came with it.
        fresh: Fresh,
    },
    /// Something that is no feed, in a place where no feed was known.
    Other(Fresh),
    /// Nothing usable.
    Trouble(Trouble),
}

/// What is remembered of a usable answer.
#[derive(Debug)]
pub(super) struct Fresh {
    /// What to send next time.
    pub(super) validators: Validators,
    /// SHA-256 of the body, in hex.
    pub(super) hash: String,
    /// Seconds for which the headers say it is good.
    pub(super) hint_s: u32,
    /// The body as received.
    pub(super) body: Body,
    /// Relation and address of what the headers link to.
    pub(super) links: Vec<(String, String)>,
}

/// Why nothing usable was found.
#[derive(Debug)]
pub(super) struct Trouble {
    /// A stable word of `docs/errors.md`.
    pub(super) code: &'static str,
    /// In a sentence, for the status.
    pub(super) message: String,
    /// What it means for when to come again.
    pub(super) class: Class,
    /// The status code, if there was an answer.
    pub(super) http_code: u16,
    /// Seconds for which the server asked to be left alone.
    pub(super) retry_after_s: Option<u32>,
}

/// Looks at a resource.
pub(super) async fn look(fetch: &Fetch, due: &DueResource, now: DateTime<Utc>) -> Seen {
    let polling = &due.resource.polling;
    let mut fetched = get(fetch, due, &due.resource.fetch_url, &polling.validators).await;
    let doubted = is_doubtful(&fetched, due, now);
    if doubted {
        fetched = get(fetch, due, &due.resource.fetch_url, &Validators::default()).await;
    }
    let mut seen = Seen {
        at: now,
        took: fetched.took,
        wire_bytes: fetched.wire_bytes,
        doubted,
        found: read(fetched.result, due, now).await,
    };
    for _ in 0..MOST_MOVES {
        let Found::Feed { feed, .. } = &seen.found else { break };
        let Some(place) = feed.moved_to.clone().filter(|place| !place.is_empty()) else { break };
        let fetched = get(fetch, due, &place, &polling.validators).await;
        seen.took += fetched.took;
        seen.wire_bytes += fetched.wire_bytes;
        seen.found = read(fetched.result, due, now).await;
    }
    if matches!(&seen.found, Found::Feed { feed, .. } if feed.moved_to.is_some()) {
        seen.found = Found::Trouble(Trouble::gone());
    }
    seen
}

async fn get(fetch: &Fetch, due: &DueResource, url: &str, validators: &Validators) -> Fetched {
    let (subscribers, feed_id) = (due.resource.subscribers, Some(due.resource.id.0));
    fetch.get(Ask { url, validators, subscribers, feed_id }).await
}

/// Whether the publisher says that it changed while its server says that it did not.
fn is_doubtful(fetched: &Fetched, due: &DueResource, now: DateTime<Utc>) -> bool {
    let doubted_at = due.resource.polling.doubted_at;
    due.trigger == Trigger::Ping
        && matches!(fetched.result, Ok(Answer::NotModified { .. }))
        && doubted_at.is_none_or(|at| now >= at + DOUBT_EVERY)
}

/// Makes of an answer what was found.
async fn read(answer: Result<Answer, FetchError>, due: &DueResource, now: DateTime<Utc>) -> Found {
    let document = match answer {
        Ok(Answer::NotModified { hint_s }) => return Found::NotModified { hint_s },
        Ok(Answer::Document(document)) => *document,
        Err(err) => return Found::Trouble(Trouble::of(&err)),
    };
    let fresh = Fresh::of(&document);
    if fresh.hash == due.resource.polling.body_hash {
        return Found::Same(fresh);
    }
    let known_by = due.resource.polling.known_by;
    let context = Context { known_by, ..document.context(now) };
    match parse_aside(document.body.clone(), context).await {
        // A page with entries marked up in it, but not those of the feed (rule P52).
        Some(Ok(feed)) if feed.format == parse::PAGE && is_known_as_feed(due) => {
            Found::Trouble(Trouble::unusable("not_a_feed", PAGE_FOR_FEED.to_owned()))
        }
        Some(Ok(feed)) => Found::Feed { feed, fresh },
        // A login page, a parked domain: usually over in hours, and never the feed.
        Some(Err(why)) if due.resource.kind == Kind::Feed => {
            Found::Trouble(Trouble::unusable("not_a_feed", why.to_string()))
        }
        Some(Err(_)) => Found::Other(fresh),
        None => Found::Trouble(Trouble::ours()),
    }
}

/// Whether a resource was known as a feed before, and not for what its pages hold.
fn is_known_as_feed(due: &DueResource) -> bool {
    due.resource.kind == Kind::Feed && due.resource.polling.format != parse::PAGE
}

/// Parses where it does not hold up others, and outlives a parser that panics (rule
/// S47); `None` says that it did.
pub(super) async fn parse_aside(
    body: Bytes,
    context: Context,
) -> Option<Result<Box<Feed>, parse::NotAFeed>> {
    let parse = move || {
        let feed = parse::parse(&body, &context)?;
        Ok(Box::new(normalize::normalize(feed, &context)))
    };
    match tokio::task::spawn_blocking(parse).await {
        Ok(parsed) => Some(parsed),
        Err(err) => {
            error!(error = &err as &dyn Error, "the parser panicked");
            None
        }
    }
}

impl Fresh {
    fn of(document: &Document) -> Fresh {
        let content_type = document.headers.get(http::header::CONTENT_TYPE);
        let content_type =
            content_type.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        Fresh {
            validators: validators(document),
            hash: hex::encode(Sha256::digest(&document.body)),
            hint_s: document.hint_s,
            body: Body { content_type, bytes: document.body.to_vec() },
            links: links(document),
        }
    }
}

/// Relation and address of what the headers link to.
fn links(document: &Document) -> Vec<(String, String)> {
    let values = document.headers.get_all(http::header::LINK).iter();
    let links = link::read(values.filter_map(|value| value.to_str().ok()));
    let targets = links.into_iter().filter_map(|link| {
        let target = document.url.join(&link.target).ok()?;
        Some(link.rels.into_iter().map(move |rel| (rel, target.as_str().to_owned())))
    });
    targets.flatten().collect()
}

/// The validators of a document, without a `Last-Modified` that cannot tell whether
/// the document changed once more within the same second (RFC 9110
/// `#lastmod.comparison`, "implicitly weak").
fn validators(document: &Document) -> Validators {
    let mut validators = document.validators.clone();
    if validators.etag.is_none() && is_still_changing(&document.headers) {
        validators.last_modified = None;
    }
    validators
}

fn is_still_changing(headers: &HeaderMap) -> bool {
    let time = |name| httpdate::parse_http_date(headers.get(name)?.to_str().ok()?).ok();
    let (sent, changed) = (time(http::header::DATE), time(http::header::LAST_MODIFIED));
    match (sent, changed) {
        (Some(sent), Some(changed)) => {
            sent.duration_since(changed).unwrap_or_default() < STILL_CHANGING
        }
        _ => false,
    }
}

impl Trouble {
    fn of(err: &FetchError) -> Trouble {
        let (http_code, retry_after_s) = match err {
            FetchError::Status { status, retry_after_s } => (status.as_u16(), *retry_after_s),
            FetchError::Blocked { status } => (status.as_u16(), None),
            _ => (0, None),
        };
        let (code, class) = (err.code(), err.class());
        Trouble { code, message: err.to_string(), class, http_code, retry_after_s }
    }

    /// An answer that said 200 and held nothing we can use.
    fn unusable(code: &'static str, message: String) -> Trouble {
        Trouble { code, message, class: Class::Unusable, http_code: 200, retry_after_s: None }
    }

    /// A document that made us panic.
    pub(super) fn ours() -> Trouble {
        let message = "the document could not be read; this is our fault".to_owned();
        Trouble::unusable("parser_failed", message)
    }

    /// A document that says there is nothing any more (seed 002: an empty
    /// `newLocation`), or one that moves in circles.
    fn gone() -> Trouble {
        let message = "the document says that the feed has gone".to_owned();
        let class = Class::Gone;
        Trouble { code: "gone", message, class, http_code: 410, retry_after_s: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(date: &str, modified: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(http::header::DATE, date.parse().unwrap());
        headers.insert(http::header::LAST_MODIFIED, modified.parse().unwrap());
        headers
    }

    #[test]
    fn a_date_of_change_is_not_trusted_within_its_own_second() {
        let date = "Sat, 07 Sep 2002 00:00:10 GMT";
        let cases = [
            ("the same second", "Sat, 07 Sep 2002 00:00:10 GMT", true),
            ("a second before", "Sat, 07 Sep 2002 00:00:09 GMT", true),
            ("long before", "Sat, 07 Sep 2002 00:00:01 GMT", false),
            ("in the future", "Sat, 07 Sep 2002 00:00:11 GMT", true),
            ("no date at all", "yesterday", false),
        ];
        for (why, modified, want) in cases {
            assert_eq!(is_still_changing(&headers(date, modified)), want, "{why}");
        }
    }
}
