//! The length and media type of a media object, which RSS requires.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, Method};
use url::Url;

use crate::net::{CallbackRequest, HttpClient};
use feedgate_protocol::rss::Enclosure;

/// The maximum number of redirects: media are often behind several that count listeners.
const MOST_REDIRECTS: usize = 5;
/// The media type of media objects of unknown type.
const UNKNOWN: &str = "application/octet-stream";

/// Media types by file extension, for servers that do not send one.
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

/// Requests the length and media type of `url` from its server, through the guarded client. Missing
/// values are guessed; if the server cannot be reached, the post can still be written.
pub async fn inspect_enclosure(fetch: &HttpClient, url: &Url) -> Enclosure {
    let mut at = url.clone();
    for _ in 0..=MOST_REDIRECTS {
        let call = CallbackRequest {
            method: Method::HEAD,
            url: at.clone(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
        };
        let Ok(reply) = fetch.call_signed(call).await else { break };
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
