//! The feeds that a page links to, in its headers and its content (rule P52).

use feedgate_feed::Context;
use feedgate_feed::documents::{self, DiscoveredFeed};
use feedgate_feed::link_header;

/// Returns the feeds that a page links to: first those in `Link` headers, then those in the page.
/// Links in the page that only look like feeds, and so have no media type, count only if no other
/// feed was found.
pub fn discovered_feeds(context: &Context, in_page: Vec<DiscoveredFeed>) -> Vec<DiscoveredFeed> {
    let base = context.base();
    let values = context.headers.iter().filter(|(name, _)| name == "link");
    let links = link_header::read(values.map(|(_, value)| value.as_str()));
    let mut offers: Vec<DiscoveredFeed> = Vec::new();
    for link in links.iter().filter(|link| link.is("alternate")) {
        let mime = link.mime.as_deref().and_then(documents::feed_media_type);
        let title = link.title.as_deref().unwrap_or_default();
        offers.extend(mime.and_then(|mime| DiscoveredFeed::new(&base, &link.target, mime, title)));
    }
    let has_typed = !offers.is_empty();
    for offer in in_page {
        let is_guess = offer.mime.is_empty();
        let is_new = offers.iter().all(|held| held.href != offer.href);
        if is_new && !(has_typed && is_guess) {
            offers.push(offer);
        }
    }
    offers
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;

    #[test]
    fn p52_what_the_server_says_comes_first() {
        let mut context = Context::new(Url::parse("https://tides.test/blog/").unwrap());
        let offer = |href: &str, mime: &str| DiscoveredFeed {
            href: format!("https://tides.test{href}"),
            mime: mime.to_owned(),
            title: String::new(),
        };
        let (atom, rss) = ("application/atom+xml", "application/rss+xml");
        let guess = offer("/rss", "");
        assert_eq!(discovered_feeds(&context, vec![guess.clone()]), std::slice::from_ref(&guess));
        let value =
            "<atom>; rel=\"alternate\"; type=\"application/atom+xml\", </fr>; rel=alternate";
        context.headers.push(("link".to_owned(), value.to_owned()));
        assert_eq!(discovered_feeds(&context, vec![guess]), [offer("/blog/atom", atom)]);
        let page = vec![offer("/blog/atom", atom), offer("/rss", rss)];
        assert_eq!(discovered_feeds(&context, page.clone()), page, "each once");
    }
}
