//! Discovery of the feeds that a page links to (rule P52).
//!
//! Feeds in `link` elements come first. A page without any is searched for anchors that look like
//! links to feeds; these have no media type. Nothing is fetched, and no feed is preferred.

use std::collections::HashSet;

use url::Url;

use super::discovered_feed::DiscoveredFeed;
use crate::context::Context;
use crate::parse::html::{HtmlElement, ParsedHtml};

/// The maximum number of feeds returned for one page.
const MAX_FEEDS: usize = 20;

/// Paths, relative to the page, at which many servers publish a feed.
pub const WELL_KNOWN_PATHS: [&str; 9] = [
    "feed/",
    "feed.xml",
    "atom.xml",
    "rss.xml",
    "index.xml",
    "rss/",
    "feed.atom",
    "index.rss",
    "rss/feed.xml",
];

/// Returns the feeds that a page links to.
pub(super) fn find_feeds(page: &ParsedHtml, context: &Context) -> Vec<DiscoveredFeed> {
    let base = page.base(&context.base());
    let mut found = FeedLinks { base: &base, feeds: Vec::new(), known: HashSet::new() };
    for element in page.named("link") {
        found.add_link(element);
    }
    if found.feeds.is_empty() {
        for element in page.named("a") {
            found.add_anchor(element);
        }
    }
    found.feeds
}

struct FeedLinks<'p> {
    base: &'p Url,
    feeds: Vec<DiscoveredFeed>,
    known: HashSet<String>,
}

impl FeedLinks<'_> {
    fn add_link(&mut self, element: HtmlElement<'_>) {
        if let (Some(href), Some(mime)) = (element.attr("href"), element.advertised_feed_type()) {
            self.add(href, mime, element.attr("title").unwrap_or_default());
        }
    }

    /// Adds the target of an anchor that looks like a link to a feed on the same server.
    fn add_anchor(&mut self, element: HtmlElement<'_>) {
        let Some(href) = element.attr("href") else { return };
        let Ok(url) = self.base.join(href) else { return };
        if url.host_str() == self.base.host_str() && looks_like_a_feed(&url) {
            self.add(href, "", &element.text());
        }
    }

    fn add(&mut self, href: &str, mime: &str, title: &str) {
        if self.feeds.len() < MAX_FEEDS {
            let feed = DiscoveredFeed::new(self.base, href, mime, title);
            self.feeds.extend(feed.filter(|feed| self.known.insert(feed.href.clone())));
        }
    }
}

fn looks_like_a_feed(url: &Url) -> bool {
    let path = url.path().trim_end_matches('/').to_ascii_lowercase();
    let name = path.rsplit('/').next().unwrap_or_default();
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    let is_name = matches!(stem, "feed" | "feeds" | "rss" | "rss2" | "atom");
    match ending {
        "" => is_name,
        "rss" | "atom" | "rdf" => true,
        "xml" | "json" | "php" => is_name || (ending == "xml" && stem == "index"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(html: &str) -> Vec<(String, String, String)> {
        let context = Context::new(Url::parse("https://tides.test/blog/").unwrap());
        let feeds = find_feeds(&ParsedHtml::read(html), &context);
        feeds.into_iter().map(|feed| (feed.href, feed.mime, feed.title)).collect()
    }

    #[test]
    fn p52_a_page_names_its_feeds_in_links_and_anchors() {
        const LINK: &str =
            "<link rel=Alternate type='application/rss+xml; x=y' title=' The\n Tides' href=/rss>";
        let feed = |href: &str, mime: &str, title: &str| {
            (format!("https://tides.test{href}"), mime.to_owned(), title.to_owned())
        };
        let rss = "application/rss+xml";
        #[rustfmt::skip]
        let cases = [
            ("an element",          LINK.to_owned(), vec![feed("/rss", rss, "The Tides")]),
            ("relative to a base",  format!("<base href=/x/>{}", LINK.replace("=/rss", "=rss")), vec![feed("/x/rss", rss, "The Tides")]),
            ("each once",           format!("{LINK}{LINK}<a href=/feed>x</a>"), vec![feed("/rss", rss, "The Tides")]),
            ("no other alternates", "<link rel=alternate hreflang=fr href=/fr><link rel=stylesheet type=text/xml href=/s>".to_owned(), vec![]),
            ("no interfaces",       "<link rel=alternate type=application/json href=/wp-json/1>".to_owned(), vec![]),
            ("no scripts",          LINK.replace("=/rss", "=javascript:x"), vec![]),
            ("anchors last",        "<a href=feed.xml>RSS <b>2</b></a><a href=/about>x</a>".to_owned(), vec![feed("/blog/feed.xml", "", "RSS 2")]),
            ("not those elsewhere", "<a href=https://other.test/feed>x</a>".to_owned(), vec![]),
        ];
        for (why, html, want) in cases {
            assert_eq!(found(&html), want, "{why}");
        }
    }

    #[test]
    fn p52_what_looks_like_a_feed() {
        let yes =
            ["/feed", "/blog/feed/", "/rss.xml", "/x.atom", "/index.xml", "/feed.json", "/RSS"];
        let no = ["/", "/feedback", "/news", "/a.xml", "/index.html", "/feed.html"];
        for (paths, want) in [(&yes[..], true), (&no[..], false)] {
            for path in paths {
                let url = Url::parse("https://tides.test").unwrap().join(path).unwrap();
                assert_eq!(looks_like_a_feed(&url), want, "{path}");
            }
        }
    }
}
