//! An answer → what was found: a feed, something else, a part of it, or trouble.

use std::error::Error;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use tracing::error;

use crate::net::{Answer, FetchError};
use feedgate_core::ports::DueResource;
use feedgate_core::resource::ResourceKind;
use feedgate_feed::Context;
use feedgate_feed::documents::{self, DocumentContent, Fragment};
use feedgate_feed::model::Feed;
use feedgate_feed::model::FeedFormat;
use feedgate_feed::parse::{self, NotAFeed};
use feedgate_feed::passes;

use super::discovered_feeds::feeds_offered;
use super::found::{Found, Fresh, NO_PART, Partless, Trouble};

/// What is said of a page where a feed was before.
const PAGE_FOR_FEED: &str = "not the feed any more: looks like an HTML page";

/// What a document was read as.
#[derive(Debug)]
pub enum Reading {
    /// A feed, normalized.
    Feed(Box<Feed>),
    /// No feed, in a place where one was known.
    NotAFeed(NotAFeed),
    /// Something that is no feed, or the part of it that was asked for. `None` stands for
    /// why, where only a part was looked for.
    Other(DocumentContent, Option<NotAFeed>),
    /// The part that was asked for is not there, in a sentence.
    NoPart(String),
}

/// Makes of an answer what was found.
pub(super) async fn read(
    answer: Result<Answer, FetchError>,
    due: &DueResource,
    now: DateTime<Utc>,
) -> Found {
    // What has not changed still lacks what it lacked.
    let lacking =
        (due.resource.status.error == NO_PART).then(|| due.resource.status.http_message.clone());
    let document = match (answer, lacking.clone()) {
        (Ok(Answer::NotModified { hint_s }), Some(why)) => {
            return Found::Partless(Partless { why, fresh: None, hint_s });
        }
        (Ok(Answer::NotModified { hint_s }), None) => return Found::NotModified { hint_s },
        (Ok(Answer::Document(document)), _) => *document,
        (Err(err), _) => return Found::Trouble(Trouble::of(&err)),
    };
    let mut fresh = Fresh::of(&document);
    if fresh.hash == due.resource.polling.body_hash {
        return match lacking {
            Some(why) => Found::Partless(Partless::of(why, fresh)),
            None => fresh.same_as(due),
        };
    }
    let known_by = due.resource.polling.known_by;
    let context = Context { known_by, ..document.context(now) };
    match read_aside(document.body.clone(), context, due).await {
        // A page with entries marked up in it, but not those of the feed (rule P52).
        Some(Reading::Feed(feed)) if feed.format == FeedFormat::HFeed && is_known_as_feed(due) => {
            Found::Trouble(Trouble::unusable("not_a_feed", PAGE_FOR_FEED.to_owned()))
        }
        Some(Reading::Feed(feed)) => Found::Feed { feed, fresh },
        // A login page, a parked domain: usually over in hours, and never the feed.
        Some(Reading::NotAFeed(why)) => {
            Found::Trouble(Trouble::unusable("not_a_feed", why.to_string()))
        }
        Some(Reading::Other(content, _)) => {
            fresh.gate = content.digest;
            fresh.offers = content.feeds;
            fresh.body = content.part.unwrap_or(fresh.body);
            match fresh.gate == due.resource.polling.gate {
                true => Found::Same(fresh),
                false => Found::Other(fresh),
            }
        }
        Some(Reading::NoPart(why)) => Found::Partless(Partless::of(why, fresh)),
        None => Found::Trouble(Trouble::ours()),
    }
}

impl Fresh {
    /// The same bytes as before: what was read of them still holds.
    fn same_as(mut self, due: &DueResource) -> Found {
        self.gate.clone_from(&due.resource.polling.gate);
        self.offers.clone_from(&due.resource.polling.offers);
        Found::Same(self)
    }
}

impl Partless {
    fn of(why: String, fresh: Fresh) -> Partless {
        let hint_s = Some(fresh.hint_s);
        Partless { why, fresh: Some(fresh), hint_s }
    }
}

/// Whether a resource was known as a feed before, and not for what its pages hold.
fn is_known_as_feed(due: &DueResource) -> bool {
    due.resource.kind == ResourceKind::Feed
        && due.resource.polling.format != FeedFormat::HFeed.as_str()
}

async fn read_aside(body: Bytes, context: Context, due: &DueResource) -> Option<Reading> {
    let topic = due.resource.topic.clone();
    let was_feed = due.resource.kind == ResourceKind::Feed;
    aside(move || read_document(&body, &context, topic.fragment(), was_feed)).await
}

/// Reads a feed as [`read`] does.
pub(super) async fn parse_aside(
    body: Bytes,
    context: Context,
) -> Option<Result<Box<Feed>, NotAFeed>> {
    let parse = move || {
        let feed = parse::parse(&body, &context)?;
        Ok(Box::new(passes::run(feed, &context)))
    };
    aside(parse).await
}

/// Works where it does not hold up others, and outlives a panic (rule S47); `None` says that
/// there was one.
pub(crate) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.inspect_err(|err| error!(error = err as &dyn Error, "the work on a document panicked"))
        .ok()
}

/// Reads a document. A fragment makes a part of whatever is there, but one that may be
/// nothing but a place to scroll to makes none of a feed.
pub fn read_document(
    body: &[u8],
    context: &Context,
    fragment: Option<&str>,
    was_feed: bool,
) -> Reading {
    let part = match fragment.map(Fragment::parse).transpose() {
        Ok(part) => part,
        Err(why) => return Reading::NoPart(format!("the part behind # cannot be read: {why}")),
    };
    let mut why_not = None;
    if part.as_ref().is_none_or(Fragment::is_anchor) {
        match parse::parse(body, context) {
            Ok(feed) if part.is_none() || feed.format != FeedFormat::HFeed => {
                return Reading::Feed(Box::new(passes::run(feed, context)));
            }
            Err(why) if was_feed => return Reading::NotAFeed(why),
            Err(why) => why_not = Some(why),
            Ok(_) => {}
        }
    }
    match documents::read(body, context, part.as_ref()) {
        Ok(mut content) => {
            content.feeds = feeds_offered(context, content.feeds);
            Reading::Other(content, why_not)
        }
        Err(why) => Reading::NoPart(why.to_string()),
    }
}
