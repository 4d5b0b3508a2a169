//! A feed that a page links to.

use url::Url;

use crate::text_extraction::collapse;

/// A feed that a page links to (rule P52), as described by the link. Nothing is fetched, so the linked
/// document may turn out not to be a feed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct DiscoveredFeed {
    /// The absolute address of the feed.
    pub href: String,
    /// The media type that the page declares; empty if it declares none.
    pub mime: String,
    /// The title that the page declares, on one line; empty if it declares none.
    pub title: String,
}

/// The maximum length of a feed's address, in bytes: the maximum length of a topic (Superfeedr's
/// API: "2048 chars").
const LONGEST_HREF_BYTES: usize = 2_048;
/// The maximum length of a title, in characters. Longer titles are cut.
const TITLE_CHARS: usize = 100;

impl DiscoveredFeed {
    /// Creates a link to the feed at `href`, which may be relative to `base`. Returns `None` if
    /// `href` is not an HTTP address, is too long to be a topic, or is the REST API of WordPress.
    pub fn new(base: &Url, href: &str, mime: &str, title: &str) -> Option<DiscoveredFeed> {
        let mut url = base.join(href.trim()).ok()?;
        url.set_fragment(None);
        if !matches!(url.scheme(), "http" | "https") || url.as_str().len() > LONGEST_HREF_BYTES {
            return None;
        }
        let feed = DiscoveredFeed {
            href: url.as_str().to_owned(),
            mime: mime.to_owned(),
            title: collapse(title).chars().take(TITLE_CHARS).collect(),
        };
        Some(feed).filter(|_| !url.path().contains("/wp-json/"))
    }
}

/// The maximum number of feeds that [`describe_feeds`] lists.
const MOST_NAMED: usize = 3;

/// Returns a sentence that lists the feeds a page links to; `None` if there are none.
pub fn describe_feeds(feeds: &[DiscoveredFeed]) -> Option<String> {
    let named: Vec<&str> = feeds.iter().take(MOST_NAMED).map(|feed| feed.href.as_str()).collect();
    let rest = match feeds.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    match feeds.len() {
        0 => None,
        1 => Some(format!("the page links to a feed: {}", named[0])),
        _ => Some(format!("the page links to feeds: {}{rest}", named.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feeds_are_described_in_a_sentence_of_bounded_length() {
        let feeds: Vec<DiscoveredFeed> = (1..=5)
            .map(|n| DiscoveredFeed {
                href: format!("https://a.test/{n}"),
                ..DiscoveredFeed::default()
            })
            .collect();
        assert_eq!(describe_feeds(&feeds[..0]), None);
        assert_eq!(
            describe_feeds(&feeds[..1]).unwrap(),
            "the page links to a feed: https://a.test/1"
        );
        let want = "the page links to feeds: https://a.test/1, https://a.test/2, https://a.test/3 \
                    and 2 more";
        assert_eq!(describe_feeds(&feeds).unwrap(), want);
    }
}
