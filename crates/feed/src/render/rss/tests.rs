//! What is written as RSS says the same as the Atom that it was made of.

use super::*;
use crate::{Context, normalize, parse};

const URL: &str = "https://tides.test/feed";

/// Returns the RSS of a document, made of the Atom that is stored of it.
fn rss(source: &str) -> String {
    let context = Context::new(URL.parse().unwrap());
    let atom = normalize(source.as_bytes(), &context).unwrap().to_atom();
    document(&parse::parse(atom.as_bytes(), &context).unwrap())
}

fn channel(items: &str) -> String {
    format!(
        "<rss version='2.0' xmlns:itunes='http://www.itunes.com/dtds/podcast-1.0.dtd' \
         xmlns:podcast='https://podcastindex.org/namespace/1.0' \
         xmlns:media='http://search.yahoo.com/mrss/' \
         xmlns:content='http://purl.org/rss/1.0/modules/content/'><channel>\
         <title>Tides &amp; more</title><link>https://tides.test/</link>\
         <description>High and &lt;b>low&lt;/b></description><language>en</language>{items}\
         </channel></rss>"
    )
}

#[test]
fn a03_a_podcast_is_written_as_podcast_software_reads_it() {
    let written = rss(&channel(
        "<ttl>60</ttl><cloud domain='tides.test' port='80' path='/' registerProcedure='' \
         protocol='http-post'/><itunes:explicit>no</itunes:explicit>\
         <item><guid isPermaLink='false'>episode-14</guid><title>One</title>\
         <link>https://tides.test/1</link><description>Short</description>\
         <content:encoded>&lt;p>Long&lt;/p></content:encoded>\
         <pubDate>Sat, 07 Sep 2002 02:00:01 +0200</pubDate>\
         <enclosure url='https://tides.test/1.mp3' length='17' type='audio/mpeg'/>\
         <enclosure url='https://tides.test/1.ogg' type='audio/ogg'/>\
         <itunes:author>Ada</itunes:author><itunes:duration>1:02</itunes:duration>\
         <itunes:keywords>moon</itunes:keywords>\
         <podcast:transcript url='https://tides.test/1.vtt' type='text/vtt'/>\
         <media:thumbnail url='https://tides.test/1.png'/></item>",
    ));
    for want in [
        "<title>Tides &amp; more</title>",
        "<link>https://tides.test/</link>",
        "<description>High and low</description>",
        "<language>en</language>",
        "<ttl>60</ttl>",
        "<rss:cloud domain=\"tides.test\"",
        "<itunes:explicit>false</itunes:explicit>",
        "<guid isPermaLink=\"false\">episode-14</guid>",
        "<link>https://tides.test/1</link>",
        "<pubDate>Sat, 07 Sep 2002 00:00:01 GMT</pubDate>",
        "<description>Short</description>\n<content:encoded>&lt;p&gt;Long&lt;/p&gt;</content:encoded>",
        "<enclosure url=\"https://tides.test/1.mp3\" type=\"audio/mpeg\" length=\"17\"/>",
        "<atom:link rel=\"enclosure\" href=\"https://tides.test/1.ogg\" type=\"audio/ogg\"/>",
        "<dc:creator>Ada</dc:creator>\n<itunes:author>Ada</itunes:author>",
        "<itunes:duration>1:02</itunes:duration>",
        "<category domain=\"http://www.itunes.com/\">moon</category>\n<enclosure",
        "<podcast:transcript url=\"https://tides.test/1.vtt\" type=\"text/vtt\"/>",
        "<media:thumbnail url=\"https://tides.test/1.png\"/>",
    ] {
        assert!(written.contains(want), "{want}\n{written}");
    }
    assert_eq!(written.matches("xmlns:itunes=").count(), 1, "at the root alone:\n{written}");
    assert_eq!(written.matches(">moon</category>").count(), 1, "each category once:\n{written}");
    assert!(!written.contains("as:verb"), "all entries are posted:\n{written}");
    assert!(!written.contains("fg:stated"), "the guid is that of the source:\n{written}");
}

