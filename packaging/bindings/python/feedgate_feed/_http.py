"""Fetching a document, for calls of ``parse`` with an address."""

from __future__ import annotations

import calendar
import datetime
import email.utils
import time
import urllib.parse
import urllib.request
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_SCHEMES = ("http", "https", "ftp", "file", "feed")
_ACCEPT = "application/atom+xml,application/rss+xml,application/xml;q=0.9,text/xml;q=0.2,*/*;q=0.1"

#: The most bytes that are read, before and after they are unpacked.
_MOST_BYTES = 64 * 1024 * 1024

_TIMEOUT_S = 60


@dataclass
class Request:
    """The options of a request."""

    agent: str
    etag: str | None = None
    modified: Any = None
    referrer: str | None = None
    handlers: Sequence[urllib.request.BaseHandler] = field(default_factory=list)
    headers: Mapping[str, str] = field(default_factory=dict)


class _FirstStatus(urllib.request.HTTPRedirectHandler, urllib.request.HTTPDefaultErrorHandler):
    """Remembers the first status, and returns responses with errors like others."""

    status: int | None = None

    def redirect_request(self, req: Any, fp: Any, code: int, *rest: Any) -> Any:
        self.status = self.status or code
        return super().redirect_request(req, fp, code, *rest)

    def http_error_default(self, req: Any, fp: Any, code: int, *rest: Any) -> Any:
        self.status = self.status or code
        fp.status = code
        return fp


def is_address(source: str) -> bool:
    """Returns whether a text is an address that can be fetched."""
    try:
        return urllib.parse.urlsplit(source).scheme in _SCHEMES
    except ValueError:
        return False


def get(address: str, request: Request, result: dict[str, Any]) -> bytes:
    """Fetches a document. Sets what the response says in ``result``."""
    if address.startswith("feed:http"):
        address = address[len("feed:") :]
    elif address.startswith("feed:"):
        address = "http:" + address[len("feed:") :]
    handler = _FirstStatus()
    opener = urllib.request.build_opener(*request.handlers, handler)
    asked = urllib.request.Request(_ascii(address), headers=_headers(request))
    with opener.open(asked, timeout=_TIMEOUT_S) as response:
        data: bytes = response.read(_MOST_BYTES)
        headers = {name.lower(): value for name, value in response.headers.items()}
        result.update(headers=headers, href=response.url, status=handler.status or response.status)
    if "etag" in headers:
        result["etag"] = headers["etag"]
    if "last-modified" in headers:
        result["updated"] = headers["last-modified"]
        result["updated_parsed"] = _struct_time(headers["last-modified"])
    try:
        return _unpacked(data, headers.get("content-encoding", ""))
    except (OSError, EOFError, zlib.error) as error:
        result.update(bozo=True, bozo_exception=error)
        return data


def _headers(request: Request) -> dict[str, str]:
    headers = {"User-Agent": request.agent, "Accept": _ACCEPT, "Accept-Encoding": "gzip, deflate"}
    if request.etag:
        headers["If-None-Match"] = request.etag
    if request.modified:
        headers["If-Modified-Since"] = _http_date(request.modified)
    if request.referrer:
        headers["Referer"] = request.referrer
    return {**headers, **request.headers}


def _ascii(address: str) -> str:
    parts = urllib.parse.urlsplit(address)
    host = parts.netloc.encode("idna").decode() if not parts.netloc.isascii() else parts.netloc
    return urllib.parse.quote(parts._replace(netloc=host).geturl(), safe="%/:=&?~#+!$,;'@()*[]")


def _http_date(moment: Any) -> str:
    if isinstance(moment, str):
        return moment
    if isinstance(moment, datetime.datetime):
        moment = moment.utctimetuple()
    return email.utils.formatdate(calendar.timegm(moment), usegmt=True)


def _struct_time(text: str) -> time.struct_time | None:
    try:
        return email.utils.parsedate_to_datetime(text).utctimetuple()
    except ValueError:
        return None


def _unpacked(data: bytes, encoding: str) -> bytes:
    if encoding == "gzip":
        try:
            return _inflated(data, 31)
        except zlib.error as error:
            raise OSError(str(error)) from error
    if encoding == "deflate":
        try:
            return _inflated(data, 15)
        except zlib.error:
            return _inflated(data, -15)
    return data


def _inflated(data: bytes, bits: int) -> bytes:
    return zlib.decompressobj(bits).decompress(data, _MOST_BYTES)
