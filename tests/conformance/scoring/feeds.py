"""Real feeds, and the same with one fault each."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
import real_feeds  # noqa: E402

#: Packages that ship more of them.
MORE = [("npm", "podcast-feed-parser@1.0.4")]

#: All packages, in their order.
ALL_PACKAGES = [*real_feeds.PACKAGES, *MORE]

#: Smaller documents show one element each.
LEAST_BYTES = 4_000


def gathered(cache):
    """Returns the paths of the feeds, which are fetched once."""
    folder = cache / "feeds"
    if not (folder / "complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        real_feeds.LEAST_BYTES = LEAST_BYTES
        for package in ALL_PACKAGES:
            real_feeds.PACKAGES = [package]
            try:
                real_feeds.gather(folder)
            except Exception as error:
                print(f"{package[1]}: {error}", file=sys.stderr)
        (folder / "complete").touch()
    return [path for path in sorted(folder.glob("*.xml")) if is_feed(path.read_bytes())]


def is_feed(data):
    """Returns whether a document is a feed with entries, and not a program or a page with one in it."""
    begins = data.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<")
    return begins and len(re.findall(rb"<(?:item|entry)[\s>]", data)) > 1


def url_of(path, data):
    """Returns the address that a feed probably has: that of its site, with a file of its own."""
    site = re.search(rb"<link>\s*(https?://[^<\s]+)", data) or re.search(
        rb"""<link[^>]*href=["'](https?://[^"']+)""", data
    )
    host = site[1].decode(errors="replace").split("/")[2] if site else "feeds.test"
    return f"https://{host}/{path.stem}.xml" if re.fullmatch(r"[\w.-]+", host) else "https://feeds.test/"


def middle(data, marks=(b"</item>", b"</entry>")):
    """Returns the position after the item in the middle, and how many items there are before it."""
    ends = sorted(found.end() for mark in marks for found in re.finditer(re.escape(mark), data))
    return (ends[len(ends) // 2], len(ends) // 2 + 1) if ends else None


def in_title(data, replaced):
    """Puts bytes into the title of an item in the middle."""
    at = middle(data)
    title = at and re.compile(rb"<title[^>]*>(<!\[CDATA\[)?").search(data, at[0])
    return title and not title[1] and data[: title.end()] + replaced + data[title.end() :]


def bare_ampersand(data):
    return in_title(data, b"a & b ")


def entity_of_html(data):
    return in_title(data, b"a&nbsp;b ")


def byte_of_latin1(data):
    return in_title(data, b"caf\xe9 ")


def control_character(data):
    return in_title(data, b"a\x0bb ")


def bare_less_than(data):
    return in_title(data, b"1 < 2 ")


def missing_end(data):
    at = middle(data)
    end = at and data.find(b"</title>", at[0])
    return end and end > 0 and data[:end] + data[end + 8 :]


def truncated(data):
    at = middle(data)
    begun = at and re.compile(rb"<(item|entry)[\s>]").search(data, at[0])
    return begun and data[: begun.end() + 20]


def unquoted_attribute(data):
    at = middle(data)
    return at and data[: at[0]] + b"<x a=1></x>" + data[at[0] :]


def undeclared_prefix(data):
    at = middle(data)
    return at and data[: at[0]] + b"<undeclared:x>1</undeclared:x>" + data[at[0] :]


def warning_before(data):
    return b"<br />\n<b>Warning</b>: Undefined variable in <b>/www/feed.php</b> on line <b>7</b><br />\n" + data


def wrong_label(data):
    head, mark, rest = data.partition(b"?>")
    if not head.startswith(b"<?xml") or not mark or data.isascii():
        return None
    try:
        data.decode()
    except UnicodeDecodeError:
        return None
    return b'<?xml version="1.0" encoding="us-ascii"?>' + rest


def text_after(data):
    return data + b"\n<!-- cached --></html>\n"


FAULTS = {
    "a bare `&` in a title": bare_ampersand,
    "a bare `<` in a title": bare_less_than,
    "`&nbsp;`, which XML does not know": entity_of_html,
    "a byte of Latin-1 in UTF-8": byte_of_latin1,
    "a control character": control_character,
    "a title without its end tag": missing_end,
    "an attribute without quotes": unquoted_attribute,
    "an undeclared prefix": undeclared_prefix,
    "a warning of PHP before the document": warning_before,
    "another encoding declared": wrong_label,
    "an end tag too many": text_after,
    "cut off in the middle": truncated,
}
