"""Reads any RSS, Atom, RDF, CDF or JSON Feed, sound or broken.

>>> import feedgate_feed
>>> feed = feedgate_feed.parse(b"<rss><channel><title>Tides</title></channel></rss>", "https://tides.test/feed")
>>> feed.title.value
'Tides'

``feedgate_feed.feedparser`` has the interface of feedparser.
"""

from ._native import (
    Category,
    Content,
    Element,
    Entry,
    Feed,
    Generator,
    Link,
    NotAFeedError,
    Person,
    Repair,
    Text,
    parse,
)

__all__ = [
    "Category",
    "Content",
    "Element",
    "Entry",
    "Feed",
    "Generator",
    "Link",
    "NotAFeedError",
    "Person",
    "Repair",
    "Text",
    "parse",
]
