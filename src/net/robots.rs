//! Fetching of `robots.txt`, directly before the resource for which it is needed.

use http::{HeaderValue, StatusCode};
use tokio::time::{Duration, timeout};
use tracing::debug;
use url::Url;

use super::admitted_groups::ClaimedGroup;
use super::politeness::{HostBusy, Patience};
use super::topic::FetchSession;
use super::{FetchError, FetchRequest, FetchResponse, HttpClient, credentials};
use feedgate_core::topic::has_own_headers;

/// The number of bytes that are read (RFC 9309 `#limits`: "at least 500 kibibytes").
const MOST_BYTES: usize = 500 * 1_024;
/// The length from which the file is ignored: sixteen times what must be read.
const LONGEST_BYTES: u64 = 16 * MOST_BYTES as u64;
/// The timeout of the request. After a timeout the topic is fetched anyway.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The accepted media types. `robots.txt` is text, whatever media type the server declares.
const TEXT: HeaderValue = HeaderValue::from_static("text/plain, */*;q=0.1");

/// The response to a request for `robots.txt`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RobotsResponse {
    /// The text of the file.
    Text(String),
    /// The file does not exist or may not be read, so nothing is disallowed (RFC 9309
    /// `#unavailable-status`).
    None,
    /// The server failed. The previous `robots.txt` stays in force.
    Unavailable,
    /// The server could not be reached.
    Unreached,
    /// The request was not sent, because the server is busy with other requests.
    HostBusy(HostBusy),
}

impl HttpClient {
    /// Fetches the `robots.txt` of the server of `url`. The next request to the server is not
    /// delayed by the usual pause, because both count as one visit (rule P41).
    pub async fn robots(&self, url: &Url, patience: Patience) -> RobotsResponse {
        let Ok(mut place) = url.join("/robots.txt") else { return RobotsResponse::None };
        // What is stored of it is that of everybody.
        if has_own_headers(&place) {
            credentials::strip(&mut place);
        }
        let ask = FetchRequest::unconditional(place.as_str());
        let Ok(mut session) = FetchSession::new(self, ask, patience) else {
            return RobotsResponse::None;
        };
        // Whoever asks is about to fetch from this server, and knows that it is not paused.
        session.groups.claim(ClaimedGroup { url: url.as_str(), give_back: &|| {} });
        session.accept = TEXT;
        session.body_limit_bytes = session.body_limit_bytes.min(LONGEST_BYTES);
        let answer = timeout(TIMEOUT, session.run()).await;
        session.skip_pause();
        match answer {
            Ok(Ok(FetchResponse::Document(document))) => {
                let read = &document.body[..document.body.len().min(MOST_BYTES)];
                RobotsResponse::Text(String::from_utf8_lossy(read).into_owned())
            }
            Ok(Ok(FetchResponse::NotModified { .. })) => RobotsResponse::None,
            Ok(Err(FetchError::Status { status, .. })) => refused(status),
            Ok(Err(err @ FetchError::Unreachable { .. })) => {
                debug!(code = err.code(), "robots.txt could not be fetched");
                RobotsResponse::Unreached
            }
            Ok(Err(FetchError::HostPaused { .. })) => RobotsResponse::Unreached,
            Ok(Err(FetchError::HostBusy(busy))) if !session.has_begun() => {
                RobotsResponse::HostBusy(busy)
            }
            Ok(Err(_)) | Err(_) => RobotsResponse::Unavailable,
        }
    }
}

fn refused(status: StatusCode) -> RobotsResponse {
    match status {
        StatusCode::TOO_MANY_REQUESTS => RobotsResponse::Unavailable,
        status if status.is_server_error() => RobotsResponse::Unavailable,
        _ => RobotsResponse::None,
    }
}
