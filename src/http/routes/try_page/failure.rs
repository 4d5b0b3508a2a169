//! What `/try` says of an address of which it cannot show anything: what was wrong, and what would be
//! right, in words for people who have never seen an error code.

use http::StatusCode;
use maud::{Markup, html};

use super::form::address_of;
use crate::http::kit::html::parts::grouped;
use crate::http::kit::rejection::Rejection;
use crate::jobs::runner;
use crate::net::FetchError;
use crate::subscriptions::{NoPreview, SubscriptionRefusal};
use feedgate_core::schedule::FailureClass;
use feedgate_core::topic::Topic;

/// Why nothing is shown.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TryFailure {
    /// The status of the response. That of an address at which nothing could be read is 200: the page
    /// says what there is.
    pub(super) status: StatusCode,
    /// After how many seconds another attempt is possible, if that is known.
    pub(super) retry_after_s: Option<u64>,
    /// What was wrong, as a sentence.
    wrong: String,
    /// What would be right, as sentences; may be empty.
    right: String,
    /// Another address to look at.
    instead: Option<String>,
}

/// The maximum length of what was wrong, in characters: servers choose where they redirect to.
const LONGEST_CHARS: usize = 500;
/// What somebody does about a site without HTTPS.
const PLAIN_HTTP: &str = "If the site has no HTTPS, write http:// before its name.";

impl TryFailure {
    /// Returns the failure of an address that cannot be fetched at all.
    pub(super) fn bad_address(wrong: String, right: &str) -> TryFailure {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        TryFailure {
            status,
            wrong,
            right: right.to_owned(),
            ..TryFailure::found(String::new(), "")
        }
    }

    /// Returns the failure of a request that this gateway does not carry out now.
    pub(super) fn rejected(rejection: &Rejection) -> TryFailure {
        let (status, wrong) = (rejection.status(), rejection.reason().to_owned());
        let retry_after_s = rejection.retry_after_s();
        TryFailure { status, retry_after_s, wrong, ..TryFailure::found(String::new(), "") }
    }

    /// Returns the failure of the preview of a topic.
    pub(crate) fn of_preview(why: &NoPreview, topic: &Topic) -> TryFailure {
        let host = topic.fetch_url().host_str().unwrap_or_default().to_owned();
        match why {
            NoPreview::RateLimited { retry_in } => TryFailure::later(
                StatusCode::TOO_MANY_REQUESTS,
                "Too many addresses were tried, from your network or at this server.",
                retry_in.as_secs(),
            ),
            NoPreview::Refused(SubscriptionRefusal::Forbidden(_, why)) => {
                TryFailure { status: StatusCode::UNPROCESSABLE_ENTITY, ..of_fetch(why, topic) }
            }
            NoPreview::Refused(SubscriptionRefusal::BadPart(why)) => TryFailure::bad_address(
                format!("The part of the address behind # cannot be used: {why}."),
                "Leave it out to see the whole document.",
            ),
            NoPreview::Refused(SubscriptionRefusal::Store(err)) | NoPreview::Store(err) => {
                TryFailure::rejected(&Rejection::unavailable(err))
            }
            NoPreview::Refused(why) => TryFailure::bad_address(format!("{why}."), ""),
            NoPreview::Failed(why) => of_fetch(why, topic),
            NoPreview::TooSlow => too_slow(&host, why.to_string()),
            NoPreview::Unreadable => TryFailure::found(
                format!("{host} sent no document that can be read."),
                "A feed is sent with the status 200 and in the body of the response.",
            ),
        }
    }

    /// Returns the failure as a part of the page.
    pub(crate) fn section(&self) -> Markup {
        html! {
            p role="alert" { (self.wrong) }
            @if !self.right.is_empty() { p { (self.right) } }
            @if let Some(url) = &self.instead {
                p { a href=(address_of(url, None)) rel="nofollow" { "Look at " (url) " instead" } }
            }
        }
    }

