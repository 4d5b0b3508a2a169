//! Sitemaps (sitemaps.org 0.9), with the elements of Google News: an entry for each `url`.
//!
//! ```xml
//! <urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
//!   <url><loc>https://…</loc><lastmod>2026-11-01</lastmod></url>
//! </urlset>
//! ```
//!
//! A page is identified by its address. What has no counterpart in Atom (`priority`, images, videos, the
//! publication of an article) is kept.

use chrono::{DateTime, FixedOffset, Utc};
use url::Url;

use super::{Reading, read_foreign};
use crate::model::{Category, Entry, Feed, FeedFormat, Link, Text};
use crate::parse::selection::{Choice, Room, Selection};
use crate::parse::target::{FeedOrEntry, Target};
use crate::parse::tree::{Tree, XmlElement};
use crate::parse::vocabulary::{ARTICLES, SITEMAP};
use crate::parse::{MAX_ENTRIES, dates};

/// Returns whether an element is a sitemap: one with pages in it, or an empty one, such as that of the news
/// of two days without any.
pub(super) fn is(element: XmlElement<'_>) -> bool {
    let is_empty = || element.is_in(&SITEMAP) && element.elements().next().is_none();
    element.named("urlset") && (element.elements().any(is_page) || is_empty())
}

fn is_page(element: XmlElement<'_>) -> bool {
    element.named("url") && element.child("loc").is_some()
}

/// Reads a sitemap.
pub(super) fn read(root: XmlElement<'_>, reading: &mut Reading<'_>) -> Feed {
    let mut feed = reading.feed_at(root, FeedFormat::Sitemap);
    let mut target = reading.target(FeedOrEntry::Feed(&mut feed));
    target.begin(root);
    for child in root.elements().filter(|child| !is_page(*child)) {
        target.reading(child, |target| read_foreign(child, target));
    }
    let mut pages: Vec<_> = root.elements().filter(|child| is_page(*child)).collect();
    if pages.len() > MAX_ENTRIES {
        let choices: Vec<Choice> =
            pages.iter().map(|page| Choice::of_entry(last_change(*page))).collect();
        let selection = Selection::choose(&choices, Room::ENTRIES, None);
        reading.repairs.push(selection.report(selection.kept.len()));
        pages = selection.kept.iter().map(|at| pages[*at]).collect();
        feed.gap = selection.gap;
    }
    feed.entries = pages.into_iter().map(|page| entry(page, reading)).collect();
    feed
}

/// A sitemap that an index lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedSitemap {
    /// The absolute address of the sitemap.
    pub url: String,
    /// When the index says that it changed last.
    pub changed: Option<DateTime<Utc>>,
}

/// Returns the sitemaps that the index in a tree lists; none if there is no index. Those on another host than
/// that of the index are left out, as sitemaps.org demands: anybody can list the documents of others.
pub(in crate::parse) fn read_index(tree: &Tree<'_>, base: &Url) -> Vec<ListedSitemap> {
    let mut elements = tree.document().descendants();
    let Some(index) = elements.find(|element| element.named("sitemapindex")) else {
        return Vec::new();
    };
    let listed = index.elements().filter(|child| child.named("sitemap")).filter_map(|child| {
        let url = base.join(child.child("loc")?.text().trim()).ok()?;
        let is_web = matches!(url.scheme(), "http" | "https");
        let changed = last_change(child).map(|at| at.to_utc());
        (is_web && is_same_host(&url, base)).then(|| ListedSitemap { url: url.into(), changed })
    });
    listed.collect()
}

/// Returns whether two addresses are on one host, by `http` or by `https`.
fn is_same_host(one: &Url, other: &Url) -> bool {
    let is_usual = one.port().is_none() && other.port().is_none();
    let is_same_port = one.port_or_known_default() == other.port_or_known_default();
    one.host() == other.host() && (is_usual || is_same_port)
}

fn last_change(page: XmlElement<'_>) -> Option<DateTime<FixedOffset>> {
    dates::parse(&page.child("lastmod")?.text())
}

