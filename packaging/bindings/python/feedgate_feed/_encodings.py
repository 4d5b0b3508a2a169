"""What feedparser says of the encoding of a document, and of its namespaces.

The reader decodes by its own rules, which recover more. This is what a strict reader finds
declared (RFC 3023), and whether the bytes agree with it.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping

from ._native import is_utf8


class ThingsNobodyCaresAboutButMe(Exception):
    """A fault of the server, or of the encoding."""


class CharacterEncodingOverride(ThingsNobodyCaresAboutButMe):
    """The document is not in the encoding that is declared."""


class CharacterEncodingUnknown(ThingsNobodyCaresAboutButMe):
    """The document is in no known encoding."""


class NonXMLContentType(ThingsNobodyCaresAboutButMe):
    """The media type is not that of XML."""


#: Encodings that browsers know by the names of Python, and some that are none of a document.
_OF_THE_WEB = {"ascii", "cp1252", "gb18030", "big5", "euc_jp", "shift_jis", "euc_kr", "koi8-r", "iso2022_jp"}

#: How far into a document declarations are looked for.
_HEAD_BYTES = 16384

_DECLARATION = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]{1,40})""")
_CHARSET = re.compile(r"""charset\s*=\s*["']?([\w.:-]{1,40})""", re.IGNORECASE)
_NAMESPACE = re.compile(rb"""xmlns(?::([\w.-]{1,40}))?\s*=\s*["']([^"'<>]{1,300})["']""")

#: Byte order marks, and the beginnings of documents without one.
_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF32_BE, "utf-32be"),
    (codecs.BOM_UTF32_LE, "utf-32le"),
    (codecs.BOM_UTF16_BE, "utf-16be"),
    (codecs.BOM_UTF16_LE, "utf-16le"),
    (codecs.BOM_UTF8, "utf-8"),
    (b"\x00\x00\x00<", "utf-32be"),
    (b"<\x00\x00\x00", "utf-32le"),
    (b"\x00<\x00", "utf-16be"),
    (b"<\x00", "utf-16le"),
    (b"\x4c\x6f\xa7\x94", "cp037"),
)

#: Declared names that leave the width or the order of bytes open.
_WIDE = re.compile(r"(utf[-_]?|u|ucs-)(16|32|2|4)|iso-10646-ucs-[24]|csucs4|csunicode")


def encoding_of(data: bytes, headers: Mapping[str, str]) -> tuple[str, Exception | None]:
    """Returns the encoding of a document, and what is wrong with how it is declared."""
    mark = next((name for start, name in _SIGNATURES if data.startswith(start)), "")
    declared = _declared(data, mark)
    media_type = next((value for name, value in headers.items() if name.lower() == "content-type"), None)
    stated, is_xml = _stated(media_type, declared, bool(headers))
    error: Exception | None = None
    if headers and not is_xml:
        error = NonXMLContentType(f"{media_type or 'no media type'} is not that of XML")
    usual = [stated, declared, mark, "utf-8", "windows-1252"]
    for name in filter(None, usual):
        if _decodes(data, name):
            if name != stated:
                error = CharacterEncodingOverride(f"declared as {stated}, but read as {name}")
            return name, error
    return "", CharacterEncodingUnknown(f"declared as {stated}, which it is not")


def _declared(data: bytes, mark: str) -> str:
    """Returns the encoding that the XML declaration states."""
    head = data[:1024]
    if mark:
        head = head.decode(mark, "ignore").lstrip("\ufeff").encode()
    found = _DECLARATION.match(head)
    name = _known(found[1].decode().lower()) if found else ""
    return mark if mark and _WIDE.fullmatch(name) else name


def _stated(media_type: str | None, declared: str, has_headers: bool) -> tuple[str, bool]:
    """Returns the encoding by RFC 3023, and whether the media type is that of XML."""
    kind, _, parameters = (media_type or "").partition(";")
    kind = kind.strip().lower()
    charset = _CHARSET.search(parameters)
    told = _known(charset[1].lower()) if charset else ""
    family, _, name = kind.partition("/")
    is_xml = name.endswith("+xml") or name in ("xml", "xml-dtd", "xml-external-parsed-entity")
    if family == "text":
        return told or "us-ascii", is_xml
    if family == "application" and is_xml:
        return told or declared or "utf-8", True
    return declared or ("iso-8859-1" if has_headers and media_type is None else "utf-8"), False


def _known(name: str) -> str:
    """Returns the encoding that contains another one."""
    return "gb18030" if name == "gb2312" else name


def _decodes(data: bytes, name: str) -> bool:
    try:
        if codecs.lookup(name).name in ("utf-8", "ascii"):
            return data.isascii() or (name.startswith("utf") and is_utf8(data))
        if codecs.lookup(name).name == "iso8859-1":
            return True
        data.decode(name)
    except (LookupError, ValueError):
        return False
    return True


def as_utf8(data: bytes, name: str) -> bytes:
    """Returns a document in UTF-8, if it is in an encoding that the reader does not know: only those
    of the web are."""
    try:
        codec = codecs.lookup(name).name
        if codec in _OF_THE_WEB or codec.startswith(("utf", "iso8859-1")) or is_utf8(data):
            return data
        return data.decode(codec).encode()
    except (LookupError, ValueError):
        return data


def namespaces_of(data: bytes) -> dict[str, str]:
    """Returns the namespaces that a document declares before its first entry, by their prefixes."""
    ends = (data.find(mark, 0, _HEAD_BYTES) for mark in (b"<item", b"<entry"))
    end = min((end for end in ends if end > 0), default=_HEAD_BYTES)
    found = {}
    at = data.find(b"xmlns", 0, end)
    while at > 0:
        declared = _NAMESPACE.match(data, at)
        if declared:
            prefix, uri = declared.groups(b"")
            found[prefix.decode(errors="replace")] = uri.decode(errors="replace")
        at = data.find(b"xmlns", at + 1, end)
    return found