    fn found(mut wrong: String, right: &str) -> TryFailure {
        if let Some((end, _)) = wrong.char_indices().nth(LONGEST_CHARS) {
            wrong.truncate(end);
            wrong.push('…');
        }
        let (status, retry_after_s) = (StatusCode::OK, None);
        TryFailure { status, retry_after_s, wrong, right: right.to_owned(), instead: None }
    }

    fn later(status: StatusCode, wrong: &str, wait_s: u64) -> TryFailure {
        let wait_s = wait_s.max(1);
        let right = format!("Please try again in {wait_s} s.");
        let retry_after_s = Some(wait_s);
        TryFailure { status, retry_after_s, ..TryFailure::found(wrong.to_owned(), &right) }
    }
}

fn too_slow(host: &str, why: String) -> TryFailure {
    TryFailure::found(
        format!("{host} is too slow: {why}."),
        "Try again later. Readers give up on a server that takes so long: a feed should arrive within a few \
         seconds.",
    )
}

fn of_fetch(why: &FetchError, topic: &Topic) -> TryFailure {
    let found = TryFailure::found;
    let url = topic.fetch_url();
    let own_host = url.host_str().unwrap_or_default();
    match why {
        FetchError::Forbidden { host } => found(
            format!("{host} is not a public address, and this page shows public ones only."),
            "Use the address under which everybody reaches the site. The operator of this gateway can allow \
             private addresses for accounts.",
        ),
        FetchError::ForbiddenPort { port } => found(
            format!("Port {port} is that of another service than the web."),
            "Leave the port out, or use that of the web server.",
        ),
        FetchError::BadUrl(why) => found(format!("The address cannot be fetched: {why}."), ""),
        FetchError::Unreachable { host, detail, class } => of_connection((host, detail), *class),
        FetchError::TimedOut(_) => too_slow(own_host, why.to_string()),
        FetchError::BodyTooLarge { limit_bytes } => found(
            format!("The document is too large: longer than {} bytes.", grouped(*limit_bytes)),
            "A feed needs its newest entries only, ten to fifty of them. Older ones belong into an archive \
             (RFC 5005), and long texts behind links.",
        ),
        FetchError::Status { status, .. } => of_status(*status, topic),
        FetchError::Blocked { status } => found(
            format!("{own_host} lets in browsers only: its bot protection answered {status}."),
            "If this is your site, exempt the address of the feed from the protection: feed readers are \
             programs.",
        ),
        FetchError::Redirects(why) => found(
            format!("The address leads nowhere: {why}."),
            "Each redirect has to lead to another web address, after five at most to the document.",
        ),
        FetchError::Encoding(why) => found(
            format!("The document cannot be decompressed: it is not valid {why}."),
            "The header Content-Encoding must name how the body is compressed, or be left out.",
        ),
        FetchError::HostBusy(busy) => TryFailure::later(
            StatusCode::OK,
            &format!("{} is busy with other requests of this gateway.", busy.host),
            busy.retry_in.as_secs(),
        ),
        FetchError::HostPaused { host, until } => TryFailure::later(
            StatusCode::OK,
            &format!("{host} requested a pause, so nothing is sent to it now."),
            (*until - runner::now()).num_seconds().unsigned_abs(),
        ),
        FetchError::GatewayBusy(busy) => TryFailure::later(
            StatusCode::SERVICE_UNAVAILABLE,
            "This gateway is busy.",
            busy.retry_in.as_secs(),
        ),
        FetchError::HeadersMissing => found(format!("{why}."), ""),
    }
}

