//! The feeds that a page offers to who came looking for one (rule P52).
//!
//! First what the server says in `Link` headers and the page in `link` elements; if they
//! name none, links in the page that lead to what looks like a feed. Nothing is fetched
//! here, and nothing is chosen: whoever asked chooses.

use std::collections::HashSet;

use url::Url;

use super::html::{Page, Tag};
use crate::domain::offer::Offer;
use crate::domain::plain::collapse;
use crate::domain::source::Context;

/// The most that one page offers.
const MOST: usize = 20;
/// A title longer than this is cut.
const TITLE_CHARS: usize = 100;
/// An address longer than this could not be subscribed to.
const LONGEST_HREF_BYTES: usize = 2_048;

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

/// Media types of feeds. `application/json` is that of most other things as well.
const TYPES: [&str; 6] = [
    "application/atom+xml",
    "application/rss+xml",
    "application/rdf+xml",
    "application/feed+json",
    "application/xml",
    "text/xml",
];

/// What a page offers.
pub(super) fn of_page(page: &Page, context: &Context) -> Vec<Offer> {
    let base = page.base(&context.base());
    let mut found = Found { base: &base, offers: Vec::new(), known: HashSet::new() };
    for (name, value) in &context.headers {
        if name == "link" {
            links(value).for_each(|link| found.add(&link.href, &link));
        }
    }
    for tag in page.named("link") {
        let link = Link::of(tag);
        found.add(&link.href, &link);
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
    fn add(&mut self, href: &str, link: &Link) {
        let is_alternate =
            link.rel.split_ascii_whitespace().any(|rel| rel.eq_ignore_ascii_case("alternate"));
        let essence = link.mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if is_alternate && TYPES.contains(&essence.as_str()) {
            self.keep(href, essence, &link.title);
        }
    }

    /// A link to what looks like a feed, on the same server.
    fn guess(&mut self, tag: Tag<'_>) {
        let Some(href) = tag.attr("href") else { return };
        let Ok(url) = self.base.join(href) else { return };
        if url.host_str() == self.base.host_str() && looks_like_a_feed(&url) {
            self.keep(href, String::new(), &tag.text());
        }
    }

    fn keep(&mut self, href: &str, mime: String, title: &str) {
        let Ok(mut url) = self.base.join(href.trim()) else { return };
        url.set_fragment(None);
        let is_wanted = matches!(url.scheme(), "http" | "https")
            && url.as_str().len() <= LONGEST_HREF_BYTES
            && !url.path().contains("/wp-json/");
        let href = String::from(url);
        if is_wanted && self.offers.len() < MOST && self.known.insert(href.clone()) {
            let title = collapse(title).chars().take(TITLE_CHARS).collect();
            self.offers.push(Offer { href, mime, title });
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

/// A link, in a header or in a page.
#[derive(Debug, Default, PartialEq, Eq)]
struct Link {
    href: String,
    rel: String,
    mime: String,
    title: String,
}

impl Link {
    fn of(tag: Tag<'_>) -> Link {
        let attr = |name| tag.attr(name).unwrap_or_default().to_owned();
        Link { href: attr("href"), rel: attr("rel"), mime: attr("type"), title: attr("title") }
    }
}

/// The links of a `Link` header (RFC 8288 `#section-3`). What is no link ends it.
fn links(header: &str) -> impl Iterator<Item = Link> + '_ {
    let mut rest = header;
    std::iter::from_fn(move || {
        let (href, after) =
            rest.trim_start_matches([' ', '\t', ',']).strip_prefix('<')?.split_once('>')?;
        let mut link = Link { href: href.to_owned(), ..Link::default() };
        rest = after.trim_start();
        while let Some(parameter) = rest.strip_prefix(';') {
            let (name, after) = parameter.split_once('=')?;
            let (value, after) = value(after.trim_start());
            let slot = match name.trim().to_ascii_lowercase().as_str() {
                "rel" => &mut link.rel,
                "type" => &mut link.mime,
                "title" => &mut link.title,
                _ => &mut String::new(),
            };
            *slot = value;
            rest = after.trim_start();
        }
        Some(link)
    })
}

/// A value, quoted or not, and what is behind it.
fn value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([';', ',']).unwrap_or(text.len());
        return (text[..end].trim().to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(chars.next().map(|(_, c)| c)),
            c => value.push(c),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(header: Option<&str>, html: &str) -> Vec<(String, String, String)> {
        let mut context = Context::of(Url::parse("https://tides.test/blog/").unwrap());
        context.headers.extend(header.map(|value| ("link".to_owned(), value.to_owned())));
        let offers = of_page(&Page::read(html), &context);
        offers.into_iter().map(|offer| (offer.href, offer.mime, offer.title)).collect()
    }

    #[test]
    fn p52_a_page_names_its_feeds_in_headers_links_and_anchors() {
        const LINK: &str =
            "<link rel=Alternate type='application/rss+xml; x=y' title=' The\n Tides' href=/rss>";
        let offer = |href: &str, mime: &str, title: &str| {
            (format!("https://tides.test{href}"), mime.to_owned(), title.to_owned())
        };
        let (rss, atom) = ("application/rss+xml", "application/atom+xml");
        #[rustfmt::skip]
        let cases = [
            ("an element",          None, LINK.to_owned(), vec![offer("/rss", rss, "The Tides")]),
            ("a header first",      Some("</a?b,c>; rel=\"alternate\"; type=\"application/atom+xml\"; title=\"A; \\\"b\\\"\", <x>; rel=next"),
                LINK.to_owned(),    vec![offer("/a?b,c", atom, "A; \"b\""), offer("/rss", rss, "The Tides")]),
            ("relative to a base",  None, format!("<base href=/x/>{}", LINK.replace("=/rss", "=rss")), vec![offer("/x/rss", rss, "The Tides")]),
            ("each once",           None, format!("{LINK}{LINK}<a href=/feed>x</a>"), vec![offer("/rss", rss, "The Tides")]),
            ("no other alternates", None, "<link rel=alternate hreflang=fr href=/fr><link rel=stylesheet type=text/xml href=/s>".to_owned(), vec![]),
            ("no interfaces",       None, "<link rel=alternate type=application/json href=/wp-json/1>".to_owned(), vec![]),
            ("no scripts",          None, LINK.replace("=/rss", "=javascript:x"), vec![]),
            ("anchors last",        None, "<a href=feed.xml>RSS <b>2</b></a><a href=/about>x</a>".to_owned(), vec![offer("/blog/feed.xml", "", "RSS 2")]),
            ("not those elsewhere", None, "<a href=https://other.test/feed>x</a>".to_owned(), vec![]),
        ];
        for (why, header, html, want) in cases {
            assert_eq!(offered(header, &html), want, "{why}");
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
