//! Reads a response: as a feed, as another document, as a part of one, or as a failure.

use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};

use crate::document_budget::{DocumentBudget, DocumentMemory, GatewayBusy};
use crate::net::{FetchError, FetchResponse};
use feedgate_core::store::DueResource;
use feedgate_feed::Context;
use feedgate_feed::documents::{self, DiscoveredFeed, DocumentContent, Fragment};
use feedgate_feed::model::Feed;
use feedgate_feed::parse::{self, ListedSitemap, NotAFeed};
use feedgate_feed::passes;

use super::discovered_feeds::discovered_feeds;
use super::known_as::{KnownAs, is_page_for_feed, was_page};
use super::observation::{
    FRAGMENT_NOT_FOUND, Failure, Found, FragmentMissing, NOT_A_FEED, NOT_MAPPED, ReceivedBody,
};
use super::rendered_length;

/// How long a poll waits for memory for a document that another poll fetched.
const ADMISSION_WAIT: Duration = Duration::from_secs(2);
/// The status message of a page at an address where a feed was before.
const PAGE_FOR_FEED: &str = "no longer a feed: looks like an HTML page";

/// The result of parsing a document.
#[derive(Debug)]
pub enum ParsedDocument {
    /// A normalized feed.
    Feed(Box<Feed>),
    /// A document that is not a feed, at an address where one was known.
    NotAFeed(NotAFeed),
    /// A document that is not a feed, or the requested part of it. The second value is the reason
    /// why it is not a feed, unless only a part was requested.
    Other(DocumentContent, Option<NotAFeed>),
    /// The requested fragment is not there, with the reason as a sentence.
    FragmentNotFound(String),
    /// The document cannot be read as the mapping of the topic says, with the reason as a sentence.
    NotMapped(String),
}

/// A response, and the memory to read it in.
#[derive(Debug)]
pub(super) struct PollResponse<'d> {
    pub(super) response: Result<FetchResponse, FetchError>,
    /// The content of a document that is a gzip file, and the memory to read it in.
    pub(super) unpacked: Option<(Bytes, DocumentMemory)>,
    /// The budget for a document whose memory is not reserved yet.
    pub(super) documents: &'d DocumentBudget,
}

/// Reads the response to a poll.
pub(super) async fn read(
    response: PollResponse<'_>,
    due: &DueResource,
    now: DateTime<Utc>,
) -> Result<Found, GatewayBusy> {
    let PollResponse { response, unpacked, documents } = response;
    // A document that has not changed still lacks the fragment that it lacked.
    let status = &due.resource.status;
    let missing = (status.error == FRAGMENT_NOT_FOUND).then(|| status.http_message.clone());
    let document = match (response, missing.clone()) {
        (Ok(FetchResponse::NotModified { hint_s }), Some(reason)) => {
            let missing = FragmentMissing { reason, received: None, hint_s };
            return Ok(Found::FragmentMissing(missing));
        }
        (Ok(FetchResponse::NotModified { hint_s }), None) => {
            return Ok(Found::NotModified { hint_s });
        }
        (Ok(FetchResponse::Document(document)), _) => *document,
        (Err(err), _) => return Ok(Found::Failure(Failure::from(&err))),
    };
    let memory = match &document.memory {
        Some(memory) => memory.clone(),
        None => documents.admit(&document.body, ADMISSION_WAIT).await?,
    };
    let Some(received) = ReceivedBody::new(&document, memory).await else {
        return Ok(Found::Failure(Failure::parser_panicked()));
    };
    if received.hash == due.resource.polling.body_hash && !due.resource.is_read_anew() {
        return Ok(match missing {
            Some(reason) => Found::FragmentMissing(FragmentMissing::new(reason, received)),
            None => received.same_as_before(due),
        });
    }
    let known_by = due.resource.polling.known_by;
    let context = Context { known_by, ..document.context(now) };
    let (body, topic) = (document.body.clone(), due.resource.topic.clone());
    let known = KnownAs::from_resource(&due.resource);
    let parse_memory = match &unpacked {
        Some((_, memory)) => memory.clone(),
        None => received.memory.clone(),
    };
    let parse = move || {
        let read = |text: &[u8]| {
            Parsed::new(read_document(text, &context, topic.fragment(), known), text, &context)
        };
        match unpacked.map(|(text, _)| read(&text)) {
            Some(Ok(parsed)) if !parsed.is_other() => Ok(parsed),
            Some(Err(why)) => Err(why),
            // What is no feed is watched as it is published.
            Some(Ok(_)) | None => read(&body),
        }
    };
    Ok(match parse_memory.run_blocking(parse).await {
        Some(Ok(Parsed { document, offers, sitemaps })) => {
            found_in(document, ReceivedBody { offers, sitemaps, ..received }, due)
        }
        Some(Err(why)) => Found::Failure(Failure::too_long_rendered(why)),
        None => Found::Failure(Failure::parser_panicked()),
    })
}

/// A parsed document, with what else it says.
struct Parsed {
    document: ParsedDocument,
    /// The feeds that a page links to whose own entries are read.
    offers: Vec<DiscoveredFeed>,
    /// The sitemaps that an index lists.
    sitemaps: Vec<ListedSitemap>,
}