fn of_connection((host, detail): (&str, &str), class: FailureClass) -> TryFailure {
    match class {
        FailureClass::NoName => TryFailure::found(
            format!("There is no server with the name {host}."),
            "Check the spelling: what a browser shows in its address bar can be pasted here.",
        ),
        FailureClass::Lookup => TryFailure::found(
            format!("The name {host} could not be looked up."),
            "Its name servers do not answer. Try again in a few minutes.",
        ),
        FailureClass::Tls => TryFailure::found(
            format!("There is no secure connection to {host}: {detail}."),
            "The certificate has to be valid, for this name, and from an issuer that browsers know. If the \
             site has no HTTPS, write http:// before its name.",
        ),
        _ => TryFailure::found(
            format!("{host} could not be reached: {detail}."),
            &format!("Check whether the site opens in a browser. {PLAIN_HTTP}"),
        ),
    }
}

fn of_status(status: StatusCode, topic: &Topic) -> TryFailure {
    let url = topic.fetch_url();
    let host = url.host_str().unwrap_or_default();
    let found = |wrong: &str, right: &str| TryFailure::found(format!("{wrong} ({status})."), right);
    let start = url.join("/").ok().filter(|start| *start != url).map(String::from);
    match status.as_u16() {
        401 | 403 => found(
            &format!("{host} does not let everybody read this address"),
            "If the feed needs a login or a token, add it with an account, which can give headers for a \
             feed. If it is for everybody, the server has to let feed readers in.",
        ),
        404 => TryFailure {
            instead: start,
            ..found(
                &format!("{host} has nothing at this address"),
                "Check the path. The start page usually links to the feed.",
            )
        },
        410 => TryFailure {
            instead: start,
            ..found(&format!("{host} says that this was removed for good"), "")
        },
        429 => found(&format!("{host} gets too many requests"), "Try again later."),
        500..=599 => found(
            &format!("{host} failed to send the document"),
            "Try again later. If this is your site, its error log has the reason.",
        ),
        _ => {
            found(&format!("{host} did not send a document"), "A feed is sent with the status 200.")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_failure_says_what_was_wrong_and_what_would_be_right() {
        let topic = Topic::parse("https://a.test/feed").unwrap();
        let unreachable = |class, detail: &str| {
            let (host, detail) = ("a.test".to_owned(), detail.to_owned());
            NoPreview::Failed(FetchError::Unreachable { host, detail, class })
        };
        let status = |code| {
            let status = StatusCode::from_u16(code).unwrap();
            NoPreview::Failed(FetchError::Status { status, retry_after_s: None })
        };
        #[rustfmt::skip]
        let cases = [
            (unreachable(FailureClass::NoName, "dns"),          200, "There is no server with the name a.test.", "Check the spelling"),
            (unreachable(FailureClass::Network, "connect: no"), 200, "a.test could not be reached: connect: no.", "write http://"),
            (unreachable(FailureClass::Tls, "tls: expired"),    200, "tls: expired", "The certificate has to be valid"),
            (status(404),                                       200, "a.test has nothing at this address (404 Not Found).", "try?url=https%3A%2F%2Fa.test%2F\""),
            (status(403),                                       200, "(403 Forbidden)", "with an account"),
            (status(500),                                       200, "(500 Internal Server Error)", "error log"),
            (NoPreview::TooSlow,                                200, "a.test is too slow", "within a few seconds"),
            (NoPreview::Failed(FetchError::BodyTooLarge { limit_bytes: 10 << 20 }), 200, "longer than 10\u{a0}485\u{a0}760 bytes", "newest entries only"),
            (NoPreview::RateLimited { retry_in: Duration::from_secs(7) }, 429, "Too many addresses", "try again in 7 s"),
            (NoPreview::Failed(FetchError::Forbidden { host: "10.0.0.1".to_owned() }), 200, "not a public address", "everybody reaches"),
        ];
        for (why, status, wrong, right) in cases {
            let failure = TryFailure::of_preview(&why, &topic);
            let section = failure.section().into_string();
            assert_eq!(failure.status.as_u16(), status, "{section}");
            assert!(section.contains(wrong) && section.contains(right), "{section}");
        }
    }
}
