//! Headers that tell what the first fetch of a topic found, because the response to a subscription has
//! no body: the feeds that a page links to (rule P52), the one of them that is subscribed to instead, or
//! the reason why the fetch failed. A client that accepts JSON gets the same in a body.

use http::header::{self, HeaderName, LINK};
use http::{HeaderMap, HeaderValue, StatusCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;
use warp::reply::Response;

use crate::http::kit::rejection::{Rejection, accepts_json};
use crate::http::kit::reply::set_header;
use crate::http::kit::request::Request;
use crate::subscriptions::{Follow, FollowOutcome, TopicEmptiness, TopicFindings};
use feedgate_feed::documents::{self, DiscoveredFeed};
use feedgate_protocol::form::Form;

/// The header with a note for people.
const NOTE: HeaderName = HeaderName::from_static("x-feedgate-note");

/// Marks a response whose notes a client should not overlook: the topic has no entries.
#[derive(Clone, Copy, Debug)]
struct HasNoEntries;

/// The header with the topic that is subscribed to, if it is not the one that was named.
const TOPIC: HeaderName = HeaderName::from_static("x-feedgate-topic");

/// Returns what people call the format of a feed of this media type.
pub(crate) fn type_name(mime: &str) -> &str {
    match mime {
        "application/atom+xml" => "Atom",
        "application/rss+xml" => "RSS",
        "application/rdf+xml" => "RSS 1.0",
        "application/feed+json" => "JSON Feed",
        mime => mime,
    }
}

/// Returns what a form says about following the page at its topic. `reject` makes the rejection of a
/// value that is neither true nor false.
pub(crate) fn follow(
    form: &Form,
    by_default: bool,
    reject: impl Fn(String) -> Rejection,
) -> Result<Follow, Rejection> {
    let word = form.get("follow").map(str::to_ascii_lowercase);
    let requested = match word.as_deref() {
        None => None,
        Some("true" | "1" | "yes" | "on") => Some(true),
        Some("false" | "0" | "no" | "off") => Some(false),
        Some(word) => return Err(reject(format!("follow must be true or false, not {word}."))),
    };
    Ok(Follow::new(requested, by_default))
}

/// Adds the topic that is subscribed to instead of the page that was named, and a note.
pub(crate) fn announce_followed(response: &mut Response, found: &FollowOutcome) {
    let headers = response.headers_mut();
    match found {
        FollowOutcome::Feed(feed) => {
            let feed = feed.as_str();
            add(headers, TOPIC, feed);
            let note = format!("the page is followed: subscribed to its feed {feed}");
            add(headers, NOTE, &note);
        }
        FollowOutcome::None => {
            let note = "the page advertises no feed, so the page itself is subscribed to";
            add(headers, NOTE, note);
        }
        FollowOutcome::List => {
            add(headers, NOTE, "the reading list is followed: its feeds are subscribed to");
        }
        FollowOutcome::Unsought => {}
    }
}

/// Adds a `Link` for each feed, and a note that lists them.
pub(crate) fn announce(response: &mut Response, offers: &[DiscoveredFeed]) {
    let headers = response.headers_mut();
    for offer in offers {
        add(headers, LINK, &link(offer));
    }
    if let Some(sentence) = documents::describe_feeds(offers) {
        let advice = "this page is not a feed, and is watched for changes";
        add(headers, NOTE, &format!("{advice}; {sentence}"));
    }
}

/// Adds the headers of [`announce`], or a note that says why the topic could not be fetched, or that it
/// has no entries.
pub(crate) fn announce_findings(response: &mut Response, findings: &TopicFindings) {
    announce(response, &findings.feeds);
    if findings.failure.is_some() || findings.emptiness.is_some() {
        response.extensions_mut().insert(HasNoEntries);
    }
    let headers = response.headers_mut();
    match findings.emptiness {
        Some(TopicEmptiness::NoFeed) if findings.feeds.is_empty() => {
            let note = "this document is not a feed and has no entries, and is watched for changes";
            add(headers, NOTE, note);
        }
        Some(TopicEmptiness::EmptyFeed) => add(headers, NOTE, "this feed has no entries yet"),
        Some(TopicEmptiness::NoFeed) | None => {}
    }
    if let Some(failure) = &findings.failure {
        let note = format!("the topic could not be fetched, and will be retried: {failure}");
        add(headers, NOTE, &note);
    }
}

/// Returns a response to a subscription with its notes in a body, if the topic has no entries and the
/// client accepts JSON and not everything. The status code 204 allows no body. Libraries that name JSON
/// before `*/*` in every request, such as axios, are no sign that a program reads a body: those written for
/// Superfeedr expect 204.
pub(crate) fn with_notes_in_body(request: &Request, response: Response) -> Response {
    let is_wanted = response.status() == StatusCode::NO_CONTENT
        && response.extensions().get::<HasNoEntries>().is_some()
        && accepts_json(request)
        && !request.header("accept").contains("*/*");
    let Some(note) = note(&response).filter(|_| is_wanted) else { return response };
    let body = json!({ "note": note, "topic": followed(&response) });
    let (mut parts, _) = response.into_parts();
    parts.status = StatusCode::OK;
    parts.headers.remove(header::CONTENT_LENGTH);
    let mut response = Response::from_parts(parts, body.to_string().into());
    set_header(&mut response, header::CONTENT_TYPE, "application/json; charset=utf-8");
    set_header(&mut response, header::VARY, "Accept");
    response
}

/// Returns the notes that were added to a response, in one sentence.
pub(crate) fn note(response: &Response) -> Option<String> {
    let notes = response.headers().get_all(NOTE).iter().filter_map(|note| note.to_str().ok());
    Some(notes.collect::<Vec<_>>().join("; ")).filter(|notes| !notes.is_empty())
}

/// Returns the topic that is subscribed to instead of the one that was named.
pub(crate) fn followed(response: &Response) -> Option<String> {
    response.headers().get(TOPIC)?.to_str().ok().map(str::to_owned)
}

fn add(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    let is_allowed = |c: char| c == ' ' || c.is_ascii_graphic();
    let value: String = value.chars().map(|c| if is_allowed(c) { c } else { '?' }).collect();
    if let Ok(value) = HeaderValue::from_str(&value) {
        headers.append(name, value);
    }
}

/// Returns the value of a `Link` header (RFC 8288 `#section-3`). Addresses are ASCII already; a
/// non-ASCII title is encoded (RFC 8187).
fn link(offer: &DiscoveredFeed) -> String {
    let mut link = format!("<{}>; rel=\"alternate\"", offer.href);
    let is_quotable =
        |text: &str| text.chars().all(|c| (' '..='~').contains(&c) && c != '"' && c != '\\');
    if !offer.mime.is_empty() && is_quotable(&offer.mime) {
        link.push_str(&format!("; type=\"{}\"", offer.mime));
    }
    match offer.title.as_str() {
        "" => {}
        title if is_quotable(title) => link.push_str(&format!("; title=\"{title}\"")),
        title => {
            let encoded = utf8_percent_encode(title, NON_ALPHANUMERIC);
            link.push_str(&format!("; title*=UTF-8''{encoded}"));
        }
    }
    link
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p52_an_offer_is_a_link_with_type_and_title() {
        let offer = |mime: &str, title: &str| DiscoveredFeed {
            href: "https://a.test/f?a,b".to_owned(),
            mime: mime.to_owned(),
            title: title.to_owned(),
        };
        #[rustfmt::skip]
        let cases = [
            (offer("", ""),                  "<https://a.test/f?a,b>; rel=\"alternate\""),
            (offer("text/xml", "The Tides"), "<https://a.test/f?a,b>; rel=\"alternate\"; type=\"text/xml\"; title=\"The Tides\""),
            (offer("a\"b", "\"é\""),        "<https://a.test/f?a,b>; rel=\"alternate\"; title*=UTF-8''%22%C3%A9%22"),
        ];
        for (offer, want) in cases {
            assert_eq!(link(&offer), want);
        }
    }
}
