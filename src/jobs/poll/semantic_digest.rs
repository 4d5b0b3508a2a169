//! The digest of the meaning of a feed, without values that change by themselves (rule P11).
//!
//! Subscribers who are notified that a document changed, without its entries, must not be notified
//! of a new `lastBuildDate` or of one more comment. The digest covers everything that is rendered
//! of the feed except dates, counters and the order of the entries.

use feedgate_core::record::Digest;
use feedgate_feed::model::{Element, Entry, Feed, Node};
use feedgate_feed::render;

/// Elements that contain counters or times, by the end of their namespace and their name.
const VOLATILE: [(&str, &str); 10] = [
    ("modules/slash/", "comments"),
    ("modules/slash/", "hit_parade"),
    ("syndication/thread/1.0", "total"),
    ("search.yahoo.com/mrss/", "community"),
    ("search.yahoo.com/mrss/", "statistics"),
    ("search.yahoo.com/mrss/", "starRating"),
    ("dublincore/dc/elements/1.1", "date"),
    ("tag:feedgate,2026:entry", "stated"),
    ("tag:feedgate,2026:entry", "derived"),
    ("tag:feedgate,2026:entry", "media"), // encloses those of Media RSS
];
/// The namespace of link attributes that contain counters and times (RFC 4685, `thr:count` and
/// `thr:updated`).
const THREADING: &str = "http://purl.org/syndication/thread/1.0";

/// Returns the digest of a normalized feed.
/// `feed` is unchanged afterwards. It is rendered piece by piece, because a second copy of a large
/// feed takes much memory.
pub(super) fn semantic_digest(feed: &mut Feed) -> Digest {
    let entries = std::mem::take(&mut feed.entries);
    let mut shell = feed.clone();
    shell.updated = None;
    retain_lasting(&mut shell.extensions);
    let mut by_id: Vec<&Entry> = entries.iter().collect();
    by_id.sort_by(|one, other| one.id.cmp(&other.id));
    let digest_of = |entry: &Entry| {
        let rendered = rendered(entry, feed.is_changed_by_date());
        hex::encode(Digest::from_parts(&[&rendered]).0)
    };
    let mut parts: Vec<String> = by_id.into_iter().map(digest_of).collect();
    parts.push(render::atom::feed(&shell));
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let digest = Digest::from_parts(&parts);
    feed.entries = entries;
    digest
}

/// Renders an entry without its dates, except that of its last change where it says nothing else of its
/// content ([`Feed::is_changed_by_date`]).
fn rendered(entry: &Entry, is_changed_by_date: bool) -> String {
    let mut entry = entry.clone();
    entry.published = None;
    entry.updated = entry.updated.filter(|_| is_changed_by_date && !entry.date_assumed);
    retain_lasting(&mut entry.extensions);
    for link in &mut entry.links {
        link.attributes.retain(|attribute| attribute.namespace != THREADING);
    }
    render::atom::entry(&entry)
}

/// Removes volatile elements, also those that are in elements of Media RSS.
fn retain_lasting(extensions: &mut Vec<Element>) {
    extensions.retain(is_lasting);
    let mut open: Vec<&mut Element> = extensions.iter_mut().filter(|it| is_media(it)).collect();
    while let Some(element) = open.pop() {
        let is_kept = |child: &Node| !matches!(child, Node::Element(child) if !is_lasting(child));
        element.children.retain(is_kept);
        open.extend(element.children.iter_mut().filter_map(|child| match child {
            Node::Element(child) if is_media(child) => Some(child),
            _ => None,
        }));
    }
}

fn is_media(element: &Element) -> bool {
    element.namespace.contains("search.yahoo.com/mrss")
}

fn is_lasting(element: &Element) -> bool {
    let space = element.namespace.trim_end_matches('/');
    !VOLATILE
        .iter()
        .any(|(end, name)| space.ends_with(end.trim_end_matches('/')) && element.name == *name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedgate_feed::Context;

    fn digest(items: &str, channel: &str) -> Digest {
        let text = format!(
            "<rss version='2.0' xmlns:slash='http://purl.org/rss/1.0/modules/slash/' \
             xmlns:dc='http://purl.org/dc/elements/1.1/' xmlns:thr='{THREADING}' \
             xmlns:media='http://search.yahoo.com/mrss/'>\
             <channel><title>Tides</title>{channel}{items}</channel></rss>"
        );
        let context = Context::new("https://tides.test/".parse().unwrap());
        let normalized = feedgate_feed::normalize(text.as_bytes(), &context).unwrap();
        semantic_digest(&mut normalized.feed().clone())
    }

    #[test]
    fn n12_a_page_of_a_sitemap_changes_with_its_date() {
        let digest = |date: &str| {
            let page = format!("<url><loc>https://tides.test/1</loc>{date}</url>");
            let context = Context::new("https://tides.test/".parse().unwrap());
            let text = format!("<urlset>{page}</urlset>");
            let normalized = feedgate_feed::normalize(text.as_bytes(), &context).unwrap();
            semantic_digest(&mut normalized.feed().clone())
        };
        let first = digest("<lastmod>2026-11-01</lastmod>");
        assert_eq!(first, digest("<lastmod>2026-11-01T00:00:00Z</lastmod>"));
        assert_ne!(first, digest("<lastmod>2026-11-02</lastmod>"));
        assert_eq!(digest(""), digest(""));
    }

    #[test]
    fn p11_dates_counters_and_order_are_no_change() {
        let item = |n: u32, more: &str| {
            format!("<item><guid>urn:x:{n}</guid><title>{n}</title>{more}</item>")
        };
        let two = || item(2, "") + &item(1, "");
        let before = digest(&two(), "");
        let date = "<lastBuildDate>Sat, 07 Sep 2002 00:00:01 GMT</lastBuildDate>";
        let counted = "<slash:comments>7</slash:comments><thr:total>7</thr:total>";
        let dated = "<pubDate>Sat, 07 Sep 2002 00:00:01 GMT</pubDate><dc:date>2002</dc:date>";
        let viewed = |n: u32| {
            let community =
                format!("<media:community><media:statistics views='{n}'/></media:community>");
            let content = "<media:content url='https://tides.test/1.mp4'/>";
            format!("<media:group><media:title>x</media:title>{content}{community}</media:group>")
        };
        let (before_views, views) = (item(2, &viewed(7)), item(2, &viewed(8)));
        assert_eq!(digest(&before_views, ""), digest(&views, ""), "views of a video");
        #[rustfmt::skip]
        let cases = [
            ("the date of the document", digest(&two(), date),                            true),
            ("comments",                 digest(&(item(2, counted) + &item(1, "")), ""),  true),
            ("dates of entries",         digest(&(item(2, dated) + &item(1, "")), ""),    true),
            ("the order",                digest(&(item(1, "") + &item(2, "")), ""),       true),
            ("one more",                 digest(&(item(3, "") + &two()), ""),             false),
            ("one less",                 digest(&item(2, ""), ""),                        false),
            ("a text",                   digest(&(item(2, "<description>x</description>") + &item(1, "")), ""), false),
            ("a category",               digest(&(item(2, "<category>x</category>") + &item(1, "")), ""), false),
            ("the feed's subtitle",      digest(&two(), "<description>x</description>"),  false),
        ];
        for (why, after, is_same) in cases {
            assert_eq!(after == before, is_same, "{why}");
        }
    }
}