#[test]
fn a03_a_guid_is_a_permalink_if_the_source_says_so_or_it_is_the_address_of_the_page() {
    #[rustfmt::skip]
    let cases = [
        ("<guid>https://tides.test/1</guid>", "<guid isPermaLink=\"true\">https://tides.test/1</guid>"),
        ("<link>https://tides.test/1</link>", "<guid isPermaLink=\"true\">https://tides.test/1</guid>"),
        ("<guid isPermaLink='false'>tag:a,2026:1</guid>", "<guid isPermaLink=\"false\">tag:a,2026:1</guid>"),
        ("<guid isPermaLink='false'>é 1</guid>", "<guid isPermaLink=\"false\">é 1</guid>"),
        ("<guid>https://tides.test/?p=1</guid><link>https://tides.test/1</link>", "<guid isPermaLink=\"true\">https://tides.test/?p=1</guid>"),
        ("<guid isPermaLink='false'>https://tides.test/1</guid><link>https://tides.test/1</link>", "<guid isPermaLink=\"false\">https://tides.test/1</guid>"),
        ("<guid>14</guid>", "<guid isPermaLink=\"false\">14</guid>"),
    ];
    for (item, want) in cases {
        let written = rss(&channel(&format!("<item>{item}<title>One</title></item>")));
        assert!(written.contains(want), "{item}\n{written}");
        assert!(!written.contains("as=\"permalink\""), "{written}");
    }
}

#[test]
fn a03_an_entry_of_atom_is_an_item_with_all_that_it_has() {
    let written = rss(
        "<feed xmlns='http://www.w3.org/2005/Atom' xml:lang='en'><id>urn:x</id><title>T</title>\
         <updated>2026-11-01T10:00:00Z</updated><rights>Free</rights>\
         <author><name>Jo</name><email>jo@tides.test</email></author>\
         <link rel='self' href='https://tides.test/feed'/><link href='https://tides.test/'/>\
         <entry xml:lang='de'><id>urn:x:1</id><title type='html'>a &amp;lt; b</title>\
         <published>2026-11-01T09:00:00Z</published><updated>2026-11-01T10:00:00.5Z</updated>\
         <author><name>Ada</name></author><author><name>Bea</name></author>\
         <category term='rain' scheme='https://a.test/terms'/>\
         <link href='https://tides.test/é'/>\
         <link rel='replies' type='text/html' href='https://tides.test/1#replies'/>\
         <link rel='related' title='R' href='https://a.test/'/><content>1 &lt; 2</content>\
         <source><id>https://b.test/feed</id><title>B</title></source></entry></feed>",
    );
    for want in [
        "<link>https://tides.test/</link>",
        "<copyright>Free</copyright>",
        "<managingEditor>jo@tides.test (Jo)</managingEditor>",
        "<lastBuildDate>Sun, 01 Nov 2026 10:00:00 GMT</lastBuildDate>",
        "<atom:id>urn:x</atom:id>",
        "<atom:link rel=\"self\" href=\"https://tides.test/feed\"/>",
        "<title>a &lt; b</title>",
        "<link>https://tides.test/%C3%A9</link>",
        "<guid isPermaLink=\"false\">urn:x:1</guid>",
        "<pubDate>Sun, 01 Nov 2026 09:00:00 GMT</pubDate>",
        "<atom:updated>2026-11-01T10:00:00.500Z</atom:updated>",
        "<description>1 &amp;lt; 2</description>",
        "<dc:creator>Ada</dc:creator>\n<dc:creator>Bea</dc:creator>",
        "<category domain=\"https://a.test/terms\">rain</category>",
        "<comments>https://tides.test/1#replies</comments>",
        "<atom:link rel=\"related\" title=\"R\" href=\"https://a.test/\"/>",
        "<source url=\"https://b.test/feed\">B</source>",
        "<dc:language>de</dc:language>",
    ] {
        assert!(written.contains(want), "{want}\n{written}");
    }
}

#[test]
fn a03_what_is_read_of_the_rss_is_what_was_read_of_the_source() {
    let item = "<item><guid isPermaLink='false'>urn:x:1</guid><title>One</title>\
         <link>https://tides.test/1</link><description>&lt;p>Short&lt;/p></description>\
         <content:encoded>&lt;p>Long &amp;amp; wide&lt;/p></content:encoded>\
         <category>rain</category><pubDate>Sat, 07 Sep 2002 00:00:01 GMT</pubDate>\
         <enclosure url='https://tides.test/1.mp3' length='17' type='audio/mpeg'/>\
         <itunes:duration>1:02</itunes:duration></item>";
    let context = Context::new(URL.parse().unwrap());
    let source = channel(item);
    let read = |text: &str| normalize(text.as_bytes(), &context).unwrap().into_feed().entries;
    assert_eq!(read(&rss(&source)), read(&source));
}

#[test]
fn a03_rss_is_well_formed_and_complete_whatever_a_feed_lacks() {
    let none = document(&Feed { id: "urn:x".to_owned(), ..Feed::default() });
    for want in ["<title>urn:x</title>", "<link>urn:x</link>", "<description>urn:x</description>"] {
        assert!(none.contains(want), "{want}\n{none}");
    }
    let written = rss(&channel("<item><guid isPermaLink='false'>1</guid></item>"));
    assert!(written.contains("<description></description>"), "{written}");
}
