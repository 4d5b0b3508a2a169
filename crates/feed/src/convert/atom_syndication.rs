//! To `atom_syndication`, by way of the Atom document: so its feed has what the document has, with the
//! prefixes that it declares.

use atom_syndication::{Error, Feed as AtomFeed};

use crate::model::Feed;
use crate::normalized::Normalized;
use crate::render;

/// An Atom document, read by `atom_syndication`.
fn read(document: &str) -> Result<AtomFeed, Error> {
    AtomFeed::read_from(document.as_bytes())
}

impl TryFrom<&Normalized> for AtomFeed {
    type Error = Error;

    fn try_from(normalized: &Normalized) -> Result<AtomFeed, Error> {
        read(&normalized.to_atom())
    }
}

impl TryFrom<Normalized> for AtomFeed {
    type Error = Error;

    fn try_from(normalized: Normalized) -> Result<AtomFeed, Error> {
        AtomFeed::try_from(&normalized)
    }
}

impl TryFrom<&Feed> for AtomFeed {
    type Error = Error;

    fn try_from(feed: &Feed) -> Result<AtomFeed, Error> {
        read(&render::atom::feed(feed))
    }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;
    use crate::{Context, normalize};

    #[test]
    fn a_feed_of_any_format_becomes_one_of_atom_syndication() {
        let rss = b"<rss xmlns:itunes='http://www.itunes.com/dtds/podcast-1.0.dtd'><channel>
            <title>Tides &amp; more</title><language>en</language><item><title>Spring</title>
            <link>/spring</link><author>ada@tides.test (Ada)</author>
            <pubDate>Sat, 07 Sep 2002 10:00:00 +0200</pubDate><category>moon</category>
            <description>&lt;p>High water</description><itunes:duration>3:00</itunes:duration>
            <enclosure url='/a.mp3' type='audio/mpeg' length='7'/></item></channel></rss>";
        let context = Context::new(Url::parse("https://tides.test/feed").unwrap());
        let normalized = normalize(rss, &context).unwrap();

        let feed = AtomFeed::try_from(&normalized).unwrap();

        assert_eq!(feed.title.value, "Tides & more");
        assert_eq!(feed.lang.as_deref(), Some("en"));
        let [entry] = feed.entries.as_slice() else { panic!("{:?}", feed.entries) };
        assert_eq!(entry.id, "https://tides.test/spring");
        assert_eq!(entry.published.unwrap().to_rfc3339(), "2002-09-07T10:00:00+02:00");
        assert_eq!(entry.authors[0].email.as_deref(), Some("ada@tides.test"));
        assert_eq!(entry.categories[0].term, "moon");
        let summary = entry.summary.as_ref().unwrap();
        assert_eq!(summary.value, "<p>High water");
        let links: Vec<_> = entry.links.iter().map(|link| (&*link.rel, &*link.href)).collect();
        let expected =
            [("alternate", "https://tides.test/spring"), ("enclosure", "https://tides.test/a.mp3")];
        assert_eq!(links, expected);
        assert_eq!(entry.extensions["itunes"]["duration"][0].value.as_deref(), Some("3:00"));
        assert_eq!(AtomFeed::try_from(normalized.feed()).unwrap(), feed);
        assert_eq!(AtomFeed::try_from(normalized).unwrap(), feed);
    }
}
