//! How long the entries of a feed become when they are rendered, so that none is rendered that would
//! take much more memory than its document: escaping makes of `<p>` in a CDATA section eight times
//! as many bytes, which the store then copies.

use std::io::{self, Write};

use feedgate_feed::model::Feed;

/// The maximum length of all entries of a document when they are rendered, in bytes: about three times
/// the maximum length of a document.
const MAX_RENDERED_BYTES: u64 = 32 << 20;
/// The length up to which a document is not examined: it cannot become longer than that.
const UNEXAMINED_BYTES: usize = 1 << 20;

/// Returns why a feed cannot be used, if its entries would become too long when they are rendered.
/// `document_bytes` is the length of the document.
pub(super) fn reason_too_long(feed: &Feed, document_bytes: usize) -> Option<String> {
    if document_bytes <= UNEXAMINED_BYTES || estimate(feed) <= MAX_RENDERED_BYTES {
        return None;
    }
    Some(format!("its entries take more than {} MiB as Atom", MAX_RENDERED_BYTES >> 20))
}

/// Returns about as many bytes as the entries take when they are rendered, or more. The names of
/// fields stand for the names of elements.
fn estimate(feed: &Feed) -> u64 {
    let mut length = EscapedLength(0);
    for entry in &feed.entries {
        // The writer accepts everything until the limit is exceeded, which is all that matters.
        if serde_json::to_writer(&mut length, entry).is_err() {
            break;
        }
    }
    length.0
}

/// Counts what is written to it, with escapes as in XML.
struct EscapedLength(u64);

impl Write for EscapedLength {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let escaped = |byte: &u8| match byte {
            b'&' => 5,
            b'<' | b'>' => 4,
            _ => 1,
        };
        self.0 += bytes.iter().map(escaped).sum::<u64>();
        if self.0 > MAX_RENDERED_BYTES {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use feedgate_feed::Context;
    use url::Url;

    use super::*;

    fn feed(items: &str) -> (Feed, usize) {
        let document = format!("<rss version='2.0'><channel>{items}</channel></rss>");
        let context = Context::new(Url::parse("http://tides.test/feed").unwrap());
        let feed = feedgate_feed::parse::parse(document.as_bytes(), &context).unwrap();
        (feedgate_feed::passes::run(feed, &context), document.len())
    }

    #[test]
    fn h13_entries_that_become_many_times_longer_than_their_document_are_found() {
        let item =
            |text: &str| format!("<item><description><![CDATA[{text}]]></description></item>");
        #[rustfmt::skip]
        let cases = [
            ("tags",              item(&"<p>".repeat(1_900_000)),                        true),
            ("a long text",       item(&"High water, and what it left. ".repeat(100_000)), false),
            ("many paragraphs",   item(&format!("<p>{}</p>", "High water. ".repeat(20))).repeat(5_000), false),
            ("a short document",  item(&"<p>".repeat(300_000)),                          false),
        ];
        for (why, items, want) in cases {
            let (feed, length) = feed(&items);
            assert_eq!(
                reason_too_long(&feed, length).is_some(),
                want,
                "{why}: {}",
                estimate(&feed)
            );
        }
    }

    #[test]
    fn h13_the_estimate_is_not_below_what_is_rendered() {
        let item = "<item><title>High &amp; low</title><link>http://tides.test/1?a=1&amp;b=2</link>\
            <guid>http://tides.test/1</guid><description>&lt;p&gt;Water &amp;amp; sand&lt;/p&gt;\
            </description></item>";
        let (feed, _) = feed(&item.repeat(50));
        let rendered: usize =
            feed.entries.iter().map(|entry| feedgate_feed::render::atom::entry(entry).len()).sum();
        assert!(estimate(&feed) >= rendered as u64, "{} {rendered}", estimate(&feed));
        assert!(estimate(&feed) <= 8 * rendered as u64, "{} {rendered}", estimate(&feed));
    }
}
