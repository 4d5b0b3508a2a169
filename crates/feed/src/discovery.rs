//! Feeds that a page offers to whoever came to it looking for one.

use url::Url;

use super::text_extraction::collapse;

/// One feed that a page names (rule P52). Nothing is known of it but what the page says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct Offer {
    /// Its address, absolute.
    pub href: String,
    /// The media type that the page gives it; empty if it gives none.
    pub mime: String,
    /// The title that the page gives it, on one line; empty if it gives none.
    pub title: String,
}

/// Media types of feeds. `application/json` is that of most other things as well.
const TYPES: [&str; 6] = [
    "application/atom+xml",
    "application/rss+xml",
    "application/rdf+xml",
    "application/feed+json",
    "application/xml",
    "text/xml",
];
/// The longest address of a feed, in bytes: as long as a topic may be (Superfeedr's API:
/// "2048 chars").
const LONGEST_HREF_BYTES: usize = 2_048;
/// A title longer than this is cut.
const TITLE_CHARS: usize = 100;

/// The media type in a label, if it is that of a feed.
pub fn feed_type(label: &str) -> Option<&'static str> {
    let essence = label.split(';').next().unwrap_or_default().trim();
    TYPES.into_iter().find(|known| essence.eq_ignore_ascii_case(known))
}

impl Offer {
    /// A feed at `href`, which may be relative to `base`; `None` if it could not be
    /// subscribed to, or is WordPress's interface for programs and no feed.
    pub fn new(base: &Url, href: &str, mime: &str, title: &str) -> Option<Offer> {
        let mut url = base.join(href.trim()).ok()?;
        url.set_fragment(None);
        if !matches!(url.scheme(), "http" | "https") || url.as_str().len() > LONGEST_HREF_BYTES {
            return None;
        }
        let offer = Offer {
            href: url.as_str().to_owned(),
            mime: mime.to_owned(),
            title: collapse(title).chars().take(TITLE_CHARS).collect(),
        };
        Some(offer).filter(|_| !url.path().contains("/wp-json/"))
    }
}

/// The most that is told of in one sentence.
const MOST_NAMED: usize = 3;

/// What is offered, in a sentence; `None` if nothing is.
pub fn sentence(offers: &[Offer]) -> Option<String> {
    let named: Vec<&str> =
        offers.iter().take(MOST_NAMED).map(|offer| offer.href.as_str()).collect();
    let rest = match offers.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    match offers.len() {
        0 => None,
        1 => Some(format!("the page offers a feed: {}", named[0])),
        _ => Some(format!("the page offers feeds: {}{rest}", named.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_offered_is_told_in_a_sentence_of_bounded_length() {
        let offers: Vec<Offer> = (1..=5)
            .map(|n| Offer { href: format!("https://a.test/{n}"), ..Offer::default() })
            .collect();
        assert_eq!(sentence(&offers[..0]), None);
        assert_eq!(sentence(&offers[..1]).unwrap(), "the page offers a feed: https://a.test/1");
        let want = "the page offers feeds: https://a.test/1, https://a.test/2, https://a.test/3 \
                    and 2 more";
        assert_eq!(sentence(&offers).unwrap(), want);
    }
}
