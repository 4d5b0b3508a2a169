//! Headers that tell what the first fetch of a topic found, because the response to a subscription has
//! no body: the feeds that a page links to (rule P52), or the reason why the fetch failed.

use http::header::{HeaderName, LINK};
use http::{HeaderMap, HeaderValue};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use warp::reply::Response;

use crate::subscriptions::TopicFindings;
use feedgate_feed::documents::{self, DiscoveredFeed};

/// The header with a note for people.
const NOTE: HeaderName = HeaderName::from_static("x-feedgate-note");

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

/// Adds the headers of [`announce`], or a note that says why the topic could not be fetched.
pub(crate) fn announce_findings(response: &mut Response, findings: &TopicFindings) {
    announce(response, &findings.feeds);
    if let Some(failure) = &findings.failure {
        let note = format!("the topic could not be fetched, and will be retried: {failure}");
        add(response.headers_mut(), NOTE, &note);
    }
}

/// Returns the note that was added to a response.
pub(crate) fn note(response: &Response) -> Option<String> {
    let note = response.headers().get(NOTE)?;
    note.to_str().ok().map(str::to_owned)
}

fn add(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
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
