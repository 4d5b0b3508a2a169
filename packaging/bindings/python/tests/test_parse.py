"""``feedgate_feed.parse`` and its classes."""

import datetime
import json
import sys
import threading
import unittest

import feedgate_feed

URL = "https://tides.test/feed.xml"

ATOM = b"""<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en">
  <id>urn:tides</id><title type="html">Tides &amp;amp; more</title>
  <link href="/"/><icon>/icon.png</icon><generator uri="/g" version="2">Pen</generator>
  <entry><id>urn:tides:1</id><title>Spring</title><updated>2002-09-07T10:00:00.5+02:00</updated>
    <author><name>Ada</name><email>ada@tides.test</email></author>
    <category term="moon" label="Moon"/>
    <content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>High</p></div></content>
    <x:depth xmlns:x="urn:x" x:unit="m" exact="no">4<x:more/></x:depth>
  </entry></feed>"""


class Parse(unittest.TestCase):
    def test_an_entry_has_typed_fields(self) -> None:
        feed = feedgate_feed.parse(ATOM, URL)
        self.assertEqual((feed.format, feed.id, feed.language), ("atom1.0", "urn:tides", "en"))
        self.assertEqual((feed.title.kind, feed.title.value), ("html", "Tides &amp; more"))
        self.assertEqual((feed.link, feed.icon), ("https://tides.test/", "https://tides.test/icon.png"))
        self.assertEqual((feed.generator.name, feed.generator.version), ("Pen", "2"))
        entry = feed.entries[0]
        offset = datetime.timezone(datetime.timedelta(hours=2))
        self.assertEqual(entry.updated, datetime.datetime(2002, 9, 7, 10, 0, 0, 500000, offset))
        self.assertEqual((entry.authors[0].name, entry.authors[0].email), ("Ada", "ada@tides.test"))
        self.assertEqual((entry.categories[0].term, entry.categories[0].label), ("moon", "Moon"))
        self.assertEqual((entry.content.kind, entry.content.value), ("xhtml", "<p>High</p>"))
        depth = next(element for element in entry.extensions if element.name == "depth")
        self.assertEqual((depth.namespace, depth.text), ("urn:x", "4"))
        self.assertEqual(depth.attributes, {"x:unit": "m", "exact": "no"})
        self.assertEqual((depth.children[0], depth.children[1].name), ("4", "more"))

    def test_values_are_compared_and_shown(self) -> None:
        one, other = (feedgate_feed.parse(ATOM, URL).entries[0].authors[0] for _ in range(2))
        self.assertEqual(one, other)
        self.assertEqual(repr(one), "Person(name='Ada', email='ada@tides.test')")

    def test_values_cannot_be_changed(self) -> None:
        with self.assertRaises(AttributeError):
            feedgate_feed.parse(ATOM, URL).entries[0].id = "x"  # type: ignore[misc]

    def test_the_list_of_entries_is_made_once(self) -> None:
        feed = feedgate_feed.parse(ATOM, URL)
        self.assertIs(feed.entries, feed.entries)
        self.assertEqual(len(feed), 1)

    def test_what_is_no_feed_is_an_error_that_says_so(self) -> None:
        with self.assertRaisesRegex(feedgate_feed.NotAFeedError, "an HTML page"):
            feedgate_feed.parse(b"<!doctype html><html></html>", URL)
        with self.assertRaises(ValueError):
            feedgate_feed.parse(ATOM, "no address")
        with self.assertRaises(TypeError):
            feedgate_feed.parse("text", URL)  # type: ignore[arg-type]

    def test_headers_say_the_encoding_and_the_base(self) -> None:
        data = "<rss><channel><title>Marée</title><item><link>a</link></item></channel></rss>"
        headers = [("Content-Type", "text/xml; charset=iso-8859-1"), ("Content-Location", "/b/c")]
        feed = feedgate_feed.parse(data.encode("latin-1"), URL, headers=headers)
        self.assertEqual(feed.title.value, "Marée")
        self.assertEqual(feed.entries[0].link, "https://tides.test/b/a")

    def test_texts_are_sanitized_on_demand(self) -> None:
        data = b"<rss><channel><item><description>&lt;script>x&lt;/script>y</description></item></channel></rss>"
        feed = feedgate_feed.parse(data, URL)
        self.assertIn("script", feed.entries[0].summary.value)
        self.assertEqual(feed.sanitized().entries[0].summary.value, "y")

    def test_documents_are_written(self) -> None:
        feed = feedgate_feed.parse(ATOM, URL)
        self.assertIn("<id>urn:tides:1</id>", feed.to_atom())
        self.assertEqual(json.loads(feed.to_json())["items"][0]["id"], "urn:tides:1")

    def test_threads_run_while_a_document_is_read(self) -> None:
        text = b"&lt;p>High &amp;amp; low water&lt;/p>" * 50
        data = b"<rss><channel>" + (b"<item><description>" + text + b"</description></item>") * 4000
        begun, done = threading.Event(), threading.Event()

        def read() -> None:
            begun.set()
            feedgate_feed.parse(data, URL)
            done.set()

        # Threads take turns only where one waits, or reads without holding the GIL.
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1000)
        try:
            reader = threading.Thread(target=read)
            reader.start()
            begun.wait()
            is_reading = not done.is_set()
            reader.join()
        finally:
            sys.setswitchinterval(interval)
        self.assertTrue(is_reading)
