//! Fetching of the icon of a site.

use bytes::Bytes;
use http::HeaderValue;
use tokio::time::{Duration, timeout};
use url::Url;

use super::politeness::Patience;
use super::topic::FetchSession;
use super::{FetchError, FetchRequest, FetchResponse, HttpClient};

/// The most bytes that are read. Most icons have a tenth of it.
const MOST_BYTES: u64 = 64 << 10;
/// The timeout of the request, with the wait for the turn of its host: shorter than callers wait for each other
/// in a cache (`byte_cache`).
const TIMEOUT: Duration = Duration::from_secs(4);
/// The accepted media types.
const PICTURES: HeaderValue =
    HeaderValue::from_static("image/png, image/x-icon, image/*;q=0.8, */*;q=0.1");

/// The response to a request for an icon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IconResponse {
    /// The body of the response, whatever it is.
    Body(Bytes),
    /// There is no icon, or its server did not send it.
    None,
    /// No request was sent, because the server or this gateway is busy, or the server requested a pause.
    Busy,
}

impl HttpClient {
    /// Fetches the icon at `url`, which has no credentials. If the fetch is confined, redirects to another origin
    /// are not followed.
    pub async fn site_icon(&self, url: &Url, is_confined: bool) -> IconResponse {
        let ask = FetchRequest::unconditional(url.as_str());
        let Ok(mut session) = FetchSession::new(self, ask, Patience::Interactive) else {
            return IconResponse::None;
        };
        session.accept = PICTURES;
        session.body_limit_bytes = session.body_limit_bytes.min(MOST_BYTES);
        session.is_confined = is_confined;
        let answer = timeout(TIMEOUT, session.run()).await;
        match answer {
            Ok(Ok(FetchResponse::Document(document))) => {
                // The body may share a larger buffer.
                IconResponse::Body(Bytes::copy_from_slice(&document.body))
            }
            Err(_)
            | Ok(Err(
                FetchError::HostBusy(_)
                | FetchError::HostPaused { .. }
                | FetchError::GatewayBusy(_),
            )) if !session.has_begun() => IconResponse::Busy,
            Ok(_) | Err(_) => IconResponse::None,
        }
    }
}
