//! The feeds that a page offers to who came looking for one (rule P52).
//!
//! First what it says in `link` elements; if they name none, its links to what looks like
//! a feed, which have no media type. Nothing is fetched here, and nothing is chosen:
//! whoever asked chooses.

use std::collections::HashSet;

use url::Url;

use super::html::{Page, Tag};
use crate::context::Context;
use crate::discovery::{self, Offer};

/// The most that one page offers.
const MOST: usize = 20;

/// Where feeds lie on many servers, seen from the page.
pub const WELL_KNOWN: [&str; 9] = [
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

/// What a page offers.
pub(super) fn of_page(page: &Page, context: &Context) -> Vec<Offer> {
    let base = page.base(&context.base());
    let mut found = Found { base: &base, offers: Vec::new(), known: HashSet::new() };
    for tag in page.named("link") {
        found.link(tag);
    }
    if found.offers.is_empty() {
        for tag in page.named("a") {
            found.guess(tag);
        }
    }
    found.offers
}

struct Found<'p> {
    base: &'p Url,
    offers: Vec<Offer>,
    known: HashSet<String>,
}

impl Found<'_> {
    fn link(&mut self, tag: Tag<'_>) {
        let is_alternate = tag.words("rel").any(|rel| rel.eq_ignore_ascii_case("alternate"));
        let mime = discovery::feed_type(tag.attr("type").unwrap_or_default());
        if let (true, Some(href), Some(mime)) = (is_alternate, tag.attr("href"), mime) {
            self.keep(href, mime, tag.attr("title").unwrap_or_default());
        }
    }

    /// A link to what looks like a feed, on the same server.
    fn guess(&mut self, tag: Tag<'_>) {
        let Some(href) = tag.attr("href") else { return };
        let Ok(url) = self.base.join(href) else { return };
        if url.host_str() == self.base.host_str() && looks_like_a_feed(&url) {
            self.keep(href, "", &tag.text());
        }
    }

    fn keep(&mut self, href: &str, mime: &str, title: &str) {
        if self.offers.len() < MOST {
            let offer = Offer::new(self.base, href, mime, title);
            self.offers.extend(offer.filter(|offer| self.known.insert(offer.href.clone())));
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

    fn offered(html: &str) -> Vec<(String, String, String)> {
        let context = Context::of(Url::parse("https://tides.test/blog/").unwrap());
        let offers = of_page(&Page::read(html), &context);
        offers.into_iter().map(|offer| (offer.href, offer.mime, offer.title)).collect()
    }

    #[test]
    fn p52_a_page_names_its_feeds_in_links_and_anchors() {
        const LINK: &str =
            "<link rel=Alternate type='application/rss+xml; x=y' title=' The\n Tides' href=/rss>";
        let offer = |href: &str, mime: &str, title: &str| {
            (format!("https://tides.test{href}"), mime.to_owned(), title.to_owned())
        };
        let rss = "application/rss+xml";
        #[rustfmt::skip]
        let cases = [
            ("an element",          LINK.to_owned(), vec![offer("/rss", rss, "The Tides")]),
            ("relative to a base",  format!("<base href=/x/>{}", LINK.replace("=/rss", "=rss")), vec![offer("/x/rss", rss, "The Tides")]),
            ("each once",           format!("{LINK}{LINK}<a href=/feed>x</a>"), vec![offer("/rss", rss, "The Tides")]),
            ("no other alternates", "<link rel=alternate hreflang=fr href=/fr><link rel=stylesheet type=text/xml href=/s>".to_owned(), vec![]),
            ("no interfaces",       "<link rel=alternate type=application/json href=/wp-json/1>".to_owned(), vec![]),
            ("no scripts",          LINK.replace("=/rss", "=javascript:x"), vec![]),
            ("anchors last",        "<a href=feed.xml>RSS <b>2</b></a><a href=/about>x</a>".to_owned(), vec![offer("/blog/feed.xml", "", "RSS 2")]),
            ("not those elsewhere", "<a href=https://other.test/feed>x</a>".to_owned(), vec![]),
        ];
        for (why, html, want) in cases {
            assert_eq!(offered(&html), want, "{why}");
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