fn entry(page: XmlElement<'_>, reading: &mut Reading<'_>) -> Entry {
    let mut entry = reading.entry_at(page);
    let mut target = reading.target(FeedOrEntry::Entry(&mut entry));
    target.begin(page);
    for child in page.elements() {
        let name = child.lower_name();
        match name.as_ref() {
            "loc" => target.read_or_keep(child, read_address),
            "lastmod" => target.read_or_keep(child, |child, target| target.set_updated(child)),
            "news" => {
                for child in child.elements() {
                    target.read_or_keep(child, read_article);
                }
            }
            _ => target.reading(child, |target| read_foreign(child, target)),
        }
    }
    entry
}

fn read_address(loc: XmlElement<'_>, target: &mut Target<'_>) -> bool {
    let href = target.bases.href(loc, loc.text().trim());
    if target.id().is_empty() {
        *target.id() = href.clone();
    }
    target.add_link(Link { href, rel: "alternate".into(), ..Link::default() })
}

/// Reads an element of Google News (`#create-a-news-sitemap`).
fn read_article(child: XmlElement<'_>, target: &mut Target<'_>) -> bool {
    if !child.is_in(&ARTICLES) {
        return false;
    }
    match child.lower_name().as_ref() {
        "title" => {
            let title: Text = target.bases.plain(child);
            target.set_title(title)
        }
        "publication_date" => target.set_published(child),
        "keywords" => {
            let text = child.text();
            let terms = text.split(',').map(str::trim).filter(|term| !term.is_empty());
            terms.fold(false, |_, term| {
                target.add_category(Category { term: term.to_owned(), ..Category::default() })
            })
        }
        "publication" => {
            let language = child.child("language").map(|told| told.text().trim().to_owned());
            if let Some(language) = language.filter(|told| !told.is_empty()) {
                target.lang().get_or_insert(language);
            }
            false // its name is kept
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use crate::context::Context;
    use crate::model::{FeedFormat, Text};
    use crate::parse::{MAX_ENTRIES, NotAFeed, listed_sitemaps, parse};

    fn context() -> Context {
        Context::new(Url::parse("https://tides.test/sitemap.xml").unwrap())
    }

    #[test]
    fn n12_the_pages_of_a_sitemap_are_entries() {
        let text = "<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'
            xmlns:news='http://www.google.com/schemas/sitemap-news/0.9'>
            <url><loc>https://tides.test/ebb</loc><lastmod>2026-11-01</lastmod><priority>0.8</priority></url>
            <url><loc>/flood?a=1&amp;b=2</loc><news:news>
              <news:publication><news:name>Tides</news:name><news:language>fr</news:language></news:publication>
              <news:publication_date>2026-11-02T03:04:05Z</news:publication_date>
              <news:title>Spring tide</news:title><news:keywords>sea, moon</news:keywords></news:news></url>
            <url><lastmod>2026-11-03</lastmod></url></urlset>";
        let feed = parse(text.as_bytes(), &context()).unwrap();
        assert_eq!((feed.format, feed.entries.len()), (FeedFormat::Sitemap, 2));
        let [ebb, flood] = &feed.entries[..] else { panic!("two pages") };
        assert_eq!((ebb.id.as_str(), ebb.extensions.len()), ("https://tides.test/ebb", 1));
        assert_eq!(ebb.updated.unwrap().to_rfc3339(), "2026-11-01T00:00:00+00:00");
        assert_eq!(flood.title, Some(Text::plain("Spring tide")));
        assert_eq!(flood.published.unwrap().to_rfc3339(), "2026-11-02T03:04:05+00:00");
        assert_eq!((flood.categories.len(), flood.lang.as_deref()), (2, Some("fr")));
        assert_eq!(flood.links[0].rel, "alternate");
    }

    #[test]
    fn n12_the_newest_pages_of_a_long_sitemap_are_read() {
        let page = |n: usize| {
            let day = 1 + n / 1_440;
            let time = format!("{:02}:{:02}", n / 60 % 24, n % 60);
            format!(
                "<url><loc>https://tides.test/{n}</loc><lastmod>2026-11-{day:02}T{time}Z</lastmod></url>"
            )
        };
        let pages: String = (0..MAX_ENTRIES + 100).map(page).collect();
        let feed = parse(format!("<urlset>{pages}</urlset>").as_bytes(), &context()).unwrap();
        assert_eq!(feed.entries.len(), MAX_ENTRIES);
        assert_eq!(feed.entries[0].id, "https://tides.test/100");
    }

    #[test]
    fn n12_the_newest_pages_are_read_of_a_sitemap_with_more_nodes_than_are_read() {
        const COUNT: usize = 40_000;
        let page = |n: usize| {
            let day =
                chrono::DateTime::from_timestamp(1_000_000_000 + n as i64 * 3_600, 0).unwrap();
            format!(
                "<url><loc>https://tides.test/{n}</loc><lastmod>{}</lastmod>\
                 <changefreq>daily</changefreq><priority>0.5</priority></url>",
                day.to_rfc3339()
            )
        };
        let pages: String = (0..COUNT).map(page).collect();
        for (begin, end) in [("<urlset>", "</urlset>"), ("<s:urlset xmlns:s='x'>", "</s:urlset>")] {
            let feed = parse(format!("{begin}{pages}{end}").as_bytes(), &context()).unwrap();
            assert_eq!(feed.entries.len(), MAX_ENTRIES);
            assert_eq!(feed.entries[0].id, format!("https://tides.test/{}", COUNT - MAX_ENTRIES));
        }
    }

    #[test]
    fn n12_an_empty_sitemap_is_a_feed_without_entries() {
        let text =
            "<?xml version='1.0'?>\n<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'/>";
        let feed = parse(text.as_bytes(), &context()).unwrap();
        assert_eq!((feed.format, feed.entries.len()), (FeedFormat::Sitemap, 0));
    }

    #[test]
    fn n12_an_index_lists_sitemaps_with_their_dates() {
        let text = "<?xml version='1.0'?><s:sitemapindex xmlns:s='http://www.sitemaps.org/schemas/sitemap/0.9'>
            <s:sitemap><s:loc> https://tides.test/a?x=1&amp;y=2 </s:loc><s:lastmod>2026-11-01</s:lastmod></s:sitemap>
            <s:sitemap><s:loc>/b.xml.gz</s:loc></s:sitemap><s:sitemap><s:loc>javascript:x</s:loc></s:sitemap>
            <s:sitemap><s:loc>http://tides.test/c.xml</s:loc></s:sitemap><s:sitemap><s:loc>//other.test/d</s:loc></s:sitemap>
            <s:sitemap><s:loc>https://tides.test:8443/e</s:loc></s:sitemap>
            <s:sitemap><s:lastmod>2026-11-01</s:lastmod></s:sitemap></s:sitemapindex>";
        let listed = listed_sitemaps(text.as_bytes(), &context());
        let found: Vec<_> = listed
            .iter()
            .map(|sitemap| (sitemap.url.as_str(), sitemap.changed.map(|at| at.timestamp())))
            .collect();
        let want = [
            ("https://tides.test/a?x=1&y=2", Some(1_793_491_200)),
            ("https://tides.test/b.xml.gz", None),
            ("http://tides.test/c.xml", None),
        ];
        assert_eq!(found, want);
        assert_eq!(listed_sitemaps(b"<urlset/>", &context()), []);
    }

    #[test]
    fn n12_an_index_of_sitemaps_says_what_it_is() {
        let text =
            "<sitemapindex><sitemap><loc>https://tides.test/1.xml</loc></sitemap></sitemapindex>";
        let read = parse(text.as_bytes(), &context());
        assert_eq!(read, Err(NotAFeed::SITEMAP_INDEX));
        assert_eq!(parse(b"<urlset/>", &context()), Err(NotAFeed::Other("XML of another kind")));
    }
}
