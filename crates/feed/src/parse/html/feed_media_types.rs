//! The media types by which pages advertise feeds.

/// The media types of feeds. `application/json` is left out, because most JSON is not a feed.
const TYPES: [&str; 6] = [
    "application/atom+xml",
    "application/rss+xml",
    "application/rdf+xml",
    "application/feed+json",
    "application/xml",
    "text/xml",
];

/// Returns the media type in a `Content-Type` if it is one of the media types of feeds.
pub fn feed_media_type(label: &str) -> Option<&'static str> {
    let essence = label.split(';').next().unwrap_or_default().trim();
    TYPES.into_iter().find(|known| essence.eq_ignore_ascii_case(known))
}
