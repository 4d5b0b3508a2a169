//! `rssCloud.saveRss (username, password, rsstext)`, for XML-RPC and SOAP: "send us the text and
//! we'll save it and return the URL" (seed 000, "Saving the feed through the cloud").
//!
//! This is the one call whose text may be long, so the beginning of a long body is checked for the
//! procedure before the rest is read (rule S20).

use crate::authoring::{AuthoringRefusal, OwnFile, SubmittedFeed};
use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use crate::jobs::runner;
use feedgate_core::stored_file::{DEFAULT_NAME, PathSegment, WriteCondition};
use feedgate_protocol::xmlrpc::LONGEST_TEXT_BYTES;

/// How many bytes from the beginning of a call the name of its procedure may stand.
const NAME_WITHIN_BYTES: usize = 4 * 1024;
/// How much longer a feed is inside a call: its markup is escaped, or it is in base64.
const ESCAPING_FACTOR: usize = 2;
/// The most bytes of the call around the feed.
const AROUND_FEED_BYTES: usize = 64 * 1024;

/// Returns the longest call that saves a feed.
pub(super) fn call_limit_bytes(gateway: &Gateway) -> usize {
    gateway.publish.quota().file_bytes * ESCAPING_FACTOR + AROUND_FEED_BYTES
}

/// Returns the longest text in this call. A feed that is too long is rejected when it is saved,
/// with a sentence that names the limit.
pub(super) fn longest_text_bytes(gateway: &Gateway, body: &[u8]) -> usize {
    if is_call(body) { call_limit_bytes(gateway) } else { LONGEST_TEXT_BYTES }
}

/// Returns whether a message is a call of this procedure, by how it begins. A `system.multicall` that
/// contains one is not: its calls are as short as all others.
pub(super) fn is_call(body: &[u8]) -> bool {
    let head = &body[..body.len().min(NAME_WITHIN_BYTES)];
    let named = match find(head, b"methodname") {
        Some(at) => head[at..].split(|byte| matches!(byte, b'<' | b'>')).nth(1),
        None => Some(head), // an envelope of SOAP
    };
    named.is_some_and(|named| find(named, b"saverss").is_some())
}

/// Returns where a word in lower case is in a text, ignoring case.
fn find(text: &[u8], word: &[u8]) -> Option<usize> {
    text.windows(word.len()).position(|part| part.eq_ignore_ascii_case(word))
}

/// The login and the password, or a token, of an author.
#[derive(Clone, Copy)]
pub(super) struct AuthorCredentials<'a> {
    pub(super) login: &'a str,
    pub(super) password: &'a str,
}

/// Saves a feed and returns its public URL.
pub(super) async fn save(
    gateway: &Gateway,
    request: &Request,
    author: AuthorCredentials<'_>,
    feed: SubmittedFeed<'_>,
) -> Result<String, Rejection> {
    gateway.anonymous_rate_limit.admit(request, 1)?;
    let author = gateway
        .publish
        .sign_in(author.login.trim(), author.password, request.counted_client())
        .await;
    let author = author.map_err(|refusal| reject_refusal(&refusal))?;
    let name =
        PathSegment::file(DEFAULT_NAME).ok_or_else(|| reject_refusal(&AuthoringRefusal::Unmet))?;
    let any = WriteCondition::None;
    let saved = gateway
        .publish
        .save(OwnFile { author: &author, name: &name }, feed, &any, runner::now())
        .await;
    saved.map(|saved| saved.url).map_err(|refusal| reject_refusal(&refusal))
}

fn reject_refusal(refusal: &AuthoringRefusal) -> Rejection {
    match refusal {
        AuthoringRefusal::Store(err) => {
            Rejection::unavailable(err).prefixed("The feed was not saved: ")
        }
        refusal => Rejection::bad_request(format!("The feed was not saved: {refusal}.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_procedure_is_known_before_the_whole_call_is_read() {
        let late = format!("{}saveRss", " ".repeat(NAME_WITHIN_BYTES));
        let cases = [
            ("<?xml version='1.0'?><methodCall><methodName>rssCloud.saveRss</methodName>", true),
            ("<E:Envelope><E:Body><m:saverss>", true),
            ("<methodCall><methodName>rssCloud.ping</methodName>", false),
            (
                "<methodCall><methodName>system.multicall</methodName><params><param><value><array><data>\
              <value><struct><member><name>methodName</name><value>rssCloud.saveRss</value>",
                false,
            ),
            (&late, false),
            ("", false),
        ];
        for (body, want) in cases {
            assert_eq!(is_call(body.as_bytes()), want, "{body}");
        }
    }
}
