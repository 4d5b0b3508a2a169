//! The whole normalizer: one pure function from bytes to a feed.

use crate::context::Context;
use crate::model::Feed;
use crate::parse::{self, NotAFeed};
use crate::passes;
use crate::render;
use crate::repair::{self, Repair};

/// Reads any feed, repairs it, and gives every entry an id, a date and absolute addresses.
///
/// No I/O is done and no clock is read: the same bytes and context give the same feed. The
/// only error is that the document is not a feed; everything else that was wrong is repaired
/// and listed in [`Normalized::repairs`].
///
/// ```
/// use feedgate_feed::{Context, normalize};
///
/// let bytes = b"<rss version='2.0'><channel><title>Tides</title>
///   <item><guid isPermaLink='false'>spring-1</guid><title>Spring tide</title></item>
/// </channel></rss>";
/// let context = Context::new("https://tides.test/feed.xml".parse()?);
///
/// let tides = normalize(bytes, &context)?;
/// assert_eq!(tides.feed().entries[0].id, "urn:guid:spring-1");
/// assert!(tides.to_atom().contains("<title type=\"text\">Spring tide</title>"));
/// assert_eq!(tides.to_json()["items"][0]["title"], "Spring tide");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn normalize(bytes: &[u8], context: &Context) -> Result<Normalized, NotAFeed> {
    let parsed = parse::parse(bytes, context)?;
    Ok(Normalized::from_parsed(parsed, context))
}

/// A feed that went through every pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Normalized {
    feed: Feed,
}

impl Normalized {
    /// Runs all passes over a feed that was parsed in another way than by [`normalize`], such as with a
    /// mapping.
    pub fn from_parsed(feed: Feed, context: &Context) -> Normalized {
        Normalized { feed: passes::run(feed, context) }
    }

    /// Returns the feed.
    pub fn feed(&self) -> &Feed {
        &self.feed
    }

    /// What was wrong with the document and was repaired.
    pub fn repairs(&self) -> &[Repair] {
        &self.feed.repairs
    }

    /// How unreliable the feed is, from 0 to 1: see [`repair::bozo_rank`].
    pub fn bozo_rank(&self) -> f64 {
        repair::bozo_rank(&self.feed.repairs, self.feed.entries.len())
    }

    /// One Atom document: well-formed, valid by RFC 4287, the same bytes each time.
    pub fn to_atom(&self) -> String {
        render::atom::feed(&self.feed)
    }

    /// Returns the feed in JSON, with the field names of Superfeedr.
    pub fn to_json(&self) -> serde_json::Value {
        render::json::feed(&self.feed)
    }

    /// Detects the language of entries that declare none. This takes longer than everything
    /// else together.
    #[cfg(feature = "language")]
    pub fn detect_languages(&mut self) {
        self.feed.entries.iter_mut().for_each(passes::detect_language);
    }

    /// Removes from all texts what could act in a page that shows them: scripts, handlers, styles
    /// that load something, frames, plugins, and links that run code.
    pub fn sanitize(&mut self) {
        passes::sanitize(&mut self.feed);
    }

    /// Returns the feed, by value.
    pub fn into_feed(self) -> Feed {
        self.feed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use url::Url;

    #[test]
    fn what_is_written_is_written_the_same_when_it_is_read_again() {
        let item = |inside: &str| {
            format!("<rss><channel><title>t</title><item>{inside}</item></channel></rss>")
        };
        let deep = "<x:a>".repeat(300) + "b" + &"</x:a>".repeat(300);
        let bold = "<b>".repeat(300) + "b" + &"</b>".repeat(300);
        let atom = "<entry xmlns='http://www.w3.org/2005/Atom'><title>n</title></entry>";
        #[rustfmt::skip]
        let cases = [
            ("a base beside the item",     "<rss><item/><channel xml:base='http://b.test/'/></rss>".to_owned()),
            ("white space at a reference", item("<author>x&gt;\n<b>y</b>\n&lt;</author>")),
            ("a line's end in a keyword",  item("<category>a\nb</category>")),
            ("encoded three times",        item("<title>cafÃƒÂ©</title>")),
            ("one id, other dates",        item("<guid>a</guid></item><item><guid>a</guid><pubDate>2002-09-07</pubDate></item><item><guid>a</guid><pubDate>2003-09-07</pubDate>")),
            ("deep elements",              item(&deep)),
            ("deep markup",                format!("<entry><title type='xhtml'>{bold}</title></entry>")),
            ("an entry in an extension",   item(&format!("<x:a>{atom}</x:a>"))),
            ("an entry in a title",        format!("<entry><title type='xhtml'><div>{atom}</div></title></entry>")),
            ("a channel in a title",       "<feed><title><p xmlns=''>x<channel/>y</p></title><entry/></feed>".to_owned()),
            ("an item in a person",        "<rss><channel><author><name>a</name><item/></author></channel></rss>".to_owned()),
            ("a long prefix",              item(&format!("<{}:a/>", "ÿ".repeat(200)))),
            ("a long namespace",           item(&format!("<x:a xmlns:x='{}'/>", "ÿ".repeat(300)))),
            ("no address in other words",  "<feed xmlns:x='urn:x'><author><name>n</name><x:email>a <b/>b</x:email></author><entry/></feed>".to_owned()),
            ("prefixes in order",          "<feed><entry><author><name>n</name><x:y xmlns:x='urn:x'/><a:link xmlns:a='http://www.w3.org/2005/Atom'/></author></entry></feed>".to_owned()),
            ("elements of XML itself",     item("<xml:a xml:b=''/>")),
            ("elements of ours",           "<feed><author><name>n</name><z xmlns='tag:feedgate,2026:entry' a@='1' a#='2' as='x'/></author><entry/></feed>".to_owned()),
            ("a copied author",            format!("<feed><author><name>JosÃ©</name></author><title>é</title>{}</feed>", "<entry><id>a</id></entry><entry/>".repeat(20))),
        ];
        let context = Context::new(Url::parse("http://a.test/").unwrap());
        for (why, document) in cases {
            let once = normalize(document.as_bytes(), &context).unwrap().to_atom();
            let twice = normalize(once.as_bytes(), &context).unwrap().to_atom();
            assert_eq!(twice, once, "{why}");
        }
    }

    #[test]
    fn long_lists_are_normalized_at_once() {
        let many = |part: &dyn Fn(usize) -> String| (0..60_000).map(part).collect::<String>();
        let languages = many(&|n| format!("<link href='x' hreflang='a-{n}'/>"));
        let people = many(&|n| format!("<author><name>a{}</name></author>", n % 3));
        let parts = many(&|_| "<itunes:email/><itunes:email>a@b.test</itunes:email>".to_owned());
        let documents = [
            format!("<feed><entry>{languages}</entry></feed>"),
            format!("<feed><id>urn:{}</id><entry>{people}</entry></feed>", "x".repeat(2_000_000)),
            format!("<rss><channel><itunes:owner>{parts}</itunes:owner>{parts}</channel></rss>"),
        ];
        let context = Context::new(Url::parse("https://tides.test/feed").unwrap());
        for document in documents {
            normalize(document.as_bytes(), &context).unwrap();
        }
    }
}
