//! Fetching `robots.txt`, a part of the visit in which it is needed.

use http::{HeaderValue, StatusCode};
use tokio::time::{Duration, timeout};
use tracing::debug;
use url::Url;

use super::topic::FetchSession;
use super::{FetchError, FetchRequest, FetchResponse, HttpClient};
use feedgate_core::poll::Validators;

/// The most of it that is read (RFC 9309 `#limits`: "at least 500 kibibytes").
const MOST_BYTES: usize = 500 * 1_024;
/// How long it may take: a server that keeps it back is asked for the topic all the same.
const PATIENCE: Duration = Duration::from_secs(10);
/// It is a text, whatever it is called.
const TEXT: HeaderValue = HeaderValue::from_static("text/plain, */*;q=0.1");

/// What became of asking for `robots.txt`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RobotsResponse {
    /// It says this.
    Text(String),
    /// There is none, or we may not see it: it forbids nothing (RFC 9309
    /// `#unavailable-status`).
    None,
    /// The server is in trouble; what it said before still holds.
    Unavailable,
    /// It was not reached.
    Unreached,
}

impl HttpClient {
    /// Asks the server of `url` for its `robots.txt`. What is asked of the server next need
    /// not wait for the usual pause (rule P41: both are one visit).
    pub async fn robots(&self, url: &Url) -> RobotsResponse {
        let Ok(place) = url.join("/robots.txt") else { return RobotsResponse::None };
        let validators = Validators::default();
        let ask = FetchRequest {
            url: place.as_str(),
            validators: &validators,
            subscribers: 0,
            feed_id: None,
        };
        let Ok(mut session) = FetchSession::new(&self.inner, ask) else {
            return RobotsResponse::None;
        };
        session.accept = TEXT;
        let answer = timeout(PATIENCE, session.run()).await;
        session.is_part_of_a_visit();
        match answer {
            Ok(Ok(FetchResponse::Document(document))) => {
                let read = &document.body[..document.body.len().min(MOST_BYTES)];
                RobotsResponse::Text(String::from_utf8_lossy(read).into_owned())
            }
            Ok(Ok(FetchResponse::NotModified { .. })) => RobotsResponse::None,
            Ok(Err(FetchError::Status { status, .. })) => refused(status),
            Ok(Err(err @ FetchError::Unreachable { .. })) => {
                debug!(code = err.code(), "robots.txt was not reached");
                RobotsResponse::Unreached
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
