"""What readers find in entries, in a form that can be compared, and what most of them agree on."""

import collections
import datetime
import email.utils
import html
import re

FIELDS = ("title", "link", "id", "published", "authors", "categories", "enclosures", "text")

#: So many readers must agree, and more than half of those that have a value.
LEAST_AGREEING = 3

#: Readers whose votes are one, because they share their code.
OURS = ("feedgate", "feedgate (as feedparser)", "feedgate (Node.js)")

_TAG = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_ADDRESS = re.compile(r"""<[a-z][^>]*?\s(?:href|src)\s*=\s*["']([^"']*)["']""", re.IGNORECASE)
_ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)


def plain(text):
    """Returns the letters of a text without markup: what somebody reads, whatever its white space."""
    text = html.unescape(_TAG.sub(" ", html.unescape(str(text))))
    return re.sub(r"\s+", "", _TAG.sub(" ", text))


def instant(text):
    """Returns a date in seconds."""
    text = str(text).strip()
    try:
        date = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        try:
            date = email.utils.parsedate_to_datetime(text)
        except ValueError:
            return text
    if date.tzinfo is None:
        date = date.replace(tzinfo=datetime.timezone.utc)
    return int(date.timestamp())


def comparable(field, value):
    """Returns a value as it is compared; ``None`` if there is none."""
    if value in (None, "", []):
        return None
    if field in ("authors", "categories", "enclosures"):
        parts = {plain(part).lower() if field != "enclosures" else str(part).strip() for part in value if part}
        return tuple(sorted(parts)) or None
    if field == "published":
        return instant(value)
    if field == "title":
        return plain(value) or None
    if field == "text":
        return plain(value)[:400] or None
    return html.unescape(str(value).strip())


class Tally:
    """Agreement with the vote, by reader and field."""

    def __init__(self):
        self.agreed = collections.defaultdict(collections.Counter)
        self.asked = collections.Counter()
        self.differing = []

    def count(self, results, path):
        """Counts a feed. ``results`` has the entries by reader."""
        lengths = collections.Counter(len(entries) for name, entries in results.items() if name not in OURS[1:])
        length, _ = lengths.most_common(1)[0]
        same = {name: entries for name, entries in results.items() if len(entries) == length and length}
        for index in range(length if same else 0):
            for field in FIELDS:
                self._count_field(same, field, index, path, results)

    def _count_field(self, same, field, index, path, results):
        values = {name: comparable(field, entries[index].get(field)) for name, entries in same.items()}
        votes = collections.Counter(
            value for name, value in values.items() if value is not None and name not in OURS[1:]
        )
        if not votes:
            return
        value, agreeing = votes.most_common(1)[0]
        if agreeing < LEAST_AGREEING or 2 * agreeing <= sum(votes.values()):
            return
        self.asked[field] += 1
        for name in results:
            if values.get(name) == value:
                self.agreed[name][field] += 1
        if values.get(OURS[0]) != value:
            self.differing.append((path, index, field, values.get(OURS[0]), value, agreeing))


def addresses(text):
    """Returns how many addresses of a text work wherever it is displayed, and how many there are."""
    found = [html.unescape(address.strip()) for address in _ADDRESS.findall(str(text or ""))]
    found = [address for address in found if address]
    working = sum(1 for address in found if address.startswith("#") or _ABSOLUTE.match(address))
    return working, len(found)