impl Parsed {
    /// Completes a parsed document. The error says why a feed cannot be used.
    fn new(document: ParsedDocument, body: &[u8], context: &Context) -> Result<Parsed, String> {
        let (mut offers, mut sitemaps) = (Vec::new(), Vec::new());
        match &document {
            ParsedDocument::Feed(feed) => {
                if let Some(why) = rendered_length::reason_too_long(feed, body.len()) {
                    return Err(why);
                }
                if feed.format.is_page() {
                    offers = discovered_feeds(context, documents::linked_feeds(body, context));
                }
            }
            ParsedDocument::Other(_, Some(why)) if *why == NotAFeed::SITEMAP_INDEX => {
                sitemaps = parse::listed_sitemaps(body, context);
            }
            _ => {}
        }
        Ok(Parsed { document, offers, sitemaps })
    }

    /// Returns whether the document is neither a feed nor an index of sitemaps.
    fn is_other(&self) -> bool {
        matches!(self.document, ParsedDocument::Other(..)) && self.sitemaps.is_empty()
    }
}

fn found_in(parsed: ParsedDocument, mut received: ReceivedBody, due: &DueResource) -> Found {
    match parsed {
        ParsedDocument::Feed(feed) if is_page_for_feed(&feed, &due.resource) => {
            Found::Failure(Failure::unusable(NOT_A_FEED, PAGE_FOR_FEED.to_owned()))
        }
        ParsedDocument::Feed(feed) => Found::Feed { feed, received },
        // A login page or a parked domain: usually over in hours, and never the feed.
        ParsedDocument::NotAFeed(reason) => {
            Found::Failure(Failure::unusable(NOT_A_FEED, reason.to_string()))
        }
        ParsedDocument::Other(content, Some(reason))
            if was_page(&due.resource) && !content.is_page() =>
        {
            Found::Failure(Failure::unusable(NOT_A_FEED, reason.to_string()))
        }
        ParsedDocument::Other(content, _) => {
            received.gate = content.digest;
            received.offers = content.feeds;
            received.body = content.part.unwrap_or(received.body);
            match received.gate == due.resource.polling.gate {
                true => Found::Same(received),
                false => Found::Other(received),
            }
        }
        // An error page of an API: the entries that are known stay.
        ParsedDocument::NotMapped(reason) => Found::Failure(Failure::unusable(NOT_MAPPED, reason)),
        ParsedDocument::FragmentNotFound(reason) => {
            Found::FragmentMissing(FragmentMissing::new(reason, received))
        }
    }
}

impl ReceivedBody {
    /// Returns the result for the same bytes as before, whose earlier interpretation still applies.
    fn same_as_before(mut self, due: &DueResource) -> Found {
        self.gate.clone_from(&due.resource.polling.gate);
        self.offers.clone_from(&due.resource.polling.offers);
        Found::Same(self)
    }
}

/// Parses a document from an upstream as a feed only. `None` if the parser panicked.
pub(super) async fn parse_in_background(
    body: Bytes,
    context: Context,
    memory: &DocumentMemory,
) -> Option<Result<Box<Feed>, NotAFeed>> {
    let parse = move || {
        let feed = passes::run(parse::parse(&body, &context)?, &context);
        match rendered_length::reason_too_long(&feed, body.len()) {
            None => Ok(Box::new(feed)),
            Some(_) => Err(NotAFeed::Other("a feed whose entries are too long")),
        }
    };
    memory.run_blocking(parse).await
}

/// Parses a document. A mapping reads JSON as a feed. Any other fragment selects a part of any document,
/// except that a fragment that may only be a scroll position does not select a part of a feed.
pub fn read_document(
    body: &[u8],
    context: &Context,
    fragment: Option<&str>,
    known: KnownAs,
) -> ParsedDocument {
    let part = match fragment.map(Fragment::parse).transpose() {
        Ok(part) => part,
        Err(err) => {
            let reason = format!("the fragment of the topic cannot be used: {err}");
            return ParsedDocument::FragmentNotFound(reason);
        }
    };
    if let Some(mapping) = part.as_ref().filter(|part| part.is_mapping()) {
        return match documents::read_mapped(body, context, mapping) {
            Ok(feed) => ParsedDocument::Feed(Box::new(passes::run(feed, context))),
            Err(err) => ParsedDocument::NotMapped(err.to_string()),
        };
    }
    let mut not_a_feed = None;
    if part.as_ref().is_none_or(Fragment::is_anchor) {
        match parse::parse(body, context) {
            // A page is a document of its own, whatever is marked up in it.
            Ok(feed) if feed.format.is_page() && (part.is_some() || known == KnownAs::Document) => {
            }
            Ok(feed) => return ParsedDocument::Feed(Box::new(passes::run(feed, context))),
            Err(err) if known.refuses(&err) => return ParsedDocument::NotAFeed(err),
            Err(err) => not_a_feed = Some(err),
        }
    }
    match documents::read(body, context, part.as_ref()) {
        Ok(mut content) => {
            content.feeds = discovered_feeds(context, content.feeds);
            ParsedDocument::Other(content, not_a_feed)
        }
        Err(err) => ParsedDocument::FragmentNotFound(err.to_string()),
    }
}
