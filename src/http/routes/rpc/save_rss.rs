//! `rssCloud.saveRss (username, password, rsstext)`, for XML-RPC and SOAP: "send us the
//! text and we'll save it and return the URL" (seed 000, "Saving the feed through the
//! cloud").
//!
//! It is the one call whose text may be long, so the door looks at how a long body begins
//! before it reads on (rule S20).

use crate::authoring::{Refusal, Sent};
use crate::http::Gateway;
use crate::http::kit::exchange::Asked;
use crate::jobs::runner;
use feedgate_core::stored_file::{DEFAULT_NAME, PathSegment, WriteCondition};
use feedgate_protocol::xmlrpc::LONGEST_TEXT_BYTES;

/// Where the name of the procedure stands, in bytes from the beginning.
const NAMED_WITHIN: usize = 4 * 1024;
/// How much longer a feed is on its way: markup in markup is escaped, or in base64.
const ESCAPED: usize = 2;
/// The message around it.
const AROUND_BYTES: usize = 64 * 1024;

/// How long a message that saves a feed may be.
pub(crate) fn longer_bytes(gateway: &Gateway) -> usize {
    gateway.publish.quota().file_bytes * ESCAPED + AROUND_BYTES
}

/// How long a text may be in this call: a feed that is too long is refused by whoever
/// keeps feeds, who says how long it may be.
pub(crate) fn longest_text(gateway: &Gateway, body: &[u8]) -> usize {
    if is_call(body) { longer_bytes(gateway) } else { LONGEST_TEXT_BYTES }
}

/// Whether a message saves a feed, by how it begins.
pub(crate) fn is_call(body: &[u8]) -> bool {
    let name = b"saverss";
    let head = &body[..body.len().min(NAMED_WITHIN)];
    head.windows(name.len()).any(|word| word.eq_ignore_ascii_case(name))
}

/// Saves a feed and returns its public address; the error is a sentence for the author.
pub(crate) async fn save(
    gateway: &Gateway,
    asked: &Asked,
    (login, password): (&str, &str),
    feed: Sent<'_>,
) -> Result<String, String> {
    gateway.strangers.admit(asked, 1)?;
    let author = gateway.publish.sign_in(login.trim(), password).await.map_err(|r| sentence(&r))?;
    let name = PathSegment::file(DEFAULT_NAME).ok_or_else(|| sentence(&Refusal::Unmet))?;
    let any = WriteCondition::None;
    let saved = gateway.publish.save((&author, &name), feed, &any, runner::now()).await;
    saved.map(|saved| saved.url).map_err(|refusal| sentence(&refusal))
}

/// Why it could not be saved.
fn sentence(refusal: &Refusal) -> String {
    if let Refusal::Store(err) = refusal {
        tracing::error!(error = err as &dyn std::error::Error, "a feed could not be saved");
        return "The feed was not saved: feedgate is out of order, please try again later.".into();
    }
    format!("The feed was not saved: {refusal}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_procedure_is_known_before_all_of_it_is_read() {
        let late = format!("{}saveRss", " ".repeat(NAMED_WITHIN));
        let cases = [
            ("<?xml version='1.0'?><methodCall><methodName>rssCloud.saveRss</methodName>", true),
            ("<E:Envelope><E:Body><m:saverss>", true),
            ("<methodCall><methodName>rssCloud.ping</methodName>", false),
            (&late, false),
            ("", false),
        ];
        for (body, want) in cases {
            assert_eq!(is_call(body.as_bytes()), want, "{body}");
        }
    }
}
