"""The interface of feedparser over feedgate's reader.

``from feedgate_feed import feedparser`` in place of ``import feedparser``::

    result = feedparser.parse(data)
    result.feed.title, result.entries[0].link, result.bozo

What is different: texts, dates and addresses are normalized before they get these names, so a date
is in the usual form of its format whatever the document says, and an entry is filled when it is
first used.
"""

from __future__ import annotations

import time
import urllib.error
import xml.sax
from collections.abc import Mapping
from typing import Any

from . import _encodings, _http
from ._dictionary import FeedParserDict, unread_entry
from ._encodings import (
    CharacterEncodingOverride,
    CharacterEncodingUnknown,
    NonXMLContentType,
    ThingsNobodyCaresAboutButMe,
)
from ._native import Document, NotAFeedError

__all__ = [
    "RESOLVE_RELATIVE_URIS",
    "SANITIZE_HTML",
    "USER_AGENT",
    "CharacterEncodingOverride",
    "CharacterEncodingUnknown",
    "FeedParserDict",
    "NonXMLContentType",
    "NotAFeedError",
    "ThingsNobodyCaresAboutButMe",
    "UndeclaredNamespace",
    "parse",
]

#: Sent with requests, unless ``agent`` is given.
USER_AGENT = "feedgate-feed"
#: Whether texts are sanitized, unless ``sanitize_html`` is given.
SANITIZE_HTML = True
#: Addresses are always made absolute where their base is known.
RESOLVE_RELATIVE_URIS = True


class UndeclaredNamespace(Exception):
    """A prefix is used that is not declared."""


#: feedparser's names of formats.
_VERSIONS = {
    "rss0.90": "rss090",
    "rss0.91": "rss091u",
    "rss0.92": "rss092",
    "rss0.93": "rss093",
    "rss0.94": "rss094",
    "rss1.0": "rss10",
    "rss1.1": "rss10",
    "rss2.0": "rss20",
    "rdf": "rss10",
    "atom0.3": "atom03",
    "atom1.0": "atom10",
    "jsonfeed1.0": "json1",
    "jsonfeed1.1": "json11",
}

#: Faults that leave a document well-formed XML.
_WELL_FORMED = {
    "bad_date",
    "date_before_feeds",
    "date_in_future",
    "double_encoded",
    "entry_repeated",
    "id_from_link",
    "id_generated",
    "id_repeated",
    "link_dropped",
    "undeclared_entity",
    "wrong_charset",
}


def parse(
    url_file_stream_or_string: Any,
    etag: str | None = None,
    modified: Any = None,
    agent: str | None = None,
    referrer: str | None = None,
    handlers: Any = None,
    request_headers: Mapping[str, str] | None = None,
    response_headers: Mapping[str, str] | None = None,
    resolve_relative_uris: bool | None = None,
    sanitize_html: bool | None = None,
) -> FeedParserDict:
    """Reads a feed from bytes, text, a file or its name, or an address."""
    result = FeedParserDict(bozo=False, entries=[], feed=FeedParserDict(), headers={})
    request = _http.Request(
        etag=etag,
        modified=modified,
        agent=agent or USER_AGENT,
        referrer=referrer,
        handlers=handlers or [],
        headers=request_headers or {},
    )
    try:
        data = _bytes(url_file_stream_or_string, request, result)
    except urllib.error.URLError as unreachable:
        result.update(bozo=True, bozo_exception=unreachable)
        return result
    if not data:
        return result
    result["headers"].update(response_headers or {})
    headers: dict[str, str] = result["headers"]
    encoding, error = _encodings.encoding_of(data, headers)
    result["encoding"] = encoding
    try:
        document = Document(
            _encodings.as_utf8(data, encoding),
            result.get("href"),
            [(str(name), str(value)) for name, value in headers.items()],
            FeedParserDict,
            time.struct_time,
            SANITIZE_HTML if sanitize_html is None else sanitize_html,
        )
    except NotAFeedError as not_a_feed:
        result.update(bozo=True, bozo_exception=not_a_feed, version="", namespaces={})
        return result
    faults = document.faults
    for code, detail in faults:
        if code == "guessed_charset" and isinstance(error, _encodings.ThingsNobodyCaresAboutButMe):
            result["encoding"] = detail.removeprefix("read as ")
    result["version"] = _version(document.format, data)
    result["namespaces"] = _encodings.namespaces_of(data)
    document.fill_feed(result["feed"])
    result["entries"] = [unread_entry(document, index) for index in range(len(document))]
    error = error or _malformed(faults)
    if error:
        result.update(bozo=True, bozo_exception=error)
    return result


def _bytes(source: Any, request: _http.Request, result: FeedParserDict) -> bytes:
    """Returns the bytes of whatever was given."""
    if hasattr(source, "read"):
        data = source.read()
        return data.encode() if isinstance(data, str) else data
    if isinstance(source, str) and _http.is_address(source):
        return _http.get(source, request, result)
    if isinstance(source, str) and "<" not in source and len(source) < 4096:
        try:
            with open(source, "rb") as file:
                return file.read()
        except (OSError, ValueError):
            pass
    return source.encode() if isinstance(source, str) else bytes(source)


def _version(format: str, data: bytes) -> str:
    """Returns feedparser's name of a format."""
    head = data[:2048]
    if format in ("rss1.0", "rdf") and b"my.netscape.com/rdf/simple/0.9" in head:
        return "rss090"
    if format == "rss0.91" and b"netscape.com" in head.lower():
        return "rss091n"
    if format == "rss2.0" and b"version" not in head[head.find(b"<rss") :].partition(b">")[0]:
        return "rss"
    return _VERSIONS.get(format, format)


def _malformed(faults: list[tuple[str, str]]) -> Exception | None:
    """Returns the error that a strict reader reports."""
    for code, detail in faults:
        if code == "undeclared_prefix":
            return UndeclaredNamespace(detail)
        if code not in _WELL_FORMED:
            return xml.sax.SAXException(f"{code}: {detail}")
    return None
