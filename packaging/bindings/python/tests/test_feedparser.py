"""``feedgate_feed.feedparser``: results can be used where those of feedparser are."""

import copy
import http.server
import io
import json
import pickle
import tempfile
import threading
import time
import unittest
import warnings

from feedgate_feed import feedparser

RSS = b"""<rss version="2.0" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"
  xmlns:media="http://search.yahoo.com/mrss/" xmlns:x="urn:x"><channel>
  <title>Tides</title><link>https://tides.test/</link><description>High &lt;b>water&lt;/b></description>
  <language>en</language><ttl>60</ttl><webMaster>web@tides.test (Web)</webMaster>
  <image><url>https://tides.test/i.png</url><title>Tides</title><width>8</width></image>
  <itunes:owner><itunes:name>Ada</itunes:name><itunes:email>ada@tides.test</itunes:email></itunes:owner>
  <item><title>Spring</title><link>spring</link><guid isPermaLink="false">spring-1</guid>
    <description>Text &lt;script>x&lt;/script>&lt;a href="more">more&lt;/a></description>
    <pubDate>Sat, 07 Sep 2002 10:00:00 +0200</pubDate><category domain="urn:d">moon</category>
    <author>bea@tides.test (Bea)</author><comments>https://tides.test/c</comments>
    <enclosure url="https://tides.test/a.mp3" type="audio/mpeg" length="7"/>
    <itunes:duration>3:00</itunes:duration><itunes:explicit>yes</itunes:explicit>
    <media:thumbnail url="https://tides.test/t.png"/><x:depth>4</x:depth></item>
  <item><title>Neap</title></item></channel></rss>"""


def first(**options: object) -> feedparser.FeedParserDict:
    return feedparser.parse(RSS, **options).entries[0]  # type: ignore[arg-type]


class Names(unittest.TestCase):
    def test_a_feed_has_the_names_of_feedparser(self) -> None:
        result = feedparser.parse(RSS)
        self.assertFalse(result.bozo)
        self.assertEqual((result.version, result.encoding), ("rss20", "utf-8"))
        self.assertEqual(result.namespaces["x"], "urn:x")
        feed = result.feed
        self.assertEqual((feed.title, feed.link, feed.language), ("Tides", "https://tides.test/", "en"))
        self.assertEqual(feed.description, "High <b>water</b>")
        self.assertEqual(feed.subtitle_detail.type, "text/html")
        self.assertEqual((feed.ttl, feed.image.href, feed.image.width), ("60", "https://tides.test/i.png", 8))
        self.assertEqual(feed.publisher_detail, {"name": "Ada", "email": "ada@tides.test"})

    def test_an_entry_has_the_names_of_feedparser(self) -> None:
        entry = first()
        self.assertEqual((entry.title, entry.link, entry.id), ("Spring", "https://tides.test/spring", "spring-1"))
        self.assertEqual(entry.summary, 'Text <a href="https://tides.test/more">more</a>')
        self.assertEqual(entry.published, "Sat, 07 Sep 2002 10:00:00 +0200")
        self.assertEqual(entry.published_parsed, time.struct_time((2002, 9, 7, 8, 0, 0, 5, 250, 0)))
        self.assertEqual(entry.author_detail, {"name": "Bea", "email": "bea@tides.test"})
        self.assertEqual(entry.author, "Bea (bea@tides.test)")
        self.assertEqual(entry.tags, [{"term": "moon", "scheme": "urn:d", "label": None}])
        self.assertEqual((entry.category, entry.comments), ("moon", "https://tides.test/c"))
        enclosure = {"href": "https://tides.test/a.mp3", "type": "audio/mpeg", "length": "7"}
        self.assertEqual(entry.enclosures, [enclosure])
        self.assertEqual((entry.itunes_duration, entry.itunes_explicit), ("3:00", True))
        self.assertEqual(entry.media_thumbnail, [{"url": "https://tides.test/t.png"}])
        self.assertEqual(entry.x_depth, "4")

    def test_old_names_lead_to_new_ones(self) -> None:
        result = feedparser.parse(RSS)
        self.assertIs(result["items"], result["entries"])
        self.assertIs(result.channel, result.feed)
        entry = result.entries[0]
        self.assertEqual((entry.guid, entry["description"]), (entry.id, entry.summary))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.assertEqual(entry.updated, entry.published)
            self.assertEqual(entry.modified_parsed, entry.published_parsed)
        self.assertEqual({warning.category for warning in caught}, {DeprecationWarning})
        self.assertNotIn("updated", entry)

    def test_what_is_missing_is_missing(self) -> None:
        neap = feedparser.parse(RSS).entries[1]
        for name in ("summary", "published", "content", "enclosures", "category", "license", "id"):
            self.assertNotIn(name, neap)
            self.assertFalse(hasattr(neap, name), name)
            self.assertEqual(neap.get(name, "none"), "none")

    def test_addresses_are_relative_to_the_base_if_it_is_known(self) -> None:
        located = first(response_headers={"content-location": "https://tides.test/b/feed"})
        self.assertEqual(located.link, "https://tides.test/b/spring")
        self.assertIn('<a href="https://tides.test/b/more">', located.summary)
        for written in ("spring", "/a/spring", "../spring", "?spring", "https://o.test/spring"):
            data = f'<feed><entry><link href="{written}"/><id>urn:x</id></entry></feed>'
            self.assertEqual(feedparser.parse(data.encode()).entries[0].link, written)

    def test_sanitizing_can_be_switched_off(self) -> None:
        self.assertIn("<script>x</script>", first(sanitize_html=False).summary)


