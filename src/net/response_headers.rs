//! What the headers of a response to a fetch say, besides its freshness.

use std::time::SystemTime;

use http::HeaderMap;
use http::header::{ETAG, HeaderName, LAST_MODIFIED, LOCATION};
use reqwest::Response;
use url::Url;

use super::{FetchError, freshness};
use feedgate_core::poll::Validators;

/// Returns both validators as received; a missing one stays missing (rule P5).
pub(super) fn validators(url: &Url, headers: &HeaderMap, received: SystemTime) -> Validators {
    let raw = |name: HeaderName| headers.get(name).map(|value| value.as_bytes().to_vec());
    let believable = !freshness::is_from_the_future(headers, received);
    Validators {
        url: url.as_str().to_owned(),
        etag: raw(ETAG),
        last_modified: raw(LAST_MODIFIED).filter(|_| believable),
    }
}

/// Returns the target of a redirect. A 300 with a `Location` is a redirect; without one it is an
/// ordinary response.
pub(super) fn redirect_target(response: &Response, at: &Url) -> Result<Option<Url>, FetchError> {
    let location = response.headers().get(LOCATION);
    let location = match (response.status().as_u16(), location) {
        (300, None) => return Ok(None),
        (300..=303 | 307 | 308, Some(location)) => location.as_bytes(),
        (301..=303 | 307 | 308, None) => {
            return Err(FetchError::Redirects(format!("{} without a Location", response.status())));
        }
        _ => return Ok(None),
    };
    // Non-ASCII bytes are not allowed in `Location` but occur; they are read as UTF-8.
    let location = String::from_utf8_lossy(location);
    let target = at.join(&location);
    target
        .map(Some)
        .map_err(|err| FetchError::Redirects(format!("the Location is not a valid URL ({err})")))
}

/// Returns whether a bot protection requires a browser (a Cloudflare header).
pub(super) fn is_challenge(headers: &HeaderMap) -> bool {
    headers.get("cf-mitigated").is_some_and(|value| value.as_bytes() == b"challenge")
}
