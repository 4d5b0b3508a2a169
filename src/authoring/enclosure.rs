//! What RSS demands to be said of a media object: how long it is, and what.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, Method};
use url::Url;

use crate::net::{CallbackRequest, HttpClient};
use feedgate_protocol::rss::Enclosure;

/// Redirects followed: media are often behind several that count listeners.
const MOST_REDIRECTS: usize = 5;
/// What is said where nobody knows.
const UNKNOWN: &str = "application/octet-stream";

/// Media types by the end of an address, for servers that do not say.
const BY_END: [(&str, &str); 12] = [
    (".mp3", "audio/mpeg"),
    (".m4a", "audio/mp4"),
    (".ogg", "audio/ogg"),
    (".opus", "audio/ogg"),
    (".mp4", "video/mp4"),
    (".webm", "video/webm"),
    (".jpg", "image/jpeg"),
    (".jpeg", "image/jpeg"),
    (".png", "image/png"),
    (".gif", "image/gif"),
    (".webp", "image/webp"),
    (".pdf", "application/pdf"),
];

/// Reads type and length of an enclosure from its server, through the guarded client. What the
/// server does not state is guessed, and a server that cannot be reached is no error, because the
/// post can be published without it.
pub async fn inspect_enclosure(fetch: &HttpClient, url: &Url) -> Enclosure {
    let mut at = url.clone();
    for _ in 0..=MOST_REDIRECTS {
        let call = CallbackRequest {
            method: Method::HEAD,
            url: at.clone(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
        };
        let Ok(reply) = fetch.call(call).await else { break };
        let text = |name| reply.headers.get(name).and_then(|value| value.to_str().ok());
        if reply.status.is_redirection() {
            let Some(next) = text(LOCATION).and_then(|location| at.join(location).ok()) else {
                break;
            };
            at = next;
        } else if reply.status.is_success() {
            let length = text(CONTENT_LENGTH).and_then(|length| length.trim().parse().ok());
            let mime = text(CONTENT_TYPE).and_then(|mime| mime.split(';').next());
            let mime = mime.map(|mime| mime.trim().to_ascii_lowercase());
            let mime = mime.filter(|mime| mime.contains('/') && mime != UNKNOWN);
            return Enclosure {
                url: url.to_string(),
                length: length.unwrap_or(0),
                mime: mime.unwrap_or_else(|| guess(url)),
            };
        } else {
            break;
        }
    }
    Enclosure { url: url.to_string(), length: 0, mime: guess(url) }
}

fn guess(url: &Url) -> String {
    let path = url.path().to_ascii_lowercase();
    let known = BY_END.iter().find(|(end, _)| path.ends_with(end));
    known.map_or(UNKNOWN, |(_, mime)| mime).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_are_known_by_their_names() {
        for (url, want) in [
            ("https://a.test/x.MP3?y=1", "audio/mpeg"),
            ("https://a.test/x.jpeg", "image/jpeg"),
            ("https://a.test/x", UNKNOWN),
        ] {
            assert_eq!(guess(&Url::parse(url).unwrap()), want, "{url}");
        }
    }
}