class Dictionaries(unittest.TestCase):
    def test_an_entry_is_a_dictionary_before_and_after_it_was_used(self) -> None:
        expected = dict(first().items())
        uses = {
            "dict": dict,
            "copy": copy.copy,
            "deep copy": copy.deepcopy,
            "pickle": lambda entry: pickle.loads(pickle.dumps(entry)),
            "keys": lambda entry: {key: entry[key] for key in entry},
            "splat": lambda entry: {**entry},
            "or": lambda entry: entry | {},
            "update": lambda entry: feedparser.FeedParserDict(entry),
        }
        for name, use in uses.items():
            self.assertEqual(use(first()), expected, name)
        self.assertTrue(first() == expected)
        self.assertEqual(len(first()), len(expected))
        self.assertEqual(repr(first()), repr(expected))
        plain = json.loads(json.dumps(first(), default=list))
        self.assertEqual(plain["title"], "Spring")
        self.assertTrue(bool(first()))

    def test_an_entry_can_be_changed(self) -> None:
        entry = first()
        entry["title"] = "Neap"
        entry["copyright"] = "Ada"
        self.assertEqual((entry.title, entry["rights"], entry.link), ("Neap", "Ada", "https://tides.test/spring"))
        self.assertEqual(entry.setdefault("title", "x"), "Neap")
        self.assertEqual(entry.pop("link"), "https://tides.test/spring")
        self.assertNotIn("link", entry)


class Sources(unittest.TestCase):
    def test_bytes_text_files_and_names_are_read(self) -> None:
        with tempfile.NamedTemporaryFile(suffix=".xml") as file:
            file.write(RSS)
            file.flush()
            sources = [RSS, RSS.decode(), io.BytesIO(RSS), io.StringIO(RSS.decode()), file.name, bytearray(RSS)]
            for source in sources:
                self.assertEqual(len(feedparser.parse(source).entries), 2, type(source))

    def test_an_address_is_fetched(self) -> None:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == "/old":
                    self.send_response(301)
                    self.send_header("Location", "/feed")
                    self.end_headers()
                    return
                fresh = self.headers.get("If-None-Match") == '"1"'
                self.send_response(304 if fresh else 200)
                self.send_header("ETag", '"1"')
                self.send_header("Content-Type", "application/rss+xml")
                self.end_headers()
                if not fresh:
                    self.wfile.write(RSS)

            def log_message(self, *args: object) -> None:
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            address = f"http://127.0.0.1:{server.server_port}"
            result = feedparser.parse(f"{address}/old")
            self.assertEqual((result.status, result.href), (301, f"{address}/feed"))
            self.assertEqual((result.etag, result.bozo), ('"1"', False))
            self.assertEqual(result.entries[0].comments, "https://tides.test/c")
            self.assertEqual(feedparser.parse(f"{address}/feed", etag=result.etag).status, 304)
            server.shutdown()
        self.assertTrue(feedparser.parse(f"{address}/feed").bozo)

    def test_faults_are_told(self) -> None:
        cases = [
            (b"", None),
            (b"<rss><channel><title>Tides & more</title></channel></rss>", "SAXException"),
            (b"<rss><channel><x:y>1</x:y></channel></rss>", "UndeclaredNamespace"),
            (b"<html><body>no feed</body></html>", "NotAFeedError"),
            ("<?xml version='1.0' encoding='ascii'?><rss><channel><title>Marée</title></channel></rss>".encode(), "CharacterEncodingOverride"),
        ]
        for data, name in cases:
            result = feedparser.parse(data)
            self.assertEqual(bool(result.bozo), name is not None, data)
            error = result.get("bozo_exception")
            self.assertEqual(error and type(error).__name__, name, data)
            self.assertEqual(result.entries, [])


if __name__ == "__main__":
    unittest.main()
